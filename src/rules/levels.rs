//! Which units a policy judges, and on what ground a level passes: shared by the rules about optimization.

use super::check::Context;
use crate::compiler::{Level, Satisfies};
use crate::evidence::{Claim, Scope, Source, Strength};
use crate::facts::{Bound, Facts, FunctionRun, Kind, Status, Unit, UnitKind};
use crate::policy::Ground;

/// Fewer functions than this cannot be judged from their code (measured: below it, shapes are not typical).
pub const ENOUGH_FUNCTIONS: u64 = 15;

/// Units compiled from source that have code in the file, exempt ones included. Skeletons count: their code is there, only
/// the words are elsewhere.
///
/// Units without live text are not judged, with three exceptions: where no unit's text could be located, where link-time
/// partitions hold the text of all units that were compiled for it, and where the text is still to be made.
pub fn own_units(facts: &Facts) -> Vec<&Unit> {
    let units = facts.units.as_deref().unwrap_or_default();
    let located = units.iter().any(|unit| unit.text_bytes > 0);
    let partitions = units.iter().any(|unit| unit.kind == UnitKind::LtoPartition && unit.text_bytes > 0);
    let attributed =
        units.iter().any(|unit| unit.kind == UnitKind::Source && for_lto(unit) && unit.text_bytes > 0);
    units
        .iter()
        .filter(|unit| matches!(unit.kind, UnitKind::Source | UnitKind::Skeleton))
        .filter(|unit| {
            let elsewhere = unit.intermediate || partitions && !attributed && for_lto(unit);
            unit.text_bytes > 0 || !located || elsewhere
        })
        .collect()
}

/// Whether units are judged whose text lies in link-time partitions.
pub fn stands_for_partitions(facts: &Facts) -> bool {
    own_units(facts).iter().any(|unit| for_lto(unit))
}

/// Own units that the policy judges: not exempt. Exempt patterns that match are marked as used.
pub fn judged_units<'a>(context: &Context<'a>) -> Vec<&'a Unit> {
    own_units(context.facts)
        .into_iter()
        .filter(|unit| !context.unit_matches(&context.policy.optimization.exempt, unit))
        .collect()
}

/// Statically linked library units with code in the file, not exempt.
pub fn library_units<'a>(context: &Context<'a>) -> Vec<&'a Unit> {
    let units = context.facts.units.as_deref().unwrap_or_default();
    let located = units.iter().any(|unit| unit.text_bytes > 0);
    units
        .iter()
        .filter(|unit| unit.kind == UnitKind::Library && (unit.text_bytes > 0 || !located))
        .filter(|unit| !context.unit_matches(&context.policy.optimization.exempt, unit))
        .collect()
}

/// Why there is nothing to judge, if the file is known to hold no compiled code: data objects, assembled code alone.
///
/// Text is not accounted for in relocatable files; there, units show that there is none, or the sections. What is in an
/// archive besides (bitcode is no ELF) is not known.
pub fn nothing_to_judge(facts: &Facts) -> Option<&'static str> {
    let elf = facts.elf.as_ref().filter(|elf| elf.sections && !elf.packed)?;
    if facts.status != Status::Ok || facts.optimization.level != Level::Unknown {
        return None;
    }
    let text = &facts.optimization.text;
    let dark = text.unknown > 0 || text.declared > 0 || text.inferred > 0;
    let units = facts.units.as_deref().unwrap_or_default();
    let assembled = |unit: &Unit| matches!(unit.kind, UnitKind::Assembly | UnitKind::Toolchain);
    if !units.is_empty() && !dark && units.iter().all(assembled) {
        return Some("the file holds no code but what was assembled");
    }
    let linked = !matches!(elf.kind, Kind::Relocatable | Kind::Archive);
    let empty = linked
        && text.bytes == 0
        && facts.functions.count == 0
        && units.iter().all(|unit| unit.text_bytes == 0);
    let bare = facts.optimization.no_code && units.is_empty();
    (empty || bare).then_some("the file holds no code")
}

