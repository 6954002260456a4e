//! The entries of one tar archive: programs are kept, the rest is counted.

use super::START;
use super::room::Room;
use super::stream::{InputReader, Stream};
use super::tree::Tree;
use crate::image::Input;
use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use tar::{Archive, EntryType};

/// Longest name or link target, in bytes; longer ones are refused (Linux `PATH_MAX`).
pub(super) const MOST_NAME: u64 = 4096;
/// Largest extended header, in bytes.
const MOST_HEADER: u64 = 1 << 20;
/// Largest manifest of an image kept and read, in bytes.
pub(super) const MOST_MANIFEST: u64 = 8 << 20;
/// Size of a tar archive without entries, in bytes: one record of 20 blocks, or less.
const EMPTY_TAR: u64 = 20 * 512;
/// Most entries of one archive, and of one target, that are refused by name; more are counted.
pub(super) const MOST_REFUSED: usize = 1000;

/// One file that was kept, or refused.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Its name inside the archive, beginning with `/`; empty for the archive itself.
    pub name: String,
    /// Its bytes, or why it was refused.
    pub bytes: Result<Input, String>,
    /// Whether it is ELF or an archive of object files, as against a package or a manifest.
    pub is_program: bool,
    /// Hard links share it.
    pub id: usize,
}

/// What happened to a name in a layer, in order.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// A file, by its place in `found`; `None` for one that is not kept.
    File(Option<usize>),
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink(String),
    /// Another name of a file that is in a lower layer, if anywhere.
    Link(String),
}

/// The entries of an archive.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub found: Vec<Found>,
    /// All names with what they are, in order.
    pub events: Vec<(String, Event)>,
    /// The file trees of images, and what their names begin with.
    pub trees: Vec<(String, Tree)>,
    pub skipped: u64,
    /// Entries that were refused and are not among the found, being too many.
    pub left_out: u64,
    /// How many were refused by name.
    refused: usize,
    /// The bytes are one compressed ELF file.
    pub single: Option<Input>,
    /// The bytes are no archive at all.
    pub not_an_archive: bool,
}

impl Contents {
    /// The files and names of an archive alone.
    pub(super) fn of(found: Vec<Found>, events: Vec<(String, Event)>) -> Self {
        Self { found, events, ..Self::default() }
    }

    /// An archive of which nothing could be read.
    pub(super) fn damaged(why: String) -> Self {
        let mut contents = Self::default();
        contents.refuse("", why);
        contents
    }

    /// Adds a file that is refused, with the reason.
    pub(super) fn refuse(&mut self, name: &str, why: String) {
        if self.refused >= MOST_REFUSED {
            self.left_out += 1;
            return;
        }
        self.refused += 1;
        let id = self.found.len();
        self.found.push(Found { name: name.to_owned(), bytes: Err(why), is_program: false, id });
    }

    /// Reads what lies behind the last entry of a stream: only at its end is it known whether all before it was right.
    pub(super) fn verify_end(&mut self, mut rest: impl Read) {
        if let Err(error) = io::copy(&mut rest, &mut io::sink()) {
            self.refuse("", format!("damaged, as its end shows: {error}; what was read of it may be wrong"));
        }
    }

    /// Adds another name of a file; gives its place in the list.
    pub(super) fn link(&mut self, of: usize, name: String) -> Option<usize> {
        let linked = Found { name, ..self.found.get(of)?.clone() };
        self.found.push(linked);
        Some(self.found.len() - 1)
    }
}

/// Whether a block is a tar header: the checksum over its bytes is right (pax(1), "ustar Interchange Format").
pub(super) fn is_tar(block: &[u8]) -> bool {
    let Some(block) = block.get(..512) else { return false };
    let Some(stored) = block.get(148..156) else { return false };
    let digits: Vec<u8> = stored.iter().copied().filter(u8::is_ascii_digit).collect();
    let stored = std::str::from_utf8(&digits).ok().and_then(|digits| u32::from_str_radix(digits, 8).ok());
    let bytes = block.iter().enumerate();
    let sum = bytes.map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) }).sum();
    // An extended header needs no name of its own; a block of zeros, whose sum could be right, is told by its magic.
    let named = block.first() != Some(&0) || block.get(257..262) == Some(b"ustar");
    stored == Some(sum) && named
}

/// Reads an archive that is not compressed: its files are parts of it and are not copied.
pub(super) fn of_plain(input: &Input, room: &Room) -> Contents {
    let reader = BufReader::new(InputReader::new(input));
    read(reader, Keeper { contents: Contents::default(), parts: Some(input.clone()), room })
}

/// Reads a stream that may be an archive, or one compressed program.
pub(super) fn of_stream(mut stream: Stream, room: &Room) -> Contents {
    let mut start = [0; START];
    let got = match fill(&mut stream, &mut start) {
        Ok(got) => got,
        Err(error) => return Contents::damaged(error.to_string()),
    };
    let start = start.get(..got).unwrap_or_default();
    let whole = io::Cursor::new(start.to_vec()).chain(stream);
    if start.starts_with(&object::elf::ELFMAG) {
        return match room.keep(whole, room.limits.stream_bytes) {
            Ok(single) => Contents { single: Some(single), ..Contents::default() },
            Err(error) => Contents::damaged(error.to_string()),
        };
    }
    if !is_tar(start) {
        return Contents { not_an_archive: true, ..Contents::default() };
    }
    read(whole, Keeper::copying(room))
}

