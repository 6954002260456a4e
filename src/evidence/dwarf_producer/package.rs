//! Packages of split units (`.dwp`): the parts of the common sections that belong to each unit (DWARF 5,
//! section 7.3.5; the GNU form for DWARF 4 differs in its numbers only).

use super::family::Family;
use super::notes::Notes;
use crate::image::{Image, SectionData};
use gimli::{DebugCuIndex, DebugTuIndex, IndexSectionId, UnitIndex};

/// Where a unit's parts of the common sections begin. All zero in a `.dwo` of one unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Contribution {
    info: u64,
    /// In `.debug_abbrev.dwo`.
    pub(super) abbrev: u64,
    /// In `.debug_str_offsets.dwo`.
    pub(super) str_offsets: u64,
    /// In `.debug_rnglists.dwo`.
    pub(super) rnglists: u64,
}

/// The contributions of all units of a package, by where they begin.
#[derive(Debug, Default)]
pub(super) struct Package(Vec<Contribution>);

impl Package {
    /// Reads `.debug_cu_index` and `.debug_tu_index`; empty if the file has none.
    pub(super) fn read(family: Family, image: &Image, notes: &mut Notes) -> Self {
        let mut all = Vec::new();
        if family != Family::Split {
            return Self(all);
        }
        for (name, types) in [(".debug_cu_index", false), (".debug_tu_index", true)] {
            let Some(section) = image.section(name) else { continue };
            let data = match SectionData::open_forward(image, section) {
                Ok(data) => data,
                Err(error) => {
                    notes.read_error(name.trim_start_matches('.'), &error);
                    continue;
                }
            };
            let index = if types {
                DebugTuIndex::from(data.reader()).index()
            } else {
                DebugCuIndex::from(data.reader()).index()
            };
            match index {
                Ok(index) => rows(&index, image.limits.units, &mut all),
                Err(error) => {
                    let code = format!("damaged-{}", name.trim_start_matches('.').replace('_', "-"));
                    notes.damage(&code, || data.take_failure().unwrap_or_else(|| error.to_string()));
                }
            }
        }
        all.sort_unstable_by_key(|c| c.info);
        Self(all)
    }

    /// Whether the file is a package at all.
    pub(super) fn is_package(&self) -> bool {
        !self.0.is_empty()
    }

    /// What belongs to the unit whose header begins at `offset`.
    pub(super) fn of(&self, offset: u64) -> Contribution {
        let before = self.0.partition_point(|c| c.info <= offset);
        before.checked_sub(1).and_then(|last| self.0.get(last)).copied().unwrap_or_default()
    }
}

fn rows<R: gimli::Reader>(index: &UnitIndex<R>, limit: usize, all: &mut Vec<Contribution>) {
    for row in 1..=index.unit_count() {
        if all.len() >= limit {
            break;
        }
        let Ok(sections) = index.sections(row) else { break };
        let mut contribution = Contribution::default();
        let mut has_info = false;
        for part in sections {
            let offset = u64::from(part.offset);
            match part.section {
                IndexSectionId::DebugInfo => (contribution.info, has_info) = (offset, true),
                IndexSectionId::DebugAbbrev => contribution.abbrev = offset,
                IndexSectionId::DebugStrOffsets => contribution.str_offsets = offset,
                IndexSectionId::DebugRngLists => contribution.rnglists = offset,
                _ => {}
            }
        }
        if has_info {
            all.push(contribution);
        }
    }
}
