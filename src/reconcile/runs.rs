//! Runs of unoptimized code, located, and single functions that are suspected.

use super::{State, Whole, Witnessed, is_vouched_for};
use crate::compiler::Level;
use crate::facts::FunctionRun;
use std::ops::Range;

/// Runs of unoptimized code with the units they lie in; what was recorded as unoptimized and no unit
/// describes is located, too.
pub(super) fn locate(seen: &Witnessed) -> Vec<FunctionRun> {
    let mut runs = seen.code.runs.clone();
    let recorded: Vec<Range<u64>> = seen
        .account
        .undescribed
        .iter()
        .filter(|range| seen.recorded_at(range) == Some(Level::O0))
        .filter(|range| {
            !runs.iter().any(|r| r.level == Level::O0 && r.start <= range.start && range.end <= r.end)
        })
        .cloned()
        .collect();
    runs.extend(recorded.into_iter().map(|range| FunctionRun {
        functions: seen.code.within(&range).count().max(1) as u64,
        start: range.start,
        end: range.end,
        name: None,
        unit: None,
        module: None,
        level: Level::O0,
    }));
    runs.extend(suspects(seen, &runs));
    runs.sort_by_key(|run| (run.start, run.end));
    for run in &mut runs {
        let dark = |range: &Range<u64>| {
            let undescribed = &seen.account.undescribed;
            let after = undescribed.partition_point(|r| r.end <= range.start);
            undescribed.get(after).is_some_and(|r| r.start < range.end)
        };
        let whole = run.start..run.end;
        // A run that reaches into code no unit describes is not the unit's alone.
        if run.unit.is_some()
            || seen.code.within(&whole).any(|(range, state)| *state == State::O0 && dark(range))
        {
            continue;
        }
        let of_unit = |live: &Vec<Range<u64>>| live.iter().any(|r| r.start < run.end && run.start < r.end);
        let mut names = seen
            .units
            .iter()
            .zip(&seen.account.live)
            .filter(|(_, live)| of_unit(live))
            .map(|(unit, _)| unit.name.as_str());
        run.unit = names.next().map(str::to_owned);
    }
    runs
}

/// Suspected single functions named one by one; where there are more, it is the level of the whole that is in doubt.
const SUSPECTS: usize = 8;

/// Functions shaped like `-O0` code in units of which words or structure tell a higher level: an attribute or a pragma may
/// have asked for it (neither is recorded). They are suspected only, and change no level.
pub(super) fn suspects(seen: &Witnessed, runs: &[FunctionRun]) -> Vec<FunctionRun> {
    let mut shaped = seen.code.functions.iter().filter(|(_, state)| *state == State::O0).peekable();
    if seen.code.whole == Whole::O0 || shaped.peek().is_none() {
        return Vec::new();
    }
    let mut recorded: Vec<(u64, u64, usize)> = Vec::new();
    for (index, (unit, live)) in seen.units.iter().zip(&seen.account.live).enumerate() {
        if is_vouched_for(unit) {
            recorded.extend(live.iter().map(|range| (range.start, range.end, index)));
        }
    }
    recorded.sort_unstable();
    let unit_at = |range: &Range<u64>| {
        let after = recorded.partition_point(|(start, ..)| *start <= range.start);
        let (_, end, index) = recorded.get(after.checked_sub(1)?)?;
        (range.end <= *end).then_some(*index)
    };
    let mut found = Vec::new();
    for (range, _) in shaped {
        let Some(unit) = unit_at(range).and_then(|index| seen.units.get(index)) else { continue };
        if runs.iter().any(|run| run.start < range.end && range.start < run.end) {
            continue;
        }
        found.push(FunctionRun {
            start: range.start,
            end: range.end,
            name: None,
            unit: Some(unit.name.clone()),
            module: None,
            level: Level::O0,
            functions: 1,
        });
    }
    if found.len() > SUSPECTS { Vec::new() } else { found }
}
