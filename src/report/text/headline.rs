//! The one line that answers whether a binary is optimized, and on what ground.

use super::{GREEN, RED, YELLOW, paint, terminal};
use crate::compiler::Level;
use crate::evidence::{Claim, Scope, Source, Strength};
use crate::facts::{Bound, Facts, Optimization, Status};
use crate::wording::{grouped, percent, plural};
use std::fmt::Write as _;

/// The line, in its colour. None if the target was not read at all, which its problems say.
pub(super) fn headline(facts: &Facts) -> Option<String> {
    let optimization = &facts.optimization;
    if facts.status == Status::Failed && optimization.level == Level::Unknown {
        return None;
    }
    let ground = ground(optimization);
    // Text that names a build is no build: nothing of it was read.
    let was_read = facts.elf.is_some();
    let (style, words) = match optimization.level {
        Level::Unknown => (YELLOW, "UNKNOWN whether the code is optimized".to_owned()),
        level if !was_read => {
            let style = if level == Level::O0 { RED } else { YELLOW };
            (style, format!("DECLARED {} (no program was read)", level.flag()))
        }
        Level::O0 => (RED, unoptimized(optimization, &ground)),
        // What the build system says proves nothing of code that was not read.
        level if optimization.strength == Strength::Declared && !agrees(optimization) => {
            (YELLOW, format!("DECLARED {}, and no code was read that agrees", level.flag()))
        }
        level => {
            let level = match level {
                Level::Optimized => "how far is not told".to_owned(),
                level if optimization.bound == Bound::AtLeast => format!("{level} or higher"),
                level => level.to_string(),
            };
            match contradiction(facts).or_else(|| doubt(optimization)) {
                Some(doubt) => (YELLOW, format!("OPTIMIZED, {level} ({ground}), but {doubt}")),
                None => (GREEN, format!("OPTIMIZED, {level} ({ground}): not an -O0 build")),
            }
        }
    };
    let unknown = optimization.judged_unknown();
    let rest = if was_read && doubt(optimization).is_none() && !optimization.complete && unknown > 0 {
        let share = percent(unknown, optimization.text.bytes);
        paint(YELLOW, &format!("; {share} % of the text is unknown"))
    } else {
        String::new()
    };
    Some(format!("{}{rest}", paint(style, &terminal(&words))))
}

/// Who says that it is unoptimized, or a part of it: the record outranks others, but the answer does not hide them.
fn contradiction(facts: &Facts) -> Option<String> {
    let level = |claim: &&Claim| claim.fact == "optimization.level" && claim.level() == Level::O0;
    if let Some(claim) = facts.conflicts.iter().flat_map(|conflict| &conflict.claims).find(level) {
        return Some(format!("{} says -O0", claim.source.as_str()));
    }
    // A single function is told in the reason; several in a row are a part of the program.
    let runs = facts.functions.runs.iter().filter(|run| run.level == Level::O0 && run.functions > 1);
    let functions = runs.fold(0u64, |sum, run| sum.saturating_add(run.functions));
    (functions > 0).then(|| format!("{} are shaped like -O0", plural(functions, "function")))
}

/// What keeps the answer from being one about the whole, unless it is a mere remnant.
fn doubt(optimization: &Optimization) -> Option<String> {
    let text = &optimization.text;
    match optimization.judged_unknown() {
        _ if optimization.complete || optimization.level == Level::Unknown => None,
        0 => Some("nothing tells of some units".to_owned()),
        unknown if text.is_remnant(unknown) => None,
        unknown => Some(format!("nothing tells of {} % of the text", percent(unknown, text.bytes))),
    }
}

/// All of it, or a part.
fn unoptimized(optimization: &Optimization, ground: &str) -> String {
    let bytes = |wanted: &dyn Fn(Level) -> bool| -> u64 {
        optimization.by_level.iter().filter(|share| wanted(share.level)).map(|share| share.text_bytes).sum()
    };
    let (at_o0, better) =
        (bytes(&|level| level == Level::O0), bytes(&|level| !matches!(level, Level::O0 | Level::Unknown)));
    let doubt = doubt(optimization);
    if better == 0 {
        return match doubt {
            Some(doubt) => format!("NOT OPTIMIZED ({ground}), though {doubt}"),
            None => format!("NOT OPTIMIZED ({ground}): an -O0 build"),
        };
    }
    let share = percent(at_o0, at_o0.saturating_add(better));
    let doubt = doubt.map(|doubt| format!("; {doubt}")).unwrap_or_default();
    format!("PARTLY -O0: {} bytes, {share} % of the judged code ({ground}){doubt}", grouped(at_o0))
}

/// The code was read, too, and says no other.
fn agrees(optimization: &Optimization) -> bool {
    optimization.sources.contains(&Source::CodeShape)
}

