//! The two symbol tables: `.dynsym`, which the loader uses and stripping keeps, and `.symtab`.
//!
//! Tables are read when first asked for. The dynamic one is found through the dynamic table, as the loader does, and
//! so needs no section headers; its length comes from the hash tables (gABI "Hash Table"; the GNU hash table has no
//! other description than the loaders' source).

use super::bytes::Format;
use super::linkage::{Linkage, locate};
use super::{Image, ReadError, sections};
use crate::facts::Problem;
use goblin::elf::dynamic;
use object::elf;
use std::sync::OnceLock;

/// Longest name given out, in bytes; mangled C++ names of some thousand bytes are common.
const MAX_NAME: usize = 64 << 10;
/// Most buckets and chain entries of a GNU hash table that are walked to count symbols.
const MAX_HASH_BYTES: u64 = 64 << 20;

/// One symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Index in its table.
    pub index: u32,
    /// Name as in the file; in `.symtab` it may carry a version (`printf@GLIBC_2.2.5`).
    pub name: &'a [u8],
    /// `st_value`.
    pub value: u64,
    /// `st_size`.
    pub size: u64,
    /// `STT_…`.
    pub kind: elf::SymbolType,
    /// `STB_…`.
    pub bind: elf::SymbolBind,
    /// `st_shndx`.
    pub section: u16,
    /// Defined elsewhere (`SHN_UNDEF`).
    pub undefined: bool,
}

impl<'a> Symbol<'a> {
    /// The name without a version.
    pub fn base_name(&self) -> &'a [u8] {
        let end = memchr::memchr(b'@', self.name).filter(|&at| at > 0).unwrap_or(self.name.len());
        self.name.get(..end).unwrap_or(self.name)
    }

    /// Whether the file asks for it without needing it: such a reference resolves to nothing where nobody defines it.
    pub fn is_weak(&self) -> bool {
        self.bind == elf::STB_WEAK
    }
}

/// One symbol, its name not looked up yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    index: u32,
    name: u32,
    info: u8,
    section: u16,
    /// `st_value`.
    pub value: u64,
    size: u64,
}

impl Entry {
    #[inline]
    fn parse(format: Format, index: u32, bytes: &[u8]) -> Option<Self> {
        // Elf64_Sym: name, info, other, shndx, value, size; Elf32_Sym: name, value, size, info, other, shndx.
        if format.is_64 {
            let bytes: &[u8; 24] = bytes.try_into().ok()?;
            return Some(Self {
                index,
                name: format.u32(bytes, 0)?,
                info: bytes[4],
                section: format.u16(bytes, 6)?,
                value: format.u64(bytes, 8)?,
                size: format.u64(bytes, 16)?,
            });
        }
        let bytes: &[u8; 16] = bytes.try_into().ok()?;
        Some(Self {
            index,
            name: format.u32(bytes, 0)?,
            info: bytes[12],
            section: format.u16(bytes, 14)?,
            value: format.u32(bytes, 4)?.into(),
            size: format.u32(bytes, 8)?.into(),
        })
    }

    /// `STT_…`.
    #[inline]
    pub fn kind(&self) -> elf::SymbolType {
        elf::SymbolType(self.info & 0xf)
    }

    /// Defined elsewhere (`SHN_UNDEF`).
    #[inline]
    pub fn undefined(&self) -> bool {
        self.section == elf::SHN_UNDEF.0
    }

    /// The symbol with its name, which is in `table` as it is itself.
    pub fn named<'a>(&self, table: &'a SymbolTable) -> Symbol<'a> {
        Symbol {
            index: self.index,
            name: table.name(self.name),
            value: self.value,
            size: self.size,
            kind: self.kind(),
            bind: elf::SymbolBind(self.info >> 4),
            section: self.section,
            undefined: self.undefined(),
        }
    }
}

/// One symbol table with its names.
#[derive(Debug, Default)]
pub struct SymbolTable {
    format: Option<Format>,
    entries: Vec<u8>,
    names: Vec<u8>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

impl SymbolTable {
    /// Number of symbols, the null symbol at index 0 included.
    pub fn len(&self) -> usize {
        self.format.map_or(0, |format| self.entries.len() / entry_size(format))
    }

