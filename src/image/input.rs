//! Where an image's bytes come from: a file, a part of one, or memory.

use super::ReadError;
use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A readable run of bytes with positioned reads. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Input {
    bytes: Bytes,
    start: u64,
    len: u64,
}

#[derive(Clone)]
enum Bytes {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

impl fmt::Debug for Bytes {
    /// Which of the two it is; not the bytes, of which there may be many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(_) => "File",
            Self::Memory(_) => "Memory",
        })
    }
}

/// Bytes fetched ahead of reading in order, as often as so many have been read.
const AHEAD: u64 = 512 << 10;

impl Input {
    /// A whole file. The caller has made sure that it is a regular one.
    pub fn file(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { bytes: Bytes::File(Arc::new(file)), start: 0, len })
    }

    /// A file that others read, too, as long as it is now.
    pub fn shared(file: Arc<File>) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { bytes: Bytes::File(file), start: 0, len })
    }

    /// Bytes in memory.
    pub fn memory(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into();
        let len = bytes.len() as u64;
        Self { bytes: Bytes::Memory(bytes), start: 0, len }
    }

    /// A part of this input, or `None` if it does not lie within.
    pub fn part(&self, offset: u64, len: u64) -> Option<Self> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        Some(Self { bytes: self.bytes.clone(), start: self.start.checked_add(offset)?, len })
    }

    /// Whether a file is held open for it.
    pub fn holds_file(&self) -> bool {
        matches!(self.bytes, Bytes::File(_))
    }

    /// Size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tells the system that what will be read lies here and there, so that it fetches nothing else from the disk. Only
    /// advice: where it is not taken, reading goes on all the same.
    pub fn expect_jumps(&self) {
        if let Bytes::File(file) = &self.bytes {
            let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
        }
    }

    /// Of reading in order, which has come from `before` to `at`: tells the system now and then to begin fetching what lies
    /// from `next` on. Told to expect jumps, it does not do so by itself.
    pub fn goes_on(&self, before: u64, at: u64, next: u64) {
        if before / AHEAD == at / AHEAD {
            return;
        }
        let (offset, left) = (next, self.len.saturating_sub(next).min(AHEAD));
        if let (Bytes::File(file), Some(size)) = (&self.bytes, NonZeroU64::new(left)) {
            let _ = rustix::fs::fadvise(file, self.start + offset, Some(size), rustix::fs::Advice::WillNeed);
        }
    }

    /// Reads as much as there is at `offset`, up to the buffer's length; 0 past the end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(left) = self.len.checked_sub(offset) else { return Ok(0) };
        let want = left.min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..want];
        match &self.bytes {
            Bytes::Memory(bytes) => {
                let from = (self.start + offset) as usize;
                buffer.copy_from_slice(&bytes[from..from + want]);
                Ok(want)
            }
            Bytes::File(file) => {
                let mut got = 0;
                while got < want {
                    match file.read_at(&mut buffer[got..], self.start + offset + got as u64) {
                        Ok(0) => break,
                        Ok(n) => got += n,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(got)
            }
        }
    }

    /// Reads exactly `size` bytes. Memory is only taken for bytes that the file really has.
    pub fn read_vec(&self, offset: u64, size: u64, limit: u64, what: &str) -> Result<Vec<u8>, ReadError> {
        let outside = || ReadError::OutOfFile { what: what.to_owned(), offset, size, file: self.len };
        if offset.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(outside());
        }
        if size > limit {
            return Err(ReadError::TooLarge { what: what.to_owned(), size, limit });
        }
        let mut buffer = vec![0; size as usize];
        self.read_exact_at(offset, &mut buffer, what)?;
        Ok(buffer)
    }

    /// Fills the buffer with what lies at `offset`.
    pub fn read_exact_at(&self, offset: u64, buffer: &mut [u8], what: &str) -> Result<(), ReadError> {
        let size = buffer.len();
        match self.read_at(offset, buffer) {
            Ok(got) if got == size => Ok(()),
            Ok(_) => {
                Err(ReadError::OutOfFile { what: what.to_owned(), offset, size: size as u64, file: self.len })
            }
            Err(error) => Err(ReadError::Io { what: what.to_owned(), why: error.to_string() }),
        }
    }
}
