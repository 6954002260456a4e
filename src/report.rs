//! The report: what a run says, in types that are the JSON documents. Renderers only format.

use crate::facts::{Facts, Status};
use crate::finding::Finding;
pub use crate::rules::Verdict;
use crate::wording::grouped;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod escape;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod prometheus;
pub mod sarif;
mod shared;

pub use shared::RuleDoc;
pub mod text;

/// The program that wrote the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `flagaudit`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Tool {
    /// This program.
    pub fn this() -> Self {
        Self { name: env!("CARGO_PKG_NAME").to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// What became of the targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Targets audited.
    pub targets: u64,
    /// Read in full.
    pub ok: u64,
    /// Damage or a limit lost something.
    pub partial: u64,
    /// Nothing could be had.
    pub failed: u64,
    /// Files of a directory that are not ELF.
    pub skipped: u64,
    /// So many of them are packages or stand for images, which a walk does not open. Not part of the document.
    #[serde(skip)]
    pub packages: u64,
    /// Files of a directory that could not be opened.
    pub unreadable: u64,
}

impl Summary {
    /// Adds the counts of another part of the run.
    pub fn add(&mut self, other: Self) {
        self.targets += other.targets;
        self.ok += other.ok;
        self.partial += other.partial;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.packages += other.packages;
        self.unreadable += other.unreadable;
    }

    /// Words for the packages among the files that are not ELF; nothing, if there are none.
    fn unopened(&self) -> String {
        match self.packages {
            0 => String::new(),
            count => format!(" ({} of them packages or images, not opened)", grouped(count)),
        }
    }

    /// Counts one target.
    pub fn count(&mut self, status: Status) {
        self.targets += 1;
        match status {
            Status::Ok => self.ok += 1,
            Status::Partial => self.partial += 1,
            Status::Failed => self.failed += 1,
        }
    }
}

/// The document of `inspect`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InspectReport {
    /// `flagaudit/inspect/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The targets, in order.
    pub targets: Vec<Facts>,
    /// Counts.
    pub summary: Summary,
}

/// The policy that judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRef {
    /// Its name.
    pub name: String,
    /// File, or `builtin:NAME`.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// The day waivers were judged on (UTC).
    pub evaluated_on: String,
}

/// A target with its verdict.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// The facts.
    #[serde(flatten)]
    pub facts: Facts,
    /// The verdict.
    pub verdict: Verdict,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
}

/// The document of `check`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// `flagaudit/check/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The policy that judged.
    pub policy: PolicyRef,
    /// The verdict on the run, as the exit status has it: options may allow what else were incomplete.
    pub verdict: Verdict,
    /// The targets, in order.
    pub targets: Vec<Checked>,
    /// Findings about the policy itself.
    pub policy_findings: Vec<Finding>,
    /// Counts.
    pub summary: Summary,
}

impl AsRef<Facts> for Checked {
    fn as_ref(&self) -> &Facts {
        &self.facts
    }
}

/// Which long listings the user asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listings {
    /// `--units`.
    pub units: bool,
    /// `--functions`.
    pub functions: bool,
    /// `--flags`.
    pub flags: bool,
    /// `--directives`.
    pub directives: bool,
}

impl Listings {
    /// Drops what was not asked for: such a list is `null` in the document.
    pub fn trim(self, facts: &mut Facts) {
        if !self.units {
            facts.units = None;
        }
        if !self.functions {
            facts.functions.list = None;
        }
        if !self.flags {
            facts.flags = None;
        }
        if !self.directives
            && let Some(nginx) = &mut facts.nginx
        {
            nginx.directives = None;
        }
    }
}
