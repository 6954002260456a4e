//! Compiler options as recorded or declared: splitting them, and the level they ask for.
//!
//! GCC writes its options into `DW_AT_producer` one after the other without any quoting, so that
//! `-frandom-seed="a -O0 b"` reads `-frandom-seed=a -O0 b`: splitting cannot be certain, and what is
//! in doubt is said to be. Clang's recorded command line escapes white space with a backslash.

use super::Level;
use crate::facts::Bound;

mod split;
pub use split::{group, split_escaped, split_raw, split_shell};

/// One option with its argument, as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opt {
    /// The option; an argument that was recorded as a word of its own follows after one space.
    pub text: String,
    /// Whether it may be part of another option's unquoted value, or have taken in a word that is
    /// not its own.
    pub ambiguous: bool,
}

impl Opt {
    /// An option that is not in doubt.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ambiguous: false }
    }
}

/// The options of a unit, or the fact that its compiler wrote none down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// All that the compiler records, in order.
    Known(Vec<Opt>),
    /// The compiler wrote no options, which says nothing about what they were.
    NotRecorded,
}

impl Recorded {
    /// The options; none where none were recorded.
    pub fn list(&self) -> &[Opt] {
        match self {
            Self::Known(options) => options,
            Self::NotRecorded => &[],
        }
    }

    /// Whether the compiler wrote its options down.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }
}

/// The optimization level that a list of options asks for, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelWord {
    /// The level in force; `Unknown` where the words do not tell (then `note` or `ambiguous` says why).
    pub level: Level,
    /// Exact, but for an option whose meaning changed between versions of a compiler.
    pub bound: Bound,
    /// The `-O` options that a later one overrode, in order, as written.
    pub overridden: Vec<String>,
    /// The `-O` option in force, as written.
    pub winner: Option<String>,
    /// Set where an unquoted value may have swallowed an `-O`, and that would change the level.
    pub ambiguous: Option<String>,
    /// Anything else a reader must know.
    pub note: Option<String>,
}

impl LevelWord {
    /// A level that the words do not tell, and why.
    pub fn unknown(note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..Self::of(Level::Unknown) }
    }

    /// A level without a word for it.
    pub fn of(level: Level) -> Self {
        Self { level, bound: Bound::Exact, overridden: Vec::new(), winner: None, ambiguous: None, note: None }
    }
}

/// What it means that a list of options has no `-O`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutLevel {
    /// The compiler's default is not to optimize (GCC, clang).
    Unoptimized,
    /// Nothing follows, for the reason given.
    Unknown(&'static str),
}

/// The level an `-O` option names, or `None` if the text is another option.
///
/// `-O` alone is `-O1`; a number above 3 is 3 (GCC manual, "Optimize Options"; both compilers accept
/// such numbers). `--optimize` is the long spelling of both.
pub fn level_of(option: &str) -> Option<Level> {
    let value = option
        .strip_prefix("--optimize=")
        .or_else(|| if option == "--optimize" { Some("") } else { option.strip_prefix("-O") })?;
    match value {
        "" => Some(Level::O1),
        "s" => Some(Level::Os),
        "z" => Some(Level::Oz),
        "g" => Some(Level::Og),
        "fast" => Some(Level::Ofast),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => Some(match digits.trim_start_matches('0') {
            "" => Level::O0,
            "1" => Level::O1,
            "2" => Level::O2,
            _ => Level::O3,
        }),
        _ => None,
    }
}

/// Whether an option handed to clang's inner compiler sets the level: an `-O`, or the switch that leaves all passes out.
/// It comes after the driver's own options, wherever it stands.
pub fn is_inner_level(option: &str) -> bool {
    WITHOUT_PASSES.contains(&option) || option.strip_prefix("-Xclang ").and_then(level_of).is_some()
}

/// Whether a word begins like a level and is none. No compiler accepts one (GCC manual, "Optimize Options"), so that the
/// record is damaged, or was never expanded (`-O$(LEVEL)`). Clang's drivers know `-ObjC`.
fn is_no_level(word: &str) -> bool {
    word.starts_with("-O") && !word.starts_with("-ObjC") && level_of(word).is_none()
}

/// The level an option contributes: an `-O`, also one with a stray word attached, or one handed to
/// clang's inner compiler, where it comes after the driver's own. What is no level that anybody can name is `Unknown`.
fn contribution(option: &Opt) -> Option<(Level, String)> {
    let text = option.text.strip_prefix("-Xclang ").unwrap_or(&option.text);
    let word = text.split(' ').next().unwrap_or(text);
    let level = level_of(word).or_else(|| is_no_level(word).then_some(Level::Unknown))?;
    Some((level, word.to_owned()))
}

