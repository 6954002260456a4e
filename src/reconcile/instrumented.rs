//! Instrumentation and profile-guided optimization that compilers recorded among a unit's options.
//!
//! Recorded options see what leaves no trace in the linked file: sanitizers that only trap, a profile that was used.
//! The last of several options about the same thing is in force. GCC records `--coverage` as `-fprofile-arcs
//! -ftest-coverage` and `-pg` as `-p` (measured with GCC 9 to 16); clang records its command line.

use crate::evidence::{Held, Source, Strength};
use crate::facts::{Instrumentation, Unit, UnitKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Schemes that clang switches on by `-fsanitize=` and that are made for production: control-flow integrity, separate
/// stacks, memory tagging (clang documentation, "Control Flow Integrity", "Safe Stack", "Shadow Call Stack", "Memory Tagging").
fn is_hardening(name: &str) -> bool {
    let stem = name.split('-').next().unwrap_or(name);
    matches!(stem, "cfi" | "kcfi" | "memtag") || matches!(name, "safe-stack" | "shadow-call-stack")
}

/// What one unit's options switch on, and by which option.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked<'a> {
    sanitizers: Vec<&'a str>,
    coverage: Option<&'a str>,
    profiling: Option<&'a str>,
    profile_used: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn of<S: AsRef<str>>(flags: &'a [S]) -> Self {
        let mut out = Self::default();
        for flag in flags.iter().map(AsRef::as_ref) {
            if let Some(list) = flag.strip_prefix("-fsanitize=") {
                // Clang's `-fsanitize=fuzzer-no-link` and the like are kept as they are named.
                for name in list.split(',').filter(|name| !name.is_empty() && !is_hardening(name)) {
                    if !out.sanitizers.contains(&name) {
                        out.sanitizers.push(name);
                    }
                }
            } else if let Some(list) = flag.strip_prefix("-fno-sanitize=") {
                let off: Vec<&str> = list.split(',').collect();
                out.sanitizers.retain(|name| !off.contains(&"all") && !off.contains(name));
            } else {
                out.switch(flag);
            }
        }
        out
    }

    fn switch(&mut self, flag: &'a str) {
        let stem = flag.split_once('=').map_or(flag, |(stem, _)| stem);
        match stem {
            "--coverage"
            | "-coverage"
            | "-ftest-coverage"
            | "-fprofile-arcs"
            | "-fcoverage-mapping"
            | "-fcondition-coverage" => self.coverage = Some(flag),
            "-fno-test-coverage" | "-fno-profile-arcs" | "-fno-coverage-mapping" => self.coverage = None,
            "-p" | "-pg" | "-finstrument-functions" | "-fprofile-generate" | "-fprofile-instr-generate" => {
                self.profiling = Some(flag);
            }
            "-fno-instrument-functions" | "-fno-profile-generate" | "-fno-profile-instr-generate" => {
                self.profiling = None;
            }
            "-fprofile-use" | "-fprofile-instr-use" | "-fauto-profile" | "-fprofile-sample-use" => {
                self.profile_used = Some(flag);
            }
            "-fno-profile-use"
            | "-fno-profile-instr-use"
            | "-fno-auto-profile"
            | "-fno-profile-sample-use" => {
                self.profile_used = None;
            }
            _ => {}
        }
    }
}

/// Adds what units recorded to what the file shows, and says whether a profile guided the optimizer: `false` only if
/// every judged unit recorded its options and none names one. A kernel is compiled with `-pg` for its tracer, which patches
/// the calls out.
pub fn recorded(units: &[Unit], kernel: bool, seen: &mut Instrumentation) -> Held<bool> {
    let judged = || units.iter().filter(|unit| unit.kind == UnitKind::Source);
    let mut runs: Vec<(&Arc<Vec<String>>, u64)> = Vec::new();
    for unit in judged().filter(|unit| unit.flags_recorded) {
        match runs.last_mut() {
            // Units of one program mostly share their options.
            Some((flags, count)) if Arc::ptr_eq(flags, &unit.flags) => *count += 1,
            _ => runs.push((&unit.flags, 1)),
        }
    }
    let all: u64 = runs.iter().map(|(_, count)| count).sum();
    let mut sanitizers: BTreeMap<&str, u64> = BTreeMap::new();
    let [mut coverage, mut profiling, mut profile_used] = [None::<(&str, u64)>; 3];
    for (flags, count) in runs {
        let asked = Asked::of(flags);
        for name in asked.sanitizers {
            *sanitizers.entry(name).or_default() += count;
        }
        for (sum, option) in [
            (&mut coverage, asked.coverage),
            (&mut profiling, asked.profiling),
            (&mut profile_used, asked.profile_used),
        ] {
            if let Some(option) = option {
                let (_, units) = sum.get_or_insert((option, 0));
                *units += count;
            }
        }
    }
    let words = |option: &str, units: u64| {
        format!("the compiler wrote {option} in {units} of {all} unit{}", if all == 1 { "" } else { "s" })
    };
    if !sanitizers.is_empty() {
        let said: Vec<String> =
            sanitizers.iter().map(|(name, units)| words(&format!("-fsanitize={name}"), *units)).collect();
        let mut names = seen.sanitizers.value.take().unwrap_or_default();
        names.extend(sanitizers.into_keys().map(str::to_owned));
        names.sort_unstable();
        names.dedup();
        seen.sanitizers = also_recorded(names, &seen.sanitizers, said.join("; "));
    }
    if let Some((option, units)) = coverage {
        seen.coverage = also_recorded(true, &seen.coverage, words(option, units));
    }
    if let Some((option, units)) = profiling.filter(|_| !kernel) {
        seen.profiling = also_recorded(true, &seen.profiling, words(option, units));
    }
    if let Some((option, units)) = profile_used {
        Held::new(true, Strength::Recorded, Source::DwarfProducer).seen(words(option, units))
    } else if all > 0 && judged().all(|unit| unit.flags_recorded) {
        Held::new(false, Strength::Recorded, Source::DwarfProducer)
    } else {
        Held::unknown()
    }
}

