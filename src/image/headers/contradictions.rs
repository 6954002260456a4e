//! Headers that contradict each other. Section headers are for linkers and debuggers, program headers for the loader, and
//! both describe the same bytes: where they disagree, one is damaged, and what is counted by it is not the program.
//!
//! Each rule here held in every one of 11,000 sound files (Debian 12, nginx and servers by eight compilers, four linkers,
//! kernels, Go programs, wheels, toolchains; after `strip`, `objcopy`, `dwz`, `patchelf` and `BOLT`).

use super::{Header, Input, Section, Segment};
use crate::facts::Problem;
use object::elf;
use std::ops::Range;

/// Longest part of a gap that is looked at.
const GAP_BYTES: u64 = 4096;
/// Zeros that may follow what an editor filled a gap with, up to the next part.
const FILL_END: usize = 16;
/// Gaps that are looked at in one file; sound ones have a few.
const MOST_GAPS: usize = 64;
/// Longest name of an interpreter (Linux `PATH_MAX`).
const NAME_BYTES: u64 = 4096;

/// Reports at most one contradiction of each kind, and gives whether sections tell where the parts of the program are
/// ([`crate::image::Image::described`]). `tables` is where the tables of headers lie in the file.
pub(super) fn report(
    header: &Header,
    segments: &[Segment],
    sections: &[Section],
    input: &Input,
    tables: &[Range<u64>],
    problems: &mut Vec<Problem>,
) -> bool {
    let described = header.kind == elf::ET_REL && !sections.is_empty()
        || sections.iter().any(|s| s.is_allocated() && s.kind != elf::SHT_NOTE && s.size > 0);
    if header.kind == elf::ET_CORE {
        return described;
    }
    let loads = Loads::new(segments);
    let mut gaps = Gaps { input, tables, looked: 0 };
    // Separate debug files keep addresses and sizes without the bytes.
    if !sections.is_empty() && !sections.iter().any(|s| s.is_allocated() && s.kind == elf::SHT_PROGBITS) {
        let hidden = hidden(segments, sections, described, &mut gaps);
        let lies = hidden.is_some();
        problems.extend(hidden.map(|why| Problem::damage("damaged-section-headers", why)));
        return described && !lies;
    }
    let mut of_sections =
        vec![reserved(sections), special(sections), orphaned(sections), overlap(sections, input.len())];
    if header.kind == elf::ET_REL {
        let loaded = !loads.0.is_empty();
        of_sections.push(loaded.then(|| "a relocatable file with segments to be loaded".to_owned()));
        of_sections.push(forgotten(sections, |_| true, &mut gaps));
    } else if !loads.0.is_empty() && !sections.is_empty() {
        of_sections.push(misplaced(sections, &loads));
        of_sections.push(entry_outside(header, sections, &loads));
        of_sections.push(uncounted(sections, &loads, &mut gaps));
        of_sections.push(forgotten(sections, |s| !s.is_allocated(), &mut gaps));
    }
    problems.extend(incongruent(segments).map(|why| Problem::damage("damaged-program-headers", why)));
    let of_sections = of_sections.into_iter().flatten();
    problems.extend(of_sections.map(|why| Problem::damage("damaged-section-headers", why)));
    described
}

