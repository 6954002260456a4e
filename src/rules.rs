//! Rules: what a policy can ask of a build, and the table of them.
//!
//! A rule is one file: its documentation is what `explain`, SARIF help and the README show, and its function looks at the
//! facts and the policy of one target and returns drafts. Everything that is the same for all rules — severities, waivers,
//! fingerprints, order — happens here, once.

use crate::facts::{Facts, Status};
use crate::finding::{Finding, FindingStatus, PolicyPlace, Severity};
use crate::policy::{Policy, Setting};
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod check;
mod config_common;
#[cfg(test)]
mod config_testing;
pub mod conflicting_evidence;
pub mod debug_build;
pub mod directive_without_module;
pub mod disallowed_compiler;
pub mod disallowed_product_version;
pub mod dynamic_gzip_of_static_files;
pub mod executable_stack;
pub mod expired_waiver;
mod flags_common;
pub mod forbidden_configure_argument;
pub mod forbidden_flag;
pub mod forbidden_module;
pub mod gzip_static_without_gunzip;
mod hardening_common;
pub mod incompatible_dynamic_module;
pub mod insecure_rpath;
pub mod instrumented_build;
mod levels;
pub mod missing_cet;
pub mod missing_configure_argument;
pub mod missing_flag;
pub mod missing_fortify;
pub mod missing_lto;
pub mod missing_module;
pub mod missing_pie;
pub mod missing_stack_protector;
mod nginx_common;
pub mod nonportable_cpu;
mod origin;
pub mod partial_relro;
pub mod stale_process;
#[cfg(test)]
pub mod testing;
pub mod text_relocation;
pub mod unapproved_build;
pub mod undetermined_optimization;
pub mod unlisted_module;
pub mod unoptimized_code;
pub mod unsupported_by_build;
pub mod unused_policy_entry;
pub mod upstream_without_keepalive;
mod waivers;

pub use check::{Context, Draft, Outcome};
pub use unused_policy_entry::unused;

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable id, named for the bad pattern.
    pub id: &'static str,
    /// Severity where no policy says otherwise.
    pub severity: Severity,
    /// The policy keys that switch it on or steer it.
    pub keys: &'static [&'static str],
    /// The rule's source file; its leading `//!` lines are the documentation.
    pub source: &'static str,
    /// The check.
    pub check: for<'a> fn(&Context<'a>) -> Outcome<'a>,
}

/// All rules, in the order in which they are reported.
pub const TABLE: &[Rule] = &[
    unoptimized_code::RULE,
    undetermined_optimization::RULE,
    conflicting_evidence::RULE,
    forbidden_flag::RULE,
    missing_flag::RULE,
    disallowed_compiler::RULE,
    nonportable_cpu::RULE,
    instrumented_build::RULE,
    debug_build::RULE,
    missing_lto::RULE,
    missing_module::RULE,
    forbidden_module::RULE,
    unlisted_module::RULE,
    missing_configure_argument::RULE,
    forbidden_configure_argument::RULE,
    incompatible_dynamic_module::RULE,
    disallowed_product_version::RULE,
    unapproved_build::RULE,
    missing_pie::RULE,
    partial_relro::RULE,
    executable_stack::RULE,
    missing_stack_protector::RULE,
    missing_fortify::RULE,
    missing_cet::RULE,
    insecure_rpath::RULE,
    text_relocation::RULE,
    stale_process::RULE,
    upstream_without_keepalive::RULE,
    dynamic_gzip_of_static_files::RULE,
    gzip_static_without_gunzip::RULE,
    directive_without_module::RULE,
    unsupported_by_build::RULE,
    unused_policy_entry::RULE,
    expired_waiver::RULE,
];

/// What judging one target came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// Findings, worst first, then in the order of the table.
    pub findings: Vec<Finding>,
    /// Rules that were checked and found nothing that counts.
    pub passed: Vec<&'static str>,
    /// Rules the policy asks for that had nothing here to be checked on, with the reason.
    pub not_checked: Vec<(&'static str, String)>,
    /// Policy entries that matched something in this target; see [`unused_policy_entry::unused`].
    pub used: Vec<PolicyPlace>,
}

/// Whether a target may ship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Audited, nothing at or above the threshold.
    Pass,
    /// Audited, at least one such finding.
    Fail,
    /// Not fully audited.
    Error,
}

