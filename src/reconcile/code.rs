//! What was seen of the machine code, and what it says of a range.

use super::account;
use crate::compiler::Level;
use crate::facts::FunctionRun;
use crate::image::ranges::total;
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
    /// What the functions in ranges of code, which were compiled together, say: runs decide, then the functions themselves,
    /// then the whole. A unit has as many ranges as functions where each has a section of its own (`-ffunction-sections`,
    /// Rust).
    pub(super) fn state_of(&self, ranges: &[Range<u64>]) -> Option<Level> {
        if self.cross_check_only || self.functions.is_empty() || ranges.is_empty() {
            return None;
        }
        let in_a_run = |range: &&Range<u64>| {
            let holds = |run: &FunctionRun| run.start <= range.start && range.end <= run.end;
            self.runs.iter().any(|run| run.level == Level::O0 && holds(run))
        };
        let bytes = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let in_runs: u64 = ranges.iter().filter(in_a_run).map(bytes).sum();
        if in_runs.saturating_mul(2) > total(ranges) {
            return Some(Level::O0);
        }
        if self.only_functions && !ranges.iter().all(|range| self.covers(range)) {
            return None;
        }
        let (mut o0, mut optimized, mut neutral) = (0u64, 0u64, 0u64);
        for (_, state) in ranges.iter().flat_map(|range| self.within(range)) {
            match state {
                State::O0 => o0 += 1,
                State::Optimized => optimized += 1,
                State::Neutral => neutral += 1,
            }
        }
        match self.whole {
            Whole::O0 if optimized == 0 || o0 >= optimized => Some(Level::O0),
            Whole::O0 => Some(Level::Optimized),
            Whole::Optimized | Whole::Mixed if o0 == 0 || optimized >= o0 => Some(Level::Optimized),
            // Several that are most of the unit, and nothing in it that only an optimizer does: its neighbours cannot vouch
            // for it, and they are too few to convict it.
            Whole::Optimized | Whole::Mixed if o0 < 5 && optimized == 0 && o0 >= 2 && o0 >= neutral => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As many functions of each sort in an optimized program, each with a range of its own.
    fn seen(o0: u64, optimized: u64, neutral: u64) -> (CodeSeen, Vec<Range<u64>>) {
        let states = [(State::O0, o0), (State::Optimized, optimized), (State::Neutral, neutral)];
        let states = states.into_iter().flat_map(|(state, count)| (0..count).map(move |_| state));
        let functions: Vec<(Range<u64>, State)> =
            states.zip(0..).map(|(state, at)| (at * 100..at * 100 + 90, state)).collect();
        let ranges = functions.iter().map(|(range, _)| range.clone()).collect();
        (CodeSeen { functions, whole: Whole::Optimized, ..CodeSeen::default() }, ranges)
    }

    #[test]
    fn functions_of_one_unit_are_weighed_together_whatever_ranges_they_have() {
        let unit = |o0, optimized, neutral| {
            let (seen, ranges) = seen(o0, optimized, neutral);
            seen.state_of(&ranges)
        };
        assert_eq!(unit(6, 2, 40), Some(Level::O0));
        assert_eq!(unit(6, 7, 0), Some(Level::Optimized));
        assert_eq!(unit(4, 0, 40), Some(Level::Optimized), "a few are only suspected");
        assert_eq!(
            unit(2, 0, 1),
            None,
            "what is shaped so throughout is not optimized because its neighbours are"
        );
        assert_eq!(unit(4, 0, 4), None);
        assert_eq!(unit(1, 0, 0), Some(Level::Optimized));
        let (seen, ranges) = seen(6, 2, 0);
        assert_eq!(seen.state_of(&ranges[..1]), Some(Level::Optimized), "as is one alone");
        assert_eq!(seen.state_of(&[]), None);
    }

    #[test]
    fn a_run_decides_for_what_lies_in_it_for_the_most_part() {
        let (mut seen, ranges) = seen(0, 4, 0);
        seen.runs = vec![FunctionRun {
            start: 0,
            end: 290,
            name: None,
            unit: None,
            module: None,
            level: Level::O0,
            functions: 3,
        }];
        assert_eq!(seen.state_of(&ranges), Some(Level::O0));
        assert_eq!(seen.state_of(&ranges[2..]), Some(Level::Optimized));
    }
}