/// Clang's inner options that leave the code as the front end made it, at any level (`clang -cc1 -help`).
const WITHOUT_PASSES: &[&str] = &["-Xclang -disable-llvm-passes", "-Xclang -disable-llvm-optzns"];

/// The level in force: the last `-O` wins.
///
/// Where an `-O` is in doubt and the outcome depends on it, the level is `Unknown` and `ambiguous` says so.
pub fn level(options: &[Opt], without: WithoutLevel) -> LevelWord {
    let (inner, outer): (Vec<&Opt>, Vec<&Opt>) =
        options.iter().partition(|option| option.text.starts_with("-Xclang "));
    let words: Vec<(Level, String, bool)> = outer
        .into_iter()
        .chain(inner)
        .filter_map(|option| contribution(option).map(|(level, word)| (level, word, option.ambiguous)))
        .collect();
    let Some((last, earlier)) = words.split_last() else {
        return match without {
            WithoutLevel::Unoptimized => LevelWord::of(Level::O0),
            WithoutLevel::Unknown(why) => LevelWord::unknown(why),
        };
    };
    let mut word = LevelWord {
        overridden: earlier.iter().map(|(_, text, _)| text.clone()).collect(),
        winner: Some(last.1.clone()),
        ..LevelWord::of(last.0)
    };
    if last.0 == Level::Unknown {
        word.note = Some(format!("{} names no level", last.1));
    }
    let off = options.iter().find(|option| WITHOUT_PASSES.contains(&option.text.as_str()));
    if let Some(off) = off.filter(|_| last.0 != Level::O0) {
        let overridden = words.iter().map(|(_, text, _)| text.clone()).collect();
        return LevelWord { overridden, winner: Some(off.text.clone()), ..LevelWord::of(Level::O0) };
    }
    // Each -O in doubt either counts or does not. The possible outcomes are those in doubt at the end
    // of the list, and the last certain one before them (or the default, if there is none).
    let in_doubt = words.iter().rev().take_while(|(_, _, doubt)| *doubt).count();
    if in_doubt > 0 {
        let certain = words.len().checked_sub(in_doubt + 1).and_then(|i| words.get(i)).map(|w| w.0);
        let fallback = certain.unwrap_or(match without {
            WithoutLevel::Unoptimized => Level::O0,
            WithoutLevel::Unknown(_) => Level::Unknown,
        });
        let same = words.iter().rev().take(in_doubt).all(|w| w.0 == last.0) && fallback == last.0;
        if !same {
            word.level = Level::Unknown;
            word.ambiguous = Some(format!(
                "{} may be part of an option's value, which the compiler records without quotes; without it \
                 the level would be {fallback}",
                last.1
            ));
        }
    }
    word
}

