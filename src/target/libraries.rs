//! Which libraries the dynamic loader would load for a program.
//!
//! Followed are the loaders of glibc (ld.so(8), `elf/dl-load.c`) and musl (`ldso/dynlink.c`): names with a slash,
//! `DT_RPATH` of the object and of those that brought it, `DT_RUNPATH`, the directories of `/etc/ld.so.conf` and its
//! includes, the default directories, `/etc/ld.so.preload`; a file for another machine is passed over. All of it
//! inside the root file system. Not followed are `LD_LIBRARY_PATH` (it belongs to a process, and of a process the
//! mapped files are read), variants of a library for newer processors (`glibc-hwcaps`) and `dlopen`.

use crate::facts::FoundBy;
use crate::image::confined::{Below, Directory, seen_from};
use crate::image::linkage::{self, Linkage};
use crate::image::{Image, Input};
use crate::limits::Limits;
use crate::parallel::lock;
use object::elf;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

mod places;

use places::{Loader, expand};

/// Most objects loaded for one program; a web browser has about 150.
const MOST_OBJECTS: usize = 2000;
/// Most directories in one search path.
const MOST_FOLDERS: usize = 256;
/// Most places looked at for one program; a browser takes some thousands.
const MOST_PLACES: usize = 200_000;
/// `DF_1_NODEFLIB`: the default directories are not searched.
const DF_1_NODEFLIB: u64 = 0x800;
/// Most candidates remembered between programs.
const MOST_REMEMBERED: usize = 20_000;

/// A library as it was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it lies, links followed.
    pub path: PathBuf,
    /// The same place, to open it again.
    pub below: Option<Below>,
    /// Device and inode.
    pub identity: (u64, u64),
    /// The name it was asked for by.
    pub name: String,
    /// Who asked: a file name without its folder.
    pub by: String,
    /// Where it was found.
    pub how: FoundBy,
}

/// A library that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The name it was asked for by.
    pub name: String,
    /// Who asked: a file name without its folder.
    pub by: String,
    /// What is known of why.
    pub why: String,
}

/// What the loader would do.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order of loading; the program itself is not among them.
    pub found: Vec<Found>,
    /// What it would not find.
    pub missing: Vec<Missing>,
}

/// Resolves the libraries of many programs in one root file system.
#[derive(Debug)]
pub struct Resolver {
    root: PathBuf,
    /// The root held open, from the first library on.
    top: OnceLock<Option<Directory>>,
    limits: Limits,
    conf: OnceLock<Vec<PathBuf>>,
    remembered: Mutex<HashMap<PathBuf, Option<Arc<Candidate>>>>,
}

/// A file that was looked at.
#[derive(Debug)]
struct Candidate {
    /// Links followed.
    path: PathBuf,
    /// The same place, to open it again; the program itself is open.
    below: Option<Below>,
    identity: (u64, u64),
    machine: Machine,
    linkage: Linkage,
}

/// What two objects must have in common to be loaded together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Machine {
    code: elf::Machine,
    is_64: bool,
    little_endian: bool,
}

impl Machine {
    fn of(image: &Image) -> Self {
        let header = &image.header;
        Self { code: header.machine, is_64: header.is_64, little_endian: header.little_endian }
    }
}

/// An object in the loader's list.
struct Object {
    candidate: Arc<Candidate>,
    /// Its base name.
    shown: String,
    /// Its folder inside the root, for `$ORIGIN`.
    origin: Option<PathBuf>,
    /// Which object brought it.
    loader: Option<usize>,
}

/// The loader's list while it grows.
struct List {
    objects: Vec<Object>,
    /// Names that are there already: as asked for, and `DT_SONAME`.
    names: HashSet<Vec<u8>>,
    loaded: Loaded,
}

impl Resolver {
    /// A resolver for a root file system; `None` is the running system's.
    pub fn new(root: Option<&Path>, limits: &Limits) -> Self {
        let root = root.map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
        Self {
            root,
            top: OnceLock::new(),
            limits: limits.clone(),
            conf: OnceLock::new(),
            remembered: Mutex::default(),
        }
    }

    /// Everything that the loader would load for the program `input`, which lies at `place`, and for `extra`: files that
    /// it loads later by a path inside the root (nginx modules), asked for by `by`.
    pub fn resolve(&self, input: &Input, place: &Path, extra: &[PathBuf]) -> Option<Loaded> {
        let image = Image::open(input.clone(), &self.limits).ok()?;
        let linkage = linkage::read(&image);
        if !linkage.linked {
            return None;
        }
        let inside = seen_from(&self.root, &place.canonicalize().unwrap_or_else(|_| place.to_path_buf()));
        let identity = std::fs::metadata(place).map(|found| (found.dev(), found.ino())).unwrap_or_default();
        let candidate = Candidate {
            path: place.to_path_buf(),
            below: None,
            identity,
            machine: Machine::of(&image),
            linkage,
        };
        Some(self.load(Arc::new(candidate), inside.as_deref(), extra))
    }

