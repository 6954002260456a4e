//! Which code is read, and what it says, in the terms of reconciliation.

use super::doubt;
use crate::compiler::Level;
use crate::evidence::code_shape::{
    self, CodeShape, Judged, Run, Selection, State as Shape, Unknown, Verdict,
};
use crate::evidence::texts;
use crate::facts::{FunctionRun, FunctionSeen, Functions, TailCalls, Unit, UnitKind};
use crate::image::Image;
use crate::image::functions::FunctionTable;
use crate::reconcile::{CodeSeen, State, Whole, Witnessed, is_doubtful, is_judged};
use std::collections::HashSet;
use std::ops::Range;

/// What was read of the machine code.
pub(super) struct CodeRead {
    /// For reconciliation.
    pub seen: CodeSeen,
    /// The witness's own words.
    pub shape: Option<CodeShape>,
    /// A sample of recorded text held against its record, where other code was read in full.
    pub sample: Option<CodeShape>,
    /// All code of the units that the sample contradicts.
    pub closer: Option<CodeShape>,
}

impl CodeRead {
    /// All that was read; functions may be in several.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &CodeShape> {
        [&self.shape, &self.sample, &self.closer].into_iter().flatten()
    }
}

/// Reads the code that no words describe: all of it where there are no units, else what the units leave
/// out and units whose compiler recorded no level. Recorded text is cross-checked on a fixed sample.
pub(super) fn read(image: &Image, table: &FunctionTable, witnessed: &Witnessed) -> CodeRead {
    let dark: Vec<Range<u64>> = dark_ranges(witnessed);
    let has_words = witnessed
        .units
        .iter()
        .any(|u| is_judged(u) && u.level != Level::Unknown && u.text_bytes > 0 && !is_doubtful(u));
    // Code of a library that came ready-made says nothing of the program it is linked into.
    let has_library = witnessed.units.iter().any(|u| u.kind == UnitKind::Library && u.text_bytes > 0);
    let judge = |selection: &Selection| code_shape::judge(image, &table.functions, selection);
    if witnessed.relocatable {
        return CodeRead { seen: CodeSeen::default(), shape: None, sample: None, closer: None };
    }
    if !has_words {
        let selection = if has_library { Selection::Ranges(dark) } else { Selection::All };
        let mut shape = judge(&selection);
        doubt_ready_made(image, &mut shape);
        return CodeRead { seen: seen(&shape, table, false), shape: Some(shape), sample: None, closer: None };
    }
    let sample = judge(&Selection::Sample(code_shape::SAMPLE));
    let closer = doubt::look(image, table, witnessed, &sample);
    let shape = (!dark.is_empty()).then(|| judge(&Selection::Ranges(dark)));
    let mut seen = seen(shape.as_ref().unwrap_or(&sample), table, shape.is_none());
    if let Some(closer) = &closer {
        add_doubts(&mut seen, closer, table);
    }
    CodeRead { seen, shape, sample: Some(sample), closer }
}

/// What Rust's compiler leaves in a program that was built with debug assertions: the checks of its standard library's
/// generic code, which the ready-made library itself has none of (`library/core/src/ub_checks.rs`).
const DEBUG_ASSERTIONS: &str = "unsafe precondition(s) violated";

/// Unoptimized functions in a program of Rust before they and debug assertions together outweigh the standard library, and
/// how many in a hundred: single ones look so in any large program (62 of 233,033 in distribution code).
const UNOPTIMIZED: u64 = 5;
const IN_A_HUNDRED: u64 = 1;

/// Rust's standard library comes optimized, and outnumbers what is unoptimized in a small program: it does not vouch for one
/// that shows a development build by its constants.
fn doubt_ready_made(image: &Image, shape: &mut CodeShape) {
    let (o0, judged) = (shape.counts.o0, shape.counts.judged());
    let many = o0 >= UNOPTIMIZED && o0.saturating_mul(100) >= judged.saturating_mul(IN_A_HUNDRED);
    if shape.verdict == Verdict::Optimized && many && texts::holds(image, DEBUG_ASSERTIONS) {
        let why = Unknown::ReadyMade { o0, judged };
        shape.sentence = why.to_string();
        shape.verdict = Verdict::Unknown(why);
    }
}

/// Adds the unoptimized functions and runs of units that say otherwise.
fn add_doubts(seen: &mut CodeSeen, closer: &CodeShape, table: &FunctionTable) {
    if seen.cross_check_only && seen.whole == Whole::O0 {
        seen.whole = Whole::Mixed;
    }
    let unoptimized = |judged: &&Judged| judged.state == Shape::O0;
    let known = seen.functions.iter().map(|(range, _)| range.start).collect::<HashSet<u64>>();
    let found = closer.functions.iter().filter(unoptimized).filter(|judged| !known.contains(&judged.start));
    seen.functions.extend(found.map(|judged| (judged.start..judged.end, State::O0)));
    seen.functions.sort_by_key(|(range, _)| range.start);
    let runs = closer.runs.iter().filter(|run| run.state == Shape::O0);
    seen.runs.extend(runs.map(|run| located(run, table)));
    seen.runs.sort_by_key(|run| run.start);
}

