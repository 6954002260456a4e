//! What the linker decided: program headers and the dynamic table.
//!
//! `goblin` is given only the bytes of `PT_DYNAMIC`; everything it points at is fetched by
//! positioned reads. Sources: the System V gABI (chapter 5), the Linux Standard Base for the GNU segments.

use super::bytes::Format;
use super::identity::is_separate_debug;
use super::{Image, Segment};
use crate::facts::Problem;
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::dynamic::{self, Dynamic};
use goblin::elf::program_header::{self, ProgramHeader};
use object::elf;
use std::ops::Range;

mod relro;

/// Most entries of the dynamic table that are read; real ones have a few dozen to a few hundred.
const MAX_ENTRIES: u64 = 16_384;
/// Longest library name, run path or interpreter accepted, in bytes (Linux `PATH_MAX`, and some more for lists).
const MAX_STRING: usize = 16 << 10;
/// Most `DT_NEEDED` entries kept.
const MAX_NEEDED: usize = 4096;
/// `DT_RELR` and friends, which `goblin` does not name (gABI, 2022 addition).
pub(crate) const DT_RELRSZ: u64 = 35;
pub(crate) const DT_RELR: u64 = 36;

/// How much of the data that only the loader writes becomes read-only before the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Relro {
    /// Nothing (no `PT_GNU_RELRO`).
    #[default]
    None,
    /// All but the table of lazily bound functions.
    Partial,
    /// That too, since everything is bound at start.
    Full,
}

