//! The module table in the program's own data, found without symbols.
//!
//! Since 1.9.11 every module structure points at the module signature, so the structures are found by the pointers
//! to that text; `ngx_modules` is the longest run of pointers to structures that ends in a null pointer, and
//! `ngx_module_names` a run of as many pointers to names. Before, structures are recognised by their constant words,
//! and have no names. Layouts: `src/core/ngx_module.h`, `src/core/ngx_conf_file.h` of older versions.

use super::memory::Memory;
use crate::image::pointers::Pointers;
use object::elf;
use std::collections::{BTreeMap, BTreeSet};

/// Words of a module structure: 25 in every version and on every machine.
const WORDS: usize = 25;
/// Most structures looked at.
const MAX_MODULES: usize = 2048;
/// Most pointers to one kind of thing followed; real programs have a few for each module.
const MAX_CANDIDATES: usize = 16 << 10;
/// Longest module name accepted.
const MAX_NAME: usize = 200;
/// `spare1` of Angie's modules: the sum of the letters of its name.
const ANGIE_SIGN: u64 = 484;

/// A module structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    /// Where it stands.
    pub address: u64,
    /// The version number of the program it was compiled for; `None` in versions before 1.9.11.
    pub version: Option<u64>,
    /// Address of its signature text.
    pub signature: Option<u64>,
    /// Address of its directives.
    pub commands: Option<u64>,
    /// `CORE`, `CONF`, `EVNT`, `HTTP`, `MAIL`, `STRM`, or a third party's own.
    pub kind: String,
    /// Whether it was compiled for Angie.
    pub angie: bool,
}

/// The module table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Structures in the order of the table.
    pub structures: Vec<Structure>,
    /// Their names in the same order; `None` if the program holds none.
    pub names: Option<Vec<String>>,
    /// Structures that no table names.
    pub left_out: usize,
}

/// Where symbols say that the arrays stand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hints {
    /// `ngx_modules`.
    pub(super) table: Option<u64>,
    /// `ngx_module_names`.
    pub(super) names: Option<u64>,
}

/// Reads structures and table. `core_module` holds the addresses of the string `ngx_core_module`.
pub(super) fn read(
    memory: &Memory<'_>,
    pointers: &Pointers,
    signatures: &[(u64, String)],
    core_module: &[u64],
    hints: Hints,
) -> Table {
    let mut structures = signed(memory, pointers, signatures);
    if structures.is_empty() {
        structures = unsigned(memory, pointers);
    }
    let named = hints.table.and_then(|start| Some((start, table_at(memory, pointers, &structures, start)?)));
    let Some((start, order)) = named.or_else(|| table(memory, pointers, &structures)) else {
        return Table { left_out: structures.len(), ..Table::default() };
    };
    let names = hints
        .names
        .and_then(|start| names_at(memory, pointers, start, order.len()))
        .or_else(|| names(memory, pointers, start, order.len(), core_module));
    let left_out = structures.len().saturating_sub(order.len());
    let structures = order.iter().filter_map(|address| structures.get(address).cloned()).collect();
    Table { structures, names, left_out }
}

/// Structures that point at a signature.
fn signed(
    memory: &Memory<'_>,
    pointers: &Pointers,
    signatures: &[(u64, String)],
) -> BTreeMap<u64, Structure> {
    let word = memory.word_size();
    let mut out = BTreeMap::new();
    let mut left = MAX_CANDIDATES;
    for (text, _) in signatures {
        for slot in pointers.slots_pointing_to(memory.image, *text) {
            if left == 0 {
                return out;
            }
            left -= 1;
            let Some(base) = slot.checked_sub(6 * word) else { continue };
            if out.len() >= MAX_MODULES {
                return out;
            }
            if let Some(mut structure) = structure(memory, pointers, base, true) {
                structure.signature = Some(*text);
                out.insert(base, structure);
            }
        }
    }
    out
}

/// Structures of versions before 1.9.11: words 0 to 5 are 0, word 6 is 1, and word 9 spells the kind.
fn unsigned(memory: &Memory<'_>, pointers: &Pointers) -> BTreeMap<u64, Structure> {
    /// Bytes of data searched.
    const MAX_SEARCHED: u64 = 16 << 20;
    let word = memory.word_size();
    let format = memory.format;
    let mut out = BTreeMap::new();
    let mut left = MAX_SEARCHED;
    let writable: Vec<(u64, u64)> = memory
        .image
        .loaded_segments()
        .filter(|s| s.flags & elf::PF_W.0 != 0)
        .map(|s| (s.address, s.file_size))
        .collect();
    for (address, size) in writable {
        let size = size.min(left);
        left -= size;
        let Some(bytes) = memory.read(address, size) else { continue };
        let skew = (address.wrapping_neg() % word) as usize;
        let at = |index: usize| format.word(&bytes, skew + index * word as usize);
        for index in 0..bytes.len() / word as usize {
            if at(index + 6) != Some(1) || (0..6).any(|n| at(index + n) != Some(0)) {
                continue;
            }
            let Some(base) = address.checked_add(skew as u64 + index as u64 * word) else { break };
            if at(index + 9).and_then(kind).is_none() || out.len() >= MAX_MODULES {
                continue;
            }
            if let Some(structure) = structure(memory, pointers, base, false) {
                out.insert(base, structure);
            }
        }
    }
    out
}

/// Four upper-case letters, least significant first, as `NGX_HTTP_MODULE` and its like are written.
fn kind(word: u64) -> Option<String> {
    let bytes = u32::try_from(word).ok()?.to_le_bytes();
    bytes.iter().all(u8::is_ascii_uppercase).then(|| bytes.iter().map(|b| char::from(*b)).collect())
}

