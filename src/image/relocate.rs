//! Relocations of relocatable files (`ET_REL`), applied to the bytes of a section.
//!
//! Without them every string of an x86-64 object file, archive member or kernel module reads as another
//! one, with no error. Executables may keep relocation sections too (`--emit-relocs`); there they are
//! already applied and are never read.

use super::{Image, Input, ReadError, Section};
use object::elf::{self, Machine, RelocationType};
use object::read::elf::{CrelIterator, Rel, Rela, Sym};
use object::{Endianness, pod};
use std::ops::Range;

/// Most relocations held in memory, where a table is not sorted or is in the CREL form (24 bytes each).
const HELD: u64 = 2 << 20;
/// Bytes of a relocation or symbol table read at once.
const CHUNK: usize = 16 << 10;

/// What a relocation does to its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    None,
    /// Symbol plus addend.
    Set,
    /// The field plus symbol plus addend (RISC-V, LoongArch: label differences).
    Add,
    /// The field minus symbol minus addend.
    Sub,
}

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
        for table in &image.sections {
            let known = matches!(table.kind, elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL);
            if !known || table.info as usize != section.index || table.size == 0 {
                continue;
            }
            let symbols = image
                .sections
                .get(table.link as usize)
                .filter(|s| s.kind == elf::SHT_SYMTAB && table.link != 0)
                .and_then(|s| Table::new(image, s, if format.is_64 { 24 } else { 16 }, "symbols").ok());
            entries.push((format.entries(image, table)?, symbols));
        }
        Ok((!entries.is_empty()).then_some(Self { entries, format }))
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
            return self.crel(image, section, &what);
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

    fn crel(self, image: &Image, section: &Section, what: &str) -> Result<Entries, ReadError> {
        let damaged =
            |error: object::read::Error| ReadError::Damaged { what: what.to_owned(), why: error.to_string() };
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

/// What a relocation type of a machine does, and to how many bytes. Only those that compilers use in debug
/// sections for offsets, addresses and differences; thread-local offsets in expressions are not among them.
fn effect(machine: Machine, is_64: bool, kind: RelocationType) -> Option<(Effect, usize)> {
    use Effect::{Add, None as Nothing, Set, Sub};
    if kind.0 == 0 {
        // The null type is 0 on every machine.
        return Some((Nothing, 0));
    }
    Some(match machine {
        elf::EM_X86_64 => match kind {
            elf::R_X86_64_64 => (Set, 8),
            elf::R_X86_64_32 | elf::R_X86_64_32S => (Set, 4),
            elf::R_X86_64_16 => (Set, 2),
            elf::R_X86_64_8 => (Set, 1),
            _ => return None,
        },
        elf::EM_386 | elf::EM_IAMCU => match kind {
            elf::R_386_32 => (Set, 4),
            elf::R_386_16 => (Set, 2),
            elf::R_386_8 => (Set, 1),
            _ => return None,
        },
        elf::EM_AARCH64 => match kind {
            // A second null type, from a draft of the ABI.
            RelocationType(256) => (Nothing, 0),
            elf::R_AARCH64_P32_ABS32 if !is_64 => (Set, 4),
            elf::R_AARCH64_ABS64 => (Set, 8),
            elf::R_AARCH64_ABS32 => (Set, 4),
            elf::R_AARCH64_ABS16 => (Set, 2),
            _ => return None,
        },
        elf::EM_ARM => match kind {
            elf::R_ARM_ABS32 => (Set, 4),
            elf::R_ARM_ABS16 => (Set, 2),
            elf::R_ARM_ABS8 => (Set, 1),
            _ => return None,
        },
        elf::EM_RISCV => match kind {
            elf::R_RISCV_64 => (Set, 8),
            elf::R_RISCV_32 | elf::R_RISCV_SET32 => (Set, 4),
            elf::R_RISCV_SET16 => (Set, 2),
            elf::R_RISCV_SET8 => (Set, 1),
            elf::R_RISCV_ADD64 => (Add, 8),
            elf::R_RISCV_ADD32 => (Add, 4),
            elf::R_RISCV_ADD16 => (Add, 2),
            elf::R_RISCV_ADD8 => (Add, 1),
            elf::R_RISCV_SUB64 => (Sub, 8),
            elf::R_RISCV_SUB32 => (Sub, 4),
            elf::R_RISCV_SUB16 => (Sub, 2),
            elf::R_RISCV_SUB8 => (Sub, 1),
            _ => return None,
        },
        elf::EM_LOONGARCH => match kind {
            elf::R_LARCH_64 => (Set, 8),
            elf::R_LARCH_32 => (Set, 4),
            elf::R_LARCH_ADD64 => (Add, 8),
            elf::R_LARCH_ADD32 => (Add, 4),
            elf::R_LARCH_ADD16 => (Add, 2),
            elf::R_LARCH_ADD8 => (Add, 1),
            elf::R_LARCH_SUB64 => (Sub, 8),
            elf::R_LARCH_SUB32 => (Sub, 4),
            elf::R_LARCH_SUB16 => (Sub, 2),
            elf::R_LARCH_SUB8 => (Sub, 1),
            _ => return None,
        },
        elf::EM_PPC => match kind {
            elf::R_PPC_ADDR32 | elf::R_PPC_UADDR32 => (Set, 4),
            elf::R_PPC_ADDR16 | elf::R_PPC_UADDR16 => (Set, 2),
            _ => return None,
        },
        elf::EM_PPC64 => match kind {
            elf::R_PPC64_ADDR64 | elf::R_PPC64_UADDR64 => (Set, 8),
            elf::R_PPC64_ADDR32 | elf::R_PPC64_UADDR32 => (Set, 4),
            elf::R_PPC64_ADDR16 | elf::R_PPC64_UADDR16 => (Set, 2),
            _ => return None,
        },
        elf::EM_S390 => match kind {
            elf::R_390_64 => (Set, 8),
            elf::R_390_32 => (Set, 4),
            elf::R_390_16 => (Set, 2),
            elf::R_390_8 => (Set, 1),
            _ => return None,
        },
        // 64-bit MIPS packs three types into the field; only the first is used for data.
        elf::EM_MIPS => match kind {
            elf::R_MIPS_64 => (Set, 8),
            elf::R_MIPS_32 => (Set, 4),
            elf::R_MIPS_16 => (Set, 2),
            _ => return None,
        },
        elf::EM_SPARC | elf::EM_SPARC32PLUS | elf::EM_SPARCV9 => match kind {
            elf::R_SPARC_64 | elf::R_SPARC_UA64 => (Set, 8),
            elf::R_SPARC_32 | elf::R_SPARC_UA32 => (Set, 4),
            elf::R_SPARC_16 | elf::R_SPARC_UA16 => (Set, 2),
            elf::R_SPARC_8 => (Set, 1),
            _ => return None,
        },
        elf::EM_ALPHA => match kind {
            elf::R_ALPHA_REFQUAD => (Set, 8),
            elf::R_ALPHA_REFLONG => (Set, 4),
            _ => return None,
        },
        elf::EM_IA_64 => match kind {
            elf::R_IA64_DIR64LSB | elf::R_IA64_DIR64MSB => (Set, 8),
            elf::R_IA64_DIR32LSB | elf::R_IA64_DIR32MSB => (Set, 4),
            // DWARF offsets are section-relative there.
            elf::R_IA64_SECREL64LSB | elf::R_IA64_SECREL64MSB => (Set, 8),
            elf::R_IA64_SECREL32LSB | elf::R_IA64_SECREL32MSB => (Set, 4),
            _ => return None,
        },
        elf::EM_PARISC => match kind {
            elf::R_PARISC_DIR64 => (Set, 8),
            elf::R_PARISC_DIR32 | elf::R_PARISC_SECREL32 => (Set, 4),
            _ => return None,
        },
        elf::EM_68K => match kind {
            elf::R_68K_32 => (Set, 4),
            elf::R_68K_16 => (Set, 2),
            elf::R_68K_8 => (Set, 1),
            _ => return None,
        },
        elf::EM_SH if kind == elf::R_SH_DIR32 => (Set, 4),
        elf::EM_XTENSA if kind == elf::R_XTENSA_32 => (Set, 4),
        elf::EM_HEXAGON if kind == elf::R_HEX_32 => (Set, 4),
        elf::EM_AVR => match kind {
            elf::R_AVR_32 => (Set, 4),
            elf::R_AVR_16 => (Set, 2),
            _ => return None,
        },
        elf::EM_MSP430 => match kind {
            elf::R_MSP430_32 => (Set, 4),
            elf::R_MSP430_16_BYTE => (Set, 2),
            _ => return None,
        },
        elf::EM_BPF => match kind {
            elf::R_BPF_64_64 => (Set, 8),
            elf::R_BPF_64_32 => (Set, 4),
            // The kernel's tool chain uses these two in debug sections.
            RelocationType(2) => (Set, 8),
            RelocationType(3 | 4) => (Set, 4),
            _ => return None,
        },
        elf::EM_CSKY if kind == elf::R_CKCORE_ADDR32 => (Set, 4),
        _ => return None,
    })
}
