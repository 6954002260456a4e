//! Opening files whose paths come from elsewhere: nothing outside a root, nothing but regular files.
//!
//! Symbolic links are followed here, component by component, as a process confined to the root would see them, so a
//! link to `/etc/passwd` in a mounted image means the image's file. What that gives is opened below the root with
//! `openat2(2)`, which follows no link any more: a link put there in between is refused.
//!
//! A file is first opened without being opened (`O_PATH`), which no FIFO, device or socket notices. What the handle is
//! decides; only then is the same file opened for reading, through the handle and not by its name. A name that changes
//! its meaning in between changes nothing.
//!
//! What was found and is opened later, or again, is kept as a place below the handle of a directory ([`Below`]): a name
//! that has become a link meanwhile is refused, and does not lead elsewhere.

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Most symbolic links followed in one path, as Linux does.
const MAX_LINKS: u32 = 40;
/// Longest path followed, in bytes (Linux `PATH_MAX`).
const MAX_PATH: usize = 4096;

/// A handle that cannot be read.
pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// For reading; nothing that could wait does.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a regular file named by the user. Links are followed; a FIFO, a device or a socket is refused untouched.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let handle = openat(CWD, path, LOOK, Mode::empty())?;
    readable(&handle, || openat(CWD, path, READ, Mode::empty()))
}

/// Opens a regular file by its path inside `root`; gives the path on this machine, too.
pub fn open_inside(root: &Path, inside: &Path) -> io::Result<(File, PathBuf)> {
    let directory = Directory::open(root)?;
    let found = directory.find(inside)?;
    Ok((found.open()?, root.join(found.path)))
}

/// A directory held open. What is below it is reached from the handle, and no link is followed on the way.
#[derive(Debug, Clone)]
pub struct Directory(Arc<OwnedFd>);

/// The place of something below a directory that is held open.
#[derive(Debug, Clone)]
pub struct Below {
    directory: Directory,
    /// The path from the directory, without links.
    pub path: PathBuf,
}

/// An entry of a directory.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What it is; of a link nothing more.
    pub kind: FileType,
}

impl Directory {
    /// Opens a directory named by the user; links are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(openat(CWD, path, LOOK | OFlags::DIRECTORY, Mode::empty())?)))
    }

    /// Opens a directory below this one.
    pub fn directory(&self, path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(below(&self.0, path, LOOK | OFlags::DIRECTORY)?)))
    }

    /// What a path leads to if this directory is taken for the root: links are followed inside it.
    pub fn find(&self, inside: &Path) -> io::Result<Below> {
        let path = self.resolve(inside).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(self.below(path))
    }

    /// A place by its path from here, in which no link is followed.
    pub fn below(&self, path: PathBuf) -> Below {
        Below { directory: self.clone(), path }
    }

    /// Opens a regular file.
    pub fn file(&self, path: &Path) -> io::Result<File> {
        let handle = below(&self.0, path, LOOK | OFlags::NOFOLLOW)?;
        readable(&handle, || below(&self.0, path, READ | OFlags::NOFOLLOW))
    }

    /// What is at a path; of a link, the link.
    pub fn metadata(&self, path: &Path) -> io::Result<std::fs::Metadata> {
        File::from(below(&self.0, path, LOOK | OFlags::NOFOLLOW)?).metadata()
    }

    /// What is in a directory, in no order; an error is the last entry.
    pub fn entries(&self, path: &Path) -> io::Result<impl Iterator<Item = io::Result<Entry>> + use<>> {
        let handle = below(&self.0, path, READ | OFlags::DIRECTORY)?;
        let again = handle.try_clone()?;
        let mut entries = Dir::new(handle)?;
        let mut ended = false;
        Ok(std::iter::from_fn(move || {
            while !ended {
                let entry = match entries.read() {
                    None => return None,
                    Some(Ok(entry)) => entry,
                    Some(Err(error)) => {
                        // What comes after an error is the same error.
                        ended = true;
                        return Some(Err(error.into()));
                    }
                };
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                // Some file systems tell the kind of an entry only to who asks for it.
                let kind = match entry.file_type() {
                    FileType::Unknown => match statat(&again, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => FileType::from_raw_mode(found.st_mode),
                        Err(Errno::NOENT) => continue,
                        Err(_) => FileType::Unknown,
                    },
                    known => known,
                };
                return Some(Ok(Entry { name: OsString::from_vec(name.to_bytes().to_vec()), kind }));
            }
            None
        }))
    }

    /// Where a path leads, with every link followed inside this directory; `..` at the top stays there. `None` where
    /// something is not there or links run in a circle.
    fn resolve(&self, inside: &Path) -> Option<PathBuf> {
        if inside.as_os_str().len() > MAX_PATH {
            return None;
        }
        let mut links = 0;
        let mut at = PathBuf::new();
        let mut todo: Vec<PathBuf> = pieces(inside)?;
        while let Some(piece) = todo.pop() {
            if piece.as_os_str() == ".." {
                at.pop();
                continue;
            }
            let candidate = at.join(&piece);
            let found = statat(&self.0, &candidate, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
                at = candidate;
                continue;
            }
            links += 1;
            let target = readlinkat(&self.0, &candidate, Vec::new()).ok()?;
            let target = Path::new(OsStr::from_bytes(target.to_bytes()));
            if links > MAX_LINKS || target.as_os_str().len() > MAX_PATH {
                return None;
            }
            if target.is_absolute() {
                at = PathBuf::new();
            }
            todo.extend(pieces(target)?);
        }
        Some(at)
    }
}