    /// Whether the table is missing or empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The symbol at an index.
    pub fn get(&self, index: u32) -> Option<Symbol<'_>> {
        Some(self.entry(index)?.named(self))
    }

    /// The entry at an index.
    fn entry(&self, index: u32) -> Option<Entry> {
        let format = self.format?;
        let at = (index as usize).checked_mul(entry_size(format))?;
        let bytes = self.entries.get(at..at.checked_add(entry_size(format))?)?;
        Entry::parse(format, index, bytes)
    }

    /// All symbols but the null symbol.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.entries().map(|entry| entry.named(self))
    }

    /// All symbols but the null symbol, without their names, the search for whose ends is most of the work.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries_named(|_| true)
    }

    /// Those symbols whose names begin as asked: with the first bytes of a name and of what follows it in the table of
    /// names, up to eight, and zeros past its end. Of the others nothing else is looked at.
    pub fn entries_named(&self, wanted: impl Fn([u8; 8]) -> bool) -> impl Iterator<Item = Entry> {
        let size = self.format.map_or(1, entry_size);
        let entries = self.format.map_or(&[][..], |_| self.entries.as_slice()).chunks_exact(size);
        let format = self.format.unwrap_or(Format { is_64: true, little_endian: true });
        // `st_name` stands first in both classes.
        let begins = move |bytes: &[u8]| {
            let rest = format.u32(bytes, 0).map(|name| self.bytes_at(name)).unwrap_or_default();
            rest.first_chunk().copied().unwrap_or_else(|| {
                let mut begins = [0; 8];
                begins.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                begins
            })
        };
        entries
            .enumerate()
            .skip(1)
            .filter(move |(_, bytes)| wanted(begins(bytes)))
            .map_while(move |(index, bytes)| Entry::parse(format, index as u32, bytes))
    }

    #[inline]
    fn bytes_at(&self, offset: u32) -> &[u8] {
        self.names.get(offset as usize..).unwrap_or_default()
    }

    fn name(&self, offset: u32) -> &[u8] {
        let rest = self.bytes_at(offset);
        let rest = rest.get(..MAX_NAME).unwrap_or(rest);
        rest.get(..memchr::memchr(0, rest).unwrap_or(rest.len())).unwrap_or_default()
    }

    fn damaged(code: &str, message: impl Into<String>) -> Self {
        Self { problems: vec![Problem::damage(code, message)], ..Self::default() }
    }
}

fn entry_size(format: Format) -> usize {
    if format.is_64 { 24 } else { 16 }
}

/// Both tables of one file, read when asked for.
#[derive(Debug, Default)]
pub struct Symbols {
    dynamic: OnceLock<SymbolTable>,
    full: OnceLock<SymbolTable>,
}

impl Symbols {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `.dynsym`; empty where there is none.
    pub fn dynamic(&self, image: &Image, linkage: &Linkage) -> &SymbolTable {
        self.dynamic.get_or_init(|| read_dynamic(image, linkage))
    }

    /// `.symtab`; empty in stripped files.
    pub fn full(&self, image: &Image) -> &SymbolTable {
        self.full.get_or_init(|| read_section(image, elf::SHT_SYMTAB))
    }

    /// What was damaged in what has been read so far.
    pub fn problems(&self) -> Vec<Problem> {
        let tables = self.dynamic.get().into_iter().chain(self.full.get());
        tables.flat_map(|table| table.problems.iter().cloned()).collect()
    }
}

