//! HTML: one file that shows everything and fetches nothing.
//!
//! The page is whole without scripts: verdicts, findings, the map and the tables stand in it as text. The script adds
//! searching, sorting and the keyboard. A content security policy allows that one script and that one style sheet, by
//! their digests, and no address at all: what a hostile name might smuggle in would not run.

use super::escape::{html as text, json_in_script};
use super::shared::{Tally, clip, details, finding_word, identity, is_shown, policy_name, verdict_word};
use super::{CheckReport, InspectReport, PolicyRef, Summary, Tool, Verdict};
use crate::facts::{Facts, Status};
use crate::finding::{Finding, FindingStatus};
use crate::wording::{grouped, plural};
use base64::Engine as _;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

mod code;
mod map;
mod parts;
mod rows;

const STYLE: &str = include_str!("html/style.css").trim_ascii();
const SCRIPT: &str = include_str!("html/script.js").trim_ascii();

/// Most targets in the table of targets.
const MOST_LISTED: usize = 2_000;
/// Most targets with a section of their own, worst first.
const MOST_SECTIONS: usize = 100;
/// Most units in all sections together.
const MOST_ROWS: usize = 60_000;
/// Most findings of one target.
const MOST_FINDINGS: usize = 500;
/// Characters of one text from a file.
const CHARS: usize = 2_000;

/// A target, judged or not.
struct Shown<'a> {
    facts: &'a Facts,
    verdict: Option<Verdict>,
    findings: &'a [Finding],
}

/// Everything `inspect` found. Wants the units (`facts.units`) and, of a target without any, its
/// functions (`facts.functions.list`), for the map and the table.
pub fn inspect(report: &InspectReport) -> Result<String, serde_json::Error> {
    let targets =
        report.targets.iter().map(|facts| Shown { facts, verdict: None, findings: &[] }).collect::<Vec<_>>();
    page(&report.tool, None, &targets, &[], report.summary, None)
}

/// Everything `check` found. Wants the units (`facts.units`) and, of a target without any, its
/// functions (`facts.functions.list`), for the map and the table.
pub fn check(report: &CheckReport) -> Result<String, serde_json::Error> {
    let mut targets: Vec<Shown<'_>> = report
        .targets
        .iter()
        .map(|target| Shown {
            facts: &target.facts,
            verdict: Some(target.verdict),
            findings: &target.findings,
        })
        .collect();
    targets.sort_by_key(|target| std::cmp::Reverse(target.verdict));
    let verdict = Some(report.verdict);
    page(&report.tool, Some(&report.policy), &targets, &report.policy_findings, report.summary, verdict)
}