/// Collects the files of an archive that are wanted.
pub(super) struct Keeper<'a> {
    /// What there is so far.
    pub contents: Contents,
    /// The archive, if kept files are parts of it and are not copied.
    parts: Option<Input>,
    room: &'a Room,
}

impl<'a> Keeper<'a> {
    /// A keeper that copies files out of a stream.
    pub(super) fn copying(room: &'a Room) -> Self {
        Self { contents: Contents::default(), parts: None, room }
    }

    /// Keeps a file of `size` bytes if it is wanted. Gives its place in the list.
    pub(super) fn keep(&mut self, from: &mut impl Read, size: u64, name: &str) -> Option<usize> {
        self.keep_at(from, (0, size), name)
    }

    /// The same for a file that begins at a position of the archive.
    fn keep_at(&mut self, from: &mut impl Read, (position, size): (u64, u64), name: &str) -> Option<usize> {
        let mut start = [0; START];
        let got = match fill(from, &mut start) {
            Ok(got) => got,
            Err(error) => {
                self.contents.refuse(name, error.to_string());
                return None;
            }
        };
        let start = start.get(..got).unwrap_or_default();
        let program = is_program(start);
        let package = !program && is_package(start);
        if !is_wanted(start, size) {
            self.contents.skipped += 1;
            return None;
        }
        // Packages are read as streams with limits of their own.
        let limits = &self.room.limits;
        let limit = if package { limits.package_bytes } else { limits.stream_bytes };
        let bytes = if size > limit {
            Err(format!("refused: {size} bytes, more than {limit}"))
        } else {
            let cut = || "the archive ends inside it".to_owned();
            if let Some(input) = &self.parts {
                input.part(position, size).ok_or_else(cut)
            } else {
                let whole = io::Cursor::new(start.to_vec()).chain(from);
                match self.room.keep(whole, limit) {
                    Ok(kept) if kept.len() != size => Err(cut()),
                    other => other.map_err(|error| error.to_string()),
                }
            }
        };
        let id = self.contents.found.len();
        self.contents.found.push(Found { name: name.to_owned(), bytes, is_program: program, id });
        Some(id)
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// A name from inside an archive: absolute, without `.`; `None` if it climbs or is no name.
pub(super) fn clean(name: &[u8]) -> Result<String, &'static str> {
    let text = String::from_utf8_lossy(name);
    if name.len() as u64 > MOST_NAME {
        return Err("its name is too long");
    }
    let mut out = String::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("its name leads out of the archive (..)"),
            part => {
                out.push('/');
                out.push_str(part);
            }
        }
    }
    Ok(out)
}

/// Whether an entry's file is kept: by what it begins with.
pub(super) fn is_program(start: &[u8]) -> bool {
    start.starts_with(&object::elf::ELFMAG)
        || (start.starts_with(&object::archive::MAGIC) && !start.starts_with(b"!<arch>\ndebian-binary"))
}

/// Whether a file of so many bytes that begins so is kept.
pub(super) fn is_wanted(start: &[u8], size: u64) -> bool {
    let small = is_json(start) && size <= MOST_MANIFEST || is_empty_tar(start) && size <= EMPTY_TAR;
    is_program(start) || is_package(start) || small
}

/// Whether a file begins as a document in JSON does.
pub(super) fn is_json(start: &[u8]) -> bool {
    start.trim_ascii_start().first().is_some_and(|first| matches!(first, b'{' | b'['))
}

/// Whether a file begins with the block of zeros that ends a tar archive: it has no entry. Docker has such layers.
pub(super) fn is_empty_tar(start: &[u8]) -> bool {
    start.len() == START && start.iter().all(|byte| *byte == 0)
}

fn is_package(start: &[u8]) -> bool {
    start.starts_with(b"!<arch>\ndebian-binary")
        || start.starts_with(super::rpm::MAGIC)
        || super::stream::is_compressed(start)
        || super::stream::may_be_lzma(start)
        || is_tar(start)
}

/// Extended headers that hold for the next entry.
#[derive(Default)]
struct Pending {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    /// The file is stored with its holes left out.
    sparse: bool,
    /// They are not read, and so nothing is known of the entry.
    refused: Option<String>,
}

