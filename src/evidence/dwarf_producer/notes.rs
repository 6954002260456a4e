//! Problems, kept few, and what reading may cost.

use super::DwarfUnits;
use crate::facts::Problem;
use crate::image::ReadError;
use crate::limits::Limits;
use std::collections::BTreeMap;

/// Problems of one kind that are reported one by one.
const SHOWN: u64 = 8;
/// Memory in bytes for one unit of the limit, for itself, its texts and ranges: 96 MiB by default. Sound files need
/// less than that many, and texts are mostly shared.
const UNIT_MEMORY: u64 = 96;
/// What files of few allowed units may use.
const LEAST_MEMORY: u64 = 1 << 20;
/// Memory for what one walk over the entries of a unit collects.
const WALK_MEMORY: u64 = 64 << 20;

/// Collects problems. A file in which every unit is damaged yields a few and a count.
#[derive(Debug)]
pub(in crate::evidence) struct Notes {
    problems: Vec<Problem>,
    seen: BTreeMap<String, u64>,
    missing: Vec<String>,
    /// Longest text kept.
    pub(in crate::evidence) string_bytes: usize,
}

impl Notes {
    pub(in crate::evidence) fn new(limits: &Limits) -> Self {
        Self {
            problems: Vec::new(),
            seen: BTreeMap::new(),
            missing: Vec::new(),
            string_bytes: limits.string_bytes,
        }
    }

    /// Whether there is nothing to report.
    pub(in crate::evidence) fn is_empty(&self) -> bool {
        self.problems.is_empty() && self.missing.is_empty()
    }

    /// Something is lost. The message is only made if it is shown.
    pub(in crate::evidence) fn damage(&mut self, code: &str, message: impl FnOnce() -> String) {
        let count = self.seen.entry(code.to_owned()).or_default();
        *count += 1;
        if *count <= SHOWN {
            self.problems.push(Problem::damage(code, message()));
        }
    }

    /// A section could not be opened. `part` is its name without dot, such as `debug-str`.
    pub(in crate::evidence) fn read_error(&mut self, part: &str, error: &ReadError) {
        let code = match error {
            ReadError::TooLarge { .. } => format!("too-large-{part}"),
            _ => format!("damaged-{part}"),
        };
        self.damage(&code, || error.to_string());
    }

    /// Something that is referred to lies in a file that is not there.
    pub(in crate::evidence) fn missing(&mut self, what: &str) {
        if !self.missing.iter().any(|m| m == what) {
            self.missing.push(what.to_owned());
        }
    }

    pub(in crate::evidence) fn finish(mut self, out: &mut DwarfUnits) {
        out.missing = std::mem::take(&mut self.missing);
        out.problems = self.into_problems();
    }

    /// The problems, with a count of those not shown.
    pub(in crate::evidence) fn into_problems(mut self) -> Vec<Problem> {
        for (code, count) in self.seen {
            if let Some(more) = count.checked_sub(SHOWN).filter(|more| *more > 0) {
                self.problems.push(Problem::damage(&code, format!("{more} more of this kind")));
            }
        }
        self.problems
    }
}

/// What is left of the limits of one [`super::read`].
#[derive(Debug)]
pub(in crate::evidence) struct Budget {
    /// Units.
    pub(in crate::evidence) units: usize,
    /// Bytes of memory for the result.
    memory: u64,
    /// Attributes and range entries.
    pub(in crate::evidence) steps: u64,
}

impl Budget {
    pub(in crate::evidence) fn new(limits: &Limits) -> Self {
        let memory = (limits.units as u64).saturating_mul(UNIT_MEMORY).max(LEAST_MEMORY);
        Self { units: limits.units, memory, steps: limits.die_attributes }
    }

    /// Memory for what one walk over a unit collects, given back after it.
    pub(in crate::evidence) fn memory_of_one_walk() -> Self {
        Self { units: 0, memory: WALK_MEMORY, steps: 0 }
    }

    /// Takes what reading a part used of another budget of the same limits; false where not so much, and some more, is left.
    pub(in crate::evidence) fn grant(&mut self, limits: &Limits, left: &Self) -> bool {
        let whole = Self::new(limits);
        let (units, memory) = (whole.units - left.units, whole.memory - left.memory);
        let steps = whole.steps - left.steps;
        let enough = self.units > units && self.memory > memory && self.steps > steps;
        if enough {
            self.units -= units;
            self.memory -= memory;
            self.steps -= steps;
        }
        enough
    }

    /// Takes memory; false where none is left.
    pub(in crate::evidence) fn take(&mut self, bytes: usize) -> bool {
        let enough = self.memory >= bytes as u64;
        if enough {
            self.memory -= bytes as u64;
        }
        enough
    }

    /// Takes steps; false where none are left.
    pub(in crate::evidence) fn step(&mut self, steps: u64) -> bool {
        let enough = self.steps >= steps;
        self.steps = self.steps.saturating_sub(steps);
        enough
    }
}
