//! The two symbol tables: `.dynsym`, which the loader uses and stripping keeps, and `.symtab`.
//!
//! Tables are read when first asked for. The dynamic one is found through the dynamic table, as the loader does, and
//! so needs no section headers; its length comes from the hash tables (gABI "Hash Table"; the GNU hash table has no
//! other description than the loaders' source).

use super::bytes::Format;
use super::linkage::{Linkage, locate};
use super::{Image, Input, ReadError, Section, sections};
use crate::facts::Problem;
use crate::parallel::lock;
use goblin::elf::dynamic;
use object::elf;
use std::sync::{Mutex, OnceLock};

mod stream;

pub use stream::Beginnings;
use stream::Stream;

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
        self.with(name_at(&table.names, self.name))
    }

    fn with<'a>(&self, name: &'a [u8]) -> Symbol<'a> {
        Symbol {
            index: self.index,
            name,
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
        let size = self.format.map_or(1, entry_size);
        let format = self.format.unwrap_or(Format { is_64: true, little_endian: true });
        let entries = self.format.map_or(&[][..], |_| self.entries.as_slice()).chunks_exact(size);
        let entries = entries.enumerate().skip(1);
        entries.map_while(move |(index, bytes)| Entry::parse(format, index as u32, bytes))
    }

    fn damaged(code: &str, message: impl Into<String>) -> Self {
        Self { problems: vec![Problem::damage(code, message)], ..Self::default() }
    }
}

fn name_at(names: &[u8], offset: u32) -> &[u8] {
    let rest = names.get(offset as usize..).unwrap_or_default();
    let rest = rest.get(..MAX_NAME).unwrap_or(rest);
    rest.get(..memchr::memchr(0, rest).unwrap_or(rest.len())).unwrap_or_default()
}

fn entry_size(format: Format) -> usize {
    if format.is_64 { 24 } else { 16 }
}

/// Both tables of one file, read when asked for.
#[derive(Debug, Default)]
pub struct Symbols {
    dynamic: OnceLock<SymbolTable>,
    full: OnceLock<SymbolTable>,
    located: OnceLock<Option<Located>>,
    /// What went wrong while the full table was gone through.
    troubles: Mutex<Vec<Problem>>,
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

    /// `.symtab`; empty in stripped files. It may be large: for a few of its symbols it need not be kept.
    pub fn full(&self, image: &Image) -> &SymbolTable {
        self.full.get_or_init(|| {
            self.located(image).map(|located| read_located(image, located)).unwrap_or_default()
        })
    }

    /// Whether there is a `.symtab` with symbols in it.
    pub fn has_full(&self, image: &Image) -> bool {
        self.located(image).is_some_and(|located| located.entries.len() >= entry_size(located.format) as u64)
    }

