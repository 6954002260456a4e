//! Archives: one target, whose members' units are listed together.

mod instrumented;

use self::instrumented::Instrumented;
use super::{Options, conclude, debug, macros, relocatable};
use crate::evidence::dwarf_producer;
use crate::facts::{CompilerSeen, DebugSource, Elf, Facts, Kind, Problem, Status, Unit};
use crate::image::{Image, ImageError, Input, archive, identity, linkage};
use crate::reconcile::Witnessed;
use crate::reconcile::account::Account;
use crate::reconcile::units::Units;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// How LLVM bitcode begins: plain, and in the wrapper that Apple's tools write.
const BITCODE: [&[u8]; 2] = [b"BC\xc0\xde", b"\xde\xc0\x17\x0b"];

/// Whether a member that is no ELF file is named like an object file, or has lost its name, and is neither empty nor an object
/// of another kind: LLVM bitcode (plain, or in the wrapper that Apple's tools write) or what Go's compiler and assembler write
/// (`go object …`).
fn is_lost_object(name: &[u8], input: &Input) -> bool {
    let mut start = [0; 10];
    let got = input.read_at(0, &mut start).unwrap_or(0);
    let start = start.get(..got).unwrap_or_default();
    let other = BITCODE.iter().chain(&[&b"go object "[..]]).any(|magic| start.starts_with(magic));
    let object = [&b".o"[..], b".lo", b".obj"].iter().any(|ending| name.ends_with(ending));
    // No file has such a name.
    let nameless = name.contains(&0) || name.iter().all(|&byte| byte == b' ');
    (object || nameless) && !other && !input.is_empty()
}

/// Whether a member is LLVM bitcode: code that is made machine code at link time (`clang -flto`), at a level it does not name.
pub(super) fn is_bitcode(input: &Input) -> bool {
    let mut start = [0; 4];
    matches!(input.read_at(0, &mut start), Ok(4)) && BITCODE.contains(&&start[..])
}

/// What the members of an archive come to.
struct Gathered<'a> {
    options: &'a Options,
    all: Units,
    versions: Vec<u16>,
    compilers: Vec<CompilerSeen>,
    elf_members: u64,
    /// Objects of another system are all of an archive, and then nothing is damaged.
    lost: Vec<Problem>,
    text_bytes: u64,
    bitcode: Vec<Unit>,
    instrumented: Instrumented,
    /// Members that may still be looked at, of all archives together.
    left: usize,
    /// Archives that were read as files of their own: a thin one may name another many times, and itself.
    entered: HashSet<PathBuf>,
}

/// Reads all members that are ELF files, also those of archives in the archive.
pub(super) fn read(input: &Input, path: &Path, options: &Options, facts: &mut Facts) {
    let Some(archive) = archive::read(input, &options.limits) else {
        facts.status = Status::Failed;
        facts.problems.push(Problem::damage("damaged-archive", "the archive cannot be read"));
        return;
    };
    let mut gathered = Gathered {
        options,
        all: Units::default(),
        versions: Vec::new(),
        compilers: Vec::new(),
        elf_members: 0,
        lost: Vec::new(),
        text_bytes: 0,
        bitcode: Vec::new(),
        instrumented: Instrumented::of(path.file_name().unwrap_or_default().as_bytes()),
        left: options.limits.archive_members,
        entered: HashSet::from([plain(path)]),
    };
    gathered.archive(archive, (path, ""), archive::MOST_NESTED, facts);
    gathered.conclude(path, facts);
}

