//! Macro definitions in debug information: `-g3` with GCC, `-fdebug-macro` with clang.
//!
//! Sources: DWARF 5 section 6.3 (`.debug_macro`), GNU's form of it for DWARF 4, and `.debug_macinfo` of DWARF 2 to 4.
//! A compiler writes down the macros it predefines as of line 0, and these tell more than its options do: `__OPTIMIZE__`
//! is there exactly where the optimizer ran, `__NO_INLINE__` alone exactly where it did not (GCC manual, "Common Predefined
//! Macros"; measured with GCC 12 and clang 19). A pragma that changes them for some functions does so on a later line.
//!
//! Only a handful of names is looked for. Where texts stand in `.debug_str`, that section is searched once for them,
//! so that following a definition costs a comparison of offsets and no string is read.

use super::dwarf_producer::family::Family;
use super::dwarf_producer::notes::Notes;
use super::dwarf_producer::{DwarfUnit, DwarfUnitKind};
use crate::compiler::Level;
use crate::facts::Problem;
use crate::image::{Image, SectionData, SectionReader};
use gimli::{
    DebugMacinfo, DebugMacinfoOffset, DebugMacro, DebugMacroOffset, MacroEntry, MacroIter, MacroString,
    Reader,
};
use std::collections::HashMap;
use std::rc::Rc;

mod strings;
#[cfg(test)]
mod tests;

use strings::Strings;

/// The names that tell something.
const NAMES: [&str; 8] = [
    "__OPTIMIZE__",
    "__OPTIMIZE_SIZE__",
    "__NO_INLINE__",
    "NGX_DEBUG",
    "NGX_CONFIGURE",
    "_FORTIFY_SOURCE",
    "__USE_FORTIFY_LEVEL",
    "USE_ASSERT_CHECKING",
];
/// Longest value kept, in bytes: all of them are small numbers.
const VALUE: usize = 32;
/// Files include files that include files; imports follow them.
const DEPTH: usize = 200;
/// Definitions of one list after which those that later ones replace are dropped.
const HELD: usize = 64;
/// Most lists kept of one file, and most definitions in all of them: some 60 MiB together. A header that several units
/// include has one list, and few of them define a name that tells something.
const LISTS: usize = 1 << 18;
const EVENTS: usize = 1 << 19;
/// One part in this many of the limit on attributes is spent on macros.
const SHARE: u64 = 2;
/// Largest compressed sections inflated whole.
const WHOLE: u64 = 48 << 20;

/// Where the list of a unit's macros begins, as its root entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacroList {
    /// Offset in bytes in `.debug_macro`, or in `.debug_macinfo`.
    pub offset: u64,
    /// In `.debug_macinfo`.
    pub old: bool,
    /// Where the unit's part of `.debug_str_offsets` begins, in bytes.
    pub str_offsets: u64,
    /// Offsets have 8 bytes.
    pub is_64: bool,
}

/// What the macros of one unit tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Macros {
    /// `O0`, `optimized`, or `Os` for either of `-Os` and `-Oz`; `Unknown` where the predefined macros are not there.
    pub level: Level,
    /// The predefined macros that say so.
    pub level_words: Vec<&'static str>,
    /// `NGX_DEBUG`: nginx was configured `--with-debug`. `None` where neither it nor nginx's own configuration is there.
    pub nginx_debug: Option<bool>,
    /// `_FORTIFY_SOURCE` as given.
    pub fortify_source: Option<String>,
    /// What glibc's headers made of it (`__USE_FORTIFY_LEVEL`): 0 where the unit is not optimized. `None` where no such
    /// header was included.
    pub fortify_level: Option<u8>,
    /// `USE_ASSERT_CHECKING` of PostgreSQL.
    pub postgresql_assertions: bool,
}

/// One definition (with its value) or removal of a name that tells something.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    name: usize,
    line: u64,
    value: Option<String>,
}

