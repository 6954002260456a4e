//! Code is compiled below the level the policy asks for.
//!
//! # What it checks
//!
//! Every compilation unit that has code in the file, is compiled from source and is not exempt, against
//! `optimization.minimum`. The order is O0 < Og < O1 < O2 < O3 < Ofast; Os and Oz count as O1 unless they are named in
//! `optimization.allow`. Code that no unit describes is judged by its shape, run of functions by run of functions; a
//! file without any description, as a whole. Units that meet the minimum but not `optimization.recommended` make a
//! second finding, a warning. Statically linked library code is judged by `optimization.libraries` alone. Where no code can
//! be read, a library that nginx's configure arguments declare to be built along without optimization is named, too.
//!
//! ```text
//! error[unoptimized-code]: 137 of 137 units are -O0 (policy: at least O2)
//!   known   recorded: the compiler wrote "-g -O -O2 -O0"; the last -O wins
//!   fix     drop -O0 from --with-cc-opt; make clean; rebuild
//! ```
//!
//! # Why it matters
//!
//! At -O0 every variable lives in memory, nothing is inlined and a call at the end of a function keeps its stack frame. A
//! server built that way works, passes its tests, and needs a multiple of the processor time. The flag that did it is
//! often far away: the last -O on the command line wins, `CFLAGS` in the environment replaces a build system's own -O2,
//! and a command line without any -O is -O0.
//!
//! # How to fix
//!
//! Make the wanted -O the last one on the compiler's command line and rebuild from clean. For nginx, that is
//! `--with-cc-opt=-O2`: nginx's own default is a bare -O, which is O1. If the units named are meant to be slow, list them
//! in `optimization.exempt` or waive them with a reason and a last day.
//!
//! # Policy keys
//!
//! `optimization.minimum`, `optimization.recommended`, `optimization.allow` (accepted below the minimum; `recommended`
//! still warns), `optimization.exempt`, `optimization.libraries.minimum`.
//!
//! # Evidence
//!
//! Recorded: the options in a unit's producer, in `.GCC.command.line`, in annobin notes. Structural: the marks that
//! clang leaves in debug information only when it optimizes. Declared: configure arguments and build texts. Inferred:
//! the shape of the machine code, with a count of functions.
//!
//! # Limits
//!
//! Functions that an attribute or a pragma keeps at -O0 in a unit that records more are only suspected, and a warning at
//! most; a sample finds them, so few may stay unseen. Shapes tell -O0 from optimized code; they seldom tell one optimized
//! level from another.

use super::check::{Context, Draft, Kindness, Outcome, UnitHit, listed};
use super::{Rule, levels, origin};
use crate::compiler::{Level, Satisfies};
use crate::evidence::{Source, Strength};
use crate::facts::{FunctionRun, Unit, UnitKind};
use crate::finding::{RangeRef, Severity};
use crate::policy::At;
use crate::wording::{grouped, plural};

mod bundled;

