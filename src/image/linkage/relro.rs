//! How much of the data that only the loader writes is read-only when the program runs.
//!
//! The loader makes the whole pages of the last `PT_GNU_RELRO` read-only, once it has relocated the file (glibc's
//! `_dl_protect_relro`, musl's `reclaim_gaps` and `do_relocs`). Binding at start is a flag, and a flag can be set in a finished
//! file whose tables still lie behind that range; so where the slots of bound functions lie is looked at, too.

use super::{Linkage, Relro, locate};
use crate::image::Image;
use crate::image::bytes::Format;
use goblin::elf::dynamic;
use object::elf;
use std::ops::Range;

/// The smallest page of any machine: what does not fill one is protected nowhere.
const PAGE: u64 = 4096;

/// `None` where the dynamic table is lost, or nothing tells where a static program has its functions' addresses.
pub(super) fn read(image: &Image, linkage: &Linkage) -> Option<Relro> {
    // Of several the last counts.
    let header = image.segments.iter().rev().find(|segment| segment.kind == elf::PT_GNU_RELRO);
    let Some(pages) = header.map(|segment| pages(segment.address, segment.memory_size)) else {
        return Some(Relro::None);
    };
    if pages.is_empty() {
        return Some(Relro::None);
    }
    if linkage.has_dynamic && !linkage.is_static {
        let full = |now| now && slots_lie_in(image, linkage, &pages);
        return linkage.bind_now.map(|now| if full(now) { Relro::Full } else { Relro::Partial });
    }
    // A static program, position independent or not, binds nothing lazily, but its table of indirect functions may still lie
    // outside. Without sections a position-independent one has its place in the dynamic table.
    let covered = match image.section(".got.plt") {
        Some(table) => {
            Some(table.address >= pages.start && table.address.saturating_add(table.size) <= pages.end)
        }
        None if image.described => Some(true),
        None => linkage.dynamic_value(dynamic::DT_PLTGOT).map(|table| pages.contains(&table)),
    };
    let covered = if slots_lie_in(image, linkage, &pages) { covered? } else { false };
    Some(if covered { Relro::Full } else { Relro::Partial })
}

/// The whole pages that end in a range: its start is rounded down, and so is its end.
fn pages(address: u64, size: u64) -> Range<u64> {
    let down = |at: u64| at / PAGE * PAGE;
    down(address)..down(address.saturating_add(size))
}

/// Whether the slots of functions (`DT_JMPREL`; on MIPS, whose slots have no such table, the global offset table) lie in the
/// range, as far as the first and the last of the table tell. A file without such a table has none, and one whose table cannot
/// be read is taken at its word.
fn slots_lie_in(image: &Image, linkage: &Linkage, range: &Range<u64>) -> bool {
    let format = Format::from(image.header);
    let (Some(table), Some(size)) =
        (linkage.dynamic_value(dynamic::DT_JMPREL), linkage.dynamic_value(dynamic::DT_PLTRELSZ))
    else {
        let global = linkage.dynamic_value(dynamic::DT_PLTGOT);
        return image.header.machine != elf::EM_MIPS || global.is_none_or(|table| range.contains(&table));
    };
    let words = match linkage.dynamic_value(dynamic::DT_PLTREL) {
        Some(dynamic::DT_REL) => 2,
        _ => 3,
    };
    let entry = words * format.word_size();
    let slot = |index: u64| {
        let at = table.checked_add(index.checked_mul(entry)?)?;
        let place = locate(image, at, format.word_size())?;
        let bytes = image.read(place.start, format.word_size(), "a relocation").ok()?;
        format.word(&bytes, 0)
    };
    let Some(last) = (size / entry).checked_sub(1) else { return true };
    [0, last].into_iter().filter_map(slot).all(|slot| range.contains(&slot))
}
