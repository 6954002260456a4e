//! Where the texts of the definitions that tell something stand in `.debug_str`.

use super::{NAMES, VALUE};
use crate::evidence::dwarf_producer::family::Family;
use crate::evidence::dwarf_producer::notes::Notes;
use crate::image::{Image, SectionData};
use gimli::Reader;
use memchr::memmem::Finder;
use std::collections::HashMap;

/// Most places kept. A linker merges equal strings, so that a sound file has a few.
const MOST: usize = 1 << 16;
/// Bytes of two pieces of the section that are searched together: the longest name and its value.
const OVERLAP: usize = 2 * VALUE + 1;

/// Places by offset in `.debug_str`. A place may be the middle of a string: linkers let one string end another.
#[derive(Default)]
pub(super) struct Strings {
    places: HashMap<u64, (usize, String)>,
    offsets: Option<SectionData>,
}

impl Strings {
    /// Searches the section once, in order.
    pub(super) fn search(image: &Image, family: Family, notes: &mut Notes) -> Self {
        let mut out = Self::default();
        if let Some(section) = family.all(image, "str_offsets").first() {
            match SectionData::open(image, section, &mut super::WHOLE.clone()) {
                Ok(data) => out.offsets = Some(data),
                Err(error) => notes.read_error("debug-str-offsets", &error),
            }
        }
        let sections = family.all(image, "str");
        let Some(section) = sections.first() else { return out };
        let data = match SectionData::open_forward(image, section) {
            Ok(data) => data,
            Err(error) => {
                notes.read_error("debug-str", &error);
                return out;
            }
        };
        let finders = NAMES.map(|name| Finder::new(name.as_bytes()));
        let mut held: Vec<u8> = Vec::new();
        let mut start = 0u64;
        let mut at = 0u64;
        while at < data.len() {
            let got = data.piece(at, |bytes| {
                held.extend_from_slice(bytes);
                bytes.len() as u64
            });
            let Ok(got) = got else {
                notes.damage("damaged-debug-str", || data.take_failure().unwrap_or_default());
                break;
            };
            at += got;
            let whole = at >= data.len();
            // What begins in the last bytes is looked at with those that follow.
            let end = if whole { held.len() } else { held.len().saturating_sub(OVERLAP) };
            for finder in &finders {
                for place in finder.find_iter(&held).take_while(|place| *place < end) {
                    let text = held.get(place..).unwrap_or_default();
                    let text = text.get(..OVERLAP.min(text.len())).unwrap_or(text);
                    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
                    if let Some(found) = tells(text).filter(|_| out.places.len() < MOST) {
                        out.places.insert(start + place as u64, found);
                    }
                }
            }
            start += end as u64;
            held.drain(..end);
        }
        out
    }

    /// The text at an offset, if it is one of those looked for.
    pub(super) fn at(&self, offset: u64) -> Option<(usize, String)> {
        self.places.get(&offset).cloned()
    }

    /// The same by index into `.debug_str_offsets`.
    pub(super) fn at_index(
        &self,
        base: u64,
        index: u64,
        is_64: bool,
    ) -> Result<Option<(usize, String)>, String> {
        let Some(offsets) = &self.offsets else { return Ok(None) };
        let size: u64 = if is_64 { 8 } else { 4 };
        let place = index.saturating_mul(size).saturating_add(base);
        let mut reader = offsets.reader_at(place);
        let offset = if is_64 { reader.read_u64() } else { reader.read_u32().map(u64::from) };
        match offset {
            Ok(offset) => Ok(self.at(offset)),
            Err(error) => Err(offsets.take_failure().unwrap_or_else(|| error.to_string())),
        }
    }
}

/// The name that a definition (`NAME VALUE`) or removal (`NAME`) is of, if it tells something, and the value.
pub(super) fn tells(text: &[u8]) -> Option<(usize, String)> {
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    let (name, value) = text.split_at_checked(end)?;
    let index = NAMES.iter().position(|known| known.as_bytes() == name)?;
    let value = value.get(1..).unwrap_or_default();
    let value = value.get(..VALUE).unwrap_or(value);
    Some((index, String::from_utf8_lossy(value).trim().to_owned()))
}
