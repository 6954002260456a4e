//! Optimization levels and their two orders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The optimization level of code. The derived order is the one in which "the lowest level of a
/// binary" is meant: by expected speed of the code, worst first, `Unknown` last.
///
/// For a policy's `minimum` another order holds: see [`Level::satisfies`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
pub enum Level {
    /// No optimization (also: a GCC command line without any `-O`).
    O0,
    /// Optimized for debugging.
    Og,
    /// `-O1`, `-O`; nginx's own default.
    O1,
    /// Smallest size.
    Oz,
    /// Small size.
    Os,
    /// `-O2`.
    O2,
    /// `-O3` and above.
    O3,
    /// `-O3` with non-standard floating point.
    Ofast,
    /// At least `Og`; more is not known.
    #[serde(rename = "optimized")]
    Optimized,
    /// Nothing tells.
    #[default]
    #[serde(rename = "unknown")]
    Unknown,
}

/// The answer to "does this level meet that minimum?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Satisfies {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// The code is optimized, but the minimum is not proven.
    NotProven,
    /// Nothing is known: it may be `-O0`.
    Unknown,
}

impl Level {
    /// Levels a policy may name, in the order of the contract.
    pub const NAMED: [Self; 8] =
        [Self::O0, Self::Og, Self::O1, Self::Oz, Self::Os, Self::O2, Self::O3, Self::Ofast];

    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::O0 => "O0",
            Self::Og => "Og",
            Self::O1 => "O1",
            Self::Oz => "Oz",
            Self::Os => "Os",
            Self::O2 => "O2",
            Self::O3 => "O3",
            Self::Ofast => "Ofast",
            Self::Optimized => "optimized",
            Self::Unknown => "unknown",
        }
    }

    /// The level as typed on a command line, for sentences: `-O2`, or the plain word.
    pub fn flag(self) -> String {
        match self {
            Self::Optimized | Self::Unknown => self.as_str().to_owned(),
            named => format!("-{}", named.as_str()),
        }
    }

    /// Whether code of this level meets `minimum`. The order is `O0 < Og < O1 < O2 < O3 < Ofast`; `Os` and `Oz`
    /// count as `O1`; `Optimized` meets up to `O1` and is not proven above.
    pub fn satisfies(self, minimum: Self) -> Satisfies {
        fn rank(level: Level) -> u8 {
            match level {
                Level::O0 => 0,
                Level::Og => 1,
                Level::O1 | Level::Os | Level::Oz | Level::Optimized | Level::Unknown => 2,
                Level::O2 => 3,
                Level::O3 => 4,
                Level::Ofast => 5,
            }
        }
        match self {
            Self::Unknown => Satisfies::Unknown,
            Self::Optimized if rank(minimum) > 2 => Satisfies::NotProven,
            known if rank(known) >= rank(minimum) => Satisfies::Yes,
            _ => Satisfies::No,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Level {
    type Err = ();
    fn from_str(word: &str) -> Result<Self, ()> {
        Self::NAMED
            .into_iter()
            .chain([Self::Optimized, Self::Unknown])
            .find(|level| level.as_str() == word)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_is_by_the_contract() {
        let mut all =
            [Level::Ofast, Level::O2, Level::Os, Level::Oz, Level::O1, Level::Og, Level::O3, Level::O0];
        all.sort();
        assert_eq!(all, Level::NAMED);
    }

    #[test]
    fn size_levels_count_as_o1_and_optimized_is_not_proven_above() {
        assert_eq!(Level::Os.satisfies(Level::O1), Satisfies::Yes);
        assert_eq!(Level::Os.satisfies(Level::O2), Satisfies::No);
        assert_eq!(Level::Og.satisfies(Level::O1), Satisfies::No);
        assert_eq!(Level::Optimized.satisfies(Level::O1), Satisfies::Yes);
        assert_eq!(Level::Optimized.satisfies(Level::O2), Satisfies::NotProven);
        assert_eq!(Level::Unknown.satisfies(Level::O0), Satisfies::Unknown);
        assert_eq!(Level::Ofast.satisfies(Level::O3), Satisfies::Yes);
    }
}