/// Macros by index of the unit in the list given, and what is damaged or hit a limit.
#[derive(Debug, Default)]
pub struct UnitMacros {
    /// Of the units that have any.
    pub units: Vec<(usize, Macros)>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

/// Reads the macros of `units`, as [`super::dwarf_producer::read`] listed them for the same two files.
pub fn read(image: &Image, supplementary: Option<&Image>, units: &[DwarfUnit]) -> UnitMacros {
    let mut out = UnitMacros::default();
    if units.iter().all(|unit| unit.macros.is_none()) {
        return out;
    }
    let mut notes = Notes::new(&image.limits);
    let mut steps = image.limits.die_attributes / SHARE;
    for family in [Family::Plain, Family::Split] {
        let of_family = |unit: &DwarfUnit| {
            let split = unit.at.section.rsplit_once('.').is_some_and(|(_, part)| part == "dwo");
            split == (family == Family::Split)
        };
        let chosen: Vec<(usize, MacroList)> = units
            .iter()
            .enumerate()
            .filter(|(_, unit)| of_family(unit))
            .filter_map(|(index, unit)| Some((index, unit.macros?)))
            .collect();
        if chosen.is_empty() {
            continue;
        }
        let mut files = vec![File::open(image, family, &mut notes)];
        files.extend(supplementary.map(|file| File::open(file, family, &mut notes)));
        let mut walk = Walk {
            files: &files,
            known: HashMap::new(),
            events: 0,
            follow: !image.is_relocatable(),
            steps: &mut steps,
            notes: &mut notes,
        };
        if image.is_relocatable() {
            // Headers' macros stand in sections of their own, one a COMDAT group, all of the same name: which of
            // them an import means cannot be told, and of a file with one unit all of them are that unit's.
            let whole = units.iter().filter(|unit| unit.kind == DwarfUnitKind::Compile && of_family(unit));
            if whole.count() == 1
                && let [(index, list)] = chosen.as_slice()
                && let Some(events) = walk.all(list)
            {
                out.units.push((*index, Macros::of(&events)));
            }
            continue;
        }
        for (index, list) in chosen {
            if let Some(events) = walk.list(0, list.offset, &list, 0) {
                out.units.push((index, Macros::of(&events)));
            }
        }
    }
    out.problems = notes.into_problems();
    out
}

impl Macros {
    fn of(events: &[Event]) -> Self {
        let mut last: [Option<&Event>; NAMES.len()] = [None; NAMES.len()];
        let mut predefined = [false; NAMES.len()];
        for event in events {
            if let Some(place) = last.get_mut(event.name) {
                *place = event.value.is_some().then_some(event);
            }
            if let Some(place) = predefined.get_mut(event.name).filter(|_| event.line == 0) {
                *place = event.value.is_some();
            }
        }
        let value = |name: &str| {
            let index = NAMES.iter().position(|known| *known == name)?;
            last.get(index).copied().flatten().and_then(|event| event.value.clone())
        };
        let [optimize, size, no_inline, ..] = predefined;
        let level = match (optimize, size, no_inline) {
            (true, true, _) => Level::Os,
            (true, false, _) => Level::Optimized,
            (false, _, true) => Level::O0,
            (false, ..) => Level::Unknown,
        };
        let words = NAMES.iter().zip(predefined).take(3).filter(|(_, there)| *there);
        let on = |name: &str| value(name).is_some_and(|value| value != "0");
        Self {
            level,
            level_words: words.map(|(name, _)| *name).collect(),
            nginx_debug: (value("NGX_DEBUG").is_some() || value("NGX_CONFIGURE").is_some())
                .then(|| on("NGX_DEBUG")),
            fortify_source: value("_FORTIFY_SOURCE"),
            fortify_level: value("__USE_FORTIFY_LEVEL").and_then(|value| value.parse().ok()),
            postgresql_assertions: on("USE_ASSERT_CHECKING"),
        }
    }
}

/// Drops what later definitions replace: of each name the last is needed, and the last of those as of line 0.
fn settle(events: &mut Vec<Event>) {
    let mut seen = [(false, false); NAMES.len()];
    let mut kept: Vec<Event> = Vec::with_capacity(events.len().min(2 * NAMES.len()));
    for event in events.drain(..).rev() {
        let Some((last, predefined)) = seen.get_mut(event.name) else { continue };
        let needed = !*last || event.line == 0 && !*predefined;
        *last = true;
        *predefined |= event.line == 0;
        if needed {
            kept.push(event);
        }
    }
    kept.reverse();
    *events = kept;
}

/// The sections of one file that macros need.
struct File {
    /// `.debug_macro`, of which a relocatable file has several.
    macros: Vec<SectionData>,
    /// `.debug_macinfo`.
    old: Vec<SectionData>,
    strings: Strings,
}

impl File {
    fn open(image: &Image, family: Family, notes: &mut Notes) -> Self {
        let mut memory = WHOLE;
        let mut all = |part: &str| {
            let mut list = Vec::new();
            for section in family.all(image, part) {
                match SectionData::open(image, section, &mut memory) {
                    Ok(data) => list.push(data),
                    Err(error) => notes.read_error("debug-macro", &error),
                }
            }
            list
        };
        let (macros, old) = (all("macro"), all("macinfo"));
        let needed = !macros.is_empty();
        let strings = if needed { Strings::search(image, family, notes) } else { Strings::default() };
        Self { macros, old, strings }
    }
}

/// File, section, offset, and the strings of the unit that refers to it.
type ListAt = (usize, usize, u64, u64);

/// One walk over lists.
struct Walk<'a> {
    files: &'a [File],
    /// Lists already read, by file, section and offset. `None` where one is being read: it imports itself.
    known: HashMap<ListAt, Option<Rc<Vec<Event>>>>,
    /// Definitions in them.
    events: usize,
    /// Whether imports are followed. Lists of a relocatable file are read one by one.
    follow: bool,
    steps: &'a mut u64,
    notes: &'a mut Notes,
}

