//! Archives: one target, whose members' units are listed together.

use super::{Options, conclude, debug, macros};
use crate::compiler::Level;
use crate::compiler::options::LevelWord;
use crate::evidence::{Source, Strength, dwarf_producer, gcc_command_line, lto_options};
use crate::facts::{DebugSource, Elf, Facts, Kind, Problem, Status, Unit};
use crate::image::{Image, ImageError, Input, archive, identity, linkage};
use crate::reconcile::Witnessed;
use crate::reconcile::account::Account;
use crate::reconcile::units::Units;
use std::path::Path;
use std::sync::Arc;

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

/// A unit that a member is without debug information telling of it.
fn unit_of(member: &str) -> Unit {
    Unit { member: Some(member.to_owned()), ..Unit::unknown(member.to_owned()) }
}

/// What an object file without debug information is, by the options that its compiler recorded elsewhere: one command line is
/// that of the one source it was compiled from.
fn unit_of_words(image: &Image, member: &str, problems: &mut Vec<Problem>) -> Option<Unit> {
    let recorded = |level: LevelWord, flags: Vec<String>, language, compiler| {
        let known = level.level != Level::Unknown;
        Unit {
            level: level.level,
            strength: if known { Strength::Recorded } else { Strength::None },
            sources: if known { vec![Source::GccCommandLine] } else { Vec::new() },
            overridden: level.overridden,
            note: level.ambiguous.or(level.note),
            flags: Arc::new(flags),
            flags_recorded: true,
            language,
            compiler,
            ..unit_of(member)
        }
    };
    if let Some(lines) = gcc_command_line::read(image) {
        problems.extend(lines.problems);
        if let [line] = lines.lines.as_slice() {
            let flags = gcc_command_line::options_of(line)?;
            let producer = &line.producer;
            let level = producer.level.clone();
            let language = producer.language.as_deref().map(Into::into);
            return Some(recorded(level, flags, language, Some(producer.name().into())));
        }
    }
    match lto_options::read(image).as_slice() {
        [options] => Some(recorded(options.level.clone(), options.flags.clone(), None, None)),
        _ => None,
    }
}

