//! RPM packages: a lead, two headers, and a compressed cpio archive (RPM package format, version 4: "Lead", "Header
//! Structure", "Payload").

use super::contents::Contents;
use super::room::Room;
use super::{cpio, stream};
use crate::image::Input;

/// The lead's magic number.
pub(super) const MAGIC: &[u8] = &[0xed, 0xab, 0xee, 0xdb];
/// Size of the lead, in bytes.
const LEAD: u64 = 96;
/// The magic number of a header, with its version.
const HEADER_MAGIC: &[u8] = &[0x8e, 0xad, 0xe8, 0x01];
/// Size of a header's introduction: magic number, four reserved bytes, count of entries, bytes of data.
const INTRODUCTION: u64 = 16;
/// Size of an entry of the index: tag, type, offset, count.
const ENTRY: u64 = 16;
/// Most entries of a header (rpm's own limit, `hdrchkTags`).
const MOST_ENTRIES: u64 = 1 << 16;
/// Largest header, in bytes (rpm's own limit, `hdrchkData`).
const MOST_DATA: u64 = 256 << 20;
/// `RPMTAG_PAYLOADFORMAT`: a string.
const PAYLOAD_FORMAT: u32 = 1124;
/// `RPMTAG_PAYLOADCOMPRESSOR`: a string, absent for gzip.
const PAYLOAD_COMPRESSOR: u32 = 1125;
/// Longest such string, in bytes.
const MOST_STRING: u64 = 64;

/// Reads the files of a package.
pub(super) fn read(input: &Input, room: &Room) -> Contents {
    match payload(input) {
        Err(why) => Contents::damaged(format!("the package is damaged: {why}")),
        Ok(Payload { format: Some(format), .. }) if format != "cpio" => {
            Contents::damaged(format!("the package holds {format:?}, not a cpio archive, which is not read"))
        }
        Ok(payload) => {
            match stream::open_named(&payload.input, payload.compressor.as_deref().unwrap_or("gzip"), room) {
                Ok(stream) => cpio::read(stream, room),
                Err(error) => Contents::damaged(error.to_string()),
            }
        }
    }
}

struct Payload {
    input: Input,
    format: Option<String>,
    compressor: Option<String>,
}

fn payload(input: &Input) -> Result<Payload, String> {
    let signature = header(input, LEAD, "signature header")?;
    // The signature header is padded to eight bytes, the other one is not.
    let start = signature.end.checked_next_multiple_of(8).ok_or("its size is no size")?;
    let main = header(input, start, "header")?;
    let rest = input.len().checked_sub(main.end).ok_or("its payload is cut off")?;
    let input_of = input.part(main.end, rest).ok_or("its payload is cut off")?;
    Ok(Payload {
        format: main.string(input, PAYLOAD_FORMAT),
        compressor: main.string(input, PAYLOAD_COMPRESSOR),
        input: input_of,
    })
}

/// A header as it lies in the file.
struct Header {
    index: u64,
    entries: u64,
    data: u64,
    end: u64,
}

fn header(input: &Input, at: u64, what: &str) -> Result<Header, String> {
    let bytes = input.read_vec(at, INTRODUCTION, INTRODUCTION, what).map_err(|error| error.to_string())?;
    if !bytes.starts_with(HEADER_MAGIC) {
        return Err(format!("its {what} does not begin as headers do"));
    }
    let entries = u64::from(number(&bytes, 8).ok_or("cut off")?);
    let size = u64::from(number(&bytes, 12).ok_or("cut off")?);
    if entries > MOST_ENTRIES || size > MOST_DATA {
        return Err(format!("its {what} of {entries} entries and {size} bytes is too large"));
    }
    let index = at + INTRODUCTION;
    let data = index + entries * ENTRY;
    let end = data + size;
    if end > input.len() {
        return Err(format!("its {what} is cut off"));
    }
    Ok(Header { index, entries, data, end })
}

impl Header {
    fn string(&self, input: &Input, wanted: u32) -> Option<String> {
        let size = self.entries * ENTRY;
        let index = input.read_vec(self.index, size, size, "index").ok()?;
        let entry = index.chunks_exact(ENTRY as usize).find(|entry| number(entry, 0) == Some(wanted))?;
        let offset = u64::from(number(entry, 8)?);
        let left = (self.end - self.data).checked_sub(offset)?.min(MOST_STRING);
        let bytes = input.read_vec(self.data + offset, left, MOST_STRING, "string").ok()?;
        let text = bytes.get(..memchr::memchr(0, &bytes)?)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// A number of the format: 32 bits, most significant byte first.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
