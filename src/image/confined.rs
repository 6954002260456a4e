//! Opening files whose paths come from elsewhere: nothing outside a root, nothing but regular files.
//!
//! Symbolic links are followed here, component by component, as a process confined to the root would see them, so a
//! link to `/etc/passwd` in a mounted image means the image's file. What is opened is checked by its handle.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// Most symbolic links followed in one path, as Linux does.
const MAX_LINKS: u32 = 40;
/// Longest path followed, in bytes (Linux `PATH_MAX`).
const MAX_PATH: usize = 4096;

/// `O_NONBLOCK` of Linux: opening a FIFO or device must not wait.
#[cfg(not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64")))]
const O_NONBLOCK: i32 = 0o4000;
#[cfg(any(target_arch = "mips", target_arch = "mips64"))]
const O_NONBLOCK: i32 = 0x80;
#[cfg(target_arch = "sparc64")]
const O_NONBLOCK: i32 = 0x4000;
/// `O_NOFOLLOW` of Linux: links have been followed already, and one put there since is not.
#[cfg(any(target_arch = "arm", target_arch = "aarch64", target_arch = "powerpc", target_arch = "powerpc64"))]
const O_NOFOLLOW: i32 = 0o100_000;
#[cfg(target_arch = "sparc64")]
const O_NOFOLLOW: i32 = 0x20000;
#[cfg(not(any(
    target_arch = "arm",
    target_arch = "aarch64",
    target_arch = "powerpc",
    target_arch = "powerpc64",
    target_arch = "sparc64"
)))]
const O_NOFOLLOW: i32 = 0o400_000;

/// Opens a regular file named by the user. Links are followed; a FIFO or a device is refused without waiting for it.
pub fn open_regular(path: &Path) -> io::Result<File> {
    checked(OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?)
}

/// Opens a regular file by its path inside `root`.
pub fn open_inside(root: &Path, inside: &Path) -> io::Result<(File, PathBuf)> {
    let path = resolve(root, inside).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOFOLLOW).open(&path)?;
    Ok((checked(file)?, path))
}

fn checked(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Where a path inside `root` leads, with every link followed inside `root`; `..` at the root stays there. `None`
/// where something is not there or links run in a circle. The root itself is taken as it is.
pub fn resolve(root: &Path, inside: &Path) -> Option<PathBuf> {
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
        let host = root.join(&candidate);
        let kind = std::fs::symlink_metadata(&host).ok()?.file_type();
        if !kind.is_symlink() {
            at = candidate;
            continue;
        }
        links += 1;
        let target = std::fs::read_link(&host).ok()?;
        if links > MAX_LINKS || target.as_os_str().len() > MAX_PATH {
            return None;
        }
        if target.is_absolute() {
            at = PathBuf::new();
        }
        todo.extend(pieces(&target)?);
    }
    Some(root.join(at))
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
        let fifo = directory.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(open_regular(&fifo).is_err());
            assert!(open_inside(directory.path(), Path::new("fifo")).is_err());
        }
        assert!(open_regular(Path::new("/dev/zero")).is_err());
        assert!(open_regular(directory.path()).is_err());
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
