//! From unit header to unit header (DWARF 5, section 7.5.1), reading only the root entry of each.

use super::family::{Family, Sections};
use super::notes::{Budget, Notes};
use super::ranges::{self, Where};
use super::text::{self, Field, StringBase};
use super::{DwarfUnit, DwarfUnitKind, DwarfUnits};
use crate::evidence::Place;
use crate::evidence::dwarf_macro::MacroList;
use crate::image::{SectionData, SectionReader};
use gimli::{
    Abbreviations, AttributeValue, DebugInfo, DebugInfoOffset, DwLang, EntriesRaw, Reader, UnitHeader,
    UnitOffset, UnitType,
};
use std::ops::Range;
use std::sync::Arc;

/// Linkers fill gaps between contributions with less than this many zero bytes.
const PADDING: u64 = 16;
/// No root entry that names a compiler and code is as short as this.
const LEAST_ROOT: u64 = 8;
const CODE: &str = "damaged-debug-info";

type Value<'a> = AttributeValue<SectionReader<'a>>;

/// Reads the units of one section that begin at `from` and before `until`. Returns where the walk has come to, or `None`
/// where it cannot go on: at damage, or where a limit is used up.
pub(super) fn walk(
    info: &SectionData,
    Range { start: from, end: until }: Range<u64>,
    sections: &mut Sections<'_>,
    out: &mut DwarfUnits,
    notes: &mut Notes,
    budget: &mut Budget,
) -> Option<u64> {
    let name = &info.name;
    let mut at = from;
    while at < until {
        let left = info.len().saturating_sub(at);
        let mut reader = info.reader_at(at);
        let length = match reader.read_initial_length() {
            Ok((0, gimli::Format::Dwarf32)) => {
                at = skip_zeros(info, at, notes);
                continue;
            }
            Ok((length, format)) => length.saturating_add(u64::from(format.initial_length_size())),
            Err(_) if left < PADDING && rest_is_zero(info, at) => return None,
            Err(error) => {
                let why = info.take_failure().unwrap_or_else(|| error.to_string());
                notes.damage(CODE, || format!("unit at {name}+{at:#x}: {why}; {left} bytes are not read"));
                return None;
            }
        };
        if length > left {
            notes.damage(CODE, || {
                format!("unit at {name}+{at:#x} claims {length} bytes of {left} left, which are not read")
            });
            return None;
        }
        if let Err(what) = budget.take_unit(size_of::<DwarfUnit>() + 2 * name.len()) {
            notes.damage("too-many-units", || {
                format!("{what} is used up; {left} bytes of {name} are not read")
            });
            return None;
        }
        if let Err(why) = unit(info, at, sections, out, notes, budget) {
            let why = info.take_failure().unwrap_or(why);
            notes.damage(CODE, || format!("unit at {name}+{at:#x}: {why}"));
        }
        if !budget.has_steps() {
            notes.damage("too-many-debug-attributes", || {
                format!("{} bytes of {name} are not read", left - length)
            });
            return None;
        }
        at += length;
    }
    Some(at)
}

/// What is missing at the end of a section.
pub(super) fn tell_cut(info: &SectionData, notes: &mut Notes) {
    if info.cut > 0 {
        notes.damage(CODE, || format!("the file ends {} bytes before the end of {}", info.cut, info.name));
    }
}

fn rest_is_zero(info: &SectionData, at: u64) -> bool {
    is_zero(info.reader_at(at))
}

fn is_zero(mut reader: SectionReader<'_>) -> bool {
    while !reader.is_empty() {
        if !matches!(reader.read_u8(), Ok(0)) {
            return false;
        }
    }
    true
}

/// Skips words of zero; a long run of them is where something was.
fn skip_zeros(info: &SectionData, from: u64, notes: &mut Notes) -> u64 {
    let mut at = from;
    while let Ok((zeros, all)) = info.piece(at, |bytes| {
        let zeros = bytes.iter().position(|byte| *byte != 0);
        (zeros.unwrap_or(bytes.len()) as u64, zeros.is_none())
    }) {
        at += zeros;
        if !all {
            break;
        }
    }
    // A length may itself begin with zero bytes, but not with a whole word of them.
    let words = (at - from) / 4 * 4;
    let next = if at < info.len() { from + words } else { at };
    if words >= PADDING {
        notes.damage(CODE, || format!("{words} zero bytes at {}+{from:#x}", info.name));
    }
    next.max(from + 4)
}

