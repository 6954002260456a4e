//! What optimization leaves in debug information besides the producer, for units whose compiler recorded no
//! flags: marks on functions, call sites, location lists (DWARF 5, sections 3.3.1, 3.4 and 2.6.2).
//!
//! An optimizing compiler marks functions whose calls are all described: clang with `DW_AT_call_all_calls`
//! on every function of a unit and never without optimization; GCC with the same where it optimized and
//! with `DW_AT_call_all_tail_calls` where it did not, on functions that call. DWARF 4 has GNU attributes of the same
//! meaning. Only units that are asked for are walked, entry by entry, and not beyond `Limits::die_attributes`.

use super::dwarf_producer::family::{Family, Sections};
use super::dwarf_producer::notes::{Budget, Notes};
use super::dwarf_producer::{DwarfUnit, abbrev};
use crate::facts::Problem;
use crate::image::{Image, SectionData, SectionReader};
use gimli::{
    Abbreviation, Abbreviations, DebugAbbrev, DebugInfo, DebugInfoOffset, Encoding, EndianSlice, EntriesRaw,
    Reader, RunTimeEndian, UnitHeader,
};
use std::collections::HashMap;

mod origins;
#[cfg(test)]
mod tests;

pub use origins::{Origins, origins};

/// Largest unit walked, in bytes.
const UNIT: u64 = 64 << 20;
/// Largest abbreviation table taken whole, in bytes.
const TABLE: u64 = 1 << 20;

/// Bytes of tables taken at least, whatever the section's size.
const TABLES: u64 = 8 << 20;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Counts of one unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// Subprograms with code of their own.
    pub functions: u64,
    /// Of these, with `DW_AT_call_all_calls` or `DW_AT_GNU_all_call_sites`.
    pub all_calls: u64,
    /// Of these, with `DW_AT_call_all_tail_calls` or `DW_AT_GNU_all_tail_call_sites`.
    pub all_tail_calls: u64,
    /// `DW_TAG_call_site` and `DW_TAG_GNU_call_site`.
    pub call_sites: u64,
    /// Variables and parameters whose location is a list.
    pub loclists: u64,
    /// Variables and parameters whose location is one expression.
    pub fixed: u64,
    /// `DW_TAG_inlined_subroutine`.
    pub inlined: u64,
}

/// Shapes of the units asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shapes {
    /// By index in the list of units; a unit that could not be walked is absent.
    pub units: HashMap<usize, Shape>,
    /// What is damaged or hit a limit.
    pub problems: Vec<Problem>,
}

/// Walks those of `units` (as [`super::dwarf_producer::read`] listed them for this image) for which `wanted` holds.
pub fn read(image: &Image, units: &[DwarfUnit], wanted: impl Fn(&DwarfUnit) -> bool) -> Shapes {
    let mut shapes = HashMap::new();
    let chosen: Vec<usize> = (0..units.len()).filter(|&i| units.get(i).is_some_and(&wanted)).collect();
    let problems = walk(image, units, &chosen, |index, mut unit| {
        let mut shape = Shape::default();
        unit.entries(|abbreviation, _, _| {
            shape.count(abbreviation);
            Ok(())
        })?;
        shapes.insert(index, shape);
        Ok(())
    });
    Shapes { units: shapes, problems }
}

impl Shape {
    /// Counts an entry by its abbreviation alone: what is counted are attributes that are there or not.
    fn count(&mut self, abbreviation: &Abbreviation) {
        let has = |names: &[gimli::DwAt]| abbreviation.attributes().iter().any(|a| names.contains(&a.name()));
        match abbreviation.tag() {
            gimli::DW_TAG_subprogram if has(&[gimli::DW_AT_low_pc, gimli::DW_AT_ranges]) => {
                self.functions += 1;
                if has(&[gimli::DW_AT_call_all_calls, gimli::DW_AT_GNU_all_call_sites]) {
                    self.all_calls += 1;
                } else if has(&[gimli::DW_AT_call_all_tail_calls, gimli::DW_AT_GNU_all_tail_call_sites]) {
                    self.all_tail_calls += 1;
                }
            }
            gimli::DW_TAG_call_site | gimli::DW_TAG_GNU_call_site => self.call_sites += 1,
            gimli::DW_TAG_inlined_subroutine => self.inlined += 1,
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                let location = abbreviation.attributes().iter().find(|a| a.name() == gimli::DW_AT_location);
                let Some(form) = location.map(gimli::AttributeSpecification::form) else { return };
                // Up to DWARF 3 a constant of this size is an offset of a list.
                let list = form == gimli::DW_FORM_sec_offset
                    || form == gimli::DW_FORM_loclistx
                    || form == gimli::DW_FORM_data4
                    || form == gimli::DW_FORM_data8;
                self.loclists += u64::from(list);
                self.fixed += u64::from(!list);
            }
            _ => {}
        }
    }
}

