//! Functions that a module's structures point to: they tell whose code an address range is where no symbols do.

use super::memory::Memory;
use super::modules::Structure;
use crate::image::pointers::Pointers;
use std::collections::HashMap;

/// Word of the module structure that points to its context (`src/core/ngx_module.h`).
const CONTEXT: u64 = 7;
/// Words of the start and exit hooks.
const HOOKS: std::ops::Range<u64> = 10..17;
/// Words of the largest context, `ngx_http_module_t` (`src/http/ngx_http_config.h`).
const CONTEXT_WORDS: u64 = 8;
/// Word of that context that is called after the configuration was read.
const POSTCONFIGURATION: u64 = 1;
/// Words of an `ngx_command_t`, and which of them is its function.
const COMMAND_WORDS: u64 = 7;
const COMMAND_FUNCTION: u64 = 3;
/// Most directives of one module looked at.
const MAX_COMMANDS: u64 = 200;

/// `postconfiguration` of each HTTP module that has one.
pub(super) fn postconfigurations(
    memory: &Memory<'_>,
    pointers: &Pointers,
    modules: &[Structure],
) -> Vec<u64> {
    let http = modules.iter().filter(|structure| structure.kind == "HTTP");
    let context = http.filter_map(|structure| word_at(memory, pointers, structure.address, CONTEXT));
    context.filter_map(|context| word_at(memory, pointers, context, POSTCONFIGURATION)).collect()
}

/// The pointer in the word of this number from `base` on, if it is one and not null.
fn word_at(memory: &Memory<'_>, pointers: &Pointers, base: u64, index: u64) -> Option<u64> {
    let slot = base.checked_add(index.checked_mul(memory.word_size())?)?;
    pointers.value_at(memory.image, slot).filter(|&target| target != 0)
}

/// Addresses of functions with the one module that names each, ascending. What several modules name (the setters
/// of the core) belongs to none of them. Not every address is a function: contexts hold other pointers, too.
pub(super) fn of_modules<'n>(
    memory: &Memory<'_>,
    pointers: &Pointers,
    modules: impl Iterator<Item = (&'n str, &'n Structure)>,
) -> Vec<(u64, String)> {
    let at = |base, index| word_at(memory, pointers, base, index);
    let mut owners: HashMap<u64, Option<&str>> = HashMap::new();
    for (name, structure) in modules {
        let mut targets: Vec<u64> = HOOKS.filter_map(|index| at(structure.address, index)).collect();
        if let Some(context) = at(structure.address, CONTEXT) {
            targets.extend((0..CONTEXT_WORDS).filter_map(|index| at(context, index)));
        }
        if let Some(commands) = structure.commands {
            // The list ends with an empty name, whose pointer is null.
            let functions = (0..MAX_COMMANDS)
                .map_while(|n| at(commands, n * COMMAND_WORDS + 1).map(|_| n))
                .filter_map(|n| at(commands, n * COMMAND_WORDS + COMMAND_FUNCTION));
            targets.extend(functions);
        }
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            owners.entry(target).and_modify(|owner| *owner = None).or_insert(Some(name));
        }
    }
    let mut list: Vec<(u64, String)> =
        owners.into_iter().filter_map(|(address, owner)| Some((address, owner?.to_owned()))).collect();
    list.sort_unstable();
    list
}
