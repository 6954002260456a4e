//! Lower bounds for `benches/compare.sh`: programs that do nothing but what no reader of the same facts can leave out.
//!
//! ```text
//! lower-bound units FILE     headers, root entries, strings and ranges of all units
//! lower-bound code FILE      the pages of a stripped program that tell of it, and each instruction decoded once
//! lower-bound inflate FILE   .debug_info inflated once
//! ```
//!
//! They trust the file, keep next to nothing, understand nothing, and print a sum so that no work can be left out.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, path] = arguments.as_slice() else { return Err("usage: lower-bound WHAT FILE".into()) };
    let file = Elf::open(path)?;
    let sum = match what.as_str() {
        "units" => units(&file)?,
        "code" => code(&file)?,
        "inflate" => inflate(&file)?,
        _ => return Err("WHAT is units, code or inflate".into()),
    };
    println!("{sum}");
    Ok(())
}

/// A 64-bit little-endian file: sections by name, as offset, size and address.
struct Elf {
    file: File,
    sections: HashMap<String, (u64, u64, u64)>,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

impl Elf {
    fn open(path: &str) -> Result<Self> {
        let file = File::open(path)?;
        let mut header = [0; 64];
        file.read_exact_at(&mut header, 0)?;
        let count = number(&header, 60, 2) as usize;
        let mut table = vec![0; count * 64];
        file.read_exact_at(&mut table, number(&header, 40, 8))?;
        let entry = |index: usize| &table[index * 64..index * 64 + 64];
        let names = entry(number(&header, 62, 2) as usize);
        let mut strings = vec![0; number(names, 32, 8) as usize];
        file.read_exact_at(&mut strings, number(names, 24, 8))?;
        let sections = (0..count)
            .map(|index| {
                let section = entry(index);
                let name = &strings[number(section, 0, 4) as usize..];
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                let place = (number(section, 24, 8), number(section, 32, 8), number(section, 16, 8));
                (String::from_utf8_lossy(name).into_owned(), place)
            })
            .collect();
        Ok(Self { file, sections })
    }

    fn window(&self, name: &str) -> Window<'_> {
        let (offset, size, _) = self.sections.get(name).copied().unwrap_or_default();
        Window { file: &self.file, offset, size, start: 0, bytes: Vec::new(), next: 256 }
    }

    fn whole(&self, name: &str) -> Result<Vec<u8>> {
        let (offset, size, _) = self.sections.get(name).copied().unwrap_or_default();
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

/// A page: what is skipped within it is fetched anyway.
const NEAR: u64 = 4 << 10;

/// A section read piece by piece: small after a jump, doubling while it goes on.
struct Window<'a> {
    file: &'a File,
    offset: u64,
    size: u64,
    start: u64,
    bytes: Vec<u8>,
    next: u64,
}

impl Window<'_> {
    fn at(&mut self, at: u64, least: u64) -> Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        if at < self.start || at + least > end {
            let goes_on = at >= self.start && at <= end + NEAR && end > 0;
            self.next = if goes_on { (self.next * 2).min(64 << 10) } else { 256 };
            let size = self.next.max(least).min(self.size.saturating_sub(at));
            self.bytes.resize(size as usize, 0);
            self.file.read_exact_at(&mut self.bytes, self.offset + at)?;
            self.start = at;
        }
        Ok(&self.bytes[(at - self.start) as usize..])
    }
}

