//! What the pointers in a program's data will hold once it is loaded.
//!
//! A position-independent file keeps the targets of its pointers in relocations (`DT_RELA`, `DT_REL`, `DT_RELR`),
//! often with nothing useful in the data itself; a fixed-address one keeps them in place. Both are answered here
//! alike. Everything is found through the dynamic table, so stripped section headers cost nothing, and nothing is
//! read before the first question. Sources: gABI "Relocation" and the relocation tables of the processors' ABIs.

use super::bytes::Format;
use super::linkage::{DT_RELR, DT_RELRSZ, Linkage, locate};
use super::ranges::range_at;
use super::{Image, Segment, merge};
use crate::facts::Problem;
use goblin::elf::dynamic;
use object::elf;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of a fixed-address program's data searched, for one pointer of the limit: 64 MiB by default.
const SCANNED_PER_POINTER: u64 = 16;
/// Bytes of a table or of data read at once.
const WINDOW: u64 = 256 << 10;
/// Bytes read for one word: its neighbours are asked for next.
const RECENT: usize = 4 << 10;
/// Most bytes of the dynamic symbol table read for symbolic relocations.
const MAX_SYMBOL_BYTES: u64 = 64 << 20;
/// Android's earlier tags for `DT_RELR` and `DT_RELRSZ`, and its packed tables.
const DT_ANDROID_RELR: u64 = 0x6fff_e000;
const DT_ANDROID_RELRSZ: u64 = 0x6fff_e001;
const DT_ANDROID_REL: u64 = 0x6000_000f;
const DT_ANDROID_RELA: u64 = 0x6000_0011;

mod kinds;
mod tables;

use kinds::Kinds;
use tables::Reader;

/// A table of relocations: address and size in bytes.
#[derive(Debug, Clone, Copy)]
struct Table {
    address: u64,
    size: u64,
    with_addend: bool,
}

/// The pointers of one file. Made in no time; reads when asked.
#[derive(Debug)]
pub struct Pointers {
    format: Format,
    kinds: Option<Kinds>,
    fixed: bool,
    linked: bool,
    tables: Vec<Table>,
    relr: Option<(u64, u64)>,
    packed: bool,
    symbols: Option<(u64, u64)>,
    relocated: OnceLock<Relocated>,
    scanned: OnceLock<Scanned>,
    by_target: OnceLock<Vec<(u64, u64)>>,
    recent: Mutex<Recent>,
}

/// The piece of the file that was read last: tables are asked for word by word.
#[derive(Debug, Default)]
struct Recent {
    start: u64,
    bytes: Vec<u8>,
}

impl Recent {
    /// The bytes of a range of the file (a word), if it has them.
    fn bytes(&mut self, image: &Image, range: &Range<u64>) -> Option<&[u8]> {
        let within = |recent: &Self| {
            let from = range.start.checked_sub(recent.start)? as usize;
            let to = from.checked_add((range.end - range.start) as usize)?;
            (to <= recent.bytes.len()).then_some(from..to)
        };
        if within(self).is_none() {
            self.start = range.start;
            self.bytes.resize(RECENT, 0);
            let got = image.input.read_at(self.start, &mut self.bytes).unwrap_or(0);
            self.bytes.truncate(got);
        }
        self.bytes.get(within(self)?)
    }
}

/// What relocations say.
#[derive(Debug, Default)]
struct Relocated {
    /// Slot and target, by slot.
    pairs: Vec<(u64, u64)>,
    /// Slot and index of the imported symbol in the dynamic symbol table, by slot.
    imports: Vec<(u64, u32)>,
    problems: Vec<Problem>,
}

/// What lies in place in a fixed-address program.
#[derive(Debug, Default)]
struct Scanned {
    pairs: Vec<(u64, u64)>,
    problems: Vec<Problem>,
}