fn read(from: impl Read, mut keeper: Keeper<'_>) -> Contents {
    let room = keeper.room;
    let mut by_name: HashMap<String, Option<usize>> = HashMap::new();
    let mut archive = Archive::new(from);
    let entries = match archive.entries() {
        Ok(entries) => entries.raw(true),
        Err(error) => return Contents::damaged(error.to_string()),
    };
    let mut pending = Pending::default();
    let mut count = 0usize;
    let mut whole = true;
    for entry in entries {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                keeper
                    .contents
                    .refuse("", format!("damaged after {count} entries: {error}; the rest is not read"));
                whole = false;
                break;
            }
        };
        count += 1;
        if count > room.limits.package_entries {
            let most = room.limits.package_entries;
            keeper.contents.refuse("", format!("more than {most} entries; the rest is not read"));
            whole = false;
            break;
        }
        let kind = entry.header().entry_type();
        if let Some(result) = extended(&mut entry, kind, &mut pending) {
            if let Err(why) = result {
                keeper.contents.refuse("", format!("entry {count}: {why}; the rest is not read"));
                whole = false;
                break;
            }
            continue;
        }
        let sparse = std::mem::take(&mut pending.sparse);
        let refused = pending.refused.take();
        let raw = pending.name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let link = pending.link.take().or_else(|| entry.link_name_bytes().map(std::borrow::Cow::into_owned));
        let cleaned = clean(&raw).map_err(|why| format!("refused: {why}"));
        let name = match refused.map_or(cleaned, Err) {
            Ok(name) => name,
            Err(why) => {
                let shown = String::from_utf8_lossy(raw.get(..200).unwrap_or(&raw)).into_owned();
                keeper.contents.refuse(&shown, why);
                continue;
            }
        };
        if !room.name(&name) {
            keeper.contents.refuse(
                "",
                format!("its names take too much room after {count} entries; the rest is not read"),
            );
            whole = false;
            break;
        }
        match kind {
            _ if sparse => {
                keeper
                    .contents
                    .refuse(&name, "refused: a sparse file of GNU tar, which is not read".to_owned());
            }
            EntryType::Directory => keeper.contents.events.push((name, Event::Directory)),
            EntryType::Symlink if link.as_ref().is_some_and(|to| to.len() as u64 > MOST_NAME) => {
                keeper.contents.refuse(&name, "refused: a link whose target is too long".to_owned());
            }
            EntryType::Symlink => {
                let target = String::from_utf8_lossy(&link.unwrap_or_default()).into_owned();
                keeper.contents.events.push((name, Event::Symlink(target)));
            }
            EntryType::Link => {
                let raw = link.unwrap_or_default();
                let Ok(target) = clean(&raw) else {
                    let shown = String::from_utf8_lossy(raw.get(..200).unwrap_or(&raw)).into_owned();
                    let why = format!("refused: a hard link that leads out of the archive ({shown})");
                    keeper.contents.refuse(&name, why);
                    continue;
                };
                let event = match by_name.get(&target) {
                    Some(of) => Event::File(of.and_then(|of| keeper.contents.link(of, name.clone()))),
                    None => Event::Link(target),
                };
                if let Event::File(at) = &event {
                    by_name.insert(name.clone(), *at);
                }
                keeper.contents.events.push((name, event));
            }
            kind if kind.is_file() || kind.is_contiguous() => {
                let place = (entry.raw_file_position(), entry.size());
                let at = keeper.keep_at(&mut entry, place, &name);
                by_name.insert(name.clone(), at);
                keeper.contents.events.push((name, Event::File(at)));
            }
            EntryType::GNUSparse => {
                keeper
                    .contents
                    .refuse(&name, "refused: a sparse file of GNU tar, which is not read".to_owned());
            }
            // Devices and FIFOs are never opened.
            _ => keeper.contents.events.push((name, Event::File(None))),
        }
    }
    if whole && keeper.parts.is_none() {
        keeper.contents.verify_end(archive.into_inner());
    }
    keeper.contents
}

/// Takes an extended header: a long name of GNU tar, or the records of pax. `None` if the entry is none.
fn extended<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    kind: EntryType,
    pending: &mut Pending,
) -> Option<Result<(), String>> {
    let is_name = kind == EntryType::GNULongName || kind == EntryType::GNULongLink;
    if !is_name && kind != EntryType::XHeader && kind != EntryType::XGlobalHeader {
        return None;
    }
    let size = entry.size();
    // Of a name that is too long so much is read that it is seen to be.
    let limit = if is_name { MOST_NAME + 2 } else { MOST_HEADER };
    let mut bytes = Vec::new();
    if let Err(error) = entry.take(limit).read_to_end(&mut bytes) {
        return Some(Err(error.to_string()));
    }
    if !is_name && size > limit {
        pending.refused = Some(format!("refused: an extended header of {size} bytes"));
        return Some(Ok(()));
    }
    if is_name {
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        if kind == EntryType::GNULongName {
            pending.name = Some(bytes);
        } else {
            pending.link = Some(bytes);
        }
    } else if kind == EntryType::XHeader {
        for record in tar::PaxExtensions::new(&bytes).flatten() {
            match record.key_bytes() {
                b"GNU.sparse.name" => {
                    pending.name = Some(record.value_bytes().to_vec());
                    pending.sparse = true;
                }
                // The name of a sparse file is another record.
                b"path" if pending.sparse => {}
                key if key.starts_with(b"GNU.sparse.") => pending.sparse = true,
                b"path" => pending.name = Some(record.value_bytes().to_vec()),
                b"linkpath" => pending.link = Some(record.value_bytes().to_vec()),
                _ => {}
            }
        }
    }
    Some(Ok(()))
}
