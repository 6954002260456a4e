//! Texts in which programs other than nginx name their own build, in their loaded data.
//!
//! They are declarations: what the build system meant to do, not what the compiler did. All loaded data that is not code is
//! searched once, in chunks, for the marks of every program in [`RECOGNISERS`]; a program is one file and one line there.
//! The text of a library that is linked statically into another program (OpenSSL's above all) speaks of that library alone.

use super::{Claim, Place, Scope, Source, Strength};
use crate::compiler::options::{LevelWord, WithoutLevel, group, level, split_shell};
use crate::compiler::{Level, Opt};
use crate::facts::{BuildString, Problem};
use crate::image::Image;

mod autoconf;
mod bind;
mod erlang;
mod ffmpeg;
mod haproxy;
mod knot;
mod openssl;
mod postgresql;
mod powerdns;
mod proftpd;
mod scan;
mod squid;
mod unbound;
mod varnish;

pub use scan::{Text, Texts};

/// How one program is recognised.
pub struct Recogniser {
    /// The program's short name.
    pub program: &'static str,
    /// Byte strings to search for. A text is kept if any of them occurs in it.
    pub marks: &'static [&'static str],
    /// Understands the texts that were found, or sees that they are another program's.
    pub read: fn(&Texts<'_>) -> Option<Found>,
}

/// All programs known. The last takes what no other has claimed.
const RECOGNISERS: &[Recogniser] = &[
    haproxy::RECOGNISER,
    postgresql::RECOGNISER,
    openssl::RECOGNISER,
    ffmpeg::RECOGNISER,
    bind::RECOGNISER,
    powerdns::RECOGNISER,
    squid::RECOGNISER,
    proftpd::RECOGNISER,
    knot::RECOGNISER,
    varnish::RECOGNISER,
    unbound::RECOGNISER,
    erlang::RECOGNISER,
    autoconf::RECOGNISER,
];

/// One program that names its build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Short name; `autoconf` means that a configure line was found and not whose.
    pub program: &'static str,
    /// Its version, as it writes it.
    pub version: Option<String>,
    /// The file is this program or library. If not, it only contains it, and nothing is said of the rest.
    pub is_file_itself: bool,
    /// What it names, in order.
    pub strings: Vec<BuildString>,
    /// The flags it was compiled with, if it names them.
    pub flags: Option<DeclaredFlags>,
    /// Whether its own assertions were compiled in, if it says so.
    pub assertions: Option<bool>,
    /// Where the text that identifies it stands.
    pub at: Place,
}

/// Compiler flags that a program declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredFlags {
    /// As they stand in the text.
    pub text: String,
    /// Split, each with its argument.
    pub options: Vec<Opt>,
    /// The level they ask for.
    pub level: LevelWord,
    /// Where the text stands.
    pub at: Place,
}

/// What was found in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildTexts {
    /// Programs, in the order of the table.
    pub found: Vec<Found>,
    /// What was not searched.
    pub problems: Vec<Problem>,
}

impl BuildTexts {
    /// The program the file is, rather than contains.
    pub fn program(&self) -> Option<&Found> {
        self.found.iter().find(|found| found.is_file_itself && found.program != autoconf::RECOGNISER.program)
    }

    /// Claims about the level: of the whole file, or of some part where the file only contains what is spoken of.
    pub fn claims(&self) -> Vec<Claim> {
        let claim = |found: &Found| {
            let flags = found.flags.as_ref().filter(|flags| flags.level.level != Level::Unknown)?;
            Some(Claim {
                fact: "optimization.level".to_owned(),
                value: flags.level.level.as_str().into(),
                strength: Strength::Declared,
                source: Source::BuildString,
                scope: if found.is_file_itself { Scope::File } else { Scope::Some },
                at: Some(flags.at.clone()),
                quote: Some(format!("{}: {}", found.program, flags.text)),
            })
        };
        self.found.iter().filter_map(claim).collect()
    }
}