/// A file whose sections hold no part of the program, but whose segments do. In a separate debug file these are empty
/// (`objcopy --only-keep-debug`), or are those of the program, whose places are other things here (`eu-strip -f`): there is no
/// interpreter's name, and the bytes are all of sections.
fn hidden(
    segments: &[Segment],
    sections: &[Section],
    described: bool,
    gaps: &mut Gaps<'_>,
) -> Option<String> {
    let file = gaps.input.len();
    let places = in_file_order(sections, file);
    let code = |s: &&Segment| {
        s.kind == elf::PT_LOAD && s.flags & elf::PF_X.0 != 0 && s.file_size > 0 && s.offset < file
    };
    let unclaimed = |segment: &Segment, gaps: &mut Gaps<'_>| {
        let mut at = segment.offset;
        let end = segment.offset.saturating_add(segment.file_size).min(file);
        let bounds = places.iter().map(|(range, s)| (range.clone(), s.align)).chain([(end..end, 0)]);
        for (range, align) in bounds {
            if range.start.min(end) > at && gaps.hold(at..range.start.min(end), align) {
                return true;
            }
            at = at.max(range.end);
        }
        false
    };
    let interpreter = || {
        let program = segments.iter().find(|s| s.kind == elf::PT_INTERP && s.file_size <= NAME_BYTES)?;
        let name = gaps.input.read_vec(program.offset, program.file_size, NAME_BYTES, "name").ok()?;
        Some(name.first() == Some(&b'/') && memchr::memchr(0, &name) == name.len().checked_sub(1))
    };
    let runs = interpreter() == Some(true);
    let hidden = segments.iter().filter(code).any(|s| !described || runs || unclaimed(s, gaps));
    hidden.then(|| "no section holds the code of the program, and its segments do".to_owned())
}

fn name(section: &Section) -> String {
    format!("section {} {}", section.index, String::from_utf8_lossy(&section.name))
}

/// The bytes of a section in the file, as far as they are there.
fn bytes_of(section: &Section, file: u64) -> Option<Range<u64>> {
    let end = section.offset.checked_add(section.size)?;
    (section.has_data() && section.size > 0 && end <= file).then_some(section.offset..end)
}

/// Loaded segments with contents, in order of address.
struct Loads<'a>(Vec<&'a Segment>);

impl<'a> Loads<'a> {
    fn new(segments: &'a [Segment]) -> Self {
        let mut loads: Vec<&Segment> =
            segments.iter().filter(|s| s.kind == elf::PT_LOAD && s.memory_size > 0).collect();
        loads.sort_by_key(|s| s.address);
        Self(loads)
    }

    /// The segment that holds an address in memory.
    fn at(&self, address: u64) -> Option<&'a Segment> {
        let after = self.0.partition_point(|s| s.address <= address);
        let segment = *self.0.get(after.checked_sub(1)?)?;
        (address - segment.address < segment.memory_size.max(segment.file_size)).then_some(segment)
    }
}

/// Loaded segments whose address and place in the file differ by more than pages: no loader could map them (gABI, "Program
/// Loading"), and what is read at their addresses is something else.
fn incongruent(segments: &[Segment]) -> Option<String> {
    let segment = segments.iter().find(|s| {
        s.kind == elf::PT_LOAD
            && s.file_size > 0
            && s.align > 1
            && s.align.is_power_of_two()
            && !s.address.wrapping_sub(s.offset).is_multiple_of(s.align)
    })?;
    Some(format!(
        "a segment at {:#x} of the file cannot be loaded at {:#x}: they differ by more than its alignment {:#x}",
        segment.offset, segment.address, segment.align
    ))
}

/// `.text`, `.init` and `.fini` are executable by definition (gABI, "Special Sections").
fn special(sections: &[Section]) -> Option<String> {
    let code =
        |s: &&Section| matches!(&s.name[..], b".text" | b".init" | b".fini") || s.name.starts_with(b".text.");
    let section = sections.iter().filter(code).find(|s| s.size > 0 && s.has_data() && !s.is_text())?;
    Some(format!("{} is not marked as executable", name(section)))
}

/// The first header is reserved and empty; only counts that fit nowhere else may stand in its size, link and info (gABI,
/// "Section Header Table").
fn reserved(sections: &[Section]) -> Option<String> {
    let first = sections.first()?;
    let others = [first.flags, first.address, first.offset, first.align, first.entry_size];
    (first.kind != elf::SHT_NULL || others != [0; 5])
        .then(|| "the first section header is not empty".to_owned())
}

