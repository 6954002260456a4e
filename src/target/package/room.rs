//! What opening one target may cost, with everything that is inside it: an archive of archives is bounded as one.

use super::spool::Spool;
use crate::image::Input;
use crate::limits::Limits;
use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::rc::Rc;

/// So many times the bytes of one package or layer may be read in all: images have many layers.
const ALL: u64 = 4;
/// Bytes of all names together. A million of common length take two thirds of it.
const MOST_NAMES: u64 = 128 << 20;

/// The limits, and what is left of them.
#[derive(Debug)]
pub(super) struct Room {
    /// The limits of one package, layer, program or name.
    pub limits: Limits,
    /// Bytes that may still be read of compressed streams.
    left: Rc<Cell<u64>>,
    /// Bytes of names that may still be kept.
    names: Cell<u64>,
    /// Where programs out of streams are kept, one behind the other.
    spool: RefCell<Option<Spool>>,
}

impl Room {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            left: Rc::new(Cell::new(limits.package_bytes.saturating_mul(ALL))),
            names: Cell::new(MOST_NAMES),
            spool: RefCell::default(),
        }
    }

    /// A stream that ends with an error after so many bytes as one package may have, or all of them together.
    pub(super) fn bounded<R: Read>(&self, inner: R) -> Bounded<R> {
        let limit = self.limits.package_bytes;
        Bounded { inner, left: limit, limit, all: Rc::clone(&self.left) }
    }

    /// Takes the room that a name needs; false if there is none.
    pub(super) fn name(&self, name: &str) -> bool {
        match self.names.get().checked_sub(name.len() as u64) {
            Some(left) => self.names.set(left),
            None => return false,
        }
        true
    }

    /// Copies a whole file of a stream; more than `limit` bytes are an error.
    pub(super) fn keep(&self, from: impl Read, limit: u64) -> io::Result<Input> {
        let mut spool = self.spool.borrow_mut();
        let spool = match &mut *spool {
            Some(spool) => spool,
            none => none.insert(Spool::new()?),
        };
        let room = self.limits.package_bytes.saturating_sub(spool.len());
        let limit = limit.min(room);
        spool.keep(from, limit)?.ok_or_else(|| {
            let most = self.limits.package_bytes;
            io::Error::other(if limit == room {
                format!("refused: all programs out of compressed packages have more than {most} bytes")
            } else {
                format!("more than {limit} bytes")
            })
        })
    }
}

/// A stream that ends with an error after so many bytes.
pub(super) struct Bounded<R> {
    inner: R,
    left: u64,
    limit: u64,
    all: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        let over = |limit| io::Error::other(format!("more than {limit} bytes when decompressed"));
        self.left = self.left.checked_sub(got as u64).ok_or_else(|| over(self.limit))?;
        let all = self.all.get().checked_sub(got as u64);
        self.all.set(all.unwrap_or_default());
        all.ok_or_else(|| {
            let limit = self.limit.saturating_mul(ALL);
            io::Error::other(format!("all packages in it have more than {limit} bytes when decompressed"))
        })?;
        Ok(got)
    }
}
