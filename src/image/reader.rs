//! A `gimli` reader over a section that is never in memory as a whole.
//!
//! [`SectionData`] holds one window of the section. A read outside of it moves the window by one
//! positioned read: small after a jump (a unit's header and root entry fit), doubling while reading goes
//! on in order. Compressed sections are inflated whole while they are small, and otherwise pass by as a
//! stream. Relocations of `ET_REL` files are applied to the window, so that nobody can forget them.

use super::relocate::Relocations;
use super::sections::{Compression, packed};
use super::{Image, ReadError, Section};
use gimli::{ReaderOffsetId, RunTimeEndian};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;
use window::{FIELD, JUMP, Source, Window};

mod window;

/// Largest run of bytes handed out in one piece.
const PIECE: u64 = 16 << 20;

/// One section's bytes, read on demand.
#[derive(Debug)]
pub struct SectionData {
    /// Name of the section.
    pub name: Arc<str>,
    /// Its index in the table of sections.
    pub index: u32,
    /// How it is compressed in the file.
    pub compression: Option<Compression>,
    /// Bytes of it that the file lacks, being cut off.
    pub cut: u64,
    /// Bytes of the file that it takes to read it whole: its own and those of its relocations.
    pub file_bytes: u64,
    endian: RunTimeEndian,
    len: u64,
    window: RefCell<Window>,
    failure: RefCell<Option<String>>,
    moves: Cell<u64>,
}

impl SectionData {
    /// Opens a section. Compressed ones are inflated at once if that takes no more than `memory`
    /// bytes, from which it is deducted, and otherwise while reading.
    ///
    /// Errors: no data in this file, a bad compression header, a claim beyond the limits, damaged data.
    pub fn open(image: &Image, section: &Section, memory: &mut u64) -> Result<Self, ReadError> {
        let name: Arc<str> = String::from_utf8_lossy(&section.name).into();
        let what = format!("section {name}");
        if !section.has_data() {
            return Err(ReadError::Damaged { what, why: "holds no data in this file".to_owned() });
        }
        let relocations = Relocations::of(image, section)?;
        let relocation_bytes = relocations.as_ref().map_or(0, |r| r.bytes);
        let endian = if image.header.little_endian { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let packed = packed(image, section)?;
        let compression = packed.as_ref().map(|p| p.how);
        let mut bytes = Vec::new();
        let mut cut = 0;
        let (source, len) = match packed {
            None => {
                // A section that runs past the end of the file is read as far as it goes.
                let there = image.input.len().saturating_sub(section.offset).min(section.size);
                cut = section.size - there;
                let part = image.input.part(section.offset, there).ok_or(ReadError::OutOfFile {
                    what,
                    offset: section.offset,
                    size: section.size,
                    file: image.input.len(),
                })?;
                (Source::File(part), there)
            }
            Some(packed) if packed.size <= *memory => {
                *memory -= packed.size;
                bytes = packed.inflate()?;
                (Source::Whole, packed.size)
            }
            Some(packed) => {
                let len = packed.size;
                (Source::Stream { packed, inflater: None, budget: len.saturating_mul(4) }, len)
            }
        };
        let mut window =
            Window { bytes, start: 0, end: 0, next: JUMP, source, relocations, unapplied: vec![] };
        if matches!(window.source, Source::Whole) {
            window.end = len;
            window.relocate(0..len);
        }
        Ok(Self {
            name,
            index: u32::try_from(section.index).unwrap_or(u32::MAX),
            compression,
            cut,
            file_bytes: (section.size - cut).saturating_add(relocation_bytes),
            endian,
            len,
            window: RefCell::new(window),
            failure: RefCell::new(None),
            moves: Cell::new(0),
        })
    }

    /// Opens a compressed section as a stream, whatever its size: for reading once, in order.
    pub fn open_forward(image: &Image, section: &Section) -> Result<Self, ReadError> {
        Self::open(image, section, &mut 0)
    }

    /// A reader over the whole section.
    pub fn reader(&self) -> SectionReader<'_> {
        SectionReader { data: self, at: 0, end: self.len }
    }

    /// A reader from `offset` to the end of the section (empty past the end).
    pub fn reader_at(&self, offset: u64) -> SectionReader<'_> {
        SectionReader { data: self, at: offset.min(self.len), end: self.len }
    }

    /// Size in bytes, inflated.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Why the last [`gimli::Error::Io`] came about.
    pub fn take_failure(&self) -> Option<String> {
        self.failure.take()
    }

    /// How often the window was moved.
    pub fn moves(&self) -> u64 {
        self.moves.get()
    }

    /// The bytes from `offset` up to a NUL, or `None` where none follows. At most `limit` bytes are
    /// kept; the second value tells whether that cut the string.
    pub fn c_string(&self, offset: u64, limit: usize) -> gimli::Result<Option<(Vec<u8>, bool)>> {
        let mut out = Vec::new();
        let mut at = offset;
        while at < self.len {
            let found = self.with(at, 1, |bytes| {
                let end = memchr::memchr(0, bytes);
                let piece = &bytes[..end.unwrap_or(bytes.len())];
                out.extend_from_slice(&piece[..piece.len().min(limit - out.len())]);
                (piece.len() as u64, end.is_some(), out.len())
            })?;
            let (taken, ended, kept) = found;
            if ended {
                return Ok(Some((out, kept as u64 != at - offset + taken)));
            }
            at += taken;
            if kept == limit {
                // Not looking for the end: the string is too long either way.
                return Ok(Some((out, true)));
            }
        }
        Ok(None)
    }

    /// Hands the bytes that are at hand from `offset` on (at least one) to `use_bytes`.
    ///
    /// Errors: the section ends there or cannot be read; [`Self::take_failure`] tells why.
    #[inline]
    pub fn piece<T>(&self, offset: u64, use_bytes: impl FnOnce(&[u8]) -> T) -> gimli::Result<T> {
        self.with(offset, 1, use_bytes)
    }

    fn fail(&self, why: impl Into<String>) -> gimli::Error {
        *self.failure.borrow_mut() = Some(why.into());
        gimli::Error::Io
    }

    /// Hands the bytes from `at` on, at least `least` (at most [`FIELD`] × 2), to `use_bytes`.
    #[inline]
    fn with<T>(&self, at: u64, least: u64, use_bytes: impl FnOnce(&[u8]) -> T) -> gimli::Result<T> {
        let mut window = self.window.borrow_mut();
        if at < window.start || at.saturating_add(least) > window.end {
            self.moves.set(self.moves.get() + 1);
            window.move_to(at, least, self.len).map_err(|why| self.fail(why))?;
        }
        let bytes = window.bytes.get((at - window.start) as usize..(window.end - window.start) as usize);
        match bytes {
            Some(bytes) if bytes.len() as u64 >= least => Ok(use_bytes(bytes)),
            _ => Err(self.fail("the file ends there")),
        }
    }

    /// Whether a relocation that could not be applied touches these bytes.
    #[inline]
    fn check(&self, range: Range<u64>) -> gimli::Result<()> {
        let window = self.window.borrow();
        if window.unapplied.is_empty() {
            return Ok(());
        }
        if window.unapplied.iter().any(|r| r.start < range.end && range.start < r.end) {
            drop(window);
            return Err(self.fail("a relocation there is of an unknown type or damaged"));
        }
        Ok(())
    }
}