/// Abbreviations of debugging entries without any entries: their section has lost its name or its size.
fn orphaned(sections: &[Section]) -> Option<String> {
    let full = |s: &&Section| s.has_data() && s.size > 0;
    let any = |names: &[&[u8]]| sections.iter().filter(full).any(|s| names.contains(&&s.name[..]));
    let entries: [&[u8]; 4] = [b".debug_info", b".zdebug_info", b".debug_types", b".debug_info.dwo"];
    let orphaned = any(&[b".debug_abbrev", b".zdebug_abbrev"]) && !any(&entries);
    orphaned.then(|| ".debug_abbrev is there, and no .debug_info that it is of".to_owned())
}

/// Two sections that claim the same bytes. Tables of strings may share theirs.
fn overlap(sections: &[Section], file: u64) -> Option<String> {
    let places = in_file_order(sections, file);
    let strings = |s: &Section| s.kind == elf::SHT_STRTAB;
    let shared = |(before, a): &(Range<u64>, &Section), (after, b): &(Range<u64>, &Section)| {
        after.start < before.end && !(strings(a) && strings(b))
    };
    let pair = places.windows(2).find(|pair| matches!(pair, [a, b] if shared(a, b)))?;
    let [(_, a), (_, b)] = pair else { return None };
    Some(format!("{} and {} claim the same bytes", name(a), name(b)))
}

/// An allocated section must lie in a loaded segment, at the same distance in memory as in the file, and code in one that
/// may be executed.
fn misplaced(sections: &[Section], loads: &Loads<'_>) -> Option<String> {
    let wrong = |s: &Section| {
        let Some(segment) = loads.at(s.address) else { return Some("lies in no loaded segment") };
        let into = s.address - segment.address;
        let held = if s.has_data() { segment.file_size } else { segment.memory_size };
        if into.checked_add(s.size).is_none_or(|end| end > held) {
            return Some("reaches out of its segment");
        }
        if s.has_data() && segment.offset.checked_add(into) != Some(s.offset) {
            return Some("lies elsewhere in the file than its segment says");
        }
        (s.is_text() && segment.flags & elf::PF_X.0 == 0)
            .then_some("is code in a segment that may not be executed")
    };
    // Thread-local zeros take no room in memory.
    let checked =
        |s: &&Section| s.is_allocated() && s.size > 0 && (s.has_data() || s.flags & elf::SHF_TLS.0 == 0);
    sections.iter().filter(checked).find_map(|s| Some(format!("{} {}", name(s), wrong(s)?)))
}

/// A program begins in its code, or in a descriptor that has the address. A kernel's entry is a physical address, which is in
/// no segment's memory.
fn entry_outside(header: &Header, sections: &[Section], loads: &Loads<'_>) -> Option<String> {
    let entry = header.entry;
    if entry == 0 || loads.at(entry).is_none() {
        return None;
    }
    let descriptors = has_descriptors(header);
    let kind = |s: &Section| s.is_text() || descriptors && s.is_allocated() && s.has_data();
    let holds = |s: &&Section| kind(s) && entry >= s.address && entry - s.address < s.size;
    let outside = !sections.iter().any(|s| holds(&s));
    outside.then(|| format!("the program begins at {entry:#x}, where no section of code is"))
}

/// Whether the address of a function may be that of a descriptor among the data: in the first ABI of 64-bit PowerPC, of which
/// the flags tell the version, if any, and on 64-bit PA-RISC and IA-64.
fn has_descriptors(header: &Header) -> bool {
    const VERSION: u32 = 3;
    match header.machine {
        elf::EM_PPC64 => header.flags & VERSION != 2,
        elf::EM_PARISC | elf::EM_IA_64 => header.is_64,
        _ => false,
    }
}

