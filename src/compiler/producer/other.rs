//! Compilers and assemblers with a producer of their own form.

use super::{
    Family, Level, LevelWord, Producer, Recorded, WithoutLevel, level, split_at_options, version_of,
};
use crate::compiler::options::{Opt, split_raw};

/// One form of producer: understands a text, or says that it is not of that form.
type Form = fn(&str) -> Option<Producer>;

/// All forms but those of GCC and clang. A new compiler is a function and a line here.
const FORMS: &[Form] = &[go, rustc, intel, arm, swift, zig, ldc, dmd, tcc, nasm, yasm];

pub(super) fn parse(text: &str) -> Option<Producer> {
    FORMS.iter().find_map(|form| form(text))
}

/// `Go cmd/compile go1.24.4; -N -l regabi`: after the semicolon the flags that differ from the default, and then
/// experiments. `-N` switches the optimizer off; so without it the code is optimized.
fn go(text: &str) -> Option<Producer> {
    let rest = text.strip_prefix("Go cmd/compile ")?;
    let (name, flags) = match rest.split_once(';') {
        Some((name, flags)) => (name, Some(flags)),
        None => (rest, None),
    };
    let name = name.trim();
    let version = name.trim_start_matches("devel ").strip_prefix("go").and_then(version_of);
    // Flags have been part of the producer since Go 1.11.
    let records = flags.is_some() || version.as_deref().is_some_and(|v| minor(v) >= (1, 11));
    let options: Vec<Opt> =
        flags.unwrap_or("").split_ascii_whitespace().filter(|w| w.starts_with('-')).map(Opt::new).collect();
    let level =
        if records { go_level(&options) } else { LevelWord::unknown("Go before 1.11 records no flags") };
    Some(Producer {
        language: Some("Go".to_owned()),
        options: if records { Recorded::Known(options) } else { Recorded::NotRecorded },
        ..Producer::bare(Family::Go, version, text.split(';').next().unwrap_or(text), level)
    })
}

fn minor(version: &str) -> (u64, u64) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// The level of Go code by the compiler's flags: `-N` disables optimization (`go doc cmd/compile`), and there is
/// no other level.
pub(crate) fn go_level(options: &[Opt]) -> LevelWord {
    let mut word = LevelWord::of(Level::Optimized);
    for option in options {
        let value = match option.text.trim_start_matches('-').split_once('=') {
            Some(("N", value)) => value,
            None if option.text == "-N" || option.text == "--N" => "1",
            _ => continue,
        };
        let off = matches!(value, "0" | "false" | "f" | "F" | "False" | "FALSE");
        word.level = if off { Level::Optimized } else { Level::O0 };
        word.winner = Some(option.text.clone());
    }
    if word.level == Level::Optimized {
        word.winner = None;
        word.note = Some("Go's compiler records -N when it does not optimize, and did not".to_owned());
    }
    word
}

/// `clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))`; also other code generators of rustc.
fn rustc(text: &str) -> Option<Producer> {
    let at = text.find("(rustc ")?;
    let rest = text.get(at + "(rustc ".len()..)?;
    let version = version_of(rest.strip_prefix("version ").unwrap_or(rest));
    Some(Producer {
        language: Some("Rust".to_owned()),
        ..Producer::bare(Family::Rustc, version, text, LevelWord::unknown("rustc records no options"))
    })
}

