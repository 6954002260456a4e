//! Files that a process has mapped as code: the libraries and modules it really runs, whatever is now at their names.
//!
//! `/proc/N/maps` names them (`proc_pid_maps(5)`); the links in `/proc/N/map_files` give their very bytes, also of files
//! that were deleted or replaced, but following them takes `CAP_SYS_ADMIN` or `CAP_CHECKPOINT_RESTORE`. Without it a
//! file counts only if the one at its name has the inode that is mapped.

use super::process::{DELETED, opened, read};
use crate::image::Input;
use crate::image::confined::Directory;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes read of a list of mappings; a process with 100,000 mappings has about 10 MiB.
const MOST_BYTES: u64 = 64 << 20;
/// Most files looked at.
const MOST_FILES: usize = 4096;

/// `ESRCH` of Linux: no such process.
const ESRCH: i32 = 3;

/// A file mapped as code.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// Its name as the process sees it.
    pub path: PathBuf,
    /// The file that is mapped has no longer this name.
    pub replaced: bool,
    /// Its bytes and what identifies it, or why they cannot be had.
    pub bytes: Result<(Input, (u64, u64)), String>,
    /// The file that is now at its name, where that is another one.
    pub on_disk: Option<Input>,
}

/// One line of the list.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    range: &'a [u8],
    executable: bool,
    inode: u64,
    name: &'a [u8],
}

fn line(line: &[u8]) -> Option<Line<'_>> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        rest = after;
        field
    };
    let (range, modes) = (field(), field());
    let _offset = field();
    let _device = field();
    let inode = std::str::from_utf8(field()).ok()?.parse().ok()?;
    Some(Line { range, executable: modes.get(2) == Some(&b'x'), inode, name: rest.trim_ascii_start() })
}

/// The name of a mapping: line feeds are written as `\012`.
fn unescape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(left) = rest.strip_prefix(b"\\012") {
            out.push(b'\n');
            rest = left;
        } else {
            out.push(first);
            rest = after;
        }
    }
    out
}

/// The files that a process has mapped as code.
#[derive(Debug, Default)]
pub struct Listing {
    /// Each once, by name, without the program itself.
    pub files: Vec<Mapped>,
    /// Why the list is not whole, if it is not.
    pub cut: Option<String>,
}

/// Why it is not known what a process has mapped.
#[derive(Debug, thiserror::Error)]
pub enum Unknown {
    /// It has ended; its id may be another process' by now.
    #[error("it ended before they were read")]
    Ended,
    /// Not permitted.
    #[error("they may not be read without CAP_SYS_PTRACE")]
    NotPermitted,
    /// Anything else.
    #[error("they cannot be read: {0}")]
    Other(std::io::Error),
}

/// The files that process `pid` has mapped as code. `started` is the time at which it was started: another process that
/// has got its id is not taken for it. `program` is the device and inode of the program.
pub fn mapped(pid: u32, started: u64, program: Option<(u64, u64)>) -> Result<Listing, Unknown> {
    list(pid, started, program, MOST_BYTES, MOST_FILES)
}

fn list(
    pid: u32,
    started: u64,
    program: Option<(u64, u64)>,
    most_bytes: u64,
    most_files: usize,
) -> Result<Listing, Unknown> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let mut bytes = Vec::new();
    let read = File::open(folder.join("maps"))
        .and_then(|file| file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(match error.kind() {
            std::io::ErrorKind::PermissionDenied => Unknown::NotPermitted,
            std::io::ErrorKind::NotFound => Unknown::Ended,
            _ if error.raw_os_error() == Some(ESRCH) => Unknown::Ended,
            _ => Unknown::Other(error),
        });
    }
    // A process that has ended has no mappings.
    if bytes.is_empty() {
        return Err(Unknown::Ended);
    }
    let mut listing = Listing::default();
    if bytes.len() as u64 > most_bytes {
        listing.cut = Some(format!("its list of mappings has more than {most_bytes} bytes"));
        // The line that was cut is none.
        bytes.truncate(memchr::memrchr(b'\n', &bytes).unwrap_or_default());
    }
    let root = Directory::open(&folder.join("root")).ok();
    let mut seen = HashSet::new();
    for line in bytes.split(|&byte| byte == b'\n').filter_map(line) {
        let real = line.executable && line.inode != 0 && line.name.starts_with(b"/");
        if !real || line.name.starts_with(b"/memfd:") || !seen.insert((line.inode, line.name)) {
            continue;
        }
        if listing.files.len() >= most_files {
            listing.cut = Some(format!("it has mapped more than {most_files} files"));
            break;
        }
        let one = file(&folder, root.as_ref(), &line);
        let same_program = one.bytes.as_ref().is_ok_and(|(_, found)| Some(*found) == program);
        if !same_program {
            listing.files.push(one);
        }
    }
    // Its id may have become another's while they were read.
    if super::process::started(pid) != Some(started) {
        return Err(Unknown::Ended);
    }
    listing.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

