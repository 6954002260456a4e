//! Files that hold the debug information of another: separate debug files, `dwz` supplementary files, `.dwo`, `.dwp`.
//!
//! Where they are looked for follows GDB's manual ("Debugging Information in Separate Files") and elfutils. A path
//! from inside a binary only proposes a place: what is there counts if it is a regular file inside the root whose
//! identity is right (build-id first, CRC32 only where the binary has no build-id, the caller's test for `.dwo`).

use super::confined::Below;
use super::notes::{Notes, SupplementaryLink};
use super::{Image, Input};
use crate::facts::Problem;
use crate::limits::Limits;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Where distributions put debug files.
const GLOBAL: &str = "/usr/lib/debug";
/// Longest build-id that names a file, in bytes; real ones have 4 to 32.
const MAX_ID: usize = 64;

mod cache;
mod client;
mod hunt;

pub use cache::{client_cache, own_cache};
use hunt::{Hunt, Identity};

/// Where to look.
#[derive(Debug, Clone)]
pub struct Options {
    /// The root file system that nothing leaves; `None` for the running system's.
    pub root: Option<PathBuf>,
    /// Files that the user says are debug files.
    pub debug_files: Vec<PathBuf>,
    /// Folders besides `/usr/lib/debug`, named by the user.
    pub debug_dirs: Vec<PathBuf>,
    /// debuginfod's local cache, which is only read. See [`own_cache`].
    pub cache: Option<PathBuf>,
    /// Allow asking `client`, which may use the network.
    pub debuginfod: bool,
    /// The debuginfod client: `debuginfod-find`.
    pub client: PathBuf,
    /// Longest wait for one answer of `debuginfod-find`; after the first one in vain it is not asked again.
    pub patience: Duration,
    /// Set once an answer did not come.
    pub offline: Arc<AtomicBool>,
    /// Debug files among the other targets, by build-id.
    pub known: Arc<HashMap<Vec<u8>, Known>>,
}

/// A debug file that was met on the way.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its name as it is shown: of a member of a package `PACKAGE!MEMBER`.
    pub path: PathBuf,
    /// Its bytes, if it is held open.
    pub input: Option<Input>,
    /// Otherwise its place, where that is known better than by name.
    pub below: Option<Below>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            root: None,
            debug_files: Vec::new(),
            debug_dirs: Vec::new(),
            cache: own_cache(),
            debuginfod: false,
            client: PathBuf::from("debuginfod-find"),
            patience: Duration::from_secs(20),
            offline: Arc::default(),
            known: Arc::default(),
        }
    }
}

/// How a file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Named by the user.
    Named,
    /// By build-id, in a folder of debug files.
    BuildId,
    /// By the path in the binary.
    Link,
    /// In debuginfod's cache.
    Cache,
    /// Fetched by `debuginfod-find`.
    Fetched,
}

/// A file found and identified.
#[derive(Debug)]
pub struct Companion {
    /// Where it lies.
    pub path: PathBuf,
    /// It, opened.
    pub image: Image,
    /// How it was found.
    pub how: How,
}

/// What a search gave.
#[derive(Debug, Default)]
pub struct Search {
    /// The file, if it was found.
    pub found: Option<Companion>,
    /// What the binary names and nobody has: `debug file missing: NAME`, `alt file missing: PATH`, `dwo missing: NAME`.
    pub missing: Option<String>,
    /// Files refused, and answers that did not come.
    pub problems: Vec<Problem>,
}

/// Finds the separate debug file of a binary that lies (or lay) at `path`.
pub fn debug_file(image: &Image, notes: &Notes, path: &Path, options: &Options, limits: &Limits) -> Search {
    let id = notes.build_id.as_deref().filter(|id| id.len() <= MAX_ID);
    let link = notes.debug_link.as_ref();
    let identity = match (id, link) {
        (Some(id), _) => Identity::BuildId(id),
        (None, Some(link)) => Identity::Checksum(link.crc),
        (None, None) => Identity::Unnamed,
    };
    let same_machine = |other: &Image| {
        other.header.machine == image.header.machine && other.header.is_64 == image.header.is_64
    };
    let useful = |other: &Image| same_machine(other) && has_debug_info(other);
    let mut hunt = Hunt::new(options, limits, path, &identity, &useful);
    hunt.named();
    if let Some(id) = id {
        hunt.met(id);
        hunt.by_build_id(id, "debug");
    }
    if let Some(link) = link {
        match base_name(&link.name) {
            Some(name) => hunt.by_link(name),
            None => hunt.notice("bad-debug-link", "the debug link names no file but a path: not followed"),
        }
    }
    if let Some(id) = id {
        hunt.cached(id);
        hunt.fetched(id);
    }
    let missing = link.map(|link| format!("debug file missing: {}", String::from_utf8_lossy(&link.name)));
    hunt.finish(missing)
}

