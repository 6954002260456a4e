//! Problems, kept few, and what reading may cost.

use super::DwarfUnits;
use crate::facts::Problem;
use crate::image::ReadError;
use crate::limits::Limits;
use std::collections::BTreeMap;

/// Problems of one kind that are reported one by one.
const SHOWN: u64 = 8;
/// Memory in bytes for the units themselves, their texts and ranges.
const UNIT_MEMORY: u64 = 96 << 20;

/// Collects problems. A file in which every unit is damaged yields a few and a count.
#[derive(Debug)]
pub(super) struct Notes {
    problems: Vec<Problem>,
    seen: BTreeMap<String, u64>,
    missing: Vec<String>,
    /// Longest text kept.
    pub(super) string_bytes: usize,
}

impl Notes {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            problems: Vec::new(),
            seen: BTreeMap::new(),
            missing: Vec::new(),
            string_bytes: limits.string_bytes,
        }
    }

    /// Something is lost. The message is only made if it is shown.
    pub(super) fn damage(&mut self, code: &str, message: impl FnOnce() -> String) {
        let count = self.seen.entry(code.to_owned()).or_default();
        *count += 1;
        if *count <= SHOWN {
            self.problems.push(Problem::damage(code, message()));
        }
    }

    /// A section could not be opened. `part` is its name without dot, such as `debug-str`.
    pub(super) fn read_error(&mut self, part: &str, error: &ReadError) {
        let code = match error {
            ReadError::TooLarge { .. } => format!("too-large-{part}"),
            _ => format!("damaged-{part}"),
        };
        self.damage(&code, || error.to_string());
    }

    /// Something that is referred to lies in a file that is not there.
    pub(super) fn missing(&mut self, what: &str) {
        if !self.missing.iter().any(|m| m == what) {
            self.missing.push(what.to_owned());
        }
    }

    pub(super) fn finish(self, out: &mut DwarfUnits) {
        out.problems = self.problems;
        for (code, count) in self.seen {
            if let Some(more) = count.checked_sub(SHOWN).filter(|more| *more > 0) {
                out.problems.push(Problem::damage(&code, format!("{more} more of this kind")));
            }
        }
        out.missing = self.missing;
    }
}

/// What is left of the limits of one [`super::read`].
#[derive(Debug)]
pub(super) struct Budget {
    /// Units.
    pub(super) units: usize,
    /// Bytes of memory for the result.
    memory: u64,
    /// Attributes and range entries.
    pub(super) steps: u64,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { units: limits.units, memory: UNIT_MEMORY, steps: limits.die_attributes }
    }

    /// Takes memory; false where none is left.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let enough = self.memory >= bytes as u64;
        if enough {
            self.memory -= bytes as u64;
        }
        enough
    }

    /// Takes steps; false where none are left.
    pub(super) fn step(&mut self, steps: u64) -> bool {
        let enough = self.steps >= steps;
        self.steps = self.steps.saturating_sub(steps);
        enough
    }
}
