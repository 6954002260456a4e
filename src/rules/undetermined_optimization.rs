//! Nothing tells, or not firmly enough, whether code meets the level the policy asks for.
//!
//! # What it checks
//!
//! Units whose level is unknown, units and code that are optimized without the minimum being proven, levels that rest on
//! weaker ground than `optimization.evidence` accepts, and text that nothing describes. Code already reported as
//! unoptimized is not reported again.
//!
//! ```text
//! error[undetermined-optimization]: nothing tells the level of 2 of 40 units, 8.1 % of the text
//!   known   src/lookup.c: clang recorded no options
//!   fix     give an unstripped build or its debug information (--debug-file, --debug-dir)
//! ```
//!
//! # Why it matters
//!
//! What is unknown may be -O0. A gate that passes what it cannot see lets through exactly the build it was set up to stop:
//! the one whose debug information was stripped, or whose build system recorded nothing.
//!
//! # How to fix
//!
//! Give what settles it: an unstripped build, or its separate debug information with `--debug-file` or `--debug-dir`
//! (`.dwo` files too). Let the build record its options: GCC does with -g, clang with `-grecord-command-line`;
//! `-frecord-gcc-switches` survives stripping. If a weaker ground is good enough, say so in `optimization.evidence`, or
//! lower the severity of the question in the policy.
//!
//! # Policy keys
//!
//! `optimization.undetermined` (may be -O0), `optimization.optimized-unproven` (optimized, but the minimum is not proven),
//! `optimization.too-small` (no words, and fewer than 15 functions to judge), `optimization.evidence` (`recorded`,
//! `corroborated`, `declared`), `optimization.exempt`, `optimization.libraries.undetermined`.
//!
//! # Evidence
//!
//! The account of the text: every byte of it is recorded, structural, declared, inferred or unknown. A declaration is
//! ground for a pass only where the code was read and agrees; code that was not read agrees with nothing.
//!
//! # Limits
//!
//! Up to 4 KiB and 1 % of the text that remain unknown in a file that was otherwise judged are a note: single small
//! functions have no shape. Code shape seldom tells -O1 from -O2 with clang, or -O2 from -O3 with any compiler.

use super::check::{Context, Draft, Kindness, Outcome, UnitHit};
use super::{Rule, levels};
use crate::compiler::{Level, Satisfies};
use crate::evidence::{Source, Strength};
use crate::facts::{Facts, Kind, TextAccount, Unit, UnitKind};
use crate::finding::{RangeRef, Severity};
use crate::policy::{At, Ground, Setting};
use crate::wording::{grouped, percent, plural};

mod whole_file;

/// The rule.
pub const RULE: Rule = Rule {
    id: "undetermined-optimization",
    severity: Severity::Error,
    keys: &[
        "optimization.undetermined",
        "optimization.optimized-unproven",
        "optimization.too-small",
        "optimization.evidence",
    ],
    source: include_str!("undetermined_optimization.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let policy = &context.policy.optimization;
    let Some(minimum) = policy.minimum.as_ref().or(policy.recommended.as_ref()) else {
        return Outcome::NotAsked;
    };
    if let Some(reason) = levels::nothing_to_judge(context.facts) {
        return Outcome::NotChecked(reason.to_owned());
    }
    if minimum.value == Level::O0 {
        return Outcome::Checked(Vec::new());
    }
    let own = levels::own_units(context.facts);
    let mut drafts = Vec::new();
    if own.is_empty() {
        drafts.extend(whole_file::about_file(context, minimum));
    } else {
        let judged = levels::judged_units(context);
        drafts.extend(about_unknown(context, &judged));
        drafts.extend(about_unproven(context, &judged, minimum));
        drafts.extend(about_ground(context, &judged, minimum));
    }
    drafts.extend(about_libraries(context));
    Outcome::Checked(drafts)
}

/// What settles it.
fn remedy(facts: &Facts) -> String {
    let missing = facts.debug_info.missing.first();
    let unknown = levels::own_units(facts).into_iter().filter(|unit| unit.level == Level::Unknown);
    let later = unknown.clone().next().is_some() && unknown.into_iter().all(|unit| unit.intermediate);
    let text = match (facts.debug_info.present, missing) {
        _ if later => "judge the program or library that it is linked into".to_owned(),
        (_, Some(name)) => format!("give the missing debug information ({name}) with --debug-file or --debug-dir"),
        (false, None) => levels::reveal(facts).to_owned(),
        (true, None) => {
            "let the build record its options: -g with GCC, -grecord-command-line with clang, or -frecord-gcc-switches".to_owned()
        }
    };
    if facts.elf.is_none() {
        "give the binary itself: a printed text has no code to look at".to_owned()
    } else {
        text
    }
}

/// A draft under a policy setting; none where the policy ignores the question.
fn under<'a>(draft: Draft<'a>, setting: &At<Setting>, facts: &Facts) -> Option<Draft<'a>> {
    match setting.value {
        Setting::Ignore => None,
        Setting::Report(severity) => {
            let draft = draft.severity(severity).policy(&setting.at);
            Some(if draft.remedy.is_some() { draft } else { draft.remedy(remedy(facts)) })
        }
    }
}

