//! DWARF units and their producers become the units of the facts.

use crate::compiler::Level;
use crate::compiler::options::LevelWord;
use crate::compiler::producer::{self, Family, Producer};
use crate::compiler::{Library, library_of, unit_kind};
use crate::evidence::dwarf_macro::Macros;
use crate::evidence::dwarf_producer::{DwarfUnit, DwarfUnitKind};
use crate::evidence::{Held, Source, Strength};
use crate::facts::{CompilerSeen, Cpu, FlagCount, Problem, Unit, UnitKind};
use crate::parallel;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Units understood, and what their compilers are.
#[derive(Debug, Default)]
pub struct Units {
    /// In the order of the file; partial and type units are left out, they describe no code.
    pub units: Vec<Unit>,
    /// Compilers, most units first.
    pub compilers: Vec<CompilerSeen>,
    /// Index of each unit in the list it was understood from, ascending.
    pub origins: Vec<usize>,
    /// The library each unit is of, if it is one's.
    pub libraries: Vec<Option<Library>>,
    /// What the macros of the units compiled from source tell, of those that have any.
    pub defined: Vec<Arc<Macros>>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

impl Units {
    /// Units of a library are the file's own where the file is that library: its soname says so, or there is
    /// nothing else in it (a separate debug file does not keep the soname). Rust's standard library is prebuilt
    /// and linked in everywhere, so that being alone proves nothing there.
    pub fn own_library(&mut self, soname: Option<&[u8]>) {
        let soname = soname.map(String::from_utf8_lossy);
        let alone = !self.units.iter().any(|unit| unit.kind == UnitKind::Source);
        for (unit, library) in self.units.iter_mut().zip(&self.libraries) {
            let Some(library) = library else { continue };
            let is_file = soname.as_deref().is_some_and(|name| library.is_named(name));
            let rust = unit.compiler.as_deref().is_some_and(|compiler| compiler.starts_with("rustc"));
            if is_file || (alone && !rust) {
                unit.kind = UnitKind::Source;
            }
        }
    }
}

impl Units {
    /// Gives the units of one relocatable file their bytes. Its sections all begin at address 0, so that ranges of
    /// several units cannot be told apart by address: each has what its own ranges sum to. One that is alone has all the
    /// text, with what is assembled in it, padded, or added by the compiler, unless others were `joined` with it (`ld -r`):
    /// asked with the unit's name and the bytes it describes. Returns the bytes that belong to the file's text.
    pub fn share_relocatable(&mut self, text: u64, joined: impl FnOnce(&str, u64) -> bool) -> u64 {
        for unit in &mut self.units {
            unit.text_bytes = unit.ranges.iter().map(|r| r.end.saturating_sub(r.start)).sum();
        }
        match self.units.as_mut_slice() {
            [] => text,
            [unit] => {
                if unit.text_bytes >= text || !joined(&unit.name, unit.text_bytes) {
                    unit.text_bytes = text;
                }
                text
            }
            units => units.iter().map(|unit| unit.text_bytes).sum(),
        }
    }
}

/// Damaged producers that are told one by one.
const GARBLED: usize = 8;

/// What is known of one producer's text.
struct Understood<'a> {
    /// The text, as the unit last seen holds it.
    words: &'a Arc<[u8]>,
    producer: Producer,
    compiler: Arc<str>,
    flags: Arc<Vec<String>>,
    /// Languages of its units, and how many have each.
    languages: Vec<(Option<Arc<str>>, u64)>,
}

impl<'a> Understood<'a> {
    fn new(words: &'a Arc<[u8]>) -> Self {
        let mut producer = producer::parse(words);
        if producer::is_garbled(words) {
            producer.level = LevelWord::unknown("the compiler's words about itself are damaged");
        }
        let compiler = match producer.family {
            Family::Unknown => producer.raw.as_str().into(),
            _ => producer.name().into(),
        };
        let flags = producer.options.list().iter().map(|option| option.text.clone()).collect();
        Self { words, producer, compiler, flags: Arc::new(flags), languages: Vec::new() }
    }
}

/// Directories as text. Neighbours mostly share one.
#[derive(Default)]
struct Directories<'a> {
    last: Option<(&'a Arc<[u8]>, Arc<str>)>,
}

impl<'a> Directories<'a> {
    fn of(&mut self, bytes: &'a Arc<[u8]>) -> Arc<str> {
        match &self.last {
            Some((last, text)) if Arc::ptr_eq(last, bytes) => Arc::clone(text),
            _ => {
                let text: Arc<str> = String::from_utf8_lossy(bytes).into();
                self.last = Some((bytes, Arc::clone(&text)));
                text
            }
        }
    }
}

