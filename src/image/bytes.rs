//! Numbers of the file's own byte order and word size, read without ever leaving the buffer.

use super::Header;

/// How a file writes its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Words and addresses have 8 bytes, not 4.
    pub is_64: bool,
    /// Least significant byte first.
    pub little_endian: bool,
}

impl From<Header> for Format {
    fn from(header: Header) -> Self {
        Self { is_64: header.is_64, little_endian: header.little_endian }
    }
}

impl Format {
    /// Size of an address in bytes.
    #[inline]
    pub fn word_size(self) -> u64 {
        if self.is_64 { 8 } else { 4 }
    }

    /// The 16-bit number at `at`, if the buffer holds it.
    #[inline]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = array::<2>(bytes, at)?;
        Some(if self.little_endian { u16::from_le_bytes(raw) } else { u16::from_be_bytes(raw) })
    }

    /// The 32-bit number at `at`, if the buffer holds it.
    #[inline]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = array::<4>(bytes, at)?;
        Some(if self.little_endian { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) })
    }

    /// The 64-bit number at `at`, if the buffer holds it.
    #[inline]
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let raw = array::<8>(bytes, at)?;
        Some(if self.little_endian { u64::from_le_bytes(raw) } else { u64::from_be_bytes(raw) })
    }

    /// The address-sized number at `at`, if the buffer holds it.
    #[inline]
    pub fn word(self, bytes: &[u8], at: usize) -> Option<u64> {
        if self.is_64 { self.u64(bytes, at) } else { self.u32(bytes, at).map(u64::from) }
    }

    /// Cuts a sum of addresses to the file's word size, as the loader would.
    pub fn wrap(self, value: u64) -> u64 {
        if self.is_64 { value } else { value & 0xffff_ffff }
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_byte_order_and_stop_at_the_end() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        let little = Format { is_64: false, little_endian: true };
        let big = Format { is_64: true, little_endian: false };
        assert_eq!(little.u16(&bytes, 1), Some(0x0302));
        assert_eq!(little.word(&bytes, 4), Some(0x0807_0605));
        assert_eq!(big.word(&bytes, 0), Some(0x0102_0304_0506_0708));
        assert_eq!(big.u32(&bytes, 5), None);
        assert_eq!(big.u16(&bytes, usize::MAX), None);
        assert_eq!(little.wrap(0x1_0000_0001), 1);
    }
}
