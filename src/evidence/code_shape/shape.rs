//! What the machine code says: the types, and the claims made of them.

use super::{MIN_FUNCTIONS, State, Totals, Vote};
use crate::facts::{Problem, TailCalls};
use crate::wording::plural;
use std::ops::Range;

/// What the code says about the whole selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Unoptimized.
    O0,
    /// Unoptimized and optimized functions, in runs of their own.
    Mixed,
    /// Optimized.
    Optimized,
    /// Cannot be told, and why.
    Unknown(Unknown),
}

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// Nobody taught this program to read the machine's code.
    #[error("reading machine code of {0} is not supported here")]
    Machine(String),
    /// Addresses mean nothing before relocation.
    #[error("reading machine code of a relocatable file is not supported here")]
    Relocatable,
    /// There are no functions to be found.
    #[error("no functions were found: there is neither an unwind table nor a symbol table")]
    NoFunctions,
    /// Too little to judge.
    #[error(
        "too small: {} can be judged, fewer than {MIN_FUNCTIONS}; {o0} shaped like -O0",
        plural(*judged, "function")
    )]
    TooSmall {
        /// Functions judged.
        judged: u64,
        /// Functions shaped like -O0.
        o0: u64,
    },
    /// Functions have no shape.
    #[error("{decided} of {judged} functions have a shape that tells, too few for a verdict")]
    Undecided {
        /// Functions with a state.
        decided: u64,
        /// Functions judged.
        judged: u64,
    },
    /// The votes speak for -O0, the functions do not.
    #[error(
        "the signals disagree: {votes} votes for -O0, but only {o0} of {decided} functions are shaped like it"
    )]
    Disagree {
        /// Votes for -O0.
        votes: usize,
        /// Functions of that shape.
        o0: u64,
        /// Functions with a state.
        decided: u64,
    },
    /// Most of the code came ready-made, and the rest shows that it did not come from the same build.
    #[error(
        "{o0} of {judged} judged functions are shaped like -O0, and checks of debug assertions are compiled in, as by cargo's \
         dev profile; what is optimized may be the standard library alone"
    )]
    ReadyMade {
        /// Functions shaped like -O0.
        o0: u64,
        /// Functions judged.
        judged: u64,
    },
    /// Code of a language whose compiler keeps arguments in memory at higher levels, too.
    #[error("{0} code has another shape than C, from which no level can be told")]
    Language(&'static str),
}

/// One function and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// First address.
    pub start: u64,
    /// Address past the end.
    pub end: u64,
    /// What its code looks like.
    pub state: State,
    /// Ends in a jump to another function.
    pub tail_call: bool,
    /// Keeps a frame pointer.
    pub frame_pointer: bool,
}

/// A run of functions of one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// First address.
    pub start: u64,
    /// Address past the end.
    pub end: u64,
    /// [`State::O0`] or [`State::Optimized`].
    pub state: State,
    /// Functions of that state in it.
    pub functions: u64,
    /// Functions of either state in it.
    pub decided: u64,
}

/// How many functions are of which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Functions in the selection, split-off parts left out.
    pub functions: u64,
    /// Unoptimized.
    pub o0: u64,
    /// Optimized.
    pub optimized: u64,
    /// Judged, without information.
    pub neutral: u64,
    /// Not judged: too short, damaged, or left out.
    pub not_judged: u64,
}

impl Counts {
    /// Functions whose code was judged.
    pub fn judged(&self) -> u64 {
        self.o0 + self.optimized + self.neutral
    }

    /// Functions with a state.
    pub fn decided(&self) -> u64 {
        self.o0 + self.optimized
    }
}

/// What the machine code says.
#[derive(Debug, Clone)]
pub struct CodeShape {
    /// About the whole selection.
    pub verdict: Verdict,
    /// One sentence with its count.
    pub sentence: String,
    /// Every function of the selection, in order of address.
    pub functions: Vec<Judged>,
    /// How many are of which state.
    pub counts: Counts,
    /// Runs of one state, in order of address. Empty for a sample.
    pub runs: Vec<Run>,
    /// -O0-shaped functions outside all runs: single ones, such as those of an `optimize` attribute.
    pub strays: Vec<Range<u64>>,
    /// The votes.
    pub votes: Vec<Vote>,
    /// The sums behind them.
    pub totals: Totals,
    /// Bytes of text read.
    pub bytes_read: u64,
    /// Bytes of functions in the selection that a limit or the sampling left out: they stay unknown.
    pub bytes_left_out: u64,
    /// Functions found in the code itself, because nothing tells of them: their bounds are a guess.
    pub discovered: u64,
    /// Jumps out of functions are returns here (return thunks), so that tail calls cannot be counted.
    pub return_thunks: bool,
    /// What is said of the whole is said of these functions alone: the rest of the file is code of a language whose shape
    /// tells nothing.
    pub only_functions: bool,
    /// Which checks clang's traps are for: a bit for each number of `SanitizerHandler`.
    pub checks: u32,
    /// How many such traps were read.
    pub traps: u64,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

impl CodeShape {
    pub(super) fn unknown(why: Unknown) -> Self {
        Self {
            sentence: why.to_string(),
            verdict: Verdict::Unknown(why),
            functions: Vec::new(),
            counts: Counts::default(),
            runs: Vec::new(),
            strays: Vec::new(),
            votes: Vec::new(),
            totals: Totals::default(),
            bytes_read: 0,
            bytes_left_out: 0,
            discovered: 0,
            return_thunks: false,
            only_functions: false,
            checks: 0,
            traps: 0,
            problems: Vec::new(),
        }
    }

    /// Tail calls among the functions that begin at these addresses (sorted or not), or among all judged ones.
    /// `None` where no such function was judged, or where returns are jumps and so nothing can be counted.
    pub fn tail_calls(&self, starts: Option<&[u64]>) -> Option<TailCalls> {
        if self.return_thunks {
            return None;
        }
        let (mut functions, mut tail_calls) = (0u64, 0u64);
        let mut count = |judged: &Judged| {
            if judged.state != State::NotJudged || judged.tail_call {
                functions += 1;
                tail_calls += u64::from(judged.tail_call);
            }
        };
        match starts {
            None => self.functions.iter().for_each(&mut count),
            Some(starts) => starts
                .iter()
                .filter_map(|start| self.functions.binary_search_by_key(start, |j| j.start).ok())
                .filter_map(|found| self.functions.get(found))
                .for_each(&mut count),
        }
        let scope = if starts.is_some() { "filter-chain" } else { "all" };
        TailCalls::counted(tail_calls, functions, scope)
    }
}