/// What a root entry says, still to be resolved: bases may come after what refers to them.
#[derive(Default)]
struct Root<'a> {
    name: Option<Value<'a>>,
    comp_dir: Option<Value<'a>>,
    producer: Option<Value<'a>>,
    dwo_name: Option<Value<'a>>,
    dwo_id: Option<u64>,
    language: Option<DwLang>,
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    str_offsets_base: Option<u64>,
    addr_base: Option<u64>,
    rnglists_base: Option<u64>,
    macros: Option<(u64, bool)>,
}

impl<'a> Root<'a> {
    fn take(&mut self, attribute: &gimli::Attribute<SectionReader<'a>>) {
        let value = attribute.raw_value();
        match attribute.name() {
            gimli::DW_AT_name => self.name = Some(value),
            gimli::DW_AT_comp_dir => self.comp_dir = Some(value),
            gimli::DW_AT_producer => self.producer = Some(value),
            gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name => self.dwo_name = Some(value),
            gimli::DW_AT_GNU_dwo_id => self.dwo_id = value.udata_value(),
            gimli::DW_AT_language => {
                self.language = value.udata_value().and_then(|v| u16::try_from(v).ok()).map(DwLang);
            }
            gimli::DW_AT_low_pc => self.low = Some(value),
            gimli::DW_AT_high_pc => self.high = Some(value),
            gimli::DW_AT_ranges => self.ranges = Some(value),
            gimli::DW_AT_str_offsets_base => self.str_offsets_base = value.offset_value(),
            gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base => self.addr_base = value.offset_value(),
            gimli::DW_AT_rnglists_base | gimli::DW_AT_GNU_ranges_base => {
                self.rnglists_base = value.offset_value();
            }
            gimli::DW_AT_macros | gimli::DW_AT_GNU_macros => {
                self.macros = value.offset_value().map(|offset| (offset, false));
            }
            gimli::DW_AT_macro_info => self.macros = value.offset_value().map(|offset| (offset, true)),
            _ => {}
        }
    }
}

/// Reads one unit. An error is a message; the unit may have been added nevertheless.
fn unit(
    info: &SectionData,
    at: u64,
    sections: &mut Sections<'_>,
    out: &mut DwarfUnits,
    notes: &mut Notes,
    budget: &mut Budget,
) -> Result<(), String> {
    let header = DebugInfo::from(info.reader())
        .header_from_offset(DebugInfoOffset(at))
        .map_err(|error| error.to_string())?;
    // A unit that ends with its header, or with a null entry right behind it, describes nothing: some compilers leave such. More
    // zeros are where something was.
    let body = header.length_including_self().saturating_sub(header.root_offset().0);
    if body == 0 {
        return Ok(());
    }
    let mut input = header.range_from(header.root_offset()..).map_err(|error| error.to_string())?;
    if body < LEAST_ROOT && is_zero(input) {
        return Ok(());
    }
    let code = input.read_uleb128().map_err(|_| "it has no root entry".to_owned())?;
    if code == 0 {
        return Err("its root entry is null".to_owned());
    }
    let contribution = sections.package.of(at);
    let abbreviation = {
        let Some(table) = sections.abbrev.get(&mut sections.memory, notes) else {
            return Err("its abbreviations cannot be read".to_owned());
        };
        let offset = header.debug_abbrev_offset().0.saturating_add(contribution.abbrev);
        match sections.abbreviations.find(table, offset, code) {
            Ok(found) => found,
            Err(why) => {
                let name = &info.name;
                notes.damage(&sections.abbrev.code(), || format!("unit at {name}+{at:#x}: {why}"));
                return Ok(());
            }
        }
    };
    let none = Abbreviations::default();
    let mut entry = EntriesRaw::new(input, header.encoding(), &none, UnitOffset(0));
    let mut root = Root::default();
    let mut broken = None;
    for specification in &abbreviation.attributes {
        if !budget.step(1) {
            return Err("its root entry has too many attributes".to_owned());
        }
        match entry.read_attribute(*specification) {
            Ok(attribute) => root.take(&attribute),
            Err(error) => {
                // What stands before the damage is still good.
                let why = info.take_failure().unwrap_or_else(|| error.to_string());
                broken = Some(format!("attribute {} of its root entry: {why}", specification.name()));
                break;
            }
        }
    }
    let (mut kind, dwo_id) = kind(&header, abbreviation.tag, &root, sections.family)?;
    let has_code = root.ranges.is_some() || root.high.is_some();
    if has_code && matches!(kind, DwarfUnitKind::Partial | DwarfUnitKind::Type) {
        // They describe what units share, and no code (DWARF 5, sections 3.1.1 and 3.1.4): this one was another.
        let name = &info.name;
        notes.damage("damaged-debug-info", || {
            format!("unit at {name}+{at:#x}: a {} with code", abbreviation.tag)
        });
        kind = DwarfUnitKind::Compile;
    }
    let index = out.units.len();
    out.units.push(DwarfUnit {
        name: Vec::new(),
        comp_dir: Arc::default(),
        producer: None,
        language: root.language,
        version: header.version(),
        ranges: Vec::new(),
        kind,
        dwo_id,
        macros: macro_list(&header, &root, sections),
        defined: None,
        at: Place { section: info.name.clone(), offset: at },
        section: info.index,
    });
    let result = fill(info, &header, &root, index, sections, out, notes, budget);
    broken.map_or(result, Err)
}

