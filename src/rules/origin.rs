//! Where a level comes from, in the words of those who know: what the compiler wrote, what the build system says, and
//! which of the product's own options to change.

use super::check::{Context, UnitHit};
use crate::compiler::options::{is_inner_level, level_of, split_shell};
use crate::compiler::{Level, Satisfies};
use crate::evidence::{Scope, Strength};
use crate::facts::{ConfigureArgument, Nginx, Unit};
use crate::nginx::bundled_libraries;
use crate::nginx::configure::{in_force, last_value};
use crate::wording::plural;

/// Different ways of putting it that are shown before the rest is only counted.
const VARIANTS_SHOWN: usize = 3;
const REBUILD: &str = "; make clean; rebuild";

/// How the level of these units (or of code without units) is known, line by line: what the compiler recorded, what the
/// build system declares, and what else agrees or differs.
pub fn known(context: &Context<'_>, units: &[UnitHit<'_>], level: Level) -> Vec<String> {
    let facts = context.facts;
    let mut lines = recorded(units);
    if lines.is_empty() {
        lines.extend(unrecorded(units));
    }
    // Without a record, the evidence that the finding rests on comes first and is named for what it is.
    let mut ground = lines.is_empty();
    let mut declared = Vec::new();
    let mut others = Vec::new();
    for claim in facts.optimization.claims.iter().filter(|claim| claim.fact == "optimization.level") {
        // Claims about other units say nothing of these; those about the same ones are shown in their own words.
        let says = claim.level();
        if says == Level::Unknown || claim.scope == Scope::Unit {
            continue;
        }
        let quote =
            claim.quote.clone().unwrap_or_else(|| format!("{} ({})", says.flag(), claim.source.as_str()));
        if claim.strength == Strength::Declared {
            declared.push(format!("declared: {quote}"));
            continue;
        }
        let agrees = says == level || (says == Level::Optimized && level != Level::O0);
        if agrees && ground {
            ground = false;
            lines.push(format!("{}: {quote}", claim.strength.as_str()));
        } else {
            others.push(format!("{:<9}{quote}", if agrees { "agrees:" } else { "differs:" }));
        }
    }
    if let Some(arguments) = facts.nginx.as_ref().and_then(|nginx| nginx.configure_arguments.as_ref()) {
        let found = optimizing_arguments(arguments);
        if !found.is_empty() {
            declared = vec![format!("declared: {}", found.join(" "))];
        } else if declared.is_empty() {
            declared.push("declared: no -O among the configure arguments".to_owned());
        }
    }
    lines.extend(declared);
    lines.extend(others);
    lines
}

