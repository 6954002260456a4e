//! Levels: unit by unit where both sides list their units, otherwise by the count of each level.

use super::Direction::{self, Better, Neutral, Worse};
use super::{Change, Ledger};
use crate::compiler::Level;
use crate::compiler::options::level_of;
use crate::facts::{Facts, FunctionRun, Unit, UnitKind};
use crate::finding::normalise_unit;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Most names listed with one change.
const MOST_NAMES: usize = 20;

/// Compares the levels of both sides.
pub(super) fn compare(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let before = ledger.changes.len();
    let mut compared = true;
    match (&old.units, &new.units) {
        (Some(a), Some(b)) if judged(a).next().is_some() && judged(b).next().is_some() => {
            by_unit(a, b, ledger);
        }
        _ => {
            compared = by_count(old, new, ledger);
            for (word, facts) in [("old", old), ("new", new)] {
                if facts.units.is_none() {
                    ledger.not_compared.push(format!(
                        "units one by one: they were not saved with the {word} side (inspect --units)"
                    ));
                }
            }
        }
    }
    let explained =
        ledger.changes.iter().skip(before).any(|change| {
            change.direction != Neutral || matches!(change.what.as_str(), "units" | "functions")
        });
    let (a, b) = (&old.optimization, &new.optimization);
    if a.level != b.level && !explained {
        let sentence = format!("the lowest level went from {} to {}", a.level.flag(), b.level.flag());
        let change = direction(a.level, b.level);
        ledger.change("optimization.level", json!(a.level), json!(b.level), change, sentence);
    }
    if ledger.changes.len() == before {
        if compared {
            ledger.equal.push("levels".to_owned());
        } else if a.level == b.level && a.level != Level::Unknown {
            ledger.equal.push("lowest level".to_owned());
        }
    }
}

/// Whether going from one level to another is for the worse. `optimized` is only compared with what it
/// is known to differ from; with an unknown level nothing is.
pub(super) fn direction(old: Level, new: Level) -> Direction {
    match (old, new) {
        _ if old == new => Neutral,
        (Level::Optimized, Level::O0) => Worse,
        (Level::O0, Level::Optimized) => Better,
        (Level::Optimized | Level::Unknown, _) | (_, Level::Optimized | Level::Unknown) => Neutral,
        _ if new < old => Worse,
        _ => Better,
    }
}

fn judged(units: &[Unit]) -> impl Iterator<Item = &Unit> {
    units.iter().filter(|unit| matches!(unit.kind, UnitKind::Source | UnitKind::Library))
}

/// Units by name without the directory of the build. A source compiled more than once is there as often.
fn by_name(units: &[Unit]) -> BTreeMap<String, Vec<&Unit>> {
    let mut map: BTreeMap<String, Vec<&Unit>> = BTreeMap::new();
    for unit in judged(units) {
        let name = normalise_unit(&unit.name, unit.comp_dir.as_deref(), unit.member.as_deref());
        map.entry(name).or_default().push(unit);
    }
    for list in map.values_mut() {
        list.sort_by_key(|unit| unit.level);
    }
    map
}