impl Below {
    /// Opens it, if it is a regular file.
    pub fn open(&self) -> io::Result<File> {
        self.directory.file(&self.path)
    }

    /// Opens it, if it is a directory.
    pub fn directory(&self) -> io::Result<Directory> {
        self.directory.directory(&self.path)
    }

    /// What is in it, if it is a directory.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<Entry>> + use<>> {
        self.directory.entries(&self.path)
    }
}

/// Opens what has been resolved already. Kernels before 5.6, and sandboxes that do not know the call, check the last
/// component only.
fn below(top: &OwnedFd, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(top, path, flags, Mode::empty(), strict) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
            openat(top, path, flags | OFlags::NOFOLLOW, Mode::empty())
        }
        other => other,
    }
}

/// Makes a handle readable if it is that of a regular file. `again` opens the file anew, where `/proc` is not there.
fn readable(handle: &OwnedFd, again: impl Fn() -> rustix::io::Result<OwnedFd>) -> io::Result<File> {
    let is = fstat(handle)?;
    let (kind, what) = kind(is.st_mode);
    if kind != FileType::RegularFile {
        let message = format!("{what}, not a regular file");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let number = handle.as_fd().as_raw_fd();
    match openat(CWD, format!("/proc/self/fd/{number}"), READ, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::NOENT) => {
            let file = again()?;
            let same = fstat(&file)?;
            if (same.st_dev, same.st_ino) != (is.st_dev, is.st_ino) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "replaced while it was opened"));
            }
            Ok(File::from(file))
        }
        Err(error) => Err(error.into()),
    }
}

/// What a handle is, with a word for it.
pub(super) fn kind_of(handle: &OwnedFd) -> io::Result<(FileType, &'static str)> {
    Ok(kind(fstat(handle)?.st_mode))
}

fn kind(mode: rustix::fs::RawMode) -> (FileType, &'static str) {
    let kind = FileType::from_raw_mode(mode);
    let what = match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "a special file",
    };
    (kind, what)
}

/// The components of a path, last first, without the root.
fn pieces(path: &Path) -> Option<Vec<PathBuf>> {
    let mut pieces = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir => pieces.push(PathBuf::from("..")),
            Component::Normal(name) => pieces.push(PathBuf::from(name)),
            Component::Prefix(_) => return None,
        }
    }
    pieces.reverse();
    Some(pieces)
}