/// `recorded`, or `inferred; declared -O2 agrees`.
fn ground(optimization: &Optimization) -> String {
    let mut text = optimization.strength.as_str().to_owned();
    if optimization.strength == Strength::Declared && agrees(optimization) {
        text.push_str(", and the code agrees");
    }
    if matches!(optimization.strength, Strength::Recorded | Strength::Declared) {
        return text;
    }
    let declared = optimization
        .claims
        .iter()
        // What a library that was linked in says of itself is not said of the program.
        .find(|claim| {
            matches!(claim.source, Source::ConfigureArguments | Source::BuildString)
                && claim.scope == Scope::File
        });
    if let Some(level) = declared.and_then(|claim| claim.value.as_str()) {
        let agrees = level == optimization.level.as_str()
            || (optimization.level == Level::Optimized && level != Level::O0.as_str());
        let _ = write!(text, "; declared -{level} {}", if agrees { "agrees" } else { "disagrees" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{LevelShare, TextAccount};

    fn of(level: Level, strength: Strength, shares: &[(Level, u64)], declared: Option<&str>) -> String {
        let share = |(level, text_bytes): &(Level, u64)| LevelShare {
            level: *level,
            units: 0,
            functions: 0,
            text_bytes: *text_bytes,
        };
        let claim = |value: &str| Claim {
            fact: "optimization.level".to_owned(),
            value: value.into(),
            strength: Strength::Declared,
            source: Source::ConfigureArguments,
            scope: Scope::File,
            at: None,
            quote: None,
        };
        let mut facts = crate::rules::testing::nginx(1, level);
        facts.optimization = Optimization {
            level,
            strength,
            complete: true,
            by_level: shares.iter().map(share).collect(),
            text: TextAccount { bytes: 100, ..TextAccount::default() },
            claims: declared.map(claim).into_iter().collect(),
            ..Optimization::default()
        };
        anstream::adapter::strip_str(&headline(&facts).unwrap()).to_string()
    }

    #[test]
    fn it_says_what_holds_and_why() {
        for (level, strength, shares, declared, expected) in [
            (
                Level::O2,
                Strength::Recorded,
                vec![(Level::O2, 90)],
                None,
                "OPTIMIZED, O2 (recorded): not an -O0 build",
            ),
            (
                Level::O2,
                Strength::Inferred,
                vec![(Level::O2, 90)],
                Some("O2"),
                "OPTIMIZED, O2 (inferred; declared -O2 agrees): not an -O0 build",
            ),
            (
                Level::O0,
                Strength::Inferred,
                vec![(Level::O0, 90)],
                Some("O2"),
                "NOT OPTIMIZED (inferred; declared -O2 disagrees): an -O0 build",
            ),
            (
                Level::O0,
                Strength::Recorded,
                vec![(Level::O0, 10), (Level::O2, 30), (Level::Unknown, 5)],
                None,
                "PARTLY -O0: 10 bytes, 25.0 % of the judged code (recorded)",
            ),
            (Level::Unknown, Strength::None, vec![], None, "UNKNOWN whether the code is optimized"),
        ] {
            assert_eq!(of(level, strength, &shares, declared), expected);
        }
    }

    #[test]
    fn a_record_that_the_code_contradicts_is_no_clean_answer() {
        let mut facts = crate::rules::testing::nginx(1, Level::O2);
        let claim = |value: &str, strength, source| Claim {
            fact: "optimization.level".to_owned(),
            value: value.into(),
            strength,
            source,
            scope: Scope::File,
            at: None,
            quote: None,
        };
        facts.conflicts = vec![crate::facts::Conflict {
            fact: "optimization.level".to_owned(),
            claims: vec![
                claim("O2", Strength::Recorded, Source::DwarfProducer),
                claim("O0", Strength::Inferred, Source::CodeShape),
            ],
        }];
        let line = anstream::adapter::strip_str(&headline(&facts).unwrap()).to_string();
        assert_eq!(line, "OPTIMIZED, O2 (recorded), but code-shape says -O0");
    }

    #[test]
    fn what_nothing_tells_is_never_said_to_be_fine() {
        let of = |level, strength, complete, unknown, sources: &[Source]| {
            let mut facts = crate::rules::testing::nginx(1, level);
            let text = TextAccount {
                bytes: 1_000_000,
                recorded: 1_000_000 - unknown,
                unknown,
                ..TextAccount::default()
            };
            facts.optimization = Optimization {
                level,
                strength,
                complete,
                text,
                sources: sources.to_vec(),
                by_level: vec![LevelShare {
                    level: Level::Unknown,
                    units: 0,
                    functions: 0,
                    text_bytes: unknown,
                }],
                ..Optimization::default()
            };
            anstream::adapter::strip_str(&headline(&facts).unwrap()).to_string()
        };
        for (complete, unknown, expected) in [
            (true, 0, "OPTIMIZED, O2 (recorded): not an -O0 build"),
            (false, 2_000, "OPTIMIZED, O2 (recorded): not an -O0 build; 0.2 % of the text is unknown"),
            (false, 600_000, "OPTIMIZED, O2 (recorded), but nothing tells of 60.0 % of the text"),
            (false, 0, "OPTIMIZED, O2 (recorded), but nothing tells of some units"),
        ] {
            assert_eq!(of(Level::O2, Strength::Recorded, complete, unknown, &[]), expected);
        }
        let declared = |sources| of(Level::O2, Strength::Declared, true, 0, sources);
        assert_eq!(declared(&[Source::ConfigureArguments]), "DECLARED -O2, and no code was read that agrees");
        assert_eq!(
            declared(&[Source::ConfigureArguments, Source::CodeShape]),
            "OPTIMIZED, O2 (declared, and the code agrees): not an -O0 build"
        );
        assert_eq!(
            of(Level::O0, Strength::Recorded, false, 600_000, &[]),
            "NOT OPTIMIZED (recorded), though nothing tells of 60.0 % of the text"
        );
    }
}
