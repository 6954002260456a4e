//! From a draft to findings: severity, waivers, fingerprint.

use super::check::{Context, Draft, Kindness, Message, UnitHit, unit_matches};
use crate::finding::{Finding, FindingStatus, Severity, UnitRef, WaiverRef, fingerprint};
use crate::policy::matching::{file_matches, module_matches, target_matches};
use crate::policy::{Setting, Waiver};

/// Most units listed in one finding; `units_total` counts all.
const UNITS_LISTED: usize = 50;

/// The findings that a draft becomes: one, or more where waivers cover a part of its units.
pub fn finish(rule: &str, default: Severity, context: &Context<'_>, draft: &Draft<'_>) -> Vec<Finding> {
    let mut severity = match context.setting(rule) {
        Some(Setting::Ignore) => return Vec::new(),
        Some(Setting::Report(severity)) => severity,
        None => draft.severity.unwrap_or(default),
    };
    if let Some(ceiling) = draft.ceiling {
        severity = severity.min(ceiling);
    }
    let whole = print(rule, context, &draft.key, &draft.units);
    let mut findings = Vec::new();
    let mut rest = draft.units.clone();
    let mut expired: Option<&Waiver> = None;
    let mut covered = false;

    for waiver in &context.policy.waivers {
        if draft.kind == Kindness::Remark || covered || waiver.rule.value != rule {
            continue;
        }
        if !applies(waiver, context, draft, &whole) {
            continue;
        }
        let (taken, left): (Vec<_>, Vec<_>) = match &waiver.unit {
            Some(pattern) => rest.iter().copied().partition(|hit| unit_matches(&pattern.value, hit.unit)),
            None => (rest.clone(), Vec::new()),
        };
        if waiver.unit.is_some() && taken.is_empty() {
            continue;
        }
        context.mark_used(&waiver.at);
        if is_expired(waiver, context) {
            expired = expired.or(Some(waiver));
            continue;
        }
        // A draft about units is covered bit by bit; one about the file, at once.
        covered = left.is_empty() && (waiver.unit.is_none() || !draft.besides_units);
        let mut finding = make(rule, severity, context, draft, &taken, waiver.unit.is_none());
        finding.status = FindingStatus::Waived;
        finding.waiver = Some(WaiverRef {
            reason: waiver.reason.value.clone(),
            owner: waiver.owner.as_ref().map(|owner| owner.value.clone()),
            expires: waiver.expires.as_ref().map(|date| date.value.to_string()),
        });
        findings.push(finding);
        rest = left;
    }
    if !covered {
        let mut finding = make(rule, severity, context, draft, &rest, true);
        if let Some(waiver) = expired
            && let Some(date) = &waiver.expires
        {
            finding.message = format!("{} (its waiver expired on {})", finding.message, date.value);
        }
        findings.push(finding);
    }
    findings
}

/// Whether a waiver's last day is past.
pub fn is_expired(waiver: &Waiver, context: &Context<'_>) -> bool {
    waiver.expires.as_ref().is_some_and(|date| date.value < context.today)
}

/// Whether everything a waiver names, besides units, matches. What it names and the finding does not have, does not match.
fn applies(waiver: &Waiver, context: &Context<'_>, draft: &Draft<'_>, whole: &str) -> bool {
    let facts = context.facts;
    let target = waiver
        .target
        .as_ref()
        .is_none_or(|pattern| target_matches(&pattern.value, &facts.path, facts.member.as_deref()));
    let module = waiver.module.as_ref().is_none_or(|pattern| {
        draft.module.as_deref().is_some_and(|name| module_matches(&pattern.value, name))
    });
    let function = waiver.function.as_ref().is_none_or(|pattern| {
        !draft.functions.is_empty() && draft.functions.iter().all(|name| pattern.value.matches(name))
    });
    let file = waiver.file.as_ref().is_none_or(|pattern| {
        draft.location.as_ref().is_some_and(|place| file_matches(&pattern.value, &place.path))
    });
    let upstream = waiver
        .upstream
        .as_ref()
        .is_none_or(|pattern| draft.upstream.as_deref().is_some_and(|name| pattern.value.matches(name)));
    let print = waiver.fingerprint.as_ref().is_none_or(|print| print.value.eq_ignore_ascii_case(whole));
    target && module && function && file && upstream && print
}

fn print(rule: &str, context: &Context<'_>, key: &str, units: &[UnitHit<'_>]) -> String {
    let names: Vec<String> = units.iter().map(UnitHit::normalised).collect();
    fingerprint(rule, &context.product_name(), key, names.iter().map(String::as_str))
}

fn make<'a>(
    rule: &str,
    severity: Severity,
    context: &Context<'_>,
    draft: &Draft<'a>,
    units: &[UnitHit<'a>],
    with_ranges: bool,
) -> Finding {
    let message = match &draft.message {
        Message::Fixed(text) => text.clone(),
        Message::Units(make) => make(units),
    };
    Finding {
        rule: rule.to_owned(),
        severity,
        status: match draft.kind {
            Kindness::Violation => FindingStatus::Violation,
            Kindness::Undetermined => FindingStatus::Undetermined,
            Kindness::Remark => FindingStatus::NotChecked,
        },
        message,
        remedy: draft.remedy.clone(),
        strength: draft.strength,
        sources: draft.sources.clone(),
        units: units
            .iter()
            .take(UNITS_LISTED)
            .map(|hit| UnitRef { name: hit.unit.name.clone(), level: hit.level })
            .collect(),
        units_total: units.len() as u64,
        ranges: if with_ranges { draft.ranges.clone() } else { Vec::new() },
        policy: draft.policy.clone(),
        location: draft.location.clone(),
        waiver: None,
        fingerprint: print(rule, context, &draft.key, units),
        known: draft.known.clone(),
        cost: draft.cost.clone(),
    }
}
