//! Packages and images: Debian and RPM packages, tar archives, and container images as `docker save` and OCI tools write them.
//!
//! An archive is read as a stream and nothing is ever unpacked to a name from inside it: programs are kept in unnamed
//! temporary files, or read in place where the archive is not compressed. What is wrong with an entry is said of that
//! entry, and the others are audited.

use super::Subject;
use super::directory::holds_programs;
use crate::facts::Origin;
use crate::image::confined::Directory;
use crate::image::{Input, archive};
use crate::limits::Limits;
use std::collections::HashSet;
use std::path::Path;

mod blobs;
mod contents;
mod cpio;
mod frames;
mod gzip;
mod held;
mod layers;
mod names;
mod room;
mod rpm;
mod shelf;
mod spool;
mod stream;
mod tree;

pub(super) use held::{Held, look};
pub use shelf::Shelf;

use blobs::Blobs;
use contents::{Contents, Found, MOST_REFUSED};
use names::Names;
use room::Room;

/// What a package holds.
#[derive(Debug, Default)]
pub struct Package {
    /// Its programs, by name; entries that were refused are among them, with the reason.
    pub subjects: Vec<Subject>,
    /// Files that are no programs.
    pub skipped: u64,
    names: Names,
}

impl Package {
    /// Leaves what is wanted.
    pub fn pick(&mut self, path: &Path, wanted: Wanted<'_>) {
        match wanted {
            Wanted::Member(member) => self.pick_member(path, member),
            Wanted::Last(last) => self.pick_last(last),
        }
    }

    /// Leaves the one program with a name of this last component, under that name; nothing, if there are several.
    fn pick_last(&mut self, last: &str) {
        let names = self.names.ending(last);
        let mut subjects = std::mem::take(&mut self.subjects);
        let Some((name, listed)) = names.first() else { return };
        if names.iter().all(|(_, other)| other == listed) {
            subjects.retain(|subject| subject.member.as_deref() == Some(listed));
            self.subjects = subjects;
            for subject in &mut self.subjects {
                subject.member = Some(name.clone());
            }
        }
    }

    /// Leaves what `member` names: the program that is listed so, or has it for another name, which links give. Of a
    /// damaged package it is not known what is in it, and that it is damaged stays, too.
    fn pick_member(&mut self, path: &Path, member: &str) {
        let member = member.trim_start_matches('/');
        let is_it = |subject: &Subject, name: &str| {
            subject.member.as_deref().is_some_and(|found| found.trim_start_matches('/') == name)
        };
        let linked = (!self.subjects.iter().any(|subject| is_it(subject, member)))
            .then(|| self.names.listed(member))
            .map(|listed| {
                let listed = listed?;
                let name = listed.trim_start_matches('/');
                let subject = self.subjects.iter().find(|subject| is_it(subject, name));
                let subject = subject.cloned().ok_or(names::NOTHING)?;
                let slash = if listed.starts_with('/') { "/" } else { "" };
                Ok::<Subject, String>(Subject { member: Some(format!("{slash}{member}")), ..subject })
            });
        self.subjects.retain(|subject| is_it(subject, member) || subject.member.is_none());
        match linked {
            Some(Ok(subject)) => self.subjects.push(subject),
            Some(Err(why)) if self.subjects.is_empty() => self.subjects.push(Subject {
                member: Some(format!("/{member}")),
                ..Subject::refused(path, Origin::Archive, why)
            }),
            _ => {}
        }
    }
}

