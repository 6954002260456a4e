//! The Prometheus text format, for `node_exporter`'s textfile collector.
//!
//! One duplicate series, or one metric with two help texts, makes `node_exporter` drop a file or the whole scrape. So help
//! texts never change, every series carries its target (two runs over different targets can lie side by side in one
//! directory), and a target named twice is told once. There is no time stamp: the collector has the file's own
//! (`node_textfile_mtime_seconds`), and refuses files with time stamps of samples.

use super::escape::prometheus_label as label;
use super::shared::clip;
use super::{CheckReport, Checked, InspectReport, Tool, Verdict, text};
use crate::facts::{Facts, Status};
use crate::finding::{Finding, FindingStatus, Severity};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

/// Characters of a label value.
const LABEL_CHARS: usize = 1_000;

/// A metric: name and help text. All are gauges. The order is the order of the document.
const METRICS: [(&str, &str); 8] = [
    ("flagaudit_findings", "Findings by rule, severity and status."),
    (
        "flagaudit_findings_by_severity",
        "Violations and undetermined checks by severity, waived ones left out.",
    ),
    ("flagaudit_optimization_complete", "Whether the level of all judged code is known (1) or not (0)."),
    ("flagaudit_target_audited", "Whether the target was read in full (1) or not (0)."),
    ("flagaudit_target_info", "What the target is; always 1."),
    ("flagaudit_target_verdict", "1 for the verdict that the policy gives, 0 for the others."),
    ("flagaudit_text_bytes", "Bytes of machine code by optimization level."),
    ("flagaudit_units", "Compilation units by optimization level."),
];

/// Facts about the targets.
pub fn inspect(report: &InspectReport) -> String {
    let mut seen = HashSet::new();
    let mut series = Series::default();
    for facts in &report.targets {
        let name = target_label(facts);
        if seen.insert(name.clone()) {
            series.facts(&format!("target=\"{name}\""), facts, &report.tool);
        }
    }
    series.render()
}

/// Facts, verdicts and numbers of findings. Findings about the policy itself belong to no target and are left out.
pub fn check(report: &CheckReport) -> String {
    let policy = label(&clip(&report.policy.name, LABEL_CHARS));
    let mut order = Vec::new();
    let mut worst: HashMap<String, &Checked> = HashMap::new();
    for target in &report.targets {
        let name = target_label(&target.facts);
        match worst.get(&name) {
            Some(known) if known.verdict >= target.verdict => continue,
            Some(_) => {}
            None => order.push(name.clone()),
        }
        worst.insert(name, target);
    }
    let mut series = Series::default();
    for name in order {
        let Some(target) = worst.get(&name) else { continue };
        let labels = format!("target=\"{name}\",policy=\"{policy}\"");
        series.facts(&labels, &target.facts, &report.tool);
        series.verdict(&labels, target.verdict);
        series.findings(&labels, &target.findings);
    }
    series.render()
}

fn target_label(facts: &Facts) -> String {
    label(&clip(&text::name(facts), LABEL_CHARS))
}

/// Series by metric; within a metric in the order in which they were added.
#[derive(Default)]
struct Series {
    of: BTreeMap<&'static str, String>,
}

impl Series {
    fn add(&mut self, metric: &'static str, labels: &str, value: u64) {
        let _ = writeln!(self.of.entry(metric).or_default(), "{metric}{{{labels}}} {value}");
    }

    fn facts(&mut self, labels: &str, facts: &Facts, tool: &Tool) {
        let optimization = &facts.optimization;
        let product = facts.product.as_ref();
        let text = |text: Option<&str>| label(&clip(text.unwrap_or_default(), LABEL_CHARS));
        self.add(
            "flagaudit_target_info",
            &format!(
                "{labels},level=\"{}\",strength=\"{}\",product=\"{}\",version=\"{}\",build_id=\"{}\",flagaudit_version=\"{}\"",
                optimization.level,
                optimization.strength.as_str(),
                text(product.map(|product| product.name.as_str())),
                text(product.and_then(|product| product.version.as_deref())),
                text(facts.elf.as_ref().and_then(|elf| elf.build_id.as_deref())),
                text(Some(&tool.version)),
            ),
            1,
        );
        self.add("flagaudit_target_audited", labels, u64::from(facts.status == Status::Ok));
        if facts.status != Status::Failed {
            self.add("flagaudit_optimization_complete", labels, u64::from(optimization.complete));
        }
        let mut levels: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for share in &optimization.by_level {
            let sum = levels.entry(share.level).or_default();
            *sum = (sum.0.saturating_add(share.text_bytes), sum.1.saturating_add(share.units));
        }
        for (level, (bytes, units)) in levels {
            self.add("flagaudit_text_bytes", &format!("{labels},level=\"{level}\""), bytes);
            self.add("flagaudit_units", &format!("{labels},level=\"{level}\""), units);
        }
    }

    fn verdict(&mut self, labels: &str, given: Verdict) {
        for (verdict, word) in [(Verdict::Pass, "pass"), (Verdict::Fail, "fail"), (Verdict::Error, "error")] {
            let labels = format!("{labels},verdict=\"{word}\"");
            self.add("flagaudit_target_verdict", &labels, u64::from(verdict == given));
        }
    }

    fn findings(&mut self, labels: &str, findings: &[Finding]) {
        for severity in [Severity::Error, Severity::Warning, Severity::Note] {
            let count = findings.iter().filter(|f| f.counts() && f.severity == severity).count();
            let labels = format!("{labels},severity=\"{}\"", severity.as_str());
            self.add("flagaudit_findings_by_severity", &labels, count as u64);
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for finding in findings {
            let status = match finding.status {
                FindingStatus::Violation => "violation",
                FindingStatus::Undetermined => "undetermined",
                FindingStatus::Waived => "waived",
                FindingStatus::Passed => "passed",
                FindingStatus::NotChecked => "not-checked",
            };
            let rule = label(&clip(&finding.rule, LABEL_CHARS));
            let severity = finding.severity.as_str();
            *counts
                .entry(format!("rule=\"{rule}\",severity=\"{severity}\",status=\"{status}\""))
                .or_default() += 1;
        }
        for (more, count) in counts {
            self.add("flagaudit_findings", &format!("{labels},{more}"), count);
        }
    }

    fn render(self) -> String {
        let mut out = String::new();
        for (metric, help) in METRICS {
            if let Some(series) = self.of.get(metric) {
                let _ = write!(out, "# HELP {metric} {help}\n# TYPE {metric} gauge\n{series}");
            }
        }
        out
    }
}
