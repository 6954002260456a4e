//! ELF notes, and the links to files that hold debug information.
//!
//! Notes are read from sections and from segments, so a file without section headers still has its build-id.
//! Sources: gABI "Note Section" (with the 8-byte alignment that newer toolchains use), the Linux gABI extensions for
//! `.note.gnu.property`, GDB's manual "Separate Debug Files", DWARF 5 section 7.3.6 for `.debug_sup`.

use super::Image;
use super::bytes::Format;
use super::identity::is_separate_debug;
use crate::facts::Problem;
use object::elf;
use std::collections::HashSet;

/// Most bytes read of one note section or segment (a core dump's can be large and holds nothing of the build).
const MAX_NOTE_BYTES: u64 = 4 << 20;
/// Most notes kept.
const MAX_NOTES: usize = 4096;
/// Most bytes read of a link section: a path, an identity and padding.
const MAX_LINK_BYTES: u64 = 64 << 10;

/// Type of a build-id note of owner `GNU`.
const NT_GNU_BUILD_ID: u32 = 3;
/// Type of a property note of owner `GNU`.
const NT_GNU_PROPERTY: u32 = 5;
/// Type of gold's version note of owner `GNU`.
const NT_GNU_GOLD_VERSION: u32 = 4;
/// Type of a package note of owner `FDO` (systemd, "Package Metadata for Executable Files").
const NT_FDO_PACKAGE: u32 = 0xcafe_1a7e;

/// One note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Owner, without its NUL.
    pub owner: Vec<u8>,
    /// Type; what it means depends on the owner.
    pub kind: u32,
    /// Description.
    pub description: Vec<u8>,
    /// Section name, or `segment N`.
    pub section: String,
    /// Offset of the note in bytes from the start of that section or segment.
    pub offset: u64,
}

/// The program properties that say what the processor must do for the code. Bits are joined by "and" over all
/// input files, so only a set bit proves anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Properties {
    /// `GNU_PROPERTY_X86_FEATURE_1_AND`: bit 0 indirect branch tracking, bit 1 shadow stack.
    pub x86_features: Option<u32>,
    /// `GNU_PROPERTY_X86_ISA_1_NEEDED`: bit 0 baseline, 1 v2, 2 v3, 3 v4.
    pub x86_isa_needed: Option<u32>,
    /// `GNU_PROPERTY_AARCH64_FEATURE_1_AND`: bit 0 branch target identification, bit 1 pointer authentication.
    pub aarch64_features: Option<u32>,
}

/// `.gnu_debuglink`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugLink {
    /// Base name of the separate debug file.
    pub name: Vec<u8>,
    /// CRC32 of its bytes.
    pub crc: u32,
}

/// `.gnu_debugaltlink` or `.debug_sup`: the supplementary file that `dwz -m` makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupplementaryLink {
    /// Path as written by the tool.
    pub path: Vec<u8>,
    /// Its build-id or, from `.debug_sup`, its checksum.
    pub id: Vec<u8>,
}

/// Everything notes and links say.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// All notes, in file order of their sections; build attributes of annobin are not among them.
    pub notes: Vec<Note>,
    /// The build-id, of any length.
    pub build_id: Option<Vec<u8>>,
    /// The JSON text of `.note.package`.
    pub package: Option<Vec<u8>>,
    /// Program properties.
    pub properties: Properties,
    /// The version text of the gold linker.
    pub gold: Option<Vec<u8>>,
    /// `.gnu_debuglink`.
    pub debug_link: Option<DebugLink>,
    /// `.gnu_debugaltlink`, or `.debug_sup` of a file that is not itself supplementary.
    pub supplementary: Option<SupplementaryLink>,
    /// The checksum in `.debug_sup` of a file that is itself supplementary.
    pub supplementary_id: Option<Vec<u8>>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

impl Notes {
    /// The first note of an owner and type.
    pub fn find(&self, owner: &[u8], kind: u32) -> Option<&Note> {
        self.notes.iter().find(|note| note.owner == owner && note.kind == kind)
    }
}

