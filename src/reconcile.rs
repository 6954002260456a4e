//! Claims become facts: which level the binary has, how firmly that stands, and who disagrees.
//!
//! What a witness recorded beats what the file's structure shows, which beats what the build system
//! declares, which beats what was inferred from code; but a declaration counts only where the code was
//! read and agrees, and disagreement is kept as a conflict. What nothing tells stays unknown.

use crate::compiler::{Level, Satisfies};
use crate::evidence::{Claim, Scope, Source, Strength};
use crate::facts::{Bound, Conflict, FunctionRun, LevelShare, Optimization, TextAccount, Unit, UnitKind};
use crate::image::ranges;
use account::Account;
use std::collections::BTreeMap;
use std::ops::Range;

pub mod account;
mod claims;
mod code;
pub mod instrumented;
pub mod map;
mod reason;
mod runs;
pub mod units;
pub use code::{CodeSeen, State, Whole};

/// Everything that was witnessed about the level.
#[derive(Debug, Default)]
pub struct Witnessed {
    /// Units, with their live bytes still to be filled in.
    pub units: Vec<Unit>,
    /// The account of the text.
    pub account: Account,
    /// What the code says.
    pub code: CodeSeen,
    /// The level that the build system declares for the program's own code, if it does.
    pub declared: Option<Claim>,
    /// Ranges of text whose level a compiler recorded outside units (annobin), ascending and without overlap.
    pub recorded_ranges: Vec<(Range<u64>, Level)>,
    /// Further claims about the level (recorded command lines, notes, macros, string merging, imports).
    pub claims: Vec<Claim>,
    /// Every source file of the program left its command line (`.GCC.command.line`), so that the lowest of them
    /// holds for all code; see [`crate::evidence::gcc_command_line::CommandLines::cover`].
    pub lines_cover: bool,
    /// Addresses mean nothing (relocatable file or archive): units have their bytes already, see
    /// [`units::Units::share_relocatable`].
    pub relocatable: bool,
    /// This is a separate debug file: the code itself is in the binary it belongs to.
    pub code_elsewhere: bool,
    /// Why there is no debug information, for the sentence.
    pub debug_absent: Option<String>,
}

/// What reconciliation holds.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The level and its account.
    pub optimization: Optimization,
    /// Disagreements.
    pub conflicts: Vec<Conflict>,
    /// Units with levels and bytes filled in.
    pub units: Vec<Unit>,
    /// Located runs, with unit names where units tell.
    pub runs: Vec<FunctionRun>,
}

/// Whether a unit's level is judged at all.
pub fn is_judged(unit: &Unit) -> bool {
    matches!(unit.kind, UnitKind::Source | UnitKind::LtoPartition | UnitKind::Skeleton)
}

/// Whether words or structure tell of a unit that it is optimized.
pub fn is_vouched_for(unit: &Unit) -> bool {
    unit.kind == UnitKind::Source
        && matches!(unit.strength, Strength::Recorded | Strength::Structural)
        && !matches!(unit.level, Level::O0 | Level::Unknown)
}

/// Whether a unit is `-O0` by GCC's marks alone, which other options leave as well: what its code shows counts for more.
pub fn is_doubtful(unit: &Unit) -> bool {
    unit.level == Level::O0 && unit.strength == Strength::Inferred && unit.sources == [Source::DwarfShape]
}

