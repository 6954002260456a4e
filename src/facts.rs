//! Everything held to be true about one target, in the shape of the JSON document.
//!
//! Keys are part of the outward contract. Lists that are only shown on request (`units`, `flags`,
//! `functions.list`, `nginx.directives`) are always present here and are dropped by the report.

use crate::compiler::Level;
use crate::evidence::{Claim, Held, Source, Strength};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

mod nginx;
mod parts;
pub use nginx::*;
pub use parts::*;

/// Everything held about one target.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// The target as named by the user, lossily decoded.
    pub path: String,
    /// The path's bytes in base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// Where the bytes came from.
    pub origin: Origin,
    /// Member of a package or image.
    pub member: Option<String>,
    /// The process, for a running program.
    pub process: Option<Process>,
    /// As which library it was found, with `--libraries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// Whether everything could be read.
    pub status: Status,
    /// What could not.
    pub problems: Vec<Problem>,
    /// The ELF file; `null` for a text printed by `nginx -V`.
    pub elf: Option<Elf>,
    /// The program, if it is a known one.
    pub product: Option<Product>,
    /// Debug information.
    pub debug_info: DebugInfo,
    /// Optimization levels and the account of the text.
    pub optimization: Optimization,
    /// Claims that disagree.
    pub conflicts: Vec<Conflict>,
    /// Compilers seen.
    pub compilers: Vec<CompilerSeen>,
    /// Link-time optimization: `none`, `gcc`, `thin`, `full`, `unknown`.
    pub lto: Held<String>,
    /// Profile-guided optimization.
    pub pgo: Held<bool>,
    /// Number of compilation units that hold code of their own or are listed.
    pub unit_count: u64,
    /// The units, where asked for.
    pub units: Option<Vec<Unit>>,
    /// Functions found and judged.
    pub functions: Functions,
    /// Distinct recorded flags with the number of units that have them, where asked for.
    pub flags: Option<Vec<FlagCount>>,
    /// Hardening.
    pub hardening: Hardening,
    /// Instrumentation.
    pub instrumentation: Instrumentation,
    /// Processor the code needs.
    pub cpu: Cpu,
    /// What nginx-family programs carry.
    pub nginx: Option<Nginx>,
    /// Texts in which programs name their own build.
    pub build_strings: Vec<BuildString>,
}

impl AsRef<Facts> for Facts {
    fn as_ref(&self) -> &Facts {
        self
    }
}

/// Optimization of the whole target.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Optimization {
    /// The lowest known level of the binary's own code.
    pub level: Level,
    /// Whether `level` is exact or a lower bound.
    pub bound: Bound,
    /// False while any judged text is unknown.
    pub complete: bool,
    /// How firmly `level` stands.
    pub strength: Strength,
    /// Who says so.
    pub sources: Vec<Source>,
    /// One sentence a person can act on.
    pub reason: String,
    /// Units, functions and text by level.
    pub by_level: Vec<LevelShare>,
    /// The account of the text; the parts sum to `bytes`.
    pub text: TextAccount,
    /// Claims about the level.
    pub claims: Vec<Claim>,
    /// Tail calls, where counted.
    pub tail_calls: Option<TailCalls>,
    /// The level in each of as many equal slices of the text, in order of address; see [`crate::reconcile::map`]. For
    /// the eye; not part of the document.
    #[serde(skip)]
    pub map: Vec<Option<Level>>,
    /// A relocatable file whose sections hold neither code nor what a link makes code of; not part of the document.
    #[serde(skip)]
    pub no_code: bool,
}

impl Optimization {
    /// Bytes of judged text that nothing tells the level of. Library code is judged by a table of its own.
    pub fn judged_unknown(&self) -> u64 {
        let unknown = self.by_level.iter().filter(|share| share.level == Level::Unknown);
        unknown.fold(0, |sum, share| sum.saturating_add(share.text_bytes))
    }

    /// Bytes of text that have a record but no level of their own: assembler, toolchain and library code. What is judged,
    /// this, runtime and padding sum to the text.
    pub fn without_level(&self) -> u64 {
        let judged = self.by_level.iter().fold(0_u64, |sum, share| sum.saturating_add(share.text_bytes));
        let text = &self.text;
        text.bytes.saturating_sub(judged).saturating_sub(text.runtime).saturating_sub(text.padding)
    }
}

/// Whether a level is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The level is known.
    #[default]
    Exact,
    /// The code is optimized at least this far.
    AtLeast,
}

/// Text by level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelShare {
    /// The level.
    pub level: Level,
    /// Units of that level.
    pub units: u64,
    /// Functions of that level.
    pub functions: u64,
    /// Bytes of text of that level.
    pub text_bytes: u64,
}

/// Where the bytes of the text are accounted for. All figures are bytes of allocated executable
/// sections (without a section table: of executable segments) and sum to `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TextAccount {
    /// All of it.
    pub bytes: u64,
    /// Gaps whose bytes are nop, int3 or zero.
    pub padding: u64,
    /// Toolchain start code, PLT and thunks recognised for what they are.
    pub runtime: u64,
    /// Text of units whose compiler recorded the level (assembler units included: they have none).
    pub recorded: u64,
    /// Text whose level the file's structure shows.
    pub structural: u64,
    /// Text known only by declaration.
    pub declared: u64,
    /// Text judged from its code.
    pub inferred: u64,
    /// Text nothing describes.
    pub unknown: u64,
}

impl TextAccount {
    /// Bytes of text that hold too few functions to judge (15), where nothing counts them: 15 functions of 273 bytes, less
    /// than the mean of optimized server code. So much may be left over, too.
    pub const FEW_BYTES: u64 = 4096;
    /// What is left over is at most one part in so many.
    const REMNANT_PART: u64 = 100;

