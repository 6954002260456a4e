//! The file at the name that a running program was started by: the one that runs, another, or none.

use crate::image::Input;
use crate::image::confined::{open_inside, open_regular};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// What the kernel adds to the name of a file that is no longer there.
pub(in crate::target) const DELETED: &[u8] = b" (deleted)";
/// Endings of programs moved aside for new ones: nginx's own `make install` makes `nginx.old` (`auto/install`).
const MOVED_ASIDE: [&[u8]; 4] = [b".old", b".bak", b".orig", b"~"];

/// The file at the name that a program was started by.
pub(super) struct NamedFile {
    /// Its name now.
    pub(super) place: PathBuf,
    /// The name that it was started by, where it has another now.
    pub(super) started_as: Option<PathBuf>,
    pub(super) deleted: bool,
    /// Whether the file that is there now is the one that runs; `None` where nothing can be seen there.
    pub(super) same: Option<bool>,
    /// The file that is there now.
    pub(super) on_disk: Option<Input>,
}

impl From<super::loader::Loaded> for NamedFile {
    fn from(loaded: super::loader::Loaded) -> Self {
        let replaced = loaded.replaced || loaded.on_disk.is_some();
        Self {
            place: loaded.place,
            started_as: None,
            deleted: replaced,
            same: if loaded.replaced { loaded.on_disk.as_ref().map(|_| false) } else { Some(!replaced) },
            on_disk: if replaced { loaded.on_disk } else { Some(loaded.input) },
        }
    }
}

/// What is at the name of a running program. `lines` are command lines that it was started by, `directory` is the one
/// that it is in, `own_mounts` tells whether it sees the mounts that this program sees.
pub(super) fn named_file<'a>(
    text: &Path,
    identity: (u64, u64),
    root: &Path,
    own_mounts: bool,
    mut lines: impl Iterator<Item = &'a Vec<u8>>,
    directory: Option<&Path>,
) -> NamedFile {
    // The name is seen from the reader's root, whatever root the process has, as long as both see the same mounts; for a
    // process in another mount namespace from the root there.
    let at = |place: &Path| -> Option<(Input, (u64, u64))> {
        if own_mounts && let Some(found) = opened(place) {
            return Some(found);
        }
        let inside = read(open_inside(root, place).map(|(file, _)| file));
        match inside {
            Some((input, found)) if found == identity => Some((input, found)),
            inside => opened(place).filter(|(_, found)| *found == identity).or(inside),
        }
    };
    let whole = at(text);
    if let Some((input, found)) = &whole
        && *found == identity
    {
        let base = directory.unwrap_or(Path::new("/"));
        let moved = lines.find_map(|line| {
            let started = started_by(line)?;
            // It may have been started through a link, which leads to the running file still, or by now to something
            // that has to do with neither file.
            let given = base.join(started);
            let there = given_file(root, &given);
            if let Some((input, found, real)) = &there
                && *found != identity
                && leads_on(&given, real, started, text)
            {
                return Some((input.clone(), given));
            }
            let name = moved_from(text, started)?;
            let (input, beside) = at(&name)?;
            let given = there.map(|(_, found, _)| found);
            let by_link = given == Some(identity) || (started.is_absolute() && given != Some(beside));
            (beside != identity && !by_link).then_some((input, name))
        });
        if let Some((input, name)) = moved {
            return NamedFile {
                place: text.to_path_buf(),
                started_as: Some(name),
                deleted: true,
                same: Some(false),
                on_disk: Some(input),
            };
        }
        return NamedFile {
            place: text.to_path_buf(),
            started_as: None,
            deleted: false,
            same: Some(true),
            on_disk: Some(input.clone()),
        };
    }
    match text.as_os_str().as_bytes().strip_suffix(DELETED) {
        Some(name) => {
            let place = PathBuf::from(OsStr::from_bytes(name));
            let found = at(&place);
            let same = found.as_ref().map(|(_, found)| *found == identity);
            NamedFile {
                place,
                started_as: None,
                deleted: same != Some(true),
                same,
                on_disk: found.map(|(input, _)| input),
            }
        }
        // Nothing at that name: it lies where this program cannot see, which says nothing about the file.
        None => NamedFile {
            place: text.to_path_buf(),
            started_as: None,
            deleted: whole.is_some(),
            same: whole.as_ref().map(|_| false),
            on_disk: whole.map(|(input, _)| input),
        },
    }
}

/// The name that a program was started by, as its command line has it.
fn started_by(line: &[u8]) -> Option<&Path> {
    let first = line.split(|byte| *byte == 0).next()?;
    // Titles that programs give themselves hold the name as well: `nginx: master process /usr/sbin/nginx -g ...`.
    let mut words = first.split(|byte| *byte == b' ');
    let first = match words.next()? {
        title if title.ends_with(b":") => words.nth(2)?,
        _ => first,
    };
    Some(Path::new(OsStr::from_bytes(first)))
}

/// What a name of a command line leads to, seen from the root of the process that it is of: its bytes, device and inode, and
/// its place there without links.
fn given_file(root: &Path, given: &Path) -> Option<(Input, (u64, u64), PathBuf)> {
    let (file, place) = open_inside(root, given).ok()?;
    let (input, found) = read(Ok(file))?;
    Some((input, found, Path::new("/").join(place.strip_prefix(root).ok()?)))
}

/// Whether a name that a program was started by goes through a link to a file of the running one's own name elsewhere:
/// `current/bin/server` of releases that lie side by side. Wrappers have another name than what they start.
fn leads_on(given: &Path, real: &Path, started: &Path, running: &Path) -> bool {
    let has_a_place = started.components().nth(1).is_some();
    has_a_place
        && started.file_name() == running.file_name()
        && real.file_name() == running.file_name()
        && real != plain(given)
}

/// A path without `.` and `..`, as far as its words tell.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The name that a program's file had, if it was moved aside since it was started: its own name with a usual ending.
fn moved_from(place: &Path, started: &Path) -> Option<PathBuf> {
    let started = started.file_name()?;
    let name = place.file_name()?.as_bytes();
    let aside = MOVED_ASIDE.iter().any(|ending| name.strip_suffix(*ending) == Some(started.as_bytes()));
    aside.then(|| place.with_file_name(started))
}

pub(in crate::target) fn opened(path: &Path) -> Option<(Input, (u64, u64))> {
    read(open_regular(path))
}

/// The bytes of a file that was opened, with its device and inode.
pub(in crate::target) fn read(file: io::Result<File>) -> Option<(Input, (u64, u64))> {
    let file = file.ok()?;
    let found = file.metadata().ok()?;
    Some((Input::file(file).ok()?, (found.dev(), found.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_moved_aside_was_started_by_its_name() {
        let at = |place: &str, line: &[u8]| moved_from(Path::new(place), started_by(line)?);
        let wanted = Some(PathBuf::from("/opt/sbin/nginx"));
        assert_eq!(at("/opt/sbin/nginx.old", b"./nginx\0-p\0.\0"), wanted);
        assert_eq!(at("/opt/sbin/nginx.old", b"nginx: master process /opt/sbin/nginx -p ."), wanted);
        assert_eq!(at("/opt/sbin/nginx.old", b"nginx: worker process\0"), None);
        assert_eq!(at("/opt/sbin/nginx.old", b"/opt/sbin/nginx.old\0"), None);
        assert_eq!(at("/opt/sbin/nginx-debug", b"/opt/sbin/nginx\0"), None);
        assert_eq!(at("/opt/sbin/nginx", b"\0"), None);
    }
}
