//! Comparing flags as people spell them with flags as compilers record them.

use super::check::{Context, UnitHit, listed};
use super::levels;
use crate::compiler::options::level_of;
use crate::compiler::recorded_form::{is_native, normalise};
use crate::compiler::{Family, Level, RecordedForm, canonical, recorded_by};
use crate::facts::{Facts, Unit, UnitKind};
use crate::policy::{Matcher, Pattern};
use crate::wording::{grouped, plural};
use std::collections::HashMap;

/// What a unit's recorded options say about a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It was given, and nothing later took it back.
    Given,
    /// It was not given.
    NotGiven,
    /// The options were not recorded.
    Nothing,
}

/// A unit with its flags made ready for comparison.
#[derive(Debug)]
pub struct Flagged<'a> {
    /// The unit.
    pub unit: &'a Unit,
    family: Family,
    major: Option<u64>,
    in_force: Vec<String>,
}

/// Units whose flags are looked at: compiled from source, with code in the file.
pub fn units<'a>(context: &Context<'a>) -> Vec<Flagged<'a>> {
    levels::own_units(context.facts).into_iter().map(Flagged::new).collect()
}

/// Why no compiler's record can ever tell about a flag, if that is so for GCC, the one that drops most.
pub fn never_recorded(pattern: &Pattern) -> Option<String> {
    if matches!(pattern.matcher, Matcher::Regex(_)) {
        return None;
    }
    match canonical(&pattern.text) {
        RecordedForm::NeverRecorded(why) => Some(why),
        _ => None,
    }
}

impl<'a> Flagged<'a> {
    fn new(unit: &'a Unit) -> Self {
        let name = unit.compiler.as_deref().unwrap_or_default();
        let (family, version) = name.split_once(' ').unwrap_or((name, ""));
        let family = match family {
            "gcc" => Family::Gcc,
            "clang" => Family::Clang,
            "rustc" => Family::Rustc,
            "go" => Family::Go,
            _ => Family::Unknown,
        };
        let major = version.split('.').next().and_then(|number| number.parse().ok());
        Self { unit, family, major, in_force: in_force(&unit.flags) }
    }

    /// What the unit says about a flag of the policy.
    pub fn says(&self, pattern: &Pattern) -> Says {
        let unit = self.unit;
        // The level is known from more than the options, and a later -O takes an earlier one back.
        if level_of(&pattern.text).is_some() || pattern.text.starts_with("-O") {
            return match unit.level {
                Level::Unknown | Level::Optimized => Says::Nothing,
                level => answer(level_of(&pattern.text) == Some(level) || pattern.matches(&level.flag())),
            };
        }
        if !unit.flags_recorded {
            return Says::Nothing;
        }
        // Whatever the form, a flag that stands there as written was given.
        let as_written = self.in_force.iter().any(|flag| matches(pattern, flag));
        if matches!(pattern.matcher, Matcher::Regex(_)) {
            return answer(as_written);
        }
        match recorded_by(&pattern.text, self.family, self.major) {
            RecordedForm::NativeCpu => answer(as_written || is_native(&unit.flags)),
            RecordedForm::Flags(texts) => answer(
                as_written || texts.iter().all(|text| self.in_force.iter().any(|flag| same(text, flag))),
            ),
            RecordedForm::NeverRecorded(_) if as_written => Says::Given,
            RecordedForm::NeverRecorded(_) => Says::Nothing,
        }
    }
}

fn answer(given: bool) -> Says {
    if given { Says::Given } else { Says::NotGiven }
}

/// Whether a recorded form, which may hold globs, is this flag.
fn same(text: &str, flag: &str) -> bool {
    if text == flag {
        return true;
    }
    text.contains(['*', '?', '[', '{'])
        && globset::Glob::new(text).is_ok_and(|glob| glob.compile_matcher().is_match(flag))
}

