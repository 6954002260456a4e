//! Functions of a binary, with or without symbols.
//!
//! Compilers describe every function's stack frame in `.eh_frame` (Linux Standard Base Core 5.0,
//! section 10.6.1), and that section is loaded, so it survives `strip --strip-all`. Where the section
//! table is gone as well, the program header `PT_GNU_EH_FRAME` still leads there. Besides the ranges
//! the frame programs tell which callee-saved registers a function saves, and whether a range is the
//! split-off cold part of another function, without decoding a single instruction.

use super::ranges::range_at;
use super::{Image, merge};
use crate::facts::Problem;
use object::elf;
use std::ops::Range;

mod cfi;
mod eh_frame;

/// Who says that there is a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A frame description entry of `.eh_frame`.
    EhFrame,
    /// A symbol of type `STT_FUNC` that no frame description covers.
    Symbol,
    /// The target of a direct call in text that neither of them covers.
    CallTarget,
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// First address.
    pub start: u64,
    /// Address past the end; never past the start of the next function.
    pub end: u64,
    /// Name, if a symbol tells.
    pub name: Option<String>,
    /// A part split off another function: at its first byte the frame is already set up.
    pub cold: bool,
    /// Saves a callee-saved register that unoptimized code leaves alone (`r12`–`r15`, `x20`–`x28`, `esi`/`edi`).
    /// Only frame descriptions tell; false for the other origins.
    pub saves_high: bool,
    /// Saves the first callee-saved register (`rbx`, `x19`, `ebx`). Only frame descriptions tell.
    pub saves_low: bool,
    /// The frame is addressed through the frame pointer somewhere. Only frame descriptions tell.
    pub frame_pointer: bool,
    /// Who says so.
    pub from: Origin,
}

impl Function {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The functions of an image.
#[derive(Debug, Clone, Default)]
pub struct FunctionTable {
    /// Functions in order of address, without overlap. PLT entries and start code are left out.
    pub functions: Vec<Function>,
    /// Text that belongs to the toolchain: PLT, `.init`, `.fini`, the entry point. Sorted, without overlap.
    pub runtime: Vec<Range<u64>>,
    /// What is damaged, or missing.
    pub problems: Vec<Problem>,
}

impl FunctionTable {
    /// The function that begins at this address.
    pub fn at(&self, start: u64) -> Option<&Function> {
        self.functions.binary_search_by_key(&start, |f| f.start).ok().and_then(|i| self.functions.get(i))
    }

    /// The function that contains this address.
    pub fn containing(&self, address: u64) -> Option<&Function> {
        let after = self.functions.partition_point(|f| f.start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|f| address < f.end)
    }

    /// Names functions after symbols, and adds those functions that only symbols know (start, size in bytes, name).
    /// A name that ends in `.cold` (with or without a number) marks a split-off part. The first name of an address wins,
    /// so the caller decides by the order. Symbols outside the text, or of start code, are passed over.
    pub fn add_symbols<'a>(&mut self, image: &Image, symbols: impl IntoIterator<Item = (u64, u64, &'a str)>) {
        let text = image.text_ranges();
        let mut added: Vec<Function> = Vec::new();
        let mut named: Vec<Range<u64>> = Vec::new();
        let mut unsized_code: Vec<Range<u64>> = Vec::new();
        for (start, size, name) in symbols {
            if START_CODE.contains(&name) {
                // crtbegin.o gives its functions no size.
                let list = if size == 0 { &mut unsized_code } else { &mut named };
                let longest = if name == "frame_dummy" { FRAME_DUMMY_BYTES } else { START_FUNCTION_BYTES };
                list.push(start..start.saturating_add(if size == 0 { longest } else { size }));
                continue;
            }
            let cold = is_cold_name(name);
            if let Ok(found) = self.functions.binary_search_by_key(&start, |f| f.start) {
                if let Some(function) = self.functions.get_mut(found).filter(|f| f.name.is_none()) {
                    function.name = Some(name.to_owned());
                    function.cold |= cold;
                }
                continue;
            }
            let inside = |ranges: &[Range<u64>]| range_at(ranges, start).is_some();
            if size == 0 || self.containing(start).is_some() || !inside(&text) || inside(&self.runtime) {
                continue;
            }
            if self.functions.len() + added.len() >= image.limits.functions {
                self.problems.push(too_many(image.limits.functions));
                break;
            }
            added.push(Function {
                start,
                end: start.saturating_add(size),
                name: Some(name.to_owned()),
                cold,
                saves_high: false,
                saves_low: false,
                frame_pointer: false,
                from: Origin::Symbol,
            });
        }
        self.functions.append(&mut added);
        self.functions.sort_by_key(|f| f.start);
        unsized_code.sort_by_key(|range| range.start);
        let next_start: Vec<u64> = unsized_code.iter().skip(1).map(|r| r.start).chain([u64::MAX]).collect();
        for (range, next) in unsized_code.iter_mut().zip(next_start) {
            let after = self.functions.partition_point(|f| f.start <= range.start);
            let function = self.functions.get(after).map_or(u64::MAX, |f| f.start);
            let section = range_at(&text, range.start).map_or(range.start, |r| r.end);
            range.end = range.end.min(next).min(function).min(section);
        }
        named.append(&mut unsized_code);
        self.runtime.append(&mut named);
        self.settle(&text);
    }

    /// Sorts, drops what begins outside the text or in start code, and cuts each function where the next begins.
    fn settle(&mut self, text: &[Range<u64>]) {
        self.runtime = merge(std::mem::take(&mut self.runtime));
        let runtime = &self.runtime;
        self.functions.retain_mut(|function| {
            let Some(range) = range_at(text, function.start) else { return false };
            function.end = function.end.min(range.end);
            function.start < function.end && range_at(runtime, function.start).is_none()
        });
        // Stable, so that of two descriptions of one address the first read stays.
        self.functions.sort_by_key(|f| f.start);
        self.functions.dedup_by(|later, first| {
            let same = later.start == first.start;
            if same && first.name.is_none() {
                first.name = later.name.take();
            }
            same
        });
        let mut next = u64::MAX;
        for function in self.functions.iter_mut().rev() {
            function.end = function.end.min(next);
            next = function.start;
        }
    }
}

