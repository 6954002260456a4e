//! GitHub Actions: workflow commands that become annotations, and the job's summary.

use super::escape::{github_message, github_property, terminal};
use super::shared::{clip, details, policy_name, verdict_word, worst_first};
use super::{CheckReport, InspectReport, markdown, text};
use crate::facts::{Facts, Status};
use crate::finding::{Finding, Severity};
use crate::wording::{grouped, plural};
use std::fmt::Write as _;

/// Annotations of one level that GitHub shows for a step; further ones are dropped there without a word.
const SHOWN_PER_LEVEL: usize = 10;
/// Characters of a message.
const MESSAGE_CHARS: usize = 4_000;
/// Characters of a path or a title.
const PROPERTY_CHARS: usize = 1_000;

/// One annotation.
struct Annotation {
    level: Severity,
    file: Option<(String, u32, u32)>,
    title: String,
    message: String,
}

/// A notice a target, with what is known of its level.
pub fn inspect(report: &InspectReport) -> String {
    let mut annotations = Vec::new();
    for facts in &report.targets {
        annotations.extend(incomplete(facts));
        if facts.status != Status::Failed {
            annotations.push(Annotation {
                level: Severity::Note,
                file: Some((facts.path.clone(), 1, 0)),
                title: format!("flagaudit: {}", facts.optimization.level),
                message: format!("{}: {}", text::name(facts), facts.optimization.reason),
            });
        }
    }
    render(annotations)
}

/// An annotation a finding, the worst first; what GitHub would not show is counted in the last one of its level.
pub fn check(report: &CheckReport) -> String {
    let mut annotations = Vec::new();
    for target in worst_first(report) {
        annotations.extend(incomplete(&target.facts));
        let name = text::name(&target.facts);
        for finding in target.findings.iter().filter(|finding| finding.counts()) {
            annotations.push(annotation(finding, Some(&name), (target.facts.path.clone(), 1, 0)));
        }
    }
    for finding in report.policy_findings.iter().filter(|finding| finding.counts()) {
        let at = finding
            .policy
            .as_ref()
            .map_or_else(|| (report.policy.path.clone(), 1, 0), |at| (at.path.clone(), at.line, at.column));
        annotations.push(annotation(finding, None, at));
    }
    annotations.push(Annotation {
        level: Severity::Note,
        file: None,
        title: "flagaudit".to_owned(),
        message: format!(
            "{}: {}, policy {}",
            verdict_word(report.verdict),
            plural(report.targets.len(), "target"),
            policy_name(&report.policy)
        ),
    });
    render(annotations)
}

/// The job's summary in Markdown, to be appended to the file that `GITHUB_STEP_SUMMARY` names. It stays far under the
/// mebibyte that GitHub takes.
pub fn summary(report: &CheckReport) -> String {
    markdown::check(report)
}

fn incomplete(facts: &Facts) -> Option<Annotation> {
    if facts.status == Status::Ok {
        return None;
    }
    let why: Vec<&str> = facts.problems.iter().take(5).map(|problem| problem.message.as_str()).collect();
    Some(Annotation {
        level: Severity::Error,
        file: Some((facts.path.clone(), 1, 0)),
        title: "flagaudit: not fully audited".to_owned(),
        message: format!("{}: {}", text::name(facts), why.join("; ")),
    })
}

fn annotation(finding: &Finding, subject: Option<&str>, at: (String, u32, u32)) -> Annotation {
    let at = finding.location.as_ref().map_or(at, |at| (at.path.clone(), at.line, at.column));
    let subject = subject.map(|name| format!("{name}: ")).unwrap_or_default();
    let mut message = terminal(&format!("{subject}{}", finding.message));
    for (label, line) in details(finding) {
        message.push('\n');
        message.push_str(&terminal(&format!("{label}: {line}")));
    }
    Annotation {
        level: finding.severity,
        file: Some(at),
        title: format!("flagaudit: {}", finding.rule),
        message,
    }
}

fn render(mut annotations: Vec<Annotation>) -> String {
    annotations.sort_by_key(|annotation| std::cmp::Reverse(annotation.level));
    let mut out = String::new();
    for level in [Severity::Error, Severity::Warning, Severity::Note] {
        let of_level: Vec<&Annotation> = annotations.iter().filter(|a| a.level == level).collect();
        let shown = if of_level.len() > SHOWN_PER_LEVEL { SHOWN_PER_LEVEL - 1 } else { of_level.len() };
        for annotation in of_level.iter().take(shown) {
            line(&mut out, annotation);
        }
        let more = of_level.len() - shown;
        if more > 0 {
            let word = level.as_str();
            line(
                &mut out,
                &Annotation {
                    level,
                    file: None,
                    title: format!("flagaudit: {} more {word}s", grouped(more as u64)),
                    message: format!(
                        "GitHub shows {SHOWN_PER_LEVEL} {word}s a step; {} more are in the other report formats",
                        grouped(more as u64)
                    ),
                },
            );
        }
    }
    out
}

fn line(out: &mut String, annotation: &Annotation) {
    let command = match annotation.level {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some((file, line, column)) = &annotation.file {
        if !file.is_empty() {
            properties.push(format!("file={}", github_property(&clip(file, PROPERTY_CHARS))));
        }
        properties.push(format!("line={}", (*line).max(1)));
        if *column > 0 {
            properties.push(format!("col={column}"));
        }
    }
    properties.push(format!("title={}", github_property(&clip(&annotation.title, PROPERTY_CHARS))));
    let _ = writeln!(
        out,
        "::{command} {}::{}",
        properties.join(","),
        github_message(&clip(&annotation.message, MESSAGE_CHARS))
    );
}
