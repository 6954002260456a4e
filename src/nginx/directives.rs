//! The directives the program knows, from its module structures. They prove a feature even where names are forged.

use super::memory::Memory;
use super::modules::Structure;
use crate::facts::Directive;
use crate::image::pointers::Pointers;

/// Words of an `ngx_command_t`: name length, name, type, function, conf, offset, post (`src/core/ngx_conf_file.h`).
const WORDS: u64 = 7;
/// Most directives of one module; the largest of nginx's own has about 80.
const MAX_OF_MODULE: usize = 1000;
/// Most directives in all.
const MAX_DIRECTIVES: usize = 50_000;
/// Longest name.
const MAX_NAME: u64 = 128;

/// Names of a module's directives, in order. A list that makes no sense ends where it stops making sense.
pub(super) fn of_module(memory: &Memory<'_>, pointers: &Pointers, structure: &Structure) -> Vec<String> {
    let word = memory.word_size();
    let mut names = Vec::new();
    let mut next = structure.commands;
    while let Some(entry) = next.filter(|_| names.len() < MAX_OF_MODULE) {
        let length = memory.read(entry, word).and_then(|bytes| memory.format.word(&bytes, 0));
        let Some(length) = length.filter(|length| (1..=MAX_NAME).contains(length)) else { break };
        let target = entry.checked_add(word).and_then(|slot| pointers.value_at(memory.image, slot));
        let Some(name) = target.and_then(|target| memory.read(target, length)) else { break };
        if !name.iter().all(u8::is_ascii_graphic) {
            break;
        }
        names.extend(String::from_utf8(name));
        next = entry.checked_add(WORDS * word);
    }
    names
}

/// The type word of one of a module's directives: where it may stand and how many arguments it takes
/// (`NGX_CONF_TAKE1` and following, `src/core/ngx_conf_file.h`).
pub(super) fn type_of(
    memory: &Memory<'_>,
    pointers: &Pointers,
    structure: &Structure,
    name: &str,
) -> Option<u64> {
    let word = memory.word_size();
    let index = of_module(memory, pointers, structure).iter().position(|found| found == name)?;
    let entry = structure.commands?.checked_add((index as u64).checked_mul(WORDS * word)?)?;
    let bytes = memory.read(entry.checked_add(2 * word)?, word)?;
    memory.format.word(&bytes, 0)
}

/// All directives with their modules, in the order of the table.
pub(super) fn all<'n>(
    memory: &Memory<'_>,
    pointers: &Pointers,
    modules: impl Iterator<Item = (&'n str, &'n Structure)>,
) -> Vec<Directive> {
    let mut out = Vec::new();
    for (module, structure) in modules {
        if out.len() >= MAX_DIRECTIVES {
            break;
        }
        out.extend(
            of_module(memory, pointers, structure)
                .into_iter()
                .map(|name| Directive { name, module: module.to_owned() }),
        );
    }
    out
}