/// Longest function of `crtbegin.o` with its padding, in bytes. Measured: 0x40 on x86-64, 0x48 on aarch64.
const START_FUNCTION_BYTES: u64 = 0x50;

/// `frame_dummy` is a jump, with a landing pad before it.
const FRAME_DUMMY_BYTES: u64 = 0x10;

/// Names of functions that come with the compiler and the C library's start files.
const START_CODE: [&str; 12] = [
    "_start",
    "_start_c",
    "_init",
    "_fini",
    "__libc_csu_init",
    "__libc_csu_fini",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
    "_dl_relocate_static_pie",
    "__libc_start_call_main",
];

fn is_cold_name(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('.');
    stem.strip_suffix(".cold").is_some()
}

fn too_many(limit: usize) -> Problem {
    Problem::damage("too-many-functions", format!("more than {limit} functions: the rest is not listed"))
}

/// Reads the functions that frame descriptions tell of. Symbols are added by [`FunctionTable::add_symbols`].
///
/// A relocatable file yields none: its addresses mean nothing before relocation.
pub fn read(image: &Image) -> FunctionTable {
    let mut table = FunctionTable::default();
    if image.is_relocatable() {
        table.problems.push(Problem::notice(
            "relocatable",
            "functions of a relocatable file have no addresses yet: its machine code is not judged",
        ));
        return table;
    }
    let text = image.text_ranges();
    // A separate debug file has the section headers of its binary and none of the bytes.
    table.runtime = runtime_sections(image);
    if text.is_empty() || super::identity::is_separate_debug(image) {
        return table;
    }
    eh_frame::read(image, &text, &mut table);
    table.settle(&text);
    table
}

/// Sections of text that the linker and the start files fill: PLT, `.init`, `.fini`. Sorted, without overlap.
pub fn runtime_sections(image: &Image) -> Vec<Range<u64>> {
    merge(image.sections.iter().filter(|s| is_runtime_section(&s.name)).filter_map(section_range).collect())
}

fn section_range(section: &super::Section) -> Option<Range<u64>> {
    section.is_text().then_some(())?;
    Some(section.address..section.address.checked_add(section.size)?)
}

fn is_runtime_section(name: &[u8]) -> bool {
    name.starts_with(b".plt") || matches!(name, b".init" | b".fini" | b".iplt" | b".stub")
}

/// Which DWARF register numbers mean what for [`Function`], by the psABI of each machine.
#[derive(Debug, Clone, Copy)]
struct Registers {
    /// The first callee-saved register, which unoptimized code sometimes needs.
    low: u16,
    /// Further callee-saved registers, which it practically never uses.
    high: u64,
    /// The frame pointer.
    frame: u16,
}

impl Registers {
    fn of(machine: elf::Machine) -> Option<Self> {
        let mask = |numbers: Range<u64>| numbers.fold(0u64, |mask, n| mask | 1 << n);
        match machine {
            elf::EM_X86_64 => Some(Self { low: 3, high: mask(12..16), frame: 6 }),
            elf::EM_386 => Some(Self { low: 3, high: mask(6..8), frame: 5 }),
            elf::EM_AARCH64 => Some(Self { low: 19, high: mask(20..29), frame: 29 }),
            _ => None,
        }
    }

    fn is_high(self, register: u16) -> bool {
        register < 64 && self.high >> register & 1 == 1
    }
}

#[cfg(test)]
mod tests;