fn read_section(image: &Image, kind: elf::SectionType) -> SymbolTable {
    let Some(section) = image.sections.iter().find(|section| section.kind == kind) else {
        return SymbolTable::default();
    };
    let format = Format::from(image.header);
    let limit = (image.limits.functions as u64).saturating_mul(entry_size(format) as u64);
    let mut problems = Vec::new();
    let mut size = section.size.min(image.input.len().saturating_sub(section.offset));
    let packed = match sections::inflated(image, section, limit) {
        Ok(packed) => packed,
        Err(error) => return SymbolTable::damaged("damaged-symbols", error.to_string()),
    };
    if packed.is_none() && size < section.size {
        let message =
            format!("only {size} of {} bytes of the symbol table lie within the file", section.size);
        problems.push(Problem::damage("damaged-symbols", message));
    }
    if packed.is_none() && size > limit {
        let message = format!("the symbol table has {size} bytes, the first {limit} are read");
        problems.push(Problem::damage("too-many-symbols", message));
        size = limit;
    }
    let entries = match packed.map_or_else(|| image.read(section.offset, size, "the symbol table"), Ok) {
        Ok(entries) => entries,
        Err(error) => return SymbolTable::damaged("damaged-symbols", error.to_string()),
    };
    let names = image.sections.get(section.link as usize).filter(|s| s.kind == elf::SHT_STRTAB);
    let names = names.map_or_else(
        || {
            Err(ReadError::Damaged {
                what: "symbol names".to_owned(),
                why: format!("section {} holds no strings", section.link),
            })
        },
        |names| {
            if let Some(bytes) = sections::inflated(image, names, image.limits.section_bytes)? {
                return Ok(bytes);
            }
            let there = names.size.min(image.input.len().saturating_sub(names.offset));
            image.read(names.offset, there, "symbol names")
        },
    );
    let names = names.unwrap_or_else(|error| {
        problems.push(Problem::damage("damaged-symbols", error.to_string()));
        Vec::new()
    });
    SymbolTable { format: Some(format), entries, names, problems }
}

fn read_dynamic(image: &Image, linkage: &Linkage) -> SymbolTable {
    if !linkage.linked {
        return SymbolTable::default();
    }
    let code = "damaged-dynamic-symbols";
    let format = Format::from(image.header);
    let Some(address) = linkage.dynamic_value(dynamic::DT_SYMTAB) else {
        // With the dynamic table lost the section table may still know.
        return read_section(image, elf::SHT_DYNSYM);
    };
    let names = linkage.dynamic_value(dynamic::DT_STRTAB).and_then(|at| locate(image, at, 1));
    let (Some(start), Some(names)) = (locate(image, address, 1), names) else {
        let message = "the dynamic symbol table or its names are not in the file";
        return SymbolTable::damaged(code, message);
    };
    let size = linkage.dynamic_value(dynamic::DT_STRSZ).unwrap_or(u64::MAX);
    let size = size.min(image.input.len().saturating_sub(names.start));
    let names = match image.read(names.start, size, "names of dynamic symbols") {
        Ok(names) => names,
        Err(error) => return SymbolTable::damaged(code, error.to_string()),
    };
    let entry = entry_size(format) as u64;
    let left = image.input.len().saturating_sub(start.start) / entry;
    let counted = count(image, linkage, format, address).unwrap_or(0);
    let mut problems = Vec::new();
    if counted > left {
        let message = format!("only {left} of {counted} dynamic symbols lie within the file");
        problems.push(Problem::damage(code, message));
    }
    let wanted = counted.min(left);
    let kept = wanted.min(image.limits.functions as u64);
    if kept < wanted {
        let message = format!("{wanted} dynamic symbols, the first {kept} are read");
        problems.push(Problem::damage("too-many-symbols", message));
    }
    match image.read(start.start, kept * entry, "dynamic symbols") {
        Ok(entries) => SymbolTable { format: Some(format), entries, names, problems },
        Err(error) => SymbolTable::damaged(code, error.to_string()),
    }
}

/// Number of dynamic symbols. No tag of the dynamic table says it.
fn count(image: &Image, linkage: &Linkage, format: Format, symbols: u64) -> Option<u64> {
    if let Some(at) = linkage.dynamic_value(dynamic::DT_HASH) {
        // The chain has one entry a symbol. Alpha and s390x write this table in 64-bit words.
        let wide = format.is_64 && matches!(image.header.machine, elf::EM_ALPHA | elf::EM_S390);
        let header = at_address(image, at, if wide { 16 } else { 8 })?;
        return if wide { format.u64(&header, 8) } else { format.u32(&header, 4).map(u64::from) };
    }
    let hashed = linkage.dynamic_value(dynamic::DT_GNU_HASH).and_then(|at| count_gnu_hash(image, format, at));
    if let Some(count) = hashed {
        return Some(count);
    }
    // A file that exports nothing has an empty GNU hash table, which counts nothing.
    let section = image
        .sections
        .iter()
        .find(|s| s.kind == elf::SHT_DYNSYM && s.address == symbols)
        .map(|s| s.size / entry_size(format) as u64);
    section.or_else(|| count_by_gap(image, linkage, format, symbols))
}