fn by_unit(old: &[Unit], new: &[Unit], ledger: &mut Ledger) {
    let (old, new) = (by_name(old), by_name(new));
    let mut moved: BTreeMap<(Level, Level), Vec<String>> = BTreeMap::new();
    let mut flags: BTreeMap<(String, bool), Vec<String>> = BTreeMap::new();
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    // A unit of which no code is left is not judged; where no unit has any, as in a debug file, all are.
    let located =
        |units: &BTreeMap<String, Vec<&Unit>>| units.values().flatten().any(|unit| unit.text_bytes > 0);
    let (old_located, new_located) = (located(&old), located(&new));
    let has_code = |unit: &Unit, located: bool| unit.text_bytes > 0 || !located;
    let mut added_o0 = 0u64;
    let mut pairs = 0u64;
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let a = old.get(name).map(Vec::as_slice).unwrap_or_default();
        let b = new.get(name).map(Vec::as_slice).unwrap_or_default();
        for (a, b) in a.iter().zip(b) {
            if !has_code(a, old_located) || !has_code(b, new_located) {
                continue;
            }
            pairs += 1;
            if a.level != b.level {
                moved.entry((a.level, b.level)).or_default().push(name.clone());
            }
            flag_changes(a, b, name, &mut flags);
        }
        let gone = a.iter().skip(b.len()).filter(|unit| has_code(unit, old_located));
        removed.extend(gone.map(|_| name.clone()));
        for unit in b.iter().skip(a.len()).filter(|unit| has_code(unit, new_located)) {
            added.push(name.clone());
            added_o0 += u64::from(unit.level == Level::O0);
        }
    }
    let mut groups: Vec<_> = moved.into_iter().collect();
    groups.sort_by_key(|((a, b), names)| (direction(*a, *b), usize::MAX - names.len()));
    for ((a, b), names) in groups {
        let count = names.len() as u64;
        let sentence = format!("{count} of {} went from {} to {}", units_word(pairs), a.flag(), b.flag());
        counted(ledger, "units", json!(a), json!(b), direction(a, b), sentence, (names, pairs));
    }
    for (what, names) in [("units.added", added), ("units.removed", removed)] {
        if names.is_empty() {
            continue;
        }
        let count = names.len() as u64;
        let word = if what == "units.added" { "added" } else { "removed" };
        let mut sentence = format!("{} {word}", units_word(count));
        let mut change = Neutral;
        if word == "added" && added_o0 > 0 {
            let _ = write!(sentence, ", {added_o0} of them -O0");
            change = Worse;
        }
        let (a, b) = if word == "added" { (Value::Null, json!(count)) } else { (json!(count), Value::Null) };
        counted(ledger, what, a, b, change, sentence, (names, count));
    }
    for ((flag, gained), names) in flags {
        let word = if gained { "gained" } else { "lost" };
        let sentence = format!("{} of {} {word} {flag}", names.len(), units_word(pairs));
        let (a, b) = if gained { (Value::Null, json!(flag)) } else { (json!(flag), Value::Null) };
        counted(ledger, &format!("flag:{flag}"), a, b, Neutral, sentence, (names, pairs));
    }
}

fn units_word(count: u64) -> String {
    format!("{count} unit{}", if count == 1 { "" } else { "s" })
}

fn counted(
    ledger: &mut Ledger,
    what: &str,
    old: Value,
    new: Value,
    direction: Direction,
    sentence: String,
    (mut names, of): (Vec<String>, u64),
) {
    let count = names.len() as u64;
    names.truncate(MOST_NAMES);
    let mut change = Change::new(what, old, new, direction, sentence);
    change.count = Some(count);
    change.of = Some(of);
    change.names = names;
    ledger.changes.push(change);
}

/// Recorded options that one of two units has and the other has not. Levels are compared by themselves.
fn flag_changes(a: &Unit, b: &Unit, name: &str, out: &mut BTreeMap<(String, bool), Vec<String>>) {
    // Where one compiler recorded nothing, its options are not known: that is no difference.
    if a.flags.is_empty() || b.flags.is_empty() {
        return;
    }
    let set = |unit: &Unit| -> BTreeSet<String> {
        unit.flags.iter().filter(|flag| is_compared(flag)).cloned().collect()
    };
    let (a, b) = (set(a), set(b));
    for (flag, gained) in a.difference(&b).map(|f| (f, false)).chain(b.difference(&a).map(|f| (f, true))) {
        out.entry((flag.clone(), gained)).or_default().push(name.to_owned());
    }
}

/// Whether an option says something about the code, and not only where it was built.
pub(super) fn is_compared(flag: &str) -> bool {
    flag.starts_with('-') && level_of(flag).is_none() && !is_path(flag)
}

/// Options that name directories of the build.
pub(super) fn is_path(flag: &str) -> bool {
    let is_map = flag.starts_with("-f") && flag.contains("-prefix-map=");
    is_map
        || ["-I", "-iquote", "-isystem", "-idirafter", "-L", "--sysroot=", "-fdebug-compilation-dir"]
            .iter()
            .any(|prefix| flag.starts_with(prefix))
}

