//! What the pointers in a program's data will hold once it is loaded.
//!
//! A position-independent file keeps the targets of its pointers in relocations (`DT_RELA`, `DT_REL`, `DT_RELR`),
//! often with nothing useful in the data itself; a fixed-address one keeps them in place. Both are answered here
//! alike. Everything is found through the dynamic table, so stripped section headers cost nothing, and nothing is
//! read before the first question. Sources: gABI "Relocation" and the relocation tables of the processors' ABIs.

use super::bytes::Format;
use super::functions::range_at;
use super::linkage::{DT_RELR, DT_RELRSZ, Linkage, locate};
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

/// Reads the tables of one file.
struct Reader<'a> {
    pointers: &'a Pointers,
    image: &'a Image,
    out: Relocated,
    /// Slot, symbol and addend of relocations that name a symbol.
    symbolic: Vec<(u64, u32, u64)>,
}

impl Reader<'_> {
    fn is_full(&mut self, what: &str) -> bool {
        let most = self.image.limits.relocations;
        let full = self.out.pairs.len() + self.symbolic.len() >= most;
        if full {
            let message = format!("{what}: only the first {most} are read");
            self.out.problems.push(Problem::damage("too-many-relocations", message));
        }
        full
    }

    /// Calls `each` with whole entries of a table at an address, window by window, while it returns true.
    fn windows(
        &mut self,
        (address, size): (u64, u64),
        entry: u64,
        what: &str,
        mut each: impl FnMut(&mut Self, &[u8]) -> bool,
    ) {
        let Some(start) = locate(self.image, address, 1).map(|range| range.start) else {
            if size > 0 {
                let message = format!("{what} at address {address:#x} are not in the file");
                self.out.problems.push(Problem::damage("damaged-relocations", message));
            }
            return;
        };
        let left = self.image.input.len().saturating_sub(start);
        let mut whole = size - size % entry;
        if whole > left {
            let message = format!("only {left} of {size} bytes of {what} lie within the file");
            self.out.problems.push(Problem::damage("damaged-relocations", message));
            whole = left - left % entry;
        }
        let step = WINDOW - WINDOW % entry;
        let mut done = 0;
        while done < whole {
            let read = self.image.read(start + done, step.min(whole - done), what);
            let Ok(bytes) = read else { return };
            if !each(self, &bytes) {
                return;
            }
            done += bytes.len() as u64;
        }
    }

    fn table(&mut self, table: Table) {
        let Some(kinds) = self.pointers.kinds else { return };
        let format = self.pointers.format;
        let word = format.word_size() as usize;
        let entry = word * if table.with_addend { 3 } else { 2 };
        let mut in_place = InPlace::new(self.image, format);
        self.windows((table.address, table.size), entry as u64, "relocations", |reader, bytes| {
            for bytes in bytes.chunks_exact(entry) {
                let Some((slot, info)) = format.word(bytes, 0).zip(format.word(bytes, word)) else {
                    continue;
                };
                let (kind, symbol) = kinds.split(info, format);
                let relative = kind == kinds.relative && (!kinds.needs_symbol_zero || symbol == 0);
                if !relative && !kinds.is_symbolic(kind) {
                    continue;
                }
                // The slot of a bound function holds its stub, which is no addend.
                let addend = if table.with_addend {
                    format.word(bytes, 2 * word)
                } else if kind == kinds.jump_slot {
                    Some(0)
                } else {
                    in_place.word(slot)
                };
                let Some(addend) = addend else { continue };
                if relative {
                    reader.out.pairs.push((slot, addend));
                } else {
                    reader.symbolic.push((slot, symbol, addend));
                }
            }
            !reader.is_full("relocations")
        });
    }

    /// `DT_RELR`: an even word is the address of a pointer, an odd one a bit map of the words that follow it.
    fn relr(&mut self, address: u64, size: u64) {
        let format = self.pointers.format;
        let word = format.word_size();
        let mut next = 0u64;
        let mut in_place = InPlace::new(self.image, format);
        self.windows((address, size), word, "relative relocations", |reader, bytes| {
            for bytes in bytes.chunks_exact(word as usize) {
                let Some(value) = format.word(bytes, 0) else { continue };
                if value & 1 == 0 {
                    reader.relative_in_place(&mut in_place, value);
                    next = format.wrap(value.wrapping_add(word));
                    continue;
                }
                let mut bits = value >> 1;
                let mut slot = next;
                while bits != 0 {
                    if bits & 1 != 0 {
                        reader.relative_in_place(&mut in_place, slot);
                    }
                    bits >>= 1;
                    slot = format.wrap(slot.wrapping_add(word));
                }
                next = format.wrap(next.wrapping_add((word * 8 - 1) * word));
            }
            !reader.is_full("relative relocations")
        });
    }

    fn relative_in_place(&mut self, in_place: &mut InPlace, slot: u64) {
        if let Some(target) = in_place.word(slot) {
            self.out.pairs.push((slot, target));
        }
    }

    /// Turns symbolic relocations into pairs where the symbol is defined here, into imports where it is not.
    fn resolve_symbols(&mut self) {
        let symbolic = std::mem::take(&mut self.symbolic);
        let Some(last) = symbolic.iter().map(|entry| entry.1).max() else { return };
        let format = self.pointers.format;
        let entry: u64 = if format.is_64 { 24 } else { 16 };
        let table = self.pointers.symbols.filter(|symbols| symbols.1 == entry).and_then(|(address, _)| {
            let size = (u64::from(last) + 1).checked_mul(entry)?.min(MAX_SYMBOL_BYTES);
            let start = locate(self.image, address, 1)?.start;
            let size = size.min(self.image.input.len().checked_sub(start)?);
            self.image.read(start, size, "dynamic symbols").ok()
        });
        let Some(table) = table else {
            let message = "the dynamic symbol table cannot be read: pointers to named objects are lost";
            self.out.problems.push(Problem::damage("damaged-dynamic-symbols", message));
            return;
        };
        let mut lost = 0u64;
        for (slot, symbol, addend) in symbolic {
            let at = symbol as usize * entry as usize;
            // Elf64_Sym: name 4, info 1, other 1, shndx 2, value 8; Elf32_Sym: name 4, value 4, size 4, info 1, other 1, shndx 2.
            let (value, section) = if format.is_64 {
                (format.u64(&table, at + 8), format.u16(&table, at + 6))
            } else {
                (format.word(&table, at + 4), format.u16(&table, at + 14))
            };
            match value.zip(section) {
                Some((_, 0)) if symbol != 0 => self.out.imports.push((slot, symbol)),
                Some((value, _)) => {
                    self.out.pairs.push((slot, format.wrap(value.wrapping_add(addend))));
                }
                None => lost += 1,
            }
        }
        if lost > 0 {
            let message = format!("{lost} relocations name symbols outside the dynamic symbol table");
            self.out.problems.push(Problem::damage("damaged-relocations", message));
        }
    }
}

