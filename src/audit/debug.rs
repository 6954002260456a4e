//! Units of debug information, with what can be had where their producers do not tell the level: the early
//! units of GCC's link-time optimization, and the shape of the debug information itself.

use super::{Options, macros};
use crate::compiler::Level;
use crate::evidence::dwarf_producer::{self, DwarfUnit, DwarfUnitKind, DwarfUnits, SUPPLEMENTARY};
use crate::evidence::dwarf_shape::{self, Shape};
use crate::evidence::{Source, Strength};
use crate::facts::{DebugSource, Facts, Problem, Supplementary, Unit, UnitKind};
use crate::image::notes::{self, Notes};
use crate::image::ranges::subtract;
use crate::image::{Image, companion, merge};
use crate::reconcile::units::{self, Units};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Reads the units of an audited file: its own, or those of its separate debug file, with what a
/// supplementary file and split units hold.
pub(super) fn read(image: &Image, path: &Path, notes: &Notes, options: &Options, facts: &mut Facts) -> Units {
    let (limits, companions) = (&options.limits, &options.companions);
    let own = with_supplementary(image, notes, path, options, facts);
    if !own.units.is_empty() || image.is_relocatable() {
        let split = split_units(notes, path, options, own, facts);
        return take(image, split, DebugSource::Embedded, facts);
    }
    let search = companion::debug_file(image, notes, path, companions, limits);
    facts.problems.extend(search.problems);
    facts.debug_info.missing.extend(search.missing);
    let Some(found) = search.found else {
        return take(image, own, DebugSource::None, facts);
    };
    let mut separate = found.image;
    separate.workers = image.workers;
    let its_notes = notes::read(&separate);
    let dwarf = with_supplementary(&separate, &its_notes, &found.path, options, facts);
    let split = split_units(&its_notes, path, options, dwarf, facts);
    facts.debug_info.path = Some(found.path.to_string_lossy().into_owned());
    take(&separate, split, DebugSource::Separate, facts)
}

/// Reads units together with the file that `dwz` moved their common strings to.
fn with_supplementary(
    image: &Image,
    notes: &Notes,
    path: &Path,
    options: &Options,
    facts: &mut Facts,
) -> DwarfUnits {
    let read = |supplementary: Option<&Image>| {
        let mut dwarf = dwarf_producer::read(image, supplementary);
        macros::read(image, supplementary, &mut dwarf);
        dwarf
    };
    let Some(link) = &notes.supplementary else { return read(None) };
    let search = companion::supplementary(link, path, &options.companions, &options.limits);
    facts.problems.extend(search.problems);
    facts.debug_info.missing.extend(search.missing);
    facts.debug_info.supplementary =
        if search.found.is_some() { Supplementary::Found } else { Supplementary::Missing };
    read(search.found.as_ref().map(|found| &found.image))
}

/// Fills what skeleton units lack from their `.dwo` files or the `.dwp` package. A file is taken only if it holds a
/// unit of the same dwo-id.
fn split_units(
    notes: &Notes,
    path: &Path,
    options: &Options,
    mut dwarf: DwarfUnits,
    facts: &mut Facts,
) -> DwarfUnits {
    let (limits, companions) = (&options.limits, &options.companions);
    if !dwarf.units.iter().any(|unit| matches!(unit.kind, DwarfUnitKind::Skeleton { .. })) {
        return dwarf;
    }
    let ids: HashSet<u64> = dwarf.units.iter().filter_map(skeleton_id).collect();
    let holds_any = |file: &Image| {
        dwarf_producer::read(file, None).units.iter().any(|u| u.dwo_id.is_some_and(|id| ids.contains(&id)))
    };
    let package = companion::dwp(path, notes, companions, limits, &holds_any);
    facts.problems.extend(package.problems);
    // With -gsplit-dwarf=single both halves are in one object file: the split half is matched, not counted again.
    let (own, rest): (Vec<DwarfUnit>, Vec<DwarfUnit>) =
        std::mem::take(&mut dwarf.units).into_iter().partition(|unit| {
            unit.dwo_id.is_some_and(|id| ids.contains(&id)) && unit.kind == DwarfUnitKind::Compile
        });
    dwarf.units = rest;
    let mut split: HashMap<u64, DwarfUnit> =
        own.into_iter().filter_map(|unit| Some((unit.dwo_id?, unit))).collect();
    let mut source = DebugSource::Dwo;
    if ids.iter().all(|id| split.contains_key(id)) {
        fill_skeletons(&mut dwarf, &split, None, facts);
        return dwarf;
    }
    let learn = |file: &Image, split: &mut HashMap<u64, DwarfUnit>, problems: &mut Vec<Problem>| {
        let mut read = dwarf_producer::read(file, None);
        macros::read(file, None, &mut read);
        problems.extend(read.problems);
        split.extend(read.units.into_iter().filter_map(|unit| Some((unit.dwo_id?, unit))));
    };
    if let Some(found) = package.found {
        learn(&found.image, &mut split, &mut facts.problems);
        source = DebugSource::Dwp;
    }
    // A package made before the last build lacks what has been compiled anew.
    let held: HashSet<u64> = split.keys().copied().collect();
    for unit in &dwarf.units {
        let DwarfUnitKind::Skeleton { dwo_name, dwo_id: Some(id) } = &unit.kind else { continue };
        if held.contains(id) {
            continue;
        }
        let is_it =
            |file: &Image| dwarf_producer::read(file, None).units.iter().any(|unit| unit.dwo_id == Some(*id));
        let folder = (!unit.comp_dir.is_empty()).then_some(&*unit.comp_dir);
        let search = companion::dwo(dwo_name, folder, path, companions, limits, &is_it);
        facts.problems.extend(search.problems);
        facts.debug_info.missing.extend(search.missing);
        if let Some(found) = search.found {
            learn(&found.image, &mut split, &mut facts.problems);
        }
    }
    fill_skeletons(&mut dwarf, &split, Some(source), facts);
    dwarf
}