/// Whether a pattern matches a flag: as a whole, without the space that some compilers put before an argument, or, for a
/// list in a value (`-fsanitize=address,undefined`), one member of it.
fn matches(pattern: &Pattern, flag: &str) -> bool {
    if pattern.matches(flag) {
        return true;
    }
    if let Some((name, argument)) = flag.split_once(' ')
        && (pattern.matches(&format!("{name}{argument}")) || pattern.matches(&format!("{name}={argument}")))
    {
        return true;
    }
    match flag.split_once('=') {
        Some((name @ ("-fsanitize" | "-fno-sanitize"), values)) if values.contains(',') => {
            values.split(',').any(|value| pattern.matches(&format!("{name}={value}")))
        }
        _ => false,
    }
}

/// The flags that nothing later takes back, in one spelling: of `-fX … -fno-X` only the latter is in force.
fn in_force(flags: &[String]) -> Vec<String> {
    let flags: Vec<String> = flags.iter().map(|flag| normalise(flag)).collect();
    let mut last: HashMap<String, bool> = HashMap::new();
    for flag in &flags {
        if let Some((stem, on)) = polarity(flag) {
            last.insert(stem, on);
        }
    }
    let mut kept: Vec<String> = Vec::new();
    for flag in flags {
        if let Some(list) = flag.strip_prefix("-fno-sanitize=") {
            // Only the sanitizers named are taken back.
            let gone: Vec<&str> = list.split(',').collect();
            kept = kept.into_iter().filter_map(|given| without(&given, &gone)).collect();
        } else if polarity(&flag).is_some_and(|(stem, on)| last.get(&stem) != Some(&on)) {
            continue;
        }
        kept.push(flag);
    }
    kept
}

/// A `-fsanitize=` list without some of its members; `None` if nothing is left.
fn without(flag: &str, gone: &[&str]) -> Option<String> {
    let Some(list) = flag.strip_prefix("-fsanitize=") else { return Some(flag.to_owned()) };
    let left: Vec<&str> =
        list.split(',').filter(|value| !gone.contains(value) && !gone.contains(&"all")).collect();
    if left.is_empty() { None } else { Some(format!("-fsanitize={}", left.join(","))) }
}

/// What a flag switches, and whether it switches it on; `None` for flags that have no opposite.
fn polarity(flag: &str) -> Option<(String, bool)> {
    let name = flag.split(['=', ' ']).next().unwrap_or(flag);
    if matches!(name, "-fsanitize" | "-fno-sanitize") {
        return None;
    }
    let kind = name.get(..2).filter(|kind| matches!(*kind, "-f" | "-m"))?;
    let rest = name.get(2..)?;
    let (switched, on) = rest.strip_prefix("no-").map_or((rest, true), |off| (off, false));
    // All strengths of the protector are taken back by one word.
    let stem = if switched.starts_with("stack-protector") { "stack-protector" } else { switched };
    Some((format!("{kind}{stem}"), on))
}

