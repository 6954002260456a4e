//! Files that hold the debug information of another: separate debug files, `dwz` supplementary files, `.dwo`, `.dwp`.
//!
//! Where they are looked for follows GDB's manual ("Debugging Information in Separate Files") and elfutils. A path
//! from inside a binary only proposes a place: what is there counts if it is a regular file inside the root whose
//! identity is right (build-id first, CRC32 only where the binary has no build-id, the caller's test for `.dwo`).

use super::confined::{open_inside, open_regular, seen_from};
use super::linkage::hexadecimal;
use super::notes::{self, Notes, SupplementaryLink};
use super::{Image, Input, document};
use crate::facts::Problem;
use crate::limits::Limits;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where distributions put debug files.
const GLOBAL: &str = "/usr/lib/debug";
/// Longest build-id that names a file, in bytes; real ones have 4 to 32.
const MAX_ID: usize = 64;
/// How deep a binary may lie for its folder's leading components to be dropped one by one.
const MAX_DEPTH: usize = 64;
/// Bytes read at once for a checksum.
const WINDOW: usize = 256 << 10;
/// Largest user database read, in bytes.
const MOST_USERS: u64 = 16 << 20;

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
    /// Its bytes, if it cannot be opened by its name.
    pub input: Option<Input>,
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

/// The folder in which the debuginfod client keeps what it has fetched for the user who runs this program, in the place
/// that the client takes by itself. The home directory is that of the user database and not of the environment: who can
/// set a variable must not be able to say where evidence comes from.
pub fn own_cache() -> Option<PathBuf> {
    let database = document::read(Path::new("/etc/passwd"), MOST_USERS, Some(Duration::ZERO)).ok()?;
    let home = home_of(rustix::process::geteuid().as_raw(), &database)?;
    Some(home.join(".cache/debuginfod_client"))
}

/// The sixth field of the user's line (`passwd(5)`), if it is an absolute path.
fn home_of(user: u32, database: &[u8]) -> Option<PathBuf> {
    let line = database
        .split(|&byte| byte == b'\n')
        .map(|line| line.split(|&byte| byte == b':').collect::<Vec<_>>());
    let mine = line.into_iter().find(|fields| fields.get(2) == Some(&user.to_string().as_bytes()))?;
    let home = Path::new(OsStr::from_bytes(mine.get(5)?));
    home.is_absolute().then(|| home.to_path_buf())
}

/// The same as the client is told by the environment (`debuginfod_find_debuginfo(3)`), for one who allows to ask it.
pub fn client_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("DEBUGINFOD_CACHE_PATH").or_else(|| {
        let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(base.join("debuginfod_client"))
    })
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

/// What makes a file the right one.
enum Identity<'a> {
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
enum PlaceOf {
    /// By its path inside the root.
    Inside(PathBuf),
    /// Named by the user and outside the root: then it is a root of its own.
    Own(PathBuf),
}

/// One search, which ends with the first right file.
struct Hunt<'a> {
    options: &'a Options,
    limits: &'a Limits,
    root: PathBuf,
    identity: &'a Identity<'a>,
    useful: &'a dyn Fn(&Image) -> bool,
    /// The binary's folders as seen from inside the root: as named, and with links followed.
    folders: Vec<PathBuf>,
    /// Device and inode of the binary, which is not its own companion.
    own: Option<(u64, u64)>,
    tried: Vec<PathBuf>,
    search: Search,
}

impl<'a> Hunt<'a> {
    fn new(
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

    fn finish(mut self, missing: Option<String>) -> Search {
        if self.search.found.is_none() {
            self.search.missing = missing;
        }
        self.search
    }

    fn notice(&mut self, code: &str, message: impl Into<String>) {
        self.search.problems.push(Problem::notice(code, message));
    }

    /// Folders of debug files: the user's first.
    fn places(&self) -> Vec<PlaceOf> {
        let named = self.options.debug_dirs.iter().map(|folder| {
            let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            seen_from(&self.root, &absolute).map_or_else(|| PlaceOf::Own(absolute), PlaceOf::Inside)
        });
        named.chain([PlaceOf::Inside(PathBuf::from(GLOBAL))]).collect()
    }

    fn at(&mut self, place: &PlaceOf, below: &Path, how: How) {
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

    fn inside(&mut self, path: &Path, how: How) {
        if self.search.found.is_some() {
            return;
        }
        if let Ok((file, path)) = open_inside(&self.root, path) {
            self.consider(file, path, how);
        }
    }

    /// Files named by the user. That one of them belongs to another binary is nothing to speak of once the right one
    /// is found.
    fn named(&mut self) {
        let before = self.search.problems.len();
        self.named_like(&|_| true);
        if self.search.found.is_some() {
            self.search.problems.truncate(before);
        }
    }

    fn named_like(&mut self, wanted: &dyn Fn(&Path) -> bool) {
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
    fn met(&mut self, id: &[u8]) {
        let Some(known) = self.options.known.get(id).filter(|_| self.search.found.is_none()) else { return };
        let path = known.path.clone();
        match &known.input {
            Some(input) => self.judge(input.clone(), path, How::BuildId),
            None => {
                if let Ok(file) = open_regular(&path) {
                    self.consider(file, path, How::BuildId);
                }
            }
        }
    }

    fn by_build_id(&mut self, id: &[u8], ending: &str) {
        let name = hexadecimal(id);
        let Some((first, rest)) = name.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()) else {
            return;
        };
        let below = PathBuf::from(format!(".build-id/{first}/{rest}.{ending}"));
        for place in self.places() {
            self.at(&place, &below, How::BuildId);
        }
    }

    fn by_link(&mut self, name: &OsStr) {
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
    fn cached(&mut self, id: &[u8]) {
        let Some(cache) = self.options.cache.clone().filter(|_| self.search.found.is_none()) else { return };
        let below = Path::new(&hexadecimal(id)).join("debuginfo");
        if let Ok((file, path)) = open_inside(&cache, &below)
            && file.metadata().is_ok_and(|found| found.len() > 0)
        {
            self.consider(file, path, How::Cache);
        }
    }

    fn fetched(&mut self, id: &[u8]) {
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
    fn consider(&mut self, file: File, path: PathBuf, how: How) {
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

enum Answer {
    Path(PathBuf),
    Nothing,
    NotInstalled,
    Late,
}

/// Asks `debuginfod-find` for a build-id, and waits no longer than `patience`.
fn ask(client: &Path, id: &str, patience: Duration) -> Answer {
    use std::io::{Read, Seek};
    use std::process::{Command, Stdio};
    // A file and not a pipe: whoever else holds it open can make nobody wait.
    let Ok(mut printed) = tempfile::tempfile() else { return Answer::Nothing };
    let Ok(output) = printed.try_clone() else { return Answer::Nothing };
    let child = Command::new(client)
        .args(["debuginfo", id])
        .env_remove("DEBUGINFOD_PROGRESS")
        .env("DEBUGINFOD_TIMEOUT", patience.as_secs().max(1).to_string())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return Answer::NotInstalled };
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                // It may be gone already; then there is nothing to end.
                let _ = child.kill();
                let _ = child.wait();
                return Answer::Late;
            }
        }
    };
    let mut text = Vec::new();
    let read = printed.rewind().and_then(|()| printed.take(8 << 10).read_to_end(&mut text));
    let path = text.trim_ascii_end();
    if read.is_err() || !status.success() || path.is_empty() {
        return Answer::Nothing;
    }
    Answer::Path(PathBuf::from(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests;
