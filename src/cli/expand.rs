//! From the names of targets to the files behind them.

use super::progress::Progress;
use super::targets::TargetArguments;
use crate::facts::Origin;
use crate::image::confined;
use crate::limits::Limits;
use crate::parallel;
use crate::report::Summary;
use crate::target::{Subject, directory, package, process};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What names stand for.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub subjects: Vec<Subject>,
    /// Lines for standard error.
    pub notes: Vec<String>,
    pub summary: Summary,
    /// Something could not be audited: exit status 2.
    pub incomplete: bool,
}

impl Expanded {
    fn add(&mut self, other: Self) {
        self.subjects.extend(other.subjects);
        self.notes.extend(other.notes);
        self.summary.skipped += other.summary.skipped;
        self.summary.unreadable += other.summary.unreadable;
        self.incomplete |= other.incomplete;
    }
}

impl TargetArguments {
    /// Expands all names, opening `jobs` packages at the same time.
    pub fn expand(
        &self,
        names: Vec<PathBuf>,
        jobs: usize,
        limits: &Limits,
        progress: &mut Progress,
    ) -> Expanded {
        let mut all = Expanded::default();
        // Directories are walked one after the other, since a walk is parallel itself.
        let (mut parts, mut rest) = (Vec::new(), Vec::new());
        for (index, name) in names.into_iter().enumerate() {
            let place = self.inside_root(&name);
            if process::pid_of(&name).is_none() && place.as_deref().is_ok_and(Path::is_dir) {
                let part = self.walk(&place.unwrap_or(name), jobs, limits, progress);
                parts.push((index, part));
            } else {
                rest.push((index, name));
            }
        }
        let shelf = package::Shelf::default();
        let flow: ControlFlow<()> = parallel::ordered(
            if rest.len() > 1 { jobs } else { 1 },
            rest.into_iter(),
            |(index, name)| {
                let mut part = self.one(name, limits);
                // A process's program is held open, since it may be gone; copies of it are shared already.
                if part.subjects.iter().all(|subject| subject.process.is_none()) {
                    shelf.keep(&mut part.subjects);
                }
                (index, part)
            },
            |part| {
                parts.push(part);
                ControlFlow::Continue(())
            },
        );
        debug_assert!(flow.is_continue());
        parts.sort_by_key(|(index, _)| *index);
        for (_, part) in parts {
            all.add(part);
        }
        all
    }

    /// Expands a name that is no directory.
    fn one(&self, name: PathBuf, limits: &Limits) -> Expanded {
        let mut expanded = Expanded::default();
        if let Some(pid) = process::pid_of(&name) {
            expanded.subjects.push(super::processes::by_number(pid, limits));
            return expanded;
        }
        if let Some((package, member)) = member_of(&name) {
            return self.member(name, package, &member, limits);
        }
        let subject = if name.as_os_str() == "-" {
            Subject::new("<stdin>", Origin::Stdin)
        } else {
            match self.inside_root(&name) {
                Ok(place) if place == name => Subject::new(name, Origin::File),
                Ok(place) => Subject { place: Some(place), ..Subject::new(name, Origin::File) },
                Err(why) => {
                    expanded.subjects.push(Subject::refused(name, Origin::File, why));
                    return expanded;
                }
            }
        };
        let shown = subject.shown();
        match package::open(subject, limits) {
            Err(subject) => expanded.subjects.push(*subject),
            Ok(package) => {
                expanded.summary.skipped += package.skipped;
                if package.subjects.is_empty() {
                    expanded.notes.push(format!("{shown}: no ELF file in this package"));
                    expanded.incomplete |= !self.allow_empty;
                }
                expanded.subjects = package.subjects;
            }
        }
        expanded
    }

    /// One program of a package, under the name that reports give it.
    fn member(&self, name: PathBuf, package: PathBuf, member: &str, limits: &Limits) -> Expanded {
        let mut expanded = self.one(package, limits);
        let wanted = |subject: &Subject| {
            match subject.member.as_deref() {
                Some(found) => found.trim_start_matches('/') == member.trim_start_matches('/'),
                // Of a damaged package it is not known what is in it; what is no package has no members.
                None => subject.refused.is_some(),
            }
        };
        expanded.summary = Summary::default();
        expanded.subjects.retain(wanted);
        if expanded.subjects.is_empty() {
            expanded.notes.clear();
            let why = "no program of this name in the package".to_owned();
            expanded.subjects.push(Subject::refused(name, Origin::Archive, why));
        }
        expanded
    }

    /// Where a name inside the root file system leads: links are followed inside it. Other names are taken as they are.
    fn inside_root(&self, name: &Path) -> Result<PathBuf, String> {
        let Some(root) = &self.root else { return Ok(name.to_path_buf()) };
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let (root, path) = (absolute(root), absolute(name));
        match path.strip_prefix(&root) {
            Ok(inside) => confined::resolve(&root, inside)
                .ok_or_else(|| format!("leads to nothing inside the root {}", root.display())),
            Err(_) => Ok(name.to_path_buf()),
        }
    }

    fn walk(&self, root: &Path, jobs: usize, limits: &Limits, progress: &mut Progress) -> Expanded {
        let shown = root.display().to_string();
        let walk = directory::walk(root, jobs, limits, &mut |count| progress.tick(&shown, count, None));
        let mut expanded = Expanded::default();
        expanded.notes.extend(walk.unreadable.iter().map(|(path, why)| format!("{}: {why}", path.display())));
        expanded.summary.skipped = walk.skipped;
        expanded.summary.unreadable = walk.unreadable.len() as u64;
        let empty = walk.found.is_empty();
        if empty {
            expanded.notes.push(format!("{shown}: no ELF file in this directory"));
        }
        expanded.subjects.extend(walk.found.into_iter().map(Subject::met));
        expanded.incomplete =
            (empty && !self.allow_empty) || (!walk.unreadable.is_empty() && !self.ignore_unreadable);
        expanded
    }
}

/// The package and the member of a name as `PACKAGE!MEMBER`, where there is no file of the whole name.
fn member_of(name: &Path) -> Option<(PathBuf, String)> {
    let bytes = name.as_os_str().as_bytes();
    if !bytes.contains(&b'!') || std::fs::symlink_metadata(name).is_ok() {
        return None;
    }
    let places = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'!').map(|(at, _)| at);
    places.filter_map(|at| bytes.split_at_checked(at)).find_map(|(package, member)| {
        let package = PathBuf::from(OsStr::from_bytes(package));
        let member = String::from_utf8_lossy(member.get(1..)?).into_owned();
        package.is_file().then_some((package, member))
    })
}
