//! A waiver's last day is past, or near.
//!
//! # What it checks
//!
//! Waivers that match a finding of this target. Past the last day the finding is back and says so; within 14 days of it, a
//! note comes before that happens. Days are judged in UTC, or as `--today` says.
//!
//! ```text
//! note[expired-waiver]: the waiver for unoptimized-code (edge team: miscompiled at -O2, upstream bug 123) expires in 9 days, on 2027-03-31
//! ```
//!
//! # Why it matters
//!
//! A waiver is a loan. One without an end, or whose end nobody notices, makes the exception the rule.
//!
//! # How to fix
//!
//! Mend what was waived and remove the waiver, or give it a new last day with a reason that still holds.
//!
//! # Policy keys
//!
//! `waiver.expires`, `rules.expired-waiver`
//!
//! # Evidence
//!
//! The policy itself.
//!
//! # Limits
//!
//! A waiver that matched nothing is reported by `unused-policy-entry`, whatever its last day.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use crate::finding::Severity;
use crate::policy::Waiver;
use crate::wording::plural;
use jiff::civil::Date;

/// The rule.
pub const RULE: Rule = Rule {
    id: "expired-waiver",
    severity: Severity::Note,
    keys: &["waiver.expires"],
    source: include_str!("expired_waiver.rs"),
    check,
};

/// From how many days before its end on a waiver is mentioned.
const DAYS_BEFORE: i64 = 14;

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    if context.policy.waivers.is_empty() {
        return Outcome::NotAsked;
    }
    // This rule comes last: what the others used is known.
    let drafts = context
        .policy
        .waivers
        .iter()
        .filter(|waiver| context.is_used(&waiver.at))
        .filter_map(|waiver| draft(context, waiver))
        .collect();
    Outcome::Checked(drafts)
}

fn draft<'a>(context: &Context<'a>, waiver: &Waiver) -> Option<Draft<'a>> {
    let last = waiver.expires.as_ref()?;
    let left = days_until(context.today, last.value)?;
    let rule = &waiver.rule.value;
    let who = match &waiver.owner {
        Some(owner) => format!("{}: {}", owner.value, waiver.reason.value),
        None => waiver.reason.value.clone(),
    };
    let key = format!("{rule}:{}", waiver.reason.value);
    let draft = if left < 0 {
        Draft::violation(key, format!("the waiver for {rule} ({who}) expired on {}", last.value))
    } else if left <= DAYS_BEFORE {
        let when =
            if left == 0 { "today".to_owned() } else { format!("in {}", plural(left.unsigned_abs(), "day")) };
        Draft::violation(key, format!("the waiver for {rule} ({who}) expires {when}, on {}", last.value))
            .at_most(Severity::Note)
    } else {
        return None;
    };
    Some(
        draft
            .policy(&last.at)
            .remedy("mend what was waived and remove the waiver, or give it a new last day"),
    )
}

/// Days from one day to another; negative if it is past.
fn days_until(today: Date, last: Date) -> Option<i64> {
    Some(i64::from(today.until(last).ok()?.get_days()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;
    use jiff::civil::date;

    fn until(last: Date) -> Policy {
        let mut wanted = policy();
        let mut one = waiver("unoptimized-code", 100);
        one.expires = Some(at(last, 105));
        one.owner = Some(at("edge team".into(), 104));
        wanted.waivers = vec![one];
        wanted
    }

    #[test]
    fn a_waiver_that_ends_far_off_is_silent() {
        let facts = nginx(1, Level::O0);
        assert_passed(&facts, &until(date(2026, 12, 15)), RULE.id);
        assert_eq!(
            only(&facts, &until(date(2026, 12, 15)), "unoptimized-code").status,
            FindingStatus::Waived
        );
        assert_silent(&facts, &policy(), RULE.id);
    }

    #[test]
    fn the_last_fourteen_days_are_a_note_and_the_waiver_holds() {
        let facts = nginx(1, Level::O0);
        for (last, when) in [
            (date(2026, 12, 14), "in 14 days"),
            (date(2026, 12, 1), "in 1 day"),
            (date(2026, 11, 30), "today"),
        ] {
            let found = only(&facts, &until(last), RULE.id);
            assert!(
                found.message.contains(&format!("(edge team: reason) expires {when}, on {last}")),
                "{}",
                found.message
            );
            assert_eq!(found.severity, Severity::Note);
            assert_eq!(only(&facts, &until(last), "unoptimized-code").status, FindingStatus::Waived);
        }
    }

    #[test]
    fn past_the_last_day_the_finding_is_back() {
        let facts = nginx(1, Level::O0);
        let wanted = until(date(2026, 11, 29));
        assert!(only(&facts, &wanted, RULE.id).message.contains("expired on 2026-11-29"));
        let found = only(&facts, &wanted, "unoptimized-code");
        assert_eq!((found.status, found.severity), (FindingStatus::Violation, Severity::Error));
        assert!(found.message.ends_with("(its waiver expired on 2026-11-29)"), "{}", found.message);
    }

    #[test]
    fn a_waiver_that_matches_nothing_is_not_mentioned() {
        assert_passed(&nginx(1, Level::O2), &until(date(2026, 11, 29)), RULE.id);
    }
}
