//! The three families of debug sections: plain, split (`.dwo`), and early debug information of GCC's LTO.

use super::notes::Notes;
use crate::image::{Image, Section, SectionData};
use std::cell::OnceCell;

/// Largest compressed sections inflated whole, all taken together. Others pass by as a stream.
const WHOLE: u64 = 48 << 20;

/// Sections that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::evidence) enum Family {
    /// `.debug_*`, or `.zdebug_*`.
    Plain,
    /// `.debug_*.dwo`.
    Split,
    /// `.gnu.debuglto_.debug_*` of objects compiled with `-flto`.
    EarlyLto,
}

impl Family {
    pub(in crate::evidence) const ALL: [Self; 3] = [Self::Plain, Self::Split, Self::EarlyLto];

    /// Fat LTO objects describe the same sources twice; the plain sections are about the code that is there.
    pub(in crate::evidence) fn only_without_others(self) -> bool {
        self == Self::EarlyLto
    }

    fn names(self, part: &str) -> Vec<String> {
        match self {
            Self::Plain => vec![format!(".debug_{part}"), format!(".zdebug_{part}")],
            Self::Split => vec![format!(".debug_{part}.dwo"), format!(".zdebug_{part}.dwo")],
            Self::EarlyLto => vec![format!(".gnu.debuglto_.debug_{part}")],
        }
    }

    /// All sections that hold units. Type units stand in sections of their own, one a COMDAT group.
    pub(in crate::evidence) fn info(self, image: &Image) -> Vec<&Section> {
        self.all(image, "info")
    }

    /// All sections of one part (`info`, `macro`) that have data, in the order of the file.
    pub(in crate::evidence) fn all<'i>(self, image: &'i Image, part: &str) -> Vec<&'i Section> {
        let mut all: Vec<&Section> = self
            .names(part)
            .iter()
            .flat_map(|name| image.sections_named(name))
            .filter(|section| section.has_data() && section.size > 0)
            .collect();
        all.sort_by_key(|section| section.index);
        all
    }

    fn find(self, image: &Image, part: &str) -> Option<Section> {
        let names = self.names(part);
        names.iter().find_map(|name| image.section(name)).filter(|s| s.has_data()).cloned()
    }

    /// Makes ready what the units of this family refer to; nothing is read yet.
    pub(in crate::evidence) fn open<'a>(
        self,
        image: &'a Image,
        supplementary: Option<&'a Image>,
    ) -> Sections<'a> {
        let lazy = |part: &'static str| Lazy::new(image, self.find(image, part), part);
        // Addresses of split units stand in the linked file's `.debug_addr`; in one object file it is at hand.
        let address = Lazy::new(image, Self::Plain.find(image, "addr"), "addr");
        Sections {
            family: self,
            abbrev: lazy("abbrev"),
            str: lazy("str"),
            line_str: lazy("line_str"),
            str_offsets: lazy("str_offsets"),
            ranges: lazy("ranges"),
            rnglists: lazy("rnglists"),
            addr: address,
            supplementary_str: supplementary
                .map(|file| Lazy::new(file, Self::Plain.find(file, "str"), "str")),
            memory: WHOLE,
            abbreviations: super::abbrev::Cache::default(),
            texts: Vec::new(),
            package: super::package::Package::default(),
        }
    }
}

/// The sections that units refer to, each opened when it is first needed.
pub(in crate::evidence) struct Sections<'a> {
    pub(in crate::evidence) family: Family,
    pub(in crate::evidence) abbrev: Lazy<'a>,
    pub(in crate::evidence) str: Lazy<'a>,
    pub(in crate::evidence) line_str: Lazy<'a>,
    pub(in crate::evidence) str_offsets: Lazy<'a>,
    pub(in crate::evidence) ranges: Lazy<'a>,
    pub(in crate::evidence) rnglists: Lazy<'a>,
    pub(in crate::evidence) addr: Lazy<'a>,
    pub(in crate::evidence) supplementary_str: Option<Lazy<'a>>,
    pub(in crate::evidence) memory: u64,
    pub(in crate::evidence::dwarf_producer) abbreviations: super::abbrev::Cache,
    /// In a `.dwp`, which parts belong to which unit.
    pub(in crate::evidence::dwarf_producer) package: super::package::Package,
    /// Strings still to be read.
    pub(in crate::evidence::dwarf_producer) texts: Vec<super::text::Pending>,
}

impl Sections<'_> {
    /// Whether several walks together went through so much of the abbreviations that one might have come to the limit.
    pub(in crate::evidence::dwarf_producer) fn searched_much(&mut self, notes: &mut Notes) -> bool {
        // Where anything was gone through, the section can be opened.
        self.abbreviations.done() > 0
            && self
                .abbrev
                .get(&mut self.memory, notes)
                .is_some_and(|data| self.abbreviations.may_be_too_much_for_one(data))
    }
}

/// A section opened on first use.
pub(in crate::evidence) struct Lazy<'a> {
    image: &'a Image,
    section: Option<Section>,
    part: &'static str,
    data: OnceCell<Option<SectionData>>,
}

impl<'a> Lazy<'a> {
    fn new(image: &'a Image, section: Option<Section>, part: &'static str) -> Self {
        Self { image, section, part, data: OnceCell::new() }
    }

    /// The code of a problem with this section.
    pub(in crate::evidence) fn code(&self) -> String {
        format!("damaged-debug-{}", self.part.replace('_', "-"))
    }

    /// Opens the section; a failure is reported once.
    pub(in crate::evidence) fn get(&self, memory: &mut u64, notes: &mut Notes) -> Option<&SectionData> {
        self.data
            .get_or_init(|| {
                let Some(section) = &self.section else {
                    let part = self.part;
                    notes.damage(&self.code(), || {
                        format!("units refer to a section .debug_{part} that is not there")
                    });
                    return None;
                };
                SectionData::open(self.image, section, memory)
                    .map_err(|error| {
                        notes.read_error(&format!("debug-{}", self.part.replace('_', "-")), &error);
                    })
                    .ok()
            })
            .as_ref()
    }

    /// Whether the file has such a section.
    pub(in crate::evidence) fn exists(&self) -> bool {
        self.section.is_some()
    }
}
