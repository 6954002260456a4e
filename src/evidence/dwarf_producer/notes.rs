//! Problems, kept few, and what reading may cost.

use super::DwarfUnits;
use crate::facts::Problem;
use crate::image::ReadError;
use crate::limits::Limits;
use crate::parallel::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

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

/// Memory, units and steps that one of several readers takes at once from what they have in common: few, so that little lies
/// with one while another needs it, and enough that they rarely wait for each other.
const PORTION: Left = Left { units: 16, memory: 16 << 10, steps: 1 << 10 };

/// What may still be used.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    units: u64,
    /// Bytes of memory for the result.
    memory: u64,
    /// Attributes and range entries.
    steps: u64,
}

/// What several readers at the same time may use together.
#[derive(Debug)]
struct Common {
    left: Left,
    /// One of them wanted more than there was. Then none gets anything.
    refused: bool,
}

/// What is left of the limits of one [`super::read`]. Several readers at the same time have one in common, so that together
/// they use no more than one reader may.
#[derive(Debug)]
pub(in crate::evidence) struct Budget {
    /// What is left to this reader alone.
    left: Left,
    common: Option<Arc<Mutex<Common>>>,
}

impl Budget {
    pub(in crate::evidence) fn new(limits: &Limits) -> Self {
        let units = limits.units as u64;
        let memory = units.saturating_mul(UNIT_MEMORY).max(LEAST_MEMORY);
        Self { left: Left { units, memory, steps: limits.die_attributes }, common: None }
    }

    /// Memory for what one walk over a unit collects, given back after it.
    pub(in crate::evidence) fn memory_of_one_walk() -> Self {
        Self { left: Left { memory: WALK_MEMORY, ..Left::default() }, common: None }
    }

    /// Makes what is left common to this reader and to those that [`Self::another`] is called for.
    pub(in crate::evidence) fn make_common(&mut self) {
        if self.common.is_none() {
            let left = std::mem::take(&mut self.left);
            self.common = Some(Arc::new(Mutex::new(Common { left, refused: false })));
        }
    }

    /// The budget of another reader, which has everything in common with this one.
    pub(in crate::evidence) fn another(&self) -> Self {
        Self { left: Left::default(), common: self.common.clone() }
    }

    /// Whether several readers use it.
    pub(in crate::evidence) fn is_common(&self) -> bool {
        self.common.is_some()
    }

    /// Whether one of several readers was refused anything: which of them it is, and at what, is chance.
    pub(in crate::evidence) fn is_overdrawn(&self) -> bool {
        self.common.as_ref().is_some_and(|common| lock(common).refused)
    }

    /// Makes sure that so much of one kind is left to this reader; false where there is less.
    fn has(&mut self, amount: u64, kind: fn(&mut Left) -> &mut u64) -> bool {
        let here = kind(&mut self.left);
        let Some(missing) = amount.checked_sub(*here).filter(|missing| *missing > 0) else { return true };
        let Some(common) = &self.common else { return false };
        let mut common = lock(common);
        let left = *kind(&mut common.left);
        common.refused |= left < missing;
        if common.refused {
            return false;
        }
        let mut portion = PORTION;
        let drawn = missing.max(*kind(&mut portion)).min(left);
        *kind(&mut common.left) -= drawn;
        *here += drawn;
        true
    }

    /// Takes one unit and its memory. The error is what is used up; then nothing is taken.
    pub(in crate::evidence) fn take_unit(&mut self, bytes: usize) -> Result<(), &'static str> {
        if !self.has(1, |left| &mut left.units) {
            return Err("the limit of units");
        }
        if !self.take(bytes) {
            return Err("the memory for units");
        }
        self.left.units -= 1;
        Ok(())
    }

    /// Takes memory; false where none is left.
    pub(in crate::evidence) fn take(&mut self, bytes: usize) -> bool {
        let enough = self.has(bytes as u64, |left| &mut left.memory);
        if enough {
            self.left.memory -= bytes as u64;
        }
        enough
    }

    /// Takes steps; false where so many are not left, and then none are.
    pub(in crate::evidence) fn step(&mut self, steps: u64) -> bool {
        let enough = self.has(steps, |left| &mut left.steps);
        self.left.steps = if enough { self.left.steps - steps } else { 0 };
        enough
    }

    /// Whether any steps are left.
    pub(in crate::evidence) fn has_steps(&mut self) -> bool {
        self.has(1, |left| &mut left.steps)
    }
}
