//! Reading the relocation tables of one file.

use super::{MAX_SYMBOL_BYTES, Pointers, Relocated, Table, WINDOW};
use crate::facts::Problem;
use crate::image::Image;
use crate::image::bytes::Format;
use crate::image::linkage::locate;

/// Reads the tables of one file.
pub(super) struct Reader<'a> {
    pub(super) pointers: &'a Pointers,
    pub(super) image: &'a Image,
    pub(super) out: Relocated,
    /// Slot, symbol and addend of relocations that name a symbol.
    pub(super) symbolic: Vec<(u64, u32, u64)>,
}

impl Reader<'_> {
    pub(super) fn is_full(&mut self, what: &str) -> bool {
        let most = self.image.limits.relocations;
        let full = self.out.pairs.len() + self.symbolic.len() >= most;
        if full {
            let message = format!("{what}: only the first {most} are read");
            self.out.problems.push(Problem::damage("too-many-relocations", message));
        }
        full
    }

    /// Calls `each` with whole entries of a table at an address, window by window, while it returns true.
    pub(super) fn windows(
        &mut self,
        (address, size): (u64, u64),
        entry: u64,
        what: &str,
        mut each: impl FnMut(&mut Self, &[u8]) -> bool,
    ) {
        let Some(start) = locate(self.image, address, 1).map(|range| range.start) else {
            if size > 0 {
                let message = format!("{what} at address {address:#x} are not in the file");
                self.out.problems.push(Problem::damage("damaged-relocations", message));
            }
            return;
        };
        let left = self.image.input.len().saturating_sub(start);
        let mut whole = size - size % entry;
        if whole > left {
            let message = format!("only {left} of {size} bytes of {what} lie within the file");
            self.out.problems.push(Problem::damage("damaged-relocations", message));
            whole = left - left % entry;
        }
        let step = WINDOW - WINDOW % entry;
        let mut done = 0;
        while done < whole {
            let read = self.image.read(start + done, step.min(whole - done), what);
            let bytes = match read {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.out.problems.push(Problem::damage("damaged-relocations", error.to_string()));
                    return;
                }
            };
            if !each(self, &bytes) {
                return;
            }
            done += bytes.len() as u64;
        }
    }

    pub(super) fn table(&mut self, table: Table) {
        let Some(kinds) = self.pointers.kinds else { return };
        let format = self.pointers.format;
        let word = format.word_size() as usize;
        let entry = word * if table.with_addend { 3 } else { 2 };
        let mut in_place = InPlace::new(self.image, format);
        self.windows((table.address, table.size), entry as u64, "relocations", |reader, bytes| {
            for bytes in bytes.chunks_exact(entry) {
                let Some((slot, info)) = format.word(bytes, 0).zip(format.word(bytes, word)) else {
                    continue;
                };
                let (kind, symbol) = kinds.split(info, format);
                let relative = kind == kinds.relative && (!kinds.needs_symbol_zero || symbol == 0);
                if !relative && !kinds.is_symbolic(kind) {
                    continue;
                }
                // The slot of a bound function holds its stub, which is no addend.
                let addend = if table.with_addend {
                    format.word(bytes, 2 * word)
                } else if kind == kinds.jump_slot {
                    Some(0)
                } else {
                    in_place.word(slot)
                };
                let Some(addend) = addend else { continue };
                if relative {
                    reader.out.pairs.push((slot, addend));
                } else {
                    reader.symbolic.push((slot, symbol, addend));
                }
            }
            !reader.is_full("relocations")
        });
    }

    /// `DT_RELR`: an even word is the address of a pointer, an odd one a bit map of the words that follow it.
    pub(super) fn relr(&mut self, address: u64, size: u64) {
        let format = self.pointers.format;
        let word = format.word_size();
        let mut next = 0u64;
        let mut in_place = InPlace::new(self.image, format);
        self.windows((address, size), word, "relative relocations", |reader, bytes| {
            for bytes in bytes.chunks_exact(word as usize) {
                let Some(value) = format.word(bytes, 0) else { continue };
                if value & 1 == 0 {
                    reader.relative_in_place(&mut in_place, value);
                    next = format.wrap(value.wrapping_add(word));
                    continue;
                }
                let mut bits = value >> 1;
                let mut slot = next;
                while bits != 0 {
                    if bits & 1 != 0 {
                        reader.relative_in_place(&mut in_place, slot);
                    }
                    bits >>= 1;
                    slot = format.wrap(slot.wrapping_add(word));
                }
                next = format.wrap(next.wrapping_add((word * 8 - 1) * word));
            }
            !reader.is_full("relative relocations")
        });
    }

    fn relative_in_place(&mut self, in_place: &mut InPlace, slot: u64) {
        if let Some(target) = in_place.word(slot) {
            self.out.pairs.push((slot, target));
        }
    }

    /// Turns symbolic relocations into pairs where the symbol is defined here, into imports where it is not.
    pub(super) fn resolve_symbols(&mut self) {
        let symbolic = std::mem::take(&mut self.symbolic);
        let Some(last) = symbolic.iter().map(|entry| entry.1).max() else { return };
        let format = self.pointers.format;
        let entry: u64 = if format.is_64 { 24 } else { 16 };
        let table = self.pointers.symbols.filter(|symbols| symbols.1 == entry).and_then(|(address, _)| {
            let size = (u64::from(last) + 1).checked_mul(entry)?.min(MAX_SYMBOL_BYTES);
            let start = locate(self.image, address, 1)?.start;
            let size = size.min(self.image.input.len().checked_sub(start)?);
            self.image.read(start, size, "dynamic symbols").ok()
        });
        let Some(table) = table else {
            let message = "the dynamic symbol table cannot be read: pointers to named objects are lost";
            self.out.problems.push(Problem::damage("damaged-dynamic-symbols", message));
            return;
        };
        let mut lost = 0u64;
        for (slot, symbol, addend) in symbolic {
            let at = symbol as usize * entry as usize;
            // Elf64_Sym: name 4, info 1, other 1, shndx 2, value 8; Elf32_Sym: name 4, value 4, size 4, info 1, other 1, shndx 2.
            let (value, section) = if format.is_64 {
                (format.u64(&table, at + 8), format.u16(&table, at + 6))
            } else {
                (format.word(&table, at + 4), format.u16(&table, at + 14))
            };
            match value.zip(section) {
                Some((_, 0)) if symbol != 0 => self.out.imports.push((slot, symbol)),
                Some((value, _)) => {
                    self.out.pairs.push((slot, format.wrap(value.wrapping_add(addend))));
                }
                None => lost += 1,
            }
        }
        if lost > 0 {
            let message = format!("{lost} relocations name symbols outside the dynamic symbol table");
            self.out.problems.push(Problem::damage("damaged-relocations", message));
        }
    }
}

