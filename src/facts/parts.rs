//! The parts of [`super::Facts`] that are plain records, those of every program.

use crate::evidence::Held;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a target's bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A file named by the user.
    File,
    /// A file found in a directory.
    Directory,
    /// A member of a package or image.
    Archive,
    /// A running process.
    Process,
    /// Standard input.
    Stdin,
}

/// Whether everything could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Everything was read.
    Ok,
    /// Damage or a limit lost something.
    Partial,
    /// Nothing could be had.
    Failed,
}

/// Something that could not be read or found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Stable short name, such as `damaged-debug-info`.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Whether it means damage or a limit (and so status `partial`), as against a mere absence.
    #[serde(skip)]
    pub loses_facts: bool,
}

impl Problem {
    /// Which libraries a process runs could not be read, or not in full.
    pub const LIBRARIES_UNKNOWN: &str = "libraries-unknown";
    /// A process ended before it could be read which libraries it runs.
    pub const PROCESS_ENDED: &str = "process-ended";

    /// Damage or a limit lost something: the target becomes `partial`.
    pub fn damage(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), loses_facts: true }
    }

    /// Worth saying, but nothing that was in the file is lost.
    pub fn notice(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), loses_facts: false }
    }
}

/// A running process.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Command line, or the process name where that may not be read.
    pub command: String,
    /// The program's path as the process sees it; the file there may be another one now.
    #[serde(default)]
    pub exe: Option<String>,
    /// The program's file was deleted or replaced.
    pub deleted: bool,
    /// Build-id of the file now at that path.
    pub on_disk_build_id: Option<String>,
    /// Whether the file now at that path is the very one that runs; `null` where nothing can be seen there.
    #[serde(default)]
    pub same_file: Option<bool>,
    /// Worker processes running the same build.
    pub children: u64,
    /// Libraries and modules that run though the file at their name was deleted or is another build now.
    #[serde(default)]
    pub replaced: Vec<String>,
    /// It sees other files than this program does (a container, a chroot): names of files are those inside. Not part of
    /// the document.
    #[serde(skip)]
    pub elsewhere: bool,
}

/// As what a library was found (`--libraries`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Library {
    /// The name it was asked for by: of `DT_NEEDED`, or the path that was loaded or mapped.
    pub name: String,
    /// The object that asked for it, or the process.
    pub needed_by: String,
    /// Where it was found.
    pub found_by: FoundBy,
}

/// How the loader finds a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    /// It is the program interpreter.
    Interpreter,
    /// By the path that was asked for.
    Path,
    /// In a directory of `DT_RPATH`.
    Rpath,
    /// In a directory of `DT_RUNPATH`.
    Runpath,
    /// In a directory of `/etc/ld.so.conf`.
    Configuration,
    /// In a default directory.
    Default,
    /// By `/etc/ld.so.preload`.
    Preload,
    /// By `load_module` in nginx's configuration.
    LoadModule,
    /// A process has it mapped.
    Mapped,
}

impl FoundBy {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interpreter => "its interpreter",
            Self::Path => "by its path",
            Self::Rpath => "by DT_RPATH",
            Self::Runpath => "by DT_RUNPATH",
            Self::Configuration => "by /etc/ld.so.conf",
            Self::Default => "in a default directory",
            Self::Preload => "by /etc/ld.so.preload",
            Self::LoadModule => "by load_module",
            Self::Mapped => "mapped",
        }
    }
}

/// What kind of ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Fixed-address executable.
    Executable,
    /// Position-independent executable.
    Pie,
    /// Shared object.
    SharedObject,
    /// Relocatable file.
    Relocatable,
    /// `ar` archive of relocatable files.
    Archive,
    /// Core dump.
    Core,
    /// Separate debug file: sections without their data.
    SeparateDebug,
}

