//! gzip: members one after the other (RFC 1952, section 2.2).

use super::stream::{GZIP, InputReader};
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// All members of a file. Zeros behind the last one are no member: tapes and block devices pad with them, and `gzip` passes
/// over them, too.
pub(super) struct Members(Option<GzDecoder<BufReader<InputReader>>>);

impl Members {
    pub(super) fn new(raw: BufReader<InputReader>) -> Self {
        Self(Some(GzDecoder::new(raw)))
    }
}

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let got = member.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let Some(mut raw) = self.0.take().map(GzDecoder::into_inner) else { break };
            let padded = skip_zeros(&mut raw)?;
            let rest = raw.fill_buf()?;
            if rest.is_empty() {
                break;
            }
            if padded && rest.first() != GZIP.first() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "something else follows it"));
            }
            self.0 = Some(GzDecoder::new(raw));
        }
        Ok(0)
    }
}

/// Passes over bytes of zero; tells whether there were any.
fn skip_zeros(raw: &mut impl BufRead) -> io::Result<bool> {
    let mut any = false;
    loop {
        let bytes = raw.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let all = zeros == bytes.len();
        any |= zeros > 0;
        raw.consume(zeros);
        if zeros == 0 || !all {
            return Ok(any);
        }
    }
}
