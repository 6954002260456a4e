//! Files that a process has mapped as code: the libraries and modules it really runs, whatever is now at their names.
//!
//! `/proc/N/maps` names them (`proc_pid_maps(5)`); the links in `/proc/N/map_files` give their very bytes, also of files
//! that were deleted or replaced, but following them takes `CAP_SYS_ADMIN` or `CAP_CHECKPOINT_RESTORE`. Without it a
//! file counts only if the one at its name has the inode that is mapped.

use super::process::{DELETED, opened};
use crate::image::{Input, confined};
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
    /// The file at that name is another one now, or none.
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

/// The files that process `pid` has mapped as code, each once, without the program itself (`program` is its device and
/// inode). `Err` says why the list cannot be read.
pub fn mapped(pid: u32, program: Option<(u64, u64)>) -> Result<Vec<Mapped>, String> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let mut bytes = Vec::new();
    let read = File::open(folder.join("maps")).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    if let Err(error) = read {
        return match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                Err("which libraries it runs may not be read without CAP_SYS_PTRACE".to_owned())
            }
            // It has ended meanwhile.
            std::io::ErrorKind::NotFound => Ok(Vec::new()),
            _ if error.raw_os_error() == Some(ESRCH) => Ok(Vec::new()),
            _ => Err(format!("which libraries it runs cannot be read: {error}")),
        };
    }
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for line in bytes.split(|&byte| byte == b'\n').filter_map(line) {
        let real = line.executable && line.inode != 0 && line.name.starts_with(b"/");
        if !real || line.name.starts_with(b"/memfd:") || !seen.insert((line.inode, line.name)) {
            continue;
        }
        if files.len() >= MOST_FILES {
            break;
        }
        let one = file(&folder, &line);
        let same_program = one.bytes.as_ref().is_ok_and(|(_, found)| Some(*found) == program);
        if !same_program {
            files.push(one);
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn file(folder: &Path, line: &Line<'_>) -> Mapped {
    let name = unescape(line.name);
    let whole = PathBuf::from(OsStr::from_bytes(&name));
    let root = folder.join("root");
    let at = |place: &Path| confined::resolve(&root, place).and_then(|path| opened(&path));
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
    let link = folder.join("map_files").join(OsStr::from_bytes(line.range));
    let bytes = opened(&link).filter(|(_, found)| found.1 == line.inode).ok_or_else(|| {
        "its file was deleted or replaced, and reading what is mapped takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE"
            .to_owned()
    });
    let replaced = name.ends_with(DELETED) || on_disk.is_some();
    Mapped { path, replaced, bytes, on_disk: on_disk.map(|(input, _)| input) }
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

    #[test]
    fn this_process_has_its_c_library_mapped() {
        let files = mapped(std::process::id(), None).unwrap();
        let libc = files.iter().find(|file| file.path.to_string_lossy().contains("libc"));
        let libc = libc.expect("the C library is mapped");
        assert!(!libc.replaced);
        assert!(libc.bytes.as_ref().is_ok_and(|(input, _)| input.len() > 1000));
    }
}
