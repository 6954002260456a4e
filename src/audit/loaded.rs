//! What a program loads besides itself: libraries and dynamic modules, by the loader's rules or as a process has them.

use super::{Options, modules};
use crate::facts::{DynamicModule, Facts, FoundBy, Kind, Library, Origin, Problem};
use crate::image::confined::Directory;
use crate::image::identity::hexadecimal;
use crate::image::{Image, Input, notes};
use crate::limits::Limits;
use crate::target::Subject;
use crate::target::mapped::{Mapped, Unknown, mapped};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What a process has mapped, taken before the program is audited.
pub(super) struct Running {
    files: Vec<Mapped>,
    problem: Option<Problem>,
}

impl Running {
    /// Reads it; `None` if the target is no process.
    pub(super) fn of(subject: &Subject) -> Option<Self> {
        let pid = subject.process.as_ref()?.pid;
        Some(match mapped(pid, subject.started?, subject.identity) {
            Ok(listing) => {
                let lost = |why| {
                    Problem::damage(
                        Problem::LIBRARIES_UNKNOWN,
                        format!("not all libraries it runs are known: {why}"),
                    )
                };
                Self { files: listing.files, problem: listing.cut.map(lost) }
            }
            Err(why) => {
                let code = if matches!(why, Unknown::Ended) {
                    Problem::PROCESS_ENDED
                } else {
                    Problem::LIBRARIES_UNKNOWN
                };
                let message = format!("which libraries it runs is not known: {why}");
                Self { files: Vec::new(), problem: Some(Problem::notice(code, message)) }
            }
        })
    }

    /// Tells of libraries whose files were replaced, and of the dynamic modules of an nginx.
    pub(super) fn tell(&self, subject: &Subject, facts: &mut Facts, options: &Options) {
        facts.problems.extend(self.problem.iter().cloned());
        let replaced = self.files.iter().filter(|file| is_replaced(file, &options.limits));
        let replaced: Vec<String> = replaced.map(|file| file.path.to_string_lossy().into_owned()).collect();
        if let Some(process) = &mut facts.process {
            process.replaced = replaced;
        }
        facts.problems.extend(self.unsure());
        let is_module = facts.product.as_ref().is_some_and(|product| product.name == "nginx-module");
        let Some(nginx) = facts.nginx.as_mut().filter(|_| !is_module) else { return };
        // The configuration may name a module by a link, as Debian's does; what is mapped has its real name.
        let root = Directory::open(subject.root.as_deref().unwrap_or(Path::new("/"))).ok();
        let real = |path: &str| Some(Path::new("/").join(root.as_ref()?.find(Path::new(path)).ok()?.path));
        let configured: HashSet<PathBuf> =
            nginx.dynamic_modules.iter().filter_map(|known| real(&known.path)).collect();
        let server = nginx.server.clone();
        for file in &self.files {
            let path = file.path.to_string_lossy().into_owned();
            if configured.contains(&file.path) {
                continue;
            }
            let one = Subject {
                input: file.bytes.as_ref().ok().map(|(input, _)| input.clone()),
                ..Subject::new(&file.path, Origin::Process)
            };
            if one.input.is_none() {
                continue;
            }
            let Some(module) = modules::module(&one, &path, options) else { continue };
            // It is loaded: what nginx would say to it now is past.
            let held = match server.as_deref() {
                Some(server) => crate::nginx::loadable(server, &module, false),
                None => DynamicModule {
                    path,
                    name: module.names.first().cloned(),
                    version: None,
                    signature: module.signature.clone(),
                    loadable: None,
                    why_not: None,
                },
            };
            nginx.dynamic_modules.push(DynamicModule { loadable: Some(true), why_not: None, ..held });
        }
    }

    /// A notice of libraries that are perhaps not the ones at their names, which is known only to who may read what is
    /// mapped.
    fn unsure(&self) -> Option<Problem> {
        let unsure = |file: &&Mapped| is_library(file) && !file.replaced;
        let mut unread =
            self.files.iter().filter(unsure).filter_map(|file| Some((file, file.bytes.as_ref().err()?)));
        let (first, why) = unread.next()?;
        let more = match unread.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let path = first.path.display();
        let message = format!("it is not known whether {path}{more} is the library that is mapped: {why}");
        Some(Problem::notice(Problem::LIBRARIES_UNKNOWN, message))
    }

    /// The files as targets.
    pub(super) fn subjects(self, subject: &Subject) -> Vec<Subject> {
        let by = subject.shown();
        let root = subject.root.as_deref();
        let files = self.files.into_iter().map(|file| {
            let library = Library {
                name: file.path.to_string_lossy().into_owned(),
                needed_by: by.clone(),
                found_by: FoundBy::Mapped,
            };
            let place = root.map(|root| root.join(file.path.strip_prefix("/").unwrap_or(&file.path)));
            let (input, identity, refused) = match file.bytes {
                Ok((input, identity)) => (Some(input), Some(identity), None),
                Err(why) => (None, None, Some(why)),
            };
            Subject {
                library: Some(library),
                input,
                identity,
                refused,
                place,
                root: root.map(Path::to_path_buf),
                ..Subject::new(file.path, Origin::File)
            }
        });
        files.collect()
    }
}

