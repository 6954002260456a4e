//! Text of `diff`: the verdict, the sentence, then what it comes from and what stayed the same.

use super::{BOLD, GREEN, Options, RED, YELLOW, labelled, paint, terminal, wrapped};
use crate::diff::{Change, DiffReport, Direction};
use crate::report::escape;
use crate::wording::grouped;
use anstyle::Style;
use std::fmt::Write as _;

/// Most changes of a kind listed without `--verbose`.
const MOST: usize = 12;
/// So many modules gone or come are told one by one, and more of them in one sentence.
const FEW_MODULES: usize = 3;
/// So many names of units or modules are told without `--verbose`.
const FEW_NAMES: usize = 6;

fn head(report: &DiffReport) -> &'static str {
    match (report.regression, report.same) {
        (true, _) => "REGRESSION",
        (_, true) => "SAME",
        _ if report.count(Direction::Better) > 0 => "IMPROVEMENT",
        _ => "CHANGED",
    }
}

fn is_configure(change: &Change) -> bool {
    change.what.starts_with("configure:") || change.what.starts_with("build-string:")
}

/// Arguments that reach the compiler and so can be the cause of another level.
fn reaches_compiler(change: &Change) -> bool {
    let what = change.what.to_ascii_lowercase();
    ["--with-cc", "--with-ld", "--with-cpu", "cflags", "configure:--with-debug"]
        .iter()
        .any(|w| what.contains(w))
}

/// What changed.
pub fn diff(report: &DiffReport, options: Options) -> String {
    let mut out = String::new();
    let word = head(report);
    let style = match word {
        "REGRESSION" => RED,
        "CHANGED" => YELLOW,
        _ => GREEN,
    };
    let names = format!("{} → {}", terminal(&report.old.name()), terminal(&report.new.name()));
    let (worse, better) = (report.count(Direction::Worse), report.count(Direction::Better));
    let _ =
        writeln!(out, "{}  {}   ({worse} worse, {better} better)", paint(style, word), paint(BOLD, &names));
    if report.same {
        let _ = writeln!(out, "nothing changed");
    }
    if options.quiet {
        return out;
    }
    let changes = joined(report, options);
    let levels = report.changes.iter().any(|c| c.direction != Direction::Neutral);
    let (mut listed, mut left) = (0, 0);
    for change in &changes {
        let label = match () {
            () if change.direction != Direction::Neutral => "",
            () if is_configure(change) && levels && reaches_compiler(change) => "cause",
            () if is_configure(change) => "build",
            () if change.what == "text.bytes" => "code",
            () => "changed",
        };
        if label == "changed" || label == "build" {
            listed += 1;
            if listed > MOST && !options.verbose {
                left += 1;
                continue;
            }
        }
        let text = if change.what == "text.bytes" { code(change) } else { change.sentence.clone() };
        let text = terminal(&text);
        match change.direction {
            Direction::Worse => sentence(&mut out, RED, &text, options),
            Direction::Better => sentence(&mut out, GREEN, &text, options),
            Direction::Neutral => labelled(&mut out, 0, label, &text, options),
        }
        if let Some(text) = place(change, options) {
            labelled(&mut out, 2, "where", &terminal(&text), options);
        }
    }
    if left > 0 {
        labelled(&mut out, 0, "changed", &format!("… and {left} more (--verbose lists all)"), options);
    }
    for (label, list) in
        [("same", &report.equal), ("ignored", &report.ignored), ("not seen", &report.not_compared)]
    {
        if !list.is_empty() {
            let joint = if label == "not seen" { "; " } else { ", " };
            labelled(&mut out, 0, label, &terminal(&list.join(joint)), options);
        }
    }
    escape::log(&out)
}

