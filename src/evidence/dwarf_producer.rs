//! Compilation units and what their compilers wrote into them: name, directory, `DW_AT_producer`, ranges.
//!
//! Source: DWARF 5, sections 3.1 (unit entries) and 7.5 (unit headers), and the GNU extensions of
//! DWARF 4 (split units, `dwz`). Of each unit only the header, the root entry, the one abbreviation it uses,
//! the strings it names and its ranges are read. A damaged unit is reported and the walk goes on behind it.

use super::dwarf_macro::{MacroList, Macros};
use crate::evidence::Place;
use crate::facts::Problem;
use crate::image::{Image, SectionData};
use std::ops::Range;
use std::sync::Arc;

pub(super) mod abbrev;
pub(super) mod family;
pub(super) mod notes;
mod package;
pub(super) mod ranges;
mod shares;
mod text;
mod walk;

#[cfg(test)]
mod tests;

use family::Family;
use notes::{Budget, Notes};

/// What is missing where `dwz` moved strings to a file that is not at hand.
pub const SUPPLEMENTARY: &str = "supplementary file of dwz";

/// What kind of unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DwarfUnitKind {
    /// A whole compilation unit (in a `.dwo`: the split one).
    Compile,
    /// Common parts of several units, made by `dwz` or by LTO. It has no producer.
    Partial,
    /// One type (`-fdebug-types-section`). It has no producer.
    Type,
    /// The part of a split unit that stays in the linked file; name and producer are in the `.dwo`.
    Skeleton {
        /// `DW_AT_dwo_name` or `DW_AT_GNU_dwo_name`: not a path to be trusted.
        dwo_name: Vec<u8>,
        /// Identifies the `.dwo`.
        dwo_id: Option<u64>,
    },
}

/// One unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DwarfUnit {
    /// `DW_AT_name`; empty where there is none.
    pub name: Vec<u8>,
    /// `DW_AT_comp_dir`; empty where there is none. Units that refer to one text share it.
    pub comp_dir: Arc<[u8]>,
    /// `DW_AT_producer`, as the bytes stand. Units that refer to one text share it.
    pub producer: Option<Arc<[u8]>>,
    /// `DW_AT_language`.
    pub language: Option<gimli::DwLang>,
    /// Version of the unit header.
    pub version: u16,
    /// Addresses, as they stand: those of code that the linker dropped are still there (often from 0 on),
    /// and in a relocatable file each section counts from 0. Sorted and without overlap.
    pub ranges: Vec<Range<u64>>,
    /// What kind of unit.
    pub kind: DwarfUnitKind,
    /// The dwo-id of a split unit in a `.dwo`, to be compared with its skeleton's.
    pub dwo_id: Option<u64>,
    /// Where the list of its macros begins, if it has one.
    pub macros: Option<MacroList>,
    /// What they tell, once [`super::dwarf_macro`] has read them.
    pub defined: Option<Arc<Macros>>,
    /// Where its header begins.
    pub at: Place,
    /// Index of the section it lies in: relocatable files have several of one name.
    pub section: u32,
}

impl DwarfUnit {
    /// What tells it from all other units of the file: section and offset.
    pub fn place(&self) -> (u32, u64) {
        (self.section, self.at.offset)
    }
}

/// All units of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DwarfUnits {
    /// In the order of the file.
    pub units: Vec<DwarfUnit>,
    /// DWARF versions, ascending.
    pub versions: Vec<u16>,
    /// How the units' section is compressed: `zlib-gnu`, `zlib`, `zstd`.
    pub compressed: Option<String>,
    /// What is damaged or hit a limit.
    pub problems: Vec<Problem>,
    /// What the units refer to and is not there.
    pub missing: Vec<String>,
}

/// Reads all units of `image`, which may be a linked file, a separate debug file, a relocatable file, a
/// `.dwo` or a `.dwp`. `supplementary` is the file that `dwz` moved common strings to (`.gnu_debugaltlink`).
pub fn read(image: &Image, supplementary: Option<&Image>) -> DwarfUnits {
    let read = read_with(image, supplementary, image.workers);
    read.or_else(|| read_with(image, supplementary, 1)).unwrap_or_default()
}

/// Reads all units with so many threads. `None`: there were several, and a limit was hit or nearly so. Where one thread comes to
/// it is then not known.
fn read_with(image: &Image, supplementary: Option<&Image>, workers: usize) -> Option<DwarfUnits> {
    let mut out = DwarfUnits::default();
    let mut notes = Notes::new(&image.limits);
    let mut budget = Budget::new(&image.limits);
    // Sections of a sound file do not overlap: together they are no larger than the file.
    let (mut file_left, mut inflated_left) = (image.input.len(), image.limits.inflated_bytes);
    for family in Family::ALL {
        if family.only_without_others() && !out.units.is_empty() {
            continue;
        }
        let mut sections = family.open(image, supplementary);
        sections.package = package::Package::read(family, image, &mut notes);
        for section in family.info(image) {
            // Only the walk itself is in order, so only this section may be a stream whatever its size.
            let data = match SectionData::open_forward(image, section) {
                Ok(data) => data,
                Err(error) => {
                    notes.read_error("debug-info", &error);
                    continue;
                }
            };
            file_left = file_left.saturating_sub(data.file_bytes);
            if let Some(how) = data.compression {
                out.compressed.get_or_insert_with(|| how.as_str().to_owned());
                inflated_left = inflated_left.saturating_sub(data.len());
            }
            if file_left == 0 || inflated_left == 0 {
                let index = section.index;
                notes.damage("damaged-debug-info", || {
                    format!(
                        "the sections of units up to {index} claim more than there is; the rest is not read"
                    )
                });
                break;
            }
            let mut at = Some(0);
            let ahead = shares::ahead(image, workers, family, section, &data, &sections, &mut budget);
            if budget.is_overdrawn() {
                return None;
            }
            out.units.reserve_exact(ahead.iter().map(|share| share.units.len()).sum());
            for share in ahead {
                at = at.and_then(|at| {
                    walk::walk(&data, at..share.start, &mut sections, &mut out, &mut notes, &mut budget)
                });
                if at == Some(share.start) {
                    at = Some(share.end);
                    sections.abbreviations.go_on_behind(share.searched);
                    out.units.extend(share.units);
                }
            }
            at.and_then(|at| {
                walk::walk(&data, at..data.len(), &mut sections, &mut out, &mut notes, &mut budget)
            });
            walk::tell_cut(&data, &mut notes);
        }
        text::resolve(&mut sections, &mut out.units, &mut notes, &mut budget);
        if budget.is_overdrawn() || budget.is_common() && sections.searched_much(&mut notes) {
            return None;
        }
    }
    out.versions = out.units.iter().map(|unit| unit.version).collect();
    out.versions.sort_unstable();
    out.versions.dedup();
    notes.finish(&mut out);
    Some(out)
}
