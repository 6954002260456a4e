//! Programs written byte by byte for the tests: a fixed-address ELF file with constants and data like nginx's.

use crate::image::bytes::Format;
use crate::image::{Image, Input};
use crate::limits::Limits;

const CONSTANTS: u64 = 0x40_1000;
const DATA: u64 = 0x60_2000;

/// What to write.
pub(super) struct Program {
    pub(super) format: Format,
    pub(super) constants: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl Program {
    pub(super) fn new(format: Format) -> Self {
        Self { format, constants: b"\0".to_vec(), data: Vec::new() }
    }

    /// Adds a NUL-terminated constant and returns its address.
    pub(super) fn text(&mut self, text: &str) -> u64 {
        let at = CONSTANTS + self.constants.len() as u64;
        self.constants.extend_from_slice(text.as_bytes());
        self.constants.push(0);
        at
    }

    /// Adds words to the data and returns their address.
    pub(super) fn words(&mut self, words: &[u64]) -> u64 {
        let at = DATA + self.data.len() as u64;
        for word in words {
            match (self.format.is_64, self.format.little_endian) {
                (true, true) => self.data.extend(word.to_le_bytes()),
                (true, false) => self.data.extend(word.to_be_bytes()),
                (false, true) => self.data.extend((*word as u32).to_le_bytes()),
                (false, false) => self.data.extend((*word as u32).to_be_bytes()),
            }
        }
        at
    }

    /// Adds a directive list and returns its address.
    pub(super) fn directives(&mut self, names: &[&str]) -> u64 {
        let mut words = Vec::new();
        for name in names {
            let text = self.text(name);
            words.extend([name.len() as u64, text, 0, 0, 0, 0, 0]);
        }
        words.extend([0; 7]);
        self.words(&words)
    }

    /// Adds a module structure of version 1.9.11 or later and returns its address.
    pub(super) fn module(&mut self, kind: [u8; 4], version: u64, signature: u64, commands: u64) -> u64 {
        let unset = self.format.wrap(u64::MAX);
        let kind = u64::from(u32::from_le_bytes(kind));
        let mut words = vec![unset, unset, 0, 0, 0, version, signature, 0, commands, kind];
        words.resize(25, 0);
        self.words(&words)
    }

    /// Adds a module structure of a version before 1.9.11 and returns its address.
    pub(super) fn old_module(&mut self, kind: [u8; 4], commands: u64) -> u64 {
        let kind = u64::from(u32::from_le_bytes(kind));
        let mut words = vec![0, 0, 0, 0, 0, 0, 1, 0, commands, kind];
        words.resize(25, 0);
        self.words(&words)
    }

    /// The file: headers, one read-only segment, one writable.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let f = self.format;
        let mut out = Vec::new();
        let number = |out: &mut Vec<u8>, value: u64, size: usize| {
            let bytes = value.to_le_bytes();
            let mut bytes = bytes[..size].to_vec();
            if !f.little_endian {
                bytes.reverse();
            }
            out.extend(bytes);
        };
        let word = if f.is_64 { 8 } else { 4 };
        let (header, entry) = if f.is_64 { (64, 56) } else { (52, 32) };
        out.extend(b"\x7fELF");
        out.extend([if f.is_64 { 2 } else { 1 }, if f.little_endian { 1 } else { 2 }, 1]);
        out.resize(16, 0);
        let machine = if f.is_64 { 62 } else { 3 };
        for (value, size) in
            [(2, 2), (machine, 2), (1, 4), (CONSTANTS, word), (header, word), (0, word), (0, 4)]
        {
            number(&mut out, value, size);
        }
        for value in [header, entry, 2, 0, 0, 0] {
            number(&mut out, value, 2);
        }
        let constants_at = 0x1000u64;
        let data_at = (constants_at + self.constants.len() as u64).next_multiple_of(0x1000);
        for (flags, offset, address, size) in [
            (4, constants_at, CONSTANTS, self.constants.len() as u64),
            (6, data_at, DATA, self.data.len() as u64),
        ] {
            number(&mut out, 1, 4);
            if f.is_64 {
                number(&mut out, flags, 4);
            }
            for value in [offset, address, address, size, size] {
                number(&mut out, value, word);
            }
            if !f.is_64 {
                number(&mut out, flags, 4);
            }
            number(&mut out, 0x1000, word);
        }
        out.resize(constants_at as usize, 0);
        out.extend(&self.constants);
        out.resize(data_at as usize, 0);
        out.extend(&self.data);
        out
    }
}

pub(super) fn image(bytes: Vec<u8>) -> Image {
    Image::open(Input::memory(bytes), &Limits::default()).unwrap()
}

const FEATURES: &str = "0000111111010111001110001011000110";

/// A program like nginx 1.22.1 with the modules named, all sharing one signature but those in `apart`.
pub(super) fn nginx(
    format: Format,
    modules: &[(&str, [u8; 4], &[&str])],
    apart: &[usize],
    texts: &[&str],
) -> Program {
    let mut p = Program::new(format);
    for text in texts {
        p.text(text);
    }
    let signature = format!("{}{FEATURES}", if format.is_64 { "8,4,8," } else { "4,4,4," });
    let shared = p.text(&signature);
    let mut table = Vec::new();
    let mut names = Vec::new();
    for (n, (name, kind, commands)) in modules.iter().enumerate() {
        let own = if apart.contains(&n) { p.text(&signature) } else { shared };
        let commands = if commands.is_empty() { 0 } else { p.directives(commands) };
        table.push(p.module(*kind, 1_022_001, own, commands));
        names.push(p.text(name));
    }
    // What stands directly before the table and points at a structure must not be taken for a part of it.
    let stray = table.last().copied().unwrap_or(0);
    p.words(&[stray]);
    table.push(0);
    p.words(&table);
    names.push(0);
    p.words(&names);
    p
}