/// Reads all notes and links. Never fails: what is damaged is in [`Notes::problems`].
pub fn read(image: &Image) -> Notes {
    let mut out = Notes::default();
    let mut seen = HashSet::new();
    for section in &image.sections {
        // Annobin's notes can be megabytes, and have a reader of their own.
        if section.kind != elf::SHT_NOTE || section.name.starts_with(b".gnu.build.attributes") {
            continue;
        }
        let label = String::from_utf8_lossy(&section.name).into_owned();
        let align = if section.align == 8 { 8 } else { 4 };
        part(image, &label, (section.offset, section.size, align), &mut seen, &mut out);
    }
    // `eu-strip -f` keeps in the debug file the program headers of the whole one, whose places are not its own.
    let elsewhere = is_separate_debug(image) && !out.notes.is_empty();
    let segments = if elsewhere { &[][..] } else { &image.segments[..] };
    let of_kind = |kind| segments.iter().enumerate().filter(move |(_, segment)| segment.kind == kind);
    let mut misplaced = false;
    for (index, segment) in of_kind(elf::PT_NOTE).chain(of_kind(elf::PT_GNU_PROPERTY)) {
        let align = if segment.align == 8 { 8 } else { 4 };
        let place = (segment.offset, segment.file_size, align);
        let known = segment.kind == elf::PT_GNU_PROPERTY && out.find(b"GNU", NT_GNU_PROPERTY).is_some();
        if known && !has_properties(image, place) {
            misplaced = true;
            let message =
                format!("segment {index} is said to hold the program's properties, and they are elsewhere");
            out.problems.push(Problem::notice("misplaced-properties", message));
            continue;
        }
        part(image, &format!("segment {index}"), place, &mut seen, &mut out);
    }
    let find = |owner: &[u8], kind| out.find(owner, kind).map(|note| note.description.clone());
    let build_id = find(b"GNU", NT_GNU_BUILD_ID).filter(|id| !id.is_empty());
    let gold = find(b"GNU", NT_GNU_GOLD_VERSION).map(trimmed);
    let package = find(b"FDO", NT_FDO_PACKAGE).map(trimmed);
    out.build_id = build_id;
    out.gold = gold;
    out.package = package;
    out.properties = properties(image, &out.notes);
    if misplaced {
        // On x86 glibc then looks through all notes; on aarch64 kernel and glibc look there only, and switch nothing on.
        out.properties.aarch64_features = None;
    }
    match debug_link(image) {
        Ok(link) => out.debug_link = link,
        Err(problem) => out.problems.push(problem),
    }
    match supplementary(image) {
        Ok(Some((true, link))) => out.supplementary_id = Some(link.id).filter(|id| !id.is_empty()),
        Ok(Some((false, link))) => out.supplementary = Some(link),
        Ok(None) => {}
        Err(problem) => out.problems.push(problem),
    }
    out
}

/// Only the build-id: for checking the identity of another file.
pub fn build_id(image: &Image) -> Option<Vec<u8>> {
    read(image).build_id
}

fn trimmed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(memchr::memchr(0, &bytes).unwrap_or(bytes.len()));
    bytes
}