/// What the compiler wrote, once for each way of writing it.
fn recorded(units: &[UnitHit<'_>]) -> Vec<String> {
    let mut variants: Vec<(String, u64)> = Vec::new();
    for hit in units.iter().filter(|hit| hit.unit.flags_recorded || !hit.unit.flags.is_empty()) {
        let line = recorded_line(hit.unit);
        match variants.iter_mut().find(|(known, _)| *known == line) {
            Some((_, number)) => *number += 1,
            None => variants.push((line, 1)),
        }
    }
    let single = variants.len() == 1;
    let more = variants.len().saturating_sub(VARIANTS_SHOWN);
    let mut lines: Vec<String> = variants
        .into_iter()
        .take(VARIANTS_SHOWN)
        .map(|(line, number)| if single { line } else { format!("{line} ({})", plural(number, "unit")) })
        .collect();
    if more > 0 {
        lines.push(format!("recorded: {} of writing more", plural(more as u64, "way")));
    }
    lines
}

/// What units without recorded options rest on: who says so, and the reason given with the first of them.
fn unrecorded(units: &[UnitHit<'_>]) -> Option<String> {
    let first = units.first()?.unit;
    let sources: Vec<&str> = first.sources.iter().map(|source| source.as_str()).collect();
    let reason = first.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    Some(format!("{}: {} of {}{reason}", first.strength.as_str(), sources.join(" and "), first.name))
}

fn recorded_line(unit: &Unit) -> String {
    let levels = unit.flags.iter().filter(|flag| level_of(flag).is_some()).count();
    let words: Vec<&str> = unit
        .flags
        .iter()
        .map(String::as_str)
        .filter(|flag| level_of(flag).is_some() || is_inner_level(flag) || is_debug_option(flag))
        .collect();
    let inner = words.iter().any(|flag| is_inner_level(flag));
    let words = words.join(" ");
    match levels {
        _ if inner => format!("recorded: the compiler wrote \"{words}\"; what -Xclang hands on comes last"),
        0 if words.is_empty() => "recorded: the compiler wrote its options, and no -O among them".to_owned(),
        0 => format!("recorded: the compiler wrote \"{words}\" and no -O"),
        1 => format!("recorded: the compiler wrote \"{words}\""),
        _ => format!("recorded: the compiler wrote \"{words}\"; the last -O wins"),
    }
}

/// `-g` and its kin, which are shown beside the `-O` because they tell one build system's line from another's.
fn is_debug_option(flag: &str) -> bool {
    matches!(flag, "-g" | "-g0" | "-g1" | "-g2" | "-g3" | "-ggdb" | "-ggdb3")
}

/// Configure arguments in force that hold a `-O`, as nginx prints them (quoted only where they hold a space).
fn optimizing_arguments(arguments: &[ConfigureArgument]) -> Vec<String> {
    in_force(arguments)
        .into_iter()
        .filter(|argument| is_compiler_option(&argument.name))
        .filter_map(|argument| {
            let value = argument.value.as_deref()?;
            split_shell(value).iter().any(|word| level_of(word).is_some()).then(|| {
                if value.contains(' ') {
                    format!("{}='{value}'", argument.name)
                } else {
                    format!("{}={value}", argument.name)
                }
            })
        })
        .collect()
}

fn is_compiler_option(name: &str) -> bool {
    matches!(name, "--with-cc-opt" | "--with-pcre-opt" | "--with-zlib-opt" | "--with-openssl-opt")
}

/// What to do, in the product's own terms. `wanted` is the level that the policy asks for; where it recommends a higher
/// one, that is what to aim at.
pub fn remedy(context: &Context<'_>, units: &[UnitHit<'_>], level: Level, wanted: Level) -> String {
    let wanted = aim(context, wanted);
    match &context.facts.nginx {
        Some(nginx) => {
            let openresty = context.facts.product.as_ref().is_some_and(|product| product.name == "openresty");
            nginx_remedy(nginx, openresty, units, level, wanted)
        }
        None => generic_remedy(context, units, wanted),
    }
}

/// The level to aim at: the one recommended, where that is higher than the one that must be.
pub fn aim(context: &Context<'_>, wanted: Level) -> Level {
    match &context.policy.optimization.recommended {
        Some(better) if wanted.satisfies(better.value) == Satisfies::No => better.value,
        _ => wanted,
    }
}

/// What to do about a library that nginx builds along with itself (`pcre`, `zlib` or `openssl`). The first two get -O2 from
/// nginx only where the user gives them no options of their own (`auto/cc/gcc`).
pub fn bundled_remedy(library: &str, arguments: &[ConfigureArgument], wanted: Level) -> String {
    let want = wanted.flag();
    let option = format!("--with-{library}-opt");
    match last_value(arguments, &option).unwrap_or_default() {
        _ if library == "openssl" => format!("take -d and --debug out of {option}{REBUILD}"),
        "" => format!(
            "{option} is empty and replaces the -O2 that nginx gives {library}: write {option}={want}{REBUILD}"
        ),
        given if split_shell(given).iter().any(|word| level_of(word).is_some()) => {
            format!("make {want} the last -O in {option}='{given}'{REBUILD}")
        }
        given => {
            format!(
                "{option} replaces the -O2 that nginx gives {library}: write {option}='{given} {want}'{REBUILD}"
            )
        }
    }
}

fn nginx_remedy(
    nginx: &Nginx,
    openresty: bool,
    units: &[UnitHit<'_>],
    level: Level,
    wanted: Level,
) -> String {
    let want = wanted.flag();
    let arguments = nginx.configure_arguments.as_deref().unwrap_or_default();
    let value = |name: &str| {
        arguments
            .iter()
            .rev()
            .find(|argument| argument.name == name)
            .map(|argument| argument.value.as_deref().unwrap_or(""))
    };

    let ours: Vec<String> = value("--with-cc-opt").map(split_shell).unwrap_or_default();
    let levels: Vec<&str> = ours.iter().map(String::as_str).filter(|word| level_of(word).is_some()).collect();
    // Without units, a library declared to be unoptimized explains unoptimized code in a program declared to be optimized.
    let low = |library: &str| {
        bundled_libraries(arguments)
            .iter()
            .any(|(name, declared)| *name == library && declared.level == Level::O0)
    };
    for library in ["pcre", "zlib"] {
        let given = value(&format!("--with-{library}-opt")).is_some();
        let of_units = !units.is_empty() && units.iter().all(|hit| of_library(hit.unit, library));
        let of_code =
            units.is_empty() && low(library) && levels.last().is_some_and(|word| enough(word, wanted));
        if given && (of_units || of_code) {
            return bundled_remedy(library, arguments, wanted);
        }
    }
    let what = if units.is_empty() { "this code" } else { "these units" };
    let wrapper =
        if openresty { " (OpenResty's wrapper puts its own -O2 before what it is given)" } else { "" };
    match levels.split_last() {
        Some((last, before)) if !enough(last, wanted) => {
            if openresty || before.last().is_some_and(|word| enough(word, wanted)) {
                format!("drop {last} from --with-cc-opt{wrapper}{REBUILD}")
            } else {
                format!("write {want} for {last} in --with-cc-opt{REBUILD}")
            }
        }
        Some((last, _)) if units.iter().all(|hit| bypassed(hit.unit, last)) && !units.is_empty() => format!(
            "--with-cc-opt says {last}, and {what} were compiled without it, by a Makefile of their own: give {want} there{REBUILD}"
        ),
        Some((last, _)) => format!(
            "--with-cc-opt says {last}, so something behind it lowers {what}: CFLAGS or a Makefile edited after ./configure, \
             or a module's `config` script that appends to CFLAGS; take the lower -O out{REBUILD}"
        ),
        None => {
            let recorded = units.iter().find(|hit| hit.unit.flags_recorded);
            let last =
                recorded.and_then(|hit| hit.unit.flags.iter().rev().find(|flag| level_of(flag).is_some()));
            match (recorded, last) {
                (Some(_), None) if level == Level::O0 => format!(
                    "CFLAGS was set without a -O when ./configure ran, which replaces nginx's own -O: unset it, or give --with-cc-opt={want}{REBUILD}"
                ),
                (Some(_), Some(flag)) if level == Level::O1 && flag == "-O" => {
                    format!(
                        "-O is nginx's own default: give --with-cc-opt={want} (it comes later and wins){wrapper}{REBUILD}"
                    )
                }
                (Some(_), Some(flag)) => format!(
                    "{flag} is in no configure argument: it comes from CFLAGS in the environment of ./configure or from an edited Makefile; \
                     take it out, or give --with-cc-opt={want}{REBUILD}"
                ),
                _ => format!(
                    "give --with-cc-opt={want}, and keep a lower -O out of CFLAGS in the environment of ./configure{REBUILD}"
                ),
            }
        }
    }
}

/// Whether a unit's recorded options lack a word that nginx's own Makefile would have given it.
fn bypassed(unit: &Unit, word: &str) -> bool {
    unit.flags_recorded && !unit.flags.iter().any(|flag| flag == word)
}

/// Whether a unit belongs to a library that nginx builds from its source directory.
fn of_library(unit: &Unit, library: &str) -> bool {
    let in_path = |path: &str| {
        path.split('/').any(|part| {
            part.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '2']))
        })
    };
    in_path(&unit.name) || unit.comp_dir.as_deref().is_some_and(in_path)
}

