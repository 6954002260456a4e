//! Finding `.eh_frame` and walking over its entries.

use super::cfi::{self, Slice};
use super::{Function, FunctionTable, Origin, Registers, too_many};
use crate::facts::Problem;
use crate::image::Image;
use gimli::{
    BaseAddresses, CommonInformationEntry, EhFrame, EhFrameHdr, Pointer, RunTimeEndian, UnwindSection,
};
use object::elf;
use std::ops::Range;

/// The bytes of `.eh_frame` and the address they are loaded at.
struct Found {
    bytes: Vec<u8>,
    address: u64,
    /// The size is the table's own, and not merely what is left of its segment.
    exact: bool,
}

/// Adds a function for every entry that describes text.
pub(super) fn read(image: &Image, text: &[Range<u64>], table: &mut FunctionTable) {
    let found = match find(image) {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(problem) => {
            table.problems.push(problem);
            return;
        }
    };
    walk(image, text, &found, table);
}

fn endian(image: &Image) -> RunTimeEndian {
    if image.header.little_endian { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

fn address_size(image: &Image) -> u8 {
    if image.header.is_64 { 8 } else { 4 }
}

/// The section by name, else whatever `PT_GNU_EH_FRAME` points to, up to the end of its segment.
fn find(image: &Image) -> Result<Option<Found>, Problem> {
    let section = image.section(".eh_frame").filter(|s| s.has_data() && s.size > 0);
    if let Some(section) = section.filter(|s| s.flags & elf::SHF_COMPRESSED.0 == 0) {
        return match image.raw_section(section) {
            Ok(bytes) => Ok(Some(Found { bytes, address: section.address, exact: true })),
            Err(error) => Err(Problem::damage("damaged-unwind-table", error.to_string())),
        };
    }
    let Some(segment) = image.segments.iter().find(|s| s.kind == elf::PT_GNU_EH_FRAME) else {
        return Ok(None);
    };
    // The header proper is at most four bytes and two encoded pointers long.
    let size = segment.file_size.min(20);
    let damaged = |why: String| Problem::damage("damaged-unwind-table", format!(".eh_frame_hdr: {why}"));
    let header = image.read(segment.offset, size, ".eh_frame_hdr").map_err(|e| damaged(e.to_string()))?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(segment.address);
    let parsed = EhFrameHdr::new(&header, endian(image))
        .parse(&bases, address_size(image))
        .map_err(|e| damaged(e.to_string()))?;
    let Pointer::Direct(address) = parsed.eh_frame_ptr() else {
        return Err(damaged("an indirect pointer to .eh_frame".to_owned()));
    };
    let home = image
        .loaded_segments()
        .find(|s| address >= s.address && address.wrapping_sub(s.address) < s.file_size)
        .ok_or_else(|| damaged(format!("points to {address:#x}, which is not loaded")))?;
    let into = address.wrapping_sub(home.address);
    // Zeros end the table, so what is read past it does no harm; the segment is rarely much larger.
    let size = home.file_size.saturating_sub(into).min(image.limits.section_bytes);
    let offset = home.offset.checked_add(into).ok_or_else(|| damaged("overflow".to_owned()))?;
    let bytes = image.read(offset, size, ".eh_frame").map_err(|e| damaged(e.to_string()))?;
    Ok(Some(Found { bytes, address, exact: false }))
}

/// One entry's place: offset of its length field and offset of the next entry; `None` at the end.
fn next_entry(bytes: &[u8], offset: usize, little: bool) -> Option<(usize, usize)> {
    let four: [u8; 4] = bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?;
    let short = if little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) };
    let (header, length) = if short == u32::MAX {
        let from = offset.checked_add(4)?;
        let eight: [u8; 8] = bytes.get(from..from.checked_add(8)?)?.try_into().ok()?;
        (12usize, if little { u64::from_le_bytes(eight) } else { u64::from_be_bytes(eight) })
    } else {
        (4usize, u64::from(short))
    };
    let end = offset.checked_add(header)?.checked_add(usize::try_from(length).ok()?)?;
    (end <= bytes.len()).then_some((header, end))
}

/// Goes from entry to entry by their lengths, so that a damaged entry costs only itself.
fn walk(image: &Image, text: &[Range<u64>], found: &Found, table: &mut FunctionTable) {
    let mut section = EhFrame::new(&found.bytes, endian(image));
    section.set_address_size(address_size(image));
    let mut bases = BaseAddresses::default().set_eh_frame(found.address);
    if let Some(range) = text.first() {
        bases = bases.set_text(range.start);
    }
    if let Some(got) = image.section(".got") {
        bases = bases.set_got(got.address);
    }
    let registers = Registers::of(image.header.machine);
    // A link has a handful of CIEs and each function's entry names one of them, mostly the one before.
    let mut cie: Option<(usize, CommonInformationEntry<Slice<'_>>, bool)> = None;
    let (mut offset, mut damaged, mut seen) = (0usize, 0u64, 0u64);
    while offset < found.bytes.len() {
        let Some((header, end)) = next_entry(&found.bytes, offset, image.header.little_endian) else {
            if found.exact {
                damaged += 1;
            }
            break;
        };
        let here = std::mem::replace(&mut offset, end);
        if end - here == header {
            // A zero length ends the table. Inside a section of known size it may have come from
            // one input file (crtend.o linked in the middle), with more to follow.
            if found.exact {
                continue;
            }
            break;
        }
        let id = found.bytes.get(here + header..here + header + 4);
        if id.is_none_or(|id| id == [0; 4]) {
            continue;
        }
        seen += 1;
        let entry =
            section.fde_from_offset(&bases, here.into(), |section, bases, at: gimli::EhFrameOffset| {
                if let Some((_, known, _)) = cie.as_ref().filter(|(offset, ..)| *offset == at.0) {
                    return Ok(known.clone());
                }
                let read = section.cie_from_offset(bases, at)?;
                let outermost = cfi::is_outermost(&read, section, bases);
                cie = Some((at.0, read.clone(), outermost));
                Ok(read)
            });
        let Ok(entry) = entry else {
            damaged += 1;
            continue;
        };
        let start = entry.initial_address();
        // Linkers leave entries of discarded functions behind, at address 0 or with no length.
        let Some(end) = start.checked_add(entry.len()).filter(|&end| start != 0 && end > start) else {
            continue;
        };
        let program = cfi::read(&entry, &section, &bases, registers);
        let outermost = program.outermost || cie.as_ref().is_some_and(|(.., outermost)| *outermost);
        if outermost && !program.cold {
            table.runtime.push(start..end);
            continue;
        }
        if table.functions.len() >= image.limits.functions {
            table.problems.push(too_many(image.limits.functions));
            break;
        }
        table.functions.push(Function {
            start,
            end,
            name: None,
            cold: program.cold,
            saves_high: program.saves_high,
            saves_low: program.saves_low,
            frame_pointer: program.frame_pointer,
            from: Origin::EhFrame,
        });
    }
    if damaged > 0 {
        table.problems.push(Problem::damage(
            "damaged-unwind-table",
            format!("{damaged} of {seen} entries of .eh_frame cannot be read: their functions are missing"),
        ));
    }
}