/// What of a package is wanted.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// What has this name.
    Member(&'a str),
    /// The one program that has a name of this last component, which a link may give it.
    Last(&'a str),
}

/// Opens a target as a package. `Err` gives it back as it is if it is none, with its bytes where they could be read
/// only once.
pub fn open(subject: Subject, limits: &Limits) -> Result<Package, Box<Subject>> {
    let input = match subject.open(limits) {
        Ok(input) => input,
        // What was read of a stream is gone, and a file that can be opened a moment later was not looked at as a package.
        Err(error) => return Err(Box::new(Subject { refused: Some(error.to_string()), ..subject })),
    };
    // Standard input can be read only once. A file is not held open: there may be more of them than a process may have.
    let kept = (subject.origin == Origin::Stdin).then(|| input.clone());
    let subject = Subject { input: subject.input.clone().or(kept), ..subject };
    let room = &Room::new(limits);
    let Some(kind) = kind(&input, room) else {
        return Err(Box::new(subject));
    };
    let mut contents = read(&input, kind, room);
    // One compressed file is that file.
    if let Some(single) = contents.single {
        return Err(Box::new(Subject { input: Some(single), ..subject }));
    }
    if contents.not_an_archive {
        return Err(Box::new(subject));
    }
    let (names, contents) = match layers::image(&Blobs::of_archive(&contents), room) {
        Some(mut image) => (Names::new(&mut image), image),
        None => (Names::new(&mut contents), nested(contents, room)),
    };
    Ok(package(&subject, contents, names, limits))
}

/// Opens the image of an OCI layout that lies unpacked in a directory, which is shown as `path`; `None` if its index names none
/// that can be read.
pub fn layout(top: &Directory, path: &Path, limits: &Limits) -> Option<Package> {
    let room = &Room::new(limits);
    let mut image = layers::image(&Blobs::of_directory(top, limits.package_bytes), room)?;
    let names = Names::new(&mut image);
    Some(package(&Subject::new(path, Origin::Archive), image, names, limits))
}

fn read(input: &Input, kind: Kind, room: &Room) -> Contents {
    match kind {
        Kind::Deb => deb(input, room),
        Kind::Rpm => rpm::read(input, room),
        Kind::Stream => match stream::open(input, room) {
            Ok(stream) => contents::of_stream(stream, room),
            Err(error) => Contents::damaged(error.to_string()),
        },
        Kind::Tar => contents::of_plain(input, room),
    }
}

/// Packages inside a package are opened once, and no deeper: those are refused, for what is in them is not known.
fn nested(mut outer: Contents, room: &Room) -> Contents {
    let mut found = Vec::new();
    let mut ids = outer.found.len();
    for mut one in std::mem::take(&mut outer.found) {
        let (inner, kind) = match one.bytes.as_ref().map(|input| (input.clone(), kind(input, room))) {
            Ok((input, Some(kind))) => (input, kind),
            Ok(_) if one.is_program => {
                found.push(one);
                continue;
            }
            Ok(_) => {
                outer.skipped += 1;
                continue;
            }
            Err(_) => {
                found.push(one);
                continue;
            }
        };
        let contents = read(&inner, kind, room);
        if let Some(single) = contents.single {
            one.bytes = Ok(single);
            one.is_program = true;
            found.push(one);
            continue;
        }
        if contents.not_an_archive {
            outer.skipped += 1;
            continue;
        }
        outer.skipped += contents.skipped;
        outer.left_out += contents.left_out;
        let base = ids;
        ids += contents.found.len();
        for inner in contents.found {
            let name =
                if inner.name.is_empty() { one.name.clone() } else { format!("{}!{}", one.name, inner.name) };
            let id = base + inner.id;
            let bytes = match &inner.bytes {
                Ok(input) if !inner.is_program => match deeper(input, &inner.name, room) {
                    Held::Other => {
                        outer.skipped += 1;
                        continue;
                    }
                    Held::Program => program(input, room),
                    Held::Package => Err("a package inside a package of this one, not opened".to_owned()),
                },
                _ => inner.bytes,
            };
            found.push(Found { name, is_program: bytes.is_ok(), bytes, id });
        }
    }
    outer.found = found;
    outer
}

/// What a file of a package inside a package is, by its beginning.
fn deeper(input: &Input, name: &str, room: &Room) -> Held {
    match kind(input, room) {
        None => Held::Other,
        Some(Kind::Stream) => held::held(input, name.as_bytes(), room),
        Some(_) => Held::Package,
    }
}

/// Decompresses one program.
fn program(input: &Input, room: &Room) -> Result<Input, String> {
    let stream = stream::open(input, room).map_err(|error| error.to_string())?;
    room.keep(stream, room.limits.stream_bytes).map_err(|error| error.to_string())
}

/// Decompresses one program, within the limits of a program of a package.
pub(super) fn decompressed(input: &Input, limits: &Limits) -> Result<Input, String> {
    program(input, &Room::new(limits))
}

fn package(subject: &Subject, contents: Contents, names: Names, limits: &Limits) -> Package {
    let mut seen = HashSet::new();
    let mut package = Package { skipped: contents.skipped, names, ..Package::default() };
    let mut found = contents.found;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let (mut refused, mut left_out) = (0, contents.left_out);
    for one in found {
        // Hard links of one file are one program, under the first name.
        if one.bytes.is_ok() && !seen.insert(one.id) {
            package.names.link(one.id, one.name);
            continue;
        }
        if one.bytes.is_ok() {
            package.names.list(one.id, &one.name);
        }
        let mut member = Subject {
            member: (!one.name.is_empty()).then_some(one.name),
            place: Some(subject.place().to_path_buf()),
            ..Subject::new(&subject.path, Origin::Archive)
        };
        match one.bytes {
            Ok(input)
                if one.is_program && (!archive::is_archive(&input) || holds_programs(&input, limits)) =>
            {
                member.input = Some(input);
            }
            Ok(_) => {
                package.skipped += 1;
                continue;
            }
            Err(_) if refused == MOST_REFUSED => {
                left_out += 1;
                continue;
            }
            Err(why) => {
                refused += 1;
                member.refused = Some(why);
            }
        }
        package.subjects.push(member);
    }
    if left_out > 0 {
        let why = format!("{left_out} more entries are refused");
        package.subjects.push(Subject {
            place: Some(subject.place().to_path_buf()),
            ..Subject::refused(&subject.path, Origin::Archive, why)
        });
    }
    package
}

/// Whether a file that begins so is a package, or an archive that may hold some. Of compressed files this is not known.
pub(super) fn is_package(start: &[u8]) -> bool {
    matches!(kind_of(start), Some(Kind::Deb | Kind::Rpm | Kind::Tar))
}

/// What a package looks like from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deb,
    Rpm,
    Tar,
    /// Compressed.
    Stream,
}