/// A place in a section, and where reading stops.
#[derive(Debug, Clone, Copy)]
pub struct SectionReader<'a> {
    data: &'a SectionData,
    at: u64,
    end: u64,
}

impl SectionReader<'_> {
    /// Offset in the section.
    pub fn offset(&self) -> u64 {
        self.at
    }

    #[inline]
    fn take(&self, len: u64) -> gimli::Result<u64> {
        match self.at.checked_add(len) {
            Some(end) if end <= self.end => Ok(end),
            _ => Err(gimli::Error::UnexpectedEof(ReaderOffsetId(self.at))),
        }
    }

    fn all(&self) -> gimli::Result<Vec<u8>> {
        let bytes = self.bytes(PIECE)?;
        self.data.check(self.at..self.end)?;
        Ok(bytes)
    }

    /// The next bytes, if there are so many.
    pub fn bytes_ahead(&self, count: u64) -> Option<Vec<u8>> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.end)?;
        Self { end, ..*self }.bytes(count).ok()
    }

    /// All bytes up to where reading stops, if these are no more than `limit`. Relocations of unknown type
    /// (thread-local offsets are) are left out without notice.
    pub fn bytes(&self, limit: u64) -> gimli::Result<Vec<u8>> {
        let len = self.end - self.at;
        if len > limit {
            return Err(self.data.fail(format!("{len} bytes in one piece are too many")));
        }
        let mut out = Vec::new();
        let mut at = self.at;
        while at < self.end {
            let left = self.end - at;
            at += self.data.with(at, 1, |bytes| {
                let piece = &bytes[..bytes.len().min(left as usize)];
                out.extend_from_slice(piece);
                piece.len() as u64
            })?;
        }
        Ok(out)
    }
}

impl gimli::Reader for SectionReader<'_> {
    type Endian = RunTimeEndian;
    type Offset = u64;

    fn endian(&self) -> RunTimeEndian {
        self.data.endian
    }

    fn len(&self) -> u64 {
        self.end - self.at
    }

    fn empty(&mut self) {
        self.end = self.at;
    }

    fn truncate(&mut self, len: u64) -> gimli::Result<()> {
        self.end = self.take(len)?;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> u64 {
        self.at.saturating_sub(base.at)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.at)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<u64> {
        (self.at..=self.end).contains(&id.0).then(|| id.0 - self.at)
    }

    fn find(&self, byte: u8) -> gimli::Result<u64> {
        let mut at = self.at;
        while at < self.end {
            let left = (self.end - at) as usize;
            let (found, seen) = self.data.with(at, 1, |bytes| {
                let piece = &bytes[..bytes.len().min(left)];
                (memchr::memchr(byte, piece), piece.len())
            })?;
            if let Some(found) = found {
                return Ok(at - self.at + found as u64);
            }
            at += seen as u64;
        }
        Err(gimli::Error::UnexpectedEof(ReaderOffsetId(self.at)))
    }

    fn skip(&mut self, len: u64) -> gimli::Result<()> {
        self.at = self.take(len)?;
        Ok(())
    }

    fn split(&mut self, len: u64) -> gimli::Result<Self> {
        let end = self.take(len)?;
        let first = Self { end, ..*self };
        self.at = end;
        Ok(first)
    }

    fn to_slice(&self) -> gimli::Result<Cow<'_, [u8]>> {
        self.all().map(Cow::Owned)
    }

    fn to_string(&self) -> gimli::Result<Cow<'_, str>> {
        String::from_utf8(self.all()?).map(Cow::Owned).map_err(|_| gimli::Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> gimli::Result<Cow<'_, str>> {
        Ok(Cow::Owned(String::from_utf8_lossy(&self.all()?).into_owned()))
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> gimli::Result<()> {
        let len = buffer.len() as u64;
        let end = self.take(len)?;
        if len > 2 * FIELD {
            let piece = Self { end, ..*self };
            buffer.copy_from_slice(&piece.all()?);
        } else {
            self.data.with(self.at, len, |bytes| buffer.copy_from_slice(&bytes[..buffer.len()]))?;
        }
        self.data.check(self.at..end)?;
        self.at = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