#[allow(clippy::too_many_arguments)]
fn fill(
    info: &SectionData,
    header: &UnitHeader<SectionReader<'_>>,
    root: &Root<'_>,
    index: usize,
    sections: &mut Sections<'_>,
    out: &mut DwarfUnits,
    notes: &mut Notes,
    budget: &mut Budget,
) -> Result<(), String> {
    let encoding = header.encoding();
    let Some(unit) = out.units.get_mut(index) else { return Ok(()) };
    let contribution = sections.package.of(unit.at.offset);
    let base = StringBase { encoding, base: root.str_offsets_base, start: contribution.str_offsets };
    let mut result = Ok(());
    for (field, value) in [
        (Field::Name, &root.name),
        (Field::CompDir, &root.comp_dir),
        (Field::Producer, &root.producer),
        (Field::DwoName, &root.dwo_name),
    ] {
        let Some(value) = value else { continue };
        match text::note(sections, notes, value, (index, field), base) {
            Ok(None) => {}
            Ok(Some(text)) => match field {
                _ if !budget.take(text.len()) => {
                    return Err("the texts of the units are too long together".to_owned());
                }
                Field::Name => unit.name = text,
                Field::CompDir => unit.comp_dir = text.into(),
                Field::Producer => unit.producer = Some(text.into()),
                Field::DwoName => {
                    if let DwarfUnitKind::Skeleton { dwo_name, .. } = &mut unit.kind {
                        *dwo_name = text;
                    }
                }
            },
            Err(why) => {
                let why = info.take_failure().unwrap_or(why);
                result = Err(format!("{field:?}: {why}"));
            }
        }
    }
    let place = Where {
        encoding,
        low: root.low,
        high: root.high,
        ranges: root.ranges,
        addr_base: root.addr_base,
        rnglists_base: root.rnglists_base,
        rnglists_start: contribution.rnglists,
    };
    ranges::read(&place, sections, notes, budget, &mut unit.ranges)?;
    result
}

/// Where the list of a unit's macros begins. In a package of split units the index would have to say which part of the
/// common sections is meant, and no tool that makes packages puts macros into them.
fn macro_list(
    header: &UnitHeader<SectionReader<'_>>,
    root: &Root<'_>,
    sections: &Sections<'_>,
) -> Option<MacroList> {
    let (offset, old) = root.macros.filter(|_| !sections.package.is_package())?;
    let is_64 = header.encoding().format == gimli::Format::Dwarf64;
    // In a `.dwo` there is one table, behind a header of length, version and padding (DWARF 5, section 7.26).
    let first = match (sections.family, header.version(), is_64) {
        (Family::Split, 5.., false) => 8,
        (Family::Split, 5.., true) => 16,
        _ => 0,
    };
    Some(MacroList { offset, old, str_offsets: root.str_offsets_base.unwrap_or(first), is_64 })
}

/// The kind of a unit and, for a split one, its id.
fn kind(
    header: &UnitHeader<SectionReader<'_>>,
    tag: gimli::DwTag,
    root: &Root<'_>,
    family: Family,
) -> Result<(DwarfUnitKind, Option<u64>), String> {
    let id = match header.type_() {
        UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id.0),
        _ => root.dwo_id,
    };
    // DWARF 4 has no unit type for skeletons; only the name of the other file tells.
    let skeleton = matches!(header.type_(), UnitType::Skeleton(_))
        || (family != Family::Split && root.dwo_name.is_some());
    Ok(match tag {
        gimli::DW_TAG_compile_unit | gimli::DW_TAG_skeleton_unit if skeleton => {
            (DwarfUnitKind::Skeleton { dwo_name: Vec::new(), dwo_id: id }, None)
        }
        gimli::DW_TAG_compile_unit => (DwarfUnitKind::Compile, id),
        gimli::DW_TAG_partial_unit => (DwarfUnitKind::Partial, None),
        gimli::DW_TAG_type_unit => (DwarfUnitKind::Type, None),
        other => return Err(format!("its root entry is a {other}, not a unit")),
    })
}
