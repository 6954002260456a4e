//! What one compressed file holds, by what its beginning decompresses to.

use super::room::Room;
use super::{START, is_package, stream};
use crate::image::Input;
use crate::limits::Limits;
use std::io;

/// What a compressed file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::target) enum Held {
    /// One program, as distributions ship kernel modules; also one that cannot be decompressed and is told by its name.
    Program,
    /// A package, or an archive that may hold some.
    Package,
    /// Something else, such as a text.
    Other,
}

/// What a file of this name holds that begins with `start`; `None` if it is not compressed. `name` is needed for what the bytes
/// do not tell: lzma has no mark of its own, so that a file is only taken for it that is named so.
pub(in crate::target) fn look(input: &Input, name: &[u8], start: &[u8], limits: &Limits) -> Option<Held> {
    let lzma = || name.ends_with(b".lzma") && stream::may_be_lzma(start);
    let compressed = stream::is_compressed(start) || lzma();
    compressed.then(|| held(input, name, &Room::new(limits)))
}

/// What a compressed file of this name holds.
pub(super) fn held(input: &Input, name: &[u8], room: &Room) -> Held {
    let (start, problem) = stream::beginning(input, START, room);
    if start.starts_with(&object::elf::ELFMAG) {
        return Held::Program;
    }
    if is_package(&start) {
        return Held::Package;
    }
    // Of a program that is damaged from its beginning on only the name is left.
    if names_program(name) && (problem.is_some() || is_damaged(input, room)) {
        return Held::Program;
    }
    Held::Other
}

/// Whether a name is that of a compressed kernel module or shared library.
fn names_program(name: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 7] = [b".gz", b".xz", b".zst", b".zstd", b".bz2", b".lz4", b".lzma"];
    let Some(name) = ENDINGS.iter().find_map(|ending| name.strip_suffix(*ending)) else { return false };
    let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let version = name.iter().rev().take_while(|byte| is_version(byte)).count();
    let (base, version) = name.split_at(name.len() - version);
    name.ends_with(b".ko") || base.ends_with(b".so") && version.first().is_none_or(|byte| *byte == b'.')
}

/// Whether a file cannot be decompressed to its end: checksums stand behind what they are of.
fn is_damaged(input: &Input, room: &Room) -> bool {
    let all = stream::open(input, room).map(|stream| io::Read::take(stream, room.limits.stream_bytes));
    all.and_then(|mut all| io::copy(&mut all, &mut io::sink())).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_a_compressed_program() {
        for name in ["a.ko.zst", "lib/a.ko.gz", "libc.so.xz", "libc.so.6.bz2", "l.so.1.2.30.lz4", "a.ko.lzma"]
        {
            assert!(names_program(name.as_bytes()), "{name}");
        }
        for name in ["a.ko", "a.so.1", "a.log.gz", "a.log.1.gz", "so.gz", "a.so1.gz", "a.ko.1.gz", ".gz", ""]
        {
            assert!(!names_program(name.as_bytes()), "{name}");
        }
    }
}