/// The rule.
pub const RULE: Rule = Rule {
    id: "unoptimized-code",
    severity: Severity::Error,
    keys: &["optimization.minimum", "optimization.recommended", "optimization.libraries.minimum"],
    source: include_str!("unoptimized_code.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let policy = &context.policy.optimization;
    let libraries = policy.libraries.as_ref().and_then(|table| table.minimum.as_ref());
    if policy.minimum.is_none() && policy.recommended.is_none() && libraries.is_none() {
        return Outcome::NotAsked;
    }
    if let Some(reason) = levels::nothing_to_judge(context.facts) {
        return Outcome::NotChecked(reason.to_owned());
    }
    Outcome::Checked(drafts(context))
}

/// Whether the rule finds that the policy is broken: other rules do not report the same fact again.
pub fn fires(context: &Context<'_>) -> bool {
    !drafts(context).is_empty()
}

fn drafts<'a>(context: &Context<'a>) -> Vec<Draft<'a>> {
    let policy = &context.policy.optimization;
    let own = levels::judged_units(context);
    let mut drafts = Vec::new();
    let mut rest: Vec<&'a Unit> = own.clone();

    if let Some(minimum) = &policy.minimum {
        let (below, above): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|unit| fails(unit.level, minimum) && !allowed(context, unit.level));
        rest = above;
        if !below.is_empty() {
            drafts.push(about_units(context, &below, own.len(), minimum, "minimum", "at least"));
        }
        let runs = undescribed_runs(context, minimum.value);
        if levels::own_units(context.facts).is_empty() {
            drafts.extend(about_file(context, minimum, "at least", &runs));
        } else if !runs.is_empty() {
            drafts.push(about_runs(context, minimum, &runs));
        }
        drafts.extend(about_suspects(context, minimum));
        drafts.extend(bundled::drafts(context, minimum));
    }
    if let Some(recommended) = &policy.recommended {
        let below: Vec<&Unit> = rest.into_iter().filter(|unit| fails(unit.level, recommended)).collect();
        if !below.is_empty() {
            let draft = about_units(context, &below, own.len(), recommended, "recommended", "recommended");
            drafts.push(draft.severity(Severity::Warning).at_most(Severity::Warning));
        } else if drafts.is_empty() && levels::own_units(context.facts).is_empty() {
            let draft = about_file(context, recommended, "recommended", &[]);
            drafts.extend(draft.map(|draft| draft.severity(Severity::Warning).at_most(Severity::Warning)));
        }
    }
    if let Some(minimum) = policy.libraries.as_ref().and_then(|table| table.minimum.as_ref()) {
        let all = levels::library_units(context);
        let below: Vec<&Unit> = all.iter().copied().filter(|unit| fails(unit.level, minimum)).collect();
        if !below.is_empty() {
            drafts.push(about_units(context, &below, all.len(), minimum, "libraries", "libraries at least"));
        }
    }
    drafts
}

fn fails(level: Level, minimum: &At<Level>) -> bool {
    level.satisfies(minimum.value) == Satisfies::No
}

fn allowed(context: &Context<'_>, level: Level) -> bool {
    context.policy.optimization.allow.iter().any(|accepted| accepted.value == level)
}

/// One finding for all units below a level.
fn about_units<'a>(
    context: &Context<'a>,
    below: &[&'a Unit],
    judged: usize,
    minimum: &At<Level>,
    key: &str,
    word: &'static str,
) -> Draft<'a> {
    let hits: Vec<UnitHit<'a>> = below.iter().copied().map(UnitHit::from).collect();
    let lowest = hits.iter().map(|hit| hit.level).min().unwrap_or_default();
    let wanted = minimum.value;
    let noun = if key == "libraries" { "library unit" } else { "unit" };
    let remedy = origin::remedy(context, &hits, lowest, wanted);
    let known = origin::known(context, &hits, lowest);
    let cost = origin::cost(&hits, lowest);
    // The level is part of the key: a unit that sinks further is a new finding.
    let key = format!("{key}:{}", lowest.as_str());
    let draft = Draft::about_units(Kindness::Violation, key, hits, move |units| {
        units_message(units, judged, wanted, noun, word)
    });
    let draft = draft.remedy(remedy).policy(&minimum.at).known(known);
    match cost {
        Some(cost) => draft.cost(cost),
        None => draft,
    }
}

