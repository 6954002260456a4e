//! Relocations of relocatable files (`ET_REL`), applied to the bytes of a section.
//!
//! Without them every string of an x86-64 object file, archive member or kernel module reads as another
//! one, with no error. Executables may keep relocation sections too (`--emit-relocs`); there they are
//! already applied and are never read.

use super::{Image, Input, ReadError, Section};
use effect::{Effect, effect};
use object::elf::{self, Machine, RelocationType};
use object::read::elf::{CrelIterator, Rel, Rela, Sym};
use object::{Endianness, pod};
use std::ops::Range;

mod effect;

/// Most relocations held in memory, where a table is not sorted or is in the CREL form (32 bytes each).
const HELD: u64 = 512 << 10;
/// Largest table in the CREL form.
const CREL: u64 = 16 << 20;
/// Bytes of a relocation or symbol table read at once.
const CHUNK: usize = 16 << 10;

#[derive(Debug, Clone, Copy)]
struct Entry {
    offset: u64,
    symbol: u32,
    kind: RelocationType,
    /// `None`: the field itself holds it (`SHT_REL`).
    addend: Option<i64>,
}

/// A table of fixed-size entries in the file, of which one chunk is held.
#[derive(Debug)]
struct Table {
    input: Input,
    entry: usize,
    count: u64,
    chunk: Vec<u8>,
    first: u64,
}

impl Table {
    fn new(image: &Image, section: &Section, entry: usize, what: &str) -> Result<Self, ReadError> {
        let input = image.input.part(section.offset, section.size).ok_or_else(|| ReadError::OutOfFile {
            what: what.to_owned(),
            offset: section.offset,
            size: section.size,
            file: image.input.len(),
        })?;
        let count = section.size / entry as u64;
        Ok(Self { input, entry, count, chunk: Vec::new(), first: 0 })
    }

    fn get(&mut self, index: u64) -> Option<&[u8]> {
        if index >= self.count {
            return None;
        }
        let held = (self.chunk.len() / self.entry) as u64;
        if index < self.first || index - self.first >= held {
            let many = (CHUNK / self.entry) as u64;
            // Chunks lie on a grid, so that the steps of a binary search near its end share one.
            self.first = index / many * many;
            let bytes = many.min(self.count - self.first) as usize * self.entry;
            self.chunk.resize(bytes, 0);
            let got = self.input.read_at(self.first * self.entry as u64, &mut self.chunk).ok()?;
            self.chunk.truncate(got);
        }
        let at = (index - self.first) as usize * self.entry;
        self.chunk.get(at..at.checked_add(self.entry)?)
    }
}

#[derive(Debug)]
enum Entries {
    /// In the file, sorted by offset.
    Sorted(Table),
    Held(Vec<Entry>),
}

/// The relocations of one section.
#[derive(Debug)]
pub struct Relocations {
    entries: Vec<(Entries, Option<Table>)>,
    format: Format,
    /// Size of the tables in bytes.
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Format {
    machine: Machine,
    is_64: bool,
    endian: Endianness,
}

impl Relocations {
    /// Relocations that apply to `section`; `None` where there are none or the file is not `ET_REL`.
    pub fn of(image: &Image, section: &Section) -> Result<Option<Self>, ReadError> {
        if !image.is_relocatable() {
            return Ok(None);
        }
        let format = Format {
            machine: image.header.machine,
            is_64: image.header.is_64,
            endian: if image.header.little_endian { Endianness::Little } else { Endianness::Big },
        };
        let mut entries = Vec::new();
        let mut bytes = 0u64;
        for table in image.relocation_sections(section).filter(|table| table.size > 0) {
            bytes = bytes.saturating_add(table.size);
            let symbols = image
                .sections
                .get(table.link as usize)
                .filter(|s| s.kind == elf::SHT_SYMTAB && table.link != 0)
                .and_then(|s| Table::new(image, s, if format.is_64 { 24 } else { 16 }, "symbols").ok());
            entries.push((format.entries(image, table)?, symbols));
        }
        Ok((!entries.is_empty()).then_some(Self { entries, format, bytes }))
    }

