//! Which optimized level: only what was found separable, and only for x86-64.
//!
//! * gcc clears a register with `xor` from `-O2` and `-Os` on (`-fpeephole2`), and moves 0 below: share of moves
//!   .99 or more at `-O1` and `-Og`, at most .008 above (53 builds, 356 programs of a distribution).
//! * gcc and clang pad loops inside functions, except where size matters: .24 nops a function and more at
//!   `-O2`, at most .03 at `-Os` and `-Oz` (41 builds by gcc, 40 by clang).
//! * gcc makes conditional moves at `-O1` (2.9 in 1000 instructions and more), and hardly at `-Og` (.8; 12 builds).
//!
//! gcc's `-O2` against `-O3` and clang's `-O1` against `-O2` are not separable, and are not separated.

use super::votes::Totals;
use crate::compiler::Level;
use crate::facts::Bound;

/// Fewest judged functions for a finer level.
const MIN_FUNCTIONS: u64 = 50;
/// Fewest cleared registers.
const MIN_CLEARED: u64 = 40;

/// A level read from optimized code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finer {
    /// The level.
    pub level: Level,
    /// Exact, or the least it can be.
    pub bound: Bound,
    /// The count it rests on.
    pub reason: String,
}

/// The level of code that is known to be optimized, by `family` (`gcc` or `clang`; others are not known).
pub(super) fn finer(totals: &Totals, family: &str) -> Option<Finer> {
    if totals.functions < MIN_FUNCTIONS {
        return None;
    }
    // Less than one nop in ten functions.
    let padded = totals.inner_nops * 10 >= totals.functions;
    let nops = format!("{} nops inside {} functions", totals.inner_nops, totals.functions);
    match family {
        "gcc" => {
            let cleared = totals.zero_moves + totals.zero_xors;
            if cleared < MIN_CLEARED {
                return None;
            }
            if totals.zero_moves * 2 > cleared {
                let debug = totals.conditional_moves * 1000 < totals.instructions;
                let level = if debug { Level::Og } else { Level::O1 };
                let reason = format!(
                    "{} of {cleared} registers are cleared by moving 0 and there are {} conditional moves in {} instructions",
                    totals.zero_moves, totals.conditional_moves, totals.instructions
                );
                return Some(Finer { level, bound: Bound::Exact, reason });
            }
            if padded {
                Some(Finer { level: Level::O2, bound: Bound::AtLeast, reason: nops })
            } else {
                Some(Finer { level: Level::Os, bound: Bound::Exact, reason: nops })
            }
        }
        // `-Oz` is told from `-Os` by too little to be named.
        "clang" if !padded => Some(Finer { level: Level::Os, bound: Bound::Exact, reason: nops }),
        _ => None,
    }
}