/// The level that declared flags ask for: the value of a `CFLAGS` or `--with-cc-opt`, split as a shell does.
/// Without an `-O` they say nothing, since what they are added to may hold one.
pub fn declared_level(text: &str) -> LevelWord {
    level(&group(&split_shell(text)), WithoutLevel::Unknown("the declared flags hold no -O"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn raw(text: &str) -> LevelWord {
        level(&split_raw(text), WithoutLevel::Unoptimized)
    }

    #[test]
    fn every_spelling_of_a_level() {
        for (option, expected) in [
            ("-O", Level::O1),
            ("-O0", Level::O0),
            ("-O00", Level::O0),
            ("-O1", Level::O1),
            ("-O2", Level::O2),
            ("-O3", Level::O3),
            ("-O4", Level::O3),
            ("-O9", Level::O3),
            ("-O99999999999999999999", Level::O3),
            ("-Os", Level::Os),
            ("-Oz", Level::Oz),
            ("-Og", Level::Og),
            ("-Ofast", Level::Ofast),
            ("--optimize", Level::O1),
            ("--optimize=2", Level::O2),
            ("--optimize=s", Level::Os),
        ] {
            assert_eq!(level_of(option), Some(expected), "{option}");
        }
        for other in ["-Ofas", "-Oss", "-O-1", "-o0", "--optimized", "-fno-O2", "O2", "-Wl,-O1", ""] {
            assert_eq!(level_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_last_level_wins_and_the_others_are_told() {
        let word = raw("-mtune=generic -march=x86-64 -g -O -O2 -O0 -fPIC");
        assert_eq!(word.level, Level::O0);
        assert_eq!(word.overridden, ["-O", "-O2"]);
        assert_eq!(word.winner.as_deref(), Some("-O0"));
        assert_eq!(word.ambiguous, None);
        assert_eq!(raw("-O1 -O2").level, Level::O2);
        assert_eq!(raw("-g -march=x86-64-v2").level, Level::O0);
    }

    #[test]
    fn what_begins_like_a_level_and_is_none_is_no_verdict() {
        for text in ["-O2 -O1\u{fffd}\u{fffd} -g", "-O3 -O", "-O3 -O-1", "-O2 -O$(LEVEL)"] {
            let word = raw(text);
            if text.ends_with("-O") {
                assert_eq!(word.level, Level::O1);
                continue;
            }
            assert_eq!(word.level, Level::Unknown, "{text}");
            assert!(word.note.is_some_and(|note| note.contains("names no level")), "{text}");
        }
        // A good one after it wins, and what clang's driver calls -ObjC is no level.
        assert_eq!(raw("-Ox -O2").level, Level::O2);
        assert_eq!(raw("-O2 -ObjC++").level, Level::O2);
    }

    #[test]
    fn a_level_inside_an_unquoted_value_is_no_verdict() {
        let word = raw("-O2 -frandom-seed=a -O0 b");
        assert_eq!(word.level, Level::Unknown);
        assert!(word.ambiguous.as_deref().is_some_and(|why| why.contains("-O0") && why.contains("O2")));
        // The doubt reaches back to the first option that can hold free text.
        assert_eq!(raw("-O2 -frandom-seed=a -O0 -g -O3 b").level, Level::Unknown);
        // What follows the stray word may be part of the value, too.
        assert_eq!(raw("-frandom-seed=a -O0 b -O2").level, Level::Unknown);
        assert_eq!(raw("-O0 -g -frandom-seed=a b -O2").level, Level::Unknown);
        assert_eq!(raw("-O2 -g -frandom-seed=a b -O0").level, Level::Unknown);
        // The options before it are certain, and so is what they say if nothing behind it could say otherwise.
        assert_eq!(raw("-O2 -frandom-seed=a b -g").level, Level::O2);
        assert_eq!(raw("-O2 -frandom-seed=a b -O2").level, Level::O2);
        // Whatever the value swallowed, the outcome is the same.
        assert_eq!(raw("-O2 -frandom-seed=a -O2 b").level, Level::O2);
        assert_eq!(raw("-g -frandom-seed=a -O0 b").level, Level::O0);
        // A stray word after the level itself, with no free text before it.
        assert_eq!(raw("-O2 stray").level, Level::Unknown);
    }

    #[test]
    fn a_level_for_the_linker_or_assembler_is_not_the_code_s() {
        let words = ["-O2", "-Xlinker", "-O0", "-Wl,-O1", "-Xassembler", "-O0", "-mllvm", "-O0", "-o", "-O0"];
        let word = level(&group(&words), WithoutLevel::Unoptimized);
        assert_eq!((word.level, word.overridden.len()), (Level::O2, 0));
    }

    #[test]
    fn a_level_for_clang_s_inner_compiler_comes_last() {
        let words = ["-Xclang", "-O0", "-O2"];
        assert_eq!(level(&group(&words), WithoutLevel::Unoptimized).level, Level::O0);
    }

    #[test]
    fn a_level_counts_for_nothing_where_clang_s_passes_are_switched_off() {
        for option in ["-disable-llvm-passes", "-disable-llvm-optzns"] {
            let word = level(&group(&["-O2", "-Xclang", option]), WithoutLevel::Unoptimized);
            assert_eq!((word.level, word.overridden), (Level::O0, vec!["-O2".to_owned()]));
            assert_eq!(word.winner, Some(format!("-Xclang {option}")));
            let word = level(&group(&["-O0", "-Xclang", option]), WithoutLevel::Unoptimized);
            assert_eq!(word.level, Level::O0);
        }
        let word = level(&group(&["-O0", "-Xclang", "-disable-O0-optnone"]), WithoutLevel::Unoptimized);
        assert_eq!(word.level, Level::O0);
    }

    #[test]
    fn declared_flags_without_a_level_say_nothing() {
        assert_eq!(declared_level("-g -O2 '-DX=a -O0'").level, Level::O2);
        assert_eq!(declared_level("-g").level, Level::Unknown);
    }

    proptest! {
        #[test]
        fn splitting_never_panics(text in "\\PC{0,200}") {
            for options in [split_raw(&text), group(&split_escaped(&text)), group(&split_shell(&text))] {
                let _ = level(&options, WithoutLevel::Unoptimized);
            }
        }

        #[test]
        fn the_last_of_any_levels_wins(words in proptest::collection::vec(
            prop_oneof!["-O[0-9sgz]?", "-f[a-z-]{1,8}", "-m[a-z0-9=]{1,8}", "-D _FORTIFY_SOURCE=[123]"], 0..30)) {
            let word = raw(&words.join(" "));
            let levels: Vec<&String> = words.iter().filter(|w| level_of(w).is_some()).collect();
            let expected = levels.last().and_then(|w| level_of(w)).unwrap_or(Level::O0);
            prop_assert_eq!(word.level, expected);
            prop_assert_eq!(word.overridden.len(), levels.len().saturating_sub(1));
            prop_assert_eq!(word.ambiguous, None);
        }
    }
}