/// The highest index in the chains of a GNU hash table, plus one; `None` if it is empty.
fn count_gnu_hash(image: &Image, format: Format, at: u64) -> Option<u64> {
    let header = at_address(image, at, 16)?;
    let field = |index: usize| format.u32(&header, index * 4).map(u64::from);
    let (buckets, first, bloom) = (field(0)?, field(1)?, field(2)?);
    let table = at.checked_add(16)?.checked_add(bloom.checked_mul(format.word_size())?)?;
    let size = buckets.checked_mul(4).filter(|&size| size <= MAX_HASH_BYTES)?;
    let heads = at_address(image, table, size)?;
    let last = heads.chunks_exact(4).filter_map(|head| format.u32(head, 0)).max().map(u64::from)?;
    if last < first || last == 0 {
        return None;
    }
    // The chain of the last bucket ends the table: the lowest bit marks its last entry.
    let chains = table.checked_add(size)?;
    let mut index = last;
    let mut step = 16u64;
    let mut read = 0;
    while read < MAX_HASH_BYTES {
        let place = chains.checked_add((index - first).checked_mul(4)?)?;
        let left = segment_left(image, place)?.min(step * 4);
        let entries = at_address(image, place, left - left % 4)?;
        for entry in entries.chunks_exact(4) {
            index = index.checked_add(1)?;
            if format.u32(entry, 0)? & 1 == 1 {
                return Some(index);
            }
        }
        if entries.is_empty() {
            return None;
        }
        read += entries.len() as u64;
        step = (step * 4).min(16 << 10);
    }
    None
}

/// The table ends at the latest where the next thing of the dynamic table begins; and no name lies outside the names.
fn count_by_gap(image: &Image, linkage: &Linkage, format: Format, symbols: u64) -> Option<u64> {
    const NEIGHBOURS: [u64; 10] = [
        dynamic::DT_STRTAB,
        dynamic::DT_HASH,
        dynamic::DT_GNU_HASH,
        dynamic::DT_RELA,
        dynamic::DT_REL,
        dynamic::DT_JMPREL,
        dynamic::DT_VERSYM,
        dynamic::DT_VERNEED,
        dynamic::DT_VERDEF,
        dynamic::DT_INIT,
    ];
    let end = NEIGHBOURS
        .iter()
        .filter_map(|&tag| linkage.dynamic_value(tag))
        .filter(|&address| address > symbols)
        .min()?;
    let entry = entry_size(format) as u64;
    let most = ((end - symbols) / entry).min(image.limits.functions as u64);
    let names = linkage.dynamic_value(dynamic::DT_STRSZ)?;
    let bytes = at_address(image, symbols, most.checked_mul(entry)?)?;
    let sound = |entry: &&[u8]| format.u32(entry, 0).is_some_and(|name| u64::from(name) < names);
    Some(bytes.chunks_exact(entry as usize).take_while(sound).count() as u64)
}

fn at_address(image: &Image, address: u64, size: u64) -> Option<Vec<u8>> {
    let range = locate(image, address, size)?;
    image.read(range.start, size, "dynamic symbols").ok()
}

fn segment_left(image: &Image, address: u64) -> Option<u64> {
    let segments = image.loaded_segments().map(|s| (s.address, s.file_size));
    let sections = image.sections.iter().filter(|s| s.has_data()).map(|s| (s.address, s.size));
    segments
        .chain(sections)
        .find_map(|(start, size)| size.checked_sub(address.checked_sub(start)?).filter(|&n| n > 0))
}

#[cfg(test)]
mod tests;
