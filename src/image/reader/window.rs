//! The window of a section that is in memory: small after a jump, doubling while reading goes on in order.

use crate::image::Input;
use crate::image::relocate::Relocations;
use crate::image::sections::{Inflater, Packed};
use std::io::Read;
use std::ops::Range;

/// Window after a jump.
pub(super) const JUMP: u64 = 256;
/// A jump forward over no more than this, a page, counts as going on in order: the page is fetched anyway, and small
/// reads cost more than the bytes between.
const NEAR: u64 = 4 << 10;
/// Largest window.
const WINDOW: u64 = 64 << 10;
/// Sections up to this size are fetched by one read.
const SMALL: u64 = 8 << 10;
/// No relocated field is longer.
pub(super) const FIELD: u64 = 8;
/// Bytes that a stream keeps behind the place last read.
const BEHIND: u64 = 64 << 10;

/// One window of a section, and where its bytes come from.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) bytes: Vec<u8>,
    pub(super) start: u64,
    /// Up to where (in the section) `bytes` may be read: behind lie bytes not yet relocated.
    pub(super) end: u64,
    pub(super) next: u64,
    pub(super) source: Source,
    pub(super) relocations: Option<Relocations>,
    pub(super) unapplied: Vec<Range<u64>>,
}

/// Where the bytes of a section come from.
#[derive(Debug)]
pub(super) enum Source {
    File(Input),
    Whole,
    Stream { packed: Packed, inflater: Option<Box<Inflater>>, budget: u64 },
}

impl Window {
    /// Moves it so that it holds `at..at + least` of a section of `len` bytes.
    pub(super) fn move_to(&mut self, at: u64, least: u64, len: u64) -> Result<(), String> {
        if at.saturating_add(least) > len {
            return Err("the section ends there".to_owned());
        }
        match &mut self.source {
            Source::Whole => Ok(()),
            Source::File(input) => {
                let going_on = at <= self.end.saturating_add(NEAR) && at >= self.start && self.end > 0;
                let size = if len <= SMALL {
                    len
                } else if going_on {
                    (self.next * 2).min(WINDOW)
                } else {
                    JUMP
                };
                self.next = size;
                // Reading in order that has gone on for a while will go on.
                if going_on && size == WINDOW {
                    input.goes_on(self.end.saturating_sub(WINDOW), at, at.saturating_add(WINDOW));
                }
                let start = if len <= SMALL { 0 } else { at };
                let end = start.saturating_add(size.max(least)).min(len);
                let pad = if self.relocations.is_some() { FIELD } else { 0 };
                let (from, to) = (start.saturating_sub(pad), end.saturating_add(pad).min(len));
                self.bytes.resize((to - from) as usize, 0);
                let got = input.read_at(from, &mut self.bytes).map_err(|e| e.to_string());
                let got = got.inspect_err(|_| (self.start, self.end) = (0, 0))?;
                self.bytes.truncate(got);
                (self.start, self.end) = (from, end.min(from + got as u64));
                self.unapplied.clear();
                if pad > 0 {
                    self.relocate(from..end);
                    let front = (start - from).min(self.bytes.len() as u64);
                    self.bytes.drain(..front as usize);
                    self.start = start;
                }
                Ok(())
            }
            Source::Stream { .. } => self.stream_to(at, least, len),
        }
    }

    /// Inflates on until the window holds `at..at + least`.
    fn stream_to(&mut self, at: u64, least: u64, len: u64) -> Result<(), String> {
        let wanted = at.saturating_add(least);
        if at < self.start {
            // Back to what has passed by: from the start again, as long as the budget lasts.
            let Source::Stream { inflater, .. } = &mut self.source else { return Ok(()) };
            *inflater = None;
        }
        let mut chunk = vec![0; WINDOW as usize];
        loop {
            let Source::Stream { packed, inflater, budget } = &mut self.source else { return Ok(()) };
            if inflater.is_none() {
                self.bytes.clear();
                (self.start, self.end) = (0, 0);
                self.unapplied.clear();
            }
            if self.end >= wanted {
                return Ok(());
            }
            let stream = inflater.get_or_insert_with(|| Box::new(packed.inflater()));
            if *budget == 0 {
                return Err("too many passes over a compressed section".to_owned());
            }
            let got = stream.read(&mut chunk).map_err(|e| e.to_string())?;
            *budget = budget.saturating_sub(got as u64);
            let held = self.start + self.bytes.len() as u64;
            if got == 0 {
                return Err(format!("the compressed data ends after {held} of {len} bytes"));
            }
            // What lies far behind is let go.
            let keep_from = at.saturating_sub(BEHIND).min(self.end);
            if keep_from > self.start.saturating_add(BEHIND) {
                self.bytes.drain(..(keep_from - self.start) as usize);
                self.start = keep_from;
                self.unapplied.retain(|r| r.end > keep_from);
            }
            self.bytes.extend_from_slice(&chunk[..got]);
            let whole = self.start + self.bytes.len() as u64;
            let ready = if self.relocations.is_none() || whole == len {
                whole
            } else {
                whole.saturating_sub(FIELD).max(self.end)
            };
            let fields = self.end..ready;
            self.relocate(fields);
            self.end = ready;
        }
    }

    pub(super) fn relocate(&mut self, fields: Range<u64>) {
        if let Some(relocations) = &mut self.relocations {
            relocations.apply(self.start, &mut self.bytes, fields, &mut self.unapplied);
        }
    }
}