/// Text that nothing describes, less what belongs to units that are listed anyway or are not judged here.
fn loose_text(context: &Context<'_>) -> u64 {
    let facts = context.facts;
    let text = &facts.optimization.text;
    // The text of link-time partitions is spoken for by the units they were made from, if those are there.
    let partitions = levels::stands_for_partitions(facts);
    let spoken_for = |unit: &Unit| match unit.kind {
        UnitKind::Assembly | UnitKind::Toolchain => false,
        UnitKind::LtoPartition => partitions,
        UnitKind::Source | UnitKind::Library | UnitKind::Skeleton => true,
    };
    let of_units = facts
        .units
        .as_deref()
        .unwrap_or_default()
        .iter()
        .filter(|unit| unit.level == Level::Unknown && spoken_for(unit))
        .fold(0_u64, |sum, unit| sum.saturating_add(unit.text_bytes));
    text.unknown.saturating_sub(of_units)
}

/// Ranges of functions about which nothing was found out.
fn unknown_ranges(facts: &Facts) -> Vec<RangeRef> {
    facts.functions.runs.iter().filter(|run| run.level == Level::Unknown).map(RangeRef::of).collect()
}

/// Whether the file has too few functions to judge, and so little code that this is no accident.
fn too_few(facts: &Facts, unknown: u64) -> bool {
    let functions = &facts.functions;
    if facts.elf.as_ref().is_none_or(|elf| elf.packed) || functions.judged >= levels::ENOUGH_FUNCTIONS {
        return false;
    }
    match functions.count {
        // Without an account of the text, nothing shows that it is small.
        0 => unknown <= TextAccount::FEW_BYTES && facts.optimization.text.bytes > 0,
        some if some < levels::ENOUGH_FUNCTIONS => true,
        // Many functions and none judged: the code was not read, which is another matter.
        _ => functions.judged > 0 && unknown <= 16 * TextAccount::FEW_BYTES,
    }
}

/// Units of unknown level, and text that no unit describes: one fact, one finding.
fn about_unknown<'a>(context: &Context<'a>, judged: &[&'a Unit]) -> Option<Draft<'a>> {
    let facts = context.facts;
    let policy = &context.policy.optimization;
    let text = facts.optimization.text;
    let units: Vec<UnitHit<'a>> = judged
        .iter()
        .filter(|unit| unit.level == Level::Unknown)
        .filter(|unit| !spoken_for(context, unit))
        .map(|unit| UnitHit { unit, level: Level::Unknown })
        .collect();
    let loose = loose_text(context);
    if units.is_empty() && loose == 0 {
        return None;
    }
    let unit_bytes = units.iter().fold(0_u64, |sum, hit| sum.saturating_add(hit.unit.text_bytes));
    let (total, judged_bytes) = (judged.len() as u64, text.bytes);
    let mut known = reasons(&units);
    if loose > 0 {
        known.push(format!(
            "{} bytes of text that no unit describes and whose code tells nothing",
            grouped(loose)
        ));
    }
    let ranges = unknown_ranges(facts);
    let functions = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.functions));
    // How much code intermediate code will be, nobody knows.
    let unbounded = units.iter().any(|hit| hit.unit.intermediate);
    let needs_record = policy.evidence.value == Ground::Recorded;
    let few = !needs_record && !unbounded && too_few(facts, unit_bytes.saturating_add(loose))
        || (!needs_record
            && units.is_empty()
            && facts.functions.judged < levels::ENOUGH_FUNCTIONS
            && if functions > 0 {
                functions < levels::ENOUGH_FUNCTIONS
            } else {
                loose <= TextAccount::FEW_BYTES
            });
    // A separate debug file describes code that lies elsewhere: what it leaves out can only be judged there.
    let elsewhere = facts.elf.as_ref().is_some_and(|elf| elf.kind == Kind::SeparateDebug);
    let note = units.is_empty() && (elsewhere || text.is_remnant(loose));
    if elsewhere && loose > 0 {
        known.push("the code itself is not in this file".to_owned());
    }
    let key = if units.is_empty() { "text" } else { "units" };
    let draft = Draft::about_units(Kindness::Undetermined, key, units, move |units| {
        let bytes = units.iter().fold(0_u64, |sum, hit| sum.saturating_add(hit.unit.text_bytes));
        // Text is not accounted for in relocatable files.
        let share = match judged_bytes {
            0 => String::new(),
            _ if unbounded && bytes == 0 && loose == 0 => String::new(),
            whole => format!(", {} % of the text", percent(bytes.saturating_add(loose), whole)),
        };
        match (units.len() as u64, loose) {
            (0, _) => format!("nothing tells the level of {} bytes of code{share}", grouped(loose)),
            (number, 0) => {
                format!("nothing tells the level of {} of {}{share}", grouped(number), plural(total, "unit"))
            }
            (number, _) => format!(
                "nothing tells the level of {} of {} and of {} bytes beside them{share}",
                grouped(number),
                plural(total, "unit"),
                grouped(loose)
            ),
        }
    });
    let draft =
        draft.evidence(Strength::None, &[]).known(known).besides_units(loose > 0).ranges(ranges, Vec::new());
    let setting = if few { &policy.too_small } else { &policy.undetermined };
    let draft = under(draft, setting, facts)?;
    Some(if note { draft.at_most(Severity::Note) } else { draft })
}