/// Decides.
pub fn reconcile(mut seen: Witnessed) -> Outcome {
    let declared = seen.declared.as_ref().map_or(Level::Unknown, Claim::level);
    let recorded_elsewhere = seen.recorded_at_large();
    fill_units(&mut seen);
    let mut shares: BTreeMap<Level, (u64, u64, u64)> = BTreeMap::new();
    let mut text = TextAccount {
        bytes: seen.account.bytes,
        padding: seen.account.padding,
        runtime: seen.account.runtime,
        ..TextAccount::default()
    };
    for unit in &seen.units {
        match (unit.kind, unit.strength) {
            (UnitKind::Assembly, _) | (_, Strength::Recorded) => text.recorded += unit.text_bytes,
            (_, Strength::Structural) => text.structural += unit.text_bytes,
            (_, Strength::Inferred) => text.inferred += unit.text_bytes,
            (UnitKind::Toolchain, _) => text.runtime += unit.text_bytes,
            _ => text.unknown += unit.text_bytes,
        }
        if is_judged(unit) && is_live(unit, &seen) {
            let share = shares.entry(unit.level).or_default();
            share.0 += 1;
            share.2 += unit.text_bytes;
        }
    }
    if seen.relocatable {
        // Addresses mean nothing: what the units do not account for is described by none.
        let described: u64 = seen.units.iter().map(|unit| unit.text_bytes).sum();
        let dark = text.bytes.saturating_sub(described);
        text.bytes = text.bytes.max(described);
        text.unknown += dark;
        if dark > 0 {
            shares.entry(Level::Unknown).or_default().2 += dark;
        }
    }
    let fallback = fallback(&seen, declared, recorded_elsewhere);
    let undescribed = seen.code.split(&seen.account.undescribed);
    let mut levels = Vec::with_capacity(undescribed.len());
    for range in &undescribed {
        let size = range.end - range.start;
        if let Some(level) = seen.recorded_at(range) {
            text.recorded += size;
            let share = shares.entry(level).or_default();
            share.1 += u64::from(seen.code.covers(range));
            share.2 += size;
            levels.push(level);
            continue;
        }
        let state = seen.code.state_of(std::slice::from_ref(range));
        if let Some((level, _)) = recorded_elsewhere.filter(|_| seen.lines_cover && state != Some(Level::O0))
        {
            text.recorded += size;
            let share = shares.entry(level).or_default();
            share.1 += u64::from(seen.code.covers(range));
            share.2 += size;
            levels.push(level);
            continue;
        }
        let level = match state {
            Some(Level::O0) => Level::O0,
            Some(_) if fallback.0 != Level::Unknown && fallback.0 != Level::O0 => fallback.0,
            Some(level) => level,
            None => Level::Unknown,
        };
        let level = if level != Level::Unknown {
            text.inferred += size;
            level
        } else if declared != Level::Unknown {
            text.declared += size;
            declared
        } else {
            text.unknown += size;
            Level::Unknown
        };
        levels.push(level);
        let share = shares.entry(level).or_default();
        share.1 += u64::from(seen.code.covers(range));
        share.2 += size;
    }
    let by_level = shares
        .into_iter()
        .map(|(level, (units, functions, text_bytes))| LevelShare { level, units, functions, text_bytes })
        .collect();
    let of_units = seen.units.iter().zip(&seen.account.live).filter(|(unit, _)| is_judged(unit));
    let spans = of_units.flat_map(|(unit, live)| live.iter().map(|range| (range, unit.level)));
    let map = map::slices(spans.chain(undescribed.iter().zip(levels)));
    let runs = runs::locate(&seen);
    let mut outcome = Outcome {
        optimization: Optimization { by_level, text, map, ..Optimization::default() },
        conflicts: claims::conflicts(&seen, declared),
        runs,
        ..Outcome::default()
    };
    conclude(&mut outcome, &seen, fallback);
    outcome.optimization.claims = claims::all(&seen);
    outcome.optimization.reason = reason::sentence(&outcome, &seen, declared);
    outcome.units = seen.units;
    outcome
}

impl Witnessed {
    /// The lowest level recorded for a range of text that no unit describes, if all of it is recorded.
    fn recorded_at(&self, range: &Range<u64>) -> Option<Level> {
        let first = self.recorded_ranges.partition_point(|(r, _)| r.end <= range.start);
        let here: Vec<&(Range<u64>, Level)> =
            self.recorded_ranges[first..].iter().take_while(|(r, _)| r.start < range.end).collect();
        let covered: u64 = here.iter().map(|(r, _)| r.end.min(range.end) - r.start.max(range.start)).sum();
        if covered < range.end - range.start {
            return None;
        }
        here.iter().map(|(_, level)| *level).min()
    }