/// Why the flags of these units are not known, for a message.
pub fn unrecorded(units: &[UnitHit<'_>], total: usize, facts: &Facts) -> String {
    if facts.units.as_deref().unwrap_or_default().is_empty() {
        return "no unit records its options".to_owned();
    }
    let skeletons = units.iter().filter(|hit| hit.unit.kind == UnitKind::Skeleton).count();
    let number = units.len() as u64;
    let verb = if number == 1 { "records" } else { "record" };
    let base = format!("{} of {} {verb} no options", grouped(number), plural(total as u64, "unit"));
    if skeletons > 0 { format!("{base} (.dwo files missing)") } else { base }
}

/// Names of patterns for a message.
pub fn names(patterns: &[&Pattern]) -> String {
    listed(patterns.iter().map(|pattern| pattern.text.as_str()), 4)
}

/// What the file itself tells about a flag of which no record is left, where it leaves a trace of its own.
pub fn trace(facts: &Facts, pattern: &Pattern) -> Option<bool> {
    let text = pattern.text.as_str();
    let instrumentation = &facts.instrumentation;
    if let Some(which) = text.strip_prefix("-fsanitize=") {
        let found = instrumentation.sanitizers.value.as_ref()?;
        let seen = if which == "*" { !found.is_empty() } else { found.iter().any(|name| name == which) };
        // Only those that cannot do without their run-time library are known not to be there.
        let shows = matches!(which, "address" | "hwaddress" | "memory" | "thread" | "leak");
        return if seen { Some(true) } else { shows.then_some(false) };
    }
    match text {
        "--coverage" | "-coverage" | "-fprofile-arcs" | "-ftest-coverage" => instrumentation.coverage.value,
        "-pg" | "-p" => instrumentation.profiling.value,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{glob, unit};

    fn with(flags: &[&str]) -> Unit {
        let mut unit = unit("a.c", Level::O2);
        unit.flags = std::sync::Arc::new(flags.iter().map(|flag| (*flag).to_owned()).collect());
        unit
    }

    fn answer(flags: &[&str], pattern: &str) -> Says {
        let pattern = glob(pattern, 1).value;
        Flagged::new(&with(flags)).says(&pattern)
    }

    #[test]
    fn flags_are_compared_in_recorded_form() {
        assert_eq!(answer(&["-fprofile-arcs", "-ftest-coverage"], "--coverage"), Says::Given);
        assert_eq!(answer(&["-fprofile-arcs"], "--coverage"), Says::NotGiven);
        assert_eq!(answer(&["-p"], "-pg"), Says::Given);
        assert_eq!(
            answer(
                &[
                    "-march=znver3",
                    "--param=l1-cache-size=48",
                    "-mno-a",
                    "-mno-b",
                    "-mno-c",
                    "-mno-d",
                    "-mno-e",
                    "-mno-f",
                    "-mno-g",
                    "-mno-h"
                ],
                "-march=native"
            ),
            Says::Given
        );
        assert_eq!(answer(&["-march=x86-64", "-mtune=generic"], "-march=native"), Says::NotGiven);
        assert_eq!(answer(&["-g"], "-DNDEBUG"), Says::Nothing);
        assert_eq!(answer(&["-fsanitize=address,undefined"], "-fsanitize=undefined"), Says::Given);
        assert_eq!(answer(&["-fsanitize=address"], "-fsanitize=*"), Says::Given);
        assert_eq!(answer(&["-fcf-protection=full"], "-fcf-protection"), Says::Given);
    }

    #[test]
    fn what_a_later_flag_takes_back_is_not_in_force() {
        assert_eq!(
            answer(&["-fstack-protector-strong", "-fno-stack-protector"], "-fstack-protector-strong"),
            Says::NotGiven
        );
        assert_eq!(
            answer(&["-fno-stack-protector", "-fstack-protector-strong"], "-fstack-protector-strong"),
            Says::Given
        );
        assert_eq!(
            answer(&["-fsanitize=address,undefined", "-fno-sanitize=undefined"], "-fsanitize=undefined"),
            Says::NotGiven
        );
        assert_eq!(answer(&["-fsanitize=address", "-fno-sanitize=all"], "-fsanitize=*"), Says::NotGiven);
        assert_eq!(answer(&["-O3", "-O2"], "-O3"), Says::NotGiven);
    }

    #[test]
    fn levels_are_compared_as_levels() {
        let mut none = with(&["-g"]);
        none.level = Level::O0;
        let pattern = glob("-O0", 1).value;
        assert_eq!(Flagged::new(&none).says(&pattern), Says::Given, "no -O is -O0");
        assert_eq!(answer(&["-O2"], "-O[23]"), Says::Given);
        none.level = Level::Unknown;
        assert_eq!(Flagged::new(&none).says(&pattern), Says::Nothing);
    }

    #[test]
    fn clang_records_what_gcc_drops() {
        let mut clang = with(&["-D NDEBUG"]);
        clang.compiler = Some("clang 16.0.6".into());
        let pattern = glob("-DNDEBUG", 1).value;
        assert_eq!(Flagged::new(&clang).says(&pattern), Says::Given);
        clang.flags = std::sync::Arc::default();
        assert_eq!(Flagged::new(&clang).says(&pattern), Says::NotGiven);
        clang.flags_recorded = false;
        assert_eq!(Flagged::new(&clang).says(&pattern), Says::Nothing);
    }
}