    /// Hands on the symbols of `.symtab` whose names begin as looked for, in the order of the table. Returns whether there
    /// are symbols and nothing is wrong with them.
    pub fn search_full(
        &self,
        image: &Image,
        wanted: &Beginnings,
        mut found: impl FnMut(&Symbol<'_>),
    ) -> bool {
        if let Some(table) = self.full.get() {
            wanted.among(table).for_each(|symbol| found(&symbol));
            return !table.is_empty() && table.problems.is_empty();
        }
        self.stream(image, |stream| stream.search(wanted, &mut found)) && self.has_full(image)
    }

    /// Hands on those symbols of `.symtab` that are wanted, in the order of the table.
    pub fn select_full(
        &self,
        image: &Image,
        wanted: impl Fn(&Entry) -> bool + Sync,
        mut found: impl FnMut(&Symbol<'_>),
    ) {
        if let Some(table) = self.full.get() {
            table.entries().filter(wanted).for_each(|entry| found(&entry.named(table)));
        } else {
            self.stream(image, |stream| stream.select(&wanted, &mut found));
        }
    }

    fn located(&self, image: &Image) -> Option<&Located> {
        self.located.get_or_init(|| locate_section(image, elf::SHT_SYMTAB)).as_ref()
    }

    /// Goes through the full table in its file. Returns whether it is sound.
    fn stream(&self, image: &Image, through: impl FnOnce(&Stream<'_>) -> Result<(), ReadError>) -> bool {
        let Some(located) = self.located(image) else { return false };
        match through(&Stream { image, located }) {
            Ok(()) => located.problems.is_empty(),
            Err(error) => {
                lock(&self.troubles).push(Problem::damage("damaged-symbols", error.to_string()));
                false
            }
        }
    }

    /// What was damaged in what has been read so far.
    pub fn problems(&self) -> Vec<Problem> {
        let dynamic = self.dynamic.get().map(|table| &table.problems);
        let full = self.full.get().map(|table| &table.problems);
        let located = self.located.get().and_then(Option::as_ref).map(|located| &located.problems);
        let mut all: Vec<Problem> =
            [dynamic, full, located].into_iter().flatten().flatten().cloned().collect();
        all.extend(lock(&self.troubles).iter().cloned());
        all
    }
}

/// What the section table says of a symbol table and its names: their bytes, as far as the file has them.
#[derive(Debug)]
struct Located {
    format: Format,
    entries: Input,
    names: Option<Input>,
    problems: Vec<Problem>,
}

fn locate_section(image: &Image, kind: elf::SectionType) -> Option<Located> {
    let section = image.sections.iter().find(|section| section.kind == kind)?;
    let format = Format::from(image.header);
    let limit = (image.limits.functions as u64).saturating_mul(entry_size(format) as u64);
    let mut problems = Vec::new();
    let mut damage = |message: String| problems.push(Problem::damage("damaged-symbols", message));
    let mut entries = bytes_of(image, section, limit).unwrap_or_else(|error| {
        damage(error.to_string());
        Input::memory([])
    });
    if !section.is_compressed() && entries.len() < section.size {
        let (there, all) = (entries.len(), section.size);
        damage(format!("only {there} of {all} bytes of the symbol table lie within the file"));
    }
    let names = image.sections.get(section.link as usize).filter(|s| s.kind == elf::SHT_STRTAB);
    let names = match names.map(|names| bytes_of(image, names, image.limits.section_bytes)) {
        Some(Ok(names)) => Some(names),
        Some(Err(error)) => {
            damage(error.to_string());
            None
        }
        None => {
            let why = format!("section {} holds no strings", section.link);
            damage(ReadError::Damaged { what: "symbol names".to_owned(), why }.to_string());
            None
        }
    };
    if entries.len() > limit {
        let message = format!("the symbol table has {} bytes, the first {limit} are read", entries.len());
        problems.push(Problem::damage("too-many-symbols", message));
        entries = entries.part(0, limit)?;
    }
    Some(Located { format, entries, names, problems })
}

/// The bytes of a section as far as they are in the file; inflated, but not more than `most`, if they are compressed.
fn bytes_of(image: &Image, section: &Section, most: u64) -> Result<Input, ReadError> {
    if let Some(bytes) = sections::inflated(image, section, most)? {
        return Ok(Input::memory(bytes));
    }
    let there = section.size.min(image.input.len().saturating_sub(section.offset));
    Ok(image.input.part(section.offset, there).unwrap_or_else(|| Input::memory([])))
}

fn read_located(image: &Image, located: &Located) -> SymbolTable {
    let read = |input: &Input, what| input.read_vec(0, input.len(), image.limits.section_bytes, what);
    let entries = match read(&located.entries, "the symbol table") {
        Ok(entries) => entries,
        Err(error) => return SymbolTable::damaged("damaged-symbols", error.to_string()),
    };
    let mut problems = located.problems.clone();
    let names = located.names.as_ref().map(|names| read(names, "symbol names"));
    let names = names.transpose().unwrap_or_else(|error| {
        problems.push(Problem::damage("damaged-symbols", error.to_string()));
        None
    });
    SymbolTable { format: Some(located.format), entries, names: names.unwrap_or_default(), problems }
}

fn read_dynamic(image: &Image, linkage: &Linkage) -> SymbolTable {
    if !linkage.linked {
        return SymbolTable::default();
    }
    let code = "damaged-dynamic-symbols";
    let format = Format::from(image.header);
    let Some(address) = linkage.dynamic_value(dynamic::DT_SYMTAB) else {
        // With the dynamic table lost the section table may still know.
        return locate_section(image, elf::SHT_DYNSYM)
            .map(|located| read_located(image, &located))
            .unwrap_or_default();
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
