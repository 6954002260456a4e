//! The ELF header, program headers and section headers: capped buffers viewed through `object`'s raw types.

use super::{Header, ImageError, Input, Section, Segment};
use crate::facts::Problem;
use crate::limits::Limits;
use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::pod;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

mod contradictions;
mod names;

/// What the three tables say.
pub(super) struct Tables {
    pub header: Header,
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
    /// See [`super::Image::described`].
    pub described: bool,
    pub problems: Vec<Problem>,
}

/// Reads the three tables. Only a header that makes no sense at all is an error.
pub(super) fn read(input: &Input, limits: &Limits) -> Result<Tables, ImageError> {
    let mut ident = [0u8; 16];
    let got = input.read_at(0, &mut ident)?;
    if got < 4 || ident[..4] != elf::ELFMAG {
        return Err(ImageError::NotElf);
    }
    if got < 16 {
        return Err(ImageError::Truncated(input.len()));
    }
    match elf::FileClass(ident[4]) {
        elf::ELFCLASS32 => read_class::<FileHeader32<Endianness>>(input, limits),
        elf::ELFCLASS64 => read_class::<FileHeader64<Endianness>>(input, limits),
        other => Err(ImageError::BadHeader(format!("class {} is neither 32 nor 64 bit", other.0))),
    }
}

fn read_class<H: FileHeader<Endian = Endianness>>(
    input: &Input,
    limits: &Limits,
) -> Result<Tables, ImageError> {
    let mut bytes = vec![0; size_of::<H>()];
    if input.read_at(0, &mut bytes)? < bytes.len() {
        return Err(ImageError::Truncated(input.len()));
    }
    let (raw, _) = pod::from_bytes::<H>(&bytes).map_err(|()| ImageError::Truncated(input.len()))?;
    let endian = raw.endian().map_err(|_| {
        ImageError::BadHeader(format!("data encoding {} is neither little nor big endian", bytes[5]))
    })?;
    let header = Header {
        is_64: raw.is_class_64(),
        little_endian: endian == Endianness::Little,
        kind: raw.e_type(endian),
        machine: raw.e_machine(endian),
        flags: raw.e_flags(endian).0,
        entry: raw.e_entry(endian).into(),
    };
    let mut problems = Vec::new();
    let mut sections = sections(raw, endian, input, limits, &mut problems);
    let first_info = sections.first().map_or(0, |s| s.info);
    let segments = segments(raw, endian, input, first_info, &mut problems);
    if !sections.is_empty() && sections.iter().all(|s| s.kind == elf::SHT_NULL) {
        // The kernel writes one header in a core file with very many segments, for their number.
        if header.kind != elf::ET_CORE {
            let message =
                format!("the table of section headers lists no section (its length is {})", sections.len());
            problems.push(Problem::damage("damaged-section-headers", message));
        }
        sections.clear();
    }
    if header.kind == elf::ET_REL && sections.is_empty() {
        // Programs are stripped of their section headers now and then; of a relocatable file nothing is left without.
        problems
            .push(Problem::damage("damaged-section-headers", "a relocatable file without section headers"));
    }
    let spans = [
        (raw.e_phoff(endian).into(), segments.len() as u64 * size_of::<H::ProgramHeader>() as u64),
        (raw.e_shoff(endian).into(), sections.len() as u64 * size_of::<H::SectionHeader>() as u64),
    ];
    let tables = spans.map(|(start, size): (u64, u64)| start..start.saturating_add(size));
    let described = contradictions::report(&header, &segments, &sections, input, &tables, &mut problems);
    Ok(Tables { header, segments, sections, described, problems })
}

fn segments<H: FileHeader<Endian = Endianness>>(
    raw: &H,
    endian: Endianness,
    input: &Input,
    first_section_info: u32,
    problems: &mut Vec<Problem>,
) -> Vec<Segment> {
    let offset: u64 = raw.e_phoff(endian).into();
    let mut count = u64::from(raw.e_phnum(endian));
    if offset == 0 || count == 0 {
        return Vec::new();
    }
    if count == u64::from(elf::PN_XNUM) && first_section_info != 0 {
        count = u64::from(first_section_info);
    }
    let entry = size_of::<H::ProgramHeader>() as u64;
    if u64::from(raw.e_phentsize(endian)) != entry {
        problems.push(Problem::damage(
            "damaged-program-headers",
            format!("program headers of {} bytes each, expected {entry}", raw.e_phentsize(endian)),
        ));
        return Vec::new();
    }
    let bytes = table(input, offset, count, entry, "program headers", problems);
    let count = bytes.len() / entry as usize;
    let Ok((list, _)) = pod::slice_from_bytes::<H::ProgramHeader>(&bytes, count) else { return Vec::new() };
    list.iter()
        .map(|p| Segment {
            kind: p.p_type(endian),
            flags: p.p_flags(endian).0,
            offset: p.p_offset(endian).into(),
            address: p.p_vaddr(endian).into(),
            file_size: p.p_filesz(endian).into(),
            memory_size: p.p_memsz(endian).into(),
            align: p.p_align(endian).into(),
        })
        .collect()
}

