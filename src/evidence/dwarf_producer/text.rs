//! Strings that units name, read in order of their offset: each once, however many units share it, and a
//! compressed section of strings only passes by.

use super::family::{Lazy, Sections};
use super::notes::{Budget, Notes};
use super::{DwarfUnit, DwarfUnitKind, SUPPLEMENTARY};
use crate::image::{SectionData, SectionReader};
use gimli::{AttributeValue, Reader};
use std::sync::Arc;

/// Where a string goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    CompDir,
    Producer,
    DwoName,
}

/// The section that holds a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pool {
    /// `.debug_str`
    Str,
    /// `.debug_line_str`
    LineStr,
    /// `.debug_str` of the supplementary file.
    Supplementary,
}

/// A string still to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pool: Pool,
    offset: u64,
    unit: u32,
    field: Field,
}

impl Pending {
    /// What it is ordered by: place, then who asks. One number is compared faster than four.
    fn key(&self) -> u128 {
        let who = u128::from(self.unit) << 2 | self.field as u128;
        (self.pool as u128) << 98 | u128::from(self.offset) << 34 | who
    }
}

/// What a unit says about where its string indexes count from.
#[derive(Debug, Clone, Copy)]
pub(super) struct StringBase {
    pub(super) encoding: gimli::Encoding,
    pub(super) base: Option<u64>,
    /// Where the unit's part of the section begins.
    pub(super) start: u64,
}

/// Notes where a string of unit `unit` stands, or takes it at once if it stands in the unit itself.
/// The error is a message.
pub(super) fn note(
    sections: &mut Sections<'_>,
    notes: &mut Notes,
    value: &AttributeValue<SectionReader<'_>>,
    (unit, field): (usize, Field),
    base: StringBase,
) -> Result<Option<Vec<u8>>, String> {
    let (pool, offset) = match value {
        AttributeValue::String(text) => {
            let len = text.len().min(notes.string_bytes as u64);
            if len < text.len() {
                notes.damage("too-long-debug-text", || format!("a text of {} bytes is cut", text.len()));
            }
            let mut kept = *text;
            return kept
                .truncate(len)
                .and_then(|()| kept.to_slice().map(std::borrow::Cow::into_owned))
                .map(Some)
                .map_err(|error| error.to_string());
        }
        AttributeValue::DebugStrRef(offset) => (Pool::Str, offset.0),
        AttributeValue::DebugLineStrRef(offset) => (Pool::LineStr, offset.0),
        AttributeValue::DebugStrRefSup(offset) => (Pool::Supplementary, offset.0),
        AttributeValue::DebugStrOffsetsIndex(index) => (Pool::Str, indexed(sections, notes, index.0, base)?),
        _ => return Err("not a form of string".to_owned()),
    };
    sections.texts.push(Pending { pool, offset, unit: unit as u32, field });
    Ok(None)
}

/// Looks an index up in `.debug_str_offsets` (DWARF 5, section 7.26).
fn indexed(
    sections: &mut Sections<'_>,
    notes: &mut Notes,
    index: u64,
    StringBase { encoding, base, start }: StringBase,
) -> Result<u64, String> {
    let base = base.unwrap_or_else(|| {
        let file = if sections.family == super::Family::Split {
            gimli::DwarfFileType::Dwo
        } else {
            gimli::DwarfFileType::Main
        };
        gimli::DebugStrOffsetsBase::<u64>::default_for_encoding_and_file(encoding, file).0
    });
    let Some(data) = sections.str_offsets.get(&mut sections.memory, notes) else {
        return Err("a string index without .debug_str_offsets".to_owned());
    };
    let size = u64::from(encoding.format.word_size());
    let at = index
        .checked_mul(size)
        .and_then(|o| o.checked_add(base)?.checked_add(start))
        .filter(|at| *at < data.len());
    let Some(at) = at else { return Err(format!("string index {index} lies outside .debug_str_offsets")) };
    data.reader_at(at)
        .read_offset(encoding.format)
        .map_err(|error| data.take_failure().unwrap_or_else(|| error.to_string()))
}

/// Reads all strings noted so far into their units.
pub(super) fn resolve(
    sections: &mut Sections<'_>,
    units: &mut [DwarfUnit],
    notes: &mut Notes,
    budget: &mut Budget,
) {
    let mut texts = std::mem::take(&mut sections.texts);
    texts.sort_unstable_by_key(Pending::key);
    let mut rest = texts.as_slice();
    let mut unended: Option<(Pool, u64)> = None;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|t| (t.pool, t.offset) == (first.pool, first.offset)).count();
        let (now, later) = rest.split_at(same);
        rest = later;
        let lazy = match first.pool {
            Pool::Str => &sections.str,
            Pool::LineStr => &sections.line_str,
            Pool::Supplementary => {
                let Some(lazy) = &sections.supplementary_str else {
                    notes.missing(SUPPLEMENTARY);
                    continue;
                };
                lazy
            }
        };
        // No text begins where none ends behind it.
        if unended.is_some_and(|(pool, from)| pool == first.pool && first.offset >= from) {
            notes.damage(&lazy.code(), || format!("no text at offset {:#x} either", first.offset));
            continue;
        }
        let Some(text) = one(lazy, first.offset, &mut sections.memory, notes) else {
            unended = Some((first.pool, first.offset));
            continue;
        };
        let mut shared: Option<Arc<[u8]>> = None;
        for place in now {
            if !budget.take(text.len() + 16) {
                notes.damage("too-much-debug-text", || {
                    "the texts of the units are too long together".to_owned()
                });
                return;
            }
            let Some(unit) = units.get_mut(place.unit as usize) else { continue };
            let mut share = || Arc::clone(shared.get_or_insert_with(|| text.as_slice().into()));
            match (place.field, &mut unit.kind) {
                (Field::Name, _) => unit.name.clone_from(&text),
                (Field::CompDir, _) => unit.comp_dir = share(),
                (Field::Producer, _) => unit.producer = Some(share()),
                (Field::DwoName, DwarfUnitKind::Skeleton { dwo_name, .. }) => dwo_name.clone_from(&text),
                (Field::DwoName, _) => {}
            }
        }
    }
}

fn one(lazy: &Lazy<'_>, offset: u64, memory: &mut u64, notes: &mut Notes) -> Option<Vec<u8>> {
    let limit = notes.string_bytes;
    let data: &SectionData = lazy.get(memory, notes)?;
    match data.c_string(offset, limit) {
        Ok(Some((text, false))) => Some(text),
        Ok(Some((text, true))) => {
            notes.damage("too-long-debug-text", || {
                format!("the text at {}+{offset:#x} is cut after {limit} bytes", data.name)
            });
            Some(text)
        }
        Ok(None) => {
            notes.damage(&lazy.code(), || {
                format!("no text at {}+{offset:#x} ({} bytes)", data.name, data.len())
            });
            None
        }
        Err(error) => {
            let why = data.take_failure().unwrap_or_else(|| error.to_string());
            notes.damage(&lazy.code(), || format!("{}+{offset:#x}: {why}", data.name));
            None
        }
    }
}
