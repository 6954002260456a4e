//! The contents of sections. Compressed ones are inflated as a stream, and what a compression header
//! claims is checked before a byte is inflated or allocated: a file of 300 bytes may claim 6 GiB.

use super::{Image, Input, ReadError, Section};
use flate2::bufread::ZlibDecoder;
use object::Endianness;
use object::elf::{self, CompressionHeader32, CompressionHeader64};
use object::pod;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// Deflate cannot do better than 1032 to 1 (RFC 1951: 258 bytes from two bits).
const ZLIB_RATIO: u64 = 1040;
/// Zstandard's run-length blocks reach 32768 to 1; debug sections that are worth reading stay far below this.
const ZSTD_RATIO: u64 = 4096;
/// What the smallest streams may claim whatever the ratio.
const RATIO_SLACK: u64 = 64 << 10;
/// Largest window a zstd frame may ask for. Linkers use 2 MiB, the slowest ordinary level 8 MiB.
const ZSTD_WINDOW: u64 = 32 << 20;
/// Compressed bytes fetched by one positioned read.
const CHUNK: usize = 32 << 10;

/// How a section is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The old GNU form: name `.zdebug_*`, contents `ZLIB`, size, zlib stream.
    ZlibGnu,
    /// `SHF_COMPRESSED` with `ELFCOMPRESS_ZLIB` (gABI).
    Zlib,
    /// `SHF_COMPRESSED` with `ELFCOMPRESS_ZSTD` (gABI).
    Zstd,
}

impl Compression {
    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ZlibGnu => "zlib-gnu",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }
}

/// A compressed section whose claim has been checked.
#[derive(Debug, Clone)]
pub struct Packed {
    /// How.
    pub how: Compression,
    /// Size in bytes after inflation, as claimed by the header.
    pub size: u64,
    /// The compressed bytes, without the header.
    stream: Input,
    what: String,
}

impl Packed {
    /// A stream of the inflated bytes, from the start. It ends after [`Packed::size`] bytes at the latest.
    pub fn inflater(&self) -> Inflater {
        let source = BufReader::with_capacity(CHUNK, PositionedRead { input: self.stream.clone(), at: 0 });
        let decoder = match self.how {
            Compression::ZlibGnu | Compression::Zlib => Decoder::Zlib(Box::new(ZlibDecoder::new(source))),
            Compression::Zstd => Decoder::ZstdStart(source),
        };
        Inflater { decoder, left: self.size }
    }

    /// All of it. Memory grows with what is really inflated, not with the claim.
    pub fn inflate(&self) -> Result<Vec<u8>, ReadError> {
        let damaged = |why: String| ReadError::Damaged { what: self.what.clone(), why };
        let mut inflater = self.inflater();
        let likely = self.stream.len().saturating_mul(4).min(self.size);
        let mut bytes = Vec::with_capacity(likely as usize);
        inflater.read_to_end(&mut bytes).map_err(|error| damaged(error.to_string()))?;
        if (bytes.len() as u64) < self.size {
            return Err(damaged(format!("inflates to {} bytes, its header says {}", bytes.len(), self.size)));
        }
        inflater.verify().map_err(|error| damaged(error.to_string()))?;
        Ok(bytes)
    }
}

/// How a section is compressed, or `None` if it is not.
///
/// Errors: the header lies outside the section, names an unknown method, or claims more than the limit
/// (`inflated_bytes`) or than the method could make of that many bytes.
pub fn packed(image: &Image, section: &Section) -> Result<Option<Packed>, ReadError> {
    let what = format!("section {}", String::from_utf8_lossy(&section.name));
    let damaged = |why: String| ReadError::Damaged { what: what.clone(), why };
    let (how, size, header) = if section.flags & elf::SHF_COMPRESSED.0 != 0 {
        let size = if image.header.is_64 {
            size_of::<CompressionHeader64<Endianness>>()
        } else {
            size_of::<CompressionHeader32<Endianness>>()
        } as u64;
        if section.size < size {
            return Err(damaged(format!("{} bytes are too few for a compression header", section.size)));
        }
        let bytes = image.read(section.offset, size, &what)?;
        let endian = if image.header.little_endian { Endianness::Little } else { Endianness::Big };
        let header = if image.header.is_64 {
            pod::from_bytes::<CompressionHeader64<Endianness>>(&bytes)
                .map(|(h, _)| (h.ch_type.get(endian), h.ch_size.get(endian)))
        } else {
            pod::from_bytes::<CompressionHeader32<Endianness>>(&bytes)
                .map(|(h, _)| (h.ch_type.get(endian), u64::from(h.ch_size.get(endian))))
        };
        let (kind, claimed) = header.map_err(|()| damaged("unreadable compression header".to_owned()))?;
        let how = match kind {
            elf::ELFCOMPRESS_ZLIB => Compression::Zlib,
            elf::ELFCOMPRESS_ZSTD => Compression::Zstd,
            other => return Err(damaged(format!("unknown compression method {}", other.0))),
        };
        (how, claimed, size)
    } else if section.name.starts_with(b".zdebug_") && section.size >= 12 {
        let bytes = image.read(section.offset, 12, &what)?;
        let Some(claimed) = bytes.strip_prefix(b"ZLIB").and_then(|b| b.try_into().ok()) else {
            return Ok(None);
        };
        (Compression::ZlibGnu, u64::from_be_bytes(claimed), 12)
    } else {
        return Ok(None);
    };
    let left = section.size - header;
    let limit = image.limits.inflated_bytes;
    if size > limit {
        return Err(ReadError::TooLarge { what: format!("{what}, inflated,"), size, limit });
    }
    let ratio = if how == Compression::Zstd { ZSTD_RATIO } else { ZLIB_RATIO };
    if size > left.saturating_mul(ratio).saturating_add(RATIO_SLACK) {
        return Err(damaged(format!("{left} compressed bytes claim to hold {size}")));
    }
    let stream =
        section.offset.checked_add(header).and_then(|offset| image.input.part(offset, left)).ok_or_else(
            || ReadError::OutOfFile {
                what: what.clone(),
                offset: section.offset,
                size: section.size,
                file: image.input.len(),
            },
        )?;
    Ok(Some(Packed { how, size, stream, what }))
}

