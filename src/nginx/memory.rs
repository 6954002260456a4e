//! The program's constants and data, by address and by search, through windows that are read once.

use crate::evidence::Place;
use crate::image::Image;
use crate::image::bytes::Format;
use memchr::memmem::Finder;
use object::elf;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Size of a cached window in bytes.
const WINDOW: u64 = 64 << 10;
/// Most windows kept; reads beyond that go to the file each time.
const MAX_WINDOWS: usize = 512;
/// Bytes of the file searched at once.
const SEARCHED: u64 = 256 << 10;

/// Reads of one image by address. Everything it keeps is bounded.
pub(super) struct Memory<'a> {
    pub(super) image: &'a Image,
    pub(super) format: Format,
    /// Address, size and file offset of what is loaded from the file, by address.
    loaded: Vec<(u64, u64, u64)>,
    windows: RefCell<HashMap<u64, Rc<[u8]>>>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(image: &'a Image) -> Self {
        let loaded = image.loaded_segments().map(|s| (s.address, s.file_size, s.offset)).collect();
        Self { image, format: Format::from(image.header), loaded, windows: RefCell::default() }
    }

    /// Size of an address in bytes.
    pub(super) fn word_size(&self) -> u64 {
        self.format.word_size()
    }

    /// The bytes of the file image from `address` on: as many as its window and segment hold, none outside.
    fn from(&self, address: u64) -> Option<(Rc<[u8]>, usize)> {
        let last = self.loaded.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        let (begin, file_size, file_offset) = *self.loaded.get(last)?;
        let at = address - begin;
        if at >= file_size {
            return None;
        }
        let start = at - at % WINDOW;
        let offset = file_offset.checked_add(start)?;
        let skip = (at % WINDOW) as usize;
        if let Some(window) = self.windows.borrow().get(&offset) {
            return (skip < window.len()).then(|| (Rc::clone(window), skip));
        }
        let size = WINDOW.min(file_size - start);
        let mut bytes = vec![0; size as usize];
        let got = self.image.input.read_at(offset, &mut bytes).ok()?;
        bytes.truncate(got);
        let window: Rc<[u8]> = bytes.into();
        let mut windows = self.windows.borrow_mut();
        if windows.len() < MAX_WINDOWS {
            windows.insert(offset, Rc::clone(&window));
        }
        (skip < window.len()).then_some((window, skip))
    }

    /// `size` bytes at an address, if the file holds them.
    pub(super) fn read(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while (out.len() as u64) < size {
            let (window, skip) = self.from(address.checked_add(out.len() as u64)?)?;
            let rest = window.get(skip..)?;
            let take = rest.len().min((size - out.len() as u64) as usize);
            out.extend_from_slice(rest.get(..take)?);
        }
        Some(out)
    }

    /// The string at an address up to its NUL, if that comes within `limit` bytes.
    pub(super) fn c_string(&self, address: u64, limit: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            let (window, skip) = self.from(address.checked_add(out.len() as u64)?)?;
            let rest = window.get(skip..)?;
            let end = memchr::memchr(0, rest);
            out.extend_from_slice(rest.get(..end.unwrap_or(rest.len()))?);
            if out.len() > limit {
                return None;
            }
            if end.is_some() {
                return Some(out);
            }
        }
    }

    /// File ranges that hold constants: the `.rodata` sections or, where there are none, the read-only segments
    /// (with code in them only if there is no other).
    pub(super) fn constants(&self) -> Vec<Range<u64>> {
        let range = |offset: u64, size: u64| {
            let end = offset.checked_add(size)?.min(self.image.input.len());
            (offset < end).then_some(offset..end)
        };
        let is_constant = |s: &&crate::image::Section| {
            s.name.starts_with(b".rodata")
                && s.has_data()
                && s.flags & elf::SHF_ALLOC.0 != 0
                && s.flags & (elf::SHF_WRITE.0 | elf::SHF_COMPRESSED.0) == 0
        };
        let ranges: Vec<_> =
            self.image.sections.iter().filter(is_constant).filter_map(|s| range(s.offset, s.size)).collect();
        if !ranges.is_empty() {
            return ranges;
        }
        let segments = |executable: bool| -> Vec<_> {
            self.image
                .loaded_segments()
                .filter(|s| s.flags & elf::PF_W.0 == 0 && (s.flags & elf::PF_X.0 != 0) == executable)
                .filter_map(|s| range(s.offset, s.file_size))
                .collect()
        };
        let mut ranges = segments(false);
        // A linker that does not separate code leaves headers at most in a segment of their own.
        if ranges.iter().all(|r| r.end - r.start <= 4096) {
            ranges.extend(segments(true));
        }
        ranges
    }

    /// Calls `hit(needle, file offset)` for every occurrence in the ranges, window by window. Stops when it returns
    /// false. Returns how many bytes were left out because `limit` bytes were searched.
    pub(super) fn search(
        &self,
        ranges: &[Range<u64>],
        needles: &[Finder<'_>],
        limit: u64,
        mut hit: impl FnMut(usize, u64) -> bool,
    ) -> u64 {
        let longest = needles.iter().map(|n| n.needle().len()).max().unwrap_or(1) as u64;
        let mut left = limit;
        let mut missed = 0u64;
        for range in ranges {
            let size = range.end - range.start;
            let end = range.start + size.min(left);
            missed = missed.saturating_add(size - size.min(left));
            left -= size.min(left);
            let mut at = range.start;
            while at < end {
                let whole = (SEARCHED + longest - 1).min(end - at);
                let mut bytes = vec![0; whole as usize];
                let Ok(got) = self.image.input.read_at(at, &mut bytes) else { break };
                let Some(bytes) = bytes.get(..got).filter(|bytes| !bytes.is_empty()) else { break };
                for (index, needle) in needles.iter().enumerate() {
                    // The tail that the next window begins with is searched there.
                    let mine = bytes.len().min(SEARCHED as usize + needle.needle().len() - 1);
                    for found in needle.find_iter(bytes.get(..mine).unwrap_or(bytes)) {
                        if !hit(index, at + found as u64) {
                            return missed;
                        }
                    }
                }
                at += SEARCHED.min(bytes.len() as u64);
            }
        }
        missed
    }

    /// The address at which a byte of the file is loaded.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        self.image.loaded_segments().find_map(|s| {
            let at = offset.checked_sub(s.offset)?;
            (at < s.file_size).then(|| s.address.checked_add(at)).flatten()
        })
    }

    /// Where a byte of the file stands, in the terms of a claim.
    pub(super) fn place(&self, offset: u64) -> Option<Place> {
        let section = self.image.sections.iter().find_map(|s| {
            let at = offset.checked_sub(s.offset)?;
            (s.has_data() && at < s.size && s.flags & elf::SHF_ALLOC.0 != 0)
                .then(|| Place { section: String::from_utf8_lossy(&s.name).into(), offset: at })
        });
        section.or_else(|| {
            self.image.segments.iter().enumerate().find_map(|(index, s)| {
                let at = offset.checked_sub(s.offset)?;
                (s.kind == elf::PT_LOAD && at < s.file_size)
                    .then(|| Place { section: format!("segment {index}").into(), offset: at })
            })
        })
    }

    /// Bytes before a file offset (at most one), for telling the start of a string.
    pub(super) fn byte_before(&self, offset: u64) -> Option<u8> {
        let mut byte = [0];
        let got = self.image.input.read_at(offset.checked_sub(1)?, &mut byte).ok()?;
        (got == 1).then_some(byte[0])
    }

    /// The string at a file offset up to its NUL, if that comes within `limit` bytes.
    pub(super) fn c_string_in_file(&self, offset: u64, limit: usize) -> Option<Vec<u8>> {
        let mut size = 512usize;
        loop {
            let mut bytes = vec![0; size.min(limit.saturating_add(1))];
            let got = self.image.input.read_at(offset, &mut bytes).ok()?;
            let bytes = bytes.get(..got)?;
            if let Some(end) = memchr::memchr(0, bytes) {
                return bytes.get(..end).map(<[u8]>::to_vec);
            }
            if got < size || size > limit {
                return None;
            }
            size *= 8;
        }
    }
}