    /// The level recorded without saying for which unit, as far as it may be taken for the code that no unit describes.
    /// Notes that name their ranges speak of the rest only where they are the rule: the start code and the static
    /// libraries of some distributions carry such notes into programs that were built without. A recorded command line
    /// speaks of the object that carries it, which may be one of many, unless there is one for every source.
    fn recorded_at_large(&self) -> Option<(Level, Source)> {
        let known: Vec<Range<u64>> = self.recorded_ranges.iter().map(|(range, _)| range.clone()).collect();
        let bare = ranges::total(&self.account.undescribed);
        let noted = ranges::total(&ranges::intersect(&self.account.undescribed, &known));
        let spread = noted > 0 && noted >= bare / 2;
        recorded_claims(self.claims.iter().filter(|c| match c.scope {
            Scope::File => true,
            Scope::Ranges => spread,
            Scope::Some => self.lines_cover,
            Scope::Unit => false,
        }))
    }

    /// The lowest level of recorded command lines that speak of some part only.
    fn recorded_of_some(&self) -> Option<(Level, Source)> {
        recorded_claims(self.claims.iter().filter(|c| c.scope == Scope::Some && !self.lines_cover))
    }

    /// Whether a level recorded for ranges of the text was recorded for code that one of these units describes.
    fn notes_meet_units(&self, level: Level) -> bool {
        let noted: Vec<Range<u64>> = self
            .recorded_ranges
            .iter()
            .filter(|(_, l)| *l == level)
            .map(|(range, _)| range.clone())
            .collect();
        self.account.live.iter().any(|live| !ranges::intersect(live, &noted).is_empty())
    }
}

/// The lowest level of claims that a compiler recorded without saying for which unit.
fn recorded_claims<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Option<(Level, Source)> {
    claims
        .into_iter()
        .filter(|c| c.strength == Strength::Recorded && c.fact == "optimization.level")
        .map(|c| (c.level(), c.source))
        .filter(|(level, _)| *level != Level::Unknown)
        .min_by_key(|(level, _)| *level)
}

fn is_live(unit: &Unit, seen: &Witnessed) -> bool {
    unit.text_bytes > 0 || seen.relocatable || unit.ranges.is_empty() && seen.account.bytes == 0
}

/// Gives units their live bytes and, where their compiler recorded no level, what their code says.
fn fill_units(seen: &mut Witnessed) {
    for (index, unit) in seen.units.iter_mut().enumerate() {
        if seen.relocatable {
            continue;
        }
        unit.text_bytes = seen.account.per_unit.get(index).copied().unwrap_or(0);
        let open = unit.level == Level::Unknown || is_doubtful(unit);
        if !open || unit.text_bytes == 0 || unit.kind == UnitKind::Assembly {
            continue;
        }
        let Some(live) = seen.account.live.get(index) else { continue };
        if let Some(level) = seen.code.state_of(live).filter(|level| *level != unit.level) {
            unit.level = level;
            unit.strength = Strength::Inferred;
            unit.sources = vec![Source::CodeShape];
        }
    }
}

/// What holds for code that no unit describes, where its shape says "optimized" or nothing.
fn fallback(
    seen: &Witnessed,
    declared: Level,
    recorded: Option<(Level, Source)>,
) -> (Level, Strength, Vec<Source>) {
    let code = &seen.code;
    let judged = if code.cross_check_only || code.only_functions { &Whole::Unknown } else { &code.whole };
    let with_code = |level: Level, source: Source| match (level, judged) {
        (Level::O0, Whole::O0) => vec![source, Source::CodeShape],
        (Level::O0, _) => vec![source],
        (_, Whole::Optimized) => vec![source, Source::CodeShape],
        _ => vec![source],
    };
    match (recorded, &seen.declared, judged) {
        (Some((level, source)), ..) => (level, Strength::Recorded, with_code(level, source)),
        // Code that was seen to be optimized is not what a text says that declares -O0; the conflict is kept.
        (None, Some(claim), judged)
            if declared != Level::Unknown && (declared, judged) != (Level::O0, &Whole::Optimized) =>
        {
            (declared, Strength::Declared, with_code(declared, claim.source))
        }
        (.., Whole::Optimized) => (Level::Optimized, Strength::Inferred, vec![Source::CodeShape]),
        _ => (Level::Unknown, Strength::None, Vec::new()),
    }
}