/// Words of the loaded data, read through one window: relocations come sorted, so neighbours are asked for in turn.
struct InPlace<'a> {
    image: &'a Image,
    format: Format,
    start: u64,
    bytes: Vec<u8>,
    step: u64,
}

impl<'a> InPlace<'a> {
    fn new(image: &'a Image, format: Format) -> Self {
        Self { image, format, start: 0, bytes: Vec::new(), step: 0 }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let size = self.format.word_size();
        let inside = |start: u64, len: u64| {
            address >= start && address.checked_add(size).is_some_and(|end| end - start <= len)
        };
        if !inside(self.start, self.bytes.len() as u64) {
            let segment = self.image.loaded_segments().find(|s| inside(s.address, s.file_size))?;
            let at = address - segment.address;
            let offset = segment.offset.checked_add(at)?;
            // The window grows while slots follow one another; a slot far from the last one may stand alone, and a
            // file made of such must not cost a full window each.
            let follows = address.checked_sub(self.start).is_some_and(|gap| gap < 2 * self.step);
            self.step = if follows { (self.step * 4).min(WINDOW) } else { 512 };
            self.bytes.resize(self.step.min(segment.file_size - at) as usize, 0);
            let got = self.image.input.read_at(offset, &mut self.bytes).ok()?;
            self.bytes.truncate(got);
            self.start = address;
        }
        self.format.word(&self.bytes, (address - self.start) as usize)
    }
}
