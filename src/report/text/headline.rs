//! The one line that answers whether a binary is optimized, and on what ground.

use super::{GREEN, RED, YELLOW, paint, terminal, thousands};
use crate::compiler::Level;
use crate::evidence::{Source, Strength};
use crate::facts::{Bound, Facts, Optimization, Status};
use crate::report::shared::percent;
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
        Level::Optimized => (GREEN, format!("OPTIMIZED, how far is not told ({ground}): not an -O0 build")),
        level => {
            let more = if optimization.bound == Bound::AtLeast { " or higher" } else { "" };
            (GREEN, format!("OPTIMIZED, {level}{more} ({ground}): not an -O0 build"))
        }
    };
    let unknown = optimization.text.unknown;
    let rest = if was_read && !optimization.complete && unknown > 0 && optimization.level != Level::Unknown {
        let share = percent(unknown, optimization.text.bytes);
        paint(YELLOW, &format!("; {share} % of the text is unknown"))
    } else {
        String::new()
    };
    Some(format!("{}{rest}", paint(style, &terminal(&words))))
}

/// All of it, or a part.
fn unoptimized(optimization: &Optimization, ground: &str) -> String {
    let bytes = |wanted: &dyn Fn(Level) -> bool| -> u64 {
        optimization.by_level.iter().filter(|share| wanted(share.level)).map(|share| share.text_bytes).sum()
    };
    let (at_o0, better) =
        (bytes(&|level| level == Level::O0), bytes(&|level| !matches!(level, Level::O0 | Level::Unknown)));
    if better == 0 {
        return format!("NOT OPTIMIZED ({ground}): an -O0 build");
    }
    let share = percent(at_o0, at_o0.saturating_add(better));
    format!("PARTLY -O0: {} bytes, {share} % of the judged code ({ground})", thousands(at_o0))
}

/// `recorded`, or `inferred; declared -O2 agrees`.
fn ground(optimization: &Optimization) -> String {
    let mut text = optimization.strength.as_str().to_owned();
    if optimization.strength == Strength::Declared && optimization.sources.contains(&Source::CodeShape) {
        text.push_str(", and the code agrees");
    }
    if matches!(optimization.strength, Strength::Recorded | Strength::Declared) {
        return text;
    }
    let declared = optimization
        .claims
        .iter()
        .find(|claim| matches!(claim.source, Source::ConfigureArguments | Source::BuildString));
    if let Some(level) = declared.and_then(|claim| claim.value.as_str()) {
        let agrees = level == optimization.level.as_str();
        let _ = write!(text, "; declared -{level} {}", if agrees { "agrees" } else { "disagrees" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Claim, Scope};
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
}