/// A compiler as units name it: family, version, language, and its own words.
type Named = (String, Option<String>, Option<String>, String);

/// Fewer units than this are understood before a thread has begun.
const SHARE: usize = 256;

/// Understands all units, with so many threads. Equal producers are parsed once by each.
pub fn understand(dwarf: &[DwarfUnit], member: Option<&str>, workers: usize) -> Units {
    let workers = workers.min(dwarf.len() / SHARE).max(1);
    let share = dwarf.len().div_ceil(workers).max(1);
    let shares: Vec<&[DwarfUnit]> = dwarf.chunks(share).collect();
    let understood = parallel::pieces(workers, &shares, || (), |(), share| understand_some(share, member));
    let mut result = Units::default();
    let mut seen: BTreeMap<Named, u64> = BTreeMap::new();
    for (index, (some, named)) in understood.into_iter().enumerate() {
        if index == 0 {
            // There are many, and most often these are all: they stay where they are.
            (result.origins, result.units, result.libraries) = (some.origins, some.units, some.libraries);
            result.units.reserve_exact(dwarf.len().saturating_sub(share));
        } else {
            result.origins.extend(some.origins.into_iter().map(|origin| index * share + origin));
            result.units.extend(some.units);
            result.libraries.extend(some.libraries);
        }
        some.problems.into_iter().for_each(|problem| tell(&mut result.problems, problem));
        for (compiler, units) in named {
            *seen.entry(compiler).or_default() += units;
        }
    }
    result.compilers = seen
        .into_iter()
        .map(|((family, version, language, raw), units)| CompilerSeen {
            family,
            version,
            language,
            units,
            raw,
        })
        .collect();
    result.compilers.sort_by(|a, b| b.units.cmp(&a.units).then_with(|| a.cmp(b)));
    result
}

/// Adds a problem if it is another than those told, and they are few. What is told of all is so among what is told of some:
/// those that come first.
fn tell(told: &mut Vec<Problem>, problem: Problem) {
    if told.len() < GARBLED && !told.contains(&problem) {
        told.push(problem);
    }
}

/// Understands some of the units, and names their compilers with the number of units each.
fn understand_some(dwarf: &[DwarfUnit], member: Option<&str>) -> (Units, Vec<(Named, u64)>) {
    let mut known: HashMap<&[u8], usize> = HashMap::new();
    let mut understood: Vec<Understood<'_>> = Vec::new();
    let mut current = 0;
    let mut directories = Directories::default();
    let mut result = Units::default();
    let described = |unit: &&DwarfUnit| !matches!(unit.kind, DwarfUnitKind::Partial | DwarfUnitKind::Type);
    let count = dwarf.iter().filter(described).count();
    result.units.reserve_exact(count);
    result.origins.reserve_exact(count);
    result.libraries.reserve_exact(count);
    for (index, unit) in dwarf.iter().enumerate() {
        let skeleton = match &unit.kind {
            DwarfUnitKind::Partial | DwarfUnitKind::Type => continue,
            DwarfUnitKind::Skeleton { dwo_name, .. } => Some(dwo_name),
            DwarfUnitKind::Compile => None,
        };
        result.origins.push(index);
        let name = lossy(&unit.name);
        let comp_dir = (!unit.comp_dir.is_empty()).then(|| directories.of(&unit.comp_dir));
        let Some(words) = &unit.producer else {
            let note = match skeleton {
                Some(dwo) => format!("its producer lies in {}, which was not found", lossy(dwo)),
                None => "its producer is not recorded".to_owned(),
            };
            let kind = if skeleton.is_some() { UnitKind::Skeleton } else { UnitKind::Source };
            let name = match skeleton {
                Some(dwo) if name.is_empty() => lossy(dwo),
                _ => name,
            };
            result.units.push(Unit { kind, note: Some(note), ..blank(name, comp_dir, member, unit) });
            result.libraries.push(None);
            continue;
        };
        // Neighbours mostly share their producer; only others are looked up by their text.
        let last = understood.get(current).filter(|last| Arc::ptr_eq(last.words, words));
        if last.is_none() {
            current = *known.entry(words).or_insert_with(|| {
                understood.push(Understood::new(words));
                understood.len() - 1
            });
        }
        let Some(of_words) = understood.get_mut(current) else { continue };
        of_words.words = words;
        let producer = &of_words.producer;
        let kind = unit_kind(producer, &name, comp_dir.as_deref(), unit.language);
        // What is made at link time comes from several units, whatever language is noted for it.
        let language = match kind {
            UnitKind::LtoPartition => producer.language.as_deref(),
            _ => producer.language.as_deref().or_else(|| unit.language.and_then(language_name)),
        };
        let language = count_language(&mut of_words.languages, language);
        let library =
            (kind == UnitKind::Library).then(|| library_of(producer, &name, comp_dir.as_deref())).flatten();
        result.libraries.push(library);
        let flags = Arc::clone(&of_words.flags);
        let known =
            of_producer(&of_words.producer, &of_words.compiler, kind, blank(name, comp_dir, member, unit));
        result.units.push(Unit { language, flags, ..known });
    }
    for of_words in understood.iter().filter(|of_words| producer::is_garbled(of_words.words)) {
        let words: String = of_words.producer.raw.chars().take(60).collect();
        let message = format!("no compiler writes this of itself: {words}");
        tell(&mut result.problems, Problem::damage("damaged-producer", message));
    }
    let mut named = Vec::new();
    for Understood { producer, languages, .. } in &understood {
        for (language, units) in languages {
            let family = producer.family.as_str().to_owned();
            let language = language.as_deref().map(str::to_owned);
            named.push(((family, producer.version.clone(), language, producer.raw.clone()), *units));
        }
    }
    (result, named)
}