fn enough(word: &str, wanted: Level) -> bool {
    level_of(word).is_some_and(|level| level.satisfies(wanted) == Satisfies::Yes)
}

fn generic_remedy(context: &Context<'_>, units: &[UnitHit<'_>], wanted: Level) -> String {
    let want = wanted.flag();
    let first = units.first().map(|hit| hit.unit);
    // Without units, a program that rustc or Go has a hand in is theirs; gcc made its start files.
    let families = || context.facts.compilers.iter().map(|seen| seen.family.as_str());
    let seen = || families().find(|family| matches!(*family, "rustc" | "go")).unwrap_or_default();
    let compiler = first.map_or_else(seen, |unit| unit.compiler.as_deref().unwrap_or_default());
    if compiler.starts_with("rustc") {
        return "build with `cargo build --release`, or raise `opt-level` of the profile".to_owned();
    }
    if compiler.starts_with("go ") || compiler == "go" {
        return "build without `-gcflags` that hold -N or -l".to_owned();
    }
    let recorded = first.filter(|unit| unit.flags_recorded);
    if let Some(inner) = recorded.and_then(|unit| unit.flags.iter().rev().find(|flag| is_inner_level(flag))) {
        return format!(
            "take {inner} off the compiler's command line, make {want} its last -O, and rebuild from clean"
        );
    }
    let last = recorded.and_then(|unit| unit.flags.iter().rev().find(|flag| level_of(flag).is_some()));
    match (recorded, last) {
        (Some(_), None) => format!(
            "no -O was given: CFLAGS that are set replace a build system's own -g -O2; add {want} to them and rebuild from clean"
        ),
        (Some(_), Some(flag)) => format!(
            "find what puts {flag} last on the compiler's command line (CFLAGS, a debug build type of CMake or Meson) and make it {want}; rebuild from clean"
        ),
        (None, _) => format!("make {want} the last -O on the compiler's command line and rebuild from clean"),
    }
}

/// What a level costs, where that has been measured: GCC turns calls into jumps only from -O2 and -Os on.
pub fn cost(units: &[UnitHit<'_>], level: Level) -> Option<&'static str> {
    let gcc =
        units.iter().all(|hit| hit.unit.compiler.as_deref().is_some_and(|name| name.starts_with("gcc")));
    match level {
        Level::O0 => Some("no inlining, no tail calls"),
        Level::Og | Level::O1 if gcc && !units.is_empty() => Some("no tail calls, so deeper stacks"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
