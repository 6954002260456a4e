//! `ar` archives: regular and thin, of GNU, BSD and COFF spelling.
//!
//! Only the headers are read, one after the other, so five thousand members cost five thousand small reads. The
//! member header is `object`'s; its archive reader is not used, since it keeps all it has read and takes memory by
//! the sizes the file claims. Source: `ar(5)`, and GNU binutils' documentation of thin archives.

use super::confined::open_inside;
use super::{Input, ReadError};
use crate::facts::Problem;
use crate::limits::Limits;
use object::archive::{Header, MAGIC, TERMINATOR, THIN_MAGIC};
use object::pod;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Largest table of long names read, in bytes.
const MAX_NAMES: u64 = 64 << 20;
/// Longest member name, in bytes (Linux `PATH_MAX`).
const MAX_NAME: usize = 4096;
/// How deep archives in archives are read. Linkers take nothing from them, and who packs them does so by mistake.
pub const MOST_NESTED: u32 = 3;
const HEADER: u64 = size_of::<Header>() as u64;

/// An archive's members.
#[derive(Debug)]
pub struct Archive {
    /// Members' bytes lie in files of their own.
    pub thin: bool,
    /// The members, in order, without symbol and name tables.
    pub members: Vec<Member>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

/// One member.
#[derive(Debug, Clone)]
pub struct Member {
    /// Name; in a thin archive a path relative to the archive's folder.
    pub name: Vec<u8>,
    /// Size in bytes, as the archive says.
    pub size: u64,
    /// Its bytes; `None` in a thin archive.
    pub input: Option<Input>,
    /// Where its header lies.
    pub at: u64,
    /// Of a thin archive's member that is a member of the archive of that name, where it lies in that.
    pub inside: Option<u64>,
}

/// Whether the bytes begin like an archive.
pub fn is_archive(input: &Input) -> bool {
    kind(input).is_some()
}

fn kind(input: &Input) -> Option<bool> {
    let mut magic = [0; MAGIC.len()];
    match input.read_at(0, &mut magic) {
        Ok(got) if got == magic.len() && magic == MAGIC => Some(false),
        Ok(got) if got == magic.len() && magic == THIN_MAGIC => Some(true),
        _ => None,
    }
}

/// Reads the list of members. `None` if this is no archive.
pub fn read(input: &Input, limits: &Limits) -> Option<Archive> {
    let mut archive = Archive { thin: kind(input)?, members: Vec::new(), problems: Vec::new() };
    let mut names = Vec::new();
    let mut at = MAGIC.len() as u64;
    while at < input.len() {
        match member(input, at, archive.thin, &mut names) {
            Ok((found, next)) => {
                if let Some((member, whole)) = found {
                    if archive.members.len() >= limits.archive_members {
                        let message = format!("only the first {} members are read", limits.archive_members);
                        archive.problems.push(Problem::damage("too-many-members", message));
                        break;
                    }
                    if !whole {
                        let name = String::from_utf8_lossy(&member.name);
                        let message = format!("the archive ends inside its member {name}");
                        archive.problems.push(Problem::damage("damaged-archive", message));
                    }
                    archive.members.push(member);
                }
                // A header is never skipped by nothing, so this ends.
                at = next;
            }
            Err(why) => {
                let message = format!("archive member at offset {at:#x}: {why}");
                archive.problems.push(Problem::damage("damaged-archive", message));
                break;
            }
        }
    }
    Some(archive)
}

type Found = Option<(Member, bool)>;

/// Reads the member at `at`; gives it (unless it is a table) with whether it is whole, and where the next one begins.
fn member(input: &Input, at: u64, thin: bool, names: &mut Vec<u8>) -> Result<(Found, u64), String> {
    let bytes = input.read_vec(at, HEADER, HEADER, "header").map_err(|_| "cut off".to_owned())?;
    let Ok((header, _)) = pod::from_bytes::<Header>(&bytes) else { return Err("cut off".to_owned()) };
    if header.terminator != TERMINATOR {
        return Err("the header does not end as headers do".to_owned());
    }
    let size = number(&header.size).ok_or("its size is no number")?;
    let mut start = at + HEADER;
    let end = start.checked_add(size).ok_or("its size is no size")?;
    let padded = end.checked_add(end & 1).ok_or("its size is no size")?;
    let raw = trimmed(&header.name);
    if raw == b"//" {
        *names = input.read_vec(start, size, MAX_NAMES, "names").map_err(|error| error.to_string())?;
        return Ok((None, padded));
    }
    let mut size = size;
    let mut inside = None;
    let name = if let Some(place) =
        raw.strip_prefix(b"/").filter(|place| place.first().is_some_and(u8::is_ascii_digit))
    {
        // `/123`, in thin archives also `/123:456` for a member of an archive in the archive.
        let mut parts = place.splitn(2, |&byte| byte == b':');
        let digits = parts.next().unwrap_or_default();
        inside = parts.next().filter(|_| thin).map(number);
        number(digits).and_then(|place| long_name(names, place)).ok_or("its name is not in the name table")?
    } else if let Some(length) = raw.strip_prefix(b"#1/") {
        let length = number(length).filter(|&length| length <= size).ok_or("its name has no length")?;
        let name =
            input.read_vec(start, length, MAX_NAME as u64, "name").map_err(|error| error.to_string())?;
        start += length;
        size -= length;
        let end = memchr::memchr(0, &name).unwrap_or(name.len());
        name.get(..end).unwrap_or_default().to_vec()
    } else if raw.starts_with(b"/") {
        raw.to_vec()
    } else {
        raw.get(..memchr::memchr(b'/', raw).unwrap_or(raw.len())).unwrap_or_default().to_vec()
    };
    // Whatever its name has become, a program is no table.
    if is_symbol_table(&name) && !is_elf(input, start) {
        return Ok((None, padded));
    }
    if thin {
        let inside = match inside {
            Some(None) => return Err("its place in another archive is no number".to_owned()),
            Some(place) => place,
            None => None,
        };
        return Ok((Some((Member { name, size, input: None, at, inside }, true)), start));
    }
    let there = size.min(input.len().saturating_sub(start));
    let part = input.part(start, there);
    Ok((Some((Member { name, size, input: part, at, inside: None }, there == size)), padded))
}

/// Symbol tables of GNU, of Microsoft's tools and of BSD.
fn is_symbol_table(name: &[u8]) -> bool {
    matches!(name, b"/" | b"/SYM64/" | b"/<ECSYMBOLS>/" | b"/<XFGHASHMAP>/") || name.starts_with(b"__.SYMDEF")
}

fn is_elf(input: &Input, at: u64) -> bool {
    let mut magic = [0; 4];
    matches!(input.read_at(at, &mut magic), Ok(4)) && magic == object::elf::ELFMAG
}

fn trimmed(field: &[u8]) -> &[u8] {
    field.trim_ascii_end()
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(trimmed(field))
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?
        .parse()
        .ok()
}

/// A name in the table: ended by a line feed with a slash before it (GNU) or by NUL (COFF).
fn long_name(names: &[u8], place: u64) -> Option<Vec<u8>> {
    let rest = names.get(usize::try_from(place).ok()?..)?;
    let rest = rest.get(..MAX_NAME).unwrap_or(rest);
    let name = rest.get(..memchr::memchr2(b'\n', 0, rest)?)?;
    let name = name.strip_suffix(b"/").unwrap_or(name);
    (!name.is_empty()).then(|| name.to_vec())
}

/// Opens a member of a thin archive: a regular file at or below the archive's own folder, nowhere else.
pub fn open_thin(member: &Member, archive: &Path) -> Result<Input, ReadError> {
    let what = || format!("member {}", String::from_utf8_lossy(&member.name));
    let refused = |why: &str| ReadError::Damaged { what: what(), why: why.to_owned() };
    let path = Path::new(std::ffi::OsStr::from_bytes(&member.name));
    if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(refused(
            "its file lies outside the archive's folder and is not opened, since no path from inside a file is trusted: \
             name the objects themselves, or make the archive without T (--thin)",
        ));
    }
    let folder = match archive.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let (file, _) =
        open_inside(folder, path).map_err(|error| ReadError::Io { what: what(), why: error.to_string() })?;
    Input::file(file).map_err(|error| ReadError::Io { what: what(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::testing::path;
    use crate::image::Image;
    use std::fmt::Write as _;

    fn archive(bytes: impl Into<std::sync::Arc<[u8]>>) -> Archive {
        read(&Input::memory(bytes), &Limits::default()).unwrap()
    }

    fn entry(name: &str, data: &str) -> String {
        let mut out = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{data}", 0, 0, 0, 644, data.len());
        if data.len() % 2 == 1 {
            out.push('\n');
        }
        out
    }

    fn names(archive: &Archive) -> Vec<String> {
        archive.members.iter().map(|m| String::from_utf8_lossy(&m.name).into_owned()).collect()
    }

    #[test]
    fn members_of_a_regular_archive_are_elf_files() {
        let archive = archive(std::fs::read(path("lib.a")).unwrap());
        assert!(!archive.thin && archive.problems.is_empty());
        assert_eq!(names(&archive), ["x1.o", "x2.o"]);
        for member in archive.members {
            let image = Image::open(member.input.unwrap(), &Limits::default()).unwrap();
            assert!(image.is_relocatable() && image.section(".debug_info").is_some());
        }
    }

    #[test]
    fn members_of_a_thin_archive_lie_beside_it_and_nowhere_else() {
        let place = path("libthin.a");
        let archive = archive(std::fs::read(&place).unwrap());
        assert!(archive.thin && archive.problems.is_empty());
        assert_eq!(names(&archive), ["tx1.o", "tx2.o"]);
        for member in &archive.members {
            assert_eq!(open_thin(member, &place).unwrap().len(), member.size);
        }
        for name in ["../elf/tx1.o", "/etc/passwd", "..", "src", "missing.o"] {
            let member = Member { name: name.into(), size: 1, input: None, at: 0, inside: None };
            assert!(open_thin(&member, &place).is_err(), "{name}");
        }
    }

    #[test]
    fn long_names_of_gnu_and_bsd() {
        let mut text = "!<arch>\n".to_owned();
        text += &entry("/", "symbols");
        text += &entry("//", "a_name_longer_than_sixteen.o/\nanother/one.o/\n");
        text += &entry("/0", "one");
        text += &entry("/30", "four");
        text += &entry("#1/20", "bsd_long_name.o\0\0\0\0\0five!");
        text += &entry("__.SYMDEF", "skip");
        text += &entry("short.o/", "six");
        let archive = archive(text.into_bytes());
        assert_eq!(archive.problems, []);
        let expected = ["a_name_longer_than_sixteen.o", "another/one.o", "bsd_long_name.o", "short.o"];
        assert_eq!(names(&archive), expected);
        let sizes: Vec<u64> = archive.members.iter().map(|m| m.input.as_ref().unwrap().len()).collect();
        assert_eq!(sizes, [3, 4, 5, 3]);
    }

    #[test]
    fn a_program_is_no_table_whatever_it_is_called() {
        for name in ["/", "/SYM64/", "__.SYMDEF", "/\0\n\0", "/x"] {
            let mut text = "!<arch>\n".to_owned();
            text += &entry("/", "symbols");
            text += &entry(name, "\x7fELF and more");
            text += &entry("last.o/", "six");
            let archive = archive(text.into_bytes());
            assert_eq!(names(&archive), [name, "last.o"]);
        }
    }

    #[test]
    fn five_thousand_members_are_quick() {
        let mut text = "!<arch>\n".to_owned();
        for index in 0..5000 {
            text += &entry(&format!("m{index}.o/"), "data");
        }
        let start = std::time::Instant::now();
        assert_eq!(archive(text.into_bytes()).members.len(), 5000);
        assert!(start.elapsed().as_secs() < 2);
    }

    #[test]
    fn damage_ends_the_list_and_is_reported() {
        for (tail, members) in [
            ("short", 1),
            (&entry("x/", "data").replace('`', "?")[..], 1),
            (&entry("/99", "data")[..], 1),
            (&entry("#1/99", "data")[..], 1),
            (&entry("cut/", "data").replace("4         `", "99        `")[..], 2),
            (&entry("huge/", "data").replace("4         `", "9999999999`")[..], 2),
        ] {
            let mut text = "!<arch>\n".to_owned() + &entry("first.o/", "data");
            write!(text, "{tail}").unwrap();
            let archive = archive(text.into_bytes());
            assert_eq!(archive.members.len(), members, "{tail}");
            assert!(archive.problems.iter().any(|p| p.loses_facts), "{tail}");
        }
    }
}
