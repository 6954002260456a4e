//! What changed between two builds, and whether for the worse.
//!
//! Two targets are compared fact by fact. What differs between any two builds of the same source (build-id, directories,
//! the order of things) is ignored and named as ignored; what cannot be compared, because one side does not hold it, is
//! named as not compared and is no change.

use crate::compiler::Level;
use crate::facts::{Facts, Origin, Status};
use crate::report::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod levels;
mod parts;

/// Whether a change is for the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The new build is worse in this.
    Worse,
    /// The new build is better in this.
    Better,
    /// Neither.
    Neutral,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What changed: `units`, `compiler`, `flag:-march=native`, `nginx.module:ngx_http_gzip_static_module`,
    /// `configure:--with-cc-opt`, `hardening.relro`, `library:libz.so.1`, `text.bytes`, …
    pub what: String,
    /// The old value; `null` where there was none.
    pub old: Value,
    /// The new value; `null` where there is none.
    pub new: Value,
    /// Whether it is for the worse.
    pub direction: Direction,
    /// How many of `of` are concerned, where things are counted (units).
    pub count: Option<u64>,
    /// Out of how many.
    pub of: Option<u64>,
    /// The first names of those concerned.
    pub names: Vec<String>,
    /// The change as a sentence; not part of the document.
    #[serde(skip)]
    pub sentence: String,
}

impl Change {
    fn new(what: impl Into<String>, old: Value, new: Value, direction: Direction, sentence: String) -> Self {
        Self { what: what.into(), old, new, direction, count: None, of: None, names: Vec::new(), sentence }
    }
}

/// One side, as far as it takes to recognise it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The target as named.
    pub path: String,
    /// Where its bytes came from, at the time it was audited.
    pub origin: Origin,
    /// Member of a package or image.
    pub member: Option<String>,
    /// Whether everything could be read.
    pub status: Status,
    /// Name of the program.
    pub product: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Build-id.
    pub build_id: Option<String>,
    /// The lowest known level of its own code.
    pub level: Level,
    /// Bytes of text.
    pub text_bytes: u64,
}

impl Side {
    fn of(facts: &Facts) -> Self {
        Self {
            path: facts.path.clone(),
            origin: facts.origin,
            member: facts.member.clone(),
            status: facts.status,
            product: facts.product.as_ref().map(|product| product.name.clone()),
            version: facts.product.as_ref().and_then(|product| product.version.clone()),
            build_id: facts.elf.as_ref().and_then(|elf| elf.build_id.clone()),
            level: facts.optimization.level,
            text_bytes: facts.optimization.text.bytes,
        }
    }

    /// The name under which the side is shown.
    pub fn name(&self) -> String {
        match &self.member {
            Some(member) => format!("{}!{member}", self.path),
            None => self.path.clone(),
        }
    }
}

/// The document of `diff`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// `flagaudit/diff/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The baseline.
    pub old: Side,
    /// The candidate.
    pub new: Side,
    /// Differences, worse ones first.
    pub changes: Vec<Change>,
    /// Nothing changed.
    pub same: bool,
    /// Something changed for the worse.
    pub regression: bool,
    /// What was compared and is equal, in words.
    pub equal: Vec<String>,
    /// What differs and does not count, in words.
    pub ignored: Vec<String>,
    /// What could not be compared, with the reason.
    pub not_compared: Vec<String>,
}

impl DiffReport {
    /// How many changes go in a direction.
    pub fn count(&self, direction: Direction) -> usize {
        self.changes.iter().filter(|change| change.direction == direction).count()
    }
}

/// What the comparisons add to.
#[derive(Debug, Default)]
struct Ledger {
    changes: Vec<Change>,
    equal: Vec<String>,
    ignored: Vec<String>,
    not_compared: Vec<String>,
}

impl Ledger {
    fn change(&mut self, what: &str, old: Value, new: Value, direction: Direction, sentence: String) {
        self.changes.push(Change::new(what, old, new, direction, sentence));
    }
}

/// Compares two audited targets. Sides that failed have no facts to compare: the caller has to look at their status.
pub fn compare(old: &Facts, new: &Facts) -> DiffReport {
    let mut ledger = Ledger::default();
    levels::compare(old, new, &mut ledger);
    parts::compare(old, new, &mut ledger);
    for (word, facts) in [("old", old), ("new", new)] {
        if facts.status == Status::Partial {
            ledger.not_compared.push(format!("the {word} side could not be read in full"));
        }
    }
    // The sort is stable: within a direction the order is that of the comparisons, the most telling first.
    ledger.changes.sort_by_key(|change| change.direction);
    DiffReport {
        schema: "flagaudit/diff/1".to_owned(),
        tool: Tool::this(),
        old: Side::of(old),
        new: Side::of(new),
        same: ledger.changes.is_empty(),
        regression: ledger.changes.iter().any(|change| change.direction == Direction::Worse),
        changes: ledger.changes,
        equal: ledger.equal,
        ignored: ledger.ignored,
        not_compared: ledger.not_compared,
    }
}