/// A value that units recorded, besides what else saw it.
fn also_recorded<T, U>(value: T, before: &Held<U>, words: String) -> Held<T> {
    let mut out = Held::new(value, Strength::Recorded, Source::DwarfProducer).seen(words);
    // A file that shows nothing of it does not agree.
    if before.seen.is_some() {
        out.sources.extend(before.sources.iter().copied().filter(|source| *source != Source::DwarfProducer));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(flags: &'a [&'a str]) -> Asked<'a> {
        Asked::of(flags)
    }

    #[test]
    fn the_last_option_about_the_same_thing_is_in_force() {
        assert_eq!(asked(&["-fsanitize=address,undefined"]).sanitizers, ["address", "undefined"]);
        assert_eq!(
            asked(&["-fsanitize=address,undefined", "-fno-sanitize=address"]).sanitizers,
            ["undefined"]
        );
        assert!(asked(&["-fsanitize=undefined", "-fno-sanitize=all"]).sanitizers.is_empty());
        assert!(
            asked(&["-fsanitize=cfi-vcall,safe-stack,kcfi", "-fsanitize=memtag-heap"]).sanitizers.is_empty()
        );
        assert_eq!(asked(&["-fprofile-arcs", "-ftest-coverage"]).coverage, Some("-ftest-coverage"));
        assert_eq!(asked(&["--coverage", "-fno-profile-arcs"]).coverage, None);
        assert_eq!(asked(&["-p"]).profiling, Some("-p"));
        assert_eq!(asked(&["-fprofile-generate=/tmp"]).profiling, Some("-fprofile-generate=/tmp"));
        assert_eq!(asked(&["-fprofile-use=/x"]).profile_used, Some("-fprofile-use=/x"));
        // A pass plug-in, a parameter and a definition that merely contain the words.
        assert_eq!(asked(&["-DX=-fsanitize=address", "-pipe", "-fprofile-update=atomic"]), Asked::default());
    }

    #[test]
    fn what_only_traps_is_recorded_and_what_is_seen_twice_is_held_by_both() {
        let path = crate::evidence::testing::path("trap-cov.o");
        let subject = crate::target::Subject::new(path, crate::facts::Origin::File);
        let facts = crate::audit::audit(&subject, &crate::audit::Options::default());
        let found = &facts.instrumentation;
        assert_eq!(found.sanitizers.value.as_deref(), Some(&["undefined".to_owned()][..]));
        assert_eq!(found.sanitizers.sources, [Source::DwarfProducer]);
        assert_eq!((found.coverage.value, found.coverage.strength), (Some(true), Strength::Recorded));
        assert_eq!(found.coverage.sources, [Source::DwarfProducer, Source::Symbols]);
        assert_eq!(found.coverage.seen.as_deref(), Some("the compiler wrote -ftest-coverage in 1 of 1 unit"));
        assert_eq!(found.profiling.value, Some(false));
        assert_eq!((facts.pgo.value, facts.pgo.strength), (Some(false), Strength::Recorded));
    }

    #[test]
    fn the_hook_of_a_kernels_tracer_is_no_profiling() {
        let mut unit = crate::rules::testing::nginx(1, crate::compiler::Level::O2).units.unwrap().remove(0);
        unit.flags = Arc::new(vec!["-O2".to_owned(), "-p".to_owned()]);
        unit.flags_recorded = true;
        for kernel in [false, true] {
            let mut seen = Instrumentation::default();
            recorded(std::slice::from_ref(&unit), kernel, &mut seen);
            assert_eq!(seen.profiling.value, (!kernel).then_some(true));
        }
    }
}