fn uleb(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

/// Attributes (name and form) of the declaration of a code in a table.
fn abbreviation(window: &mut Window<'_>, mut table: u64, code: u64) -> Result<Vec<(u64, u64, i64)>> {
    loop {
        // No declaration of a compiler is longer.
        let left = (window.size - table).min(512);
        let bytes = window.at(table, left)?;
        let mut at = 0;
        while at + 256 < bytes.len() || left < 512 {
            let found = uleb(bytes, &mut at);
            if found == 0 {
                return Err("no such abbreviation".into());
            }
            uleb(bytes, &mut at);
            at += 1;
            let mut attributes = Vec::new();
            loop {
                if found != code {
                    // Pairs of one byte each need no decoding.
                    while let [name, form, ..] = bytes[at..]
                        && (name | form) < 0x80
                        && form != 0x21
                        && (name | form) != 0
                    {
                        at += 2;
                    }
                }
                let (name, form) = (uleb(bytes, &mut at), uleb(bytes, &mut at));
                let constant = if form == 0x21 { uleb(bytes, &mut at) as i64 } else { 0 };
                if (name, form) == (0, 0) {
                    break;
                }
                if found == code {
                    attributes.push((name, form, constant));
                }
            }
            if found == code {
                return Ok(attributes);
            }
        }
        table += at as u64;
    }
}

fn units(file: &Elf) -> Result<u64> {
    let (mut info, mut abbrev) = (file.window(".debug_info"), file.window(".debug_abbrev"));
    let (mut rnglists, mut ranges) = (file.window(".debug_rnglists"), file.window(".debug_ranges"));
    let mut strings: [BTreeSet<u64>; 2] = Default::default();
    let (mut at, mut sum) = (0, 0);
    while at < info.size {
        let least = (info.size - at).min(256);
        let unit = info.at(at, least)?;
        let length = number(unit, 0, 4) + 4;
        let version = number(unit, 4, 2);
        let (table, mut place) =
            if version >= 5 { (number(unit, 8, 4), 12) } else { (number(unit, 6, 4), 11) };
        let code = uleb(unit, &mut place);
        let (mut low, mut list) = (0, None);
        for (name, form, _) in abbreviation(&mut abbrev, table, code)? {
            let value = match form {
                0x08 => {
                    let end = unit[place..].iter().position(|&byte| byte == 0).unwrap_or(0);
                    place += end + 1;
                    end as u64
                }
                0x0b | 0x0c => (number(unit, place, 1), place += 1).0,
                0x05 => (number(unit, place, 2), place += 2).0,
                0x06 | 0x17 | 0x0e | 0x1f => (number(unit, place, 4), place += 4).0,
                0x01 | 0x07 => (number(unit, place, 8), place += 8).0,
                0x0f => uleb(unit, &mut place),
                0x19 | 0x21 => 0,
                other => return Err(format!("form {other:#x}").into()),
            };
            match (name, form) {
                (_, 0x0e) => drop(strings[0].insert(value)),
                (_, 0x1f) => drop(strings[1].insert(value)),
                (0x11, _) => low = value,
                (0x12, _) => sum += value,
                (0x55, _) => list = Some(value),
                _ => {}
            }
        }
        if let Some(list) = list {
            sum += if version >= 5 { range_list(&mut rnglists, list)? } else { old_list(&mut ranges, list)? };
        }
        sum += low;
        at += length;
    }
    for (name, offsets) in [".debug_str", ".debug_line_str"].iter().zip(&strings) {
        let mut window = file.window(name);
        for &offset in offsets {
            let mut from = offset;
            loop {
                let bytes = window.at(from, 1)?;
                from += bytes.len() as u64;
                if let Some(end) = memchr::memchr(0, bytes) {
                    sum += end as u64;
                    break;
                }
            }
        }
    }
    Ok(sum)
}

fn range_list(window: &mut Window<'_>, mut at: u64) -> Result<u64> {
    let mut sum = 0;
    loop {
        let least = (window.size - at).min(20);
        let bytes = window.at(at, least)?;
        let mut used = 1;
        match bytes[0] {
            0 => return Ok(sum),
            4 => sum += uleb(bytes, &mut used) + uleb(bytes, &mut used),
            5 => (sum, used) = (sum + number(bytes, 1, 8), 9),
            6 => (sum, used) = (sum + number(bytes, 9, 8) - number(bytes, 1, 8), 17),
            7 => {
                used = 9;
                sum += uleb(bytes, &mut used);
            }
            other => return Err(format!("entry {other} of a range list").into()),
        }
        at += used as u64;
    }
}

fn old_list(window: &mut Window<'_>, mut at: u64) -> Result<u64> {
    let mut sum = 0u64;
    loop {
        let bytes = window.at(at, 16)?;
        let (start, end) = (number(bytes, 0, 8), number(bytes, 8, 8));
        if (start, end) == (0, 0) {
            return Ok(sum);
        }
        sum = sum.wrapping_add(end.wrapping_sub(start));
        at += 16;
    }
}

/// What tells of a stripped program: its dynamic symbols, relocations, constants, data, frames and code. The code is
/// decoded.
fn code(file: &Elf) -> Result<u64> {
    const TELLING: [&str; 10] = [
        ".dynamic",
        ".dynsym",
        ".dynstr",
        ".rela.dyn",
        ".rodata",
        ".eh_frame",
        ".data.rel.ro",
        ".data",
        ".comment",
        ".note.gnu.build-id",
    ];
    let mut sum = 0;
    for name in TELLING {
        sum += file.whole(name)?.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    }
    let text = file.whole(".text")?;
    let address = file.sections.get(".text").map_or(0, |section| section.2);
    let mut decoder = iced_x86::Decoder::with_ip(64, &text, address, iced_x86::DecoderOptions::NONE);
    let mut instruction = iced_x86::Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        sum += instruction.len() as u64;
    }
    Ok(sum)
}

fn inflate(file: &Elf) -> Result<u64> {
    let (offset, size, _) = file.sections.get(".debug_info").copied().ok_or("no .debug_info")?;
    let source = Positioned { file: &file.file, at: offset + 24, end: offset + size };
    let mut inflater = flate2::read::ZlibDecoder::new(source);
    let (mut chunk, mut sum) = (vec![0; 64 << 10], 0);
    loop {
        match inflater.read(&mut chunk)? {
            0 => return Ok(sum),
            got => sum += got as u64 + u64::from(chunk[0]),
        }
    }
}

/// A part of a file, read in order.
struct Positioned<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let want = (self.end - self.at).min(buffer.len() as u64) as usize;
        let got = self.file.read_at(&mut buffer[..want], self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}