impl Walk<'_> {
    /// The events of the list at `offset`; `None` if it cannot be read whole, since what is missing might say otherwise.
    fn list(&mut self, file: usize, offset: u64, unit: &MacroList, depth: usize) -> Option<Rc<Vec<Event>>> {
        let files = self.files;
        let sections = files.get(file).map(|file| if unit.old { &file.old } else { &file.macros })?;
        let Some(section) = sections.first() else {
            let name = if unit.old { ".debug_macinfo" } else { ".debug_macro" };
            self.notes.damage("damaged-debug-macro", || {
                format!("units refer to a section {name} that is not there")
            });
            return None;
        };
        self.section(section, (file, 0, offset), unit, depth)
    }

    /// The events of all lists of a relocatable file.
    fn all(&mut self, unit: &MacroList) -> Option<Rc<Vec<Event>>> {
        let files = self.files;
        let file = files.first()?;
        let mut events = Vec::new();
        for (index, section) in (if unit.old { &file.old } else { &file.macros }).iter().enumerate() {
            events.extend(self.section(section, (0, index, 0), unit, 0)?.iter().cloned());
            settle(&mut events);
        }
        Some(Rc::new(events))
    }

    fn section(
        &mut self,
        section: &SectionData,
        (file, index, offset): (usize, usize, u64),
        unit: &MacroList,
        depth: usize,
    ) -> Option<Rc<Vec<Event>>> {
        let key = (file, index, offset, unit.str_offsets);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= LISTS || self.events >= EVENTS {
            *self.steps = 0;
        }
        self.known.insert(key, None);
        let name = &section.name;
        let found = self.entries(section, (file, offset), unit, depth);
        match found {
            Ok(mut events) => {
                settle(&mut events);
                self.events += events.len();
                let events = Rc::new(events);
                self.known.insert(key, Some(Rc::clone(&events)));
                Some(events)
            }
            Err(why) => {
                let why = section.take_failure().unwrap_or(why);
                let code = if *self.steps == 0 { "too-many-debug-attributes" } else { "damaged-debug-macro" };
                self.notes.damage(code, || format!("macros at {name}+{offset:#x}: {why}"));
                None
            }
        }
    }

    fn entries(
        &mut self,
        section: &SectionData,
        (file, offset): (usize, u64),
        unit: &MacroList,
        depth: usize,
    ) -> Result<Vec<Event>, String> {
        let text = |error: gimli::Error| error.to_string();
        let mut list: MacroIter<SectionReader<'_>> = if unit.old {
            DebugMacinfo::from(section.reader()).get_macinfo(DebugMacinfoOffset(offset)).map_err(text)?
        } else {
            DebugMacro::from(section.reader()).get_macros(DebugMacroOffset(offset)).map_err(text)?
        };
        let mut events: Vec<Event> = Vec::new();
        let lost = || "what it imports cannot be read".to_owned();
        while let Some(entry) = list.next().map_err(text)? {
            *self.steps = self.steps.saturating_sub(1);
            if *self.steps == 0 {
                return Err("the limit of attributes is reached".to_owned());
            }
            match entry {
                MacroEntry::Define { line, text } => {
                    events.extend(self.event(file, line, &text, unit, true)?);
                }
                MacroEntry::Undef { line, name } => {
                    events.extend(self.event(file, line, &name, unit, false)?);
                }
                MacroEntry::Import { .. } | MacroEntry::ImportSup { .. } if !self.follow => {}
                MacroEntry::Import { .. } | MacroEntry::ImportSup { .. } if depth >= DEPTH => {
                    return Err(format!("imports are nested more than {DEPTH} deep"));
                }
                MacroEntry::Import { offset } => {
                    let found = self.list(file, offset.0, unit, depth + 1).ok_or_else(lost)?;
                    events.extend(found.iter().cloned());
                }
                MacroEntry::ImportSup { offset } => {
                    // The file that dwz made has what several programs define alike.
                    let found = self.list(1, offset.0, unit, depth + 1).ok_or_else(lost)?;
                    events.extend(found.iter().cloned());
                }
                MacroEntry::StartFile { .. } | MacroEntry::EndFile | MacroEntry::VendorExt { .. } => {}
            }
            if events.len() > HELD {
                settle(&mut events);
            }
        }
        Ok(events)
    }

    /// A definition or removal, if it is of a name that tells something.
    fn event(
        &self,
        file: usize,
        line: u64,
        text: &MacroString<SectionReader<'_>>,
        unit: &MacroList,
        defined: bool,
    ) -> Result<Option<Event>, String> {
        let found = match text {
            MacroString::Direct(bytes) => {
                let mut start = *bytes;
                let longest = start.len().min(VALUE as u64 * 2);
                start.truncate(longest).map_err(|error| error.to_string())?;
                strings::tells(&start.to_slice().map_err(|error| error.to_string())?)
            }
            MacroString::StringPointer(offset) => self.files.get(file).and_then(|f| f.strings.at(offset.0)),
            MacroString::Supplementary(offset) => self.files.get(1).and_then(|f| f.strings.at(offset.0)),
            MacroString::IndirectStringPointer(index) => self
                .files
                .get(file)
                .map(|f| f.strings.at_index(unit.str_offsets, index.0, unit.is_64))
                .transpose()?
                .flatten(),
        };
        Ok(found.map(|(name, value)| Event { name, line, value: defined.then_some(value) }))
    }
}
