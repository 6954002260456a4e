//! Damage, chosen by a generator with a fixed seed: fields set to extremes, bytes and words inside sections, whole runs,
//! truncation; and for texts words of their language, numbers, repetition and splicing.

use super::layout::{Layout, Part};
use std::fmt::Write as _;

/// `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A number that is likely to be mishandled, in `size` bytes.
fn extreme(random: &mut Random, size: usize, file: usize, big: bool) -> Vec<u8> {
    let near = random.below(64) as u64;
    let file = file as u64;
    let values = [
        0,
        1,
        2,
        near,
        0x7f,
        0xff,
        0x7fff,
        0xffff,
        0x7fff_ffff,
        0xffff_fff0,
        u64::from(u32::MAX),
        1 << 40,
        u64::MAX >> 1,
        u64::MAX - near,
        u64::MAX,
        file,
        file.saturating_sub(near),
    ];
    let value = if random.below(6) == 0 { random.next() } else { random.one_of(&values) };
    let mut field: Vec<u8> = value.to_le_bytes().into_iter().take(size.min(8)).collect();
    if big {
        field.reverse();
    }
    field
}

/// Damages an ELF file (or any other binary, which has no fields); says what was done, and to which parts.
pub fn binary(layout: &Layout, bytes: &mut Vec<u8>, random: &mut Random) -> (String, Vec<Part>) {
    let (mut done, mut parts) = (String::new(), Vec::new());
    // What one check catches may hide what another misses: sometimes there is more than one damage.
    for _ in 0..random.one_of(&[1, 1, 1, 1, 2, 3]) {
        let (what, part) = once(layout, bytes, random);
        let _ = write!(done, "{what}; ");
        parts.push(part);
    }
    (done, parts)
}

fn once(layout: &Layout, bytes: &mut Vec<u8>, random: &mut Random) -> (String, Part) {
    let old = bytes.len();
    if old == 0 {
        return ("nothing left".to_owned(), Part::Header);
    }
    let kind = random.below(16);
    let (name, place, part) = layout.contents[random.below(layout.contents.len())].clone();
    if kind == 0 {
        let len = match random.below(3) {
            0 => random.below(old),
            1 => place.start.saturating_add(random.below(16)),
            _ => place.end.saturating_sub(random.below(16)),
        };
        bytes.truncate(len);
        return (format!("truncated to {len} bytes, near {name}"), Part::Header);
    }
    if kind < 7 && !layout.fields.is_empty() {
        let (name, at) = layout.fields[random.below(layout.fields.len())].clone();
        let value = extreme(random, at.len(), old, layout.big);
        put(bytes, at.start, &value);
        return (format!("{name} := {value:02x?}"), Part::Header);
    }
    let start = place.start + random.below(place.len());
    let (what, value) = match kind {
        7..=9 => ("bit", vec![bytes.get(start).copied().unwrap_or_default() ^ (1 << random.below(8))]),
        10 => ("byte", vec![random.next() as u8]),
        11 | 12 => {
            let size = random.one_of(&[1, 2, 4, 8]);
            ("extreme", extreme(random, size, old, layout.big))
        }
        13 => ("leb128", [&[0xff; 9][..], &[random.one_of(&[0x00, 0x01, 0x7f, 0xff])]].concat()),
        14 => ("run", vec![random.one_of(&[0, 0xff, 0x80, 0x01]); 1 + random.below(64)]),
        _ => {
            let from = place.start + random.below(place.len());
            ("copy", bytes.get(from..place.end.min(from + 32)).unwrap_or_default().to_vec())
        }
    };
    let value = &value[..value.len().min(place.end - start)];
    put(bytes, start, value);
    (format!("{name} +{:#x}: {what} {value:02x?}", start - place.start), part)
}

/// Overwrites as far as there is something.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    for (byte, new) in bytes.iter_mut().skip(at).zip(value) {
        *byte = *new;
    }
}

/// Most bytes that a damaged text grows to.
const LONGEST_TEXT: usize = 64 << 10;

/// Damages a text. `words` are of its language; `other` is another text of the kind.
pub fn text(bytes: &mut Vec<u8>, other: &[u8], words: &[&str], random: &mut Random) -> String {
    let mut done = String::new();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let bits = random.below(8);
        let len = 1 + random.below(1 << bits);
        let end = bytes.len().min(at + len);
        let what = match random.below(12) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
                "bit"
            }
            2 => {
                let byte = random.one_of(b"\0\n\r\t \"'\\{}[]()<>;:,=#$%*?/-+.0\x7f\x80\xc3\xe2\xff");
                bytes.insert(at, byte);
                "character"
            }
            3..=5 => {
                let word = random.one_of(words).as_bytes();
                let end = if random.below(2) == 0 { at } else { end };
                bytes.splice(at..end, word.iter().copied());
                "word"
            }
            6 => {
                bytes.drain(at..end);
                "left out"
            }
            7 => {
                let piece = bytes[at..end].to_vec();
                let bits = random.below(11);
                let times = 1 + random.below(1 << bits);
                bytes.splice(at..at, piece.repeat(times));
                "repeated"
            }
            8 => {
                let number = random.one_of(&[
                    "0",
                    "-1",
                    "255",
                    "65536",
                    "4294967295",
                    "9223372036854775807",
                    "18446744073709551616",
                    "1e999",
                    "0x7fffffffffffffff",
                    "2147483648.99",
                    "9999-12-31",
                ]);
                let digits = bytes.iter().skip(at).position(u8::is_ascii_digit).map_or(at, |n| at + n);
                let end = bytes
                    .iter()
                    .skip(digits)
                    .position(|b| !b.is_ascii_digit())
                    .map_or(digits, |n| digits + n);
                bytes.splice(digits..end, number.bytes());
                "number"
            }
            9 => {
                bytes.truncate(at);
                "cut"
            }
            10 => {
                let from = random.below(other.len());
                let to = other.len().min(from + 1 + random.below(256));
                bytes.splice(at..end, other.get(from..to).unwrap_or_default().iter().copied());
                "spliced"
            }
            _ => {
                let from = random.below(bytes.len());
                let piece = bytes[from..bytes.len().min(from + len)].to_vec();
                put(bytes, at, &piece);
                "copied"
            }
        };
        bytes.truncate(LONGEST_TEXT);
        let _ = write!(done, "{what} at {at}; ");
    }
    done
}

/// Puts the checksums of tar headers right, so that damage inside of them is met and not refused at the door.
pub fn mend_tar(bytes: &mut [u8]) {
    for block in bytes.chunks_exact_mut(512) {
        if block.get(257..262) == Some(b"ustar") {
            let sum: u32 =
                (0..512).map(|i| if (148..156).contains(&i) { 32 } else { u32::from(block[i]) }).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}