/// Gives skeletons what their split halves hold.
fn fill_skeletons(
    dwarf: &mut DwarfUnits,
    split: &HashMap<u64, DwarfUnit>,
    source: Option<DebugSource>,
    facts: &mut Facts,
) {
    for unit in &mut dwarf.units {
        let Some(whole) = skeleton_id(unit).and_then(|id| split.get(&id)) else { continue };
        if let Some(source) = source {
            facts.debug_info.source = source;
        }
        unit.kind = DwarfUnitKind::Compile;
        unit.name.clone_from(&whole.name);
        unit.producer.clone_from(&whole.producer);
        unit.language = whole.language;
        unit.defined.clone_from(&whole.defined);
        if !whole.comp_dir.is_empty() {
            unit.comp_dir.clone_from(&whole.comp_dir);
        }
    }
}

fn skeleton_id(unit: &DwarfUnit) -> Option<u64> {
    match unit.kind {
        DwarfUnitKind::Skeleton { dwo_id, .. } => dwo_id,
        _ => None,
    }
}

/// Takes units over and adds what can be had where their producers do not tell the level.
pub(super) fn take(image: &Image, mut dwarf: DwarfUnits, source: DebugSource, facts: &mut Facts) -> Units {
    facts.debug_info.present |= !dwarf.units.is_empty();
    if facts.debug_info.present && facts.debug_info.source == DebugSource::None {
        facts.debug_info.source = source;
    }
    facts.debug_info.dwarf_versions = std::mem::take(&mut dwarf.versions);
    facts.debug_info.compressed = dwarf.compressed.take();
    let moved = dwarf.missing.iter().any(|missing| missing == SUPPLEMENTARY);
    for missing in std::mem::take(&mut dwarf.missing) {
        if !facts.debug_info.missing.contains(&missing) {
            facts.debug_info.missing.push(missing);
        }
    }
    facts.problems.append(&mut dwarf.problems);
    let mut found = units::understand(&dwarf.units, None, image.workers);
    for unit in found
        .units
        .iter_mut()
        .filter(|unit| moved && unit.compiler.is_none() && unit.kind == UnitKind::Source)
    {
        unit.note =
            Some("its producer lies in the supplementary file of dwz, which was not found".to_owned());
    }
    facts.problems.append(&mut found.problems);
    facts.compilers = std::mem::take(&mut found.compilers);
    macros::tell_levels(&dwarf.units, &mut found, facts);
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
        |unit: &DwarfUnit| unit.kind == DwarfUnitKind::Compile && partitions.contains(&unit.place());
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

/// Places of the units of a kind, by which they are found again.
fn places(dwarf: &[DwarfUnit], found: &Units, kind: impl Fn(&Unit) -> bool) -> HashSet<(u32, u64)> {
    found
        .units
        .iter()
        .zip(&found.origins)
        .filter(|(unit, _)| kind(unit))
        .filter_map(|(_, &origin)| Some(dwarf.get(origin)?.place()))
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
    let shapes = dwarf_shape::read(image, dwarf, |unit| wanted.contains(&unit.place()));
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

/// GCC's marks infer and do not prove: `-O2 -g1` leaves those of unoptimized code, but describes no variables; with
/// `-fno-var-tracking` the code itself must tell.
fn of_gcc(shape: &Shape) -> (Level, Strength, String) {
    let note = format!(
        "{} functions marked as optimized, {} as not, {} call sites, {} location lists",
        shape.all_calls, shape.all_tail_calls, shape.call_sites, shape.loclists
    );
    if shape.call_sites > 0 || shape.loclists > 0 {
        (Level::Optimized, Strength::Inferred, note)
    } else if shape.all_tail_calls > shape.all_calls && shape.fixed > 0 {
        (Level::O0, Strength::Inferred, note)
    } else {
        (Level::Unknown, Strength::None, note)
    }
}