/// The bytes of a section, inflated if they are compressed. Any section that is not loaded may be (gABI, "Section
/// Compression"), not only those of debug information.
///
/// Errors: those of [`packed`] and of [`Image::raw_section`], damage, and a claim of more than `most` bytes.
pub fn contents(image: &Image, section: &Section, most: u64) -> Result<Vec<u8>, ReadError> {
    inflated(image, section, most)?.map_or_else(|| image.raw_section(section), Ok)
}

/// The same without reading what is not compressed, and as far as the file has it.
pub fn there(image: &Image, section: &Section, most: u64) -> Result<Input, ReadError> {
    if let Some(bytes) = inflated(image, section, most)? {
        return Ok(Input::memory(bytes));
    }
    let there = section.size.min(image.input.len().saturating_sub(section.offset));
    Ok(image.input.part(section.offset, there).unwrap_or_else(|| Input::memory([])))
}

fn inflated(image: &Image, section: &Section, most: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let Some(packed) = packed(image, section)? else { return Ok(None) };
    if packed.size > most {
        let what = format!("{}, inflated,", packed.what);
        return Err(ReadError::TooLarge { what, size: packed.size, limit: most });
    }
    packed.inflate().map(Some)
}

/// Inflated bytes of one section, in order.
#[derive(Debug)]
pub struct Inflater {
    decoder: Decoder,
    left: u64,
}

type Source = BufReader<PositionedRead>;

enum Decoder {
    Zlib(Box<ZlibDecoder<Source>>),
    ZstdStart(Source),
    Zstd(Box<StreamingDecoder<Source, FrameDecoder>>),
    Ended,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Zlib(_) => "Zlib",
            Self::ZstdStart(_) | Self::Zstd(_) => "Zstd",
            Self::Ended => "Ended",
        })
    }
}

impl Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Zlib(decoder) => return decoder.read(buffer),
                Self::Zstd(decoder) => {
                    let got = decoder.read(buffer)?;
                    if got > 0 || buffer.is_empty() {
                        return Ok(got);
                    }
                    verify_zstd(&decoder.decoder)?;
                }
                Self::ZstdStart(_) => {}
                Self::Ended => return Ok(0),
            }
            // Some linkers compress in parallel and write one zstd frame after the other.
            let mut source = match std::mem::replace(self, Self::Ended) {
                Self::Zstd(decoder) => decoder.into_inner(),
                Self::ZstdStart(source) => source,
                _ => return Ok(0),
            };
            if source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let decoder = StreamingDecoder::new_with_max_window_size(source, ZSTD_WINDOW);
            *self = Self::Zstd(Box::new(decoder.map_err(io::Error::other)?));
        }
    }
}

/// At the end of a Zstandard frame: whether what came out has the checksum that the frame carries, if it carries one
/// (RFC 8878, section 3.1.1). The decoder computes it and leaves the comparison to its users.
pub fn verify_zstd(frame: &FrameDecoder) -> io::Result<()> {
    match frame.get_checksum_from_data() {
        Some(written) if frame.get_calculated_checksum() != Some(written) => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"))
        }
        _ => Ok(()),
    }
}

impl Inflater {
    /// After the last byte: whether the stream ends here, and its checksum is right.
    fn verify(&mut self) -> io::Result<()> {
        match self.decoder.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "inflates to more than its header says")),
        }
    }
}

impl Read for Inflater {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let want = self.left.min(buffer.len() as u64) as usize;
        let got = self.decoder.read(&mut buffer[..want])?;
        self.left -= got as u64;
        Ok(got)
    }
}

/// Positioned reads as a stream.
#[derive(Debug)]
struct PositionedRead {
    input: Input,
    at: u64,
}

impl Read for PositionedRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read_at(self.at, buffer)?;
        let before = self.at;
        self.at += got as u64;
        self.input.goes_on(before, self.at, self.at);
        Ok(got)
    }
}
