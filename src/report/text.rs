//! Text for a terminal: the verdict first, then the findings, then what is in the binary.

use super::escape::{log, terminal};
use super::{CheckReport, Checked, InspectReport, Summary};
use crate::facts::{Facts, Status};
use crate::finding::Severity;
use crate::rules::Verdict;
use crate::wording::{grouped, plural};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;

mod body;
mod diff;
mod findings;
mod headline;
mod process;

pub use diff::{diff, diff_markdown};

/// Characters of a finding's message in a line of `--quiet`.
const QUIET_CHARS: usize = 160;

/// How to print.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// One line a target.
    pub quiet: bool,
    /// The evidence too.
    pub verbose: bool,
    /// Columns.
    pub width: usize,
}

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();

/// `text` in a style; a stream that takes no colour strips the escapes.
pub(super) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Everything `inspect` found.
pub fn inspect(report: &InspectReport, options: Options) -> String {
    let mut out = String::new();
    for (index, facts) in report.targets.iter().enumerate() {
        if index > 0 && !options.quiet {
            out.push('\n');
        }
        let title = paint(BOLD, &terminal(&process::title(facts)));
        let head = headline::headline(facts);
        if options.quiet {
            let head = head.unwrap_or_else(|| paint(RED, "NOT READ"));
            let _ = writeln!(out, "{title}: {head}");
            continue;
        }
        let _ = writeln!(out, "{title}");
        if let Some(head) = head {
            let _ = writeln!(out, "{head}");
        }
        body::facts(&mut out, facts, options);
        if report.targets.len() == 1 {
            process::next(&mut out, facts, options);
        }
    }
    summary(&mut out, &report.summary, false);
    log(&out)
}

/// Everything `check` found.
pub fn check(report: &CheckReport, options: Options) -> String {
    let mut out = String::new();
    for (index, target) in report.targets.iter().enumerate() {
        if index > 0 && !options.quiet {
            out.push('\n');
        }
        if options.quiet {
            quiet_line(&mut out, target);
            continue;
        }
        verdict_line(&mut out, target, &report.policy.path);
        process::installed(&mut out, &target.facts, options);
        body::identity(&mut out, &target.facts);
        body::problems(&mut out, &target.facts, options);
        findings::all(&mut out, &target.findings, options);
        body::text_map(&mut out, &target.facts, options);
        body::nginx_summary(&mut out, &target.facts, options);
        if options.verbose {
            body::claims(&mut out, &target.facts, options);
        }
    }
    if !options.quiet {
        findings::all(&mut out, &report.policy_findings, options);
    }
    // With one target its own line says it, unless the policy itself is what fails.
    let said = matches!(report.targets.as_slice(), [only] if only.verdict == report.verdict);
    if !said {
        let passed = report.targets.iter().filter(|target| target.verdict == Verdict::Pass).count();
        let all = plural(report.targets.len(), "target");
        let _ = write!(out, "{}  {} of {all} passed; ", verdict_word(report.verdict), grouped(passed as u64));
    }
    summary(&mut out, &report.summary, !said);
    log(&out)
}

/// The name under which a target is shown.
pub fn name(facts: &Facts) -> String {
    match &facts.member {
        Some(member) => format!("{}!{member}", facts.path),
        None => facts.path.clone(),
    }
}

/// What `--quiet` says of a target: the verdict, and what it is for.
fn quiet_line(out: &mut String, target: &Checked) {
    let title = paint(BOLD, &terminal(&process::title(&target.facts)));
    let counting = || target.findings.iter().filter(|finding| finding.counts());
    let finding = counting().next().filter(|finding| finding.severity > Severity::Note).map(|worst| {
        let more = counting().filter(|finding| finding.severity == worst.severity).count() - 1;
        let more = if more > 0 { format!(" (+{more})") } else { String::new() };
        format!("{}: {}{more}", worst.rule, super::shared::clip(&worst.message, QUIET_CHARS))
    });
    // Why a target was not read in full comes before what was found in the rest.
    let problems = &target.facts.problems;
    let incomplete = target.verdict == Verdict::Error;
    let problem = if incomplete { problems.iter().find(|problem| problem.loses_facts) } else { None };
    let problem = problem.or_else(|| problems.first().filter(|_| incomplete || finding.is_none()));
    let why: Vec<String> =
        problem.map(|problem| problem.message.clone()).into_iter().chain(finding).collect();
    let why = if why.is_empty() { String::new() } else { format!("  {}", why.join("; ")) };
    let _ = writeln!(out, "{}  {title}{}", verdict_word(target.verdict), terminal(&why));
}

fn verdict_line(out: &mut String, target: &Checked, policy: &str) {
    let count = |severity| target.findings.iter().filter(|f| f.counts() && f.severity == severity).count();
    let errors = count(Severity::Error);
    let warnings = count(Severity::Warning);
    let _ = writeln!(
        out,
        "{}  {}  {}, {}    {}",
        verdict_word(target.verdict),
        paint(BOLD, &terminal(&process::title(&target.facts))),
        plural(errors, "error"),
        plural(warnings, "warning"),
        paint(DIM, &format!("policy {}", terminal(policy))),
    );
}

fn verdict_word(verdict: Verdict) -> String {
    let style = if verdict == Verdict::Pass { GREEN } else { RED };
    paint(style, super::shared::verdict_word(verdict))
}

/// What could be read; `said` tells that the line says already how many targets there were.
fn summary(out: &mut String, summary: &Summary, said: bool) {
    if !said {
        if summary.targets <= 1 && summary.unreadable == 0 && summary.skipped == 0 {
            return;
        }
        let _ = write!(out, "{}: ", plural(summary.targets as usize, "target"));
    }
    let _ = writeln!(
        out,
        "{} read in full, {} partly, {} not at all; {} not ELF{}, {} unreadable",
        summary.ok,
        summary.partial,
        summary.failed,
        summary.skipped,
        summary.unopened(),
        summary.unreadable,
    );
}

/// One labelled line, wrapped; following lines are indented under the text.
pub(super) fn labelled(out: &mut String, indent: usize, label: &str, text: &str, options: Options) {
    let start = indent + 8.max(label.len() + 1);
    for (index, line) in wrapped(text, start, options).iter().enumerate() {
        let head = if index == 0 { label } else { "" };
        let pad = start - indent - head.len();
        let _ = writeln!(out, "{:indent$}{}{:pad$}{line}", "", paint(CYAN, head), "");
    }
}

/// `text` in lines that fit into what `start` columns leave. Words longer than that stay whole.
pub(super) fn wrapped(text: &str, start: usize, options: Options) -> Vec<String> {
    let room = options.width.max(40).saturating_sub(start).max(20);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Columns a text takes, its colour escapes left out.
fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().chars().count()
}

/// A one-word status for sentences.
pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Partial => "partial",
        Status::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_022_361), "1,022,361");
    }

    #[test]
    fn long_lines_wrap_under_their_text() {
        let mut out = String::new();
        labelled(
            &mut out,
            2,
            "where",
            &"word ".repeat(20),
            Options { quiet: false, verbose: false, width: 50 },
        );
        assert!(out.lines().all(|l| anstream::adapter::strip_str(l).to_string().len() <= 50), "{out}");
        assert!(out.lines().count() >= 3);
    }
}