/// Bytes of a file by which it is recognised.
pub(super) const START: usize = 512;

fn kind(input: &Input, room: &Room) -> Option<Kind> {
    let mut start = [0; START];
    let got = input.read_at(0, &mut start).ok()?;
    let start = start.get(..got)?;
    kind_of(start).or_else(|| {
        let lzma = stream::may_be_lzma(start) && !contents::is_program(start);
        (lzma && stream::holds_something(input, room)).then_some(Kind::Stream)
    })
}

fn kind_of(start: &[u8]) -> Option<Kind> {
    // A program is one, whatever its free bytes would make of it.
    if start.starts_with(&object::elf::ELFMAG) {
        return None;
    }
    // deb(5): the first member of the archive is named so.
    if start.starts_with(b"!<arch>\ndebian-binary") {
        return Some(Kind::Deb);
    }
    if start.starts_with(rpm::MAGIC) {
        return Some(Kind::Rpm);
    }
    if stream::is_compressed(start) {
        return Some(Kind::Stream);
    }
    contents::is_tar(start).then_some(Kind::Tar)
}

/// The files of a Debian package lie in its member `data.tar`, compressed or not (deb(5)).
fn deb(input: &Input, room: &Room) -> Contents {
    let members = archive::read(input, &room.limits).map(|archive| archive.members).unwrap_or_default();
    let data = members.into_iter().find(|member| member.name.starts_with(b"data.tar"));
    let Some((input, name)) = data.and_then(|member| Some((member.input?, member.name))) else {
        return Contents::damaged("the package has no data.tar".to_owned());
    };
    let codec = if name.ends_with(b".lzma") { "lzma" } else { "" };
    let contents = match stream::open_named(&input, codec, room) {
        Ok(stream) => contents::of_stream(stream, room),
        Err(error) => Contents::damaged(error.to_string()),
    };
    if contents.not_an_archive || contents.single.is_some() {
        return Contents::damaged("data.tar of the package is no tar archive".to_owned());
    }
    contents
}

#[cfg(test)]
mod tests;