/// Counts one more unit of a language, whose name all of them share.
fn count_language(languages: &mut Vec<(Option<Arc<str>>, u64)>, language: Option<&str>) -> Option<Arc<str>> {
    if let Some((name, units)) = languages.iter_mut().find(|(name, _)| name.as_deref() == language) {
        *units += 1;
        return name.clone();
    }
    let name: Option<Arc<str>> = language.map(Into::into);
    languages.push((name.clone(), 1));
    name
}

/// The language of a unit whose producer names none, without its standard (DWARF 5, section 7.12, and later codes).
fn language_name(language: gimli::DwLang) -> Option<&'static str> {
    let name = match language {
        gimli::DW_LANG_C
        | gimli::DW_LANG_C89
        | gimli::DW_LANG_C99
        | gimli::DW_LANG_C11
        | gimli::DW_LANG_C17 => "C",
        gimli::DW_LANG_C_plus_plus
        | gimli::DW_LANG_C_plus_plus_03
        | gimli::DW_LANG_C_plus_plus_11
        | gimli::DW_LANG_C_plus_plus_14
        | gimli::DW_LANG_C_plus_plus_17
        | gimli::DW_LANG_C_plus_plus_20 => "C++",
        gimli::DW_LANG_ObjC => "Objective-C",
        gimli::DW_LANG_ObjC_plus_plus => "Objective-C++",
        gimli::DW_LANG_Fortran77
        | gimli::DW_LANG_Fortran90
        | gimli::DW_LANG_Fortran95
        | gimli::DW_LANG_Fortran03
        | gimli::DW_LANG_Fortran08
        | gimli::DW_LANG_Fortran18 => "Fortran",
        gimli::DW_LANG_Rust => "Rust",
        gimli::DW_LANG_Go => "Go",
        gimli::DW_LANG_D => "D",
        gimli::DW_LANG_Swift => "Swift",
        gimli::DW_LANG_Zig => "Zig",
        gimli::DW_LANG_Ada83 | gimli::DW_LANG_Ada95 | gimli::DW_LANG_Ada2005 | gimli::DW_LANG_Ada2012 => {
            "Ada"
        }
        _ => return None,
    };
    Some(name)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn blank(name: String, comp_dir: Option<Arc<str>>, member: Option<&str>, unit: &DwarfUnit) -> Unit {
    Unit { comp_dir, member: member.map(str::to_owned), ranges: unit.ranges.clone(), ..Unit::unknown(name) }
}

fn of_producer(producer: &Producer, compiler: &Arc<str>, kind: UnitKind, mut unit: Unit) -> Unit {
    unit.kind = kind;
    unit.compiler = Some(Arc::clone(compiler));
    unit.flags_recorded = producer.options.is_known();
    unit.overridden.clone_from(&producer.level.overridden);
    unit.note = producer.level.ambiguous.clone().or_else(|| producer.level.note.clone());
    match kind {
        UnitKind::Assembly => {}
        UnitKind::LtoPartition => {
            unit.note = Some("made at link time: its own -O is not the level of the code".to_owned());
        }
        _ => {
            // What an unquoted value may have swallowed is never a hard verdict.
            unit.level =
                if producer.level.ambiguous.is_some() { Level::Unknown } else { producer.level.level };
            if unit.level != Level::Unknown {
                unit.strength = Strength::Recorded;
                unit.sources = vec![Source::DwarfProducer];
            }
        }
    }
    unit
}