fn units_message(units: &[UnitHit<'_>], judged: usize, wanted: Level, noun: &str, word: &str) -> String {
    let mut levels: Vec<(Level, u64)> = Vec::new();
    for hit in units {
        match levels.iter_mut().find(|(level, _)| *level == hit.level) {
            Some((_, number)) => *number += 1,
            None => levels.push((hit.level, 1)),
        }
    }
    levels.sort();
    let total = grouped(judged as u64);
    let here = grouped(units.len() as u64);
    let policy = format!("(policy: {word} {})", wanted.as_str());
    let verb = if units.len() == 1 { "is" } else { "are" };
    let plural = if judged == 1 { "" } else { "s" };
    match levels.as_slice() {
        [(level, _)] => format!("{here} of {total} {noun}{plural} {verb} {} {policy}", level.flag()),
        several => {
            let parts: Vec<String> = several
                .iter()
                .map(|(level, number)| format!("{} {}", grouped(*number), level.flag()))
                .collect();
            format!(
                "{here} of {total} {noun}{plural} {verb} below {}: {} {policy}",
                wanted.flag(),
                parts.join(", ")
            )
        }
    }
}

/// Runs of unoptimized functions that no unit describes; none where the policy accepts -O0.
fn undescribed_runs<'a>(context: &Context<'a>, minimum: Level) -> Vec<&'a FunctionRun> {
    if Level::O0.satisfies(minimum) != Satisfies::No || allowed(context, Level::O0) {
        return Vec::new();
    }
    let facts = context.facts;
    facts
        .functions
        .runs
        .iter()
        .filter(|run| run.level == Level::O0)
        // A unit of unknown level has said nothing about its code: the shape speaks for it.
        .filter(|run| match levels::unit_of_run(facts, run) {
            None => true,
            Some(unit) => {
                matches!(unit.kind, UnitKind::Source | UnitKind::Skeleton)
                    && unit.level == Level::Unknown
                    && !context.unit_matches(&context.policy.optimization.exempt, unit)
            }
        })
        .collect()
}

fn place_names(runs: &[&FunctionRun]) -> Vec<String> {
    runs.iter()
        .filter_map(|run| run.module.clone().or_else(|| run.unit.clone()).or_else(|| run.name.clone()))
        .collect()
}

fn with_runs<'a>(draft: Draft<'a>, runs: &[&FunctionRun]) -> Draft<'a> {
    let ranges = runs.iter().map(|run| RangeRef::of(run)).collect();
    let draft = draft.ranges(ranges, runs.iter().filter_map(|run| run.name.clone()).collect());
    match runs {
        [run] => match &run.module {
            Some(module) => draft.module(module.clone()),
            None => draft,
        },
        _ => draft,
    }
}

fn about_runs<'a>(context: &Context<'a>, minimum: &At<Level>, runs: &[&FunctionRun]) -> Draft<'a> {
    let functions = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.functions));
    let names = place_names(runs);
    let at = if names.is_empty() { String::new() } else { format!(" ({})", listed(&names, 3)) };
    let message = format!(
        "{} in {}{at} that no unit describes {} shaped like -O0 (policy: at least {})",
        plural(functions, "function"),
        plural(runs.len() as u64, "address range"),
        if functions == 1 { "is" } else { "are" },
        minimum.value.as_str()
    );
    let key = format!("code:{}", names.join(","));
    let draft = Draft::violation(key, message)
        .evidence(Strength::Inferred, &[Source::CodeShape])
        .policy(&minimum.at)
        .remedy(origin::remedy(context, &[], Level::O0, minimum.value))
        .known(origin::known(context, &[], Level::O0))
        .cost("no inlining, no tail calls");
    with_runs(draft, runs)
}

