//! One finding: what, where, how known, what it costs, how to fix, and the policy line that judged.

use super::{BOLD, DIM, GREEN, Options, RED, YELLOW, labelled, paint, terminal, wrapped};
use crate::finding::{Finding, FindingStatus, Severity};
use crate::report::shared::{clip, finding_word, known};
use crate::wording::{grouped, plural};
use std::fmt::Write as _;

/// Units named before the rest is only counted.
const UNITS_SHOWN: usize = 6;
/// Findings of one rule shown before the rest is only counted.
const FINDINGS_SHOWN: usize = 10;
/// Characters of a name.
const NAME_CHARS: usize = 120;

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
            let words = format!("… and {} more of {} (-v shows all)", grouped(more as u64), terminal(rule));
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
    let head = format!("{}[{}]:", finding_word(finding), terminal(&finding.rule));
    let whole = format!("{head} {}", terminal(&finding.message));
    for (index, line) in wrapped(&whole, 2, options).iter().enumerate() {
        let _ = match line.strip_prefix(&head).filter(|_| index == 0) {
            Some(rest) => writeln!(out, "{}{}", paint(style, &head), paint(BOLD, rest)),
            None => writeln!(out, "  {}", paint(BOLD, line)),
        };
    }
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
    for (index, line) in known(finding).iter().enumerate() {
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
        parts.push(format!("and {} more (flagaudit inspect --units lists all)", grouped(more)));
    }
    parts.extend(finding.ranges.iter().take(UNITS_SHOWN).map(|r| {
        let name = r.name.as_deref().map(|name| clip(name, NAME_CHARS));
        let name = name.map(|name| format!("{} ", terminal(&name))).unwrap_or_default();
        if r.functions > 0 {
            format!("{name}{:#x}-{:#x} ({})", r.start, r.end, plural(r.functions, "function"))
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

    fn shown(findings: &[Finding], verbose: bool) -> String {
        let mut out = String::new();
        all(&mut out, findings, Options { quiet: false, verbose, width: 80 });
        anstream::adapter::strip_str(&out).to_string()
    }

    #[test]
    fn findings_of_a_rule_stand_together_and_many_are_counted() {
        let of = |rule: &str, message: &str| Finding {
            message: message.to_owned(),
            ..crate::rules::testing::finding(rule, Severity::Error, FindingStatus::Violation)
        };
        let mut list = vec![of("a", "first")];
        list.extend((0..14).map(|index| of("b", &format!("number {index}"))));
        list.push(of("a", "last"));
        let brief = shown(&list, false);
        let heads: Vec<&str> = brief.lines().filter(|line| line.starts_with("error[")).collect();
        assert_eq!(&heads[..2], ["error[a]: first", "error[a]: last"]);
        assert_eq!(heads.len(), 12);
        assert!(brief.contains("… and 4 more of b (-v shows all)"), "{brief}");
        assert_eq!(shown(&list, true).matches("error[b]").count(), 14);
    }

    #[test]
    fn long_messages_wrap() {
        let list = [Finding {
            message: "word ".repeat(40),
            ..crate::rules::testing::finding("a", Severity::Error, FindingStatus::Violation)
        }];
        let text = shown(&list, false);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_note_is_a_line_unless_asked() {
        let list = [Finding {
            remedy: Some("do".to_owned()),
            ..crate::rules::testing::finding("a", Severity::Note, FindingStatus::Violation)
        }];
        assert_eq!(shown(&list, false).lines().count(), 1);
        assert!(shown(&list, true).contains("fix"));
    }

    #[test]
    fn a_comment_is_left_out_but_not_a_hash_in_a_string() {
        assert_eq!(without_comment("minimum   = \"O1\"  # why"), "minimum = \"O1\"");
        assert_eq!(without_comment("unit = \"src/#1.c\""), "unit = \"src/#1.c\"");
    }
}