/// Distinct flags of the judged units with the number of units that have each, most first.
pub fn flag_counts(units: &[Unit]) -> Vec<FlagCount> {
    // Units of one program mostly have the same options, one after the other: such runs are counted as one.
    let mut runs: Vec<(&Arc<Vec<String>>, u64)> = Vec::new();
    for unit in units.iter().filter(|u| u.kind == UnitKind::Source) {
        match runs.last_mut() {
            Some((flags, count)) if Arc::ptr_eq(flags, &unit.flags) => *count += 1,
            _ => runs.push((&unit.flags, 1)),
        }
    }
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for (flags, count) in runs {
        let mut mine: Vec<&str> = flags.iter().map(String::as_str).collect();
        mine.sort_unstable();
        mine.dedup();
        for flag in mine {
            *counts.entry(flag).or_default() += count;
        }
    }
    let mut list: Vec<FlagCount> =
        counts.into_iter().map(|(flag, units)| FlagCount { flag: flag.to_owned(), units }).collect();
    list.sort_by(|a, b| b.units.cmp(&a.units).then_with(|| a.flag.cmp(&b.flag)));
    list
}

/// Link-time optimization, as units tell: GCC's link units prove it; recorded options without `-flto` in every
/// unit prove that there was none. Clang's full and thin LTO leave no other trace than their option.
pub fn lto(units: &[Unit]) -> Held<String> {
    if units.iter().any(|u| u.kind == UnitKind::LtoPartition) {
        return Held::new("gcc".to_owned(), Strength::Recorded, Source::DwarfProducer);
    }
    let judged: Vec<&Unit> = units.iter().filter(|u| u.kind == UnitKind::Source).collect();
    if judged.is_empty() || !judged.iter().all(|u| u.flags_recorded) {
        return Held { value: Some("unknown".to_owned()), ..Held::unknown() };
    }
    let clang = |unit: &Unit| unit.compiler.as_deref().is_some_and(|c| c.starts_with("clang"));
    let last =
        |unit: &Unit| unit.flags.iter().rev().find(|f| f.starts_with("-flto") || *f == "-fno-lto").cloned();
    let kinds: Vec<Option<String>> = judged.iter().filter(|u| clang(u)).map(|u| last(u)).collect();
    let value = if kinds.iter().any(|k| k.as_deref() == Some("-flto=thin")) {
        "thin"
    } else if kinds.iter().any(|k| k.as_deref().is_some_and(|k| k.starts_with("-flto"))) {
        "full"
    } else {
        "none"
    };
    Held::new(value.to_owned(), Strength::Recorded, Source::DwarfProducer)
}

/// Compilers that `.comment` names. It says which compilers touched the link, not what they made.
pub fn compilers_named<'a>(idents: impl Iterator<Item = &'a [u8]>) -> Vec<CompilerSeen> {
    let mut list: Vec<CompilerSeen> = idents
        .map(|ident| {
            let raw = lossy(ident);
            let (family, version) = producer::parse_ident(ident);
            let family = family.as_str().to_owned();
            CompilerSeen { family, version, language: None, units: 0, raw }
        })
        .collect();
    list.sort();
    list.dedup();
    list
}

/// The compiler that nginx's text names after `built by`.
pub fn compiler_declared(line: &str) -> Option<CompilerSeen> {
    let (family, version) = crate::nginx::declared::compiler(line)?;
    Some(CompilerSeen {
        family: family.to_owned(),
        version: version.map(str::to_owned),
        language: None,
        units: 0,
        raw: line.to_owned(),
    })
}

/// The processor that recorded options ask for: the highest baseline of any unit, known if every unit with code tells.
/// `flags` are those of the units that do.
pub fn cpu(units: &[Unit], cpu: &mut Cpu) {
    let mut flags: Vec<String> = Vec::new();
    let mut highest: Option<String> = None;
    let mut last: Option<&Arc<Vec<String>>> = None;
    let mut silent = false;
    let own = units.iter().filter(|unit| matches!(unit.kind, UnitKind::Source | UnitKind::Skeleton));
    for unit in own {
        if !unit.flags_recorded {
            silent |= unit.text_bytes > 0;
            continue;
        }
        // Units of one program mostly have the same options.
        if last.is_some_and(|last| Arc::ptr_eq(last, &unit.flags)) {
            continue;
        }
        last = Some(&unit.flags);
        let need = crate::compiler::cpu_need(&unit.flags);
        for flag in need.flags {
            if !flags.contains(&flag) {
                flags.push(flag);
            }
        }
        silent |= need.baseline.is_none() && unit.text_bytes > 0;
        if let Some(baseline) = need.baseline
            && highest.as_deref().is_none_or(|known| known < baseline)
        {
            highest = Some(baseline.to_owned());
        }
    }
    cpu.flags = flags;
    if let Some(highest) = highest.filter(|_| !silent) {
        cpu.baseline = Held::new(highest, Strength::Recorded, Source::DwarfProducer);
    }
}
