//! What was seen of the machine code, and what it says of a range.

use super::account;
use crate::compiler::Level;
use crate::facts::FunctionRun;
use std::ops::Range;

/// What the code of one function says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Shaped like unoptimized code.
    O0,
    /// Does what only an optimizer does.
    Optimized,
    /// Could be either.
    Neutral,
}

/// What the code of the whole selection says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Whole {
    /// Unoptimized.
    O0,
    /// Optimized, with unoptimized runs in it.
    Mixed,
    /// Optimized.
    Optimized,
    /// Cannot be told.
    #[default]
    Unknown,
}

/// What was seen of the machine code.
#[derive(Debug, Clone, Default)]
pub struct CodeSeen {
    /// Functions looked at, ascending.
    pub functions: Vec<(Range<u64>, State)>,
    /// Unoptimized runs, ascending.
    pub runs: Vec<FunctionRun>,
    /// The whole.
    pub whole: Whole,
    /// One sentence with the count; why not, where unknown.
    pub sentence: String,
    /// Only a sample of recorded text was looked at, to hold it against the record.
    pub cross_check_only: bool,
    /// What is said of the whole is said of these functions alone: C code in a Go program, or all that a limit let be read.
    pub only_functions: bool,
}

impl CodeSeen {
    /// What the functions in a range of code say: a run decides, then the functions themselves, then the whole.
    pub(super) fn state_at(&self, range: &Range<u64>) -> Option<Level> {
        if self.cross_check_only || self.functions.is_empty() {
            return None;
        }
        if self
            .runs
            .iter()
            .any(|run| run.level == Level::O0 && run.start <= range.start && range.end <= run.end)
        {
            return Some(Level::O0);
        }
        if self.only_functions && !self.covers(range) {
            return None;
        }
        let (mut o0, mut optimized) = (0u64, 0u64);
        for (_, state) in self.within(range) {
            match state {
                State::O0 => o0 += 1,
                State::Optimized => optimized += 1,
                State::Neutral => {}
            }
        }
        match self.whole {
            Whole::O0 if optimized == 0 || o0 >= optimized => Some(Level::O0),
            Whole::O0 => Some(Level::Optimized),
            Whole::Optimized | Whole::Mixed if o0 == 0 || optimized >= o0 => Some(Level::Optimized),
            // Single functions shaped like -O0 in optimized code are suspected, not found guilty.
            Whole::Optimized | Whole::Mixed if o0 < 5 => Some(Level::Optimized),
            Whole::Optimized | Whole::Mixed => Some(Level::O0),
            // What only an optimizer does proves optimization also where the whole cannot be judged.
            Whole::Unknown if optimized > 0 && o0 == 0 => Some(Level::Optimized),
            Whole::Unknown => None,
        }
    }

    /// Ranges cut where functions begin and end, where those were found in the code and nothing else tells of them.
    pub(super) fn split(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let bounds: Vec<Range<u64>> = self.functions.iter().map(|(range, _)| range.clone()).collect();
        let mut pieces = Vec::with_capacity(ranges.len());
        for range in ranges {
            if self.cross_check_only || self.within(range).nth(1).is_none() {
                pieces.push(range.clone());
            } else {
                pieces.extend(account::split(range.clone(), &bounds, Clone::clone));
            }
        }
        pieces
    }

    pub(super) fn within(&self, range: &Range<u64>) -> impl Iterator<Item = &(Range<u64>, State)> {
        let first = self.functions.partition_point(|(f, _)| f.end <= range.start);
        let end = range.end;
        self.functions[first..].iter().take_while(move |(f, _)| f.start < end)
    }

    pub(super) fn covers(&self, range: &Range<u64>) -> bool {
        self.within(range).next().is_some()
    }
}