fn file(folder: &Path, root: Option<&Directory>, line: &Line<'_>) -> Mapped {
    let name = unescape(line.name);
    let whole = PathBuf::from(OsStr::from_bytes(&name));
    let at = |place: &Path| root.and_then(|root| read(root.find(place).ok()?.open()));
    let there = at(&whole);
    if let Some((input, found)) = there.clone()
        && found.1 == line.inode
    {
        return Mapped { path: whole, replaced: false, bytes: Ok((input, found)), on_disk: None };
    }
    // A name may really end so; then the file would have been found under it.
    let (path, on_disk) = match name.strip_suffix(DELETED) {
        Some(short) => {
            let path = PathBuf::from(OsStr::from_bytes(short));
            let on_disk = at(&path);
            (path, on_disk)
        }
        None => (whole, there),
    };
    // A file that still has its name and another inode lies on a file system that shows two numbers for one file
    // (overlayfs), or below another mount.
    let deleted = name.ends_with(DELETED);
    let link = folder.join("map_files").join(OsStr::from_bytes(line.range));
    let bytes = opened(&link).filter(|(_, found)| found.1 == line.inode).ok_or_else(|| {
        let why = match (deleted, &on_disk) {
            (true, _) => "its file was deleted or replaced",
            (false, Some(_)) => "the file at its name is not surely the one that is mapped",
            (false, None) => "the file at its name cannot be opened",
        };
        format!("{why}, and reading what is mapped takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE")
    });
    Mapped { path, replaced: deleted, bytes, on_disk: on_disk.map(|(input, _)| input) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_names_with_blanks() {
        let text = b"7f1c-7f2d r-xp 00001000 fe:01 1234                       /opt/a b/lib.so (deleted)";
        let found = line(text).unwrap();
        assert_eq!((found.range, found.executable, found.inode), (&b"7f1c-7f2d"[..], true, 1234));
        assert_eq!(found.name, b"/opt/a b/lib.so (deleted)");
        assert_eq!(line(b"7f1c-7f2d rw-p 00000000 00:00 0 ").unwrap().name, b"");
        assert_eq!(line(b"7f1c-7f2d rw-p"), None);
        assert_eq!(unescape(b"/a\\012b"), b"/a\nb");
    }

    fn own(most_bytes: u64, most_files: usize) -> Result<Listing, Unknown> {
        let pid = std::process::id();
        list(pid, super::super::process::started(pid).unwrap(), None, most_bytes, most_files)
    }

    #[test]
    fn this_process_has_its_c_library_mapped() {
        let listing = own(MOST_BYTES, MOST_FILES).unwrap();
        let libc = listing.files.iter().find(|file| file.path.to_string_lossy().contains("libc"));
        let libc = libc.expect("the C library is mapped");
        assert!(!libc.replaced);
        assert!(libc.bytes.as_ref().is_ok_and(|(input, _)| input.len() > 1000));
        assert_eq!(listing.cut, None);
    }

    #[test]
    fn a_list_that_is_cut_says_so() {
        assert_eq!(own(MOST_BYTES, 1).unwrap().cut.as_deref(), Some("it has mapped more than 1 files"));
        let cut = own(100, MOST_FILES).unwrap();
        assert_eq!(cut.cut.as_deref(), Some("its list of mappings has more than 100 bytes"));
        assert!(cut.files.len() <= 1, "{:?}", cut.files);
    }

    #[test]
    fn another_process_of_the_same_id_is_not_the_one_that_was_meant() {
        let pid = std::process::id();
        let started = super::super::process::started(pid).unwrap();
        assert!(matches!(mapped(pid, started + 1, None), Err(Unknown::Ended)));
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let (pid, mut state) = (child.id(), None);
        let started = super::super::process::started(pid).unwrap();
        // Until somebody waits for it, it has its id and nothing else.
        for _ in 0..500 {
            state = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
            if state.as_ref().is_some_and(|text| text.contains(") Z ")) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(matches!(mapped(pid, started, None), Err(Unknown::Ended)), "{state:?}");
        child.wait().unwrap();
        assert!(matches!(mapped(pid, started, None), Err(Unknown::Ended)));
    }
}
