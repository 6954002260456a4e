//! Compressed streams, bounded.

use super::START;
use super::frames::{self, Frames};
use super::gzip;
use super::room::{Bounded, Room};
use crate::image::Input;
use std::io::{self, BufReader, Read};

/// Bytes read at once.
const WINDOW: usize = 128 << 10;
/// Most memory an xz or lzma stream may ask for, in KiB; `xz -9` takes 65 MiB.
const XZ_MEMORY: u32 = 128 << 10;
/// How a gzip member begins.
pub(super) const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const BZIP2: &[u8] = b"BZh";
/// The first block of bzip2 begins with the digits of pi behind the level.
const BZIP2_BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];

/// How a stream is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Gzip,
    Xz,
    Zstd,
    Lz4,
    Bzip2,
    Lzma,
}

impl Codec {
    /// Of bytes that begin like gzip (RFC 1952), xz, Zstandard (RFC 8878), LZ4 or bzip2; lzma has no mark of its own.
    fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(GZIP) {
            return Some(Self::Gzip);
        }
        if start.starts_with(XZ) {
            return Some(Self::Xz);
        }
        if start.starts_with(frames::LZ4) {
            return Some(Self::Lz4);
        }
        if start.starts_with(frames::ZSTD) || frames::is_skippable(start) {
            return Some(Self::Zstd);
        }
        let bzip2 = start.starts_with(BZIP2) && start.get(4..10) == Some(BZIP2_BLOCK);
        bzip2.then_some(Self::Bzip2)
    }

    /// Its name, for people.
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "Zstandard",
            Self::Lz4 => "LZ4",
            Self::Bzip2 => "bzip2",
            Self::Lzma => "lzma",
        }
    }
}

/// Whether bytes begin like a compressed stream of a format that has a mark.
pub(super) fn is_compressed(start: &[u8]) -> bool {
    Codec::of(start).is_some()
}

/// Whether bytes may be the header of an lzma file, which has no mark: its properties, the size of the dictionary, the size of
/// the data or all ones, and the first byte of the range coder (LZMA SDK, `lzma-specification.txt`). As `xz` does, only sizes
/// are taken that its encoders write; what decompresses to no program and no archive is none all the same.
pub(super) fn may_be_lzma(start: &[u8]) -> bool {
    const MOST_PROPERTIES: u8 = (4 * 5 + 4) * 9 + 8;
    const MOST_SIZE: u64 = 1 << 38;
    let (Some(&properties), Some(&[a, b, c, d]), Some(size), Some(&0)) =
        (start.first(), start.get(1..5), start.get(5..13), start.get(13))
    else {
        return false;
    };
    let dictionary = u32::from_le_bytes([a, b, c, d]);
    // One bit, or two that lie side by side.
    let top = 31u32.checked_sub(dictionary.leading_zeros()).map_or(0, |bit| 1u32 << bit);
    let usual = dictionary == u32::MAX || (dictionary >= 4096 && [0, top >> 1].contains(&(dictionary - top)));
    let size = size.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    properties <= MOST_PROPERTIES && usual && (size == u64::MAX || (1..MOST_SIZE).contains(&size))
}

/// Reads an input from its beginning.
pub(super) struct InputReader {
    input: Input,
    at: u64,
}

impl InputReader {
    pub(super) fn new(input: &Input) -> Self {
        Self { input: input.clone(), at: 0 }
    }
}

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read_at(self.at, buffer)?;
        self.at = self.at.saturating_add(got as u64);
        Ok(got)
    }
}

/// A decompressed stream.
pub(super) type Stream = Bounded<Box<dyn Read>>;

/// Opens an input as a stream, decompressed by what it begins with.
pub(super) fn open(input: &Input, room: &Room) -> io::Result<Stream> {
    open_named(input, "", room)
}

/// The same where the name of the compression is known: lzma has no mark of its own.
pub(super) fn open_named(input: &Input, name: &str, room: &Room) -> io::Result<Stream> {
    let mut start = [0; 16];
    let got = input.read_at(0, &mut start)?;
    let start = start.get(..got).unwrap_or_default();
    let raw = BufReader::with_capacity(WINDOW, InputReader::new(input));
    let lzma = name == "lzma" || may_be_lzma(start);
    let Some(codec) = Codec::of(start).or(lzma.then_some(Codec::Lzma)) else {
        return Ok(room.bounded(Box::new(raw)));
    };
    let inner: Box<dyn Read> = match codec {
        Codec::Gzip => Box::new(gzip::Members::new(raw)),
        Codec::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(raw, true, XZ_MEMORY)),
        Codec::Zstd | Codec::Lz4 => Box::new(Frames::new(raw)),
        Codec::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
        Codec::Lzma => {
            let reader = lzma_rust2::LzmaReader::new_mem_limit(raw, XZ_MEMORY, None);
            Box::new(reader.map_err(|error| damaged(codec.name(), &error))?)
        }
    };
    Ok(room.bounded(Box::new(Decoder { name: codec.name(), inner })))
}

/// What a file decompresses to, up to so many bytes, and what is wrong before there are as many.
pub(super) fn beginning(input: &Input, most: usize, room: &Room) -> (Vec<u8>, Option<io::Error>) {
    let mut start = Vec::new();
    let all = open(input, room).and_then(|stream| stream.take(most as u64).read_to_end(&mut start));
    (start, all.err())
}

/// Whether a file decompresses to a program or an archive, by what that begins with.
pub(super) fn holds_something(input: &Input, room: &Room) -> bool {
    let is_one = |start: &[u8]| start.starts_with(&object::elf::ELFMAG) || super::contents::is_tar(start);
    is_one(&beginning(input, START, room).0)
}

/// A decoder, whose errors are told in words of their own.
struct Decoder {
    name: &'static str,
    inner: Box<dyn Read>,
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| damaged(self.name, &error))
    }
}

/// What is wrong with compressed data. Decoders say it in many ways, the longest of which are cut.
fn damaged(codec: &str, error: &io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::Interrupted {
        return error.kind().into();
    }
    let text = error.to_string();
    let cut = error.kind() == io::ErrorKind::UnexpectedEof
        || ["UnexpectedEof", "EOF reached"].iter().any(|word| text.contains(word));
    if cut {
        return io::Error::new(io::ErrorKind::UnexpectedEof, format!("its {codec} data is cut off"));
    }
    let text = text.split(['(', '{']).next().unwrap_or_default().trim_end();
    io::Error::other(format!("its {codec} data cannot be read: {}", in_words(text)))
}

/// The name of an error, which LZ4's decoder gives in place of words (`HeaderChecksumError`), as words.
fn in_words(text: &str) -> String {
    let is_name =
        text.starts_with(|c: char| c.is_ascii_uppercase()) && text.bytes().all(|b| b.is_ascii_alphabetic());
    if !is_name {
        return text.to_owned();
    }
    let mut words = String::new();
    for letter in text.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
