//! One search for a companion, which ends with the first right file.

use super::client::{Answer, ask};
use super::{Companion, GLOBAL, How, Options, Search};
use crate::facts::Problem;
use crate::image::confined::{Below, open_inside, open_regular, seen_from};
use crate::image::identity::hexadecimal;
use crate::image::notes;
use crate::image::{Image, Input};
use crate::limits::Limits;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering;

/// How deep a binary may lie for its folder's leading components to be dropped one by one.
const MAX_DEPTH: usize = 64;
/// Bytes read at once for a checksum.
const WINDOW: usize = 256 << 10;

/// What makes a file the right one.
pub(super) enum Identity<'a> {
    BuildId(&'a [u8]),
    Checksum(u32),
    /// Build-id, or the checksum in `.debug_sup`.
    Supplementary(&'a [u8]),
    Tested(&'a dyn Fn(&Image) -> bool),
    /// The binary does not say; only the user's own word counts.
    Unnamed,
}

/// A folder of debug files.
#[derive(Clone)]
pub(super) enum PlaceOf {
    /// By its path inside the root.
    Inside(PathBuf),
    /// Named by the user and outside the root: then it is a root of its own.
    Own(PathBuf),
}

/// One search, which ends with the first right file.
pub(super) struct Hunt<'a> {
    options: &'a Options,
    limits: &'a Limits,
    root: PathBuf,
    identity: &'a Identity<'a>,
    useful: &'a dyn Fn(&Image) -> bool,
    /// The binary's folders as seen from inside the root: as named, and with links followed.
    pub(super) folders: Vec<PathBuf>,
    /// Device and inode of the binary, which is not its own companion.
    own: Option<(u64, u64)>,
    tried: Vec<PathBuf>,
    search: Search,
}

impl<'a> Hunt<'a> {
    pub(super) fn new(
        options: &'a Options,
        limits: &'a Limits,
        path: &Path,
        identity: &'a Identity<'a>,
        useful: &'a dyn Fn(&Image) -> bool,
    ) -> Self {
        let root = options.root.clone().unwrap_or_else(|| PathBuf::from("/"));
        let mut folders = Vec::new();
        let absolute = std::path::absolute(path).ok();
        let followed = path.canonicalize().ok();
        for path in absolute.iter().chain(&followed) {
            let folder = seen_from(&root, path).and_then(|inside| inside.parent().map(Path::to_path_buf));
            if let Some(folder) = folder.filter(|folder| !folders.contains(folder)) {
                folders.push(folder);
            }
        }
        let own = std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let search = Search::default();
        Self { options, limits, root, identity, useful, folders, own, tried: Vec::new(), search }
    }

    pub(super) fn finish(mut self, missing: Option<String>) -> Search {
        if self.search.found.is_none() {
            self.search.missing = missing;
        }
        self.search
    }

    pub(super) fn notice(&mut self, code: &str, message: impl Into<String>) {
        self.search.problems.push(Problem::notice(code, message));
    }

    /// Folders of debug files: the user's first.
    pub(super) fn places(&self) -> Vec<PlaceOf> {
        let named = self.options.debug_dirs.iter().map(|folder| {
            let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            seen_from(&self.root, &absolute).map_or_else(|| PlaceOf::Own(absolute), PlaceOf::Inside)
        });
        named.chain([PlaceOf::Inside(PathBuf::from(GLOBAL))]).collect()
    }

    pub(super) fn at(&mut self, place: &PlaceOf, below: &Path, how: How) {
        // A path below a folder may not begin anew at the root.
        if below.is_absolute() {
            return;
        }
        match place {
            PlaceOf::Inside(folder) => self.inside(&folder.join(below), how),
            PlaceOf::Own(folder) => {
                if self.search.found.is_none()
                    && let Ok((file, path)) = open_inside(folder, below)
                {
                    self.consider(file, path, how);
                }
            }
        }
    }

    pub(super) fn inside(&mut self, path: &Path, how: How) {
        if self.search.found.is_some() {
            return;
        }
        if let Ok((file, path)) = open_inside(&self.root, path) {
            self.consider(file, path, how);
        }
    }

    /// Files named by the user. That one of them belongs to another binary is nothing to speak of once the right one
    /// is found.
    pub(super) fn named(&mut self) {
        let before = self.search.problems.len();
        self.named_like(&|_| true);
        if self.search.found.is_some() {
            self.search.problems.truncate(before);
        }
    }

    pub(super) fn named_like(&mut self, wanted: &dyn Fn(&Path) -> bool) {
        for path in self.options.debug_files.iter().filter(|path| wanted(path)) {
            if self.search.found.is_some() {
                return;
            }
            match open_regular(path) {
                Ok(file) => self.consider(file, path.clone(), How::Named),
                Err(error) => {
                    self.notice("unreadable-debug-file", format!("{}: {error}", path.display()));
                }
            }
        }
    }

    /// Debug files among the other targets.
    pub(super) fn met(&mut self, id: &[u8]) {
        let Some(known) = self.options.known.get(id).filter(|_| self.search.found.is_none()) else { return };
        let path = known.path.clone();
        if let Some(input) = &known.input {
            self.judge(input.clone(), path, How::BuildId);
            return;
        }
        let file = known.below.as_ref().map_or_else(|| open_regular(&path), Below::open);
        if let Ok(file) = file {
            self.consider(file, path, How::BuildId);
        }
    }

    pub(super) fn by_build_id(&mut self, id: &[u8], ending: &str) {
        let name = hexadecimal(id);
        let Some((first, rest)) = name.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()) else {
            return;
        };
        let below = PathBuf::from(format!(".build-id/{first}/{rest}.{ending}"));
        for place in self.places() {
            self.at(&place, &below, How::BuildId);
        }
    }

    pub(super) fn by_link(&mut self, name: &OsStr) {
        let mut folders = self.folders.clone();
        for folder in &folders {
            self.inside(&folder.join(name), How::Link);
            self.inside(&folder.join(".debug").join(name), How::Link);
        }
        if folders.is_empty() {
            // The binary lies outside the root, where its folder means nothing.
            folders.push(PathBuf::new());
        }
        for place in self.places() {
            for folder in &folders {
                let parts: Vec<&OsStr> = folder
                    .components()
                    .filter_map(|part| if let Component::Normal(part) = part { Some(part) } else { None })
                    .collect();
                for dropped in 0..=parts.len().min(MAX_DEPTH) {
                    let below: PathBuf = parts.iter().skip(dropped).collect();
                    self.at(&place, &below.join(name), How::Link);
                }
            }
        }
    }

    /// debuginfod's cache. An empty file there says that no server had it the last time.
    pub(super) fn cached(&mut self, id: &[u8]) {
        let Some(cache) = self.options.cache.clone().filter(|_| self.search.found.is_none()) else { return };
        let below = Path::new(&hexadecimal(id)).join("debuginfo");
        if let Ok((file, path)) = open_inside(&cache, &below)
            && file.metadata().is_ok_and(|found| found.len() > 0)
        {
            self.consider(file, path, How::Cache);
        }
    }

    pub(super) fn fetched(&mut self, id: &[u8]) {
        let options = self.options;
        if self.search.found.is_some() || !options.debuginfod {
            return;
        }
        if options.offline.load(Ordering::Relaxed) {
            self.notice(
                "not-fetched",
                "debug information not fetched: debuginfod-find did not answer before",
            );
            return;
        }
        match ask(&options.client, &hexadecimal(id), options.patience) {
            Answer::Path(path) => match open_regular(&path) {
                Ok(file) => self.consider(file, path, How::Fetched),
                Err(error) => self.notice("not-fetched", format!("{}: {error}", path.display())),
            },
            Answer::Nothing => self.notice("not-fetched", "debug information not fetched: no server has it"),
            Answer::NotInstalled => {
                options.offline.store(true, Ordering::Relaxed);
                self.notice("not-fetched", "debug information not fetched: debuginfod-find is not installed");
            }
            Answer::Late => {
                options.offline.store(true, Ordering::Relaxed);
                let wait = options.patience.as_secs();
                self.notice(
                    "not-fetched",
                    format!("debug information not fetched: no answer in {wait} seconds"),
                );
            }
        }
    }

    /// Takes a file if it is the right one.
    pub(super) fn consider(&mut self, file: File, path: PathBuf, how: How) {
        let itself = file.metadata().is_ok_and(|found| Some((found.dev(), found.ino())) == self.own);
        if itself || self.tried.contains(&path) {
            return;
        }
        self.tried.push(path.clone());
        if let Ok(input) = Input::file(file) {
            self.judge(input, path, how);
        }
    }

    fn judge(&mut self, input: Input, path: PathBuf, how: How) {
        let Ok(image) = Image::open(input, self.limits) else {
            if how == How::Named {
                self.notice("unreadable-debug-file", format!("{}: not an ELF file", path.display()));
            }
            return;
        };
        match self.identify(&image, how) {
            Ok(()) if (self.useful)(&image) => self.search.found = Some(Companion { path, image, how }),
            Ok(()) => {}
            Err(why) => self.notice("debug-file-mismatch", format!("{}: {why}; ignored", path.display())),
        }
    }

    fn identify(&mut self, image: &Image, how: How) -> Result<(), String> {
        let differs = |found: Option<&[u8]>, wanted: &[u8]| match found {
            Some(found) if found == wanted => Ok(()),
            Some(found) => {
                Err(format!("has build-id {}, wanted {}", hexadecimal(found), hexadecimal(wanted)))
            }
            None => Err(format!("has no build-id, wanted {}", hexadecimal(wanted))),
        };
        match self.identity {
            Identity::BuildId(wanted) => differs(notes::build_id(image).as_deref(), wanted),
            Identity::Supplementary(wanted) => {
                let notes = notes::read(image);
                if notes.supplementary_id.as_deref() == Some(*wanted) {
                    return Ok(());
                }
                differs(notes.build_id.as_deref(), wanted)
            }
            Identity::Checksum(wanted) => match checksum(&image.input, self.limits.stream_bytes) {
                Some(found) if found == *wanted => Ok(()),
                Some(found) => Err(format!("has checksum {found:08x}, wanted {wanted:08x}")),
                None => Err("cannot be read whole for its checksum".to_owned()),
            },
            Identity::Tested(is_it) if is_it(image) => Ok(()),
            Identity::Tested(_) => Err("is of another build".to_owned()),
            Identity::Unnamed if how == How::Named => {
                let message =
                    "the binary has neither build-id nor debug link: the debug file is taken on trust";
                self.notice("unidentified-debug-file", message);
                Ok(())
            }
            Identity::Unnamed => Err("cannot be identified".to_owned()),
        }
    }
}

/// CRC32 of a whole input, as `.gnu_debuglink` has it.
fn checksum(input: &Input, limit: u64) -> Option<u32> {
    if input.len() > limit {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; WINDOW];
    let mut at = 0;
    while at < input.len() {
        let got = input.read_at(at, &mut buffer).ok().filter(|&got| got > 0)?;
        hasher.update(buffer.get(..got)?);
        at += got as u64;
    }
    Some(hasher.finalize())
}