/// `Intel(R) C Intel(R) 64 Compiler … Version 19.0.5.281 Build 20190815` and `Intel(R) oneAPI DPC++/C++ Compiler 2024.0.0 (…)`.
fn intel(text: &str) -> Option<Producer> {
    text.strip_prefix("Intel(R) ")?;
    let (words, options) = split_at_options(text);
    let version = match words.split_once("Version ") {
        Some((_, rest)) => version_of(rest),
        None => words.split(' ').find_map(|word| version_of(word).filter(|v| v.contains('.'))),
    };
    let language = words.strip_prefix("Intel(R) ").and_then(|rest| {
        ["C++ ", "C ", "Fortran "]
            .into_iter()
            .find(|name| rest.starts_with(name))
            .map(|name| name.trim().to_owned())
    });
    // This compiler optimizes without being asked to, unless -g is given: no -O says nothing certain.
    let without = WithoutLevel::Unknown("Intel's compilers have other defaults than -O0");
    let (options, level) = match options {
        Some(text) => {
            let list = split_raw(text);
            let word = level(&list, without);
            (Recorded::Known(list), word)
        }
        None => (
            Recorded::NotRecorded,
            LevelWord::unknown("Intel's compilers do not record options unless asked to"),
        ),
    };
    Some(Producer { language, options, ..Producer::bare(Family::Icc, version, words, level) })
}

/// `Component: Arm Compiler for Embedded 6.19 Tool: armclang [5e73cb00]`.
fn arm(text: &str) -> Option<Producer> {
    let rest = text.strip_prefix("Component: ")?;
    if !rest.get(..4)?.eq_ignore_ascii_case("arm ") {
        return None;
    }
    let version = rest.split(' ').find_map(|word| version_of(word).filter(|v| v.contains('.')));
    if rest.contains("Tool: armasm") {
        return Some(Producer::assembler(Family::Armclang, version, text));
    }
    Some(Producer::bare(Family::Armclang, version, text, LevelWord::unknown("armclang records no options")))
}

/// `Swift version 6.0 (swift-6.0-RELEASE)`, Apple's with its own name before.
fn swift(text: &str) -> Option<Producer> {
    let rest = text.strip_prefix("Apple ").unwrap_or(text).strip_prefix("Swift version ")?;
    Some(Producer {
        language: Some("Swift".to_owned()),
        ..Producer::bare(
            Family::Swift,
            version_of(rest),
            text,
            LevelWord::unknown("swiftc records no options"),
        )
    })
}

/// `zig 0.17.1`: Zig code; C compiled by zig names clang.
fn zig(text: &str) -> Option<Producer> {
    let version = version_of(text.strip_prefix("zig ")?);
    Some(Producer {
        language: Some("Zig".to_owned()),
        ..Producer::bare(Family::Zig, version, text, LevelWord::unknown("zig records no options"))
    })
}

/// `LDC 1.30.0 (LLVM 14.0.6)`.
fn ldc(text: &str) -> Option<Producer> {
    let version = version_of(text.strip_prefix("LDC ")?)?;
    Some(d_without_options(Family::Ldc, version, text, "ldc records no options"))
}

/// `Digital Mars D v2.109.1`.
fn dmd(text: &str) -> Option<Producer> {
    let version = version_of(text.strip_prefix("Digital Mars D ")?.trim_start_matches('v'))?;
    Some(d_without_options(Family::Dmd, version, text, "dmd records no options"))
}

fn d_without_options(family: Family, version: String, text: &str, why: &str) -> Producer {
    let language = Some("D".to_owned());
    Producer { language, ..Producer::bare(family, Some(version), text, LevelWord::unknown(why)) }
}

/// `tcc 0.9.28`. The compiler has no optimizer, so its code is what others call `-O0`.
fn tcc(text: &str) -> Option<Producer> {
    let version = version_of(text.strip_prefix("tcc ")?)?;
    let mut level = LevelWord::of(Level::O0);
    level.note = Some("tcc has no optimizer".to_owned());
    Some(Producer {
        language: Some("C".to_owned()),
        ..Producer::bare(Family::Tcc, Some(version), text, level)
    })
}

fn nasm(text: &str) -> Option<Producer> {
    let version = version_of(text.strip_prefix("NASM ")?);
    Some(Producer::assembler(Family::Nasm, version, text))
}

fn yasm(text: &str) -> Option<Producer> {
    let version = version_of(text.strip_prefix("yasm ")?);
    Some(Producer::assembler(Family::Yasm, version, text))
}
