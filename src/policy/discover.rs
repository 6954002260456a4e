//! The policy of the current directory: found by name, and taken only from where no one else could have put it.

use std::path::{Path, PathBuf};

/// Name of the policy file that is found without being named.
pub const FILE_NAME: &str = "flagaudit.toml";

/// The policy used where none is named and none is found.
pub const FALLBACK: &str = "builtin:release";

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discovery {
    /// A policy file that can be trusted as far as its directory goes.
    File(PathBuf),
    /// No policy file: [`FALLBACK`] holds.
    Fallback,
    /// A policy file is there and is not used; [`FALLBACK`] holds. The sentence says why and what to do.
    Refused {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        notice: String,
    },
}

/// Looks for [`FILE_NAME`] in `directory` (not in its parents). A file is not used if others may write to the directory or
/// to the file, or if either belongs to someone who is neither root nor the user: whoever can place a policy decides
/// what passes.
pub fn discover(directory: &Path) -> Discovery {
    let path = directory.join(FILE_NAME);
    if std::fs::symlink_metadata(&path).is_err() {
        return Discovery::Fallback;
    }
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let reason = distrust(here, "its directory")
        .or_else(|| distrust(&path, "it"))
        .or_else(|| (!path.is_file()).then(|| "it is not a regular file".to_owned()));
    match reason {
        None => Discovery::File(path),
        Some(reason) => {
            let notice = format!(
                "{} is not used, because {reason}; name it with --policy to use it, or --no-config to be silent",
                path.display()
            );
            Discovery::Refused { path, notice }
        }
    }
}

#[cfg(unix)]
fn distrust(path: &Path, what: &str) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Some(format!("{what} cannot be looked at ({error})")),
    };
    let user = rustix::process::geteuid().as_raw();
    distrust_of(metadata.uid(), metadata.gid(), metadata.mode(), user)
        .map(|reason| format!("{what} {reason}"))
}

#[cfg(not(unix))]
fn distrust(_: &Path, _: &str) -> Option<String> {
    None
}

/// The rule itself, on numbers. A group may write if it is root's or the user's own (distributions that give every
/// user a group of the same number also set the umask so that it may write).
fn distrust_of(owner: u32, group: u32, mode: u32, user: u32) -> Option<String> {
    if owner != 0 && owner != user {
        return Some(format!("belongs to another user (uid {owner})"));
    }
    if mode & 0o002 != 0 {
        return Some(format!("may be written by everyone (mode {:o})", mode & 0o7777));
    }
    if mode & 0o020 != 0 && group != 0 && group != user {
        return Some(format!("may be written by a group (gid {group}, mode {:o})", mode & 0o7777));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_write_decides() {
        let user = 1000;
        assert_eq!(distrust_of(user, user, 0o40_755, user), None);
        assert_eq!(distrust_of(user, user, 0o40_775, user), None);
        assert_eq!(distrust_of(0, 0, 0o40_755, user), None);
        assert!(distrust_of(user, 100, 0o40_775, user).unwrap().contains("group (gid 100"));
        assert!(distrust_of(user, user, 0o40_777, user).unwrap().contains("everyone (mode 777)"));
        // The sticky bit keeps others from replacing a file, not from being the first to place one.
        assert!(distrust_of(0, 0, 0o41_777, user).unwrap().contains("everyone (mode 1777)"));
        assert!(distrust_of(1001, 0, 0o40_755, user).unwrap().contains("another user"));
        assert!(distrust_of(1001, 0, 0o40_755, 0).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_policy_is_taken_from_a_private_directory_only() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let open = |mode| {
            std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open(0o755);
        assert_eq!(discover(directory.path()), Discovery::Fallback);
        let path = directory.path().join(FILE_NAME);
        std::fs::write(&path, "schema = 1\n").unwrap();
        assert_eq!(discover(directory.path()), Discovery::File(path.clone()));
        open(0o777);
        match discover(directory.path()) {
            Discovery::Refused { notice, .. } => {
                assert!(notice.contains("its directory may be written by everyone"), "{notice}");
            }
            other => panic!("{other:?}"),
        }
        open(0o755);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(discover(directory.path()), Discovery::Refused { .. }));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(discover(directory.path()), Discovery::Refused { .. }));
    }
}