    /// Applies what falls into `bytes`, which stand at offset `start` of the section. Only relocations
    /// whose field begins within `fields` (offsets in the section) are applied. Ranges that should have been
    /// changed and could not be are added to `unapplied`.
    pub fn apply(
        &mut self,
        start: u64,
        bytes: &mut [u8],
        fields: Range<u64>,
        unapplied: &mut Vec<Range<u64>>,
    ) {
        let format = self.format;
        for (entries, symbols) in &mut self.entries {
            let mut index = entries.first_from(fields.start, format);
            while let Some(entry) = entries.get(index, format) {
                if entry.offset >= fields.end {
                    break;
                }
                index += 1;
                let at = (entry.offset - start.min(entry.offset)) as usize;
                if entry.offset < start || format.apply(entry, symbols.as_mut(), bytes, at).is_none() {
                    unapplied.push(entry.offset..entry.offset.saturating_add(4));
                }
            }
        }
    }
}

impl Entries {
    fn get(&mut self, index: u64, format: Format) -> Option<Entry> {
        match self {
            Self::Held(list) => list.get(index as usize).copied(),
            Self::Sorted(table) => {
                let bytes = table.get(index)?;
                format.entry(bytes)
            }
        }
    }

    /// Index of the first entry at or after `offset`.
    fn first_from(&mut self, offset: u64, format: Format) -> u64 {
        let (mut low, mut high) = match self {
            Self::Held(list) => return list.partition_point(|e| e.offset < offset) as u64,
            Self::Sorted(table) => (0, table.count),
        };
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle, format) {
                Some(entry) if entry.offset < offset => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }
}

impl Format {
    fn rela_size(self) -> usize {
        if self.is_64 { 24 } else { 12 }
    }

    fn rel_size(self) -> usize {
        if self.is_64 { 16 } else { 8 }
    }

    fn entries(self, image: &Image, section: &Section) -> Result<Entries, ReadError> {
        let what = format!("relocations {}", String::from_utf8_lossy(&section.name));
        if section.kind == elf::SHT_CREL {
            return Self::crel(image, section, &what);
        }
        let size = if section.kind == elf::SHT_RELA { self.rela_size() } else { self.rel_size() };
        let mut table = Table::new(image, section, size, &what)?;
        // Assemblers and linkers write them in order of offset; looking once through the table makes sure.
        let mut last = 0;
        let mut sorted = true;
        for index in 0..table.count {
            let Some(entry) = table.get(index).and_then(|bytes| self.entry(bytes)) else { break };
            if entry.offset < last {
                sorted = false;
                break;
            }
            last = entry.offset;
        }
        if sorted {
            return Ok(Entries::Sorted(table));
        }
        if table.count > HELD {
            return Err(ReadError::TooLarge { what, size: table.count, limit: HELD });
        }
        let mut list = Vec::new();
        for index in 0..table.count {
            list.extend(table.get(index).and_then(|bytes| self.entry(bytes)));
        }
        list.sort_by_key(|e: &Entry| e.offset);
        Ok(Entries::Held(list))
    }

    fn crel(image: &Image, section: &Section, what: &str) -> Result<Entries, ReadError> {
        let damaged =
            |error: object::read::Error| ReadError::Damaged { what: what.to_owned(), why: error.to_string() };
        if section.size > CREL {
            return Err(ReadError::TooLarge { what: what.to_owned(), size: section.size, limit: CREL });
        }
        let bytes = image.raw_section(section)?;
        let iterator = CrelIterator::new(&bytes).map_err(damaged)?;
        if iterator.len() as u64 > HELD {
            let size = iterator.len() as u64;
            return Err(ReadError::TooLarge { what: what.to_owned(), size, limit: HELD });
        }
        let explicit = iterator.is_rela();
        let mut list = Vec::new();
        for entry in iterator {
            let e = entry.map_err(damaged)?;
            let addend = explicit.then_some(e.r_addend);
            list.push(Entry { offset: e.r_offset, symbol: e.r_sym, kind: e.r_type, addend });
        }
        list.sort_by_key(|e: &Entry| e.offset);
        Ok(Entries::Held(list))
    }