/// A host path as seen from inside `root`, absolute; `None` if it does not lie there.
pub fn seen_from(root: &Path, path: &Path) -> Option<PathBuf> {
    let strip = |root: &Path, path: &Path| path.strip_prefix(root).ok().map(|rest| Path::new("/").join(rest));
    if let Some(rest) = strip(root, path) {
        // A path that climbs is settled below.
        if !rest.components().any(|component| component == Component::ParentDir) {
            return Some(rest);
        }
    }
    strip(&root.canonicalize().ok()?, &path.canonicalize().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir_all(root.join("usr/lib/debug")).unwrap();
        std::fs::write(root.join("usr/lib/file"), "inside").unwrap();
        std::fs::write(directory.path().join("file"), "outside").unwrap();
        std::fs::create_dir_all(directory.path().join("usr/lib")).unwrap();
        std::fs::write(directory.path().join("usr/lib/file"), "outside").unwrap();
        symlink("/usr/lib", root.join("lib")).unwrap();
        symlink("../../../../../../file", root.join("usr/lib/climbs")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink(directory.path().join("file"), root.join("leaves")).unwrap();
        directory
    }

    fn read(root: &Path, path: &str) -> Option<String> {
        let (file, _) = open_inside(root, Path::new(path)).ok()?;
        io::read_to_string(file).ok()
    }

    #[test]
    fn links_lead_nowhere_outside() {
        let directory = tree();
        let root = &directory.path().join("root");
        assert_eq!(read(root, "/lib/file").as_deref(), Some("inside"), "an absolute link starts at the root");
        assert_eq!(read(root, "/../../usr/./lib/file").as_deref(), Some("inside"));
        assert_eq!(read(root, "usr/lib/debug/../file").as_deref(), Some("inside"));
        for path in ["/usr/lib/climbs", "/leaves", "/circle", "/../file", "/usr/lib", "/nothing"] {
            assert_eq!(read(root, path), None, "{path}");
        }
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(place("fifo")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is everywhere");
        let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        symlink("/dev/zero", place("device")).unwrap();
        std::fs::create_dir(place("folder")).unwrap();
        for (name, wanted) in
            [("fifo", "a FIFO"), ("socket", "a socket"), ("device", "a device"), ("folder", "a directory")]
        {
            let error = open_regular(&place(name)).unwrap_err().to_string();
            assert_eq!(error, format!("{wanted}, not a regular file"));
            assert!(open_inside(directory.path(), Path::new(name)).is_err(), "{name}");
        }
        let top = Directory::open(directory.path()).unwrap();
        let error = top.file(Path::new("device")).unwrap_err().to_string();
        assert_eq!(error, "a symbolic link, not a regular file");
    }

    #[test]
    fn a_link_that_takes_a_place_after_it_was_looked_at_is_not_followed() {
        let directory = tree();
        let root = &directory.path().join("root");
        let top = openat(CWD, root, LOOK | OFlags::DIRECTORY, Mode::empty()).unwrap();
        assert!(below(&top, Path::new("usr/lib/file"), LOOK).is_ok());
        // What was resolved to be a folder is a link by now, as if somebody had been quick.
        std::fs::rename(root.join("usr/lib"), root.join("usr/old")).unwrap();
        symlink("old", root.join("usr/lib")).unwrap();
        assert!(below(&top, Path::new("usr/lib/file"), LOOK).is_err());
        assert!(below(&top, Path::new("usr/../../file"), LOOK).is_err());
    }

    #[test]
    fn a_directory_that_has_become_a_link_is_not_listed_and_nothing_below_it_opened() {
        let directory = tree();
        let root = &directory.path().join("root");
        let top = Directory::open(root).unwrap();
        let found = top.find(Path::new("/lib")).unwrap();
        assert_eq!(found.path, Path::new("usr/lib"));
        let names = |found: &Below| -> Vec<OsString> {
            let mut names: Vec<_> = found.entries().unwrap().map(|entry| entry.unwrap().name).collect();
            names.sort();
            names
        };
        assert_eq!(names(&found), ["climbs", "debug", "file"]);
        let file = top.find(Path::new("/lib/file")).unwrap();
        assert_eq!(io::read_to_string(file.open().unwrap()).unwrap(), "inside");
        std::fs::rename(root.join("usr/lib"), root.join("usr/old")).unwrap();
        symlink(directory.path().join("usr/lib"), root.join("usr/lib")).unwrap();
        assert!(found.entries().is_err() && found.directory().is_err());
        assert!(file.open().is_err());
        // The directory itself may be moved: the handle is of the directory, not of its name.
        std::fs::rename(root, directory.path().join("elsewhere")).unwrap();
        assert!(top.file(Path::new("usr/old/file")).is_ok());
    }

    #[test]
    fn a_file_replaced_after_it_was_looked_at_is_the_one_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "first").unwrap();
        let handle = openat(CWD, &path, LOOK, Mode::empty()).unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        let file = readable(&handle, || Err(Errno::NOENT)).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "first");
    }

    #[test]
    fn paths_are_seen_from_inside() {
        let directory = tree();
        let root = &directory.path().join("root");
        assert_eq!(seen_from(root, &root.join("usr/sbin/nginx")), Some(PathBuf::from("/usr/sbin/nginx")));
        assert_eq!(seen_from(root, &root.join("usr/../../file")), None);
        assert_eq!(seen_from(Path::new("/"), Path::new("/bin")), Some(PathBuf::from("/bin")));
    }
}