impl Gathered<'_> {
    /// Takes all members of an archive that lies at a place; the names of its members begin with a prefix. In it others may lie
    /// so deep.
    fn archive(
        &mut self,
        archive: archive::Archive,
        (path, prefix): (&Path, &str),
        deep: u32,
        facts: &mut Facts,
    ) {
        let problems = archive.problems.into_iter().map(|problem| within(prefix, problem));
        problems.for_each(|problem| self.unread(problem, facts));
        let mut others = HashMap::new();
        for member in &archive.members {
            let Some(left) = self.left.checked_sub(1) else {
                let most = self.options.limits.archive_members;
                let message = format!("{prefix}only the first {most} members of all archives are read");
                self.unread(Problem::damage("too-many-members", message), facts);
                return;
            };
            self.left = left;
            let own_place = member.input.is_none().then(|| plain(&path.with_file_name(file_name(member))));
            if member.inside.is_none() && own_place.as_ref().is_some_and(|own| self.entered.contains(own)) {
                continue;
            }
            let mut name = format!("{prefix}{}", String::from_utf8_lossy(&member.name));
            let opened = match (&member.input, member.inside) {
                (Some(input), _) => Ok(input.clone()),
                (None, None) => archive::open_thin(member, path).map_err(|error| error.to_string()),
                (None, Some(at)) => self.inside((member, at), path, &mut others).map(|(own, input)| {
                    name = format!("{name}!{own}");
                    input
                }),
            };
            match opened {
                Ok(input) if archive::is_archive(&input) => {
                    self.entered.extend(own_place.clone());
                    self.nested(&input, (own_place.as_deref().unwrap_or(path), &name), deep, facts);
                }
                Ok(input) => self.member(&input, &name, &member.name, facts),
                Err(why) => self.unread(Problem::damage("missing-member", why), facts),
            }
        }
    }

    /// Takes an archive in an archive, if it does not lie too deep.
    fn nested(&mut self, input: &Input, (path, name): (&Path, &str), deep: u32, facts: &mut Facts) {
        let Some(deep) = deep.checked_sub(1) else {
            let most = archive::MOST_NESTED;
            let message = format!("{name}: archives in archives are read to a depth of {most}");
            self.unread(Problem::damage("unread-member", message), facts);
            return;
        };
        if let Some(archive) = archive::read(input, &self.options.limits) {
            self.archive(archive, (path, &format!("{name}!")), deep, facts);
        }
    }

    /// Takes a problem that keeps some members from being read.
    fn unread(&mut self, problem: Problem, facts: &mut Facts) {
        if problem.loses_facts {
            self.instrumented.leave_open(|| problem.message.clone());
        }
        facts.problems.push(problem);
    }

    /// The name and the bytes of a thin archive's member that lies in another archive. Those that were opened are kept.
    fn inside(
        &self,
        (member, at): (&archive::Member, u64),
        path: &Path,
        others: &mut Others,
    ) -> Result<(String, Input), String> {
        let shown = String::from_utf8_lossy(&member.name);
        let other = match others.entry(member.name.clone()) {
            Entry::Occupied(other) => other.into_mut(),
            Entry::Vacant(place) => {
                let input = archive::open_thin(member, path).map_err(|error| error.to_string())?;
                let members = archive::read(&input, &self.options.limits).map(|archive| archive.members);
                let by_place = members.unwrap_or_default().into_iter().map(|member| (member.at, member));
                place.insert(by_place.collect())
            }
        };
        let found = other.get(&at).and_then(|found| Some((found, found.input.clone()?)));
        let (found, input) = found.ok_or_else(|| format!("member {shown}: it holds no member at {at:#x}"))?;
        Ok((String::from_utf8_lossy(&found.name).into_owned(), input))
    }

    /// Takes one member that is no archive.
    fn member(&mut self, input: &Input, name: &str, own_name: &[u8], facts: &mut Facts) {
        let image = match Image::open(input.clone(), &self.options.limits) {
            Ok(image) => image,
            Err(ImageError::NotElf) if is_bitcode(input) => {
                let note =
                    Some("LLVM bitcode, which becomes code at link time and names no level".to_owned());
                self.instrumented.leave_open(|| format!("{name} is LLVM bitcode"));
                self.bitcode.push(Unit {
                    note,
                    intermediate: true,
                    member: Some(name.to_owned()),
                    ..Unit::unknown(name.to_owned())
                });
                return;
            }
            // Members that are not ELF files (indices, texts) belong to the archive and say nothing here. One that is named
            // as an object file and is none has lost something.
            Err(ImageError::NotElf) if !is_lost_object(own_name, input) => return,
            Err(error) => {
                let message = format!("{name}: {error}");
                self.instrumented.leave_open(|| message.clone());
                self.lost.push(Problem::damage("damaged-member", message));
                return;
            }
        };
        self.elf_members += 1;
        if !image.is_relocatable() {
            // Linkers take nothing else from an archive, so this was one.
            let message = format!("{name}: an ELF file, but no relocatable one");
            facts.problems.push(Problem::damage("damaged-member", message));
        }
        let linkage = linkage::read(&image);
        if facts.elf.is_none() {
            let elf = identity::elf_facts(&image, &linkage, None);
            facts.elf = Some(Elf { kind: Kind::Archive, ..elf });
        }
        let note = |problem: Problem| within(&format!("{name}: "), problem);
        facts.problems.extend(image.problems.iter().cloned().map(note));
        let damage = self.instrumented.add(name, &image, &linkage);
        facts.problems.extend(damage.into_iter().map(note));
        let mut dwarf = dwarf_producer::read(&image, None);
        macros::read(&image, None, &mut dwarf);
        let before = facts.problems.len();
        let mut found = debug::take(&image, dwarf, DebugSource::Embedded, facts);
        for problem in &mut facts.problems[before..] {
            *problem = note(problem.clone());
        }
        self.versions.append(&mut facts.debug_info.dwarf_versions);
        self.compilers.append(&mut facts.compilers);
        self.text_bytes += relocatable::share(&image, name, &mut found, &mut facts.problems);
        for unit in &mut found.units {
            unit.member = Some(name.to_owned());
        }
        self.all.units.append(&mut found.units);
        self.all.libraries.append(&mut found.libraries);
    }

    /// The facts of all members together.
    fn conclude(mut self, path: &Path, facts: &mut Facts) {
        if self.elf_members == 0 {
            facts.status = Status::Failed;
            let message = match self.bitcode.len() {
                0 => "the archive holds no ELF file",
                _ => "the archive holds no ELF file, only LLVM bitcode, which becomes code at link time",
            };
            facts.problems.push(Problem::damage("no-elf-member", message));
            return;
        }
        self.all.libraries.resize(self.all.units.len() + self.bitcode.len(), None);
        self.all.units.append(&mut self.bitcode);
        facts.problems.append(&mut self.lost);
        self.versions.sort_unstable();
        self.versions.dedup();
        facts.debug_info.dwarf_versions = self.versions;
        facts.compilers = merge_compilers(self.compilers);
        facts.instrumentation = self.instrumented.conclude();
        self.all.own_library(path.file_name().map(OsStrExt::as_bytes));
        let seen = Witnessed {
            units: self.all.units,
            account: Account { bytes: self.text_bytes, ..Account::default() },
            relocatable: true,
            debug_absent: Some("no member has debug information".to_owned()),
            ..Witnessed::default()
        };
        conclude(seen, facts, false);
    }
}

/// Members of other archives by where their headers lie, by the names of those.
type Others = HashMap<Vec<u8>, HashMap<u64, archive::Member>>;

/// A path without `.` in it.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn file_name(member: &archive::Member) -> &OsStr {
    OsStr::from_bytes(&member.name)
}

/// A problem of something inside the archive, whose message begins with what that is.
fn within(prefix: &str, problem: Problem) -> Problem {
    Problem { message: format!("{prefix}{}", problem.message), ..problem }
}

fn merge_compilers(mut list: Vec<CompilerSeen>) -> Vec<CompilerSeen> {
    list.sort();
    let mut merged: Vec<CompilerSeen> = Vec::new();
    for compiler in list {
        match merged.last_mut() {
            Some(last)
                if (&last.family, &last.version, &last.language, &last.raw)
                    == (&compiler.family, &compiler.version, &compiler.language, &compiler.raw) =>
            {
                last.units += compiler.units;
            }
            _ => merged.push(compiler),
        }
    }
    merged.sort_by(|a, b| b.units.cmp(&a.units).then_with(|| a.cmp(b)));
    merged
}
