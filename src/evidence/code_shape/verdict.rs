//! From states and votes to a verdict on the whole, with its sentence.

use super::features::Arguments;
use super::{CodeShape, MIN_FUNCTIONS, Run, State, Unknown, Verdict, segments};
use std::ops::Range;

/// Votes that must be for `-O0`, or all but one where fewer are cast.
const MAJORITY: usize = 3;

/// Redundant loads in 1000 instructions: above this the vote is for `-O0` (builds at `-O0` have 43 to 121; the least
/// seen in a shipped program is 20).
const RELOADS_O0: u64 = 20;

/// … and below this the whole cannot be unoptimized.
const RELOADS_OPTIMIZED: u64 = 10;

/// Fills in runs, strays, verdict and sentence. Runs are looked for in each of the stretches of neighbouring functions; a
/// sample has none.
pub(super) fn settle(shape: &mut CodeShape, stretches: &[Range<usize>], arguments: Arguments) {
    if !stretches.is_empty() {
        find_runs(shape, stretches);
    }
    shape.verdict = decide(shape, arguments);
    if shape.verdict == Verdict::Optimized {
        // One long run that says what the verdict says; only exceptions are worth a place.
        shape.runs.retain(|run| run.state == State::O0);
    }
    shape.sentence = sentence(shape);
}

fn find_runs(shape: &mut CodeShape, stretches: &[Range<usize>]) {
    let states: Vec<State> = shape.functions.iter().map(|j| j.state).collect();
    let frames_are_rare = frames_are_rare(shape);
    let mut runs: Vec<Run> = Vec::new();
    for wanted in [State::O0, State::Optimized] {
        let fits_in = |position: usize| {
            frames_are_rare
                && wanted == State::O0
                && shape.functions.get(position).is_some_and(|function| function.frame_pointer)
        };
        let in_stretch = |stretch: &Range<usize>| {
            let states = states.get(stretch.clone()).unwrap_or_default();
            let from = stretch.start;
            let found = segments::find(states, wanted, |position| fits_in(from + position));
            found.into_iter().map(move |segment| (from, segment))
        };
        for (from, segment) in stretches.iter().flat_map(in_stretch) {
            let at = |position: usize| shape.functions.get(from + position);
            let (Some(first), Some(last)) = (at(segment.first), at(segment.last)) else { continue };
            runs.push(Run {
                start: first.start,
                end: last.end,
                state: wanted,
                functions: segment.matching,
                decided: segment.decided,
            });
        }
    }
    runs.sort_by_key(|run| (run.start, run.end));
    shape.strays = shape
        .functions
        .iter()
        .filter(|j| j.state == State::O0)
        .filter(|j| {
            let after = runs.partition_point(|r| r.start <= j.start);
            let inside = |r: &Run| r.state == State::O0 && j.start < r.end;
            !after.checked_sub(1).and_then(|i| runs.get(i)).is_some_and(inside)
        })
        .map(|j| j.start..j.end)
        .collect();
    shape.runs = runs;
}

/// Whether the optimized functions keep no frame pointer, but for one in fifty (`alloca` and realigned stacks need one).
/// Then one that keeps it fits in with unoptimized ones, also where it has no argument or variable to tell by.
fn frames_are_rare(shape: &CodeShape) -> bool {
    let optimized = || shape.functions.iter().filter(|f| f.state == State::Optimized);
    let framed = optimized().filter(|f| f.frame_pointer).count();
    let all = optimized().count();
    all >= 30 && framed * 50 <= all
}