impl Verdict {
    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
        }
    }
}

/// The verdict on a target: an incomplete audit is an error whatever was found, and never a pass.
pub fn verdict(status: Status, findings: &[Finding], fail_on: Severity) -> Verdict {
    if status != Status::Ok {
        return Verdict::Error;
    }
    if findings.iter().any(|finding| finding.counts() && finding.severity >= fail_on) {
        Verdict::Fail
    } else {
        Verdict::Pass
    }
}

/// Judges one target by the policy that is in force for it. `today` decides on waivers.
///
/// A target of which nothing could be read is not judged: its status says so.
pub fn judge(facts: &Facts, policy: &Policy, today: Date) -> Judgement {
    let mut judgement = Judgement::default();
    if facts.status == Status::Failed {
        return judgement;
    }
    let context = Context::new(facts, policy, today);
    for rule in TABLE {
        if context.setting(rule.id) == Some(Setting::Ignore) {
            continue;
        }
        match (rule.check)(&context) {
            Outcome::NotAsked => {}
            Outcome::NotChecked(reason) => judgement.not_checked.push((rule.id, reason)),
            Outcome::Checked(drafts) => {
                let found: Vec<Finding> = drafts
                    .iter()
                    .flat_map(|draft| waivers::finish(rule.id, rule.severity, &context, draft))
                    .collect();
                if !found.iter().any(Finding::counts) {
                    judgement.passed.push(rule.id);
                }
                judgement.findings.extend(found);
            }
        }
    }
    nginx_common::remark_not_nginx(&context, &mut judgement);
    nginx_common::remark_no_configuration(&context, &mut judgement);
    // The sort is stable: findings of one severity stay in the order of the table.
    judgement.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    judgement.used = context.into_used();
    judgement
}

/// Whether a finding is new against those of a baseline: neither the same one, nor one about a part of the same units.
/// A list of units that the baseline holds only in part proves nothing about the rest, what nothing told then is new where it
/// is proven now, and so are more functions than were accepted where no unit tells which they are.
pub fn is_new(finding: &Finding, baseline: &[Finding]) -> bool {
    let proven = |old: &Finding| {
        old.status == FindingStatus::Undetermined && finding.status == FindingStatus::Violation
    };
    let functions = |finding: &Finding| {
        finding.ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.functions))
    };
    let more = |old: &Finding| finding.units_total == 0 && functions(finding) > functions(old);
    !baseline.iter().filter(|old| !proven(old) && !more(old)).any(|old| {
        old.fingerprint == finding.fingerprint
            || (crate::finding::same_subject(&old.fingerprint, &finding.fingerprint)
                && finding.units_total > 0
                && finding.units_total == finding.units.len() as u64
                && old.units_total >= finding.units_total
                && finding.units.iter().all(|unit| {
                    old.units.iter().any(|known| known.name == unit.name && known.level <= unit.level)
                }))
    })
}

impl Rule {
    /// The documentation: the file's leading `//!` lines.
    pub fn doc(&self) -> String {
        let lines: Vec<&str> = self
            .source
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> String {
        self.doc().lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// All rule ids, in the order of the table.
pub fn ids() -> Vec<&'static str> {
    TABLE.iter().map(|rule| rule.id).collect()
}

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    TABLE.iter().find(|rule| rule.id == id)
}

/// What `explain RULE` prints (Markdown), or `None` for an unknown id.
pub fn explain(id: &str) -> Option<String> {
    let rule = find(id)?;
    Some(format!("# {}\n\nDefault severity: {}\n\n{}\n", rule.id, rule.severity.as_str(), rule.doc()))
}

/// The table of rules in Markdown: what `explain` without a rule prints, and what README shows.
pub fn markdown_table() -> String {
    let mut lines =
        vec!["| rule | severity | policy key | what |".to_owned(), "|---|---|---|---|".to_owned()];
    for rule in TABLE {
        let keys: Vec<String> = rule.keys.iter().map(|key| format!("`{key}`")).collect();
        let keys = if keys.is_empty() { "always on".to_owned() } else { keys.join(", ") };
        let summary = rule.summary().replace('|', "\\|");
        lines.push(format!("| `{}` | {} | {keys} | {summary} |", rule.id, rule.severity.as_str()));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests;