/// Reads a table of `count` entries; what lies outside the file is cut off and reported.
fn table(
    input: &Input,
    offset: u64,
    count: u64,
    entry: u64,
    what: &str,
    problems: &mut Vec<Problem>,
) -> Vec<u8> {
    let code = format!("damaged-{}", what.replace(' ', "-"));
    let Some(left) = input.len().checked_sub(offset) else {
        problems.push(Problem::damage(&code, format!("{what} at offset {offset:#x} lie outside the file")));
        return Vec::new();
    };
    let whole = (left / entry).min(count);
    if whole < count {
        problems.push(Problem::damage(&code, format!("only {whole} of {count} {what} lie within the file")));
    }
    let mut bytes = vec![0; (whole * entry) as usize];
    match input.read_at(offset, &mut bytes) {
        Ok(got) => bytes.truncate(got - got % entry as usize),
        Err(error) => {
            problems.push(Problem::damage(&code, format!("{what}: {error}")));
            bytes.clear();
        }
    }
    bytes
}

fn sections<H: FileHeader<Endian = Endianness>>(
    raw: &H,
    endian: Endianness,
    input: &Input,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Vec<Section> {
    let offset: u64 = raw.e_shoff(endian).into();
    let mut count = u64::from(raw.e_shnum(endian));
    if offset == 0 {
        // Who strips the headers says in both fields that there are none; whoever lost one of them says it in one.
        if count != 0 {
            let message = format!("{count} section headers, and nowhere in the file");
            problems.push(Problem::damage("damaged-section-headers", message));
        }
        return Vec::new();
    }
    let entry = size_of::<H::SectionHeader>() as u64;
    if u64::from(raw.e_shentsize(endian)) != entry {
        problems.push(Problem::damage(
            "damaged-section-headers",
            format!("section headers of {} bytes each, expected {entry}", raw.e_shentsize(endian)),
        ));
        return Vec::new();
    }
    // The real count and string table index of a file with very many sections stand in the first header.
    let mut first = vec![0; entry as usize];
    let have_first = matches!(input.read_at(offset, &mut first), Ok(got) if got == first.len());
    let first = if have_first { pod::from_bytes::<H::SectionHeader>(&first).ok() } else { None };
    let Some((first, _)) = first else {
        problems.push(Problem::damage(
            "damaged-section-headers",
            format!("section headers at offset {offset:#x} lie outside the file"),
        ));
        return Vec::new();
    };
    if count == 0 {
        count = first.sh_size(endian).into();
        if count == 0 && raw.e_type(endian) != elf::ET_CORE {
            let message = format!("section headers at offset {offset:#x}, and their number is 0");
            problems.push(Problem::damage("damaged-section-headers", message));
        }
    }
    let mut names_index = u32::from(raw.e_shstrndx(endian).0);
    if names_index == u32::from(elf::SHN_XINDEX.0) {
        names_index = first.sh_link(endian);
    }
    if count > limits.sections {
        problems.push(Problem::damage(
            "too-many-sections",
            format!("{count} section headers, the first {} are read", limits.sections),
        ));
        count = limits.sections;
    }
    let bytes = table(input, offset, count, entry, "section headers", problems);
    let count = bytes.len() / entry as usize;
    let Ok((list, _)) = pod::slice_from_bytes::<H::SectionHeader>(&bytes, count) else { return Vec::new() };
    let names = names::Names::read(list, names_index, endian, input, limits, problems);
    let sections: Vec<Section> = list
        .iter()
        .enumerate()
        .map(|(index, s)| Section {
            index,
            name: names.at(s.sh_name(endian)).to_vec(),
            kind: s.sh_type(endian),
            flags: s.sh_flags(endian).0,
            address: s.sh_addr(endian).into(),
            offset: s.sh_offset(endian).into(),
            size: s.sh_size(endian).into(),
            link: s.sh_link(endian),
            info: s.sh_info(endian),
            align: s.sh_addralign(endian).into(),
            entry_size: s.sh_entsize(endian).into(),
        })
        .collect();
    report_outside(&sections, input.len(), problems);
    sections
}

/// Sections that claim bytes behind the end of the file: reported once, with their number.
fn report_outside(sections: &[Section], file: u64, problems: &mut Vec<Problem>) {
    let outside = |s: &&Section| {
        s.kind != elf::SHT_NULL
            && s.kind != elf::SHT_NOBITS
            && s.size > 0
            && s.offset.checked_add(s.size).is_none_or(|end| end > file)
    };
    let count = sections.iter().filter(outside).count();
    if let Some(first) = sections.iter().find(outside) {
        let name = String::from_utf8_lossy(&first.name).into_owned();
        problems.push(Problem::damage(
            "damaged-section-headers",
            format!(
                "{count} of {} sections claim bytes outside the file; the first is {} {name}",
                sections.len(),
                first.index
            ),
        ));
    }
}
