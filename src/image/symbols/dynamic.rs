//! The dynamic symbol table, found as the loader finds it. Its length comes from the hash tables (gABI "Hash Table"; the GNU
//! hash table has no other description than the loaders' source).

use super::{SymbolTable, entry_size, locate_section, read_located};
use crate::facts::Problem;
use crate::image::Image;
use crate::image::bytes::Format;
use crate::image::linkage::{Linkage, locate};
use goblin::elf::dynamic;
use object::elf;

/// Most buckets and chain entries of a GNU hash table that are walked to count symbols.
const MAX_HASH_BYTES: u64 = 64 << 20;

pub(super) fn read(image: &Image, linkage: &Linkage) -> SymbolTable {
    if !linkage.linked {
        return SymbolTable::default();
    }
    let code = "damaged-dynamic-symbols";
    let format = Format::from(image.header);
    let Some(address) = linkage.dynamic_value(dynamic::DT_SYMTAB) else {
        // With the dynamic table lost the section table may still know.
        return locate_section(image, elf::SHT_DYNSYM)
            .map(|located| read_located(image, &located))
            .unwrap_or_default();
    };
    let names = linkage.dynamic_value(dynamic::DT_STRTAB).and_then(|at| locate(image, at, 1));
    let (Some(start), Some(names)) = (locate(image, address, 1), names) else {
        let message = "the dynamic symbol table or its names are not in the file";
        return SymbolTable::damaged(code, message);
    };
    let size = linkage.dynamic_value(dynamic::DT_STRSZ).unwrap_or(u64::MAX);
    let size = size.min(image.input.len().saturating_sub(names.start));
    let names = match image.read(names.start, size, "names of dynamic symbols") {
        Ok(names) => names,
        Err(error) => return SymbolTable::damaged(code, error.to_string()),
    };
    let entry = entry_size(format) as u64;
    let left = image.input.len().saturating_sub(start.start) / entry;
    let counted = count(image, linkage, format, address).unwrap_or(0);
    let mut problems = Vec::new();
    if counted > left {
        let message = format!("only {left} of {counted} dynamic symbols lie within the file");
        problems.push(Problem::damage(code, message));
    }
    let wanted = counted.min(left);
    let kept = wanted.min(image.limits.functions as u64);
    if kept < wanted {
        let message = format!("{wanted} dynamic symbols, the first {kept} are read");
        problems.push(Problem::damage("too-many-symbols", message));
    }
    match image.read(start.start, kept * entry, "dynamic symbols") {
        Ok(entries) => SymbolTable { format: Some(format), entries, names, problems },
        Err(error) => SymbolTable::damaged(code, error.to_string()),
    }
}

/// Number of dynamic symbols. No tag of the dynamic table says it.
fn count(image: &Image, linkage: &Linkage, format: Format, symbols: u64) -> Option<u64> {
    if let Some(at) = linkage.dynamic_value(dynamic::DT_HASH) {
        // The chain has one entry a symbol. Alpha and s390x write this table in 64-bit words.
        let wide = format.is_64 && matches!(image.header.machine, elf::EM_ALPHA | elf::EM_S390);
        let header = at_address(image, at, if wide { 16 } else { 8 })?;
        return if wide { format.u64(&header, 8) } else { format.u32(&header, 4).map(u64::from) };
    }
    let hashed = linkage.dynamic_value(dynamic::DT_GNU_HASH).and_then(|at| count_gnu_hash(image, format, at));
    if let Some(count) = hashed {
        return Some(count);
    }
    // A file that exports nothing has an empty GNU hash table, which counts nothing.
    let section = image
        .sections
        .iter()
        .find(|s| s.kind == elf::SHT_DYNSYM && s.address == symbols)
        .map(|s| s.size / entry_size(format) as u64);
    section.or_else(|| count_by_gap(image, linkage, format, symbols))
}

/// The highest index in the chains of a GNU hash table, plus one; `None` if it is empty.
fn count_gnu_hash(image: &Image, format: Format, at: u64) -> Option<u64> {
    let header = at_address(image, at, 16)?;
    let field = |index: usize| format.u32(&header, index * 4).map(u64::from);
    let (buckets, first, bloom) = (field(0)?, field(1)?, field(2)?);
    let table = at.checked_add(16)?.checked_add(bloom.checked_mul(format.word_size())?)?;
    let size = buckets.checked_mul(4).filter(|&size| size <= MAX_HASH_BYTES)?;
    let heads = at_address(image, table, size)?;
    let last = heads.chunks_exact(4).filter_map(|head| format.u32(head, 0)).max().map(u64::from)?;
    if last < first || last == 0 {
        return None;
    }
    // The chain of the last bucket ends the table: the lowest bit marks its last entry.
    let chains = table.checked_add(size)?;
    let mut index = last;
    let mut step = 16u64;
    let mut read = 0;
    while read < MAX_HASH_BYTES {
        let place = chains.checked_add((index - first).checked_mul(4)?)?;
        let left = segment_left(image, place)?.min(step * 4);
        let entries = at_address(image, place, left - left % 4)?;
        for entry in entries.chunks_exact(4) {
            index = index.checked_add(1)?;
            if format.u32(entry, 0)? & 1 == 1 {
                return Some(index);
            }
        }
        if entries.is_empty() {
            return None;
        }
        read += entries.len() as u64;
        step = (step * 4).min(16 << 10);
    }
    None
}

/// The table ends at the latest where the next thing of the dynamic table begins; and no name lies outside the names.
fn count_by_gap(image: &Image, linkage: &Linkage, format: Format, symbols: u64) -> Option<u64> {
    const NEIGHBOURS: [u64; 10] = [
        dynamic::DT_STRTAB,
        dynamic::DT_HASH,
        dynamic::DT_GNU_HASH,
        dynamic::DT_RELA,
        dynamic::DT_REL,
        dynamic::DT_JMPREL,
        dynamic::DT_VERSYM,
        dynamic::DT_VERNEED,
        dynamic::DT_VERDEF,
        dynamic::DT_INIT,
    ];
    let end = NEIGHBOURS
        .iter()
        .filter_map(|&tag| linkage.dynamic_value(tag))
        .filter(|&address| address > symbols)
        .min()?;
    let entry = entry_size(format) as u64;
    let most = ((end - symbols) / entry).min(image.limits.functions as u64);
    let names = linkage.dynamic_value(dynamic::DT_STRSZ)?;
    let bytes = at_address(image, symbols, most.checked_mul(entry)?)?;
    let sound = |entry: &&[u8]| format.u32(entry, 0).is_some_and(|name| u64::from(name) < names);
    Some(bytes.chunks_exact(entry as usize).take_while(sound).count() as u64)
}

fn at_address(image: &Image, address: u64, size: u64) -> Option<Vec<u8>> {
    let range = locate(image, address, size)?;
    image.read(range.start, size, "dynamic symbols").ok()
}

fn segment_left(image: &Image, address: u64) -> Option<u64> {
    let segments = image.loaded_segments().map(|s| (s.address, s.file_size));
    let sections = image.sections.iter().filter(|s| s.has_data()).map(|s| (s.address, s.size));
    segments
        .chain(sections)
        .find_map(|(start, size)| size.checked_sub(address.checked_sub(start)?).filter(|&n| n > 0))
}