/// Searches a file. `soname` is its `DT_SONAME`, which tells a library from a program that contains it.
pub fn read(image: &Image, soname: Option<&str>) -> BuildTexts {
    let (texts, problems) = scan::scan(image);
    let mut found: Vec<Found> = Vec::new();
    for recogniser in RECOGNISERS {
        let claimed = !found.is_empty();
        if recogniser.program == autoconf::RECOGNISER.program && claimed {
            continue;
        }
        let texts = Texts { list: &texts, marks: recogniser.marks, soname };
        found.extend((recogniser.read)(&texts));
    }
    BuildTexts { found, problems }
}

/// What a recogniser builds up.
struct Builder {
    found: Found,
}

impl Builder {
    fn new(program: &'static str, at: &Place) -> Self {
        Self {
            found: Found {
                program,
                version: None,
                is_file_itself: true,
                strings: Vec::new(),
                flags: None,
                assertions: None,
                at: at.clone(),
            },
        }
    }

    fn version(mut self, version: Option<&str>) -> Self {
        self.found.version = version.map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned);
        self
    }

    fn add(&mut self, key: &str, value: &str) {
        let value = value.trim();
        let same = |s: &BuildString| s.key == key && s.value == value;
        if !value.is_empty() && !self.found.strings.iter().any(same) {
            let program = self.found.program.to_owned();
            self.found.strings.push(BuildString { program, key: key.to_owned(), value: value.to_owned() });
        }
    }

    /// Flags that are all the program was compiled with, so that no `-O` means none.
    fn all_flags(&mut self, text: &str, at: &Place) {
        self.flags(text, at, WithoutLevel::Unoptimized);
    }

    /// Flags that somebody gave to `configure`, which may have added others.
    fn some_flags(&mut self, text: &str, at: &Place) {
        self.flags(text, at, WithoutLevel::Unknown("the flags given to configure hold no -O"));
    }

    fn flags(&mut self, text: &str, at: &Place, without: WithoutLevel) {
        let options = group(&split_shell(text));
        let level = level(&options, without);
        self.found.flags =
            Some(DeclaredFlags { text: text.trim().to_owned(), options, level, at: at.clone() });
    }

    /// A `configure` line: the line itself, and the variables and flags in it.
    fn configure(&mut self, line: &Text) {
        // PowerDNS puts the whole line into double quotes.
        let text = line.text.trim();
        let text =
            text.strip_prefix('"').map_or(text, |inner| inner.strip_suffix('"').unwrap_or(inner)).trim();
        self.add("configure", text);
        let words = split_shell(text);
        let variable =
            |name: &str| words.iter().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        for name in ["CC", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"] {
            if let Some(value) = variable(name) {
                self.add(name, value);
            }
        }
        let flags = variable("CXXFLAGS").filter(|_| self.found.program == powerdns::RECOGNISER.program);
        if let Some(flags) = flags.or_else(|| variable("CFLAGS")).or_else(|| variable("CXXFLAGS")) {
            self.some_flags(flags, &line.at);
        }
    }

    /// A statically linked library's text, unless the file is one of that library's own.
    fn contained_unless_named(&mut self, texts: &Texts<'_>, names: &[&str]) {
        self.found.is_file_itself =
            texts.soname.is_some_and(|soname| names.iter().any(|name| soname.starts_with(name)));
    }
}

/// The word that follows `before` in a text.
fn word_after<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split([' ', '\n', '\t', ',', ')', ';']).next().filter(|word| !word.is_empty())
}

/// Whether a version follows `before` in a text: digits, a dot and a digit. The name alone stands in every program that knows
/// of this one.
fn names_version(text: &str, before: &str) -> bool {
    let rest = text.split_once(before).map_or("", |(_, rest)| rest);
    let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    number.len() < rest.len()
        && number.strip_prefix('.').is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a text is a `configure` line as autoconf quotes it: `'--build=…' '--prefix=…' 'CFLAGS=…'`, perhaps after a space
/// or a quote. Every word of one is an option or an assignment. In programs whose strings lie side by side without a NUL
/// between them (Rust's, Go's) a text may begin like one and go on with anything.
fn is_configure_line(text: &str) -> bool {
    let start = text.trim_start_matches([' ', '"']).trim_end_matches([' ', '"', '\n']);
    let assigns = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    start.starts_with("'--")
        && start.ends_with('\'')
        && split_shell(start).iter().all(|word| word.starts_with("--") || assigns(word))
}

#[cfg(test)]
mod tests;
