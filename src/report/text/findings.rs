//! One finding: what, where, how known, what it costs, how to fix, and the policy line that judged.

use super::{BOLD, DIM, GREEN, Options, RED, YELLOW, labelled, paint, terminal, thousands};
use crate::evidence::Strength;
use crate::finding::{Finding, FindingStatus, Severity};
use crate::report::shared::clip;
use std::fmt::Write as _;

/// Units named before the rest is only counted.
const UNITS_SHOWN: usize = 6;
/// Findings of one rule shown before the rest is only counted.
const FINDINGS_SHOWN: usize = 10;
/// Characters of a name.
const NAME_CHARS: usize = 72;

/// All findings, those of a rule together, the rule with the worst first. Of many alike without `-v` the first.
pub(super) fn all(out: &mut String, findings: &[Finding], options: Options) {
    let mut rules: Vec<(&str, Vec<&Finding>)> = Vec::new();
    for finding in findings {
        match rules.iter_mut().find(|(rule, _)| *rule == finding.rule) {
            Some((_, list)) => list.push(finding),
            None => rules.push((&finding.rule, vec![finding])),
        }
    }
    for (rule, list) in rules {
        let shown = if options.verbose { list.len() } else { FINDINGS_SHOWN };
        for one in list.iter().take(shown) {
            finding(out, one, options);
        }
        if let Some(more) = list.len().checked_sub(shown).filter(|more| *more > 0) {
            let words = format!("… and {} more of {rule} (-v shows all)", thousands(more as u64));
            let _ = writeln!(out, "{}", paint(DIM, &words));
        }
    }
}

fn finding(out: &mut String, finding: &Finding, options: Options) {
    let style = match (finding.status, finding.severity) {
        (FindingStatus::Waived | FindingStatus::Passed | FindingStatus::NotChecked, _) => DIM,
        (_, Severity::Error) => RED,
        (_, Severity::Warning) => YELLOW,
        (_, Severity::Note) => GREEN,
    };
    let word = match finding.status {
        FindingStatus::Waived => "waived",
        FindingStatus::Passed => "passed",
        FindingStatus::NotChecked => "not checked",
        FindingStatus::Violation | FindingStatus::Undetermined => finding.severity.as_str(),
    };
    let _ = writeln!(
        out,
        "{}{}",
        paint(style, &format!("{word}[{}]", finding.rule)),
        paint(BOLD, &format!(": {}", terminal(&finding.message)))
    );
    // What neither fails nor warns is a line; `-v` and `explain` have the rest.
    let counts = matches!(finding.status, FindingStatus::Violation | FindingStatus::Undetermined);
    let minor = finding.status == FindingStatus::NotChecked || (counts && finding.severity == Severity::Note);
    if minor && !options.verbose && finding.location.is_none() {
        return;
    }
    let place = places(finding, options);
    if !place.is_empty() {
        labelled(out, 2, "where", &place, options);
    }
    if finding.known.is_empty() && finding.strength != Strength::None {
        let sources: Vec<&str> = finding.sources.iter().map(|source| source.words()).collect();
        labelled(out, 2, "known", &format!("{}: {}", finding.strength.as_str(), sources.join("; ")), options);
    }
    for (index, line) in finding.known.iter().enumerate() {
        labelled(out, 2, if index == 0 { "known" } else { "" }, &terminal(line), options);
    }
    if let Some(cost) = &finding.cost {
        labelled(out, 2, "cost", &terminal(cost), options);
    }
    if let Some(remedy) = &finding.remedy {
        labelled(out, 2, "fix", &terminal(remedy), options);
    }
    if let Some(waiver) = &finding.waiver {
        let owner = waiver.owner.as_deref().map(|o| format!(", owner {o}")).unwrap_or_default();
        let expires = waiver.expires.as_deref().map(|e| format!(", until {e}")).unwrap_or_default();
        labelled(out, 2, "waiver", &terminal(&format!("{}{owner}{expires}", waiver.reason)), options);
    }
    if let Some(at) = &finding.policy {
        let text = without_comment(&at.text);
        labelled(out, 2, "policy", &terminal(&format!("{}:{}  {text}", at.path, at.line)), options);
    }
}

/// A line of a policy without its comment, white space collapsed.
fn without_comment(line: &str) -> String {
    let mut quote = None;
    let end = line.char_indices().find(|(_, c)| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(*c),
            (Some(open), c) if open == *c => quote = None,
            _ => {}
        }
        quote.is_none() && *c == '#'
    });
    let line = end.map_or(line, |(at, _)| &line[..at]);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn places(finding: &Finding, options: Options) -> String {
    if let Some(location) = &finding.location {
        return terminal(&format!("{}:{}:{}", location.path, location.line, location.column));
    }
    let mixed = finding.units.iter().any(|u| Some(u.level) != finding.units.first().map(|f| f.level));
    let shown = if options.verbose { finding.units.len() } else { UNITS_SHOWN };
    let mut parts: Vec<String> = finding
        .units
        .iter()
        .take(shown)
        .map(|u| {
            let name = terminal(&u.name);
            if mixed { format!("{name} ({})", u.level) } else { name }
        })
        .collect();
    let more = finding.units_total.saturating_sub(parts.len() as u64);
    if more > 0 && !parts.is_empty() {
        parts.push(format!("and {} more (flagaudit inspect --units lists all)", thousands(more)));
    }
    parts.extend(finding.ranges.iter().take(UNITS_SHOWN).map(|r| {
        let name = r.name.as_deref().map(|name| clip(name, NAME_CHARS));
        let name = name.map(|name| format!("{} ", terminal(&name))).unwrap_or_default();
        if r.functions > 0 {
            format!("{name}{:#x}-{:#x} ({} functions)", r.start, r.end, r.functions)
        } else {
            format!("{name}{:#x}-{:#x}", r.start, r.end)
        }
    }));
    if finding.ranges.len() > UNITS_SHOWN {
        parts.push(format!("and {} more ranges", finding.ranges.len() - UNITS_SHOWN));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_left_out_but_not_a_hash_in_a_string() {
        assert_eq!(without_comment("minimum   = \"O1\"  # why"), "minimum = \"O1\"");
        assert_eq!(without_comment("unit = \"src/#1.c\""), "unit = \"src/#1.c\"");
    }
}
