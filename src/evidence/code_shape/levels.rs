//! Which optimized level: only what was found separable, and only for x86-64.
//!
//! * gcc clears a register with `xor` from `-O2` and `-Os` on (`-fpeephole2`), and moves 0 below: share of moves
//!   .99 or more at `-O1` and `-Og`, at most .008 above (53 builds, 356 programs of a distribution).
//! * gcc and clang pad loops inside functions, except where size matters: .24 nops a function and more at
//!   `-O2`, at most .03 at `-Os` and `-Oz` (41 builds by gcc, 40 by clang).
//! * gcc makes conditional moves at `-O1` (2.9 in 1000 instructions and more), and hardly at `-Og` (1.1 and less; 23 builds).
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
                // Builds at -Og lie at 1.1 and below, those at -O1 at 2.9 and above; between, the lesser is sure.
                let moves = totals.conditional_moves * 1000;
                let (level, bound) = if moves < totals.instructions {
                    (Level::Og, Bound::Exact)
                } else if moves < totals.instructions * 2 {
                    (Level::Og, Bound::AtLeast)
                } else {
                    (Level::O1, Bound::Exact)
                };
                let reason = format!(
                    "{} of {cleared} registers are cleared by moving 0 and there are {} conditional moves in {} instructions",
                    totals.zero_moves, totals.conditional_moves, totals.instructions
                );
                return Some(Finer { level, bound, reason });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn totals() -> Totals {
        Totals { functions: 100, instructions: 10_000, zero_xors: 200, inner_nops: 300, ..Totals::default() }
    }

    fn level(totals: &Totals, family: &str) -> Option<(Level, Bound)> {
        finer(totals, family).map(|f| (f.level, f.bound))
    }

    #[test]
    fn gcc_is_told_by_cleared_registers_padding_and_conditional_moves() {
        let o2 = totals();
        assert_eq!(level(&o2, "gcc"), Some((Level::O2, Bound::AtLeast)));
        let size = Totals { inner_nops: 3, ..o2 };
        assert_eq!(level(&size, "gcc"), Some((Level::Os, Bound::Exact)));
        let o1 = Totals { zero_xors: 0, zero_moves: 200, conditional_moves: 40, ..size };
        assert_eq!(level(&o1, "gcc"), Some((Level::O1, Bound::Exact)));
        assert_eq!(level(&Totals { conditional_moves: 12, ..o1 }, "gcc"), Some((Level::Og, Bound::AtLeast)));
        assert_eq!(level(&Totals { conditional_moves: 4, ..o1 }, "gcc"), Some((Level::Og, Bound::Exact)));
    }

    #[test]
    fn what_is_not_separable_is_not_separated() {
        assert_eq!(level(&totals(), "clang"), None);
        assert_eq!(level(&Totals { inner_nops: 3, ..totals() }, "clang"), Some((Level::Os, Bound::Exact)));
        assert_eq!(level(&totals(), "icc"), None);
        assert_eq!(level(&Totals { functions: 20, ..totals() }, "gcc"), None);
        assert_eq!(level(&Totals { zero_xors: 10, ..totals() }, "gcc"), None);
    }
}
