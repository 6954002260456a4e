//! The sentence a person can act on.

use super::{Outcome, Whole, Witnessed, is_judged, is_live};
use crate::compiler::Level;
use crate::compiler::options::{is_inner_level, level_of};
use crate::evidence::{Source, Strength};
use crate::facts::{FunctionRun, Unit, UnitKind};
use crate::wording::percent;
use std::collections::BTreeMap;

/// A unit's `-O` options, the losing ones shown.
pub(super) fn options_of(unit: &Unit) -> String {
    // What is handed to clang's inner compiler comes after the driver's own options.
    let mut flags = unit.flags.iter().rev();
    let last = flags
        .clone()
        .find(|flag| is_inner_level(flag))
        .or_else(|| flags.find(|flag| level_of(flag).is_some()));
    match (last, unit.overridden.is_empty()) {
        (Some(last), true) => format!("{last} recorded"),
        (Some(last), false) => format!("{} overridden by {last}", unit.overridden.join(", ")),
        (None, _) if unit.strength == Strength::Recorded && unit.flags_recorded => {
            "options recorded, no -O among them".to_owned()
        }
        (None, _) => unit.strength.as_str().to_owned(),
    }
}

/// `src/a.c`, `src/a.c and src/b.c`, `src/a.c, src/b.c and 3 more`.
pub(super) fn name_units(units: &[&Unit]) -> String {
    let name = |unit: &Unit| match unit.name.as_str() {
        "" => "a unit without a name".to_owned(),
        name => name.to_owned(),
    };
    match units {
        [] => String::new(),
        [one] => name(one),
        [one, two] => format!("{} and {}", name(one), name(two)),
        [one, two, rest @ ..] => format!("{}, {} and {} more", name(one), name(two), rest.len()),
    }
}

pub(super) fn sentence(outcome: &Outcome, seen: &Witnessed, declared: Level) -> String {
    let judged: Vec<&Unit> = seen.units.iter().filter(|u| is_judged(u) && is_live(u, seen)).collect();
    let mut parts = Vec::new();
    if judged.is_empty() {
        parts.push(without_units(outcome, seen, declared));
        if let Some((level, source)) = seen.recorded_of_some() {
            let flag = level.flag();
            let who = match source {
                Source::GoBuildinfo => "the Go build information",
                Source::Annobin => "an annobin note",
                _ => "a recorded command line",
            };
            parts.push(format!("{who} says {flag} of some part, and nothing tells of which"));
        }
    } else {
        parts.push(of_units(&judged));
        parts.extend(share_of_units(outcome, seen, &judged));
    }
    let text = outcome.optimization.text;
    if !judged.is_empty() {
        let (recorded, shaped): (Vec<&FunctionRun>, Vec<&FunctionRun>) = outcome
            .runs
            .iter()
            .filter(|r| r.unit.is_none() && r.level == Level::O0)
            .partition(|run| seen.recorded_at(&(run.start..run.end)) == Some(Level::O0));
        let functions = |runs: &[&FunctionRun]| match runs.iter().map(|run| run.functions).sum() {
            1u64 => "1 function that no unit describes is".to_owned(),
            many => format!("{many} functions that no unit describes are"),
        };
        if !recorded.is_empty() {
            parts.push(format!("{} -O0 (recorded by the compiler)", functions(&recorded)));
        }
        if !shaped.is_empty() {
            parts.push(format!("{} shaped like -O0 code", functions(&shaped)));
        }
        parts.extend(suspected(outcome));
        let dark = text.unknown + text.declared;
        if dark > 0 && judged.iter().all(|u| u.level != Level::Unknown) {
            let elsewhere = if seen.code_elsewhere { ", and the code is not in this file" } else { "" };
            parts.push(format!("{dark} bytes of text are described by no unit{elsewhere}"));
        }
    }
    parts.join("; ")
}

/// How much of the code the units are, where that is not nearly all of it: a sentence about them must not be read as one
/// about the whole.
fn share_of_units(outcome: &Outcome, seen: &Witnessed, judged: &[&Unit]) -> Option<String> {
    let optimization = &outcome.optimization;
    let text = optimization.text;
    let code = text.bytes.saturating_sub(text.padding).saturating_sub(text.runtime);
    let described: u64 = judged.iter().map(|unit| unit.text_bytes).sum();
    if seen.relocatable || code == 0 || described.saturating_mul(20) >= code.saturating_mul(19) {
        return None;
    }
    let of_units = |level: Level| -> u64 {
        judged.iter().filter(|unit| unit.level == level).map(|unit| unit.text_bytes).sum()
    };
    let rest = optimization
        .by_level
        .iter()
        .map(|share| (share.level, share.text_bytes.saturating_sub(of_units(share.level))))
        .max_by_key(|(_, bytes)| *bytes)
        .filter(|(_, bytes)| *bytes > 0);
    let share = |bytes: u64| percent(bytes, code);
    let units = format!("that is {} % of the code", share(described));
    Some(match rest {
        None => units,
        Some((Level::Unknown, bytes)) => {
            format!("{units}, and nothing tells of another {} %", share(bytes))
        }
        Some((level, bytes)) => {
            let how = if text.inferred > 0 { ", as the code itself shows" } else { "" };
            format!("{units}; another {} % is {}{how}", share(bytes), level.flag())
        }
    })
}

