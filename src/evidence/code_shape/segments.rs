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

/// Runs of `wanted`, in order and without overlap.
pub(super) fn find(states: &[State], wanted: State) -> Vec<Segment> {
    let decided: Vec<(usize, bool)> = states
        .iter()
        .enumerate()
        .filter(|(_, state)| matches!(state, State::O0 | State::Optimized))
        .map(|(position, state)| (position, *state == wanted))
        .collect();
    let mut runs = Vec::new();
    let mut from = 0;
    while from < decided.len() {
        let Some((run, next)) = best_from(&decided, from) else {
            from += 1;
            continue;
        };
        runs.extend(run);
        from = next;
    }
    runs
}

/// The best segment that begins at `from`, if a function of the wanted state is there, and where to go on.
fn best_from(decided: &[(usize, bool)], from: usize) -> Option<(Option<Segment>, usize)> {
    let &(first, true) = decided.get(from)? else { return None };
    let (mut score, mut best, mut at_best) = (0i64, 0i64, from);
    let (mut matching, mut matching_at_best) = (0u64, 0u64);
    for (offset, &(_, matches)) in decided.get(from..)?.iter().enumerate() {
        let at = from + offset;
        score += if matches { 1 } else { -2 };
        matching += u64::from(matches);
        if score > best {
            (best, at_best, matching_at_best) = (score, at, matching);
        }
        if score < 0 || score <= best - DROP || at - at_best > LOOK_AHEAD {
            break;
        }
    }
    let (last, _) = *decided.get(at_best)?;
    let run = (best >= MIN_SCORE).then_some(Segment {
        first,
        last,
        matching: matching_at_best,
        decided: (at_best - from + 1) as u64,
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
        find(&states(text), State::O0).into_iter().map(|s| (s.first, s.last)).collect()
    }

    #[test]
    fn five_in_a_row_are_a_run_and_four_are_not() {
        assert_eq!(found("++00000++"), [(2, 6)]);
        assert_eq!(found("++0000++"), []);
    }

    #[test]
    fn a_run_survives_an_exception_and_functions_without_information() {
        assert_eq!(found("++0000.x00+000++"), [(2, 13)]);
        let run = find(&states("++0000.x00+000++"), State::O0)[0];
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
    fn the_wanted_state_may_be_the_other() {
        let runs = find(&states("00000+++++00000"), State::Optimized);
        assert_eq!((runs[0].first, runs[0].last), (5, 9));
    }
}