fn structure(memory: &Memory<'_>, pointers: &Pointers, base: u64, signed: bool) -> Option<Structure> {
    let word = memory.word_size();
    let bytes = memory.read(base, WORDS as u64 * word)?;
    let at = |index: usize| memory.format.word(&bytes, index * word as usize);
    let pointer = |index: u64| {
        let slot = base.checked_add(index * word)?;
        pointers.value_at(memory.image, slot).filter(|value| *value != 0)
    };
    let kind = kind(at(9)?)?;
    let mut version = None;
    if signed {
        // NGX_MODULE_UNSET_INDEX twice, and a version of 1.9.11 or later.
        let unset = memory.format.wrap(u64::MAX);
        if at(0)? != unset || at(1)? != unset || !(1_000_000..100_000_000).contains(&at(5)?) {
            return None;
        }
        version = at(5);
    }
    Some(Structure {
        address: base,
        version,
        signature: None,
        commands: pointer(8),
        kind,
        angie: signed && at(4)? == ANGIE_SIGN,
    })
}

/// The table that begins at an address, if it is one: pointers to structures up to a null pointer.
fn table_at(
    memory: &Memory<'_>,
    pointers: &Pointers,
    structures: &BTreeMap<u64, Structure>,
    start: u64,
) -> Option<Vec<u64>> {
    let word = memory.word_size();
    let mut out = Vec::new();
    while out.len() <= structures.len() {
        let slot = start.checked_add((out.len() as u64).checked_mul(word)?)?;
        match pointers.value_at(memory.image, slot)? {
            0 => return (!out.is_empty()).then_some(out),
            base if structures.contains_key(&base) => out.push(base),
            _ => return None,
        }
    }
    None
}

/// The longest run of pointers to different structures that ends in a null pointer: its address and targets.
fn table(
    memory: &Memory<'_>,
    pointers: &Pointers,
    structures: &BTreeMap<u64, Structure>,
) -> Option<(u64, Vec<u64>)> {
    let word = memory.word_size();
    let mut slots: BTreeMap<u64, u64> = BTreeMap::new();
    for base in structures.keys() {
        for slot in pointers.slots_pointing_to(memory.image, *base) {
            if slots.len() >= MAX_CANDIDATES {
                break;
            }
            slots.insert(slot, *base);
        }
    }
    let mut best: Option<(u64, Vec<u64>)> = None;
    let mut run: Vec<(u64, u64)> = Vec::new();
    let mut finish = |run: &mut Vec<(u64, u64)>| {
        if let Some(end) = run.last().and_then(|(slot, _)| slot.checked_add(word))
            && pointers.value_at(memory.image, end) == Some(0)
        {
            // What stands directly before the table and happens to point at a structure is not part of it.
            let mut seen = BTreeSet::new();
            let mut own: Vec<(u64, u64)> =
                run.iter().rev().take_while(|(_, base)| seen.insert(*base)).copied().collect();
            own.reverse();
            if best.as_ref().is_none_or(|(_, list)| list.len() < own.len())
                && let Some((start, _)) = own.first()
            {
                best = Some((*start, own.iter().map(|(_, base)| *base).collect()));
            }
        }
        run.clear();
    };
    for (slot, base) in slots {
        if run.last().is_some_and(|(last, _)| last.checked_add(word) != Some(slot)) {
            finish(&mut run);
        }
        run.push((slot, base));
    }
    finish(&mut run);
    best
}

/// The names: a run of exactly as many pointers to names as the table has, ending in a null pointer. It begins with
/// `ngx_core_module` in a program; in a loadable module it stands beside the table.
fn names(
    memory: &Memory<'_>,
    pointers: &Pointers,
    table: u64,
    count: usize,
    core_module: &[u64],
) -> Option<Vec<String>> {
    let word = memory.word_size();
    let length = (count as u64).checked_add(1)?.checked_mul(word)?;
    for text in core_module.iter().take(64) {
        for slot in pointers.slots_pointing_to(memory.image, *text).into_iter().take(64) {
            if let Some(names) = names_at(memory, pointers, slot, count) {
                return Some(names);
            }
        }
    }
    // Linkers align such arrays to 32 bytes, and may put either first.
    let near = (0..=8u64).flat_map(|gap| {
        let before = table.checked_sub(length).and_then(|a| a.checked_sub(gap * word));
        let after = table.checked_add(length).and_then(|a| a.checked_add(gap * word));
        [before, after]
    });
    near.flatten().find_map(|start| {
        // A run that began earlier is the list of names this module must stand before.
        let earlier = start.checked_sub(word).and_then(|slot| name_at(memory, pointers, slot));
        if earlier.is_some() { None } else { names_at(memory, pointers, start, count) }
    })
}

fn names_at(memory: &Memory<'_>, pointers: &Pointers, start: u64, count: usize) -> Option<Vec<String>> {
    let word = memory.word_size();
    let slot = |index: usize| start.checked_add((index as u64).checked_mul(word)?);
    let names: Option<Vec<String>> = (0..count).map(|n| name_at(memory, pointers, slot(n)?)).collect();
    (pointers.value_at(memory.image, slot(count)?) == Some(0)).then_some(names?)
}

/// The module name that the pointer at `slot` points at.
fn name_at(memory: &Memory<'_>, pointers: &Pointers, slot: u64) -> Option<String> {
    let target = pointers.value_at(memory.image, slot).filter(|value| *value != 0)?;
    let name = memory.c_string(target, MAX_NAME)?;
    let plausible = name.len() > 3
        && name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && name.contains(&b'_');
    if plausible { String::from_utf8(name).ok() } else { None }
}