/// Reads all members that are ELF files.
pub(super) fn read(input: &Input, path: &Path, options: &Options, facts: &mut Facts) {
    let Some(archive) = archive::read(input, &options.limits) else {
        facts.status = Status::Failed;
        facts.problems.push(Problem::damage("damaged-archive", "the archive cannot be read"));
        return;
    };
    facts.problems.extend(archive.problems);
    let mut all = Units::default();
    let mut versions = Vec::new();
    let mut compilers = Vec::new();
    let mut elf_members = 0u64;
    // Objects of another system are all of an archive, and then nothing is damaged.
    let mut lost = Vec::new();
    let mut text_bytes = 0u64;
    let mut bitcode = Vec::new();
    for member in &archive.members {
        let name = String::from_utf8_lossy(&member.name).into_owned();
        let opened = match &member.input {
            Some(input) => Ok(input.clone()),
            None => archive::open_thin(member, path),
        };
        let image = match opened.map(|input| (Image::open(input.clone(), &options.limits), input)) {
            Ok((Ok(image), _)) => image,
            Ok((Err(ImageError::NotElf), input)) if is_bitcode(&input) => {
                let note =
                    Some("LLVM bitcode, which becomes code at link time and names no level".to_owned());
                bitcode.push(Unit { note, intermediate: true, ..unit_of(&name) });
                continue;
            }
            // Members that are not ELF files (indices, texts) belong to the archive and say nothing here. One that is named
            // as an object file and is none has lost something.
            Ok((Err(ImageError::NotElf), input)) if !is_lost_object(&member.name, &input) => continue,
            Ok((Err(error), _)) => {
                lost.push(Problem::damage("damaged-member", format!("{name}: {error}")));
                continue;
            }
            Err(error) => {
                facts.problems.push(Problem::damage("missing-member", error.to_string()));
                continue;
            }
        };
        elf_members += 1;
        if !image.is_relocatable() {
            // Linkers take nothing else from an archive, so this was one.
            let message = format!("{name}: an ELF file, but no relocatable one");
            facts.problems.push(Problem::damage("damaged-member", message));
        }
        if facts.elf.is_none() {
            facts.elf = Some(Elf { kind: Kind::Archive, ..elf_of(&image) });
        }
        let note = |problem: Problem| Problem { message: format!("{name}: {}", problem.message), ..problem };
        facts.problems.extend(image.problems.iter().cloned().map(note));
        let mut dwarf = dwarf_producer::read(&image, None);
        macros::read(&image, None, &mut dwarf);
        let before = facts.problems.len();
        let mut found = debug::take(&image, dwarf, DebugSource::Embedded, facts);
        for problem in &mut facts.problems[before..] {
            *problem = note(problem.clone());
        }
        versions.append(&mut facts.debug_info.dwarf_versions);
        compilers.append(&mut facts.compilers);
        if found.units.is_empty()
            && let Some(unit) = unit_of_words(&image, &name, &mut facts.problems)
        {
            found.units.push(unit);
            found.libraries.push(None);
        }
        let text = text_size(&image);
        text_bytes += found.share_relocatable(text);
        let intermediate = text == 0 && lto_options::has_code(&image);
        for unit in &mut found.units {
            unit.member = Some(name.clone());
            unit.intermediate = intermediate;
        }
        all.units.append(&mut found.units);
        all.libraries.append(&mut found.libraries);
    }
    if elf_members == 0 {
        facts.status = Status::Failed;
        let message = match bitcode.len() {
            0 => "the archive holds no ELF file",
            _ => "the archive holds no ELF file, only LLVM bitcode, which becomes code at link time",
        };
        facts.problems.push(Problem::damage("no-elf-member", message));
        return;
    }
    all.libraries.resize(all.units.len() + bitcode.len(), None);
    all.units.append(&mut bitcode);
    facts.problems.append(&mut lost);
    versions.sort_unstable();
    versions.dedup();
    facts.debug_info.dwarf_versions = versions;
    facts.compilers = merge_compilers(compilers);
    all.own_library(path.file_name().map(std::os::unix::ffi::OsStrExt::as_bytes));
    let seen = Witnessed {
        units: all.units,
        account: Account { bytes: text_bytes, ..Account::default() },
        relocatable: true,
        debug_absent: Some("no member has debug information".to_owned()),
        ..Witnessed::default()
    };
    conclude(seen, facts, false);
}

/// Bytes of allocated executable sections. They are summed, not merged: in a relocatable file all begin at address 0.
pub(super) fn text_size(image: &Image) -> u64 {
    image
        .sections
        .iter()
        .filter(|s| s.is_text())
        .fold(0u64, |sum, s| sum.saturating_add(image.size_in_file(s)))
}

/// Whether the sections of a relocatable file hold no code, nor any in the compiler's own language, of which link-time
/// optimization makes code (GCC's `.gnu.lto_…`, clang's `.llvmbc` and `.llvm.lto`).
pub(super) fn holds_no_code(image: &Image) -> bool {
    let intermediate = |name: &[u8]| {
        [&b".gnu.lto_"[..], b".gnu.offload_lto_", b".llvm"].iter().any(|start| name.starts_with(start))
    };
    !image.sections.is_empty()
        && !image.sections.iter().any(|s| s.is_text() && s.size > 0 || intermediate(&s.name))
}

fn elf_of(image: &Image) -> Elf {
    identity::elf_facts(image, &linkage::read(image), None)
}

fn merge_compilers(mut list: Vec<crate::facts::CompilerSeen>) -> Vec<crate::facts::CompilerSeen> {
    list.sort();
    let mut merged: Vec<crate::facts::CompilerSeen> = Vec::new();
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