/// A file none of whose own code is described by a unit: judged by what is held of the whole.
fn about_file<'a>(
    context: &Context<'a>,
    minimum: &At<Level>,
    word: &str,
    runs: &[&FunctionRun],
) -> Option<Draft<'a>> {
    let optimization = &context.facts.optimization;
    let level = optimization.level;
    // What is allowed is accepted below the minimum; what is recommended stays so.
    let accepted = word == "at least" && allowed(context, level);
    if levels::meets(level, optimization.bound, minimum.value) != Satisfies::No || accepted {
        return if runs.is_empty() { None } else { Some(about_runs(context, minimum, runs)) };
    }
    let functions = &context.facts.functions;
    let by_units: u64 =
        optimization.by_level.iter().filter(|share| share.level == level).map(|share| share.units).sum();
    let policy = format!("(policy: {word} {})", minimum.value.as_str());
    let message = if by_units > 0 {
        format!(
            "{} {} {} {policy}",
            plural(by_units, "unit"),
            if by_units == 1 { "is" } else { "are" },
            level.flag()
        )
    } else if level == Level::O0 && functions.o0_shaped > 0 && functions.judged >= functions.o0_shaped {
        format!(
            "{} of {} judged functions are shaped like -O0 {policy}",
            grouped(functions.o0_shaped),
            grouped(functions.judged)
        )
    } else {
        format!("the code is {} as {} {policy}", level.flag(), said(optimization.strength))
    };
    let mut draft = Draft::violation(format!("minimum:{}", level.as_str()), message)
        .evidence(optimization.strength, &optimization.sources)
        .policy(&minimum.at)
        .remedy(origin::remedy(context, &[], level, minimum.value))
        .known(origin::known(context, &[], level));
    if let Some(cost) = origin::cost(&[], level) {
        draft = draft.cost(cost);
    }
    Some(with_runs(draft, runs))
}

fn said(strength: Strength) -> &'static str {
    match strength {
        Strength::Recorded => "the compiler recorded it",
        Strength::Structural => "the file's structure shows",
        Strength::Declared => "the build declares it",
        Strength::Inferred | Strength::None => "inferred from the code",
    }
}

/// Runs of -O0 shape inside units whose recorded level is higher: an attribute or a pragma, or not what it seems.
fn about_suspects<'a>(context: &Context<'a>, minimum: &At<Level>) -> Option<Draft<'a>> {
    if Level::O0.satisfies(minimum.value) != Satisfies::No || allowed(context, Level::O0) {
        return None;
    }
    let facts = context.facts;
    let mut runs = Vec::new();
    let mut units: Vec<UnitHit<'a>> = Vec::new();
    for run in facts.functions.runs.iter().filter(|run| run.level == Level::O0) {
        let Some(unit) = levels::unit_of_run(facts, run) else { continue };
        let vouched = unit.kind == UnitKind::Source
            && unit.level != Level::Unknown
            && (unit.level.satisfies(minimum.value) != Satisfies::No || allowed(context, unit.level));
        if vouched && !context.unit_matches(&context.policy.optimization.exempt, unit) {
            runs.push(run);
            if !units.iter().any(|hit| std::ptr::eq(hit.unit, unit)) {
                units.push(UnitHit::from(unit));
            }
        }
    }
    if runs.is_empty() {
        return None;
    }
    let functions = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.functions));
    let names: Vec<String> = runs.iter().filter_map(|run| run.name.clone()).collect();
    let shown: Vec<String> =
        runs.iter().filter_map(|run| Some(with_those_after(run, run.name.as_ref()?))).collect();
    let named = if shown.is_empty() { String::new() } else { format!(" ({})", listed(&shown, 3)) };
    let number = units.len() as u64;
    let draft = Draft::about_units(Kindness::Violation, "function", units, move |_| {
        format!(
            "{}{named} in {} of a higher level {} shaped like -O0: an attribute or pragma is suspected",
            plural(functions, "function"),
            plural(number, "unit"),
            if functions == 1 { "is" } else { "are" }
        )
    });
    let ranges = runs.iter().map(|run| RangeRef::of(run)).collect();
    let mut draft = draft
        .evidence(Strength::Inferred, &[Source::CodeShape])
        .policy(&minimum.at)
        .severity(Severity::Warning)
        .at_most(Severity::Warning)
        .remedy("look for `optimize(\"O0\")`, `optnone` or `#pragma GCC optimize` at these functions");
    draft.functions = names;
    draft.ranges = ranges;
    Some(draft)
}

/// The name of a run's first function, and how many come after it.
fn with_those_after(run: &FunctionRun, name: &str) -> String {
    match run.functions {
        0 | 1 => name.to_owned(),
        more => format!("{name} and {} after it", grouped(more - 1)),
    }
}

#[cfg(test)]
mod tests;