    /// Whether `bytes` are what is left over in a file that was otherwise judged.
    pub fn is_remnant(&self, bytes: u64) -> bool {
        bytes <= Self::FEW_BYTES
            && bytes.saturating_mul(Self::REMNANT_PART) <= self.bytes
            && self.recorded.saturating_add(self.structural).saturating_add(self.inferred) > 0
    }
}

/// Tail calls: they prove optimization; their absence proves nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailCalls {
    /// Functions looked at.
    pub functions: u64,
    /// Those that end in a jump to another function.
    pub tail_calls: u64,
    /// `tail_calls / functions`, to four decimal places: a number of so few digits is the same when it is read back.
    pub ratio: f64,
    /// `filter-chain` (nginx's header and body filters) or `all`.
    pub scope: String,
}

impl TailCalls {
    /// So many of the functions looked at; `None` if there were none.
    pub fn counted(tail_calls: u64, functions: u64, scope: &str) -> Option<Self> {
        let ratio = (tail_calls as f64 / functions as f64 * 1e4).round() / 1e4;
        (functions > 0).then(|| Self { functions, tail_calls, ratio, scope: scope.to_owned() })
    }
}

/// One compilation unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unit {
    /// `DW_AT_name`, lossily decoded.
    pub name: String,
    /// `DW_AT_comp_dir`.
    pub comp_dir: Option<Arc<str>>,
    /// Member of an archive.
    pub member: Option<String>,
    /// Source language, from the producer where it says so.
    pub language: Option<Arc<str>>,
    /// Compiler and version, such as `gcc 12.2.0`.
    pub compiler: Option<Arc<str>>,
    /// The level in force.
    pub level: Level,
    /// How firmly it stands.
    pub strength: Strength,
    /// Who says so.
    pub sources: Vec<Source>,
    /// What kind of unit it is; only `source` units are judged.
    pub kind: UnitKind,
    /// Bytes of live text.
    pub text_bytes: u64,
    /// `-O` options given and overridden by a later one, in order.
    pub overridden: Vec<String>,
    /// Options as recorded; units with the same options share them.
    pub flags: Arc<Vec<String>>,
    /// Live address ranges, for locating; not part of the document.
    #[serde(skip)]
    pub ranges: Vec<std::ops::Range<u64>>,
    /// Why the level is unknown, or that it is ambiguous; not part of the document.
    #[serde(skip)]
    pub note: Option<String>,
    /// Whether the compiler recorded its options at all; not part of the document.
    #[serde(skip)]
    pub flags_recorded: bool,
    /// It is intermediate code, which becomes machine code at link time, so that having no text means nothing; not part of
    /// the document.
    #[serde(skip)]
    pub intermediate: bool,
}

impl Unit {
    /// A source unit of which nothing but the name is known.
    pub fn unknown(name: String) -> Self {
        Self {
            name,
            comp_dir: None,
            member: None,
            language: None,
            compiler: None,
            level: Level::Unknown,
            strength: Strength::None,
            sources: Vec::new(),
            kind: UnitKind::Source,
            text_bytes: 0,
            overridden: Vec::new(),
            flags: Arc::default(),
            ranges: Vec::new(),
            note: None,
            flags_recorded: false,
            intermediate: false,
        }
    }
}

/// What kind of unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnitKind {
    /// Compiled from source: judged.
    Source,
    /// Assembled: has no level.
    Assembly,
    /// Produced at link time (`GNU GIMPLE`): its own `-O` is never the level.
    LtoPartition,
    /// The toolchain's own start files and support library.
    Toolchain,
    /// A statically linked library.
    Library,
    /// Its debug information lies in a `.dwo` that was not found.
    Skeleton,
}

/// A recorded flag and how many units have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlagCount {
    /// The flag as recorded.
    pub flag: String,
    /// Units that have it.
    pub units: u64,
}

/// Claims that disagree about one fact.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The fact.
    pub fact: String,
    /// All claims, kept.
    pub claims: Vec<Claim>,
}

/// Functions found and judged from their code.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Functions {
    /// Functions found.
    pub count: u64,
    /// Functions judged from their code.
    pub judged: u64,
    /// Of these, shaped like unoptimized code.
    pub o0_shaped: u64,
    /// Contiguous runs of one level.
    pub runs: Vec<FunctionRun>,
    /// All functions, where asked for.
    pub list: Option<Vec<FunctionSeen>>,
}

/// A contiguous run of functions of one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionRun {
    /// First address.
    pub start: u64,
    /// Address past the end.
    pub end: u64,
    /// Name of the first function, if symbols tell.
    pub name: Option<String>,
    /// Unit, if debug information tells.
    pub unit: Option<String>,
    /// nginx module, if the module table tells.
    pub module: Option<String>,
    /// Level of the run.
    pub level: Level,
    /// Functions in it.
    pub functions: u64,
}

/// One function judged from its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionSeen {
    /// First address.
    pub start: u64,
    /// Address past the end.
    pub end: u64,
    /// Name, if symbols tell.
    pub name: Option<String>,
    /// `O0`, `optimized` or `unknown`.
    pub level: Level,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_same_when_it_is_read_back() {
        assert!(TailCalls::counted(0, 0, "all").is_none());
        for functions in 1..=300 {
            for tail_calls in 0..=functions {
                let made = TailCalls::counted(tail_calls, functions, "all").unwrap();
                let written = serde_json::to_string(&made).unwrap();
                assert_eq!(serde_json::from_str::<TailCalls>(&written).unwrap(), made, "{written}");
            }
        }
        assert_eq!(TailCalls::counted(5, 27, "all").unwrap().ratio.to_string(), "0.1852");
    }
}
