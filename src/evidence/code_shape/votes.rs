//! Sums over all judged functions, and the votes they cast on the whole.
//!
//! Thresholds lie in the gap between 49 builds at `-O0` and 449 optimized ones (x86-64) and 5 and 15 (aarch64):
//!
//! | vote | `-O0` | optimized |
//! |---|---|---|
//! | functions that store an argument into the frame in their entry block | .79–.99 | 0–.52 |
//! | instructions that access a slot of the frame | .25–.43 | .007–.20 |
//! | redundant loads per 1000 instructions | 43–121 | median .2, most 37 (hash tools) |
//! | functions that save higher callee-saved registers | 0–.07 | .07–.96 |
//!
//! No vote decides alone: struct builders store arguments, hashes reload, small programs save nothing.

use super::features::{Arguments, Features};

/// One vote: a measured share, the threshold, and on which side of it unoptimized code lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// What is counted, as a phrase: "functions store an argument into the frame at once".
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// Out of how many.
    pub of: u64,
    /// Threshold, in thousandths.
    pub threshold: u64,
    /// Unoptimized code lies above the threshold (else below).
    pub above: bool,
}

impl Vote {
    /// Whether the vote is for `-O0`.
    pub fn holds(&self) -> bool {
        if self.of == 0 {
            return false;
        }
        let count = u128::from(self.count) * 1000;
        let limit = u128::from(self.of) * u128::from(self.threshold);
        if self.above { count > limit } else { count < limit }
    }

    /// The share in percent, for a sentence.
    pub fn percent(&self) -> f64 {
        if self.of == 0 { 0.0 } else { self.count as f64 * 100.0 / self.of as f64 }
    }
}

impl std::fmt::Display for Vote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = if self.above { "above" } else { "below" };
        write!(
            f,
            "{} of {} {} ({:.1} %; -O0 is {side} {:.0} %)",
            self.count,
            self.of,
            self.what,
            self.percent(),
            self.threshold as f64 / 10.0
        )
    }
}

/// Sums over judged functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Functions.
    pub functions: u64,
    /// Their instructions.
    pub instructions: u64,
    /// Functions that store an argument at once, other than for `va_arg`.
    pub stored: u64,
    /// Functions that store their first argument at once, and read it there.
    pub kept: u64,
    /// Functions that keep a frame pointer.
    pub frame_pointer: u64,
    /// Instructions that access a slot.
    pub slots: u64,
    /// Redundant loads.
    pub redundant: u64,
    /// Functions that save higher callee-saved registers.
    pub saves_high: u64,
    /// Functions that end in a jump to another.
    pub tail_calls: u64,
}

impl Totals {
    /// Adds one judged function.
    pub(super) fn add(&mut self, f: &Features, tail: bool) {
        self.functions += 1;
        self.instructions += u64::from(f.instructions);
        self.stored += u64::from(f.first_stored || f.any_stored && !f.varargs);
        self.kept += u64::from(f.first_stored && f.read_back);
        self.frame_pointer += u64::from(f.frame_pointer);
        self.slots += u64::from(f.slots);
        self.redundant += u64::from(f.redundant);
        self.saves_high += u64::from(f.saves_high);
        self.tail_calls += u64::from(tail);
    }

    /// Whether most functions have their first argument in the frame and read it there, as in unoptimized programs. Builders of
    /// messages store it, too, and leave it there. Never where arguments come on the stack.
    pub(super) fn keeps_arguments(&self) -> bool {
        self.kept.saturating_mul(2) > self.functions
    }

    /// The votes. Where arguments come on the stack, nothing is stored at the entry and that vote is not cast.
    pub(super) fn votes(&self, arguments: Arguments, high: &'static str) -> Vec<Vote> {
        let mut votes = Vec::with_capacity(4);
        if arguments == Arguments::InRegisters {
            votes.push(Vote {
                what: "functions store an argument into the frame at once",
                count: self.stored,
                of: self.functions,
                threshold: 700,
                above: true,
            });
        }
        votes.push(Vote {
            what: "instructions access a slot of the frame",
            count: self.slots,
            of: self.instructions,
            threshold: if arguments == Arguments::InRegisters { 230 } else { 200 },
            above: true,
        });
        votes.push(Vote {
            what: "instructions load a slot again in the same basic block",
            count: self.redundant,
            of: self.instructions,
            threshold: 20,
            above: true,
        });
        votes.push(Vote {
            what: high,
            count: self.saves_high,
            of: self.functions,
            threshold: 120,
            above: false,
        });
        votes
    }
}
