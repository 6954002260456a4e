//! `DW_AT_producer` (DWARF 5, section 3.1.1): which compiler made a unit, and with which options.
//!
//! The attribute is free text. GCC puts its options after its version, unquoted; clang names only itself unless
//! asked to record its command line; rustc never names options; Go's compiler lists those that differ from
//! the default.

use super::Level;
use super::options::{LevelWord, Recorded, WithoutLevel, level};
use std::fmt;

mod gnu;
mod llvm;
mod other;
pub(crate) use other::go_level;

/// Whose compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Family {
    /// GNU Compiler Collection, all its languages.
    Gcc,
    /// Clang, also as shipped by Apple, AMD and distributions, and as driven by zig.
    Clang,
    /// The Rust compiler.
    Rustc,
    /// Go's own compiler (`gccgo` is of the GCC family).
    Go,
    /// Intel's compilers.
    Icc,
    /// Arm's compiler.
    Armclang,
    /// Swift.
    Swift,
    /// Zig, for Zig code.
    Zig,
    /// LLVM's D compiler.
    Ldc,
    /// The D language's reference compiler.
    Dmd,
    /// Tiny C Compiler.
    Tcc,
    /// GNU assembler.
    Gas,
    /// NASM.
    Nasm,
    /// Yasm.
    Yasm,
    /// A compiler this program does not know; its words are kept.
    #[default]
    Unknown,
}

impl Family {
    /// The word used in every output and in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Clang => "clang",
            Self::Rustc => "rustc",
            Self::Go => "go",
            Self::Icc => "icc",
            Self::Armclang => "armclang",
            Self::Swift => "swift",
            Self::Zig => "zig",
            Self::Ldc => "ldc",
            Self::Dmd => "dmd",
            Self::Tcc => "tcc",
            Self::Gas => "gas",
            Self::Nasm => "nasm",
            Self::Yasm => "yasm",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the producer alone says about the kind of unit; see [`super::unit_kind()`] for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Compiled from source.
    Source,
    /// Assembled: has no level.
    Assembler,
    /// Made at link time from several sources (`GNU GIMPLE`): its own `-O` is never the level.
    LtoPartition,
}

/// A producer, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// Whose compiler.
    pub family: Family,
    /// Its version, digits and dots only: `12.2.0`.
    pub version: Option<String>,
    /// Source language without its standard: `C`, `C++`, `Fortran`; `None` where the words do not tell.
    pub language: Option<String>,
    /// Language standard as the compiler names it: `C17`, `C++20`, `Fortran2008`.
    pub standard: Option<String>,
    /// The compiler's words without its options, lossily decoded.
    pub raw: String,
    /// Its options.
    pub options: Recorded,
    /// What kind of unit it makes.
    pub role: Role,
    /// What the words say about the optimization level.
    pub level: LevelWord,
}

impl Producer {
    /// Compiler and version as one word for lists: `gcc 12.2.0`; the family alone where no version is known.
    pub fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.family),
            None => self.family.to_string(),
        }
    }

    /// First number of the version.
    pub fn major(&self) -> Option<u64> {
        major(self.version.as_deref())
    }

    fn bare(family: Family, version: Option<String>, raw: &str, level: LevelWord) -> Self {
        Self {
            family,
            version,
            language: None,
            standard: None,
            raw: raw.trim_end().to_owned(),
            options: Recorded::NotRecorded,
            role: Role::Source,
            level,
        }
    }

    fn assembler(family: Family, version: Option<String>, raw: &str) -> Self {
        Self {
            role: Role::Assembler,
            language: Some("Assembly".to_owned()),
            ..Self::bare(family, version, raw, LevelWord::unknown("assembled code has no optimization level"))
        }
    }
}

/// Understands a producer. Unknown ones keep their words and have family `Unknown`; nothing is an error.
/// Bytes that are not UTF-8 are replaced.
pub fn parse(producer: &[u8]) -> Producer {
    let text = String::from_utf8_lossy(producer);
    let text = text.trim_end_matches('\0').trim();
    gnu::parse(text).or_else(|| other::parse(text)).or_else(|| llvm::parse(text)).unwrap_or_else(|| {
        let why =
            if text.is_empty() { "no producer is named" } else { "this compiler's words are not known" };
        Producer::bare(Family::Unknown, None, text, LevelWord::unknown(why))
    })
}

/// Whether a producer holds what no compiler writes: control characters, or, in GCC's, bytes that are not UTF-8 outside
/// of free text (what stands behind a `=`). What was lost there may have been the option that counts.
pub fn is_garbled(producer: &[u8]) -> bool {
    let text = producer.strip_suffix(b"\0").unwrap_or(producer);
    if text.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
        return true;
    }
    let plain = |word: &[u8]| word.iter().position(|&byte| byte == b'=').map_or(word.len(), |at| at);
    !text.is_ascii()
        && text.starts_with(b"GNU ")
        && text.split(|&byte| byte == b' ').any(|word| std::str::from_utf8(&word[..plain(word)]).is_err())
}

/// Understands an identification string of `.comment`: family and version. GCC's has a form of its own,
/// `GCC: (Debian 12.2.0-14) 12.2.0`; the others are a producer without options.
pub fn parse_ident(ident: &[u8]) -> (Family, Option<String>) {
    let text = String::from_utf8_lossy(ident);
    let text = text.trim_end_matches('\0').trim();
    if let Some(rest) = text.strip_prefix("GCC: ") {
        return (Family::Gcc, skip_groups(rest).and_then(version_of));
    }
    if let Some(rest) = text.strip_prefix("rustc version ") {
        return (Family::Rustc, version_of(rest));
    }
    let producer = parse(text.as_bytes());
    (producer.family, producer.version)
}

/// Understands one line of `.GCC.command.line` that stands for a whole unit: GCC's is the text of the producer, clang's is
/// its escaped command alone. `None` for anything else, such as the single options of GCC before 11.
pub fn parse_command_line(line: &[u8]) -> Option<Producer> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches('\0').trim();
    gnu::parse(text).or_else(|| llvm::parse(text)).or_else(|| llvm::parse_command(text))
}

fn major(version: Option<&str>) -> Option<u64> {
    version?.split('.').next()?.parse().ok()
}

/// The digits and dots a word begins with, if that is a version of at least one number.
fn version_of(word: &str) -> Option<String> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let version = word.get(..end)?.trim_end_matches('.');
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// Skips white space and bracketed groups, `(…)` and `[…]`, which may hold anything and nest. Returns what is left, or
/// `None` if a group is never closed.
fn skip_groups(mut text: &str) -> Option<&str> {
    loop {
        text = text.trim_start();
        if !text.starts_with(['(', '[']) {
            return Some(text);
        }
        let mut depth = 0usize;
        let end = text.char_indices().find_map(|(at, letter)| {
            match letter {
                '(' | '[' => depth = depth.saturating_add(1),
                ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (depth == 0).then(|| at + letter.len_utf8())
        })?;
        text = text.get(end..)?;
    }
}

/// Splits a text into the words before the first option (` -` outside brackets) and the options. No options are
/// found inside a group that is never closed.
fn split_at_options(text: &str) -> (&str, Option<&str>) {
    let mut depth = 0usize;
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth = depth.saturating_add(1),
            ')' | ']' => depth = depth.saturating_sub(1),
            '-' if depth == 0 && previous.is_ascii_whitespace() => {
                let (words, options) = text.split_at(at);
                return (words.trim_end(), Some(options));
            }
            _ => {}
        }
        previous = letter;
    }
    (text.trim_end(), None)
}

#[cfg(test)]
mod tests;