/// Reads one section or segment of notes. `seen` holds the file offsets of notes already read.
fn part(
    image: &Image,
    label: &str,
    (offset, size, align): (u64, u64, usize),
    seen: &mut HashSet<u64>,
    out: &mut Notes,
) {
    let there = image.input.len().saturating_sub(offset).min(size);
    if there < size {
        let message = format!("notes in {label}: only {there} of {size} bytes lie within the file");
        out.problems.push(Problem::damage("damaged-notes", message));
    }
    let Ok(bytes) = image.read(offset, there.min(MAX_NOTE_BYTES), "notes") else { return };
    let format = Format::from(image.header);
    let (mut notes, mut sound) = split(&bytes, format, align);
    if !sound && align == 8 {
        // Linkers before 2019 joined notes of both alignments in one segment.
        let other = split(&bytes, format, 4);
        if other.1 || other.0.len() > notes.len() {
            (notes, sound) = other;
        }
    }
    if !sound && there == size && size <= MAX_NOTE_BYTES {
        let message = format!("a note in {label} is longer than what holds it");
        out.problems.push(Problem::damage("damaged-notes", message));
    }
    for (at, owner, kind, description) in notes {
        if out.notes.len() >= MAX_NOTES {
            let message = format!("only the first {MAX_NOTES} notes are read");
            out.problems.push(Problem::damage("too-many-notes", message));
            return;
        }
        if seen.insert(offset.saturating_add(at as u64)) {
            out.notes.push(Note {
                owner: owner.to_vec(),
                kind,
                description: description.to_vec(),
                section: label.to_owned(),
                offset: at as u64,
            });
        }
    }
}

/// Whether there is a note of properties. An editor that moved the note may have left its segment behind (patchelf before
/// 0.15 did), and whoever runs the file gets along with that.
fn has_properties(image: &Image, (offset, size, align): (u64, u64, usize)) -> bool {
    let bytes = image.read(offset, size.min(MAX_NOTE_BYTES), "notes").unwrap_or_default();
    let (notes, _) = split(&bytes, Format::from(image.header), align);
    notes.iter().any(|(_, owner, kind, _)| *owner == b"GNU" && *kind == NT_GNU_PROPERTY)
}

/// Offset, owner, type and description.
type RawNote<'a> = (usize, &'a [u8], u32, &'a [u8]);

/// Splits notes; false if one is longer than what is left.
fn split(bytes: &[u8], format: Format, align: usize) -> (Vec<RawNote<'_>>, bool) {
    let mut notes = Vec::new();
    let mut at = 0usize;
    // Less than a header at the end is padding.
    while bytes.len().saturating_sub(at) >= 12 && notes.len() <= MAX_NOTES {
        let Some(note) = one(bytes, at, format, align) else { return (notes, false) };
        let (raw, next) = note;
        // A zeroed header is padding between the parts of a segment.
        if !(raw.1.is_empty() && raw.2 == 0 && raw.3.is_empty()) {
            notes.push(raw);
        }
        at = next;
    }
    (notes, true)
}

fn one(bytes: &[u8], at: usize, format: Format, align: usize) -> Option<(RawNote<'_>, usize)> {
    let name_size = format.u32(bytes, at)? as usize;
    let size = format.u32(bytes, at.checked_add(4)?)? as usize;
    let kind = format.u32(bytes, at.checked_add(8)?)?;
    let name_at = at.checked_add(12)?;
    let name_end = name_at.checked_add(name_size)?;
    let name = bytes.get(name_at..name_end)?;
    let start = name_end.checked_next_multiple_of(align)?;
    let end = start.checked_add(size)?;
    // The last description may lack its padding; an empty one may lack that of its name.
    let description = if size == 0 { &[][..] } else { bytes.get(start..end)? };
    let name = name.get(..memchr::memchr(0, name).unwrap_or(name.len()))?;
    Some(((at, name, kind, description), end.checked_next_multiple_of(align)?))
}