impl Pointers {
    /// Notes where the relocations lie. Reads nothing yet.
    pub fn read(image: &Image, linkage: &Linkage) -> Self {
        let value = |tag| linkage.dynamic_value(tag);
        let mut tables = Vec::new();
        let mut add = |address: Option<u64>, size: Option<u64>, with_addend| {
            if let (Some(address), Some(size)) = (address, size) {
                tables.push(Table { address, size, with_addend });
            }
        };
        add(value(dynamic::DT_RELA), value(dynamic::DT_RELASZ), true);
        add(value(dynamic::DT_REL), value(dynamic::DT_RELSZ), false);
        let plt_with_addend = value(dynamic::DT_PLTREL) == Some(dynamic::DT_RELA);
        add(value(dynamic::DT_JMPREL), value(dynamic::DT_PLTRELSZ), plt_with_addend);
        Self {
            format: Format::from(image.header),
            kinds: Kinds::of(image),
            fixed: image.header.kind == elf::ET_EXEC,
            linked: linkage.linked,
            tables,
            relr: value(DT_RELR)
                .zip(value(DT_RELRSZ))
                .or_else(|| value(DT_ANDROID_RELR).zip(value(DT_ANDROID_RELRSZ))),
            packed: value(DT_ANDROID_REL).or_else(|| value(DT_ANDROID_RELA)).is_some(),
            symbols: value(dynamic::DT_SYMTAB).zip(value(dynamic::DT_SYMENT)),
            relocated: OnceLock::new(),
            scanned: OnceLock::new(),
            by_target: OnceLock::new(),
            recent: Mutex::default(),
        }
    }

    /// The address that the pointer stored at address `slot` holds when the program runs: `Some(0)` for a null
    /// pointer; `None` where the file does not say (an imported symbol, an address outside the file, or, in a
    /// position-independent file, a value that nothing relocates and that so is no address).
    pub fn value_at(&self, image: &Image, slot: u64) -> Option<u64> {
        let relocated = self.relocated(image);
        if let Ok(at) = relocated.pairs.binary_search_by_key(&slot, |pair| pair.0) {
            return relocated.pairs.get(at).map(|pair| pair.1);
        }
        if relocated.imports.binary_search_by_key(&slot, |import| import.0).is_ok() {
            return None;
        }
        let value = self.in_place(image, slot)?;
        (self.fixed || value == 0).then_some(value)
    }

    /// Index in the dynamic symbol table of the imported symbol whose address the loader stores at `slot`.
    pub fn import_at(&self, image: &Image, slot: u64) -> Option<u32> {
        let imports = &self.relocated(image).imports;
        let at = imports.binary_search_by_key(&slot, |import| import.0).ok()?;
        imports.get(at).map(|import| import.1)
    }

    /// All slots that will hold exactly `target`, ascending. Besides data these may be entries of the global offset
    /// table; in a fixed-address program, any aligned word of the data that happens to have this value.
    pub fn slots_pointing_to(&self, image: &Image, target: u64) -> Vec<u64> {
        let by_target = self.by_target.get_or_init(|| {
            let mut pairs: Vec<(u64, u64)> =
                self.pairs(image).iter().map(|&(slot, target)| (target, slot)).collect();
            pairs.sort_unstable();
            pairs
        });
        let from = by_target.partition_point(|pair| pair.0 < target);
        by_target.iter().skip(from).take_while(|pair| pair.0 == target).map(|pair| pair.1).collect()
    }

    /// All known pointers as (slot, target), ascending by slot. See [`Self::slots_pointing_to`].
    pub fn pairs(&self, image: &Image) -> &[(u64, u64)] {
        if self.fixed && self.linked { &self.scanned(image).pairs } else { &self.relocated(image).pairs }
    }

    /// What was damaged or too large in what has been read so far.
    pub fn problems(&self) -> Vec<Problem> {
        let relocated = self.relocated.get().into_iter().flat_map(|r| &r.problems);
        let scanned = self.scanned.get().into_iter().flat_map(|s| &s.problems);
        relocated.chain(scanned).cloned().collect()
    }

    fn in_place(&self, image: &Image, slot: u64) -> Option<u64> {
        let size = self.format.word_size();
        if let Some(range) = locate(image, slot, size) {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            return self.format.word(recent.bytes(image, &range)?, 0);
        }
        let zero_filled = image.loaded_segments().any(|segment| {
            slot.checked_sub(segment.address).is_some_and(|at| {
                at >= segment.file_size && at.checked_add(size).is_some_and(|end| end <= segment.memory_size)
            })
        });
        zero_filled.then_some(0)
    }

