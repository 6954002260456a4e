//! Relocatable files (`ET_REL`), alone or in archives: their sections all begin at address 0, so that no address tells
//! what code is whose.

use crate::compiler::Level;
use crate::compiler::options::LevelWord;
use crate::evidence::{Source, Strength, gcc_command_line, lto_options};
use crate::facts::{Problem, Unit};
use crate::image::symbols::Symbols;
use crate::image::{Image, Section};
use crate::reconcile::units::Units;
use object::elf;
use std::sync::Arc;

/// Gives the units of a relocatable file their bytes. Where no unit is described, what its compiler recorded elsewhere makes
/// one of that `name`. Returns the bytes that belong to the file's text.
pub(super) fn share(image: &Image, name: &str, found: &mut Units, problems: &mut Vec<Problem>) -> u64 {
    let text = text_size(image);
    let mut bytes = text;
    if !found.units.is_empty() {
        bytes = found.share_relocatable(text, |name, described| is_joined(image, name, described));
    } else if let Some(unit) = unit_of_words(image, name, problems) {
        found.units.push(Unit { text_bytes: text, ..unit });
        found.libraries.push(None);
    }
    let intermediate = text == 0 && lto_options::has_code(image);
    for unit in &mut found.units {
        unit.intermediate = intermediate;
    }
    bytes
}

/// Whether code of other sources was joined with the one unit that is described: symbols name another source file, and more
/// bytes of functions than the unit describes.
fn is_joined(image: &Image, unit: &str, described: u64) -> bool {
    let symbols = Symbols::new();
    let table = symbols.full(image);
    let file_name = |path: &[u8]| path.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
    let own = file_name(unit.as_bytes());
    let is_other = |name: &[u8]| !name.is_empty() && file_name(name) != own;
    if !table.iter().any(|symbol| symbol.kind == elf::STT_FILE && is_other(symbol.name)) {
        return false;
    }
    let is_text = |index: u16| image.sections.get(usize::from(index)).is_some_and(Section::is_text);
    let mut functions: Vec<(u16, u64, u64)> = table
        .iter()
        .filter(|symbol| symbol.kind == elf::STT_FUNC && !symbol.undefined && is_text(symbol.section))
        .map(|symbol| (symbol.section, symbol.value, symbol.size))
        .collect();
    // Other names of the same function.
    functions.sort_unstable();
    functions.dedup();
    functions.iter().fold(0u64, |sum, (_, _, size)| sum.saturating_add(*size)) > described
}

/// What an object file without debug information is, by the options that its compiler recorded elsewhere: one command line is
/// that of the one source it was compiled from.
fn unit_of_words(image: &Image, name: &str, problems: &mut Vec<Problem>) -> Option<Unit> {
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
            ..Unit::unknown(name.to_owned())
        }
    };
    if let Some(lines) = gcc_command_line::read(image) {
        problems.extend(lines.problems);
        // Objects joined by `ld -r` keep the names of their sources, and each line once.
        let sources = gcc_command_line::source_files(Symbols::new().full(image));
        if let ([line], 0 | 1) = (lines.lines.as_slice(), sources) {
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

/// Bytes of allocated executable sections. They are summed, not merged: in a relocatable file all begin at address 0.
pub(super) fn text_size(image: &Image) -> u64 {
    image
        .sections
        .iter()
        .filter(|s| s.is_text())
        .fold(0u64, |sum, s| sum.saturating_add(image.size_in_file(s)))
}

/// Whether the sections of a relocatable file hold no code, nor any in the compiler's own language, of which link-time
/// optimization makes code (GCC's `.gnu.lto_…`, clang's `.llvmbc` and `.llvm.lto`; its `.llvm_addrsig` is in every object).
pub(super) fn holds_no_code(image: &Image) -> bool {
    let intermediate = |name: &[u8]| {
        [&b".gnu.lto_"[..], b".gnu.offload_lto_", b".llvmbc", b".llvm.lto"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    !image.sections.is_empty()
        && !image.sections.iter().any(|s| s.is_text() && s.size > 0 || intermediate(&s.name))
}
