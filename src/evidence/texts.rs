//! Exact C strings in the constants of a program: what a run-time library leaves behind in a stripped, static file.
//!
//! A word inside some text proves nothing. What is looked for are whole strings as a C compiler lays them down, with
//! a NUL on either side, and a witness asks for several that only the library has together.

use crate::image::needles::Needles;
use crate::image::{Image, merge};
use object::elf;
use std::ops::Range;

/// Bytes searched in one file; beyond it the answer "not there" is not given.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes looked at together.
const WINDOW: usize = 64 << 10;
/// Longest path given out, and so the overlap of two windows, in bytes.
const MAX_PATH: usize = 4096;
/// Most paths given out.
const MAX_PATHS: usize = 16;
/// How the name of a file of counts ends.
const GCDA: &str = ".gcda\0";

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

/// What is looked for. It is made once for all files.
#[derive(Debug)]
pub struct Wanted {
    texts: Vec<&'static str>,
    needles: Needles,
}

impl Wanted {
    /// Whole C strings, and strings that begin with `prefixes`; none of them begins with another.
    pub fn new(strings: &[&'static str], prefixes: &[&'static str]) -> Option<Self> {
        let whole = strings.iter().map(|text| format!("\0{text}\0"));
        let begun = prefixes.iter().map(|text| format!("\0{text}"));
        let needles = Needles::new(&whole.chain(begun).chain([GCDA.to_owned()]).collect::<Vec<_>>())?;
        Some(Self { texts: strings.iter().chain(prefixes).copied().collect(), needles })
    }
}

/// Searches the constants.
pub fn search(image: &Image, wanted: &Wanted) -> Texts {
    let mut texts = Texts::default();
    texts.complete = pass_over(image, |held| {
        for (place, which) in wanted.needles.all(held) {
            match wanted.texts.get(which) {
                Some(text) if !texts.has(text) => texts.found.push(text),
                Some(_) => {}
                None => texts.note_path(held, place),
            }
        }
    });
    texts
}

/// Whether the constants hold these words, alone or inside some text (Rust's texts end with no NUL).
pub fn holds(image: &Image, words: &str) -> bool {
    let finder = memchr::memmem::Finder::new(words);
    let mut found = false;
    pass_over(image, |held| found |= finder.find(held).is_some());
    found
}

/// Hands on the constants window by window, which overlap. Returns whether all were seen.
fn pass_over(image: &Image, mut visit: impl FnMut(&[u8])) -> bool {
    let mut complete = true;
    let mut left = MAX_BYTES;
    let mut held: Vec<u8> = Vec::with_capacity(MAX_PATH + WINDOW);
    for range in constants(image) {
        held.clear();
        // The first string of a section has no NUL of its own before it.
        held.push(0);
        let mut at = range.start;
        while at < range.end {
            let size = (WINDOW as u64).min(range.end - at).min(left);
            if size == 0 {
                return false;
            }
            let before = held.len();
            held.resize(before + size as usize, 0);
            let read = image.input.read_exact_at(at, &mut held[before..], "constants");
            if read.is_err() {
                complete = false;
                break;
            }
            at += size;
            left -= size;
            visit(&held);
            let done = held.len().saturating_sub(MAX_PATH);
            held.drain(..done);
        }
    }
    complete
}

impl Texts {
    /// Keeps the path that ends in a suffix which stands at `suffix`.
    fn note_path(&mut self, bytes: &[u8], suffix: usize) {
        let start = bytes.get(..suffix).and_then(|before| memchr::memrchr(0, before));
        let path = start.and_then(|start| bytes.get(start + 1..suffix + GCDA.len() - 1));
        if let Some(path) = path.filter(|path| is_gcda_path(path))
            && self.gcda.len() < MAX_PATHS
            && !self.gcda.iter().any(|known| known == path)
        {
            self.gcda.push(path.to_vec());
        }
    }
}

/// An absolute path to a named `.gcda` file: not the bare suffix and not a format, which coverage tools hold.
fn is_gcda_path(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    path.starts_with(b"/") && name.len() > 5 && !path.iter().any(|&byte| byte == b'%' || byte < b' ')
}

/// File ranges of allocated data that is not code or, where sections do not tell, of everything loaded.
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
    let ranges: Vec<Range<u64>> = if image.described {
        sections.filter_map(|section| clip(section.offset, section.size)).collect()
    } else {
        image.loaded_segments().filter_map(|segment| clip(segment.offset, segment.file_size)).collect()
    };
    merge(ranges)
}
