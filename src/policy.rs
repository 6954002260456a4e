//! The policy: what a team wrote down, as checked values. Every value keeps its place, so that a
//! finding can show the line that judged it.

use crate::compiler::Level;
use crate::finding::{PolicyPlace, Severity};
use std::collections::BTreeMap;

mod check;
pub mod dates;
pub mod diagnostic;
pub mod discover;
pub mod init;
mod json_tree;
pub mod known;
mod lint;
pub mod load;
pub mod matching;
pub mod schema;
pub mod show;
mod source;
pub mod target;
mod toml_tree;
mod tree;
pub mod version;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use known::Known;
pub use lint::validate;
pub use target::{EntryKind, LoadedPolicy, PolicyEntry, TargetKey};

/// A checked value and the place it was written at.
#[derive(Debug, Clone, PartialEq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub at: PolicyPlace,
}

/// A setting that can be an error, a warning, or ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// A finding of that severity.
    Report(Severity),
    /// No finding (`ignore`, or `off` under `[rules]`).
    Ignore,
}

/// What ground a pass needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Only what the compiler recorded.
    Recorded,
    /// Recorded or structural, or declared and the code agrees, or inferred where that alone meets the minimum.
    Corroborated,
    /// A declaration suffices.
    Declared,
}

/// A glob, or a regular expression written between slashes.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As written.
    pub text: String,
    /// Compiled.
    pub matcher: Matcher,
}

/// How a pattern matches.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Glob.
    Glob(globset::GlobMatcher),
    /// Regular expression, unanchored.
    Regex(regex::Regex),
}

impl Pattern {
    /// Whether `text` matches as a whole (glob) or contains a match (regular expression).
    pub fn matches(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Glob(glob) => glob.is_match(text),
            Matcher::Regex(regex) => regex.is_match(text),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// `[optimization]`.
#[derive(Debug, Clone)]
pub struct OptimizationPolicy {
    /// The least level that passes.
    pub minimum: Option<At<Level>>,
    /// Below it: a warning.
    pub recommended: Option<At<Level>>,
    /// Levels accepted besides.
    pub allow: Vec<At<Level>>,
    /// What ground a pass needs.
    pub evidence: At<Ground>,
    /// Code that may be -O0, and nothing can tell.
    pub undetermined: At<Setting>,
    /// Optimized, but `minimum` is not proven.
    pub optimized_unproven: At<Setting>,
    /// No words, and fewer than 15 functions to judge.
    pub too_small: At<Setting>,
    /// Units not judged: glob on name or `comp_dir/name`.
    pub exempt: Vec<At<Pattern>>,
    /// Statically linked library code: minimum and undetermined.
    pub libraries: Option<LibrariesPolicy>,
}

/// `[optimization.libraries]`.
#[derive(Debug, Clone)]
pub struct LibrariesPolicy {
    /// The least level that passes.
    pub minimum: Option<At<Level>>,
    /// Code that may be -O0, and nothing can tell.
    pub undetermined: Option<At<Setting>>,
}

/// `require` and `forbid` lists.
#[derive(Debug, Clone, Default)]
pub struct RequireForbid {
    /// Must match something.
    pub require: Vec<At<Pattern>>,
    /// Must match nothing.
    pub forbid: Vec<At<Pattern>>,
}

/// A condition on a version: `gcc >= 12`, `~1.30.1`, `>= 1.31.2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRequirement {
    /// As written.
    pub text: String,
    /// Name before the comparison (compiler family); empty for a product version.
    pub name: String,
    /// Comparisons that must all hold.
    pub comparisons: Vec<(Comparison, Vec<u64>)>,
}

/// A comparison of versions. Only the parts written are compared (`<= 12` holds for 12.2.0); parts a version lacks count as 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=` or nothing: the parts written are equal.
    Equal,
    /// `!=`.
    NotEqual,
    /// `>=`.
    AtLeast,
    /// `>`.
    Above,
    /// `<=`.
    AtMost,
    /// `<`.
    Below,
    /// `~1.30.1`: at least that, and the same but for the last part written.
    Compatible,
}

/// `[nginx]`.
#[derive(Debug, Clone, Default)]
pub struct NginxPolicy {
    /// Any of these for the product's version.
    pub version: Vec<At<VersionRequirement>>,
    /// Any of these for the nginx inside a fork.
    pub base_version: Vec<At<VersionRequirement>>,
    /// Modules required and forbidden: short or full symbol names, globs.
    pub modules: RequireForbid,
    /// Nothing beyond `require` and `allowed_modules`.
    pub exact: Option<At<bool>>,
    /// Modules accepted besides, with `exact`.
    pub allow_modules: Vec<At<Pattern>>,
    /// Configure arguments required and forbidden.
    pub configure: RequireForbid,
}

/// What a waiver covers. All that are given must match.
#[derive(Debug, Clone)]
pub struct Waiver {
    /// Rule id.
    pub rule: At<String>,
    /// Glob on unit name or `comp_dir/name`.
    pub unit: Option<At<Pattern>>,
    /// Function.
    pub function: Option<At<Pattern>>,
    /// Module.
    pub module: Option<At<Pattern>>,
    /// Upstream of an nginx configuration.
    pub upstream: Option<At<Pattern>>,
    /// File of an nginx configuration.
    pub file: Option<At<Pattern>>,
    /// Target path.
    pub target: Option<At<Pattern>>,
    /// Fingerprint.
    pub fingerprint: Option<At<String>>,
    /// Why.
    pub reason: At<String>,
    /// Who answers for it.
    pub owner: Option<At<String>>,
    /// Last day it holds (UTC).
    pub expires: Option<At<jiff::civil::Date>>,
    /// Where the table begins.
    pub at: PolicyPlace,
}

/// Which targets a `[[target]]` table is for: any of what is given.
#[derive(Debug, Clone, Default)]
pub struct TargetMatch {
    /// Glob on path or member.
    pub path: Vec<At<Pattern>>,
    /// Product name.
    pub product: Vec<At<Pattern>>,
    /// Build-id (a prefix suffices).
    pub build_id: Vec<At<String>>,
    /// Process name.
    pub process: Vec<At<Pattern>>,
}

/// The whole policy for one target, checked.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Name.
    pub name: String,
    /// File, or `builtin:NAME`.
    pub path: String,
    /// SHA-256 of the file's bytes, lower-case hexadecimal.
    pub sha256: String,
    /// `[optimization]`.
    pub optimization: OptimizationPolicy,
    /// `[flags]`.
    pub flags: RequireForbid,
    /// `[compiler] allow`.
    pub compilers: Vec<At<VersionRequirement>>,
    /// `[cpu] baseline`.
    pub cpu_baseline: Option<At<String>>,
    /// `[hardening]`: key (`pie`, `relro`, `bind-now`, `nx-stack`, `stack-protector`, `fortify`, `cet`, `rpath`, `text-relocations`) to wanted value
    /// (`"true"`, `"false"`, or the word).
    pub hardening: BTreeMap<String, At<String>>,
    /// `[instrumentation] forbid`: `sanitizers`, `coverage`, `profiling`.
    pub instrumentation_forbid: Vec<At<String>>,
    /// `[nginx]`.
    pub nginx: NginxPolicy,
    /// `[build] allow`: approved build-ids.
    pub builds: Vec<At<String>>,
    /// `[rules]`: severities by rule id.
    pub rules: BTreeMap<String, At<Setting>>,
    /// `[[waiver]]`.
    pub waivers: Vec<Waiver>,
}