fn page(
    tool: &Tool,
    policy: Option<&PolicyRef>,
    targets: &[Shown<'_>],
    policy_findings: &[Finding],
    summary: Summary,
    verdict: Option<Verdict>,
) -> Result<String, serde_json::Error> {
    let subject = match targets {
        [only] => clip(&name(only.facts), 200),
        many => plural(many.len(), "target"),
    };
    let word = verdict.map(|verdict| format!("{} ", verdict_word(verdict))).unwrap_or_default();
    let mut out =
        format!("<body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n{}", code::PATTERNS);
    out.push_str("<header>\n<h1>");
    badge(&mut out, verdict);
    let _ = writeln!(out, "<bdi>{}</bdi></h1>", text(&subject));
    if let Some(policy) = policy {
        let _ = writeln!(
            out,
            "<p>Policy <code>{}</code>, waivers as of {}</p>",
            text(&clip(&policy_name(policy), CHARS)),
            text(&policy.evaluated_on)
        );
    }
    out.push_str("</header>\n<main id=\"main\">\n");
    if targets.is_empty() {
        out.push_str("<p>No target was audited.</p>\n");
    }
    if targets.len() > 1 {
        overview(&mut out, targets);
    }
    if !policy_findings.is_empty() {
        out.push_str("<h2>About the policy</h2>\n");
        findings(&mut out, policy_findings);
    }
    let mut data = rows::Data::new();
    let mut room = MOST_ROWS;
    for (index, target) in targets.iter().enumerate().take(MOST_SECTIONS) {
        section(&mut out, target, index, targets.len() == 1, &mut room, &mut data);
    }
    if targets.len() > MOST_SECTIONS {
        let more = plural(targets.len() - MOST_SECTIONS, "further target");
        let _ =
            writeln!(out, "<p>{more} without a section of their own here; the JSON report has them all.</p>");
    }
    let _ = write!(
        out,
        "</main>\n<footer>\n<p>{}: {} read in full, {} partly, {} not at all; {} not ELF{}, {} could not be opened. \
         Made by {} {}.</p>\n</footer>\n",
        plural(summary.targets as usize, "target"),
        grouped(summary.ok),
        grouped(summary.partial),
        grouped(summary.failed),
        grouped(summary.skipped),
        summary.unopened(),
        grouped(summary.unreadable),
        text(&tool.name),
        text(&tool.version)
    );
    let json = json_in_script(&serde_json::to_string(&data)?);
    let title = format!("{word}{subject} – flagaudit");
    Ok(format!(
        "{}{out}<script type=\"application/json\" id=\"data\">{json}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        head(&title, &json)
    ))
}

/// Everything before the body. `data` is allowed by its digest like the script, though no browser runs it.
fn head(title: &str, data: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; \
         script-src '{}' '{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n",
        digest(STYLE),
        digest(SCRIPT),
        digest(data),
        text(title)
    )
}

/// The target's name; an empty one would leave a heading empty.
fn name(facts: &Facts) -> String {
    let name = super::text::name(facts);
    if name.trim().is_empty() { "(no name)".to_owned() } else { name }
}

/// The source expression by which a content security policy knows a text.
fn digest(content: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(content.as_bytes())))
}

fn badge(out: &mut String, verdict: Option<Verdict>) {
    if let Some(verdict) = verdict {
        let class = match verdict {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Error => "error",
        };
        let _ = write!(out, "<span class=\"verdict {class}\">{}</span> ", verdict_word(verdict));
    }
}