    fn load(&self, program: Arc<Candidate>, inside: Option<&Path>, extra: &[PathBuf]) -> Loaded {
        let machine = program.machine;
        let loader = Loader::of(&program.linkage, machine.is_64, machine.code);
        let interpreter = program.linkage.interpreter.clone();
        let dynamic = program.linkage.has_dynamic;
        let mut list = List {
            names: program.linkage.soname.iter().cloned().collect(),
            objects: vec![Object {
                shown: base_name(&program.path),
                origin: inside.and_then(Path::parent).map(Path::to_path_buf),
                loader: None,
                candidate: program,
            }],
            loaded: Loaded::default(),
        };
        if let Some(name) = interpreter.filter(|_| dynamic) {
            let path = PathBuf::from(OsStr::from_bytes(&name));
            match self.candidate(&path, machine) {
                Some(found) => list.add(found, &path, (0, name), FoundBy::Interpreter),
                None => list.miss(0, &name, "the program interpreter is not there".to_owned()),
            }
        }
        if dynamic && !loader.musl {
            for path in places::preloaded(&self.root) {
                let name = path.as_os_str().as_bytes().to_vec();
                if let Some(found) = self.candidate(&path, machine).filter(|_| path.is_absolute()) {
                    list.add(found, &path, (0, name), FoundBy::Preload);
                }
            }
        }
        for path in extra {
            let name = path.as_os_str().as_bytes().to_vec();
            match self.candidate(path, machine) {
                Some(found) => list.add(found, path, (0, name), FoundBy::LoadModule),
                None => list.miss(0, &name, "the module is not there".to_owned()),
            }
        }
        let mut places = 0;
        let mut queue: VecDeque<usize> = (0..list.objects.len()).collect();
        while let Some(at) = queue.pop_front() {
            let Some(needed) = list.objects.get(at).map(|object| object.candidate.linkage.needed.clone())
            else {
                continue;
            };
            for name in needed {
                // A library that is there already is not looked for, whatever name it was found by.
                if list.names.contains(&name) {
                    continue;
                }
                if list.objects.len() >= MOST_OBJECTS || places >= MOST_PLACES {
                    let why =
                        format!("more than {MOST_OBJECTS} libraries, or {MOST_PLACES} places to look at");
                    list.miss(at, &name, why);
                    return list.loaded;
                }
                match self.find(&list.objects, at, &name, &loader, &mut places) {
                    Ok((candidate, path, how)) => {
                        let before = list.objects.len();
                        list.add(candidate, &path, (at, name), how);
                        queue.extend(before..list.objects.len());
                    }
                    Err(why) => list.miss(at, &name, why),
                }
            }
        }
        list.loaded
    }

    /// Looks for a library in the loader's order.
    fn find(
        &self,
        objects: &[Object],
        at: usize,
        name: &[u8],
        loader: &Loader,
        places: &mut usize,
    ) -> Result<(Arc<Candidate>, PathBuf, FoundBy), String> {
        let Some(object) = objects.get(at) else { return Err("not found".to_owned()) };
        let machine = object.candidate.machine;
        if name.contains(&b'/') {
            for path in expand(name, object.origin.as_deref(), loader) {
                if !path.is_absolute() {
                    return Err("a path relative to the working directory of the process".to_owned());
                }
                if let Some(found) = self.candidate(&path, machine) {
                    return Ok((found, path, FoundBy::Path));
                }
            }
            return Err("nothing at that path".to_owned());
        }
        let file = Path::new(OsStr::from_bytes(name));
        let mut other = None;
        let mut tried = HashSet::new();
        for (folder, how) in self.folders(objects, at, loader) {
            if !tried.insert(folder.clone()) {
                continue;
            }
            *places += 1;
            let path = folder.join(file);
            if let Some(found) = self.candidate(&path, machine) {
                return Ok((found, path, how));
            }
            if other.is_none() && self.remembered(&path).is_some() {
                other = Some(path);
            }
        }
        Err(match other {
            Some(path) => format!("not found; {} is for another machine", path.display()),
            None => "not found".to_owned(),
        })
    }

