//! The two symbol tables: `.dynsym`, which the loader uses and stripping keeps, and `.symtab`.
//!
//! Tables are read when first asked for. The dynamic one is found through the dynamic table, as the loader does, and
//! so needs no section headers.

use super::bytes::Format;
use super::linkage::Linkage;
use super::{Image, Input, ReadError, sections};
use crate::facts::Problem;
use crate::parallel::lock;
use object::elf;
use std::sync::{Mutex, OnceLock};

mod dynamic;
mod stream;

pub use stream::Beginnings;
use stream::Stream;

/// Longest name given out, in bytes; mangled C++ names of some thousand bytes are common.
const MAX_NAME: usize = 64 << 10;

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
        self.dynamic.get_or_init(|| dynamic::read(image, linkage))
    }

    /// `.symtab`; empty in stripped files. It may be large: for a few of its symbols it need not be kept.
    pub fn full(&self, image: &Image) -> &SymbolTable {
        self.full.get_or_init(|| {
            self.located(image).map(|located| read_located(image, located)).unwrap_or_default()
        })
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

    /// Hands on those symbols that are wanted, in the order of their table: of `.symtab` or, in a stripped file, of `.dynsym`.
    pub fn select(
        &self,
        image: &Image,
        linkage: &Linkage,
        wanted: impl Fn(&Entry) -> bool + Sync,
        mut found: impl FnMut(&Symbol<'_>),
    ) {
        let kept = if self.has_full(image) { self.full.get() } else { Some(self.dynamic(image, linkage)) };
        match kept {
            Some(table) => table.entries().filter(wanted).for_each(|entry| found(&entry.named(table))),
            None => drop(self.stream(image, |stream| stream.select(&wanted, &mut found))),
        }
    }

    /// Whether there is a `.symtab` with symbols in it.
    fn has_full(&self, image: &Image) -> bool {
        self.located(image).is_some_and(|located| located.entries.len() >= entry_size(located.format) as u64)
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
    let mut entries = sections::there(image, section, limit).unwrap_or_else(|error| {
        damage(error.to_string());
        Input::memory([])
    });
    if !section.is_compressed() && entries.len() < section.size {
        let (there, all) = (entries.len(), section.size);
        damage(format!("only {there} of {all} bytes of the symbol table lie within the file"));
    }
    let names = image.sections.get(section.link as usize).filter(|s| s.kind == elf::SHT_STRTAB);
    let names = match names.map(|names| sections::there(image, names, image.limits.section_bytes)) {
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

#[cfg(test)]
mod tests;
