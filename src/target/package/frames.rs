//! Zstandard and LZ4: streams of frames, of which some hold no data.

use super::stream::InputReader;
use std::io::{self, BufRead, BufReader, Read};

/// How a Zstandard frame begins (RFC 8878, 3.1.1).
pub(super) const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// How an LZ4 frame begins (LZ4 Frame Format Description, "General Structure of LZ4 Frame format").
pub(super) const LZ4: &[u8] = &[0x04, 0x22, 0x4d, 0x18];
/// The rest of the magic number of a frame without data, the same in both formats; its first byte is 0x50 to 0x5f (RFC 8878,
/// 3.1.2).
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];

/// Whether bytes begin with a frame that holds no data: `pzstd` writes one before each frame that does.
pub(super) fn is_skippable(start: &[u8]) -> bool {
    start.first().is_some_and(|first| first & 0xf0 == 0x50) && start.get(1..4) == Some(SKIPPABLE)
}

/// A frame, whose magic number was looked at.
type Framed = io::Chain<io::Cursor<[u8; 4]>, Whole>;
type Zstd = ruzstd::decoding::StreamingDecoder<Framed, ruzstd::decoding::FrameDecoder>;
type Lz4 = lz4_flex::frame::FrameDecoder<Framed>;

/// What lies behind a frame's magic number. LZ4's decoder takes the end of the file for the end of a frame, and so it meets
/// an error there.
struct Whole(BufReader<InputReader>);

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::Error::other("EOF reached")),
            got => Ok(got),
        }
    }
}

enum Frame {
    Zstd(Box<Zstd>),
    Lz4(Box<Lz4>),
}

/// Frames one after the other: the decoders read one.
pub(super) struct Frames {
    raw: Option<BufReader<InputReader>>,
    frame: Option<Frame>,
}

impl Frames {
    pub(super) fn new(raw: BufReader<InputReader>) -> Self {
        Self { raw: Some(raw), frame: None }
    }
}

/// Compares what a frame holds with its checksum, if it has one (RFC 8878, 3.1.1): the decoder only makes both known.
fn verify(frame: &ruzstd::decoding::FrameDecoder) -> io::Result<()> {
    let stored = frame.get_checksum_from_data();
    if stored.is_some() && stored != frame.get_calculated_checksum() {
        return Err(io::Error::other("wrong checksum"));
    }
    Ok(())
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let got = match frame {
                    Frame::Zstd(frame) => frame.read(buffer)?,
                    Frame::Lz4(frame) => frame.read(buffer)?,
                };
                if got > 0 {
                    return Ok(got);
                }
                if let Frame::Zstd(frame) = frame {
                    verify(&frame.decoder)?;
                }
                let framed = self.frame.take().map(|frame| match frame {
                    Frame::Zstd(frame) => frame.into_inner(),
                    Frame::Lz4(frame) => frame.into_inner(),
                });
                self.raw = framed.map(|framed| framed.into_inner().1.0);
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
            let framed = io::Cursor::new(magic).chain(Whole(raw));
            self.frame = Some(if magic == LZ4 {
                Frame::Lz4(Box::new(Lz4::new(framed)))
            } else {
                let frame = Zstd::new(framed).map_err(|error| io::Error::other(error.to_string()))?;
                Frame::Zstd(Box::new(frame))
            });
        }
    }
}