fn overview(out: &mut String, targets: &[Shown<'_>]) {
    let judged = targets.iter().any(|target| target.verdict.is_some());
    out.push_str("<h2 id=\"targets\">Targets</h2>\n");
    let columns: &[&str] = if judged {
        &["Target", "Verdict", "Findings", "Level", "What it is"]
    } else {
        &["Target", "Level", "What it is"]
    };
    parts::open_table(out, "targets-table", "Search targets", columns);
    for (index, target) in targets.iter().enumerate().take(MOST_LISTED) {
        let name = text(&clip(&name(target.facts), CHARS));
        out.push_str("<tr><th scope=\"row\">");
        if index < MOST_SECTIONS {
            let _ = write!(out, "<a href=\"#t{index}\"><code>{name}</code></a></th>");
        } else {
            let _ = write!(out, "<code>{name}</code></th>");
        }
        if judged {
            out.push_str("<td>");
            badge(out, target.verdict);
            let _ = write!(out, "</td><td class=\"keep\">{}</td>", Tally::of(target.findings).words());
        }
        let level = target.facts.optimization.level;
        let _ = writeln!(
            out,
            "<td class=\"l-{level}\">{level}</td><td>{}</td></tr>",
            text(&clip(&identity(target.facts), CHARS))
        );
    }
    parts::close_table(out);
    if targets.len() > MOST_LISTED {
        let more = plural(targets.len() - MOST_LISTED, "more target");
        let _ = writeln!(out, "<p>{more} not listed here; the JSON report has them all.</p>");
    }
}

fn section(
    out: &mut String,
    target: &Shown<'_>,
    index: usize,
    alone: bool,
    room: &mut usize,
    data: &mut rows::Data,
) {
    let facts = target.facts;
    if alone {
        let _ = writeln!(out, "<section id=\"t{index}\">\n<h2>The target</h2>");
    } else {
        let open = if index == 0 { " open" } else { "" };
        let _ = write!(out, "<details class=\"target\" id=\"t{index}\"{open}>\n<summary><h2>");
        badge(out, target.verdict);
        let _ = writeln!(out, "<bdi>{}</bdi></h2></summary>", text(&clip(&name(facts), CHARS)));
    }
    let identity = identity(facts);
    if !identity.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", text(&clip(&identity, CHARS)));
    }
    if target.verdict.is_some() {
        let _ = writeln!(out, "<p><strong>{}</strong></p>", Tally::of(target.findings).words());
    }
    if !facts.optimization.reason.is_empty() {
        let level = facts.optimization.level;
        let _ = writeln!(
            out,
            "<p>Lowest level <strong class=\"l-{level}\">{level}</strong> ({}): {}</p>",
            facts.optimization.strength.as_str(),
            text(&clip(&facts.optimization.reason, CHARS))
        );
    }
    problems(out, facts);
    let (rows, rest) = rows::rows(facts, *room);
    *room = room.saturating_sub(rows.len());
    let layout = rows::layout(&rows, &rest);
    data.add(&rows, &rest, &layout);
    code::picture(out, &rows, &rest, &layout, index, facts);
    let shown: Vec<&Finding> = target.findings.iter().filter(|finding| is_shown(finding)).collect();
    if !shown.is_empty() {
        out.push_str("<h3>Findings</h3>\n");
        findings(out, shown);
    }
    let rest: Vec<&Finding> = target.findings.iter().filter(|finding| !is_shown(finding)).collect();
    if !rest.is_empty() {
        let _ = writeln!(
            out,
            "<details>\n<summary>{} passed or not checked</summary>",
            plural(rest.len(), "rule")
        );
        findings(out, rest);
        out.push_str("</details>\n");
    }
    code::levels(out, facts);
    code::table(out, facts, &rows, index);
    parts::nginx(out, facts, index);
    parts::conflicts(out, facts);
    parts::properties(out, facts);
    out.push_str(if alone { "</section>\n" } else { "</details>\n" });
}

fn problems(out: &mut String, facts: &Facts) {
    if facts.problems.is_empty() {
        return;
    }
    let title = if facts.status == Status::Ok { "Remarks" } else { "Not fully audited" };
    let _ = writeln!(out, "<h3>{title}</h3>\n<ul>");
    for problem in facts.problems.iter().take(MOST_FINDINGS) {
        let _ = writeln!(
            out,
            "<li>{} <code class=\"dim\">{}</code></li>",
            text(&clip(&problem.message, CHARS)),
            text(&clip(&problem.code, CHARS))
        );
    }
    out.push_str("</ul>\n");
}

fn findings<'a>(out: &mut String, findings: impl IntoIterator<Item = &'a Finding>) {
    let mut rest = findings.into_iter();
    out.push_str("<ol class=\"findings\">\n");
    for finding in rest.by_ref().take(MOST_FINDINGS) {
        let class = match finding.status {
            FindingStatus::Violation | FindingStatus::Undetermined => finding.severity.as_str(),
            _ => "quiet",
        };
        let _ = writeln!(
            out,
            "<li class=\"{class}\">\n<p class=\"head\"><span class=\"word\">{}</span> <code>{}</code>: {}</p>",
            finding_word(finding),
            text(&clip(&finding.rule, CHARS)),
            text(&clip(&finding.message, CHARS))
        );
        let lines = details(finding);
        if !lines.is_empty() {
            out.push_str("<dl>\n");
            for (label, line) in lines {
                let _ = writeln!(out, "<dt>{label}</dt><dd>{}</dd>", text(&clip(&line, CHARS)));
            }
            out.push_str("</dl>\n");
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol>\n");
    let more = rest.count();
    if more > 0 {
        let _ = writeln!(out, "<p>{} not listed here.</p>", plural(more, "more finding"));
    }
}