/// Whether units describe the lesser part of the code, and the rest was seen to be optimized and no more: then a level
/// of theirs is not the lowest that may be there.
fn mostly_shaped(seen: &Witnessed, optimization: &Optimization, judged: &[&Unit]) -> bool {
    let described: u64 = judged.iter().map(|unit| unit.text_bytes).sum();
    let shaped: u64 = optimization
        .by_level
        .iter()
        .filter(|share| share.level == Level::Optimized)
        .map(|share| share.text_bytes)
        .sum();
    let of_units: u64 = judged.iter().filter(|u| u.level == Level::Optimized).map(|u| u.text_bytes).sum();
    !seen.relocatable && !judged.is_empty() && shaped.saturating_sub(of_units) > described
}

/// What a level recorded for some part says of the whole. Where the rest was seen to be optimized and no more, a level
/// above what that means is not the lowest that may be there.
fn of_some((level, source): (Level, Source), by_level: &[LevelShare]) -> (Level, Strength, Vec<Source>) {
    let shaped = by_level.iter().any(|share| share.level == Level::Optimized && share.text_bytes > 0);
    if shaped && level.satisfies(Level::O2) == Satisfies::Yes {
        return (Level::Optimized, Strength::Inferred, vec![Source::CodeShape, source]);
    }
    (level, Strength::Recorded, vec![source])
}

/// Fills level, bound, strength, sources and completeness.
fn conclude(outcome: &mut Outcome, seen: &Witnessed, fallback: (Level, Strength, Vec<Source>)) {
    let optimization = &mut outcome.optimization;
    let judged: Vec<&Unit> = seen.units.iter().filter(|u| is_judged(u) && is_live(u, seen)).collect();
    let lowest = judged.iter().filter(|u| u.level != Level::Unknown).min_by_key(|u| (u.level, u.strength));
    let mut candidates: Vec<(Level, Strength, Vec<Source>)> = Vec::new();
    if let Some(unit) = lowest {
        candidates.push((unit.level, unit.strength, unit.sources.clone()));
    }
    let recorded_o0 = seen.account.undescribed.iter().any(|range| seen.recorded_at(range) == Some(Level::O0));
    let beside_units = seen.claims.iter().filter(|claim| claim.scope != Scope::Unit);
    if recorded_o0 && let Some((level, source)) = recorded_claims(beside_units) {
        candidates.push((level, Strength::Recorded, vec![source]));
    }
    if judged.is_empty()
        && let Some(recorded) = seen.recorded_of_some()
    {
        candidates.push(of_some(recorded, &optimization.by_level));
    }
    let o0_code = outcome.runs.iter().any(|run| run.level == Level::O0 && run.unit.is_none())
        || (seen.code.whole == Whole::O0 && !seen.code.cross_check_only && judged.is_empty());
    if o0_code {
        candidates.push((Level::O0, Strength::Inferred, vec![Source::CodeShape]));
    }
    // The declaration speaks of the program as a whole; beside units that recorded their level only what the code of the
    // rest shows is added.
    if judged.is_empty() && !o0_code && fallback.0 != Level::Unknown {
        candidates.push(fallback);
    }
    candidates.sort_by_key(|(level, strength, _)| (*level, std::cmp::Reverse(*strength)));
    if let Some((level, strength, sources)) = candidates.into_iter().next() {
        let (level, strength, sources) =
            if mostly_shaped(seen, optimization, &judged) && level.satisfies(Level::O2) == Satisfies::Yes {
                let seen_in = std::iter::once(Source::CodeShape).chain(sources).collect();
                (Level::Optimized, Strength::Inferred, seen_in)
            } else {
                (level, strength, sources)
            };
        optimization.level = level;
        optimization.strength = strength;
        optimization.sources = sources;
    }
    optimization.bound = if optimization.level == Level::Optimized { Bound::AtLeast } else { Bound::Exact };
    let unknown_unit = judged.iter().any(|u| u.level == Level::Unknown);
    // A printed text is all there is of a program then: what was not read corroborates nothing.
    let nothing_read = optimization.text.bytes == 0 && judged.is_empty();
    // Assembled code has no level: a file of nothing else leaves no question open.
    let assembled = !seen.units.is_empty()
        && judged.is_empty()
        && seen.units.iter().all(|u| matches!(u.kind, UnitKind::Assembly | UnitKind::Toolchain));
    optimization.complete = (optimization.level != Level::Unknown || assembled)
        && optimization.judged_unknown() == 0
        && optimization.text.declared == 0
        && !unknown_unit
        && !nothing_read;
}

#[cfg(test)]
mod tests;