/// One unit, ready to be walked.
struct Unit<'i, 'b> {
    /// Offset of its header in the section.
    start: u64,
    encoding: Encoding,
    /// Offset of the root entry in the unit.
    root: usize,
    /// Its bytes from the root entry on.
    bytes: &'b [u8],
    abbreviations: &'b Abbreviations,
    endian: RunTimeEndian,
    sections: &'b mut Sections<'i>,
    notes: &'b mut Notes,
    budget: &'b mut Budget,
}

impl Unit<'_, '_> {
    /// Calls `visit` for each entry with its abbreviation, its offset in the unit and a reader of its
    /// attributes that need not be used. The error is a message.
    fn entries(
        &mut self,
        mut visit: impl FnMut(&Abbreviation, u64, EntriesRaw<'_, Slice<'_>>) -> Result<(), gimli::Error>,
    ) -> Result<(), String> {
        let slice = EndianSlice::new(self.bytes, self.endian);
        let root = gimli::UnitOffset(self.root);
        let mut entries = EntriesRaw::new(slice, self.encoding, self.abbreviations, root);
        while !entries.is_empty() {
            let at = entries.next_offset().0 as u64;
            let entry = entries.read_abbreviation().map_err(|e| format!("entry at {at:#x}: {e}"))?;
            let attributes = entry.map_or(0, |a| a.attributes().len() as u64);
            if !self.budget.step(attributes + 1) {
                return Err("the limit of attributes is reached".to_owned());
            }
            let Some(abbreviation) = entry else { continue };
            let result =
                visit(abbreviation, at, entries.clone()).and_then(|()| skip(&mut entries, abbreviation));
            result.map_err(|e| format!("entry at {at:#x}: {e}"))?;
        }
        Ok(())
    }
}

/// Passes over the attributes of an entry. gimli (0.34) sums their sizes unchecked, and a block may claim any: what may do so
/// is the last of its sum.
fn skip(entries: &mut EntriesRaw<'_, Slice<'_>>, abbreviation: &Abbreviation) -> Result<(), gimli::Error> {
    let of_any_size = |attribute: &gimli::AttributeSpecification| {
        matches!(attribute.form(), gimli::DW_FORM_block | gimli::DW_FORM_exprloc | gimli::DW_FORM_indirect)
    };
    abbreviation.attributes().split_inclusive(of_any_size).try_for_each(|some| entries.skip_attributes(some))
}

/// Opens each chosen unit in order of the file and hands it to `visit`. Returns problems.
fn walk<'i>(
    image: &'i Image,
    units: &[DwarfUnit],
    chosen: &[usize],
    mut visit: impl FnMut(usize, Unit<'i, '_>) -> Result<(), String>,
) -> Vec<Problem> {
    let mut notes = Notes::new(&image.limits);
    let mut budget = Budget::new(&image.limits);
    let mut sections = Family::Plain.open(image, None);
    // Relocatable files have a section of units for each type, besides that of the code.
    let mut by_section: HashMap<u32, Vec<usize>> = HashMap::new();
    for &index in chosen {
        let Some(unit) = units.get(index) else { continue };
        by_section.entry(unit.section).or_default().push(index);
    }
    for section in Family::Plain.info(image) {
        let own = u32::try_from(section.index).ok().and_then(|index| by_section.remove(&index));
        let Some(mut chosen) = own else { continue };
        chosen.sort_by_key(|&index| units.get(index).map_or(0, |unit| unit.at.offset));
        match SectionData::open_forward(image, section) {
            Ok(info) => {
                walk_section(
                    image,
                    &info,
                    units,
                    &chosen,
                    &mut sections,
                    &mut notes,
                    &mut budget,
                    &mut visit,
                );
            }
            Err(error) => notes.read_error("debug-info", &error),
        }
    }
    notes.into_problems()
}