fn decide(shape: &CodeShape, arguments: Arguments) -> Verdict {
    let counts = &shape.counts;
    let (judged, decided) = (counts.judged(), counts.decided());
    let votes = shape.votes.iter().filter(|v| v.holds()).count();
    // Storing arguments and using the frame is also what builders of structures do; loading again what is
    // still in a register is what only unoptimized code does, so that vote must be among them.
    let reloads = shape.totals.redundant * 1000 > shape.totals.instructions * RELOADS_O0;
    let majority = reloads && votes >= MAJORITY.min(shape.votes.len().saturating_sub(1));
    // Four in five of the functions that tell anything.
    let mostly = counts.o0 >= 5 && counts.o0 * 5 >= decided * 4;
    let half = counts.o0 * 2 >= decided && counts.o0 >= 5;
    let in_runs = |state| shape.runs.iter().filter(|r| r.state == state).map(|r| r.functions).sum::<u64>();
    let mixed = in_runs(State::O0) > 0 && in_runs(State::Optimized) > 0;
    if judged < MIN_FUNCTIONS {
        // A run stands for itself, however small the whole is: five functions of this shape in a row occur in no
        // optimized program measured. That nothing is unoptimized takes more.
        return match in_runs(State::O0) {
            0 => Verdict::Unknown(Unknown::TooSmall { judged, o0: counts.o0 }),
            _ if mixed || !mostly => Verdict::Mixed,
            _ => Verdict::O0,
        };
    }
    if (majority && half) || (mostly && votes >= 2) {
        return if mixed { Verdict::Mixed } else { Verdict::O0 };
    }
    let runs = in_runs(State::O0) > 0;
    // Statements that name a variable once load nothing again at -O0 either; but arguments are in the frame all the same, or,
    // where they come on the stack, functions keep a frame pointer by which they are found.
    let framed = match arguments {
        Arguments::InRegisters => shape.totals.keeps_arguments(),
        Arguments::OnStack => shape.totals.frame_pointer.saturating_mul(2) > shape.totals.functions,
    };
    let hardly_reloads =
        shape.totals.redundant * 1000 < shape.totals.instructions * RELOADS_OPTIMIZED && !framed;
    if !runs && decided * 5 < judged && !(hardly_reloads && counts.o0 == 0) {
        return Verdict::Unknown(Unknown::Undecided { decided, judged });
    }
    if !runs && majority {
        return Verdict::Unknown(Unknown::Disagree { votes, o0: counts.o0, decided });
    }
    if runs || (shape.runs.is_empty() && counts.o0 >= 5 && counts.o0 * 20 > decided) {
        return Verdict::Mixed;
    }
    Verdict::Optimized
}

fn sentence(shape: &CodeShape) -> String {
    let counts = &shape.counts;
    match &shape.verdict {
        Verdict::O0 => format!(
            "{} of {} judged functions keep their variables in the frame, as only unoptimized code does",
            counts.o0,
            counts.judged()
        ),
        Verdict::Mixed => {
            let runs = shape.runs.iter().filter(|run| run.state == State::O0);
            let ranges = runs.clone().count();
            let inside: u64 = runs.map(|run| run.functions).sum();
            let (functions, place) = match ranges {
                0 => (counts.o0, String::new()),
                1 => (inside, " in one range of addresses".to_owned()),
                n => (inside, format!(" in {n} ranges of addresses")),
            };
            format!(
                "{functions} functions{place} are shaped like -O0, {} of {} judged ones are optimized",
                counts.optimized,
                counts.judged()
            )
        }
        Verdict::Optimized if counts.optimized * 2 < counts.judged() => format!(
            "{} of {} judged functions are shaped like -O0, and {} of {} instructions load again what the code has at hand: optimized",
            counts.o0,
            counts.judged(),
            shape.totals.redundant,
            shape.totals.instructions
        ),
        Verdict::Optimized => {
            let stray =
                if counts.o0 > 0 { format!(", {} shaped like -O0", counts.o0) } else { String::new() };
            format!(
                "{} of {} judged functions are optimized ({} end in a tail call){stray}",
                counts.optimized,
                counts.judged(),
                shape.totals.tail_calls
            )
        }
        Verdict::Unknown(why) => why.to_string(),
    }
}