fn is_library(file: &Mapped) -> bool {
    file.path.to_string_lossy().contains(".so")
}

/// Whether a library runs that is not the one at its name now. The same build copied anew is the same library. A file
/// that still has its name is another one only if both are known to differ.
fn is_replaced(file: &Mapped, limits: &Limits) -> bool {
    if !is_library(file) {
        return false;
    }
    let id = |input: &Input| Some(hexadecimal(&notes::build_id(&Image::open(input.clone(), limits).ok()?)?));
    let running = file.bytes.as_ref().ok().and_then(|(input, _)| id(input));
    let installed = file.on_disk.as_ref().and_then(id);
    if file.replaced {
        return running.is_none() || running != installed;
    }
    running.is_some() && installed.is_some() && running != installed
}

/// The libraries that the loader would load for a program that lies in a file, as targets. What it would not find is a
/// problem of the program.
pub(super) fn resolved(subject: &Subject, facts: &mut Facts, options: &Options) -> Vec<Subject> {
    let Some(resolver) = &options.libraries else { return Vec::new() };
    let linked = facts
        .elf
        .as_ref()
        .is_some_and(|elf| matches!(elf.kind, Kind::Executable | Kind::Pie | Kind::SharedObject));
    // What is in a package or image is audited anyway, and its libraries are not those of this machine.
    if !linked || subject.origin == Origin::Archive {
        return Vec::new();
    }
    let Ok(input) = subject.open(&options.limits) else { return Vec::new() };
    let modules: Vec<PathBuf> = facts
        .nginx
        .iter()
        .flat_map(|nginx| &nginx.dynamic_modules)
        // What could not be read needs nothing that is known.
        .filter(|module| module.name.is_some())
        .map(|module| PathBuf::from(&module.path))
        .filter(|path| path.is_absolute())
        .collect();
    let Some(loaded) = resolver.resolve(&input, subject.place(), &modules) else { return Vec::new() };
    for missing in loaded.missing {
        let message = format!("the library {} (needed by {}): {}", missing.name, missing.by, missing.why);
        facts.problems.push(Problem::notice("missing-library", message));
    }
    let found = loaded.found.into_iter().map(|found| Subject {
        library: Some(Library { name: found.name, needed_by: found.by, found_by: found.how }),
        identity: Some(found.identity),
        below: found.below,
        ..Subject::new(found.path, Origin::File)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::process;

    #[test]
    fn a_library_that_cannot_be_read_and_is_perhaps_another_is_said() {
        let own = process::open(std::process::id(), &Limits::default()).unwrap();
        let own = Subject::process(own);
        let mapped = |path: &str, replaced: bool, known: bool| Mapped {
            path: path.into(),
            replaced,
            bytes: if known { Ok((Input::memory(Vec::new()), (1, 2))) } else { Err("not permitted".into()) },
            on_disk: None,
        };
        let told = |files: Vec<Mapped>| -> Vec<String> {
            let mut facts = crate::audit::blank(&own);
            Running { files, problem: None }.tell(&own, &mut facts, &Options::default());
            assert!(facts.problems.iter().all(|problem| problem.code == Problem::LIBRARIES_UNKNOWN));
            facts.problems.into_iter().map(|problem| problem.message).collect()
        };
        let others = || vec![mapped("/lib/liba.so", false, true), mapped("/cache/locale", false, false)];
        assert!(told(others()).is_empty());
        // What was deleted is known to be another.
        assert!(told(vec![mapped("/lib/libb.so", true, false)]).is_empty());
        let unsure = mapped("/lib/libc.so.6", false, false);
        let said = "it is not known whether /lib/libc.so.6 is the library that is mapped: not permitted";
        assert_eq!(told([others(), vec![unsure.clone()]].concat()), [said]);
        let two = told(vec![unsure.clone(), unsure]);
        assert!(two.len() == 1 && two[0].contains("/lib/libc.so.6 (and 1 more) is"), "{two:?}");
    }

    #[test]
    fn another_process_under_the_same_number_is_not_asked_for_its_libraries() {
        let running = process::open(std::process::id(), &Limits::default()).unwrap();
        let own = Subject::process(running);
        let found = Running::of(&own).unwrap();
        assert!(found.problem.is_none() && !found.files.is_empty());
        // As if the process had ended and its number were another's by now.
        let ended = Subject { started: own.started.map(|ticks| ticks + 1), ..own };
        let found = Running::of(&ended).unwrap();
        assert!(found.files.is_empty());
        assert_eq!(found.problem.unwrap().code, Problem::PROCESS_ENDED);
    }
}
