//! Address ranges of a unit: `DW_AT_low_pc`/`DW_AT_high_pc`, `.debug_ranges` (up to DWARF 4),
//! `.debug_rnglists` (DWARF 5, section 2.17.3), with `.debug_addr` where a form needs it.

use super::family::{Family, Sections};
use super::notes::{Budget, Notes};
use crate::image::{SectionData, SectionReader, merge};
use gimli::{AttributeValue, DebugAddr, DebugRanges, DebugRngLists, Encoding, RangeLists};
use std::ops::Range;

/// What the root entry says about addresses.
#[derive(Debug, Clone, Copy)]
pub(in crate::evidence) struct Where<'a> {
    pub(in crate::evidence) encoding: Encoding,
    pub(in crate::evidence) low: Option<AttributeValue<SectionReader<'a>>>,
    pub(in crate::evidence) high: Option<AttributeValue<SectionReader<'a>>>,
    pub(in crate::evidence) ranges: Option<AttributeValue<SectionReader<'a>>>,
    pub(in crate::evidence) addr_base: Option<u64>,
    pub(in crate::evidence) rnglists_base: Option<u64>,
    /// Where the unit's part of `.debug_rnglists` begins.
    pub(in crate::evidence) rnglists_start: u64,
}

/// Reads the ranges. The error is a message; what could be read before is in `out`.
pub(in crate::evidence) fn read(
    place: &Where<'_>,
    sections: &mut Sections<'_>,
    notes: &mut Notes,
    budget: &mut Budget,
    out: &mut Vec<Range<u64>>,
) -> Result<(), String> {
    // A split unit's addresses are in the linked file, whose skeleton has the ranges.
    if sections.family == Family::Split && !sections.addr.exists() {
        return Ok(());
    }
    let low = match &place.low {
        Some(value) => Some(address(value, place, sections, notes)?),
        None => None,
    };
    if let Some(value) = &place.ranges {
        let result = list(value, low.unwrap_or(0), place, sections, notes, budget, out);
        *out = merge(std::mem::take(out));
        out.shrink_to_fit();
        return result;
    }
    let (Some(low), Some(high)) = (low, &place.high) else { return Ok(()) };
    if is_tombstone(low, place.encoding) {
        return Ok(());
    }
    // DWARF 4 and later: a constant is a length.
    let high = match high {
        AttributeValue::Addr(_) | AttributeValue::DebugAddrIndex(_) => address(high, place, sections, notes)?,
        other => {
            let length = other.udata_value().ok_or("DW_AT_high_pc has no form of address or length")?;
            low.checked_add(length).ok_or("DW_AT_high_pc lies beyond the last address")?
        }
    };
    if low < high {
        out.push(low..high);
    }
    Ok(())
}

/// Whether an address stands for code that the linker dropped: the highest one, or the one before it (DWARF issue 200609.1,
/// `-z dead-reloc-in-nonalloc` of lld). Nothing begins there. In range lists gimli knows them itself.
fn is_tombstone(address: u64, encoding: Encoding) -> bool {
    let highest = match encoding.address_size {
        size @ 1..=7 => (1u64 << (8 * size)) - 1,
        _ => u64::MAX,
    };
    address >= highest - 1
}

fn address(
    value: &AttributeValue<SectionReader<'_>>,
    place: &Where<'_>,
    sections: &mut Sections<'_>,
    notes: &mut Notes,
) -> Result<u64, String> {
    match value {
        AttributeValue::Addr(address) => Ok(*address),
        AttributeValue::DebugAddrIndex(index) => {
            let data = sections
                .addr
                .get(&mut sections.memory, notes)
                .ok_or("an address index without .debug_addr")?;
            let base = place.addr_base.unwrap_or_else(|| default_base(place.encoding));
            DebugAddr::from(data.reader())
                .get_address(place.encoding.address_size, gimli::DebugAddrBase(base), *index)
                .map_err(|error| why(data, error))
        }
        _ => Err("not a form of address".to_owned()),
    }
}

/// Without a base attribute, DWARF 5 contributions begin behind one header.
fn default_base(encoding: Encoding) -> u64 {
    if encoding.version >= 5 { u64::from(encoding.format.initial_length_size()) + 4 } else { 0 }
}

fn why(data: &SectionData, error: gimli::Error) -> String {
    format!("{}: {}", data.name, data.take_failure().unwrap_or_else(|| error.to_string()))
}

fn list(
    value: &AttributeValue<SectionReader<'_>>,
    base: u64,
    place: &Where<'_>,
    sections: &mut Sections<'_>,
    notes: &mut Notes,
    budget: &mut Budget,
    out: &mut Vec<Range<u64>>,
) -> Result<(), String> {
    let Sections { ranges, rnglists, addr, memory, family, .. } = sections;
    let lazy = if place.encoding.version >= 5 { rnglists } else { ranges };
    let data = lazy.get(memory, notes).ok_or("its ranges cannot be read")?;
    // Only one of the two is there for a unit, and reading the other would be the damage we report.
    let empty = data.reader_at(data.len());
    let (old, new) =
        if place.encoding.version >= 5 { (empty, data.reader()) } else { (data.reader(), empty) };
    let lists = RangeLists::new(DebugRanges::from(old), DebugRngLists::from(new));
    let offset = match value {
        AttributeValue::SecOffset(offset) | AttributeValue::Data8(offset) => *offset,
        AttributeValue::Data4(offset) => u64::from(*offset),
        AttributeValue::DebugRngListsIndex(index) => {
            let file =
                if *family == Family::Split { gimli::DwarfFileType::Dwo } else { gimli::DwarfFileType::Main };
            let base = place.rnglists_base.map_or_else(
                || gimli::DebugRngListsBase::default_for_encoding_and_file(place.encoding, file),
                gimli::DebugRngListsBase,
            );
            let base = gimli::DebugRngListsBase(base.0.saturating_add(place.rnglists_start));
            lists.get_offset(place.encoding, base, *index).map_err(|error| why(data, error))?.0
        }
        _ => return Err("DW_AT_ranges has no form of range list".to_owned()),
    };
    let addresses = if addr.exists() { addr.get(memory, notes) } else { None };
    let addresses = DebugAddr::from(addresses.map_or(empty, SectionData::reader));
    let addr_base = gimli::DebugAddrBase(place.addr_base.unwrap_or_else(|| default_base(place.encoding)));
    let mut entries = lists
        .ranges(gimli::RangeListsOffset(offset), place.encoding, base, &addresses, addr_base)
        .map_err(|error| why(data, error))?;
    loop {
        if !budget.step(1) {
            notes.damage("too-many-debug-ranges", || {
                "the range lists of the units are too long together".to_owned()
            });
            return Ok(());
        }
        let entry = match entries.next_raw() {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(()),
            Err(error) => return Err(why(data, error)),
        };
        match entries.convert_raw(entry) {
            Ok(None) => {}
            Ok(Some(range)) => {
                let next = range.begin..range.end;
                match out.last_mut() {
                    Some(last) if last.end == next.start => last.end = next.end,
                    _ if budget.take(size_of::<Range<u64>>()) => out.push(next),
                    _ => {
                        notes.damage("too-many-debug-ranges", || "the units have too many ranges".to_owned());
                        return Ok(());
                    }
                }
            }
            Err(error) => return Err(why(data, error)),
        }
    }
}