    /// Decodes an entry; `SHT_REL` and `SHT_RELA` differ in size.
    fn entry(self, bytes: &[u8]) -> Option<Entry> {
        let endian = self.endian;
        // 64-bit little-endian MIPS orders the parts of `r_info` in its own way.
        let mips = self.machine == elf::EM_MIPS && self.is_64 && endian == Endianness::Little;
        let explicit = bytes.len() == self.rela_size();
        Some(match (self.is_64, explicit) {
            (true, true) => rela(pod::from_bytes::<elf::Rela64<Endianness>>(bytes).ok()?.0, endian, mips),
            (false, true) => rela(pod::from_bytes::<elf::Rela32<Endianness>>(bytes).ok()?.0, endian, false),
            (true, false) => rel(pod::from_bytes::<elf::Rel64<Endianness>>(bytes).ok()?.0, endian),
            (false, false) => rel(pod::from_bytes::<elf::Rel32<Endianness>>(bytes).ok()?.0, endian),
        })
    }

    fn symbol_value(self, symbols: Option<&mut Table>, index: u32) -> Option<u64> {
        if index == 0 {
            return Some(0);
        }
        let bytes = symbols?.get(u64::from(index))?;
        Some(if self.is_64 {
            pod::from_bytes::<elf::Sym64<Endianness>>(bytes).ok()?.0.st_value(self.endian)
        } else {
            u64::from(pod::from_bytes::<elf::Sym32<Endianness>>(bytes).ok()?.0.st_value(self.endian))
        })
    }

    fn apply(self, entry: Entry, symbols: Option<&mut Table>, bytes: &mut [u8], at: usize) -> Option<()> {
        let (effect, size) = effect(self.machine, self.is_64, entry.kind)?;
        if effect == Effect::None {
            return Some(());
        }
        let field = bytes.get_mut(at..at.checked_add(size)?)?;
        let old = self.load(field);
        let symbol = self.symbol_value(symbols, entry.symbol)?;
        let new = match (effect, entry.addend) {
            (Effect::Set, Some(addend)) => symbol.wrapping_add_signed(addend),
            (Effect::Set, None) => symbol.wrapping_add(old),
            (Effect::Add, addend) => old.wrapping_add(symbol).wrapping_add_signed(addend.unwrap_or(0)),
            (Effect::Sub, addend) => old.wrapping_sub(symbol.wrapping_add_signed(addend.unwrap_or(0))),
            (Effect::None, _) => old,
        };
        self.store(field, new);
        Some(())
    }

    fn load(self, field: &[u8]) -> u64 {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self.endian {
            Endianness::Little => field.iter().rev().fold(0, fold),
            Endianness::Big => field.iter().fold(0, fold),
        }
    }

    fn store(self, field: &mut [u8], value: u64) {
        let size = field.len();
        match self.endian {
            Endianness::Little => field.copy_from_slice(&value.to_le_bytes()[..size]),
            Endianness::Big => field.copy_from_slice(&value.to_be_bytes()[8 - size..]),
        }
    }
}

fn rela<R: Rela<Endian = Endianness>>(raw: &R, endian: Endianness, mips: bool) -> Entry {
    Entry {
        offset: raw.r_offset(endian).into(),
        symbol: raw.r_sym(endian, mips),
        kind: raw.r_type(endian, mips),
        addend: Some(raw.r_addend(endian).into()),
    }
}

fn rel<R: Rel<Endian = Endianness>>(raw: &R, endian: Endianness) -> Entry {
    Entry {
        offset: raw.r_offset(endian).into(),
        symbol: raw.r_sym(endian),
        kind: raw.r_type(endian),
        addend: None,
    }
}
