//! An exception in the policy matched nothing.
//!
//! # What it checks
//!
//! When all targets have been judged: every waiver, every entry of `optimization.exempt` and every `[[target]]` table must have
//! matched something in at least one of them.
//!
//! ```text
//! note[unused-policy-entry]: the waiver `unoptimized-code` matched nothing
//! ```
//!
//! # Why it matters
//!
//! What matches nothing is misspelt, or left over: the unit was renamed and is judged after all, or was mended and the
//! exception stays open for the next mistake.
//!
//! # How to fix
//!
//! Correct the entry, or remove it.
//!
//! # Policy keys
//!
//! `rules.unused-policy-entry`
//!
//! # Evidence
//!
//! The policy, and what was used of it.
//!
//! # Limits
//!
//! Lists of alternatives (allowed compilers, modules, builds) are not looked at: one build uses only some of them. A policy
//! shared by several runs is reported in each run that needs only a part.

use super::Rule;
use super::check::{Context, Outcome};
use crate::finding::{Finding, FindingStatus, PolicyPlace, Severity, fingerprint};
use crate::policy::{PolicyEntry, Setting};

/// The rule.
pub const RULE: Rule = Rule {
    id: "unused-policy-entry",
    severity: Severity::Note,
    keys: &["waiver", "target", "optimization.exempt"],
    source: include_str!("unused_policy_entry.rs"),
    check,
};

/// One target alone cannot tell: see [`unused`].
fn check<'a>(_: &Context<'a>) -> Outcome<'a> {
    Outcome::NotAsked
}

/// The exceptions of a policy that no target used. `used` holds the places that [`super::Judgement::used`] gathered from all
/// targets, and those of the `[[target]]` tables that matched; `setting` is what `[rules]` says about this rule.
pub fn unused(entries: &[PolicyEntry], used: &[PolicyPlace], setting: Option<Setting>) -> Vec<Finding> {
    let severity = match setting {
        Some(Setting::Ignore) => return Vec::new(),
        Some(Setting::Report(severity)) => severity,
        None => RULE.severity,
    };
    entries
        .iter()
        .filter(|entry| entry.kind.is_exception() && !entry.is_builtin() && !used.contains(&entry.at))
        .map(|entry| Finding {
            rule: RULE.id.to_owned(),
            severity,
            status: FindingStatus::Violation,
            message: format!("the {} `{}` matched nothing", entry.kind.as_str(), entry.text),
            remedy: Some("correct the entry, or remove it".to_owned()),
            strength: crate::evidence::Strength::None,
            sources: Vec::new(),
            units: Vec::new(),
            units_total: 0,
            ranges: Vec::new(),
            policy: Some(entry.at.clone()),
            location: None,
            waiver: None,
            fingerprint: fingerprint(RULE.id, "", &format!("{}:{}", entry.kind.as_str(), entry.text), []),
            known: Vec::new(),
            cost: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::policy::EntryKind;
    use crate::rules::testing::*;

    fn entry(kind: EntryKind, text: &str, place: &PolicyPlace) -> PolicyEntry {
        PolicyEntry { kind, text: text.into(), at: place.clone() }
    }

    #[test]
    fn what_no_target_used_is_a_note() {
        let mut wanted = policy();
        wanted.optimization.exempt = vec![glob("src/core/unit000.c", 12), glob("src/gone.c", 13)];
        wanted.waivers = vec![waiver("unoptimized-code", 100), waiver("missing-lto", 101)];
        let entries = vec![
            entry(EntryKind::Exempt, "src/core/unit000.c", &wanted.optimization.exempt[0].at),
            entry(EntryKind::Exempt, "src/gone.c", &wanted.optimization.exempt[1].at),
            entry(EntryKind::Waiver, "unoptimized-code", &wanted.waivers[0].at),
            entry(EntryKind::Waiver, "missing-lto", &wanted.waivers[1].at),
            entry(EntryKind::AllowedCompiler, "clang >= 16", &at((), 30).at),
        ];
        let mut used = judged(&nginx(3, Level::O0), &wanted).used;
        used.extend(judged(&nginx(3, Level::O2), &wanted).used);
        let found = unused(&entries, &used, None);
        assert_eq!(
            found.iter().map(|one| one.message.as_str()).collect::<Vec<_>>(),
            ["the exempt entry `src/gone.c` matched nothing", "the waiver `missing-lto` matched nothing",]
        );
        assert!(found.iter().all(|one| one.severity == Severity::Note));
        assert!(unused(&entries, &used, Some(Setting::Ignore)).is_empty());
        assert_eq!(
            unused(&entries, &used, Some(Setting::Report(Severity::Error)))[0].severity,
            Severity::Error
        );
    }

    #[test]
    fn one_target_alone_says_nothing() {
        assert_silent(&nginx(1, Level::O2), &policy(), RULE.id);
    }
}