/// What shows how a file was built that holds no debug information.
pub fn reveal(facts: &Facts) -> &'static str {
    match &facts.elf {
        Some(elf) if !elf.stripped && matches!(elf.kind, Kind::Relocatable | Kind::Archive) => {
            "build with -g"
        }
        Some(elf) if !elf.stripped => {
            "build with -g, or give its debug information with --debug-file or --debug-dir"
        }
        _ => "give an unstripped build, or its debug information with --debug-file or --debug-dir",
    }
}

/// What shows the options that a file was built with, where some are not recorded.
pub fn reveal_options(facts: &Facts) -> &'static str {
    if facts.elf.as_ref().is_some_and(|elf| !elf.stripped) {
        "build with -g (clang: -grecord-command-line)"
    } else {
        "give an unstripped build or its debug information; build with -g (clang: -grecord-command-line)"
    }
}

/// Compiled for link-time optimization, as the unit's own options tell.
fn for_lto(unit: &Unit) -> bool {
    unit.flags
        .iter()
        .rfind(|flag| *flag == "-flto" || flag.starts_with("-flto=") || *flag == "-fno-lto")
        .is_some_and(|flag| flag != "-fno-lto")
}

/// Whether a level meets a minimum, when it may be only a lower bound: then a failure is not proven, unless it is `-O0`.
pub fn meets(level: Level, bound: Bound, minimum: Level) -> Satisfies {
    match level.satisfies(minimum) {
        Satisfies::No if bound == Bound::AtLeast && level != Level::O0 => Satisfies::NotProven,
        answer => answer,
    }
}

/// The one level that the build system declares for the whole file; `None` where it declares none, or several.
pub fn declared_level(facts: &Facts) -> Option<(Level, &Claim)> {
    let mut found: Option<(Level, &Claim)> = None;
    for claim in &facts.optimization.claims {
        if claim.strength != Strength::Declared
            || claim.scope != Scope::File
            || claim.fact != "optimization.level"
        {
            continue;
        }
        let level = claim.level();
        if level == Level::Unknown {
            continue;
        }
        if found.is_some_and(|(known, _)| known != level) {
            return None;
        }
        found = found.or(Some((level, claim)));
    }
    found
}

/// A level that is only known as `optimized`, made sharper by a declaration that it agrees with.
/// A policy that wants the compiler's own record is not served by that.
pub fn sharpened(context: &Context<'_>, level: Level) -> Level {
    if level != Level::Optimized || context.policy.optimization.evidence.value == Ground::Recorded {
        return level;
    }
    match declared_level(context.facts) {
        Some((declared, _)) if declared > Level::O0 => declared,
        _ => level,
    }
}

/// Whether a level that meets the minimum stands firmly enough to pass.
pub fn grounded(context: &Context<'_>, strength: Strength, sources: &[Source], of_unit: bool) -> bool {
    match context.policy.optimization.evidence.value {
        Ground::Recorded => strength == Strength::Recorded,
        Ground::Declared => strength != Strength::None,
        Ground::Corroborated => match strength {
            Strength::Recorded | Strength::Structural | Strength::Inferred => true,
            Strength::Declared => code_agrees(context.facts, sources, of_unit),
            Strength::None => false,
        },
    }
}

/// Whether the code was read and is shaped like optimized code. Code that was not read agrees with nothing.
fn code_agrees(facts: &Facts, sources: &[Source], of_unit: bool) -> bool {
    let read = |source: &Source| matches!(source, Source::CodeShape | Source::DwarfShape);
    if sources.iter().any(read) {
        return true;
    }
    let functions = &facts.functions;
    functions.judged >= ENOUGH_FUNCTIONS
        // Single functions look like -O0 in any build (62 of 233,033 in distribution code).
        && functions.o0_shaped.saturating_mul(20) < functions.judged
        && !functions.runs.iter().any(|run| run.level == Level::O0)
        && !(of_unit && facts.optimization.text.declared > 0)
}

