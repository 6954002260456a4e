//! A directory, walked: ELF files are recognised by content, special files are never opened, and
//! symbolic links are not followed (so loops are harmless and no file is met twice by that way).

use crate::image::confined::open_met;
use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a walk met.
#[derive(Debug, Default)]
pub struct Walk {
    /// ELF files and archives, sorted by path; hard links once, under the first name.
    pub found: Vec<PathBuf>,
    /// Regular files that are neither.
    pub skipped: u64,
    /// Files and directories that could not be opened, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Walks `root` in the order of names.
pub fn walk(root: &Path) -> Walk {
    let mut walk = Walk::default();
    let mut seen = HashSet::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                walk.unreadable.push((directory, error.to_string()));
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    walk.unreadable.push((directory.clone(), error.to_string()));
                    continue;
                }
            };
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                visit(entry.path(), &mut walk, &mut seen);
            }
        }
    }
    walk.found.sort_unstable();
    walk.unreadable.sort_unstable();
    walk
}

fn visit(path: PathBuf, walk: &mut Walk, seen: &mut HashSet<(u64, u64)>) {
    let mut magic = [0; 8];
    let read = open_met(&path).map_err(|error| error.to_string()).and_then(|mut file| {
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        let got = read_start(&mut file, &mut magic).map_err(|error| error.to_string())?;
        Ok((got, metadata.nlink(), (metadata.dev(), metadata.ino())))
    });
    match read {
        Err(why) => walk.unreadable.push((path, why)),
        Ok((got, links, identity)) => {
            let wanted = is_wanted(&magic[..got]);
            if !wanted {
                walk.skipped += 1;
            } else if links < 2 || seen.insert(identity) {
                walk.found.push(path);
            }
        }
    }
}

fn read_start(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read(&mut buffer[got..])? {
            0 => break,
            n => got += n,
        }
    }
    Ok(got)
}

fn is_wanted(start: &[u8]) -> bool {
    start.starts_with(&object::elf::ELFMAG)
        || start.starts_with(&object::archive::MAGIC)
        || start.starts_with(&object::archive::THIN_MAGIC)
}