/// What is suspected of functions in units of a higher level.
fn suspected(outcome: &Outcome) -> Option<String> {
    let inside: u64 = outcome
        .runs
        .iter()
        .filter(|run| run.unit.is_some() && run.level == Level::O0)
        .map(|run| run.functions)
        .sum();
    let of = match inside {
        0 => return None,
        1 => "1 function in them is".to_owned(),
        many => format!("{many} functions in them are"),
    };
    (outcome.optimization.level > Level::O0)
        .then(|| format!("{of} shaped like -O0 code: an attribute or a pragma is suspected"))
}

fn of_units(judged: &[&Unit]) -> String {
    let mut by_level: BTreeMap<Level, Vec<&Unit>> = BTreeMap::new();
    for unit in judged {
        by_level.entry(unit.level).or_default().push(unit);
    }
    let total = judged.len();
    let known = |units: &[&Unit]| -> &'static str {
        match units.iter().map(|u| u.strength).min() {
            Some(Strength::Recorded) => "recorded by the compiler",
            Some(Strength::Structural) => "shown by the debug information",
            Some(Strength::Inferred) => "inferred from the code",
            _ => "not recorded",
        }
    };
    let describe = |level: Level, units: &[&Unit]| -> String {
        if level == Level::Unknown {
            let why =
                units.iter().find_map(|u| u.note.clone()).unwrap_or_else(|| "no option recorded".to_owned());
            return format!("{} of unknown level ({why}): {}", count(units.len(), total), name_units(units));
        }
        format!("{} {} ({})", count(units.len(), total), level.flag(), known(units))
    };
    if by_level.len() == 1
        && let Some((level, units)) = by_level.iter().next()
    {
        let overridden =
            units.first().filter(|u| !u.overridden.is_empty()).map(|u| format!("; {}", options_of(u)));
        return format!("{}{}", describe(*level, units), overridden.unwrap_or_default());
    }
    let most = by_level.iter().max_by_key(|(_, units)| units.len()).map(|(level, _)| *level);
    let mut parts: Vec<String> = Vec::new();
    for (level, units) in &by_level {
        if Some(*level) == most {
            continue;
        }
        let mut part = describe(*level, units);
        if *level != Level::Unknown {
            part = format!("{part}: {}", name_units(units));
        }
        parts.push(part);
    }
    if let Some((level, units)) = by_level.iter().max_by_key(|(_, units)| units.len()) {
        parts.push(format!("the other {} {}", units.len(), level.flag()));
    }
    parts.join("; ")
}

fn count(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "the one unit is".to_owned(),
        (some, all) if some == all => format!("all {all} units are"),
        (1, all) => format!("1 of {all} units is"),
        (some, all) => format!("{some} of {all} units are"),
    }
}

fn without_units(outcome: &Outcome, seen: &Witnessed, declared: Level) -> String {
    let optimization = &outcome.optimization;
    let absent = match seen.units.as_slice() {
        [] => seen.debug_absent.as_deref().unwrap_or("no debug information"),
        units if units.iter().all(|unit| unit.kind == UnitKind::Assembly) => {
            if outcome.optimization.text.unknown == 0 {
                return "all code is assembly, to which no level applies".to_owned();
            }
            "only assembly is described by debug information"
        }
        _ => "no debug information about the program's own code",
    };
    let code = &seen.code;
    match (optimization.strength, optimization.level) {
        (_, Level::Unknown) => {
            let why = if code.sentence.is_empty() { String::new() } else { format!("; {}", code.sentence) };
            format!("{absent}, and nothing else tells{why}")
        }
        (Strength::Declared, level) => {
            let source = match seen.declared.as_ref().map(|claim| claim.source) {
                Some(Source::ConfigureArguments) => "the configure arguments declare",
                Some(Source::BuildString) => "a text in the program that names its build declares",
                _ => "the build declares",
            };
            if optimization.sources.contains(&Source::CodeShape) {
                format!("{source} {}, and the code agrees: {}", level.flag(), code.sentence)
            } else {
                format!("{source} {}; {absent}, so nothing corroborates it", level.flag())
            }
        }
        (Strength::Inferred, level) => {
            let against = if declared != Level::Unknown && matches!(code.whole, Whole::O0 | Whole::Mixed) {
                format!("; {} is declared", declared.flag())
            } else {
                String::new()
            };
            format!("{}: {}{against}", level.flag(), code.sentence)
        }
        (strength, level) => {
            let sources: Vec<&str> = optimization.sources.iter().map(|s| s.as_str()).collect();
            format!("{} {} ({})", level.flag(), strength.as_str(), sources.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing;

    #[test]
    fn what_overrode_a_level_is_named() {
        let unit = |flags: &[&str], overridden: &str| Unit {
            flags: flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>().into(),
            overridden: vec![overridden.to_owned()],
            ..testing::unit("a.c", Level::O0)
        };
        assert_eq!(options_of(&unit(&["-O2", "-O0"], "-O2")), "-O2 overridden by -O0");
        assert_eq!(options_of(&unit(&["-Xclang -O0", "-O2"], "-O2")), "-O2 overridden by -Xclang -O0");
        let without = "-Xclang -disable-llvm-passes";
        assert_eq!(options_of(&unit(&["-O2", without], "-O2")), format!("-O2 overridden by {without}"));
    }
}
