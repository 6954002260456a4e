//! Text of `diff`: the verdict, the sentence, then what it comes from and what stayed the same.

use super::{BOLD, GREEN, Options, RED, YELLOW, labelled, paint, terminal};
use crate::diff::{Change, DiffReport, Direction};
use crate::report::escape;
use crate::wording::grouped;
use std::fmt::Write as _;

/// Most changes of a kind listed without `--verbose`.
const MOST: usize = 12;

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
    let levels = report.changes.iter().any(|c| c.direction != Direction::Neutral);
    let (mut listed, mut left) = (0, 0);
    for change in &report.changes {
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
            Direction::Worse => {
                let _ = writeln!(out, "{}", paint(RED, &text));
            }
            Direction::Better => {
                let _ = writeln!(out, "{}", paint(GREEN, &text));
            }
            Direction::Neutral => labelled(&mut out, 0, label, &text, options),
        }
        if options.verbose && !change.names.is_empty() {
            let more = change.count.unwrap_or_default().saturating_sub(change.names.len() as u64);
            let more = if more > 0 { format!(", … and {more} more") } else { String::new() };
            labelled(&mut out, 2, "where", &terminal(&format!("{}{more}", change.names.join(", "))), options);
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
