//! One ELF file, read on demand.
//!
//! Header tables are read into owned, capped buffers and viewed through `object`'s raw ELF types;
//! everything else is fetched by positioned reads when somebody asks. Nothing is mapped, so a file
//! that shrinks while it is read costs an error and not a signal. A damaged part costs only itself:
//! it is noted in [`Image::problems`] and the rest is still there.

use crate::facts::Problem;
use crate::limits::Limits;
use object::elf;
use std::collections::HashMap;
use std::ops::Range;

pub mod archive;
pub mod bytes;
pub mod companion;
pub mod confined;
pub mod document;
pub mod functions;
mod headers;
pub mod identity;
pub mod input;
pub mod linkage;
pub mod needles;
pub mod notes;
pub mod pointers;
pub mod ranges;
pub mod reader;
pub mod relocate;
pub mod sections;
pub mod symbols;

pub use input::Input;
pub use ranges::merge;
pub use reader::{SectionData, SectionReader};

/// Why no image could be made at all.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The bytes do not begin with the ELF magic number.
    #[error("not an ELF file")]
    NotElf,
    /// The file ends inside the ELF header.
    #[error("truncated: the file has {0} bytes, too few for an ELF header")]
    Truncated(u64),
    /// `e_ident` holds a value no ELF file has.
    #[error("damaged ELF header: {0}")]
    BadHeader(String),
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Why a part of an image could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The part lies (in part) outside the file.
    #[error("{what} lies outside the file (offset {offset:#x}, {size} bytes, file {file} bytes)")]
    OutOfFile {
        /// What was to be read.
        what: String,
        /// Where it should begin.
        offset: u64,
        /// How long it should be.
        size: u64,
        /// Size of the file.
        file: u64,
    },
    /// A limit was hit.
    #[error("{what} is larger than the limit ({size} bytes, limit {limit})")]
    TooLarge {
        /// What was to be read.
        what: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The bytes do not mean anything.
    #[error("{what}: {why}")]
    Damaged {
        /// What was to be read.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file could not be read.
    #[error("{what}: {why}")]
    Io {
        /// What was to be read.
        what: String,
        /// The operating system's words.
        why: String,
    },
}

/// The ELF header's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// ELFCLASS64.
    pub is_64: bool,
    /// ELFDATA2LSB.
    pub little_endian: bool,
    /// `e_type`.
    pub kind: elf::FileType,
    /// `e_machine`.
    pub machine: elf::Machine,
    /// `e_flags`.
    pub flags: u32,
    /// `e_entry`.
    pub entry: u64,
}

/// A program header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// `p_type`.
    pub kind: elf::ProgramType,
    /// `p_flags`.
    pub flags: u32,
    /// `p_offset`.
    pub offset: u64,
    /// `p_vaddr`.
    pub address: u64,
    /// `p_filesz`.
    pub file_size: u64,
    /// `p_memsz`.
    pub memory_size: u64,
    /// `p_align`.
    pub align: u64,
}

