//! JUnit XML as Jenkins and GitLab read it: a suite a target, a case a finding, and a case for the audit itself.
//!
//! There is no standard. What is written here is what both take: `testsuites/testsuite/testcase` with `failure`,
//! `error`, `skipped` and `system-out`. GitLab drops a case whose class and name were there before, so they are
//! distinct. No times are given: the document depends on nothing but the report.

use super::escape::xml;
use super::shared::{clip, details, finding_word};
use super::{CheckReport, InspectReport, text};
use crate::facts::{Facts, Status};
use crate::finding::{Finding, FindingStatus, Severity};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Characters of an attribute.
const ATTRIBUTE_CHARS: usize = 1_000;

/// A case a target: it was read in full, or it was not. Nothing is judged.
pub fn inspect(report: &InspectReport) -> String {
    let mut suites = Suites::default();
    for facts in &report.targets {
        suites.add(&text::name(facts), vec![audit(facts)]);
    }
    suites.render()
}

/// A case a finding. Findings at or above `fail_on` are failures; what is below is in a passing case's output; what is
/// waived or was not checked is skipped; a target that was not fully audited is an error.
pub fn check(report: &CheckReport, fail_on: Severity) -> String {
    let mut suites = Suites::default();
    for target in &report.targets {
        let mut cases = vec![audit(&target.facts)];
        cases.extend(target.findings.iter().map(|finding| case(finding, fail_on)));
        suites.add(&text::name(&target.facts), cases);
    }
    if !report.policy_findings.is_empty() {
        let cases = report.policy_findings.iter().map(|finding| case(finding, fail_on)).collect();
        suites.add(&format!("policy {}", report.policy.path), cases);
    }
    suites.render()
}

/// What became of a case.
enum Outcome {
    Passed,
    Failure { kind: String, message: String, body: Vec<String> },
    Error { kind: String, message: String, body: Vec<String> },
    Skipped { message: String },
}

struct Case {
    name: String,
    /// Tells two cases of one name apart.
    key: String,
    outcome: Outcome,
    output: Vec<String>,
}

fn audit(facts: &Facts) -> Case {
    let body: Vec<String> = facts.problems.iter().map(|p| format!("{}: {}", p.code, p.message)).collect();
    let (outcome, mut output) = match facts.status {
        Status::Ok => (Outcome::Passed, body),
        status => {
            let kind =
                facts.problems.first().map_or("incomplete", |problem| problem.code.as_str()).to_owned();
            let why = facts.problems.first().map_or("", |problem| problem.message.as_str());
            let word = if status == Status::Failed { "not audited" } else { "not fully audited" };
            (Outcome::Error { kind, message: format!("{word}: {why}"), body }, Vec::new())
        }
    };
    output.insert(0, facts.optimization.reason.clone());
    output.retain(|line| !line.is_empty());
    Case { name: "audit".to_owned(), key: String::new(), outcome, output }
}

fn case(finding: &Finding, fail_on: Severity) -> Case {
    let line = format!("{}: {}", finding_word(finding), finding.message);
    let mut lines = vec![line.clone()];
    lines.extend(details(finding).into_iter().map(|(label, text)| format!("{label}: {text}")));
    let (outcome, output) = match finding.status {
        FindingStatus::Waived => {
            let reason = finding.waiver.as_ref().map_or("", |waiver| waiver.reason.as_str());
            (Outcome::Skipped { message: format!("waived: {reason}") }, lines)
        }
        FindingStatus::NotChecked => (Outcome::Skipped { message: line }, Vec::new()),
        FindingStatus::Violation | FindingStatus::Undetermined if finding.severity >= fail_on => {
            (Outcome::Failure { kind: finding.rule.clone(), message: line, body: lines }, Vec::new())
        }
        FindingStatus::Violation | FindingStatus::Undetermined | FindingStatus::Passed => {
            (Outcome::Passed, lines)
        }
    };
    Case { name: finding.rule.clone(), key: clip(&finding.fingerprint, 60), outcome, output }
}

/// Counts of a suite, or of all.
#[derive(Default, Clone, Copy)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Counts {
    /// Of `testsuites`; Jenkins' schema knows `skipped` on a suite only.
    fn totals(self) -> String {
        format!("tests=\"{}\" failures=\"{}\" errors=\"{}\"", self.tests, self.failures, self.errors)
    }

    /// Of a `testsuite`.
    fn attributes(self) -> String {
        format!("{} skipped=\"{}\"", self.totals(), self.skipped)
    }
}

#[derive(Default)]
struct Suites {
    all: Counts,
    names: HashSet<String>,
    body: String,
}

impl Suites {
    fn add(&mut self, name: &str, cases: Vec<Case>) {
        let name = distinct(&mut self.names, &attribute(name), "");
        let mut counts = Counts { tests: cases.len(), ..Counts::default() };
        let mut seen = HashSet::new();
        let mut text = String::new();
        for case in cases {
            let case_name = distinct(&mut seen, &attribute(&case.name), &attribute(&case.key));
            let _ = write!(text, "    <testcase classname=\"{name}\" name=\"{case_name}\"");
            let mut inner = String::new();
            match &case.outcome {
                Outcome::Passed => {}
                Outcome::Failure { kind, message, body } => {
                    counts.failures += 1;
                    element(&mut inner, "failure", kind, message, body);
                }
                Outcome::Error { kind, message, body } => {
                    counts.errors += 1;
                    element(&mut inner, "error", kind, message, body);
                }
                Outcome::Skipped { message } => {
                    counts.skipped += 1;
                    let _ = writeln!(inner, "      <skipped message=\"{}\"/>", attribute(message));
                }
            }
            if !case.output.is_empty() {
                let _ = writeln!(inner, "      <system-out>{}</system-out>", lines(&case.output));
            }
            if inner.is_empty() {
                text.push_str("/>\n");
            } else {
                let _ = write!(text, ">\n{inner}    </testcase>\n");
            }
        }
        self.all.tests += counts.tests;
        self.all.failures += counts.failures;
        self.all.errors += counts.errors;
        let _ = write!(
            self.body,
            "  <testsuite name=\"{name}\" {}>\n{text}  </testsuite>\n",
            counts.attributes()
        );
    }

    fn render(self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"flagaudit\" {}>\n{}</testsuites>\n",
            self.all.totals(),
            self.body
        )
    }
}

fn element(out: &mut String, name: &str, kind: &str, message: &str, body: &[String]) {
    let _ = writeln!(
        out,
        "      <{name} type=\"{}\" message=\"{}\">{}</{name}>",
        attribute(kind),
        attribute(message),
        lines(body)
    );
}

fn attribute(text: &str) -> String {
    xml(&clip(text, ATTRIBUTE_CHARS))
}

fn lines(body: &[String]) -> String {
    body.iter().map(|line| xml(line)).collect::<Vec<_>>().join("\n")
}

/// The name itself, or with its key, or with a number behind it: whichever was not there before.
fn distinct(seen: &mut HashSet<String>, name: &str, key: &str) -> String {
    let mut candidate = name.to_owned();
    let mut count = 1u64;
    if !key.is_empty() && seen.contains(&candidate) {
        candidate = format!("{name} ({key})");
    }
    let stem = candidate.clone();
    while !seen.insert(candidate.clone()) {
        count += 1;
        candidate = format!("{stem} #{count}");
    }
    candidate
}
