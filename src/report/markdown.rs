//! Markdown for an incident channel, a pull request or a job's summary: the verdict first, short enough to be posted.

use super::escape::{markdown as plain, markdown_code as code};
use super::shared::{
    Tally, clip, details, finding_word, identity, is_shown, policy_name, verdict_word, worst_first,
};
use super::{CheckReport, Checked, InspectReport, Summary, text};
use crate::facts::{Facts, Status};
use crate::finding::Finding;
use crate::wording::{grouped, percent, plural};
use std::fmt::Write as _;

/// Bytes after which no further part is begun; a comment on GitHub may have 65,536 characters.
const BUDGET: usize = 50_000;
/// Most targets in the table.
const MOST_ROWS: usize = 50;
/// Most findings shown of one target.
const MOST_FINDINGS: usize = 20;
/// Most lines under one finding.
const MOST_DETAILS: usize = 12;
/// Characters of one text from a file.
const CHARS: usize = 400;

/// What the targets are made of.
pub fn inspect(report: &InspectReport) -> String {
    let mut out = String::from("## flagaudit: what the binaries are made of\n\n");
    out.push_str("| target | level | grounds | what it is |\n|---|---|---|---|\n");
    for facts in report.targets.iter().take(MOST_ROWS) {
        let optimization = &facts.optimization;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            code(&clip(&text::name(facts), CHARS)),
            optimization.level,
            optimization.strength.as_str(),
            plain(&clip(&identity(facts), CHARS))
        );
    }
    more(&mut out, report.targets.len().saturating_sub(MOST_ROWS), "targets");
    for (index, facts) in report.targets.iter().enumerate() {
        if out.len() > BUDGET {
            more(&mut out, report.targets.len() - index, "targets in detail");
            break;
        }
        let _ = write!(out, "\n### {}\n\n", code(&clip(&text::name(facts), CHARS)));
        problems(&mut out, facts);
        if !facts.optimization.reason.is_empty() {
            let _ = writeln!(out, "{}\n", plain(&clip(&facts.optimization.reason, CHARS)));
        }
        levels(&mut out, facts);
        for conflict in facts.conflicts.iter().take(MOST_FINDINGS) {
            let claims: Vec<String> = conflict
                .claims
                .iter()
                .take(MOST_DETAILS)
                .map(|claim| {
                    let value = claim.value.as_str().map_or_else(|| claim.value.to_string(), str::to_owned);
                    format!("{} says {}", claim.source.as_str(), code(&clip(&value, CHARS)))
                })
                .collect();
            let _ = writeln!(
                out,
                "- conflict about {}: {}",
                plain(&clip(&conflict.fact, CHARS)),
                claims.join(", ")
            );
        }
    }
    summary(&mut out, &report.summary);
    out
}

/// The verdict, a table of the targets, and the findings of those that have some.
pub fn check(report: &CheckReport) -> String {
    let targets = worst_first(report);
    let mut out = format!(
        "## {}: flagaudit, policy {}\n\n",
        verdict_word(report.verdict),
        code(&clip(&policy_name(&report.policy), CHARS))
    );
    if targets.is_empty() {
        out.push_str("No target was audited.\n");
    } else {
        out.push_str("| verdict | target | level | findings | what it is |\n|---|---|---|---|---|\n");
    }
    for target in targets.iter().take(MOST_ROWS) {
        let _ = writeln!(
            out,
            "| **{}** | {} | {} | {} | {} |",
            verdict_word(target.verdict),
            code(&clip(&text::name(&target.facts), CHARS)),
            target.facts.optimization.level,
            Tally::of(&target.findings).words(),
            plain(&clip(&identity(&target.facts), CHARS))
        );
    }
    more(&mut out, targets.len().saturating_sub(MOST_ROWS), "targets");
    let told: Vec<&&Checked> = targets
        .iter()
        .filter(|target| target.facts.status != Status::Ok || target.findings.iter().any(is_shown))
        .collect();
    for (index, target) in told.iter().enumerate() {
        if out.len() > BUDGET {
            more(&mut out, told.len() - index, "targets in detail");
            break;
        }
        let _ = write!(out, "\n### {}\n\n", code(&clip(&text::name(&target.facts), CHARS)));
        problems(&mut out, &target.facts);
        let shown: Vec<&Finding> = target.findings.iter().filter(|finding| is_shown(finding)).collect();
        findings(&mut out, &shown);
        levels(&mut out, &target.facts);
    }
    let about_policy: Vec<&Finding> =
        report.policy_findings.iter().filter(|finding| is_shown(finding)).collect();
    if !about_policy.is_empty() {
        out.push_str("\n### About the policy\n\n");
        findings(&mut out, &about_policy);
    }
    summary(&mut out, &report.summary);
    out
}

fn findings(out: &mut String, findings: &[&Finding]) {
    for finding in findings.iter().take(MOST_FINDINGS) {
        let _ = writeln!(
            out,
            "- **{}** {}: {}",
            finding_word(finding),
            code(&clip(&finding.rule, CHARS)),
            plain(&clip(&finding.message, CHARS))
        );
        for (label, line) in details(finding).iter().take(MOST_DETAILS) {
            let _ = writeln!(out, "  - {label}: {}", plain(&clip(line, CHARS)));
        }
    }
    more(out, findings.len().saturating_sub(MOST_FINDINGS), "findings");
}

fn problems(out: &mut String, facts: &Facts) {
    for problem in facts.problems.iter().take(MOST_FINDINGS) {
        let word = if facts.status == Status::Ok { "note" } else { "not fully audited" };
        let _ = writeln!(out, "- **{word}**: {}", plain(&clip(&problem.message, CHARS)));
    }
    more(out, facts.problems.len().saturating_sub(MOST_FINDINGS), "problems");
}

fn levels(out: &mut String, facts: &Facts) {
    let text = facts.optimization.text;
    if text.bytes == 0 || facts.optimization.by_level.is_empty() {
        return;
    }
    out.push_str("\n| level | text | bytes | units | functions |\n|---|---:|---:|---:|---:|\n");
    for share in &facts.optimization.by_level {
        let _ = writeln!(
            out,
            "| {} | {} % | {} | {} | {} |",
            share.level,
            percent(share.text_bytes, text.bytes),
            grouped(share.text_bytes),
            grouped(share.units),
            grouped(share.functions)
        );
    }
}

fn more(out: &mut String, count: usize, what: &str) {
    if count > 0 {
        let _ = writeln!(out, "\n… and {} more {what}.", grouped(count as u64));
    }
}

fn summary(out: &mut String, summary: &Summary) {
    let _ = write!(
        out,
        "\n{}: {} read in full, {} partly, {} not at all",
        plural(summary.targets as usize, "target"),
        grouped(summary.ok),
        grouped(summary.partial),
        grouped(summary.failed)
    );
    if summary.skipped > 0 {
        let _ = write!(out, "; {} files are not ELF{}", grouped(summary.skipped), summary.unopened());
    }
    if summary.unreadable > 0 {
        let _ = write!(out, "; {} files could not be opened", grouped(summary.unreadable));
    }
    out.push_str(".\n");
}