    fn relocated(&self, image: &Image) -> &Relocated {
        self.relocated.get_or_init(|| {
            let mut reader =
                Reader { pointers: self, image, out: Relocated::default(), symbolic: Vec::new() };
            if self.linked {
                if self.packed {
                    let message = "relocations in Android's packed form are not read";
                    reader.out.problems.push(Problem::damage("packed-relocations", message));
                }
                for table in &self.tables {
                    reader.table(*table);
                }
                if let Some((address, size)) = self.relr {
                    reader.relr(address, size);
                }
                reader.resolve_symbols();
            }
            let mut out = reader.out;
            sort_by_slot(&mut out.pairs);
            sort_by_slot(&mut out.imports);
            out
        })
    }

    fn scanned(&self, image: &Image) -> &Scanned {
        self.scanned.get_or_init(|| {
            let relocated = self.relocated(image);
            let mut out = Scanned::default();
            let most = image.limits.relocations;
            let searched = (most as u64).saturating_mul(SCANNED_PER_POINTER);
            let mut left = searched;
            let mut told = false;
            for (address, offset, size) in data(image) {
                if !told && (size > left || out.pairs.len() >= most) {
                    told = true;
                    out.problems.push(Problem::damage(
                        "too-much-data",
                        format!("only the first {searched} bytes of data are searched for {most} pointers"),
                    ));
                }
                let size = size.min(left);
                left -= size;
                scan(image, self.format, (address, offset, size), &mut out.pairs);
            }
            let known = |slot: u64| {
                relocated.pairs.binary_search_by_key(&slot, |p| p.0).is_ok()
                    || relocated.imports.binary_search_by_key(&slot, |p| p.0).is_ok()
            };
            out.pairs.retain(|pair| !known(pair.0));
            out.pairs.extend(&relocated.pairs);
            sort_by_slot(&mut out.pairs);
            out
        })
    }
}

/// Where a slot is named twice, the first naming stays.
fn sort_by_slot<T>(list: &mut Vec<(u64, T)>) {
    list.sort_by_key(|entry| entry.0);
    list.dedup_by_key(|entry| entry.0);
    list.shrink_to_fit();
}

/// Address, file offset and size of what a fixed-address program keeps its pointers in.
fn data(image: &Image) -> Vec<(u64, u64, u64)> {
    let named: Vec<_> = image
        .sections
        .iter()
        .filter(|section| {
            section.has_data()
                && section.size > 0
                && section.flags & elf::SHF_ALLOC.0 != 0
                && section.flags & elf::SHF_EXECINSTR.0 == 0
                && section.kind != elf::SHT_NOTE
        })
        .map(|section| (section.address, section.offset, section.size))
        .collect();
    if !named.is_empty() {
        return named;
    }
    // Without sections: what is not code, or everything where constants share a segment with the code.
    let is_code = |segment: &&Segment| segment.flags & elf::PF_X.0 != 0;
    let is_constant = |segment: &Segment| segment.flags & (elf::PF_X.0 | elf::PF_W.0) == 0;
    let apart = image.loaded_segments().any(is_constant);
    image
        .loaded_segments()
        .filter(|segment| !apart || !is_code(segment))
        .map(|segment| (segment.address, segment.offset, segment.file_size))
        .collect()
}

/// Collects the aligned words of a range whose value lies in a loaded segment.
fn scan(image: &Image, format: Format, (address, start, size): (u64, u64, u64), pairs: &mut Vec<(u64, u64)>) {
    let word = format.word_size();
    let ranges =
        image.loaded_segments().filter_map(|s| Some(s.address..s.address.checked_add(s.memory_size)?));
    let ranges = merge(ranges.collect());
    let lowest = ranges.first().map_or(0, |r| r.start);
    let highest = ranges.last().map_or(0, |r| r.end);
    let mut done = address.wrapping_neg() % word;
    while done < size && pairs.len() < image.limits.relocations {
        let Some(offset) = start.checked_add(done) else { return };
        let mut chunk = vec![0; WINDOW.min(size - done) as usize];
        let Ok(got) = image.input.read_at(offset, &mut chunk) else { return };
        chunk.truncate(got - got % word as usize);
        if chunk.is_empty() {
            return;
        }
        for (index, bytes) in chunk.chunks_exact(word as usize).enumerate() {
            let Some(value) = format.word(bytes, 0) else { continue };
            if value < lowest || value >= highest || range_at(&ranges, value).is_none() {
                continue;
            }
            if let Some(slot) = address.checked_add(done + index as u64 * word) {
                pairs.push((slot, value));
            }
        }
        done += chunk.len() as u64;
    }
}

#[cfg(test)]
mod tests;