/// A section header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Index in the section table.
    pub index: usize,
    /// Name, cut at the limit.
    pub name: Vec<u8>,
    /// `sh_type`.
    pub kind: elf::SectionType,
    /// `sh_flags`.
    pub flags: u64,
    /// `sh_addr`.
    pub address: u64,
    /// `sh_offset`.
    pub offset: u64,
    /// `sh_size`.
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_addralign`.
    pub align: u64,
    /// `sh_entsize`.
    pub entry_size: u64,
}

impl Section {
    /// Whether the section holds bytes in this file (not `SHT_NOBITS`).
    pub fn has_data(&self) -> bool {
        self.kind != elf::SHT_NOBITS && self.kind != elf::SHT_NULL
    }

    /// Whether the bytes in the file are compressed, as its flag says or an old name.
    pub fn is_compressed(&self) -> bool {
        self.flags & elf::SHF_COMPRESSED.0 != 0 || self.name.starts_with(b".zdebug")
    }

    /// Whether the section is in memory when the program runs.
    pub fn is_allocated(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// Whether the section is allocated and executable.
    pub fn is_text(&self) -> bool {
        let wanted = (elf::SHF_ALLOC | elf::SHF_EXECINSTR).0;
        self.flags & wanted == wanted
    }
}

/// From this size on, in bytes, debug information is worth hopping through; smaller files are fetched at once.
const MANY_UNITS: u64 = 1 << 20;

/// One ELF file.
#[derive(Debug)]
pub struct Image {
    /// Where the bytes come from.
    pub input: Input,
    /// The ELF header.
    pub header: Header,
    /// Program headers.
    pub segments: Vec<Segment>,
    /// Section headers, in table order; empty where there is no usable table.
    pub sections: Vec<Section>,
    /// Whether sections tell where in memory the parts of the program are: in a file that was not linked, and where
    /// any is allocated and none contradicts the segments. If not, the segments alone tell it.
    pub described: bool,
    /// What is damaged.
    pub problems: Vec<Problem>,
    /// Bounds.
    pub limits: Limits,
    /// How many threads may read the file at the same time. One, if nobody says otherwise.
    pub workers: usize,
    by_name: HashMap<Vec<u8>, Vec<usize>>,
    /// Relocation sections of an `ET_REL` file by the index of the section they change.
    relocations: HashMap<u32, Vec<usize>>,
    loaded: Vec<usize>,
}

impl Image {
    /// Reads the header tables.
    pub fn open(input: Input, limits: &Limits) -> Result<Self, ImageError> {
        let headers::Tables { header, segments, sections, described, problems } =
            headers::read(&input, limits)?;
        let mut by_name: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for section in &sections {
            by_name.entry(section.name.clone()).or_default().push(section.index);
        }
        let mut loaded: Vec<usize> =
            (0..segments.len()).filter(|&i| segments[i].kind == elf::PT_LOAD).collect();
        loaded.sort_by_key(|&i| segments[i].address);
        let mut relocations: HashMap<u32, Vec<usize>> = HashMap::new();
        if header.kind == elf::ET_REL {
            let tables = |s: &&Section| matches!(s.kind, elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL);
            for table in sections.iter().filter(tables) {
                relocations.entry(table.info).or_default().push(table.index);
            }
        }
        // What tells of a unit is a few hundred bytes in many thousand; and of a large file little else is read.
        let jumpy = |section: &Section| section.name == b".debug_info" && section.size >= MANY_UNITS;
        if sections.iter().any(jumpy) {
            input.expect_jumps();
        }
        let limits = limits.clone();
        let workers = 1;
        Ok(Self {
            input,
            header,
            segments,
            sections,
            described,
            problems,
            limits,
            workers,
            by_name,
            relocations,
            loaded,
        })
    }

    /// The first section of that name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections_named(name).next()
    }

    /// All sections of that name (COMDAT groups of a relocatable file repeat names).
    pub fn sections_named(&self, name: &str) -> impl Iterator<Item = &Section> {
        self.by_name.get(name.as_bytes()).into_iter().flatten().filter_map(|&index| self.sections.get(index))
    }

    /// The relocation sections that change `section`. Only relocatable files (`ET_REL`) have any: elsewhere
    /// they were applied by the linker.
    pub fn relocation_sections(&self, section: &Section) -> impl Iterator<Item = &Section> {
        let target = u32::try_from(section.index).ok().and_then(|index| self.relocations.get(&index));
        target.into_iter().flatten().filter_map(|&index| self.sections.get(index))
    }

    /// The bytes of a section as they stand in the file (compressed ones stay so).
    pub fn raw_section(&self, section: &Section) -> Result<Vec<u8>, ReadError> {
        let what = format!("section {}", String::from_utf8_lossy(&section.name));
        if !section.has_data() {
            return Err(ReadError::Damaged { what, why: "holds no data in this file".to_owned() });
        }
        self.read(section.offset, section.size, &what)
    }

    /// Reads `size` bytes at a file offset; never a short read.
    pub fn read(&self, offset: u64, size: u64, what: &str) -> Result<Vec<u8>, ReadError> {
        self.input.read_vec(offset, size, self.limits.section_bytes, what)
    }

    /// The file range that holds the `size` bytes at `address`, if they lie within one loaded segment's file image.
    pub fn file_range(&self, address: u64, size: u64) -> Option<Range<u64>> {
        let end = address.checked_add(size)?;
        self.loaded.iter().map(|&i| &self.segments[i]).find_map(|segment| {
            let limit = segment.address.checked_add(segment.file_size)?;
            if address < segment.address || end > limit {
                return None;
            }
            let start = segment.offset.checked_add(address - segment.address)?;
            Some(start..start.checked_add(size)?)
        })
    }

    /// Reads `size` bytes at a virtual address, if the file holds them.
    pub fn read_address(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        let range = self.file_range(address, size)?;
        self.read(range.start, size, "loaded data").ok()
    }

    /// Reads `size` bytes at a virtual address into a buffer that is used again; false if the file does not hold them.
    pub fn read_address_into(&self, address: u64, size: u64, buffer: &mut Vec<u8>) -> bool {
        let Some(range) = self.file_range(address, size) else { return false };
        if size > self.limits.section_bytes || range.end > self.input.len() {
            return false;
        }
        buffer.resize(size as usize, 0);
        self.input.read_at(range.start, buffer).is_ok_and(|got| got as u64 == size)
    }
    /// Loaded segments in order of address.
    pub fn loaded_segments(&self) -> impl Iterator<Item = &Segment> {
        self.loaded.iter().map(|&i| &self.segments[i])
    }

    /// Address ranges of the text: allocated executable sections or, where sections do not tell, executable segments.
    /// Sorted and without overlap.
    pub fn text_ranges(&self) -> Vec<Range<u64>> {
        let sections = self.sections.iter().filter(|s| s.is_text());
        let segments = self.loaded_segments().filter(|s| s.flags & elf::PF_X.0 != 0 && s.file_size > 0);
        merge(if self.described {
            sections.filter_map(|s| Some(s.address..s.address.checked_add(self.size_in_file(s))?)).collect()
        } else {
            segments.filter_map(|s| Some(s.address..s.address.checked_add(s.file_size)?)).collect()
        })
    }

    /// Size of a section in bytes as far as the file holds it; of one without data (as in a separate debug file) the
    /// size it has in memory. A damaged header may claim any size.
    pub fn size_in_file(&self, section: &Section) -> u64 {
        if section.kind == elf::SHT_NOBITS {
            return section.size;
        }
        section.size.min(self.input.len().saturating_sub(section.offset))
    }

    /// Whether this is a relocatable file, whose addresses mean nothing before relocation.
    pub fn is_relocatable(&self) -> bool {
        self.header.kind == elf::ET_REL
    }
}
