//! What the annobin compiler plugin wrote: `.gnu.build.attributes` (ELF notes) or `.annobin.notes` (strings).
//!
//! Distributions of the Fedora family compile everything with this plugin. Its notes are not allocated and survive
//! `strip`, and in their note form they say for ranges of addresses, and for single functions where these differ, at which level
//! the code was compiled: an `optimize("O0")` attribute is visible here and nowhere else.
//! Source: the Watermark specification and annobin's manual; layout checked against a file made with the plugin.

use super::{Claim, Place, Scope, Source, Strength};
use crate::compiler::Level;
use crate::facts::Problem;
use crate::image::{Image, Section, sections};
use std::ops::Range;

mod notes;
mod strings;

/// What a compiler wrote about a piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Property {
    /// The optimization level, and the number it was read from (`GOW`).
    Level(Level, u64),
    /// `-fstack-protector`: 0 none, 1 basic, 2 all, 3 strong, 4 explicit.
    StackProtector(u64),
    /// Position independence: 0 none, 1 `-fpic`, 2 `-fPIC`, 3 `-fpie`, 4 `-fPIE`.
    PositionIndependence(u64),
    /// `-fcf-protection`.
    ControlFlow {
        /// Indirect branches are protected.
        branch: bool,
        /// Returns are protected.
        returns: bool,
    },
    /// `_FORTIFY_SOURCE`; `None` where the plugin did not see a definition.
    Fortify(Option<u64>),
    /// `-fstack-clash-protection`.
    StackClash(bool),
    /// `_GLIBCXX_ASSERTIONS`.
    LibraryAssertions(bool),
    /// Which plugin wrote the notes: a letter for what it is part of (`p` gcc, `L` clang, `a` assembler, …) and its version.
    Writer(char, String),
    /// The compiler that ran, in its words.
    Tool(String),
    /// Sanitizers, `-finstrument-functions`, profiling and arc profiling, as the plugin counts them.
    Instrumentation(String),
    /// Anything else, as `name=value`.
    Other(String),
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Addresses it speaks of; `None` where they are not known: in the string form, which has none, and in relocatable files,
    /// whose addresses mean nothing before relocation.
    pub range: Option<Range<u64>>,
    /// It speaks of one function that differs from its unit.
    pub of_function: bool,
    /// Source file, in the string form.
    pub unit: Option<String>,
    /// What it says.
    pub property: Property,
    /// Index of the section it stands in.
    pub section: usize,
    /// Offset in bytes within that section.
    pub offset: u64,
}

/// All notes of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// In file order. Empty ranges are left out.
    pub notes: Vec<Note>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

/// A run of code of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelRange {
    /// Addresses.
    pub range: Range<u64>,
    /// The level.
    pub level: Level,
    /// Said of a function by itself.
    pub of_function: bool,
}

/// Reads the notes of either form, or `None` where there are none.
pub fn read(image: &Image) -> Option<Notes> {
    let is_note_form = |s: &&Section| s.name.starts_with(b".gnu.build.attributes") && s.has_data();
    let mut found = Notes::default();
    let mut present = false;
    for section in image.sections.iter().filter(is_note_form).filter(|s| s.kind == object::elf::SHT_NOTE) {
        present = true;
        read_section(image, section, &mut found, notes::parse);
    }
    for section in image.sections_named(".annobin.notes").filter(|s| s.has_data()) {
        present = true;
        read_section(image, section, &mut found, strings::parse);
    }
    if present && image.is_relocatable() {
        found.problems.push(Problem::notice(
            "unlocated-build-notes",
            "the build notes of a relocatable file are read without their addresses",
        ));
    }
    present.then_some(found)
}

/// Most notes kept; large programs of distributions have some hundred thousand.
const MOST: usize = 1_000_000;

type Parser = fn(&Image, &Section, &[u8], &mut Notes);

fn read_section(image: &Image, section: &Section, found: &mut Notes, parse: Parser) {
    match sections::contents(image, section, image.limits.section_bytes) {
        Ok(bytes) => parse(image, section, &bytes, found),
        Err(error) => found.problems.push(Problem::damage("unreadable-section", error.to_string())),
    }
}

impl Notes {
    /// Adds a note, or says that there are too many.
    fn push(&mut self, note: Note) -> bool {
        if self.notes.len() >= MOST {
            self.problems
                .push(Problem::damage("too-many-build-notes", format!("only the first {MOST} were read")));
            return false;
        }
        self.notes.push(note);
        true
    }

