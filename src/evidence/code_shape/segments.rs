//! Runs of functions of one state: maximum-scoring segments over the order of addresses.
//!
//! The linker keeps the functions of one object file together, so an unoptimized file in an optimized
//! program is a run of addresses. A function of the wanted state scores +1, one of the other −2, one
//! without information 0: a run survives a stray exception and does not swallow a neighbour.

use super::State;

/// A run must score this much: five functions without exception.
pub(super) const MIN_SCORE: i64 = 5;

/// A run ends where the score has fallen this far below its best.
const DROP: i64 = 6;

/// … or where it has not risen for this many functions. Keeps the time linear.
const LOOK_AHEAD: usize = 64;

/// A run of unoptimized functions ends before this many functions without information: most of them have a shape,
/// and a few in a wide stretch of another language's code are no run.
const SILENCE: usize = 16;

/// … and at least one in this many of its functions must have that shape.
const DENSITY: u64 = 3;

/// One run, by positions in the list given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Position of the first function.
    pub first: usize,
    /// Position of the last function.
    pub last: usize,
    /// Functions of the wanted state in it.
    pub matching: u64,
    /// Functions of either state in it.
    pub decided: u64,
}

/// … and a run needs this many of the wanted state, the rest may be functions that fit in ([`find`]).
const FIRM: u64 = 4;

/// A function that counts.
struct Decided {
    /// Its position in the list given.
    position: usize,
    /// Its place among the judged ones.
    judged: usize,
    /// It has the wanted state, or fits in.
    matches: bool,
    /// It has the wanted state.
    firm: bool,
}

/// Runs of `wanted`, in order and without overlap. A function that has no state of its own counts as well where it
/// `fits_in` a run of that state, by its position.
pub(super) fn find(states: &[State], wanted: State, fits_in: impl Fn(usize) -> bool) -> Vec<Segment> {
    let decided: Vec<Decided> = states
        .iter()
        .enumerate()
        .filter(|(_, state)| **state != State::NotJudged)
        .enumerate()
        .filter(|&(_, (position, state))| *state != State::Neutral || fits_in(position))
        .map(|(judged, (position, &state))| Decided {
            position,
            judged,
            matches: state == wanted || state == State::Neutral,
            firm: state == wanted,
        })
        .collect();
    let mut runs = Vec::new();
    let mut from = 0;
    while from < decided.len() {
        let Some((run, next)) = best_from(&decided, from, wanted == State::O0) else {
            from += 1;
            continue;
        };
        runs.extend(run);
        from = next;
    }
    runs
}

/// The best segment that begins at `from`, if a function of the wanted state is there, and where to go on. A `dense` one
/// has few functions without information in it.
fn best_from(decided: &[Decided], from: usize, dense: bool) -> Option<(Option<Segment>, usize)> {
    let first = decided.get(from).filter(|d| d.firm)?;
    let (mut score, mut best, mut at_best) = (0i64, 0i64, from);
    let (mut matching, mut matching_at_best) = (0u64, 0u64);
    let (mut firm, mut firm_at_best) = (0u64, 0u64);
    let mut before = first.judged;
    for (offset, function) in decided.get(from..)?.iter().enumerate() {
        if dense && function.judged - before > SILENCE {
            break;
        }
        before = function.judged;
        let at = from + offset;
        score += if function.matches { 1 } else { -2 };
        matching += u64::from(function.matches);
        firm += u64::from(function.firm);
        if score > best {
            (best, at_best, matching_at_best, firm_at_best) = (score, at, matching, firm);
        }
        if score < 0 || score <= best - DROP || at - at_best > LOOK_AHEAD {
            break;
        }
    }
    let last = decided.get(at_best)?;
    let judged = (last.judged - first.judged + 1) as u64;
    let enough = best >= MIN_SCORE && firm_at_best >= FIRM;
    let run = (enough && (!dense || matching_at_best * DENSITY >= judged)).then_some(Segment {
        first: first.position,
        last: last.position,
        matching: firm_at_best,
        // Those that only fit in have no state.
        decided: (at_best - from + 1) as u64 - (matching_at_best - firm_at_best),
    });
    Some((run, at_best + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(text: &str) -> Vec<State> {
        text.chars()
            .map(|c| match c {
                '0' => State::O0,
                '+' => State::Optimized,
                '.' => State::Neutral,
                _ => State::NotJudged,
            })
            .collect()
    }

    fn found(text: &str) -> Vec<(usize, usize)> {
        find(&states(text), State::O0, |_| false).into_iter().map(|s| (s.first, s.last)).collect()
    }

    #[test]
    fn five_in_a_row_are_a_run_and_four_are_not() {
        assert_eq!(found("++00000++"), [(2, 6)]);
        assert_eq!(found("++0000++"), []);
    }

    #[test]
    fn a_run_survives_an_exception_and_functions_without_information() {
        assert_eq!(found("++0000.x00+000++"), [(2, 13)]);
        let run = find(&states("++0000.x00+000++"), State::O0, |_| false)[0];
        assert_eq!((run.matching, run.decided), (9, 10));
    }

    #[test]
    fn runs_apart_stay_apart() {
        assert_eq!(found("00000++++++++00000000"), [(0, 4), (13, 20)]);
    }

    #[test]
    fn alternation_is_no_run_and_takes_linear_time() {
        let text = "00+".repeat(100_000);
        assert_eq!(found(&text), []);
    }

    #[test]
    fn a_few_among_many_without_information_are_no_run() {
        let far = format!("0{}", ".".repeat(20)).repeat(8);
        assert_eq!(found(&far), []);
        let thin = "0...".repeat(40);
        assert_eq!(found(&thin), []);
        assert_eq!(found(&"0.".repeat(8)), [(0, 14)]);
        // Two files far apart are two runs.
        let two = format!("00000{}00000", ".".repeat(20));
        assert_eq!(found(&two), [(0, 4), (25, 29)]);
    }

    #[test]
    fn four_and_those_that_fit_in_are_a_run() {
        let found = |text: &str| find(&states(text), State::O0, |_| true);
        assert_eq!((found("++0.00.0++")[0].first, found("++0.00.0++")[0].last), (2, 7));
        assert_eq!((found("++0.00.0++")[0].matching, found("++0.00.0++")[0].decided), (4, 4));
        assert!(found("++0...0.0++").is_empty());
        assert!(found("++0000++").is_empty());
        assert!(found("++..........++").is_empty());
    }

    #[test]
    fn the_wanted_state_may_be_the_other() {
        let runs = find(&states("00000+++++00000"), State::Optimized, |_| false);
        assert_eq!((runs[0].first, runs[0].last), (5, 9));
    }
}
