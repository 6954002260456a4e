//! The entries of a cpio archive in the "new ASCII" form, as RPM packages hold it (cpio(5)).

use super::contents::{Contents, Keeper, MOST_NAME, clean};
use super::room::Room;
use super::stream::Stream;
use std::collections::HashMap;
use std::io::{self, BufReader, Read};

/// Magic number, then thirteen numbers of eight hexadecimal digits.
const HEADER: usize = 110;
/// The name of the entry that ends the archive.
const TRAILER: &[u8] = b"TRAILER!!!";
/// The kind of file in a mode (`S_IFMT`), and a regular one (`S_IFREG`).
const KIND: u64 = 0o170_000;
const REGULAR: u64 = 0o100_000;
/// Most names that wait for the last of their hard links, which alone has the bytes.
const MOST_WAITING: usize = 10_000;

/// One entry's header.
struct Header {
    inode: u64,
    mode: u64,
    links: u64,
    size: u64,
    device: (u64, u64),
    name: u64,
}

/// Reads a whole archive.
pub(super) fn read(stream: Stream, room: &Room) -> Contents {
    let mut keeper = Keeper::copying(room);
    let mut from = BufReader::new(stream);
    let mut waiting: HashMap<(u64, (u64, u64)), Vec<String>> = HashMap::new();
    let mut count = 0usize;
    loop {
        match entry(&mut from, &mut keeper, &mut waiting, room, count) {
            Ok(Next::Read) => count += 1,
            Ok(Next::End) => {
                keeper.contents.verify_end(&mut from);
                break;
            }
            Ok(Next::TooMany) => {
                let most = room.limits.package_entries;
                keeper.contents.refuse("", format!("more than {most} entries; the rest is not read"));
                break;
            }
            Err(error) => {
                let why = format!("damaged after {count} entries: {error}; the rest is not read");
                keeper.contents.refuse("", why);
                break;
            }
        }
    }
    keeper.contents
}

/// What came next.
enum Next {
    /// An entry, which was read.
    Read,
    /// The entry that ends the archive.
    End,
    /// One entry more than are read of an archive.
    TooMany,
}

/// Reads one entry, after `count` others.
fn entry(
    from: &mut BufReader<Stream>,
    keeper: &mut Keeper<'_>,
    waiting: &mut HashMap<(u64, (u64, u64)), Vec<String>>,
    room: &Room,
    count: usize,
) -> io::Result<Next> {
    let header = header(from)?;
    if header.name == 0 || header.name > MOST_NAME {
        return Err(io::Error::other(format!("a name of {} bytes", header.name)));
    }
    let mut name = vec![0; header.name as usize];
    from.read_exact(&mut name)?;
    skip(from, padding(HEADER as u64 + header.name))?;
    name.truncate(memchr::memchr(0, &name).unwrap_or(name.len()));
    if name == TRAILER {
        return Ok(Next::End);
    }
    if count >= room.limits.package_entries {
        return Ok(Next::TooMany);
    }
    if !room.name(&String::from_utf8_lossy(&name)) {
        return Err(io::Error::other("its names take too much room"));
    }
    let mut body = from.by_ref().take(header.size);
    let cleaned = clean(&name);
    match &cleaned {
        Err(why) => {
            let shown = String::from_utf8_lossy(name.get(..200).unwrap_or(&name)).into_owned();
            keeper.contents.refuse(&shown, format!("refused: {why}"));
        }
        Ok(name) if header.mode & KIND == REGULAR => {
            let links = (header.inode, header.device);
            if header.links > 1 && header.size == 0 {
                // The bytes come with the last link.
                if waiting.len() < MOST_WAITING {
                    waiting.entry(links).or_default().push(name.clone());
                }
            } else {
                let at = keeper.keep(&mut body, header.size, name);
                if let Some(at) = at.filter(|_| header.links > 1) {
                    for name in waiting.remove(&links).unwrap_or_default() {
                        keeper.contents.link(at, name);
                    }
                }
            }
        }
        // Directories and links hold nothing; devices and FIFOs are never opened.
        Ok(_) => {}
    }
    let left = body.limit();
    skip(from, left)?;
    skip(from, padding(header.size))?;
    Ok(Next::Read)
}

/// Names and contents are padded to four bytes.
fn padding(size: u64) -> u64 {
    size.wrapping_neg() % 4
}

fn skip(from: &mut BufReader<Stream>, count: u64) -> io::Result<()> {
    let skipped = io::copy(&mut from.by_ref().take(count), &mut io::sink())?;
    if skipped < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

fn header(from: &mut impl Read) -> io::Result<Header> {
    let mut bytes = [0; HEADER];
    from.read_exact(&mut bytes)?;
    match bytes.get(..6) {
        Some(b"070701" | b"070702") => {}
        Some(b"07070X") => {
            return Err(io::Error::other("entries of rpm's form for files over 4 GiB, which is not read"));
        }
        _ => return Err(io::Error::other("not an entry of a cpio archive")),
    }
    let field = |index: usize| -> io::Result<u64> {
        let digits = bytes.get(6 + index * 8..14 + index * 8).unwrap_or_default();
        let text =
            std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        text.and_then(|text| u64::from_str_radix(text, 16).ok())
            .ok_or_else(|| io::Error::other("an entry whose numbers are none"))
    };
    Ok(Header {
        inode: field(0)?,
        mode: field(1)?,
        links: field(4)?,
        size: field(6)?,
        device: (field(7)?, field(8)?),
        name: field(11)?,
    })
}
