//! Where what lies in an ELF file.

use std::ops::Range;

/// What damage to a part can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Header fields: where things are, and how much of them there is.
    Header,
    /// Contents of sections that are no machine code.
    Contents,
    /// Machine code.
    Code,
}

/// The parts of an undamaged file.
pub struct Layout {
    /// Most significant byte first.
    pub big: bool,
    /// Fields of headers, with a name of their kind.
    pub fields: Vec<(String, Range<usize>)>,
    /// Contents of sections, with the section's number.
    pub contents: Vec<(String, Range<usize>, Part)>,
}

fn number(bytes: &[u8], at: Range<usize>, big: bool) -> usize {
    let field = bytes.get(at).unwrap_or_default();
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = if big { field.iter().fold(0, fold) } else { field.iter().rev().fold(0, fold) };
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Layout {
    /// Of an ELF file whose headers are in order; of anything else, the whole file is contents.
    pub fn of(bytes: &[u8]) -> Self {
        let all = vec![("file".to_owned(), 0..bytes.len(), Part::Contents)];
        if bytes.get(..4) != Some(b"\x7fELF") || bytes.len() < 64 {
            return Self { big: false, fields: Vec::new(), contents: all };
        }
        let (wide, big) = (bytes[4] == 2, bytes[5] == 2);
        let at = |offset: usize, sizes: &[usize], index: usize| {
            let start = offset + sizes[..index].iter().sum::<usize>();
            start..start + sizes[index]
        };
        let word = if wide { 8 } else { 4 };
        let header = [4, 1, 1, 1, 1, 8, 2, 2, 4, word, word, word, 4, 2, 2, 2, 2, 2, 2];
        let section = [4, 4, word, word, word, word, 4, 4, word, word];
        let segment = if wide { [4, 4, 8, 8, 8, 8, 8, 8] } else { [4, 4, 4, 4, 4, 4, 4, 4] };
        let read = |range| number(bytes, range, big);
        let mut fields: Vec<(String, Range<usize>)> =
            (0..header.len()).map(|i| (format!("header field {i}"), at(0, &header, i))).collect();
        let mut contents = Vec::new();
        let (phoff, shoff) = (read(at(0, &header, 10)), read(at(0, &header, 11)));
        let (phnum, shnum) = (read(at(0, &header, 15)), read(at(0, &header, 17)));
        let fits = |offset: usize, count: usize, size: usize| {
            count
                .checked_mul(size)
                .and_then(|all| all.checked_add(offset))
                .is_some_and(|end| end <= bytes.len())
        };
        let size = segment.iter().sum();
        if fits(phoff, phnum, size) {
            for n in 0..phnum {
                fields.extend(
                    (0..segment.len())
                        .map(|i| (format!("segment {n} field {i}"), at(phoff + n * size, &segment, i))),
                );
            }
        }
        let size = section.iter().sum();
        if fits(shoff, shnum, size) {
            for n in 0..shnum {
                let start = shoff + n * size;
                fields.extend(
                    (0..section.len()).map(|i| (format!("section {n} field {i}"), at(start, &section, i))),
                );
                let (kind, flags) = (read(at(start, &section, 1)), read(at(start, &section, 2)));
                let (offset, len) = (read(at(start, &section, 4)), read(at(start, &section, 5)));
                // SHT_NOBITS has no bytes; SHF_EXECINSTR is machine code.
                if kind != 8 && len > 0 && fits(offset, len, 1) {
                    let part = if flags & 4 == 0 { Part::Contents } else { Part::Code };
                    contents.push((format!("section {n}"), offset..offset + len, part));
                }
            }
        }
        Self { big, fields, contents: if contents.is_empty() { all } else { contents } }
    }
}
