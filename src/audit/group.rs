//! Targets that were named together: debug files among them serve their programs, modules are held against their
//! servers, and what is there twice is audited once.

use super::{Options, audit, loaded, modules};
use crate::facts::{DebugSource, Facts, Kind, Origin, Supplementary};
use crate::image::companion::{self, Known};
use crate::image::{Image, Input, notes};
use crate::nginx::{ModuleFile, Server, loadable};
use crate::parallel::{self, lock};
use crate::target::Subject;
use crate::target::glance::{Glance, glance};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Most results kept for copies that come later. A copy whose result is no longer there is audited itself.
const MOST_KEPT: usize = 256;
/// Up to so many targets any of them may be a module; in a larger group a module is named `*.so`.
const FEW: usize = 64;
/// Bytes compared at once.
const WINDOW: usize = 128 << 10;

/// A library by its place and, where that is known, the file there: another may have been there before.
type LibraryKey = (PathBuf, Option<(u64, u64)>);

/// Targets that belong together.
#[derive(Debug)]
pub struct Group {
    subjects: Vec<Subject>,
    /// For a copy of an earlier target, which one that is.
    same: Vec<Option<usize>>,
    /// How many copies of a target come later.
    copies: Vec<usize>,
    options: Options,
    /// Debug files that were dropped, being part of what is known of their programs.
    dropped: u64,
    kept: Mutex<HashMap<usize, (Arc<Facts>, usize)>>,
    modules: OnceLock<Vec<ModuleFile>>,
    /// Servers that may load a module another one refuses.
    servers: OnceLock<Vec<Server>>,
    /// Libraries of the targets, with the first target that asked.
    libraries: Mutex<BTreeMap<LibraryKey, (usize, Subject)>>,
}

impl Group {
    /// Looks at all targets of a group.
    pub fn of(mut subjects: Vec<Subject>, options: &Options, jobs: usize) -> Self {
        let mut options = options.clone();
        let mut same = vec![None; subjects.len()];
        let mut dropped = 0;
        if subjects.len() > 1 {
            look(&mut subjects, &options, jobs);
            options.companions.known = Arc::new(debug_files(&subjects));
            let before = subjects.len();
            drop_companions(&mut subjects);
            dropped = (before - subjects.len()) as u64;
            same = copies_of(&subjects, &options);
        }
        let mut copies = vec![0; subjects.len()];
        for first in same.iter().flatten() {
            if let Some(count) = copies.get_mut(*first) {
                *count += 1;
            }
        }
        Self {
            subjects,
            same,
            copies,
            options,
            dropped,
            kept: Mutex::default(),
            modules: OnceLock::new(),
            servers: OnceLock::new(),
            libraries: Mutex::default(),
        }
    }

