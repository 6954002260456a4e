//! Compressed streams, bounded.

use super::room::{Bounded, Room};
use crate::image::Input;
use std::io::{self, BufReader, Read};

/// Bytes read at once.
const WINDOW: usize = 128 << 10;
/// Most memory an xz stream may ask for, in KiB; `xz -9` takes 65 MiB.
const XZ_MEMORY: u32 = 128 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The rest of the magic number of a Zstandard frame without data; its first byte is 0x50 to 0x5f (RFC 8878, 3.1.2).
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
const BZIP2: &[u8] = b"BZh";
/// The first block of bzip2 begins with the digits of pi behind the level.
const BZIP2_BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];

/// Whether bytes begin like gzip (RFC 1952), xz, Zstandard (RFC 8878) or bzip2.
pub(super) fn is_compressed(start: &[u8]) -> bool {
    let bzip2 = start.starts_with(BZIP2) && start.get(4..10) == Some(BZIP2_BLOCK);
    bzip2 || is_skippable(start) || [GZIP, XZ, ZSTD].iter().any(|magic| start.starts_with(magic))
}

/// Whether bytes begin with a Zstandard frame that holds no data: `pzstd` writes one before each frame that does.
fn is_skippable(start: &[u8]) -> bool {
    start.first().is_some_and(|first| first & 0xf0 == 0x50) && start.get(1..4) == Some(SKIPPABLE)
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
    let mut start = [0; 10];
    let got = input.read_at(0, &mut start)?;
    let start = start.get(..got).unwrap_or_default();
    let raw = BufReader::with_capacity(WINDOW, InputReader::new(input));
    let (codec, inner): (&str, Box<dyn Read>) = if start.starts_with(GZIP) {
        ("gzip", Box::new(flate2::bufread::MultiGzDecoder::new(raw)))
    } else if start.starts_with(XZ) {
        ("xz", Box::new(lzma_rust2::XzReader::new_mem_limit(raw, true, XZ_MEMORY)))
    } else if start.starts_with(ZSTD) || is_skippable(start) {
        ("Zstandard", Box::new(Frames { raw: Some(raw), frame: None }))
    } else if is_compressed(start) {
        ("bzip2", Box::new(bzip2::bufread::MultiBzDecoder::new(raw)))
    } else if name == "lzma" {
        let reader = lzma_rust2::LzmaReader::new_mem_limit(raw, XZ_MEMORY, None);
        ("lzma", Box::new(reader.map_err(|error| damaged("lzma", &error))?))
    } else {
        return Ok(room.bounded(Box::new(raw)));
    };
    Ok(room.bounded(Box::new(Codec { name: codec, inner })))
}

/// A decoder, whose errors are told in words of their own.
struct Codec {
    name: &'static str,
    inner: Box<dyn Read>,
}

impl Read for Codec {
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
    io::Error::other(format!("its {codec} data cannot be read: {text}"))
}

/// A frame, whose magic number was looked at.
type Framed = io::Chain<io::Cursor<[u8; 4]>, BufReader<InputReader>>;
type Frame = ruzstd::decoding::StreamingDecoder<Framed, ruzstd::decoding::FrameDecoder>;

/// Zstandard frames one after the other: the decoder reads one.
struct Frames {
    raw: Option<BufReader<InputReader>>,
    frame: Option<Frame>,
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::BufRead;
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let got = frame.read(buffer)?;
                if got > 0 {
                    return Ok(got);
                }
                self.raw = self.frame.take().map(|frame| frame.into_inner().into_inner().1);
            }
            let Some(mut raw) = self.raw.take() else { return Ok(0) };
            if raw.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let mut magic = [0; 4];
            raw.read_exact(&mut magic)?;
            if is_skippable(&magic) {
                let mut size = [0; 4];
                raw.read_exact(&mut size)?;
                let size = u64::from(u32::from_le_bytes(size));
                if io::copy(&mut raw.by_ref().take(size), &mut io::sink())? < size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.raw = Some(raw);
                continue;
            }
            let framed = io::Cursor::new(magic).chain(raw);
            let frame = Frame::new(framed).map_err(|error| io::Error::other(error.to_string()))?;
            self.frame = Some(frame);
        }
    }
}