/// Opens each chosen unit of one section in order and hands it to `visit`.
#[allow(clippy::too_many_arguments)]
fn walk_section<'i>(
    image: &Image,
    info: &SectionData,
    units: &[DwarfUnit],
    chosen: &[usize],
    sections: &mut Sections<'i>,
    notes: &mut Notes,
    budget: &mut Budget,
    visit: &mut impl FnMut(usize, Unit<'i, '_>) -> Result<(), String>,
) {
    let name = &info.name;
    let endian = if image.header.little_endian { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut table = Table::default();
    for &index in chosen {
        let Some(at) = units.get(index).map(|unit| unit.at.offset) else { continue };
        if !budget.has_steps() {
            notes.damage("too-many-debug-attributes", || {
                format!("units from {name}+{at:#x} on are not walked")
            });
            break;
        }
        let result = open(info, at, sections, notes, &mut table).and_then(|(header, bytes)| {
            let Some((_, abbreviations)) = &table.held else { return Ok(()) };
            let (sections, notes, budget) = (&mut *sections, &mut *notes, &mut *budget);
            let (encoding, root) = (header.encoding(), header.root_offset().0 as usize);
            visit(
                index,
                Unit {
                    start: at,
                    encoding,
                    root,
                    bytes: &bytes,
                    abbreviations,
                    endian,
                    sections,
                    notes,
                    budget,
                },
            )
        });
        if let Err(why) = result {
            let why = info.take_failure().unwrap_or(why);
            let code = if budget.has_steps() { "damaged-debug-info" } else { "too-many-debug-attributes" };
            notes.damage(code, || format!("unit at {name}+{at:#x}: {why}"));
        }
    }
}

/// The abbreviation table last read.
#[derive(Debug, Default)]
struct Table {
    /// Offset, and what it holds.
    held: Option<(u64, Abbreviations)>,
    /// Bytes of all tables read so far.
    read: u64,
}

type Opened<'a> = (UnitHeader<SectionReader<'a>>, Vec<u8>);

/// Reads a unit's header and bytes, and makes `table` its abbreviations.
fn open<'a>(
    info: &'a SectionData,
    at: u64,
    sections: &mut Sections<'_>,
    notes: &mut Notes,
    table: &mut Table,
) -> Result<Opened<'a>, String> {
    let text = |error: gimli::Error| error.to_string();
    let header = DebugInfo::from(info.reader()).header_from_offset(DebugInfoOffset(at)).map_err(text)?;
    let root = header.range_from(header.root_offset()..).map_err(text)?;
    if root.len() > UNIT {
        return Err(format!("{} bytes are too many to walk", root.len()));
    }
    let bytes = root.bytes(UNIT).map_err(text)?;
    let offset = header.debug_abbrev_offset().0;
    if table.held.as_ref().is_none_or(|(held, _)| *held != offset) {
        table.held = None;
        let Some(data) = sections.abbrev.get(&mut sections.memory, notes) else {
            return Err("its abbreviations cannot be read".to_owned());
        };
        let len = abbrev::table_len(data, offset, TABLE)?;
        table.read = table.read.saturating_add(len);
        // Sound tables are read once each; only units that share them in bad faith, each from an offset of its own
        // on, cost more.
        if table.read > data.len().saturating_mul(2).saturating_add(TABLES) {
            return Err("the abbreviation tables of the units overlap too much".to_owned());
        }
        let mut reader = data.reader_at(offset);
        reader.truncate(len).map_err(text)?;
        let all = DebugAbbrev::from(reader).abbreviations(gimli::DebugAbbrevOffset(0)).map_err(text)?;
        table.held = Some((offset, all));
    }
    Ok((header, bytes))
}