/// Bytes of a loaded segment that no section counts: of any in an executable segment, and behind the frame descriptions, by
/// which functions are found. Elsewhere sound files have such gaps: Go's linker leaves some between tables of its own, and
/// editors like patchelf where they moved the dynamic linker's tables from.
fn uncounted(sections: &[Section], loads: &Loads<'_>, gaps: &mut Gaps<'_>) -> Option<String> {
    let mut placed: Vec<&Section> =
        sections.iter().filter(|s| s.is_allocated() && s.has_data() && s.size > 0).collect();
    placed.sort_by_key(|s| (s.address, s.size));
    for segment in &loads.0 {
        let executable = segment.flags & elf::PF_X.0 != 0;
        let end = segment.address.saturating_add(segment.file_size);
        let first = placed.partition_point(|s| s.address < segment.address);
        let inside = placed.get(first..)?.iter().take_while(|s| s.address < end);
        let (mut at, mut before): (u64, Option<&Section>) = (segment.address, None);
        let bounds = inside.map(|s| (s.address, s.address.saturating_add(s.size), Some(*s)));
        for (start, stop, section) in bounds.chain([(end, end, None)]) {
            let counts = executable || before.is_some_and(|before| before.name == b".eh_frame");
            let align = section.map_or(0, |s| s.align);
            let place = |address: u64| segment.offset.saturating_add(address - segment.address);
            if counts && start > at && gaps.hold(place(at)..place(start), align) {
                let behind = before.map_or_else(|| "the beginning of its segment".to_owned(), name);
                return Some(format!(
                    "{} bytes of the program behind {behind} belong to no section",
                    start - at
                ));
            }
            if let Some(section) = section.filter(|_| stop > at) {
                (at, before) = (stop, Some(section));
            }
        }
    }
    None
}

/// Bytes between two sections of this kind in the file that belong to neither.
fn forgotten(sections: &[Section], kind: impl Fn(&Section) -> bool, gaps: &mut Gaps<'_>) -> Option<String> {
    let places = in_file_order(sections, gaps.input.len());
    let mut last: Option<(u64, &Section)> = None;
    for (range, section) in places {
        if let Some((at, before)) = last
            && kind(before)
            && kind(section)
            && range.start > at
            && gaps.hold(at..range.start, section.align)
        {
            let bytes = range.start - at;
            return Some(format!(
                "{bytes} bytes between {} and {} belong to neither",
                name(before),
                name(section)
            ));
        }
        if last.is_none_or(|(at, _)| range.end > at) {
            last = Some((range.end, section));
        }
    }
    None
}

/// Sections with their bytes, in the order of the file.
fn in_file_order(sections: &[Section], file: u64) -> Vec<(Range<u64>, &Section)> {
    let mut places: Vec<(Range<u64>, &Section)> =
        sections.iter().filter_map(|s| Some((bytes_of(s, file)?, s))).collect();
    places.sort_by_key(|(range, _)| (range.start, range.end));
    places
}

/// What lies between parts of the file.
struct Gaps<'a> {
    input: &'a Input,
    /// Where the tables of headers lie.
    tables: &'a [Range<u64>],
    looked: usize,
}

impl Gaps<'_> {
    /// Whether something is there. What aligns the next part, and one byte over and over, fills; that is not looked at
    /// where it is shorter than the alignment asks.
    fn hold(&mut self, gap: Range<u64>, align: u64) -> bool {
        let table = self.tables.iter().any(|t| t.start < gap.end && gap.start < t.end);
        let size = gap.end - gap.start;
        if table || size < align.max(8) || self.looked >= MOST_GAPS {
            return false;
        }
        self.looked += 1;
        let mut bytes = vec![0; size.min(GAP_BYTES) as usize];
        let got = self.input.read_at(gap.start, &mut bytes).unwrap_or(0);
        bytes.truncate(got);
        let Some(&fill) = bytes.first() else { return false };
        let rest = bytes.iter().position(|&byte| byte != fill).map_or(0, |at| bytes.len() - at);
        rest > FILL_END || bytes.iter().rev().take(rest).any(|&byte| byte != 0)
    }
}

#[cfg(test)]
mod tests;