fn properties(image: &Image, notes: &[Note]) -> Properties {
    const X86_FEATURE_1_AND: u32 = 0xc000_0002;
    const X86_ISA_1_NEEDED: u32 = 0xc000_8002;
    const AARCH64_FEATURE_1_AND: u32 = 0xc000_0000;
    let format = Format::from(image.header);
    let align = format.word_size() as usize;
    let mut out = Properties::default();
    let both = |old: Option<u32>, new: u32| Some(old.map_or(new, |old| old & new));
    for note in notes.iter().filter(|n| n.owner == b"GNU" && n.kind == NT_GNU_PROPERTY) {
        let bytes = &note.description;
        let mut at = 0usize;
        while let Some((kind, size)) = format.u32(bytes, at).zip(format.u32(bytes, at.saturating_add(4))) {
            let data = at.saturating_add(8);
            if let (4, Some(value)) = (size, format.u32(bytes, data)) {
                match (image.header.machine, kind) {
                    (elf::EM_X86_64 | elf::EM_386, X86_FEATURE_1_AND) => {
                        out.x86_features = both(out.x86_features, value);
                    }
                    (elf::EM_X86_64 | elf::EM_386, X86_ISA_1_NEEDED) => {
                        out.x86_isa_needed = Some(out.x86_isa_needed.unwrap_or(0) | value);
                    }
                    (elf::EM_AARCH64, AARCH64_FEATURE_1_AND) => {
                        out.aarch64_features = both(out.aarch64_features, value);
                    }
                    _ => {}
                }
            }
            let next = data.checked_add(size as usize).and_then(|end| end.checked_next_multiple_of(align));
            let Some(next) = next else { break };
            at = next;
        }
    }
    out
}

fn link_bytes(image: &Image, name: &str) -> Result<Option<Vec<u8>>, Problem> {
    let Some(section) = image.section(name).filter(|section| section.has_data()) else { return Ok(None) };
    let read = image.input.read_vec(section.offset, section.size, MAX_LINK_BYTES, name);
    read.map(Some).map_err(|error| Problem::damage("damaged-debug-link", error.to_string()))
}

fn debug_link(image: &Image) -> Result<Option<DebugLink>, Problem> {
    let Some(bytes) = link_bytes(image, ".gnu_debuglink")? else { return Ok(None) };
    // Padding counts from the start of the section, wherever that lies in the file.
    let found = memchr::memchr(0, &bytes).filter(|&end| end > 0).and_then(|end| {
        let crc = Format::from(image.header).u32(&bytes, end.checked_add(1)?.checked_next_multiple_of(4)?)?;
        Some(DebugLink { name: bytes.get(..end)?.to_vec(), crc })
    });
    found
        .map(Some)
        .ok_or_else(|| Problem::damage("damaged-debug-link", ".gnu_debuglink holds no name and checksum"))
}

/// The link, and whether the file is itself the supplementary one.
fn supplementary(image: &Image) -> Result<Option<(bool, SupplementaryLink)>, Problem> {
    if let Some(bytes) = link_bytes(image, ".gnu_debugaltlink")? {
        let found = memchr::memchr(0, &bytes).filter(|&end| end > 0).and_then(|end| {
            let id = bytes.get(end.checked_add(1)?..)?.to_vec();
            Some((false, SupplementaryLink { path: bytes.get(..end)?.to_vec(), id }))
        });
        return found
            .map(Some)
            .ok_or_else(|| Problem::damage("damaged-debug-link", ".gnu_debugaltlink holds no path"));
    }
    let Some(bytes) = link_bytes(image, ".debug_sup")? else { return Ok(None) };
    debug_sup(&bytes, Format::from(image.header))
        .map(Some)
        .ok_or_else(|| Problem::damage("damaged-debug-link", ".debug_sup is cut off or of another version"))
}

/// `.debug_sup`: version 5, a flag, a path, and a checksum with its LEB128 length.
fn debug_sup(bytes: &[u8], format: Format) -> Option<(bool, SupplementaryLink)> {
    if format.u16(bytes, 0)? != 5 {
        return None;
    }
    let is_supplementary = *bytes.get(2)? != 0;
    let rest = bytes.get(3..)?;
    let end = memchr::memchr(0, rest)?;
    let path = rest.get(..end)?.to_vec();
    let mut rest = rest.get(end.checked_add(1)?..)?;
    let mut size = 0usize;
    let mut shift = 0u32;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        size |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            break;
        }
        shift = shift.checked_add(7).filter(|&shift| shift < 28)?;
    }
    let id = rest.get(..size)?.to_vec();
    Some((is_supplementary, SupplementaryLink { path, id }))
}

#[cfg(test)]
mod tests;
