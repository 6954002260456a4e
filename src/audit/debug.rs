//! Units of debug information, with what can be had where their producers do not tell the level: the early
//! units of GCC's link-time optimization, and the shape of the debug information itself.

use crate::compiler::Level;
use crate::evidence::dwarf_producer::{self, DwarfUnit, DwarfUnitKind};
use crate::evidence::dwarf_shape::{self, Shape};
use crate::evidence::{Source, Strength};
use crate::facts::{DebugSource, Facts, Unit, UnitKind};
use crate::image::{Image, merge};
use crate::reconcile::account::subtract;
use crate::reconcile::units::{self, Units};
use std::collections::HashSet;

/// Reads the units of `image`, which is the audited file or its separate debug file.
pub(super) fn read(image: &Image, supplementary: Option<&Image>, facts: &mut Facts) -> Units {
    let mut dwarf = dwarf_producer::read(image, supplementary);
    facts.debug_info.present |= !dwarf.units.is_empty();
    if facts.debug_info.present && facts.debug_info.source == DebugSource::None {
        facts.debug_info.source = DebugSource::Embedded;
    }
    facts.debug_info.dwarf_versions = std::mem::take(&mut dwarf.versions);
    facts.debug_info.compressed = dwarf.compressed.take();
    facts.debug_info.missing.append(&mut dwarf.missing);
    facts.problems.append(&mut dwarf.problems);
    let mut found = units::understand(&dwarf.units, None);
    facts.compilers = std::mem::take(&mut found.compilers);
    if found.units.iter().any(|unit| unit.kind == UnitKind::LtoPartition) {
        trace_link_time(image, &dwarf.units, &mut found, facts);
    }
    if found.units.iter().any(wants_shape) {
        shapes(image, &dwarf.units, &mut found, facts);
    }
    found
}

/// Gives the text of link-time units to the units it was compiled from. What refers to none stays with
/// the link-time unit, whose own `-O` is never the level.
fn trace_link_time(image: &Image, dwarf: &[DwarfUnit], found: &mut Units, facts: &mut Facts) {
    let partitions = places(dwarf, found, |unit| unit.kind == UnitKind::LtoPartition);
    let is_partition =
        |unit: &DwarfUnit| unit.kind == DwarfUnitKind::Compile && partitions.contains(&unit.at.offset);
    let traced = dwarf_shape::origins(image, dwarf, is_partition);
    facts.problems.extend(traced.problems);
    let place = |origin: usize| found.origins.binary_search(&origin).ok();
    for (partition, sources) in traced.text {
        let Some(partition) = place(partition) else { continue };
        let mut moved = Vec::new();
        for (early, ranges) in sources {
            let Some(unit) = place(early).and_then(|index| found.units.get_mut(index)) else { continue };
            moved.extend(ranges.iter().cloned());
            unit.ranges.extend(ranges);
        }
        if let Some(unit) = found.units.get_mut(partition) {
            unit.ranges = subtract(&merge(std::mem::take(&mut unit.ranges)), &merge(moved));
        }
    }
}

/// Offsets of the units of a kind, by which they are found again.
fn places(dwarf: &[DwarfUnit], found: &Units, kind: impl Fn(&Unit) -> bool) -> HashSet<u64> {
    found
        .units
        .iter()
        .zip(&found.origins)
        .filter(|(unit, _)| kind(unit))
        .filter_map(|(_, &origin)| Some(dwarf.get(origin)?.at.offset))
        .collect()
}

fn wants_shape(unit: &Unit) -> bool {
    let family = unit.compiler.as_deref().and_then(|c| c.split(' ').next());
    unit.kind == UnitKind::Source
        && unit.level == Level::Unknown
        && !unit.flags_recorded
        && matches!(family, Some("clang" | "gcc"))
}

fn shapes(image: &Image, dwarf: &[DwarfUnit], found: &mut Units, facts: &mut Facts) {
    let wanted = places(dwarf, found, wants_shape);
    let shapes = dwarf_shape::read(image, dwarf, |unit| wanted.contains(&unit.at.offset));
    facts.problems.extend(shapes.problems);
    for (unit, origin) in found.units.iter_mut().zip(&found.origins) {
        let Some(shape) = shapes.units.get(origin) else { continue };
        let clang = unit.compiler.as_deref().is_some_and(|c| c.starts_with("clang"));
        let (level, strength, note) = if clang { of_clang(shape) } else { of_gcc(shape) };
        unit.level = level;
        unit.strength = strength;
        if level != Level::Unknown {
            unit.sources = vec![Source::DwarfShape];
            unit.note = Some(note);
        }
    }
}

/// Clang marks the calls of every function it optimizes, and of none that it does not.
fn of_clang(shape: &Shape) -> (Level, Strength, String) {
    let note = format!(
        "{} of {} functions carry call marks, {} call sites, {} location lists",
        shape.all_calls, shape.functions, shape.call_sites, shape.loclists
    );
    if shape.functions == 0 {
        return (Level::Unknown, Strength::None, note);
    }
    if shape.all_calls * 2 > shape.functions || shape.call_sites > 0 {
        (Level::Optimized, Strength::Structural, note)
    } else if shape.all_calls == 0 && shape.loclists == 0 && shape.inlined == 0 {
        (Level::O0, Strength::Structural, note)
    } else {
        (Level::Unknown, Strength::None, note)
    }
}

/// GCC's marks can be faked by `-g1` and others, so that they infer and do not prove.
fn of_gcc(shape: &Shape) -> (Level, Strength, String) {
    let note = format!(
        "{} functions marked as optimized, {} as not, {} call sites, {} location lists",
        shape.all_calls, shape.all_tail_calls, shape.call_sites, shape.loclists
    );
    if shape.call_sites > 0 || shape.loclists > 0 {
        (Level::Optimized, Strength::Inferred, note)
    } else if shape.all_tail_calls > shape.all_calls {
        (Level::O0, Strength::Inferred, note)
    } else {
        (Level::Unknown, Strength::None, note)
    }
}