    /// How many targets there are.
    pub fn len(&self) -> usize {
        self.subjects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// Whether the libraries of the targets are asked for.
    pub fn follows_libraries(&self) -> bool {
        self.options.libraries.is_some()
    }

    /// How many debug files were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The targets.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// Audits one target; `None` if there are not so many.
    pub fn audit(&self, index: usize) -> Option<Facts> {
        let subject = self.subjects.get(index)?;
        // A process may end while its program is audited.
        let running = loaded::Running::of(subject);
        let first = self.same.get(index).copied().flatten();
        let mut facts = match first.and_then(|first| self.copy(first, subject)) {
            Some(facts) => facts,
            None => self.fresh(index, subject),
        };
        // What is loaded beside the program is another matter for every process, and for every place of a file.
        if let Some(running) = &running {
            running.tell(subject, &mut facts, &self.options);
        }
        // What a library needs was found with the program that it belongs to.
        if self.options.libraries.is_some() && subject.library.is_none() {
            let found = match running {
                Some(running) => running.subjects(subject),
                None => loaded::resolved(subject, &mut facts, &self.options),
            };
            self.keep_libraries(index, found);
        }
        if let Some(nginx) = &mut facts.nginx {
            nginx.server = None;
        }
        Some(facts)
    }

    fn fresh(&self, index: usize, subject: &Subject) -> Facts {
        let mut facts = audit(subject, &self.options);
        self.hold(&mut facts);
        let copies = self.copies.get(index).copied().unwrap_or_default();
        if copies > 0 {
            let mut kept = lock(&self.kept);
            if kept.len() < MOST_KEPT {
                kept.insert(index, (Arc::new(facts.clone()), copies));
            }
        }
        facts
    }

    /// The libraries of the targets audited so far, without those that are targets themselves.
    pub fn libraries(&self) -> Vec<Subject> {
        let own: HashSet<(u64, u64)> = self.subjects.iter().filter_map(identity).collect();
        let mut seen = HashSet::new();
        let libraries = lock(&self.libraries);
        let all = libraries.values().map(|(_, subject)| subject.clone());
        all.filter(|subject| subject.identity.is_none_or(|id| !own.contains(&id) && seen.insert(id)))
            .collect()
    }

    fn keep_libraries(&self, index: usize, found: Vec<Subject>) {
        let mut libraries = lock(&self.libraries);
        for subject in found {
            let key = (subject.place().to_path_buf(), subject.identity);
            match libraries.get(&key) {
                // The same answer, whatever the threads do.
                Some((first, _)) if *first <= index => {}
                _ => {
                    libraries.insert(key, (index, subject));
                }
            }
        }
    }

    /// The facts of an earlier target under the name of its copy.
    fn copy(&self, first: usize, subject: &Subject) -> Option<Facts> {
        let facts = {
            let mut kept = lock(&self.kept);
            let (facts, left) = kept.get_mut(&first)?;
            let facts = Arc::clone(facts);
            *left -= 1;
            if *left == 0 {
                kept.remove(&first);
            }
            facts
        };
        // A server's facts depend on what the process was started with, and debug files may lie beside one copy only.
        let other = subject.process.is_some() && facts.nginx.is_some();
        if other || !self.has_same_companions(first, subject, &facts) {
            return None;
        }
        Some(subject.named(Arc::unwrap_or_clone(facts)))
    }

    /// Whether a search beside `subject` finds the companions that were found for its copy `first`.
    fn has_same_companions(&self, first: usize, subject: &Subject, facts: &Facts) -> bool {
        let debug = &facts.debug_info;
        let folder = |subject: &Subject| subject.place().parent().map(Path::to_path_buf);
        if self.subjects.get(first).map(folder) == Some(folder(subject)) {
            return true;
        }
        match (debug.source, debug.supplementary) {
            (DebugSource::Dwo | DebugSource::Dwp, _) | (_, Supplementary::Found | Supplementary::Missing) => {
                return false;
            }
            (DebugSource::Embedded | DebugSource::None, _) if debug.missing.is_empty() => return true,
            _ => {}
        }
        let limits = &self.options.limits;
        let image = subject.open(limits).ok().and_then(|input| Image::open(input, limits).ok());
        let Some(image) = image else { return false };
        let own = &self.options.companions;
        let root = own.root.clone().or_else(|| subject.root.clone());
        let companions = companion::Options { root, ..own.clone() };
        let notes = notes::read(&image);
        let search = companion::debug_file(&image, &notes, subject.place(), &companions, limits);
        search.found.map(|found| found.path.to_string_lossy().into_owned()) == debug.path
    }

    /// Holds every dynamic module of the group against a server of the group. Where several builds lie side by side, as in
    /// a fleet's store, a module belongs to those that load it, and another's refusal is no fault.
    fn hold(&self, facts: &mut Facts) {
        let is_module = facts.product.as_ref().is_some_and(|product| product.name == "nginx-module");
        let kind = facts.elf.as_ref().map(|elf| elf.kind);
        let server = !is_module && matches!(kind, Some(Kind::Executable | Kind::Pie));
        let (true, true, Some(nginx)) = (self.subjects.len() > 1, server, &mut facts.nginx) else { return };
        let modules = self.modules.get_or_init(|| self.read_modules());
        if modules.is_empty() {
            return;
        }
        if let Some(server) = &nginx.server {
            for module in modules {
                let held = loadable(server, module, false);
                let has_another_home = || {
                    let servers = self.servers.get_or_init(|| self.read_servers());
                    servers.iter().any(|other| loadable(other, module, false).loadable == Some(true))
                };
                if held.loadable != Some(false) || !has_another_home() {
                    nginx.dynamic_modules.push(held);
                }
            }
        }
    }

    fn read_servers(&self) -> Vec<Server> {
        let few = self.subjects.len() <= FEW;
        let named = |subject: &&Subject| few || !subject.shown().contains(".so");
        self.subjects.iter().filter(named).filter_map(|one| modules::server(one, &self.options)).collect()
    }

    fn read_modules(&self) -> Vec<ModuleFile> {
        let few = self.subjects.len() <= FEW;
        let named = |subject: &&Subject| {
            let name = subject.shown();
            subject.process.is_none() && (few || name.as_bytes().ends_with(b".so"))
        };
        let read = |subject: &Subject| modules::module(subject, &subject.shown(), &self.options);
        self.subjects.iter().filter(named).filter_map(read).collect()
    }
}

/// Device and inode of a target's file.
fn identity(subject: &Subject) -> Option<(u64, u64)> {
    subject.identity.or_else(|| {
        if subject.member.is_some() || subject.refused.is_some() {
            return None;
        }
        let found = std::fs::metadata(subject.place()).ok()?;
        Some((found.dev(), found.ino()))
    })
}

/// Looks at the targets that nobody has looked at yet.
fn look(subjects: &mut [Subject], options: &Options, jobs: usize) {
    let limits = &options.limits;
    let flow: ControlFlow<()> = parallel::ordered(
        jobs,
        // A compressed program is decompressed once, for its audit.
        subjects.iter_mut().filter(|subject| subject.glance.is_none() && !subject.compressed),
        |subject| {
            // What comes from standard input or a process is held open already.
            if subject.refused.is_none()
                && let Ok(input) = subject.open(limits)
            {
                subject.glance = glance(&input, limits);
                if subject.origin == Origin::Stdin {
                    subject.input = Some(input);
                }
            }
        },
        |()| ControlFlow::Continue(()),
    );
    debug_assert!(flow.is_continue());
}

/// The separate debug files among the targets, by build-id.
fn debug_files(subjects: &[Subject]) -> HashMap<Vec<u8>, Known> {
    let mut known = HashMap::new();
    for subject in subjects {
        if let Some(Glance { build_id: Some(id), separate_debug: true, .. }) = &subject.glance {
            // A member is held open; everything else is opened again where it was found.
            let path = match &subject.member {
                Some(_) => subject.shown().into(),
                None => subject.place().to_path_buf(),
            };
            let file = Known { path, input: subject.input.clone(), below: subject.below.clone() };
            known.entry(id.clone()).or_insert(file);
        }
    }
    known
}

/// Drops separate debug files that a walk or a package brought beside the programs they belong to: they are part of
/// what is known of those, and no programs of their own.
fn drop_companions(subjects: &mut Vec<Subject>) {
    let id = |subject: &Subject, debug: bool| {
        let glance = subject.glance.as_ref().filter(|glance| glance.separate_debug == debug)?;
        glance.build_id.clone()
    };
    let programs: HashSet<Vec<u8>> = subjects.iter().filter_map(|subject| id(subject, false)).collect();
    subjects.retain(|subject| {
        let brought = matches!(subject.origin, Origin::Directory | Origin::Archive);
        !(brought && id(subject, true).is_some_and(|id| programs.contains(&id)))
    });
}

/// For every target the earlier one that it is a copy of. A build-id and a size are only a hint, since both can be
/// made up: the bytes decide.
fn copies_of(subjects: &[Subject], options: &Options) -> Vec<Option<usize>> {
    let mut by_build: HashMap<(&[u8], u64), Vec<usize>> = HashMap::new();
    let mut same = Vec::with_capacity(subjects.len());
    for (index, subject) in subjects.iter().enumerate() {
        let glance = subject.glance.as_ref();
        let key = glance.and_then(|glance| Some((glance.build_id.as_deref()?, glance.size)));
        let Some(key) = key else {
            same.push(None);
            continue;
        };
        let candidates = by_build.entry(key).or_default();
        let first = candidates.iter().copied().find(|first| {
            subjects.get(*first).is_some_and(|first| is_copy(first, subject, options).unwrap_or_default())
        });
        // Some builds give the same id to everything.
        if first.is_none() && candidates.len() < 4 {
            candidates.push(index);
        }
        same.push(first);
    }
    same
}

fn is_copy(a: &Subject, b: &Subject, options: &Options) -> Option<bool> {
    // Another root file system means other companions.
    if a.root != b.root {
        return Some(false);
    }
    if a.identity.is_some() && a.identity == b.identity {
        return Some(true);
    }
    let a = a.open(&options.limits).ok()?;
    let b = b.open(&options.limits).ok()?;
    equal(&a, &b)
}

fn equal(a: &Input, b: &Input) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    let (mut left, mut right) = (vec![0; WINDOW], vec![0; WINDOW]);
    let mut at = 0;
    while at < a.len() {
        let got = a.read_at(at, &mut left).ok()?;
        if got == 0 || b.read_at(at, right.get_mut(..got)?).ok()? != got {
            return Some(false);
        }
        if left.get(..got) != right.get(..got) {
            return Some(false);
        }
        at += got as u64;
    }
    Some(true)
}
