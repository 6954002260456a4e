//! Findings: what a rule says about a target.

use crate::compiler::Level;
use crate::evidence::{Source, Strength};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod fingerprint;
mod symbol;
pub use fingerprint::{fingerprint, normalise_unit, same_subject};

/// How bad a finding is. Ordered from mildest to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Should be looked at.
    Warning,
    /// Must not ship.
    Error,
}

impl Severity {
    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What became of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingStatus {
    /// The policy is broken.
    Violation,
    /// The evidence does not suffice to say.
    Undetermined,
    /// A violation that a waiver covers.
    Waived,
    /// The policy is met.
    Passed,
    /// There was nothing to check it on.
    NotChecked,
}

/// Where a policy value stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, PartialOrd, Ord)]
pub struct PolicyPlace {
    /// The policy file, or `builtin:NAME`.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The line's text; not part of the document.
    #[serde(skip)]
    pub text: String,
}

/// A place in a file that is not the binary (a configuration).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// File.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A unit named by a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitRef {
    /// Name.
    pub name: String,
    /// Level.
    pub level: Level,
}

/// A range of addresses named by a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RangeRef {
    /// First address.
    pub start: u64,
    /// Address past the end.
    pub end: u64,
    /// Functions in it.
    pub functions: u64,
    /// Name of its first function, its unit or its nginx module, if known; not part of the document.
    #[serde(skip)]
    pub name: Option<String>,
}

impl RangeRef {
    /// The range of a run of functions, named after its module, its unit or its first function.
    pub fn of(run: &crate::facts::FunctionRun) -> Self {
        let name = run.module.clone().or_else(|| run.unit.clone());
        let name = name.or_else(|| run.name.as_ref().map(|name| format!("from {} on,", symbol::brief(name))));
        Self { start: run.start, end: run.end, functions: run.functions, name }
    }
}

/// The waiver that covers a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaiverRef {
    /// Why.
    pub reason: String,
    /// Who answers for it.
    pub owner: Option<String>,
    /// Last day it holds (UTC).
    pub expires: Option<String>,
}

/// One finding. One fact makes one finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Rule id.
    pub rule: String,
    /// Severity in force.
    pub severity: Severity,
    /// What became of the check.
    pub status: FindingStatus,
    /// One sentence: what is wrong, with counts.
    pub message: String,
    /// How to fix it, in the product's own terms.
    pub remedy: Option<String>,
    /// How firmly the evidence stands.
    pub strength: Strength,
    /// Who says so.
    pub sources: Vec<Source>,
    /// Units concerned (at most the first 50; `units_total` counts all).
    pub units: Vec<UnitRef>,
    /// How many units are concerned.
    pub units_total: u64,
    /// Address ranges concerned.
    pub ranges: Vec<RangeRef>,
    /// The policy value that judged.
    pub policy: Option<PolicyPlace>,
    /// The place in a configuration.
    pub location: Option<Location>,
    /// The waiver that covers it.
    pub waiver: Option<WaiverRef>,
    /// Identity over runs: made of rule, soname or base name, normalised unit and key; not of path, build-id or run.
    pub fingerprint: String,
    /// How it is known, line by line ("recorded: the compiler wrote …"); not part of the document.
    #[serde(skip)]
    pub known: Vec<String>,
    /// What it costs, where measured; not part of the document.
    #[serde(skip)]
    pub cost: Option<String>,
}

impl Finding {
    /// Whether the finding counts against the target: a violation, or an undetermined check.
    pub fn counts(&self) -> bool {
        matches!(self.status, FindingStatus::Violation | FindingStatus::Undetermined)
    }
}