/// Names of what a change concerns. Where it is for better or worse, and not of everything, the first are told always.
fn place(change: &Change, options: Options) -> Option<String> {
    let part = change.of.is_none() || change.count < change.of;
    let telling = change.direction != Direction::Neutral && part;
    if change.names.is_empty() || !(options.verbose || telling) {
        return None;
    }
    let most = if options.verbose { change.names.len() } else { FEW_NAMES };
    let shown = change.names.get(..most).unwrap_or(&change.names);
    let more = change.count.unwrap_or_default().saturating_sub(shown.len() as u64);
    let more = match more {
        0 => String::new(),
        more if shown.len() < change.names.len() => format!(", and {more} more (-v shows more)"),
        more => format!(", and {more} more"),
    };
    Some(format!("{}{more}", shown.join(", ")))
}

/// The changes as they are listed: many modules that are gone, or come, make one.
fn joined(report: &DiffReport, options: Options) -> Vec<Change> {
    let is = |change: &Change, gone: bool| {
        change.what.starts_with("nginx.module:")
            && change.new.is_null() == gone
            && change.old.is_null() != gone
    };
    let mut changes = report.changes.clone();
    for (gone, word) in [(true, "removed"), (false, "added")] {
        let names: Vec<&str> = report
            .changes
            .iter()
            .filter(|change| is(change, gone))
            .map(|change| module_name(change.what.trim_start_matches("nginx.module:")))
            .collect();
        if names.len() <= FEW_MODULES || options.verbose {
            continue;
        }
        let Some(first) = changes.iter().position(|change| is(change, gone)) else { continue };
        let more = names.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more (--verbose lists all)") } else { String::new() };
        let shown = names.get(..MOST).unwrap_or(&names).join(", ");
        if let Some(change) = changes.get_mut(first) {
            change.sentence = format!("{} modules {word}: {shown}{more}", names.len());
            "nginx.modules".clone_into(&mut change.what);
        }
        changes.retain(|change| !is(change, gone));
    }
    changes
}

/// `http_realip` of `ngx_http_realip_module`.
fn module_name(name: &str) -> &str {
    name.strip_prefix("ngx_").and_then(|rest| rest.strip_suffix("_module")).unwrap_or(name)
}

/// A line of its own, in as many as the width asks for.
fn sentence(out: &mut String, style: Style, text: &str, options: Options) {
    for (index, line) in wrapped(text, 2, options).iter().enumerate() {
        let indent = if index == 0 { "" } else { "  " };
        let _ = writeln!(out, "{indent}{}", paint(style, line));
    }
}

/// `630,718 → 1,022,361 bytes (+62 %)`
fn code(change: &Change) -> String {
    let (Some(a), Some(b)) = (change.old.as_u64(), change.new.as_u64()) else {
        return change.sentence.clone();
    };
    let percent = (b as f64 - a as f64) / a.max(1) as f64 * 100.0;
    let percent = if percent.abs() < 1.0 { format!("{percent:+.1}") } else { format!("{percent:+.0}") };
    format!("{} → {} bytes ({percent} %)", grouped(a), grouped(b))
}

/// The same in Markdown.
pub fn diff_markdown(report: &DiffReport) -> String {
    let mut out = format!(
        "## flagaudit diff: {}\n\n{} → {}\n\n",
        head(report),
        escape::markdown_code(&report.old.name()),
        escape::markdown_code(&report.new.name())
    );
    for change in &report.changes {
        let sentence = if change.what == "text.bytes" {
            format!("code {}", code(change))
        } else {
            change.sentence.clone()
        };
        let word = match change.direction {
            Direction::Worse => "**worse:** ",
            Direction::Better => "**better:** ",
            Direction::Neutral => "",
        };
        let _ = writeln!(out, "- {word}{}", escape::markdown(&sentence));
    }
    if report.same {
        out.push_str("Nothing changed.\n");
    }
    for (label, list) in
        [("Same", &report.equal), ("Ignored", &report.ignored), ("Not compared", &report.not_compared)]
    {
        if !list.is_empty() {
            let _ = write!(out, "\n{label}: {}\n", escape::markdown(&list.join("; ")));
        }
    }
    out
}