    /// The directories that are searched for what an object needs, in order.
    fn folders(&self, objects: &[Object], at: usize, loader: &Loader) -> Vec<(PathBuf, FoundBy)> {
        let mut folders = Vec::new();
        let mut add = |list: &[u8], object: &Object, how: FoundBy| {
            for part in list.split(|&byte| byte == b':' || (loader.musl && byte == b'\n')) {
                // An empty part and a relative one mean the working directory, which belongs to a process.
                for folder in expand(part, object.origin.as_deref(), loader) {
                    if folder.is_absolute() && folders.len() < MOST_FOLDERS {
                        folders.push((folder, how));
                    }
                }
            }
        };
        let runpath = objects.get(at).and_then(|object| object.candidate.linkage.runpath.clone());
        let mut next = Some(at);
        for _ in 0..objects.len() {
            let Some(object) = next.and_then(|at| objects.get(at)) else { break };
            let linkage = &object.candidate.linkage;
            if loader.musl {
                // musl knows no difference between the two.
                if let Some(list) = linkage.runpath.as_ref().or(linkage.rpath.as_ref()) {
                    let how = if linkage.runpath.is_some() { FoundBy::Runpath } else { FoundBy::Rpath };
                    add(list, object, how);
                }
            } else if runpath.is_none()
                && linkage.runpath.is_none()
                && let Some(list) = &linkage.rpath
            {
                add(list, object, FoundBy::Rpath);
            }
            next = object.loader;
        }
        // The program's own DT_RPATH holds for everything, also for what it did not bring itself.
        if !loader.musl
            && runpath.is_none()
            && let Some(program) = objects.first()
            && program.candidate.linkage.runpath.is_none()
            && let Some(list) = &program.candidate.linkage.rpath
        {
            add(list, program, FoundBy::Rpath);
        }
        if !loader.musl
            && let (Some(list), Some(object)) = (&runpath, objects.get(at))
        {
            add(list, object, FoundBy::Runpath);
        }
        let no_default =
            objects.get(at).is_some_and(|object| object.candidate.linkage.flags_1 & DF_1_NODEFLIB != 0);
        if !no_default || loader.musl {
            if !loader.musl {
                let conf = self.conf.get_or_init(|| places::configured(&self.root));
                folders.extend(conf.iter().map(|folder| (folder.clone(), FoundBy::Configuration)));
            }
            folders.extend(loader.default_folders(&self.root).map(|folder| (folder, FoundBy::Default)));
        }
        folders
    }

    /// A file that can be loaded beside objects for this machine.
    fn candidate(&self, path: &Path, machine: Machine) -> Option<Arc<Candidate>> {
        self.remembered(path).filter(|candidate| {
            // An object without a machine in common is passed over (`open_verify` in `elf/dl-load.c`).
            candidate.machine == machine
        })
    }

    fn remembered(&self, path: &Path) -> Option<Arc<Candidate>> {
        if let Some(known) = lock(&self.remembered).get(path) {
            return known.clone();
        }
        let candidate = self.look(path).map(Arc::new);
        let mut remembered = lock(&self.remembered);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(path.to_path_buf(), candidate.clone());
        candidate
    }

    fn look(&self, path: &Path) -> Option<Candidate> {
        let top = self.top.get_or_init(|| Directory::open(&self.root).ok()).as_ref()?;
        let below = top.find(path).ok()?;
        let file = below.open().ok()?;
        let found = file.metadata().ok()?;
        let image = Image::open(Input::file(file).ok()?, &self.limits).ok()?;
        if image.header.kind != elf::ET_DYN {
            return None;
        }
        let linkage = linkage::read(&image);
        Some(Candidate {
            path: self.root.join(&below.path),
            below: Some(below),
            identity: (found.dev(), found.ino()),
            machine: Machine::of(&image),
            linkage,
        })
    }
}

impl List {
    /// Adds an object, or a name of one that is there already.
    fn add(&mut self, candidate: Arc<Candidate>, path: &Path, (by, name): (usize, Vec<u8>), how: FoundBy) {
        self.names.extend(candidate.linkage.soname.iter().cloned());
        let shown = String::from_utf8_lossy(&name).into_owned();
        self.names.insert(name);
        if self.objects.iter().any(|object| object.candidate.identity == candidate.identity) {
            return;
        }
        self.loaded.found.push(Found {
            path: candidate.path.clone(),
            below: candidate.below.clone(),
            identity: candidate.identity,
            name: shown,
            by: self.objects.get(by).map(|object| object.shown.clone()).unwrap_or_default(),
            how,
        });
        self.objects.push(Object {
            shown: base_name(path),
            origin: path.parent().map(Path::to_path_buf),
            loader: Some(by),
            candidate,
        });
    }

    /// Adds a name that is not found; it is looked for once.
    fn miss(&mut self, by: usize, name: &[u8], why: String) {
        self.names.insert(name.to_vec());
        self.loaded.missing.push(Missing {
            name: String::from_utf8_lossy(name).into_owned(),
            by: self.objects.get(by).map(|object| object.shown.clone()).unwrap_or_default(),
            why,
        });
    }
}

fn base_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