/// Compares the number of units (where there are none, of functions) of each level. False if one side has nothing to
/// compare.
fn by_count(old: &Facts, new: &Facts, ledger: &mut Ledger) -> bool {
    let units = |facts: &Facts| facts.optimization.by_level.iter().any(|share| share.units > 0);
    let by_units = units(old) && units(new);
    let word = if by_units { "units" } else { "functions" };
    let shares = |facts: &Facts| -> BTreeMap<Level, u64> {
        let of = |share: &crate::facts::LevelShare| if by_units { share.units } else { share.functions };
        facts.optimization.by_level.iter().map(|s| (s.level, of(s))).filter(|(_, n)| *n > 0).collect()
    };
    if units(old) != units(new) {
        ledger.not_compared.push("levels by unit: only one side names its units".to_owned());
    }
    let (a, b) = (shares(old), shares(new));
    if a == b {
        return !a.is_empty();
    }
    if a.is_empty() || b.is_empty() {
        if units(old) == units(new) {
            ledger.not_compared.push(format!("levels by {word}: one side has none"));
        }
        return false;
    }
    let total = |map: &BTreeMap<Level, u64>| map.values().fold(0u64, |sum, n| sum.saturating_add(*n));
    let (a_total, b_total) = (total(&a), total(&b));
    let single =
        |map: &BTreeMap<Level, u64>| map.iter().next().filter(|_| map.len() == 1).map(|(l, n)| (*l, *n));
    if let (Some((from, count)), Some((to, others))) = (single(&a), single(&b)) {
        if from != to {
            let whole = if count == others { format!("all {count} {word}") } else { format!("all {word}") };
            let sentence = format!("{whole} went from {} to {}", from.flag(), to.flag());
            ledger.change(word, json!(from), json!(to), direction(from, to), sentence);
        }
        return true;
    }
    // Shares in hundredths of a per cent: a level is no worse only because there is more code of every kind.
    let share = |n: u64, all: u64| u128::from(n) * 10_000 / u128::from(all.max(1));
    let o0 = |map: &BTreeMap<Level, u64>| map.get(&Level::O0).copied().unwrap_or_default();
    let (was, is) = (o0(&a), o0(&b));
    let change = match share(is, b_total).cmp(&share(was, a_total)) {
        std::cmp::Ordering::Greater if is > was => Worse,
        std::cmp::Ordering::Less if is < was => Better,
        _ => Neutral,
    };
    let text = |map: &BTreeMap<Level, u64>| {
        let list: Vec<String> = map.iter().map(|(level, n)| format!("{n} {}", level.flag())).collect();
        list.join(", ")
    };
    // By functions the code's shape is counted, which a compiler's choices move a little: only -O0 counts there.
    if by_units || was != is {
        let sentence = format!("{word} by level: {} → {}", text(&a), text(&b));
        let what = format!("{word}.by_level");
        let mut change = Change::new(what, json!(a), json!(b), change, sentence);
        if !by_units {
            change.names = match change.direction {
                Worse => unoptimized(new),
                Better => unoptimized(old),
                Neutral => Vec::new(),
            };
        }
        ledger.changes.push(change);
    }
    true
}

/// Where code without optimization lies, as far as a stripped file tells.
fn unoptimized(facts: &Facts) -> Vec<String> {
    let runs = facts.functions.runs.iter().filter(|run| run.level == Level::O0).take(MOST_NAMES);
    let name = |run: &FunctionRun| {
        let name = run.module.as_ref().or(run.unit.as_ref()).or(run.name.as_ref());
        let name = name.map(|name| format!("{name} ")).unwrap_or_default();
        format!("{name}{:#x}-{:#x} ({} functions)", run.start, run.end, run.functions)
    };
    runs.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_neither_better_nor_worse() {
        assert_eq!(direction(Level::O2, Level::O0), Worse);
        assert_eq!(direction(Level::O0, Level::O1), Better);
        assert_eq!(direction(Level::O2, Level::Os), Worse);
        assert_eq!(direction(Level::O2, Level::Unknown), Neutral);
        assert_eq!(direction(Level::O2, Level::Optimized), Neutral);
        assert_eq!(direction(Level::Optimized, Level::O0), Worse);
        assert_eq!(direction(Level::O0, Level::Optimized), Better);
        assert_eq!(direction(Level::O3, Level::O3), Neutral);
    }

    #[test]
    fn directories_of_the_build_are_no_flags() {
        for flag in ["-ffile-prefix-map=/a=.", "-I", "-I/usr/include", "-O2", "src/core/nginx.c"] {
            assert!(!is_compared(flag), "{flag}");
        }
        for flag in ["-march=native", "-fstack-protector-strong", "-g", "-fprofile-use"] {
            assert!(is_compared(flag), "{flag}");
        }
    }
}