/// The unit that a run of functions lies in: by address, since names may stand more than once; by name where units have no
/// addresses, as in a saved document.
pub fn unit_of_run<'a>(facts: &'a Facts, run: &FunctionRun) -> Option<&'a Unit> {
    let units = facts.units.as_deref().unwrap_or_default();
    let inside =
        |unit: &&Unit| unit.ranges.iter().any(|range| range.start < run.end && run.start < range.end);
    let named = |unit: &&Unit| run.unit.as_ref().is_some_and(|name| unit.name == *name);
    let by_address =
        units.iter().find(|unit| inside(unit) && named(unit)).or_else(|| units.iter().find(inside));
    by_address.or_else(|| units.iter().find(named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{claim, nginx, stripped, unit, with_units};

    #[test]
    fn units_without_text_are_judged_only_where_text_could_not_be_attributed() {
        let mut dead = unit("dead.c", Level::O0);
        dead.text_bytes = 0;
        let facts = with_units(vec![unit("live.c", Level::O2), dead.clone()]);
        assert_eq!(own_units(&facts).len(), 1);
        let facts = with_units(vec![dead.clone()]);
        assert_eq!(own_units(&facts).len(), 1, "no text was located at all");

        std::sync::Arc::make_mut(&mut dead.flags).push("-flto".into());
        let mut partition = unit("<artificial>", Level::O3);
        partition.kind = UnitKind::LtoPartition;
        let facts = with_units(vec![partition, dead]);
        assert_eq!(own_units(&facts).iter().map(|unit| unit.name.as_str()).collect::<Vec<_>>(), ["dead.c"]);
    }

    #[test]
    fn assembled_code_alone_is_not_judged_and_an_object_without_units_is() {
        let mut asm = unit("f.s", Level::Unknown);
        asm.kind = UnitKind::Assembly;
        let mut facts = with_units(vec![asm.clone()]);
        assert!(nothing_to_judge(&facts).is_some());
        facts.optimization.text.unknown = 100;
        assert!(nothing_to_judge(&facts).is_none(), "other code is there");
        let facts = with_units(vec![asm, unit("a.c", Level::O2)]);
        assert!(nothing_to_judge(&facts).is_none());

        let mut facts = with_units(Vec::new());
        facts.functions.count = 0;
        assert_eq!(nothing_to_judge(&facts), Some("the file holds no code"));
        facts.elf.as_mut().unwrap().kind = Kind::Relocatable;
        assert!(nothing_to_judge(&facts).is_none(), "its text is not accounted for");
        facts.optimization.no_code = true;
        assert_eq!(nothing_to_judge(&facts), Some("the file holds no code"));
    }

    #[test]
    fn a_lower_bound_is_never_a_violation_but_at_o0() {
        assert_eq!(meets(Level::O2, Bound::AtLeast, Level::O3), Satisfies::NotProven);
        assert_eq!(meets(Level::O2, Bound::Exact, Level::O3), Satisfies::No);
        assert_eq!(meets(Level::O0, Bound::AtLeast, Level::O1), Satisfies::No);
    }

    #[test]
    fn declarations_that_disagree_declare_nothing() {
        let mut facts = stripped(Level::Optimized);
        facts.optimization.claims =
            vec![claim("O2", Strength::Declared, Source::ConfigureArguments, "--with-cc-opt=-O2")];
        assert_eq!(declared_level(&facts).map(|(level, _)| level), Some(Level::O2));
        facts.optimization.claims.push(claim("-O3", Strength::Declared, Source::BuildString, "-O3"));
        assert!(declared_level(&facts).is_none());
        assert!(declared_level(&nginx(1, Level::O2)).is_none());
    }
}