/// A unit of unknown level whose code was found to be unoptimized is reported as such, not as unknown.
fn spoken_for(context: &Context<'_>, unit: &Unit) -> bool {
    context.facts.functions.runs.iter().any(|run| {
        run.level == Level::O0
            && levels::unit_of_run(context.facts, run).is_some_and(|found| std::ptr::eq(found, unit))
    })
}

/// Why units are unknown: each reason once, with the first unit and a count.
fn reasons(units: &[UnitHit<'_>]) -> Vec<String> {
    let mut found: Vec<(&str, &str, u64)> = Vec::new();
    for hit in units {
        let reason = hit.unit.note.as_deref().unwrap_or(match hit.unit.kind {
            UnitKind::Skeleton => "its .dwo file was not found",
            _ => "the compiler recorded no options",
        });
        match found.iter_mut().find(|(known, _, _)| *known == reason) {
            Some((_, _, number)) => *number += 1,
            None => found.push((reason, &hit.unit.name, 1)),
        }
    }
    found
        .into_iter()
        .map(|(reason, name, number)| match number {
            1 => format!("{name}: {reason}"),
            _ => format!("{name} and {} more: {reason}", grouped(number - 1)),
        })
        .collect()
}

/// Optimized, but the minimum is not proven: units, and code that no unit describes.
fn about_unproven<'a>(context: &Context<'a>, judged: &[&'a Unit], minimum: &At<Level>) -> Option<Draft<'a>> {
    // Where only a record passes, what has none lacks that first.
    let needs_record = context.policy.optimization.evidence.value == Ground::Recorded;
    let units: Vec<UnitHit<'a>> = judged
        .iter()
        .filter(|unit| unit.level == Level::Optimized)
        .filter(|unit| !needs_record || levels::grounded(context, unit.strength, &unit.sources, true))
        .filter(|unit| {
            levels::sharpened(context, unit.level).satisfies(minimum.value) == Satisfies::NotProven
        })
        .map(|unit| UnitHit::from(*unit))
        .collect();
    let facts = context.facts;
    let of_units = facts
        .units
        .as_deref()
        .unwrap_or_default()
        .iter()
        .filter(|unit| unit.level == Level::Optimized)
        .fold(0_u64, |sum, unit| sum.saturating_add(unit.text_bytes));
    let shown: u64 = facts
        .optimization
        .by_level
        .iter()
        .filter(|share| share.level == Level::Optimized)
        .fold(0, |sum, share| sum.saturating_add(share.text_bytes));
    let open = levels::sharpened(context, Level::Optimized).satisfies(minimum.value) == Satisfies::NotProven;
    let loose = if open && !needs_record { shown.saturating_sub(of_units) } else { 0 };
    if units.is_empty() && loose == 0 {
        return None;
    }
    let (total, wanted) = (judged.len() as u64, minimum.value);
    let draft = Draft::about_units(Kindness::Undetermined, "unproven", units, move |units| {
        let what = match (units.len() as u64, loose) {
            (0, _) => format!("{} bytes of text are", grouped(loose)),
            (1, 0) => format!("1 of {} is", plural(total, "unit")),
            (number, 0) => format!("{} of {} are", grouped(number), plural(total, "unit")),
            (number, _) => {
                format!(
                    "{} of {} and {} bytes beside them are",
                    grouped(number),
                    plural(total, "unit"),
                    grouped(loose)
                )
            }
        };
        format!(
            "{what} optimized, but {} is not proven (policy: at least {})",
            wanted.flag(),
            wanted.as_str()
        )
    });
    let draft =
        if draft.units.is_empty() { draft.evidence(Strength::Inferred, &[Source::CodeShape]) } else { draft };
    under(draft.besides_units(loose > 0), &context.policy.optimization.optimized_unproven, facts)
}

/// Levels that meet the minimum on weaker ground than the policy accepts.
fn about_ground<'a>(context: &Context<'a>, judged: &[&'a Unit], minimum: &At<Level>) -> Option<Draft<'a>> {
    let facts = context.facts;
    let policy = &context.policy.optimization;
    let units: Vec<UnitHit<'a>> = judged
        .iter()
        .filter(|unit| unit.level != Level::Unknown)
        .filter(|unit| {
            let level = levels::sharpened(context, unit.level);
            let met = level.satisfies(minimum.value);
            met == Satisfies::Yes
                || met == Satisfies::NotProven && policy.evidence.value == Ground::Recorded
                || policy.allow.iter().any(|allowed| allowed.value == unit.level)
        })
        .filter(|unit| !levels::grounded(context, unit.strength, &unit.sources, true))
        .map(|unit| UnitHit::from(*unit))
        .collect();
    // Text of no unit that rests on words alone, or, where the policy wants a record, on anything but a record.
    let of_units = |strength: Strength| {
        facts
            .units
            .as_deref()
            .unwrap_or_default()
            .iter()
            .filter(|unit| unit.strength == strength)
            .fold(0_u64, |sum, unit| sum.saturating_add(unit.text_bytes))
    };
    let text = &facts.optimization.text;
    let beside = |bytes: u64, strength: Strength| bytes.saturating_sub(of_units(strength));
    let loose = match policy.evidence.value {
        Ground::Declared => 0,
        Ground::Corroborated => beside(text.declared, Strength::Declared),
        Ground::Recorded => beside(text.declared, Strength::Declared)
            .saturating_add(beside(text.inferred, Strength::Inferred))
            .saturating_add(beside(text.structural, Strength::Structural)),
    };
    if units.is_empty() && loose == 0 {
        return None;
    }
    let total = judged.len() as u64;
    let ground = ground_words(policy.evidence.value);
    let draft = Draft::about_units(Kindness::Undetermined, "ground", units, move |units| {
        let what = match (units.len() as u64, loose) {
            (0, _) => format!("{} bytes of text", grouped(loose)),
            (number, 0) => format!("{} of {}", grouped(number), plural(total, "unit")),
            (number, _) => format!(
                "{} of {} and {} bytes beside them",
                grouped(number),
                plural(total, "unit"),
                grouped(loose)
            ),
        };
        format!("the level of {what} {ground}")
    });
    let small = draft.units.is_empty() && text.is_remnant(loose);
    let draft =
        under(draft.besides_units(loose > 0), &policy.undetermined, facts)?.policy(&policy.evidence.at);
    Some(if small { draft.at_most(Severity::Note) } else { draft })
}

fn ground_words(ground: Ground) -> &'static str {
    match ground {
        Ground::Recorded => "is not recorded by the compiler (policy: evidence = \"recorded\")",
        Ground::Corroborated | Ground::Declared => {
            "is only declared; the code was not read or does not agree (policy: evidence = \"corroborated\")"
        }
    }
}

/// Statically linked library units of unknown level, where the policy has something to say about them.
fn about_libraries<'a>(context: &Context<'a>) -> Option<Draft<'a>> {
    let setting = context.policy.optimization.libraries.as_ref()?.undetermined.as_ref()?;
    let all = levels::library_units(context);
    let total = all.len() as u64;
    let units: Vec<UnitHit<'a>> =
        all.into_iter().filter(|unit| unit.level == Level::Unknown).map(UnitHit::from).collect();
    if units.is_empty() {
        return None;
    }
    let known = reasons(&units);
    let draft = Draft::about_units(Kindness::Undetermined, "libraries", units, move |units| {
        format!(
            "nothing tells the level of {} of {}",
            grouped(units.len() as u64),
            plural(total, "library unit")
        )
    });
    under(draft.known(known), setting, context.facts)
}

#[cfg(test)]
mod tests;