fn dark_ranges(witnessed: &Witnessed) -> Vec<Range<u64>> {
    let unknown = |unit: &Unit| is_judged(unit) && (unit.level == Level::Unknown || is_doubtful(unit));
    let units = witnessed
        .units
        .iter()
        .zip(&witnessed.account.live)
        .filter(|(unit, _)| unknown(unit))
        .flat_map(|(_, live)| live.iter().cloned());
    crate::image::merge(witnessed.account.undescribed.iter().cloned().chain(units).collect())
}

fn seen(shape: &CodeShape, table: &FunctionTable, cross_check_only: bool) -> CodeSeen {
    let partial = !cross_check_only && shape.bytes_left_out > 0;
    CodeSeen {
        functions: shape
            .functions
            .iter()
            .filter(|judged| !partial || judged.state != Shape::NotJudged)
            .map(|judged| {
                let state = match judged.state {
                    Shape::O0 => State::O0,
                    Shape::Optimized => State::Optimized,
                    Shape::Neutral | Shape::NotJudged => State::Neutral,
                };
                (judged.start..judged.end, state)
            })
            .collect(),
        runs: shape.runs.iter().map(|run| located(run, table)).collect(),
        whole: match shape.verdict {
            Verdict::O0 => Whole::O0,
            Verdict::Mixed => Whole::Mixed,
            Verdict::Optimized => Whole::Optimized,
            Verdict::Unknown(_) => Whole::Unknown,
        },
        sentence: shape.sentence.clone(),
        cross_check_only,
        only_functions: shape.only_functions || partial,
    }
}

fn located(run: &Run, table: &FunctionTable) -> FunctionRun {
    FunctionRun {
        start: run.start,
        end: run.end,
        name: table.at(run.start).and_then(|function| function.name.clone()),
        unit: None,
        module: None,
        level: if run.state == Shape::O0 { Level::O0 } else { Level::Optimized },
        functions: run.functions,
    }
}

/// Tail calls in nginx's chain of header and body filters, which decide how deep the stack is for each
/// response; for other programs, and where the filters are not found, among all functions judged.
pub(super) fn tail_calls(
    image: &Image,
    table: &FunctionTable,
    code: &CodeRead,
    filters: &[u64],
) -> Option<TailCalls> {
    if !filters.is_empty() {
        let ranges =
            filters.iter().filter_map(|&start| table.at(start)).map(|f| f.start..f.end).collect::<Vec<_>>();
        let shape =
            code_shape::judge(image, &table.functions, &Selection::Ranges(crate::image::merge(ranges)));
        return shape.tail_calls(Some(filters));
    }
    code.shape.as_ref().filter(|_| code.sample.is_none()).and_then(|shape| shape.tail_calls(None))
}

/// Modules named for one run before it is called a mixture.
const MODULES_NAMED: usize = 3;

/// Names unoptimized runs after the nginx modules whose functions lie in them.
pub(super) fn name_modules(runs: &mut [FunctionRun], handlers: &[(u64, String)]) {
    for run in runs.iter_mut().filter(|run| run.level == Level::O0) {
        let first = handlers.partition_point(|(address, _)| *address < run.start);
        let mut modules: Vec<&str> = Vec::new();
        for (_, module) in handlers[first..].iter().take_while(|(address, _)| *address < run.end) {
            if !modules.contains(&module.as_str()) {
                modules.push(module);
            }
        }
        run.module = match modules.len() {
            0 => None,
            1..=MODULES_NAMED => Some(modules.join(", ")),
            more => Some(format!("{} and {} more modules", modules[0], more - 1)),
        };
    }
}

/// The functions of the facts.
pub(super) fn functions(table: &FunctionTable, code: &CodeRead, runs: Vec<FunctionRun>) -> Functions {
    let shape = code.shape.as_ref().or(code.sample.as_ref());
    let first = shape.map_or(&[][..], |shape| &shape.functions);
    let judged = match &code.closer {
        Some(closer) => &doubt::joined(first, &closer.functions),
        None => first,
    };
    let of = |wanted: Shape| judged.iter().filter(|judged| judged.state == wanted).count() as u64;
    let level = |judged: &Judged| match judged.state {
        Shape::O0 => Level::O0,
        Shape::Optimized => Level::Optimized,
        _ => Level::Unknown,
    };
    let mut list: Vec<FunctionSeen> = table
        .functions
        .iter()
        .map(|function| {
            let found = judged.binary_search_by_key(&function.start, |judged| judged.start).ok();
            let level = found.and_then(|at| judged.get(at)).map_or(Level::Unknown, level);
            FunctionSeen { start: function.start, end: function.end, name: function.name.clone(), level }
        })
        .collect();
    // Those that were found in the code alone are in no table.
    if shape.is_some_and(|shape| shape.discovered > 0) {
        let found = judged.iter().filter(|judged| table.at(judged.start).is_none());
        list.extend(found.map(|judged| FunctionSeen {
            start: judged.start,
            end: judged.end,
            name: None,
            level: level(judged),
        }));
        list.sort_by_key(|function| function.start);
    }
    Functions {
        count: list.len() as u64,
        judged: judged.len() as u64 - of(Shape::NotJudged),
        o0_shaped: of(Shape::O0),
        runs,
        list: Some(list),
    }
}
