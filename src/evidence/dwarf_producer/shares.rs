//! The units of a large section, shared out among several threads.
//!
//! Where a unit begins is only known from the one before it. So places are guessed where one seems to begin, and a walk is
//! started from each. What such a walk found counts only if the walk before it comes to exactly that place, and if nothing
//! was damaged; anything else is walked again in order. All walks use one budget. Where that does not suffice, it is chance
//! which of them goes short, so nothing counts and all is read again by one. So the result is that of one walk from the
//! start, whatever was guessed and however many threads there are, and so is the memory for it.

use super::family::{Family, Sections};
use super::notes::{Budget, Notes};
use super::{DwarfUnit, DwarfUnits, package, text, walk};
use crate::image::{Image, Section, SectionData};
use crate::parallel;
use gimli::{DebugInfo, DebugInfoOffset};
use memchr::memmem;
use std::ops::Range;

/// Smaller shares than this many bytes are not worth a walk of their own.
const LEAST: u64 = 4 << 20;
/// Shares for each thread: units are of many sizes, and processors have other work.
const EACH: usize = 4;
/// How far from its place the begin of a unit is looked for. Few units of compilers are larger.
const NEAR: u64 = 1 << 20;
/// Bytes looked through at once.
const WINDOW: u64 = 16 << 10;
/// Units that must follow each other for the first of them to be taken for one.
const CHAIN: usize = 3;

/// What one of the walks found.
pub(super) struct Share {
    /// Where its first unit begins.
    pub(super) start: u64,
    /// Where the one behind its last begins.
    pub(super) end: u64,
    /// Bytes of tables of abbreviations it went through.
    pub(super) searched: u64,
    pub(super) units: Vec<DwarfUnit>,
}

/// Walks a section from several places at the same time, if there are threads to spare and it is large. Sections that are
/// compressed, relocated, or shared by many split units are not: reading those from several places costs memory or is
/// wrong.
pub(super) fn ahead(
    image: &Image,
    workers: usize,
    family: Family,
    section: &Section,
    info: &SectionData,
    sections: &Sections<'_>,
    budget: &mut Budget,
) -> Vec<Share> {
    let count = (info.len() / LEAST).min((workers.saturating_mul(EACH)) as u64);
    let plain = family == Family::Plain
        && sections.supplementary_str.is_none()
        && !sections.package.is_package()
        && !image.is_relocatable()
        && !image.sections.iter().any(Section::is_compressed);
    if workers < 2 || count < 2 || !plain {
        return Vec::new();
    }
    let Some(header) = Pattern::of(info) else { return Vec::new() };
    let bound = |index: u64| (u128::from(info.len()) * u128::from(index) / u128::from(count)) as u64;
    let places: Vec<(u64, u64)> = (0..count).map(|index| (bound(index), bound(index + 1))).collect();
    budget.make_common();
    let walked = parallel::pieces(
        workers,
        &places,
        || SectionData::open_forward(image, section).ok(),
        |info, &(from, until)| {
            let info = info.as_ref()?;
            let start = if from == 0 { 0 } else { header.first_unit(info, from)? };
            one(image, info, start..until, budget.another())
        },
    );
    walked.into_iter().flatten().collect()
}

/// One walk, if nothing at all is wrong with what it finds.
fn one(image: &Image, info: &SectionData, from: Range<u64>, mut budget: Budget) -> Option<Share> {
    let mut notes = Notes::new(&image.limits);
    let mut sections = Family::Plain.open(image, None);
    sections.package = package::Package::default();
    let mut out = DwarfUnits::default();
    let end = walk::walk(info, from.clone(), &mut sections, &mut out, &mut notes, &mut budget)?;
    text::resolve(&mut sections, &mut out.units, &mut notes, &mut budget);
    // What a list that grows holds in reserve is not in the budget.
    out.units.shrink_to_fit();
    let searched = sections.abbreviations.done();
    notes.is_empty().then_some(Share { start: from.start, end, searched, units: out.units })
}

/// What headers of units look like, after the section's first one: all of a program mostly are of one version.
struct Pattern {
    /// The bytes behind the length, up to the offset of the abbreviations.
    bytes: Vec<u8>,
}

impl Pattern {
    fn of(info: &SectionData) -> Option<Self> {
        let header = DebugInfo::from(info.reader()).header_from_offset(DebugInfoOffset(0)).ok()?;
        // Up to DWARF 4 the version alone stands before that offset, and its high byte is zero.
        let size = if header.version() >= 5 { 4 } else { 2 };
        let bytes = info.reader_at(4).bytes_ahead(size)?;
        (header.encoding().format == gimli::Format::Dwarf32).then_some(Self { bytes })
    }

    /// The first place from `from` on where some units seem to follow each other.
    fn first_unit(&self, info: &SectionData, from: u64) -> Option<u64> {
        let finder = memmem::Finder::new(&self.bytes);
        let most = from.saturating_add(NEAR).min(info.len());
        let mut at = from;
        while at < most {
            let window = info.reader_at(at).bytes_ahead(WINDOW.min(info.len() - at))?;
            // The length stands before.
            let begins = |found: usize| (at + found as u64).checked_sub(4).filter(|&begin| begin >= from);
            if let Some(begin) =
                finder.find_iter(&window).filter_map(begins).find(|&begin| self.units_follow(info, begin))
            {
                return Some(begin);
            }
            // Neighbouring windows have the length and the bytes behind it in common.
            at += (window.len() as u64).saturating_sub(self.bytes.len() as u64 + 4).max(1);
        }
        None
    }

    /// Whether headers follow each other from here on, as many as it takes or to the end of the section.
    fn units_follow(&self, info: &SectionData, begin: u64) -> bool {
        let mut at = begin;
        for _ in 0..CHAIN {
            if at == info.len() {
                return true;
            }
            let Ok(header) = DebugInfo::from(info.reader()).header_from_offset(DebugInfoOffset(at)) else {
                let _ = info.take_failure();
                return false;
            };
            let alike = info.reader_at(at.saturating_add(4)).bytes_ahead(self.bytes.len() as u64);
            if alike.as_ref() != Some(&self.bytes) {
                return false;
            }
            at = at.saturating_add(header.length_including_self());
        }
        true
    }
}