/// Finds the supplementary file that `dwz` made for the file at `path`, which names it.
pub fn supplementary(link: &SupplementaryLink, path: &Path, options: &Options, limits: &Limits) -> Search {
    let identity = Identity::Supplementary(&link.id);
    let useful = |_: &Image| true;
    let mut hunt = Hunt::new(options, limits, path, &identity, &useful);
    hunt.named();
    hunt.met(&link.id);
    let target = Path::new(OsStr::from_bytes(&link.path));
    for folder in hunt.folders.clone() {
        // An absolute path replaces the folder.
        hunt.inside(&folder.join(target), How::Link);
        if let Some(name) = target.file_name() {
            hunt.inside(&folder.join(name), How::Link);
        }
    }
    let below = target.strip_prefix(GLOBAL).ok();
    for place in hunt.places() {
        if let Some(below) = below {
            hunt.at(&place, below, How::Link);
        }
        if let Some(name) = target.file_name() {
            hunt.at(&place, &Path::new(".dwz").join(name), How::Link);
            hunt.at(&place, Path::new(name), How::Link);
        }
    }
    if link.id.len() <= MAX_ID {
        hunt.by_build_id(&link.id, "debug");
        hunt.cached(&link.id);
        hunt.fetched(&link.id);
    }
    hunt.finish(Some(format!("alt file missing: {}", String::from_utf8_lossy(&link.path))))
}

/// Finds a `.dwo` file: `name` and `folder` are the skeleton unit's `DW_AT_dwo_name` and `DW_AT_comp_dir`, `path` is
/// the binary's. `is_it` says whether a file holds the unit with the right dwo-id.
pub fn dwo(
    name: &[u8],
    folder: Option<&[u8]>,
    path: &Path,
    options: &Options,
    limits: &Limits,
    is_it: &dyn Fn(&Image) -> bool,
) -> Search {
    let identity = Identity::Tested(is_it);
    let useful = |_: &Image| true;
    let mut hunt = Hunt::new(options, limits, path, &identity, &useful);
    let target = Path::new(OsStr::from_bytes(name));
    hunt.named_like(&|path| path.file_name() == target.file_name());
    let folder = folder.map(|folder| Path::new(OsStr::from_bytes(folder)));
    for beside in hunt.folders.clone() {
        if let Some(folder) = folder {
            hunt.inside(&beside.join(folder).join(target), How::Link);
        }
        hunt.inside(&beside.join(target), How::Link);
        if let Some(base) = target.file_name() {
            hunt.inside(&beside.join(base), How::Link);
        }
    }
    if let Some(base) = target.file_name() {
        for place in hunt.places() {
            hunt.at(&place, Path::new(base), How::Link);
        }
    }
    hunt.finish(Some(format!("dwo missing: {}", String::from_utf8_lossy(name))))
}

/// Finds the `.dwp` package of the binary at `path`: its name with `.dwp` added, beside it or in a folder of debug
/// files. `is_it` says whether a file holds units of the binary. A package is named nowhere, so it is never missing.
pub fn dwp(
    path: &Path,
    notes: &Notes,
    options: &Options,
    limits: &Limits,
    is_it: &dyn Fn(&Image) -> bool,
) -> Search {
    let identity = Identity::Tested(is_it);
    let useful = |_: &Image| true;
    let mut hunt = Hunt::new(options, limits, path, &identity, &useful);
    hunt.named_like(&|path| path.extension() == Some(OsStr::new("dwp")));
    if let Some(name) = path.file_name() {
        let mut name = name.to_owned();
        name.push(".dwp");
        hunt.by_link(&name);
    }
    if let Some(id) = notes.build_id.as_deref().filter(|id| id.len() <= MAX_ID) {
        hunt.by_build_id(id, "dwp");
    }
    hunt.finish(None)
}

/// Whether a file has debug information of its own, and not only its place.
fn has_debug_info(image: &Image) -> bool {
    [".debug_info", ".zdebug_info"]
        .iter()
        .any(|name| image.sections_named(name).any(|section| section.has_data() && section.size > 0))
}

/// A name that is a name and leads nowhere.
fn base_name(name: &[u8]) -> Option<&OsStr> {
    let name = OsStr::from_bytes(name);
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