impl Relro {
    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// What program headers and the dynamic table say. Names are bytes, as in the file.
#[derive(Debug, Clone, Default)]
pub struct Linkage {
    /// `PT_INTERP`.
    pub interpreter: Option<Vec<u8>>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<Vec<u8>>,
    /// `DT_SONAME`.
    pub soname: Option<Vec<u8>>,
    /// `DT_RPATH`.
    pub rpath: Option<Vec<u8>>,
    /// `DT_RUNPATH`.
    pub runpath: Option<Vec<u8>>,
    /// `DT_FLAGS`.
    pub flags: u64,
    /// `DT_FLAGS_1`.
    pub flags_1: u64,
    /// Every symbol is bound before the program runs: `DT_BIND_NOW`, `DF_BIND_NOW` or `DF_1_NOW`; also a static
    /// program, position independent or not, in which nothing is left to bind. `None` for files that are not linked.
    pub bind_now: Option<bool>,
    /// `None` for files that are not linked.
    pub relro: Option<Relro>,
    /// A position-independent executable. Not every `ET_DYN` with an interpreter is one: `libc.so.6` has one too.
    pub pie: bool,
    /// `DT_TEXTREL` or `DF_TEXTREL`.
    pub text_relocations: bool,
    /// An executable with neither interpreter nor needed library.
    pub is_static: bool,
    /// The stack is not executable; `None` where the file leaves it to the loader's default.
    pub nx_stack: Option<bool>,
    /// Whether there is a dynamic table.
    pub has_dynamic: bool,
    /// Whether the program headers and the dynamic table, if there is one, could be read to the end. If not, what is
    /// absent here may well be in the undamaged file.
    pub complete: bool,
    /// Whether the file was linked to be run or loaded (and is not its separate debug file).
    pub linked: bool,
    /// The dynamic table: tag and value, up to `DT_NULL`.
    pub dynamic: Vec<(u64, u64)>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

impl Linkage {
    /// The value of the dynamic entry of that tag: of several the last, as glibc (`elf_get_dynamic_info`) and musl
    /// (`decode_vec`) take it.
    pub fn dynamic_value(&self, tag: u64) -> Option<u64> {
        self.dynamic.iter().rev().find(|entry| entry.0 == tag).map(|entry| entry.1)
    }
}

/// Reads program headers and dynamic table. Never fails: what is damaged is in [`Linkage::problems`].
pub fn read(image: &Image) -> Linkage {
    let mut linkage = Linkage {
        linked: matches!(image.header.kind, elf::ET_EXEC | elf::ET_DYN) && !is_separate_debug(image),
        complete: true,
        ..Linkage::default()
    };
    if !linkage.linked {
        if image.is_relocatable() {
            linkage.nx_stack = image.section(".note.GNU-stack").map(|s| s.flags & elf::SHF_EXECINSTR.0 == 0);
        }
        return linkage;
    }
    read_interpreter(image, &mut linkage);
    read_dynamic(image, &mut linkage);
    read_names(image, &mut linkage);
    let value = |tag| linkage.dynamic_value(tag);
    let flags = value(dynamic::DT_FLAGS).unwrap_or(0);
    let flags_1 = value(dynamic::DT_FLAGS_1).unwrap_or(0);
    let text_relocations = value(dynamic::DT_TEXTREL).is_some() || flags & elf::DF_TEXTREL.0 != 0;
    let now = value(dynamic::DT_BIND_NOW).is_some()
        || flags & elf::DF_BIND_NOW.0 != 0
        || flags_1 & elf::DF_1_NOW.0 != 0;
    // Linkers write DT_DEBUG for executables only, which tells old ones (without DF_1_PIE) from libraries
    // that can also be started.
    let pie = image.header.kind == elf::ET_DYN
        && (flags_1 & elf::DF_1_PIE.0 != 0
            || value(dynamic::DT_DEBUG).is_some() && value(dynamic::DT_SONAME).is_none());
    linkage.flags = flags;
    linkage.flags_1 = flags_1;
    linkage.text_relocations = text_relocations;
    linkage.pie = pie;
    linkage.complete &= !image.segments.is_empty();
    linkage.is_static = linkage.complete
        && (pie || image.header.kind == elf::ET_EXEC)
        && linkage.interpreter.is_none()
        && linkage.needed.is_empty();
    // Where headers or the table are lost nothing may be concluded from what is not there.
    if linkage.complete || now {
        linkage.bind_now = Some(now || !linkage.has_dynamic || linkage.is_static);
    }
    if !image.segments.is_empty() {
        linkage.relro = relro::read(image, &linkage);
        linkage.nx_stack = nx_stack(image);
    }
    linkage
}

fn segment(image: &Image, kind: elf::ProgramType) -> Option<&Segment> {
    image.segments.iter().find(|segment| segment.kind == kind)
}

fn nx_stack(image: &Image) -> Option<bool> {
    // Of several the last counts, for the kernel (`load_elf_binary`) and for glibc (`_dl_map_object_from_fd`) alike.
    match image.segments.iter().rev().find(|segment| segment.kind == elf::PT_GNU_STACK) {
        Some(stack) => Some(stack.flags & elf::PF_X.0 == 0),
        // The psABI default of x86, which loaders follow where nothing else is asked for, is an executable stack.
        None if matches!(image.header.machine, elf::EM_X86_64 | elf::EM_386) => Some(false),
        None => None,
    }
}

fn read_interpreter(image: &Image, linkage: &mut Linkage) {
    let place = segment(image, elf::PT_INTERP)
        .map(|s| (s.offset, s.file_size))
        .or_else(|| image.section(".interp").filter(|s| s.has_data()).map(|s| (s.offset, s.size)));
    let Some((offset, size)) = place else { return };
    match image.input.read_vec(offset, size, MAX_STRING as u64, "the interpreter's name") {
        Ok(mut name) => {
            name.truncate(memchr::memchr(0, &name).unwrap_or(name.len()));
            linkage.interpreter = Some(name);
        }
        Err(error) => linkage.problems.push(Problem::damage("damaged-interpreter", error.to_string())),
    }
}

fn read_dynamic(image: &Image, linkage: &mut Linkage) {
    let place = segment(image, elf::PT_DYNAMIC)
        .map(|s| (s.offset, s.file_size))
        .or_else(|| image.sections.iter().find(|s| s.kind == elf::SHT_DYNAMIC).map(|s| (s.offset, s.size)));
    let Some((offset, size)) = place else { return };
    linkage.has_dynamic = true;
    let format = Format::from(image.header);
    let wanted = size.min(MAX_ENTRIES * 2 * format.word_size());
    let there = image.input.len().saturating_sub(offset).min(wanted);
    let damaged = |why: String| Problem::damage("damaged-dynamic-table", why);
    linkage.complete = false;
    if there == 0 {
        let message = format!("the dynamic table at offset {offset:#x} ({size} bytes) lies outside the file");
        linkage.problems.push(damaged(message));
        return;
    }
    let bytes = match image.input.read_vec(offset, there, wanted, "the dynamic table") {
        Ok(bytes) => bytes,
        Err(error) => {
            linkage.problems.push(damaged(error.to_string()));
            return;
        }
    };
    // The table is parsed as a file of its own, described by a program header made for the purpose.
    let header = ProgramHeader {
        p_type: program_header::PT_DYNAMIC,
        p_filesz: bytes.len() as u64,
        ..ProgramHeader::default()
    };
    let container = if format.is_64 { Container::Big } else { Container::Little };
    let endian = if format.little_endian { Endian::Little } else { Endian::Big };
    match Dynamic::parse(&bytes, &[header], Ctx::new(container, endian)) {
        Ok(Some(table)) => {
            let ended = table.dyns.last().is_some_and(|entry| entry.d_tag == dynamic::DT_NULL);
            linkage.dynamic = table
                .dyns
                .iter()
                .filter(|entry| entry.d_tag != dynamic::DT_NULL)
                .map(|entry| (entry.d_tag, entry.d_val))
                .collect();
            // Some linkers leave the end mark out where the table fills its segment to the last byte.
            linkage.complete = ended || there == size;
            if !linkage.complete {
                let message = format!("the dynamic table has no end within the {there} bytes that are there");
                linkage.problems.push(damaged(message));
            }
        }
        Ok(None) => {}
        Err(error) => linkage.problems.push(damaged(error.to_string())),
    }
}

fn read_names(image: &Image, linkage: &mut Linkage) {
    let Some(table) = string_table(image, linkage) else {
        if linkage.dynamic.iter().any(|entry| entry.0 == dynamic::DT_NEEDED) {
            let message = "the dynamic string table cannot be found: names of needed libraries are lost";
            linkage.problems.push(Problem::damage("damaged-dynamic-table", message));
        }
        return;
    };
    let mut lost = 0u64;
    let mut names = Linkage::default();
    for &(tag, offset) in &linkage.dynamic {
        let wanted =
            matches!(tag, dynamic::DT_NEEDED | dynamic::DT_SONAME | dynamic::DT_RPATH | dynamic::DT_RUNPATH);
        if !wanted {
            continue;
        }
        let Some(name) = name_at(image, &table, offset) else {
            lost += 1;
            continue;
        };
        match tag {
            dynamic::DT_NEEDED if names.needed.len() < MAX_NEEDED => names.needed.push(name),
            dynamic::DT_NEEDED => lost += 1,
            dynamic::DT_SONAME => names.soname = Some(name),
            dynamic::DT_RPATH => names.rpath = Some(name),
            _ => names.runpath = Some(name),
        }
    }
    linkage.needed = names.needed;
    linkage.soname = names.soname;
    linkage.rpath = names.rpath;
    linkage.runpath = names.runpath;
    if lost > 0 {
        let message = format!("{lost} names of the dynamic table could not be read");
        linkage.problems.push(Problem::damage("damaged-dynamic-table", message));
    }
}

/// File range of the dynamic string table.
fn string_table(image: &Image, linkage: &Linkage) -> Option<Range<u64>> {
    let address = linkage.dynamic_value(dynamic::DT_STRTAB)?;
    let start = locate(image, address, 1)?.start;
    let size = linkage.dynamic_value(dynamic::DT_STRSZ).unwrap_or(u64::MAX);
    Some(start..start.saturating_add(size).min(image.input.len()))
}

fn name_at(image: &Image, table: &Range<u64>, offset: u64) -> Option<Vec<u8>> {
    let start = table.start.checked_add(offset).filter(|&start| start < table.end)?;
    let mut size = 128u64;
    loop {
        let there = size.min(table.end - start);
        let bytes = image.read(start, there, "a name").ok()?;
        if let Some(end) = memchr::memchr(0, &bytes) {
            return bytes.get(..end).map(<[u8]>::to_vec);
        }
        if there < size || size > MAX_STRING as u64 {
            return None;
        }
        size *= 8;
    }
}

/// The file range of `size` bytes at an address: by segments or, where these are lost, by allocated sections.
pub(crate) fn locate(image: &Image, address: u64, size: u64) -> Option<Range<u64>> {
    image.file_range(address, size).or_else(|| {
        if !image.segments.is_empty() {
            return None;
        }
        let end = address.checked_add(size)?;
        image.sections.iter().filter(|s| s.is_allocated() && s.has_data()).find_map(|s| {
            if address < s.address || end > s.address.checked_add(s.size)? {
                return None;
            }
            let start = s.offset.checked_add(address - s.address)?;
            Some(start..start.checked_add(size)?)
        })
    })
}

#[cfg(test)]
mod tests;