/// The ELF file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Elf {
    /// 32 or 64.
    pub class: u8,
    /// `little` or `big`.
    pub endian: String,
    /// Machine, in the short form of the field: `x86-64`, `aarch64`, …
    pub machine: String,
    /// Kind of file.
    pub kind: Kind,
    /// No interpreter and no needed library.
    #[serde(rename = "static")]
    pub is_static: bool,
    /// No symbol table (`.symtab`).
    pub stripped: bool,
    /// Whether a section table is there.
    pub sections: bool,
    /// Build-id in lower-case hexadecimal, of any length.
    pub build_id: Option<String>,
    /// Program interpreter.
    pub interpreter: Option<String>,
    /// `DT_NEEDED`.
    pub needed: Vec<String>,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// Packed by UPX or the like.
    pub packed: bool,
}

/// The program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Product {
    /// Short name: nginx, openresty, tengine, angie, freenginx, haproxy, …
    pub name: String,
    /// Version.
    pub version: Option<String>,
    /// The nginx inside a fork.
    pub base: Option<Base>,
    /// Text after the version: a build name, a distribution.
    pub build_text: Option<String>,
}

/// What a fork is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    /// Name.
    pub name: String,
    /// Version.
    pub version: Option<String>,
}

/// Where debug information lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DebugSource {
    /// Nowhere.
    #[default]
    None,
    /// In the file itself.
    Embedded,
    /// In a separate debug file.
    Separate,
    /// In `.dwo` files.
    Dwo,
    /// In a `.dwp` package.
    Dwp,
}

/// The supplementary file that `dwz` makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Supplementary {
    /// None is named.
    #[default]
    None,
    /// Named and found.
    Found,
    /// Named and not found.
    Missing,
}

/// Debug information.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct DebugInfo {
    /// Whether there is any.
    pub present: bool,
    /// Where.
    pub source: DebugSource,
    /// Path of the separate file.
    pub path: Option<String>,
    /// The file that `dwz` makes.
    pub supplementary: Supplementary,
    /// DWARF versions of the units, ascending.
    pub dwarf_versions: Vec<u16>,
    /// `zlib-gnu`, `zlib`, `zstd`.
    pub compressed: Option<String>,
    /// What is named and was not found.
    pub missing: Vec<String>,
}

/// A compiler seen in the target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CompilerSeen {
    /// gcc, clang, rustc, go, icc, tcc, gas, nasm, … or `unknown`.
    pub family: String,
    /// Version.
    pub version: Option<String>,
    /// Source language.
    pub language: Option<String>,
    /// Units it made.
    pub units: u64,
    /// Its own words, without options.
    pub raw: String,
}

/// Hardening.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Hardening {
    /// Position-independent executable.
    pub pie: Held<bool>,
    /// `none`, `partial`, `full`.
    pub relro: Held<String>,
    /// Immediate binding.
    pub bind_now: Held<bool>,
    /// Stack not executable.
    pub nx_stack: Held<bool>,
    /// Stack protector used somewhere.
    pub canary: Held<bool>,
    /// `yes`, `no`, `partial`, `unknown`.
    pub fortify: Held<String>,
    /// Indirect branch tracking.
    pub ibt: Held<bool>,
    /// Shadow stack.
    pub shstk: Held<bool>,
    /// Branch target identification.
    pub bti: Held<bool>,
    /// Pointer authentication.
    pub pac: Held<bool>,
    /// `DT_RPATH`.
    pub rpath: Held<String>,
    /// `DT_RUNPATH`.
    pub runpath: Held<String>,
    /// Text relocations.
    pub textrel: Held<bool>,
}

/// Instrumentation.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Instrumentation {
    /// Sanitizers, by name.
    pub sanitizers: Held<Vec<String>>,
    /// Coverage.
    pub coverage: Held<bool>,
    /// Profiling.
    pub profiling: Held<bool>,
    /// The program's own debug build (nginx `--with-debug`).
    pub debug_build: Held<bool>,
    /// Assertions compiled in.
    pub assertions: Held<bool>,
}

/// Processor the code needs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Baseline such as `x86-64-v2`.
    pub baseline: Held<String>,
    /// Recorded options that choose a processor.
    pub flags: Vec<String>,
}

/// A text in which a program names its own build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildString {
    /// Program that wrote it.
    pub program: String,
    /// What it names.
    pub key: String,
    /// The text.
    pub value: String,
}
