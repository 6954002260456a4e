//! The note form, `.gnu.build.attributes`.
//!
//! An entry is `namesz`, `descsz`, `type` (32 bits each, in the file's byte order), the name and the description, each padded
//! to 4 bytes also in 64-bit files. Type 0x100 speaks of a range, 0x101 of a function; a description is empty (the range of the
//! note of the same type before it) or a start and an end, 4 or 8 bytes each.

use super::{Note, Notes, Property, control_flow, fortify, level_of_gow, writer};
use crate::facts::Problem;
use crate::image::{Image, Section};
use std::ops::Range;

/// `NT_GNU_BUILD_ATTRIBUTE_OPEN`.
const OPEN: u32 = 0x100;
/// `NT_GNU_BUILD_ATTRIBUTE_FUNC`.
const FUNC: u32 = 0x101;

pub(super) fn parse(image: &Image, section: &Section, bytes: &[u8], found: &mut Notes) {
    let mut reader = Reader { bytes, at: 0, little: image.header.little_endian };
    let word = if image.header.is_64 { 8 } else { 4 };
    // The range in force for each of the two types.
    let mut ranges: [Option<Range<u64>>; 2] = [None, None];
    while reader.at < bytes.len() {
        let offset = reader.at as u64;
        let Some((kind, name, description)) = entry(&mut reader) else {
            found.problems.push(Problem::damage(
                "damaged-build-notes",
                format!("the build note at offset {offset:#x} does not fit into its section"),
            ));
            return;
        };
        let of_function = match kind {
            OPEN => false,
            FUNC => true,
            _ => continue,
        };
        let current = &mut ranges[usize::from(of_function)];
        if !description.is_empty() {
            let mut reader = Reader { bytes: description, at: 0, little: reader.little };
            *current = reader.number(word).zip(reader.number(word)).map(|(start, end)| start..end);
        }
        let Some(property) = property(name) else { continue };
        // Ranges that hold no code are common: an object's empty hot, startup and exit parts.
        let range = current.clone().filter(|range| range.start < range.end);
        if range.is_none() && !image.is_relocatable() {
            continue;
        }
        let range = range.filter(|_| !image.is_relocatable());
        let note = Note { range, of_function, unit: None, property, section: section.index, offset };
        if !found.push(note) {
            return;
        }
    }
}

fn entry<'a>(reader: &mut Reader<'a>) -> Option<(u32, &'a [u8], &'a [u8])> {
    let name_size = usize::try_from(reader.number(4)?).ok()?;
    let description_size = usize::try_from(reader.number(4)?).ok()?;
    let kind = u32::try_from(reader.number(4)?).ok()?;
    let name = reader.padded(name_size)?;
    let description = reader.padded(description_size)?;
    Some((kind, name, description))
}

/// What a name says: `GA`, the kind of value, then a number for a well-known property or a text, then the value.
fn property(name: &[u8]) -> Option<Property> {
    let rest = name.strip_prefix(b"GA")?;
    let (&kind, rest) = rest.split_first()?;
    let rest = rest.strip_suffix(b"\0").unwrap_or(rest);
    let (&first, after) = rest.split_first()?;
    let (id, value): (String, &[u8]) = if (32..127).contains(&first) {
        let end = memchr::memchr(0, rest).unwrap_or(rest.len());
        let text = String::from_utf8_lossy(rest.get(..end)?).into_owned();
        (text, rest.get(end.saturating_add(1)..).unwrap_or_default())
    } else {
        (well_known(first).map_or_else(|| format!("id-{first}"), str::to_owned), after)
    };
    let text = || String::from_utf8_lossy(value.strip_suffix(b"\0").unwrap_or(value)).into_owned();
    let number = || little_endian(value);
    Some(match (kind, id.as_str()) {
        (b'*', "GOW") => {
            let number = number()?;
            Property::Level(level_of_gow(number), number)
        }
        (b'*', "stack-protector") => Property::StackProtector(number()?),
        (b'*', "pic") => Property::PositionIndependence(number()?),
        (b'*', "cf_protection") => control_flow(number()?),
        (b'*', "FORTIFY") => fortify(number()?),
        (b'+' | b'!', "stack_clash") => Property::StackClash(kind == b'+'),
        (b'+' | b'!', "GLIBCXX_ASSERTIONS") => Property::LibraryAssertions(kind == b'+'),
        (b'$', "version") => writer(&text()),
        (b'$', "tool") => Property::Tool(text()),
        (b'$', "INSTRUMENT") => Property::Instrumentation(text()),
        (b'*', id) => Property::Other(format!("{id}={}", number()?)),
        (b'$', id) => Property::Other(format!("{id}={}", text())),
        (b'+', id) => Property::Other(format!("{id}=true")),
        (b'!', id) => Property::Other(format!("{id}=false")),
        _ => return None,
    })
}

fn well_known(id: u8) -> Option<&'static str> {
    Some(match id {
        1 => "version",
        2 => "stack-protector",
        3 => "relro",
        4 => "stack-size",
        5 => "tool",
        6 => "abi",
        7 => "pic",
        8 => "short-enum",
        _ => return None,
    })
}

/// Numbers are little-endian in every file, of as many bytes as they need.
fn little_endian(bytes: &[u8]) -> Option<u64> {
    let significant = bytes.len() - bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    if significant > 8 {
        return None;
    }
    Some(bytes.iter().take(significant).rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    little: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(size)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// Takes `size` bytes and the padding to 4 after them, which the end of the section may cut off.
    fn padded(&mut self, size: usize) -> Option<&'a [u8]> {
        let taken = self.take(size)?;
        self.at = self.at.checked_next_multiple_of(4)?.min(self.bytes.len());
        Some(taken)
    }

    fn number(&mut self, size: usize) -> Option<u64> {
        let bytes = self.take(size)?;
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    }
}
