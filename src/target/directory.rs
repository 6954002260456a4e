//! A directory, walked: ELF files, also compressed ones, are recognised by content, special files are never opened, and
//! symbolic links are not followed (so loops are harmless and no file is met twice by that way). Everything is reached
//! from the handle of the directory that the walk began at, so that a folder which becomes a link meanwhile leads nowhere.

use super::glance::{Glance, glance};
use super::package::{self, Held};
use crate::image::confined::{Below, Directory, Entry};
use crate::image::{Input, archive};
use crate::limits::Limits;
use crate::parallel;
use rustix::fs::FileType;
use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that a thread looks at before it asks for more: a look is short, and asking for each would cost as much.
const BATCH: usize = 64;
/// A file that says of its directory what it is (OCI image specification, "Image Layout").
pub const OCI_LAYOUT: &str = "oci-layout";
/// Where a layout has all that it is made of, by its digests (the same).
const BLOBS: &str = "blobs";

/// What a walk met.
#[derive(Debug, Default)]
pub struct Walk {
    /// ELF files and archives, sorted by path; hard links once, under the first name.
    pub found: Vec<Met>,
    /// Regular files that are neither.
    pub skipped: u64,
    /// So many of them are packages, as far as their beginning tells, or stand for an OCI layout in a directory below. What is
    /// part of a layout is not counted.
    pub packages: u64,
    /// The directory is an OCI layout.
    pub oci_layout: bool,
    /// Files and directories that could not be opened, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// An ELF file or archive that a walk met.
#[derive(Debug)]
pub struct Met {
    /// Where.
    pub path: PathBuf,
    /// The same place, to open it again.
    pub below: Below,
    /// What a look at it told; `None` for an archive, a compressed file, or an ELF file with damaged headers.
    pub glance: Option<Glance>,
    /// It is a compressed program.
    pub compressed: bool,
    /// Device and inode.
    pub identity: (u64, u64),
}

/// Walks `top`, which is shown as `root`, and looks at `jobs` files at the same time. `seen` is told how many files were
/// looked at so far.
pub fn walk(top: &Directory, root: &Path, jobs: usize, limits: &Limits, seen: &mut dyn FnMut(u64)) -> Walk {
    let mut walk = Walk::default();
    let (mut count, mut packages, mut layouts) = (0, Vec::new(), HashSet::new());
    let files = Files { top, pending: vec![PathBuf::new()], open: None };
    let mut files = files.fuse();
    let batches = std::iter::from_fn(|| {
        let batch: Vec<_> = files.by_ref().take(BATCH).collect();
        (!batch.is_empty()).then_some(batch)
    });
    let look = |file: Result<PathBuf, (PathBuf, String)>| {
        let shown = |path: &Path| {
            if path.as_os_str().is_empty() { root.to_path_buf() } else { root.join(path) }
        };
        let below = top.below(file.map_err(|(path, why)| (shown(&path), why))?);
        let path = shown(&below.path);
        match visit(&below, limits) {
            Ok(Looked::Elf { glance, compressed, identity }) => {
                Ok(Seen::Elf(Met { path, below, glance, compressed, identity }))
            }
            Ok(Looked::Other { package: true }) => Ok(Seen::Package(below.path)),
            Ok(Looked::Other { package: false }) if below.path.ends_with(OCI_LAYOUT) => {
                Ok(Seen::Layout(below.path.parent().map(Path::to_path_buf).unwrap_or_default()))
            }
            Ok(Looked::Other { package: false }) => Ok(Seen::Other),
            Err(why) => Err((path, why)),
        }
    };
    let flow: ControlFlow<()> = parallel::ordered(
        jobs,
        batches,
        |batch| batch.into_iter().map(look).collect::<Vec<_>>(),
        |batch| {
            for file in batch {
                count += 1;
                seen(count);
                walk.skipped +=
                    u64::from(matches!(file, Ok(Seen::Package(_) | Seen::Layout(_) | Seen::Other)));
                match file {
                    Ok(Seen::Elf(met)) => walk.found.push(met),
                    Ok(Seen::Package(path)) => packages.push(path),
                    Ok(Seen::Layout(path)) => drop(layouts.insert(path)),
                    Ok(Seen::Other) => {}
                    Err(why) => walk.unreadable.push(why),
                }
            }
            ControlFlow::Continue(())
        },
    );
    debug_assert!(flow.is_continue());
    // The layers of an image are archives, too.
    let is_blobs =
        |folder: &Path| folder.ends_with(BLOBS) && folder.parent().is_some_and(|top| layouts.contains(top));
    packages.retain(|path: &PathBuf| !path.ancestors().any(is_blobs));
    walk.oci_layout = layouts.remove(Path::new(""));
    walk.packages = packages.len() as u64 + layouts.len() as u64;
    walk.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut seen = HashSet::new();
    walk.found.retain(|met| seen.insert(met.identity));
    walk.unreadable.sort_unstable();
    walk
}

/// A file that was met.
enum Seen {
    Elf(Met),
    Package(PathBuf),
    /// The file that makes a directory an OCI layout.
    Layout(PathBuf),
    Other,
}

/// What a look at a file tells.
enum Looked {
    /// ELF, compressed or not, or an archive of it: with its device and inode.
    Elf {
        glance: Option<Glance>,
        compressed: bool,
        identity: (u64, u64),
    },
    Other {
        package: bool,
    },
}

/// Looks at one file.
fn visit(below: &Below, limits: &Limits) -> Result<Looked, String> {
    let file = below.open().map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let input = Input::file(file).map_err(|error| error.to_string())?;
    let mut start = [0; package::START];
    let got = input.read_at(0, &mut start).map_err(|error| error.to_string())?;
    let start = start.get(..got).unwrap_or_default();
    let elf = start.starts_with(&object::elf::ELFMAG);
    let name = below.path.as_os_str().as_bytes();
    let held = if elf { None } else { package::look(&input, name, start, limits) };
    let compressed = held == Some(Held::Program);
    if !elf && !compressed && !holds_programs(&input, limits) {
        let package = held == Some(Held::Package) || package::is_package(start);
        return Ok(Looked::Other { package });
    }
    let glance = elf.then(|| glance(&input, limits)).flatten();
    Ok(Looked::Elf { glance, compressed, identity: (metadata.dev(), metadata.ino()) })
}

/// Whether this is an archive of object files. Debian packages are archives, too, and the C library's development files
/// have empty ones (`libpthread.a` since glibc 2.34).
pub(super) fn holds_programs(input: &Input, limits: &Limits) -> bool {
    holds_at(input, limits, archive::MOST_NESTED)
}

/// The same of an archive in which others may lie so deep.
fn holds_at(input: &Input, limits: &Limits, deep: u32) -> bool {
    let Some(archive) = archive::read(input, limits) else { return false };
    let is_one = |member: &archive::Member| {
        let Some(input) = &member.input else { return true };
        let mut magic = [0; 4];
        let elf = input.read_at(0, &mut magic).is_ok_and(|_| magic == object::elf::ELFMAG);
        elf || deep > 0 && holds_at(input, limits, deep - 1)
    };
    archive.members.iter().any(is_one) || (archive.members.is_empty() && !archive.problems.is_empty())
}

/// The regular files below a directory by their paths from there, or why a directory cannot be read.
struct Files<'a> {
    top: &'a Directory,
    pending: Vec<PathBuf>,
    open: Option<(PathBuf, Entries)>,
}

type Entries = Box<dyn Iterator<Item = io::Result<Entry>> + Send>;

impl Iterator for Files<'_> {
    type Item = Result<PathBuf, (PathBuf, String)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((directory, entries)) = &mut self.open else {
                let directory = self.pending.pop()?;
                match self.top.entries(&directory) {
                    Ok(entries) => self.open = Some((directory, Box::new(entries))),
                    Err(error) => return Some(Err((directory, error.to_string()))),
                }
                continue;
            };
            match entries.next() {
                None => self.open = None,
                Some(Err(error)) => return Some(Err((directory.clone(), error.to_string()))),
                Some(Ok(entry)) => {
                    let path = directory.join(entry.name);
                    match entry.kind {
                        FileType::Directory => self.pending.push(path),
                        FileType::RegularFile => return Some(Ok(path)),
                        FileType::Unknown => {
                            return Some(Err((path, "what it is cannot be told".to_owned())));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