/// Words of the loaded data, read through one window: relocations come sorted, so neighbours are asked for in turn.
struct InPlace<'a> {
    image: &'a Image,
    format: Format,
    start: u64,
    bytes: Vec<u8>,
    step: u64,
}

impl<'a> InPlace<'a> {
    fn new(image: &'a Image, format: Format) -> Self {
        Self { image, format, start: 0, bytes: Vec::new(), step: 0 }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let size = self.format.word_size();
        let inside = |start: u64, len: u64| {
            address >= start && address.checked_add(size).is_some_and(|end| end - start <= len)
        };
        if !inside(self.start, self.bytes.len() as u64) {
            let segment = self.image.loaded_segments().find(|s| inside(s.address, s.file_size))?;
            let at = address - segment.address;
            let offset = segment.offset.checked_add(at)?;
            // The window grows while slots follow one another; a slot far from the last one may stand alone, and a
            // file made of such must not cost a full window each.
            let follows = address.checked_sub(self.start).is_some_and(|gap| gap < 2 * self.step);
            self.step = if follows { (self.step * 4).min(WINDOW) } else { 512 };
            self.bytes.resize(self.step.min(segment.file_size - at) as usize, 0);
            let got = self.image.input.read_at(offset, &mut self.bytes).ok()?;
            self.bytes.truncate(got);
            self.start = address;
        }
        self.format.word(&self.bytes, (address - self.start) as usize)
    }
}

/// The relocation types of a processor that make pointers.
#[derive(Debug, Clone, Copy)]
struct Kinds {
    relative: u32,
    /// The address of a symbol plus addend, in a word.
    absolute: u32,
    /// The address of a symbol, in the global offset table.
    global: u32,
    jump_slot: u32,
    /// MIPS has one type for relative and symbolic relocations and tells them by the symbol.
    needs_symbol_zero: bool,
    mips64: bool,
}

impl Kinds {
    fn of(image: &Image) -> Option<Self> {
        let wide = image.header.is_64;
        let kinds = |relative, absolute, global, jump_slot| {
            Some(Self { relative, absolute, global, jump_slot, needs_symbol_zero: false, mips64: false })
        };
        match image.header.machine {
            elf::EM_X86_64 if wide => kinds(8, 1, 6, 7),
            elf::EM_X86_64 => kinds(8, 10, 6, 7),
            elf::EM_386 => kinds(8, 1, 6, 7),
            elf::EM_AARCH64 if wide => kinds(1027, 257, 1025, 1026),
            elf::EM_AARCH64 => kinds(183, 1, 181, 182),
            elf::EM_ARM => kinds(23, 2, 21, 22),
            // RISC-V and LoongArch fill the global offset table with the plain absolute type.
            elf::EM_RISCV | elf::EM_LOONGARCH => {
                let absolute = if wide { 2 } else { 1 };
                kinds(3, absolute, absolute, 5)
            }
            elf::EM_PPC64 => kinds(22, 38, 20, 21),
            elf::EM_PPC => kinds(22, 1, 20, 21),
            elf::EM_S390 => kinds(12, if wide { 22 } else { 4 }, 10, 11),
            elf::EM_SPARC | elf::EM_SPARC32PLUS => kinds(22, 3, 20, 21),
            elf::EM_SPARCV9 => kinds(22, 32, 20, 21),
            elf::EM_MIPS | elf::EM_MIPS_RS3_LE => Some(Self {
                relative: 3,
                absolute: 3,
                global: 51,
                jump_slot: 127,
                needs_symbol_zero: true,
                mips64: wide,
            }),
            _ => None,
        }
    }

    fn is_symbolic(self, kind: u32) -> bool {
        kind == self.absolute || kind == self.global || kind == self.jump_slot
    }

    /// Type and symbol of `r_info`.
    fn split(self, info: u64, format: Format) -> (u32, u32) {
        if self.mips64 {
            // Symbol, then a special symbol and three types of one byte each, in this order in either byte order.
            return if format.little_endian {
                ((info >> 56) as u32, info as u32)
            } else {
                ((info & 0xff) as u32, (info >> 32) as u32)
            };
        }
        if format.is_64 {
            (info as u32, (info >> 32) as u32)
        } else {
            ((info & 0xff) as u32, (info >> 8) as u32)
        }
    }
}

#[cfg(test)]
mod tests;
