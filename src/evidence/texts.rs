//! Exact C strings in the constants of a program: what a run-time library leaves behind in a stripped, static file.
//!
//! A word inside some text proves nothing. What is looked for are whole strings as a C compiler lays them down, with
//! a NUL on either side, and a witness asks for several that only the library has together.

use crate::image::{Image, merge};
use memchr::memmem::Finder;
use object::elf;
use std::ops::Range;

/// Bytes searched in one file; beyond it the answer "not there" is not given.
const MAX_BYTES: u64 = 256 << 20;
const WINDOW: u64 = 1 << 20;
/// Longest path given out, and so the overlap of two windows, in bytes.
const MAX_PATH: usize = 4096;

/// What the constants hold.
#[derive(Debug, Default)]
pub struct Texts {
    found: Vec<&'static str>,
    /// The first few paths of `.gcda` files.
    pub gcda: Vec<Vec<u8>>,
    /// Whether everything was searched, so that what was not found is not there.
    pub complete: bool,
}

impl Texts {
    /// Nothing is there, and that is certain.
    pub fn none() -> Self {
        Self { complete: true, ..Self::default() }
    }

    /// Whether the string is there.
    pub fn has(&self, text: &str) -> bool {
        self.found.contains(&text)
    }
}

/// Searches the constants for whole C strings, and for strings that begin with `prefixes`.
pub fn search(image: &Image, strings: &[&'static str], prefixes: &[&'static str]) -> Texts {
    let needle = |text: &'static str, whole: bool| {
        let mut bytes = vec![0];
        bytes.extend_from_slice(text.as_bytes());
        if whole {
            bytes.push(0);
        }
        (text, Finder::new(&bytes).into_owned())
    };
    let mut wanted: Vec<(&'static str, Finder<'static>)> = strings
        .iter()
        .map(|text| needle(text, true))
        .chain(prefixes.iter().map(|text| needle(text, false)))
        .collect();
    let gcda = Finder::new(b".gcda\0");
    let ranges = constants(image);
    let mut texts = Texts { complete: true, ..Texts::default() };
    let mut left = MAX_BYTES;
    for range in ranges {
        // The first string of a section has no NUL of its own before it.
        let mut carry = vec![0u8];
        let mut at = range.start;
        while at < range.end {
            let size = WINDOW.min(range.end - at).min(left);
            if size == 0 {
                texts.complete = false;
                return texts;
            }
            let Ok(bytes) = image.read(at, size, "constants") else {
                texts.complete = false;
                break;
            };
            at += size;
            left -= size;
            carry.extend_from_slice(&bytes);
            wanted.retain(|(text, finder)| {
                let there = finder.find(&carry).is_some();
                if there {
                    texts.found.push(text);
                }
                !there
            });
            for end in gcda.find_iter(&carry) {
                let start = carry.get(..end).and_then(|before| memchr::memrchr(0, before));
                let path = start.and_then(|start| carry.get(start + 1..end + 5));
                if let Some(path) = path.filter(|path| is_gcda_path(path))
                    && texts.gcda.len() < 16
                    && !texts.gcda.iter().any(|known| known == path)
                {
                    texts.gcda.push(path.to_vec());
                }
            }
            let keep = carry.len().saturating_sub(MAX_PATH);
            carry.drain(..keep);
        }
    }
    texts
}

/// An absolute path to a named `.gcda` file: not the bare suffix and not a format, which coverage tools hold.
fn is_gcda_path(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    path.starts_with(b"/") && name.len() > 5 && !path.iter().any(|&byte| byte == b'%' || byte < b' ')
}

/// File ranges of allocated data that is not code or, without a section table, of everything loaded.
fn constants(image: &Image) -> Vec<Range<u64>> {
    let file = image.input.len();
    let clip = |offset: u64, size: u64| {
        let end = offset.checked_add(size)?.min(file);
        (offset < end).then_some(offset..end)
    };
    let sections = image.sections.iter().filter(|section| {
        section.has_data()
            && section.flags & elf::SHF_ALLOC.0 != 0
            && section.flags & (elf::SHF_EXECINSTR.0 | elf::SHF_COMPRESSED.0) == 0
            && section.kind == elf::SHT_PROGBITS
    });
    let ranges: Vec<Range<u64>> = if image.sections.is_empty() {
        image.loaded_segments().filter_map(|segment| clip(segment.offset, segment.file_size)).collect()
    } else {
        sections.filter_map(|section| clip(section.offset, section.size)).collect()
    };
    merge(ranges)
}
