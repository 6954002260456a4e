//! What several renderers say in the same words.

use super::{CheckReport, Checked, PolicyRef, Verdict};
use crate::evidence::Strength;
use crate::facts::{CompilerSeen, Facts};
use crate::finding::{Finding, FindingStatus, Severity};
use crate::wording::{grouped, plural};
use std::fmt::Write as _;

/// Units named in a sentence before the rest is only counted.
const UNITS_NAMED: usize = 6;
/// Ranges named in a sentence before the rest is only counted.
const RANGES_NAMED: usize = 4;

/// A rule as its documentation presents it. Renderers take these from whoever holds the table of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleDoc {
    /// Stable id, such as `unoptimized-code`.
    pub id: String,
    /// One sentence.
    pub summary: String,
    /// The whole documentation, in Markdown.
    pub help_markdown: String,
    /// Severity where no policy says otherwise.
    pub severity: Severity,
}

/// Findings of one target, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) notes: usize,
    pub(super) waived: usize,
}

impl Tally {
    pub(super) fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut tally = Self::default();
        for finding in findings {
            match (finding.status, finding.severity) {
                (FindingStatus::Waived, _) => tally.waived += 1,
                _ if !finding.counts() => {}
                (_, Severity::Error) => tally.errors += 1,
                (_, Severity::Warning) => tally.warnings += 1,
                (_, Severity::Note) => tally.notes += 1,
            }
        }
        tally
    }

    /// `1 error, 2 warnings`, with notes and waived findings where there are some.
    pub(super) fn words(self) -> String {
        let mut out = format!("{}, {}", plural(self.errors, "error"), plural(self.warnings, "warning"));
        if self.notes > 0 {
            out.push_str(", ");
            out.push_str(&plural(self.notes, "note"));
        }
        if self.waived > 0 {
            let _ = write!(out, ", {} waived", self.waived);
        }
        out
    }
}

/// The verdict as it heads a report.
pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Error => "INCOMPLETE",
    }
}

/// Targets, worst verdict first, in the report's order within a verdict.
pub(super) fn worst_first(report: &CheckReport) -> Vec<&Checked> {
    let mut targets: Vec<&Checked> = report.targets.iter().collect();
    targets.sort_by_key(|target| std::cmp::Reverse(target.verdict));
    targets
}

/// Whether the finding is one to be shown besides those that count.
pub(super) fn is_shown(finding: &Finding) -> bool {
    finding.counts() || finding.status == FindingStatus::Waived
}

/// The word before a finding: its severity, or what became of it.
pub(super) fn finding_word(finding: &Finding) -> &'static str {
    match finding.status {
        FindingStatus::Violation | FindingStatus::Undetermined => finding.severity.as_str(),
        FindingStatus::Waived => "waived",
        FindingStatus::Passed => "passed",
        FindingStatus::NotChecked => "not checked",
    }
}

/// What stands under a finding: label and text, in the order where, known, cost, fix, waiver, policy.
pub(super) fn details(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    let place = places(finding);
    if !place.is_empty() {
        out.push(("where", place));
    }
    out.extend(known(finding).into_iter().map(|line| ("known", line)));
    out.extend(finding.cost.iter().map(|cost| ("cost", cost.clone())));
    out.extend(finding.remedy.iter().map(|remedy| ("fix", remedy.clone())));
    if let Some(waiver) = &finding.waiver {
        let owner = waiver.owner.as_deref().map(|o| format!(", owner {o}")).unwrap_or_default();
        let expires = waiver.expires.as_deref().map(|e| format!(", until {e}")).unwrap_or_default();
        out.push(("waiver", format!("{}{owner}{expires}", waiver.reason)));
    }
    if let Some(at) = &finding.policy {
        let line = at.text.split_whitespace().collect::<Vec<_>>().join(" ");
        out.push(("policy", format!("{}:{}  {line}", at.path, at.line).trim_end().to_owned()));
    }
    out
}

/// How a finding is known, line by line: in the rule's words, else by strength and sources.
pub(super) fn known(finding: &Finding) -> Vec<String> {
    if !finding.known.is_empty() || finding.strength == Strength::None {
        return finding.known.clone();
    }
    let sources: Vec<&str> = finding.sources.iter().map(|source| source.words()).collect();
    vec![format!("{}: {}", finding.strength.as_str(), sources.join("; "))]
}

/// Where a finding is: a place in a configuration, or units and ranges of the binary.
pub(super) fn places(finding: &Finding) -> String {
    if let Some(at) = &finding.location {
        return format!("{}:{}:{}", at.path, at.line, at.column);
    }
    let mut parts: Vec<String> =
        finding.units.iter().take(UNITS_NAMED).map(|unit| clip(&unit.name, 200)).collect();
    let more = finding.units_total.saturating_sub(parts.len() as u64);
    if more > 0 && !parts.is_empty() {
        parts.push(format!("and {} more", grouped(more)));
    }
    parts.extend(finding.ranges.iter().take(RANGES_NAMED).map(|range| {
        let functions = match range.functions {
            0 => String::new(),
            1 => " (1 function)".to_owned(),
            many => format!(" ({} functions)", grouped(many)),
        };
        format!("{:#x}-{:#x}{functions}", range.start, range.end)
    }));
    if let Some(more) = finding.ranges.len().checked_sub(RANGES_NAMED).filter(|more| *more > 0) {
        parts.push(format!("and {} more", plural(more, "range")));
    }
    parts.join(", ")
}

/// What the target is, in a few words: product, compilers, build-id.
pub(super) fn identity(facts: &Facts) -> String {
    let mut parts = Vec::new();
    if let Some(product) = &facts.product {
        let version = product.version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
        parts.push(format!("{}{version}", product.name));
    }
    let mut names: Vec<String> = facts.compilers.iter().map(compiler).collect();
    names.dedup();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    parts.extend(names);
    if more > 0 {
        parts.push(format!("{more} more compilers"));
    }
    if let Some(elf) = &facts.elf {
        parts.push(elf.machine.clone());
        if elf.stripped {
            parts.push("stripped".to_owned());
        }
        parts.extend(elf.build_id.iter().map(|id| format!("build-id {id}")));
    }
    parts.join(", ")
}

/// `gcc 12.2.0`.
pub(super) fn compiler(seen: &CompilerSeen) -> String {
    seen.version
        .as_deref()
        .map_or_else(|| seen.family.clone(), |version| format!("{} {version}", seen.family))
}

/// The policy's name, and its file where that says more.
pub(super) fn policy_name(policy: &PolicyRef) -> String {
    if policy.name.is_empty() || policy.path == format!("builtin:{}", policy.name) {
        policy.path.clone()
    } else {
        format!("{} ({})", policy.name, policy.path)
    }
}

/// The text, cut at a character after `most` of them.
pub(super) fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