    /// Levels by address: sorted, without overlap, neighbours of one level joined. What is said of a function by
    /// itself goes before what is said of its unit; where units overlap, the lowest level holds.
    pub fn levels(&self) -> Vec<LevelRange> {
        // A sweep over the borders of all ranges, counting what is open.
        let mut borders: Vec<(u64, bool, Level, bool)> = Vec::new();
        for note in &self.notes {
            let (Some(range), Property::Level(level, _)) = (&note.range, &note.property) else { continue };
            borders.push((range.start, true, *level, note.of_function));
            borders.push((range.end, false, *level, note.of_function));
        }
        borders.sort_unstable_by_key(|border| border.0);
        let mut open = [[0u64; Level::NAMED.len()]; 2];
        let mut ranges: Vec<LevelRange> = Vec::new();
        let mut from = 0;
        for (at, begins, level, of_function) in borders {
            if at > from {
                if let Some((level, of_function)) = lowest(&open) {
                    join(&mut ranges, LevelRange { range: from..at, level, of_function });
                }
                from = at;
            }
            let index = Level::NAMED.iter().position(|named| *named == level);
            let slot = index.and_then(|index| open[usize::from(of_function)].get_mut(index));
            if let Some(count) = slot {
                *count = if begins { count.saturating_add(1) } else { count.saturating_sub(1) };
            }
        }
        ranges
    }

    /// One claim for each level, the lowest first: how many bytes of code, by how many notes.
    pub fn claims(&self, image: &Image) -> Vec<Claim> {
        let ranges = self.levels();
        Level::NAMED
            .into_iter()
            .filter_map(|level| {
                let mut notes =
                    self.notes.iter().filter(|n| matches!(n.property, Property::Level(l, _) if l == level));
                let first = notes.next()?;
                let Property::Level(_, number) = first.property else { return None };
                let of_level = ranges.iter().filter(|range| range.level == level);
                let bytes: u64 =
                    of_level.map(|r| r.range.end.saturating_sub(r.range.start)).fold(0, u64::saturating_add);
                let located = first.range.is_some();
                let count = 1 + notes.count();
                let quote = if located {
                    format!("GOW:{number:#x}, {count} notes, {bytes} bytes of code")
                } else {
                    format!("GOW:{number:#x}, {count} notes")
                };
                Some(Claim {
                    fact: "optimization.level".to_owned(),
                    value: level.as_str().into(),
                    strength: Strength::Recorded,
                    source: Source::Annobin,
                    scope: if located { Scope::Ranges } else { Scope::Some },
                    at: first.place(image),
                    quote: Some(quote),
                })
            })
            .collect()
    }

    /// Compilers named by the notes, each once, in order.
    pub fn tools(&self) -> Vec<&str> {
        let mut tools: Vec<&str> = Vec::new();
        for note in &self.notes {
            if let Property::Tool(tool) = &note.property
                && !tools.contains(&tool.as_str())
                && tools.len() < 64
            {
                tools.push(tool);
            }
        }
        tools
    }
}

impl Note {
    /// Where the note stands.
    pub fn place(&self, image: &Image) -> Option<Place> {
        let name = &image.sections.get(self.section)?.name;
        Some(Place { section: String::from_utf8_lossy(name).into(), offset: self.offset })
    }
}

fn lowest(open: &[[u64; Level::NAMED.len()]; 2]) -> Option<(Level, bool)> {
    [true, false].into_iter().find_map(|of_function| {
        let counts = &open[usize::from(of_function)];
        let index = counts.iter().position(|&count| count > 0)?;
        Some((*Level::NAMED.get(index)?, of_function))
    })
}

fn join(ranges: &mut Vec<LevelRange>, next: LevelRange) {
    match ranges.last_mut() {
        Some(last)
            if last.range.end == next.range.start
                && last.level == next.level
                && last.of_function == next.of_function =>
        {
            last.range.end = next.range.end;
        }
        _ => ranges.push(next),
    }
}

/// The level in a `GOW` number: bits 9–10 hold `-O` (at most 3), bit 11 `-Os`, bit 12 `-Ofast`, bit 13 `-Og`.
fn level_of_gow(number: u64) -> Level {
    let bit = |n: u32| number >> n & 1 == 1;
    match number >> 9 & 3 {
        _ if bit(12) => Level::Ofast,
        _ if bit(13) => Level::Og,
        _ if bit(11) => Level::Os,
        0 => Level::O0,
        1 => Level::O1,
        2 => Level::O2,
        _ => Level::O3,
    }
}

/// `cf_protection` is stored plus one: bit 0 branch, bit 1 return, bit 2 set by hand.
fn control_flow(number: u64) -> Property {
    let bits = number.saturating_sub(1);
    Property::ControlFlow { branch: bits & 1 == 1, returns: bits & 2 == 2 }
}

/// 0xff means that no definition was seen.
fn fortify(number: u64) -> Property {
    Property::Fortify((number <= 3).then_some(number))
}

/// `3p127500`: format, letter of the writer, its version.
fn writer(text: &str) -> Property {
    let mut letters = text.chars().skip(1);
    match letters.next() {
        Some(letter) if !letter.is_ascii_digit() => Property::Writer(letter, letters.collect()),
        _ => Property::Other(format!("version={text}")),
    }
}

#[cfg(test)]
mod tests;
