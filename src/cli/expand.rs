//! From the names of targets to the files behind them.

use super::progress::Progress;
use super::targets::TargetArguments;
use crate::facts::Origin;
use crate::image::confined::{Below, Directory};
use crate::limits::Limits;
use crate::parallel;
use crate::report::Summary;
use crate::target::package::Wanted;
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
        self.summary.packages += other.summary.packages;
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
        let root = Root::open(self.root.as_deref());
        // Directories are walked one after the other, since a walk is parallel itself.
        let (mut parts, mut rest) = (Vec::new(), Vec::new());
        for (index, name) in names.into_iter().enumerate() {
            match root.directory(&name).filter(|_| process::pid_of(&name).is_none()) {
                Some((top, place)) => parts.push((index, self.walk(&top, &place, jobs, limits, progress))),
                None => rest.push((index, name)),
            }
        }
        let shelf = package::Shelf::default();
        let flow: ControlFlow<()> = parallel::ordered(
            if rest.len() > 1 { jobs } else { 1 },
            rest.into_iter(),
            |(index, name)| {
                let mut part = self.one(name, &root, limits);
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
    fn one(&self, name: PathBuf, root: &Root<'_>, limits: &Limits) -> Expanded {
        self.one_or_named(name, None, root, limits)
    }

    /// The one program of a package that has a name of this last component, or nothing.
    pub fn linked(&self, name: PathBuf, last: &str, limits: &Limits) -> Vec<Subject> {
        let root = Root::open(self.root.as_deref());
        self.one_or_named(name, Some(Wanted::Last(last)), &root, limits).subjects
    }

    /// Expands a name that is no directory; of a package only what is wanted.
    fn one_or_named(
        &self,
        name: PathBuf,
        wanted: Option<Wanted<'_>>,
        root: &Root<'_>,
        limits: &Limits,
    ) -> Expanded {
        let mut expanded = Expanded::default();
        if let Some(pid) = process::pid_of(&name) {
            expanded.subjects.push(super::processes::by_number(pid, limits));
            return expanded;
        }
        if let Some((package, member)) = member_of(&name) {
            return self.member(name, package, &member, root, limits);
        }
        if let Some((wanted, (top, place))) = wanted.zip(root.directory(&name)) {
            let mut image = package::layout(&top, &place, limits).unwrap_or_default();
            image.pick(&place, wanted);
            expanded.subjects = image.subjects;
            return expanded;
        }
        let subject = if name.as_os_str() == "-" {
            Subject::new("<stdin>", Origin::Stdin)
        } else {
            match root.place(&name) {
                Ok(None) => Subject::new(name, Origin::File),
                Ok(Some((below, place))) => Subject {
                    below: Some(below),
                    place: (place != name).then_some(place),
                    ..Subject::new(name, Origin::File)
                },
                Err(why) => {
                    expanded.subjects.push(Subject::refused(name, Origin::File, why));
                    return expanded;
                }
            }
        };
        let (shown, path) = (subject.shown(), subject.path.clone());
        match package::open(subject, limits) {
            Err(subject) => expanded.subjects.push(*subject),
            Ok(mut package) => {
                if let Some(wanted) = wanted {
                    package.pick(&path, wanted);
                }
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
    fn member(
        &self,
        name: PathBuf,
        package: PathBuf,
        member: &str,
        root: &Root<'_>,
        limits: &Limits,
    ) -> Expanded {
        let mut expanded = self.one_or_named(package, Some(Wanted::Member(member)), root, limits);
        expanded.summary = Summary::default();
        // What is no package has no members.
        expanded.subjects.retain(|subject| subject.member.is_some() || subject.refused.is_some());
        if expanded.subjects.is_empty() {
            let why = "no program of this name in the package".to_owned();
            expanded.subjects.push(Subject::refused(name, Origin::Archive, why));
        }
        expanded
    }

    fn walk(
        &self,
        top: &Directory,
        root: &Path,
        jobs: usize,
        limits: &Limits,
        progress: &mut Progress,
    ) -> Expanded {
        let shown = root.display().to_string();
        let walk = directory::walk(top, root, jobs, limits, &mut |count| progress.tick(&shown, count, None));
        let mut expanded = Expanded::default();
        expanded.notes.extend(walk.unreadable.iter().map(|(path, why)| format!("{}: {why}", path.display())));
        expanded.summary.skipped = walk.skipped;
        expanded.summary.packages = walk.packages;
        expanded.summary.unreadable = walk.unreadable.len() as u64;
        let image = if walk.oci_layout { package::layout(top, root, limits) } else { None };
        let unread = walk.oci_layout && image.is_none();
        let image = image.unwrap_or_default();
        expanded.summary.skipped += image.skipped;
        let empty = walk.found.is_empty() && image.subjects.is_empty();
        if unread {
            expanded
                .notes
                .push(format!("{shown}: an OCI layout, whose index names no image that can be read"));
        } else if empty {
            let hint = match walk.packages {
                0 => String::new(),
                1 => ", but a package, which a walk does not open: name it".to_owned(),
                packages => format!(", but {packages} packages, which a walk does not open: name them"),
            };
            expanded.notes.push(format!("{shown}: no ELF file in this directory{hint}"));
        }
        expanded.subjects.extend(walk.found.into_iter().map(Subject::met));
        expanded.subjects.extend(image.subjects);
        expanded.incomplete = ((empty || unread) && !self.allow_empty)
            || (!walk.unreadable.is_empty() && !self.ignore_unreadable);
        expanded
    }
}

/// The root file system of `--root`, held open.
struct Root<'a>(Option<(&'a Path, std::io::Result<Directory>)>);

impl<'a> Root<'a> {
    fn open(root: Option<&'a Path>) -> Self {
        Self(root.map(|root| (root, Directory::open(root))))
    }

    /// Where a name inside the root file system leads, links followed inside it, with the path on this machine. `None`
    /// for names that lie elsewhere, which are taken as they are.
    fn place(&self, name: &Path) -> Result<Option<(Below, PathBuf)>, String> {
        let Some((root, top)) = &self.0 else { return Ok(None) };
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let (shown, path) = (absolute(root), absolute(name));
        let Ok(inside) = path.strip_prefix(&shown) else { return Ok(None) };
        let top = top.as_ref().map_err(|error| format!("the root {}: {error}", shown.display()))?;
        let below =
            top.find(inside).map_err(|_| format!("leads to nothing inside the root {}", shown.display()))?;
        let place = shown.join(&below.path);
        Ok(Some((below, place)))
    }

    /// The directory of that name, held open, with its path on this machine; `None` if it is none.
    fn directory(&self, name: &Path) -> Option<(Directory, PathBuf)> {
        match self.place(name).ok()? {
            Some((below, place)) => Some((below.directory().ok()?, place)),
            None => Some((Directory::open(name).ok()?, name.to_path_buf())),
        }
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
        let is_package = package.is_file() || package.join(directory::OCI_LAYOUT).is_file();
        is_package.then_some((package, member))
    })
}
