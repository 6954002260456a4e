//! What macro definitions in debug information tell, put beside what other witnesses said.

use crate::compiler::Level;
use crate::evidence::dwarf_macro::{self, Macros};
use crate::evidence::dwarf_producer::{DwarfUnit, DwarfUnits};
use crate::evidence::{Claim, Held, Scope, Source, Strength};
use crate::facts::{Conflict, Facts, UnitKind};
use crate::image::Image;
use crate::reconcile::units::Units;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads the macros of units, which were read from the same two files.
pub(super) fn read(image: &Image, supplementary: Option<&Image>, dwarf: &mut DwarfUnits) {
    let found = dwarf_macro::read(image, supplementary, &dwarf.units);
    dwarf.problems.extend(found.problems);
    for (index, macros) in found.units {
        if let Some(unit) = dwarf.units.get_mut(index) {
            unit.defined = Some(Arc::new(macros));
        }
    }
}

/// Gives units without a recorded level the one that their macros tell, and holds the others against it.
pub(super) fn tell_levels(dwarf: &[DwarfUnit], found: &mut Units, facts: &mut Facts) {
    let mut claims: BTreeMap<(Level, Vec<&'static str>), (u64, String)> = BTreeMap::new();
    let mut differ: BTreeMap<(Level, Level), Vec<String>> = BTreeMap::new();
    let mut defined = Vec::new();
    for (unit, origin) in found.units.iter_mut().zip(&found.origins) {
        let Some(macros) = dwarf.get(*origin).and_then(|unit| unit.defined.as_ref()) else { continue };
        if unit.kind == UnitKind::Source {
            defined.push(Arc::clone(macros));
        }
        if macros.level == Level::Unknown
            || matches!(unit.kind, UnitKind::Assembly | UnitKind::LtoPartition | UnitKind::Skeleton)
        {
            continue;
        }
        if unit.kind == UnitKind::Source {
            let claim = claims.entry((macros.level, macros.level_words.clone()));
            claim.or_insert_with(|| (0, unit.name.clone())).0 += 1;
        }
        if unit.level == Level::Unknown {
            unit.level = macros.level;
            unit.strength = Strength::Recorded;
            unit.sources = vec![Source::DwarfMacro];
            unit.note = None;
        } else if agree(unit.level, macros.level) {
            unit.sources.push(Source::DwarfMacro);
        } else if unit.kind == UnitKind::Source {
            differ.entry((unit.level, macros.level)).or_default().push(unit.name.clone());
        }
    }
    let claim = |level: Level, source: Source, quote: String| Claim {
        fact: "optimization.level".to_owned(),
        value: json!(level),
        strength: Strength::Recorded,
        source,
        scope: Scope::Unit,
        at: None,
        quote: Some(quote),
    };
    for ((level, words), (count, name)) in claims {
        let quote = format!("{count} units, such as {name}: {} predefined", words.join(" and "));
        facts.optimization.claims.push(claim(level, Source::DwarfMacro, quote));
    }
    for ((recorded, told), names) in differ {
        let quote = listed(&names);
        facts.conflicts.push(Conflict {
            fact: "optimization.level".to_owned(),
            claims: vec![
                claim(recorded, Source::DwarfProducer, quote.clone()),
                claim(told, Source::DwarfMacro, quote),
            ],
        });
    }
    found.defined = defined;
}

/// Whether a recorded level can go with what macros tell: that the optimizer ran, and whether for size.
fn agree(recorded: Level, told: Level) -> bool {
    let size = matches!(recorded, Level::Os | Level::Oz);
    match told {
        Level::O0 => recorded == Level::O0,
        Level::Os => size || recorded == Level::Optimized,
        _ => recorded != Level::O0 && !size,
    }
}

/// Takes over what macros tell of the whole: debug build, assertions, checked calls.
pub(super) fn tell_rest(defined: &[Arc<Macros>], facts: &mut Facts) {
    if defined.is_empty() {
        return;
    }
    let debug = defined.iter().filter_map(|macros| macros.nginx_debug);
    if let Some(on) = debug.reduce(|one, other| one || other) {
        if let Some(nginx) = &mut facts.nginx {
            hold("nginx.debug", on, &mut nginx.debug, &mut facts.conflicts);
        }
        hold("nginx.debug", on, &mut facts.instrumentation.debug_build, &mut Vec::new());
    }
    if defined.iter().any(|macros| macros.postgresql_assertions) {
        let assertions = &mut facts.instrumentation.assertions;
        hold("instrumentation.assertions", true, assertions, &mut facts.conflicts);
    }
    if let Some(value) = fortified(defined) {
        let held = &mut facts.hardening.fortify;
        // Imports without a checked function are no proof against a record: level 1 leaves `printf` as it is, and a function
        // that is called through a pointer keeps its name.
        let weaker = |known: &str| known == "unknown" || known == "no" && value != "no";
        if held.value.as_deref().is_none_or(weaker) {
            *held = Held::new(value.to_owned(), Strength::Recorded, Source::DwarfMacro);
        } else if held.value.as_deref() == Some(value) {
            held.sources.push(Source::DwarfMacro);
        }
    }
}

/// What glibc's headers made of `_FORTIFY_SOURCE` in the units that include any. That a unit asked for it says nothing:
/// without optimization, and with another C library, it has no effect.
fn fortified(defined: &[Arc<Macros>]) -> Option<&'static str> {
    let levels: Vec<u8> = defined.iter().filter_map(|macros| macros.fortify_level).collect();
    let on = levels.iter().filter(|level| **level > 0).count();
    match (levels.len(), on) {
        (0, _) => None,
        (_, 0) => Some("no"),
        (all, on) if all == on => Some("yes"),
        _ => Some("partial"),
    }
}

/// Puts a recorded value beside one that is known already; a disagreement is kept, and the record wins.
fn hold(fact: &str, value: bool, held: &mut Held<bool>, conflicts: &mut Vec<Conflict>) {
    if held.value == Some(value) {
        if !held.sources.contains(&Source::DwarfMacro) {
            held.strength = Strength::Recorded;
            held.sources.insert(0, Source::DwarfMacro);
        }
        return;
    }
    if let (Some(known), Some(source)) = (held.value, held.sources.first()) {
        let claim = |value: bool, strength, source| Claim {
            fact: fact.to_owned(),
            value: json!(value),
            strength,
            source,
            scope: Scope::File,
            at: None,
            quote: None,
        };
        conflicts.push(Conflict {
            fact: fact.to_owned(),
            claims: vec![
                claim(known, held.strength, *source),
                claim(value, Strength::Recorded, Source::DwarfMacro),
            ],
        });
    }
    *held = Held::new(value, Strength::Recorded, Source::DwarfMacro);
}

/// `a.c`, `a.c and 3 more`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    }
}
