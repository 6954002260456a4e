//! What witnesses say. A witness reads one kind of evidence in one place and returns [`Claim`]s;
//! it judges nothing, reads no policy, and knows of no other witness.

use crate::compiler::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub mod annobin;
pub mod build_string;
pub mod code_shape;
pub mod comment;
pub mod dwarf_macro;
pub mod dwarf_producer;
pub mod dwarf_shape;
pub mod gcc_command_line;
pub mod go_buildinfo;
pub mod hardening;
pub mod imports;
pub mod instrumentation;
pub mod lto_options;
pub mod package_note;
#[cfg(test)]
pub(crate) mod testing;
pub mod texts;
pub mod traps;

/// How firmly a claim stands. It belongs to the claim, not to the source: the same witness can
/// report a recorded flag and an inferred level. Ordered from weakest to strongest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Nothing tells.
    #[default]
    None,
    /// Derived from code or by analogy, with a count.
    Inferred,
    /// The build system or the program itself says it.
    Declared,
    /// The ELF file itself shows it.
    Structural,
    /// The compiler wrote it.
    Recorded,
}

impl Strength {
    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Inferred => "inferred",
            Self::Declared => "declared",
            Self::Structural => "structural",
            Self::Recorded => "recorded",
        }
    }
}

/// Where in the file a claim was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `DW_AT_producer` of a unit's root entry (DWARF 5, section 3.1.1).
    DwarfProducer,
    /// Macro definitions in `.debug_macro` (`-g3`).
    DwarfMacro,
    /// `.GCC.command.line` (`-frecord-gcc-switches`, clang's `-frecord-command-line`).
    GccCommandLine,
    /// Notes of the annobin compiler plugin (`.gnu.build.attributes`, `.annobin.notes`).
    Annobin,
    /// `.go.buildinfo`.
    GoBuildinfo,
    /// ELF header, segments, dynamic table, section table.
    Elf,
    /// A symbol table.
    Symbols,
    /// Undefined symbols of `.dynsym`.
    Imports,
    /// A program's own table of modules, in its data.
    ModuleTable,
    /// `.note.gnu.property`.
    GnuProperty,
    /// What optimization leaves in debug information besides the producer (call marks, location lists).
    DwarfShape,
    /// The `configure arguments` text that nginx-family programs carry.
    ConfigureArguments,
    /// Another text in which a program names its own build.
    BuildString,
    /// `.note.package`.
    PackageNote,
    /// `.comment`.
    Comment,
    /// `.modinfo` of a kernel module.
    Modinfo,
    /// Machine code.
    CodeShape,
    /// Copies of a string constant that an optimizing compiler would have merged.
    StringMerging,
}

impl Source {
    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DwarfProducer => "dwarf-producer",
            Self::DwarfMacro => "dwarf-macro",
            Self::GccCommandLine => "gcc-command-line",
            Self::Annobin => "annobin",
            Self::GoBuildinfo => "go-buildinfo",
            Self::Elf => "elf",
            Self::Symbols => "symbols",
            Self::Imports => "imports",
            Self::ModuleTable => "module-table",
            Self::GnuProperty => "gnu-property",
            Self::DwarfShape => "dwarf-shape",
            Self::ConfigureArguments => "configure-arguments",
            Self::BuildString => "build-string",
            Self::PackageNote => "package-note",
            Self::Comment => "comment",
            Self::Modinfo => "modinfo",
            Self::CodeShape => "code-shape",
            Self::StringMerging => "string-merging",
        }
    }

    /// Where that is, in words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::DwarfProducer => "the producers in its debug information",
            Self::DwarfMacro => "the macros in its debug information",
            Self::GccCommandLine => "the options in .GCC.command.line",
            Self::Annobin => "its annobin notes",
            Self::GoBuildinfo => "its Go build information",
            Self::Elf => "its ELF headers and dynamic table",
            Self::Symbols => "its symbol table",
            Self::Imports => "the functions it imports",
            Self::ModuleTable => "its own table of modules",
            Self::GnuProperty => "its .note.gnu.property",
            Self::DwarfShape => "the shape of its debug information",
            Self::ConfigureArguments => "its configure arguments",
            Self::BuildString => "a text in it about its build",
            Self::PackageNote => "its package note",
            Self::Comment => "its .comment section",
            Self::Modinfo => "its .modinfo section",
            Self::CodeShape => "the shape of its machine code",
            Self::StringMerging => "string constants that were not merged",
        }
    }
}

/// What part of the file a claim speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The whole file.
    File,
    /// One compilation unit, named in the claim's value or quote.
    Unit,
    /// Ranges of addresses.
    Ranges,
    /// Some part that cannot be attributed.
    Some,
}

/// A place in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Section name, or `segment N` where the file has no section table.
    pub section: Arc<str>,
    /// Offset in bytes from the start of that section (or segment).
    pub offset: u64,
}

/// One statement of one witness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// What is spoken of: `optimization.level`, `product.version`, `nginx.debug`, …
    pub fact: String,
    /// The value claimed.
    pub value: serde_json::Value,
    /// How firmly it stands.
    pub strength: Strength,
    /// Who says so.
    pub source: Source,
    /// What part of the file it speaks of.
    pub scope: Scope,
    /// Where it was read.
    pub at: Option<Place>,
    /// The words themselves, or the count an inference rests on.
    pub quote: Option<String>,
}

impl Claim {
    /// The level that a claim about levels names; unknown where it names none.
    pub fn level(&self) -> Level {
        let word = self.value.as_str().unwrap_or_default();
        word.trim_start_matches('-').parse().unwrap_or(Level::Unknown)
    }
}

/// A fact with its standing: the value held to be true, how firmly, and who says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Held<T> {
    /// The value, or `null` where nothing tells.
    pub value: Option<T>,
    /// How firmly it stands.
    pub strength: Strength,
    /// Every source that says so, strongest first.
    pub sources: Vec<Source>,
    /// What was seen, in words ("it refers to `__gcov_init`"); for people, not part of the document.
    #[serde(skip)]
    pub seen: Option<String>,
}

impl<T> Held<T> {
    /// A value seen by one source.
    pub fn new(value: T, strength: Strength, source: Source) -> Self {
        Self { value: Some(value), strength, sources: vec![source], seen: None }
    }

    /// Nothing tells.
    pub fn unknown() -> Self {
        Self { value: None, strength: Strength::None, sources: Vec::new(), seen: None }
    }

    /// Adds what was seen, in words.
    #[must_use]
    pub fn seen(mut self, words: impl Into<String>) -> Self {
        self.seen = Some(words.into());
        self
    }
}

impl Held<Vec<String>> {
    /// Adds names that another witness, or another part of a file, tells, with its words. One that tells none adds nothing.
    pub fn add(&mut self, other: Self) {
        let known = self.value.as_deref().unwrap_or_default();
        let new: Vec<String> =
            other.value.into_iter().flatten().filter(|name| !known.contains(name)).collect();
        if new.is_empty() {
            return;
        }
        // That nothing was seen is no evidence of what others saw.
        if known.is_empty() {
            *self = Self::unknown();
        }
        let names = self.value.get_or_insert_default();
        names.extend(new);
        names.sort_unstable();
        self.strength = self.strength.max(other.strength);
        self.sources.extend(other.sources);
        self.sources.sort_unstable();
        self.sources.dedup();
        self.seen = self.seen.take().into_iter().chain(other.seen).reduce(|all, one| format!("{all}; {one}"));
    }
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self::unknown()
    }
}
