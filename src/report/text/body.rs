//! What is in the binary.

use super::{BOLD, DIM, GREEN, Options, RED, YELLOW, labelled, paint, status_word, terminal};
use crate::compiler::Level;
use crate::evidence::Held;
use crate::facts::{Facts, Kind, Status};
use crate::report::shared::clip;
use crate::wording::{grouped, plural};
use std::fmt::Write as _;

mod levels;
mod nginx;
pub(super) use levels::text_map;
pub(super) use nginx::nginx_summary;

/// Characters shown of what a program says of its build.
const SAID_CHARS: usize = 160;

/// Everything `inspect` shows of one target.
pub(super) fn facts(out: &mut String, facts: &Facts, options: Options) {
    super::process::installed(out, facts, options);
    identity(out, facts);
    problems(out, facts, options);
    optimization(out, facts, options);
    text_map(out, facts, options);
    tail_calls(out, facts, options);
    compilers(out, facts, options);
    nginx::nginx(out, facts, options);
    build_strings(out, facts, options);
    hardening(out, facts, options);
    listings(out, facts, options);
    if options.verbose {
        claims(out, facts, options);
    }
}

/// Product, compiler, kind of file, identity: one line.
pub(super) fn identity(out: &mut String, facts: &Facts) {
    let mut parts = Vec::new();
    if let Some(product) = &facts.product {
        let mut text = product.name.clone();
        if let Some(version) = &product.version {
            let _ = write!(text, " {version}");
        }
        if let Some(build) = &product.build_text {
            let _ = write!(text, " ({build})");
        }
        if let Some(base) = &product.base {
            match &base.version {
                Some(version) => {
                    let _ = write!(text, ", on {} {version}", base.name);
                }
                None => {
                    let _ = write!(text, ", on a version of {} that is not told", base.name);
                }
            }
        }
        parts.push(text);
    }
    if let Some(elf) = &facts.elf {
        let kind = match elf.kind {
            Kind::Executable => "executable",
            Kind::Pie => "PIE",
            Kind::SharedObject => "shared object",
            Kind::Relocatable => "relocatable file",
            Kind::Archive => "archive",
            Kind::Core => "core dump",
            Kind::SeparateDebug => "separate debug file",
        };
        let linkage =
            if elf.is_static && matches!(elf.kind, Kind::Executable | Kind::Pie) { "static " } else { "" };
        parts.push(format!("{} {linkage}{kind}", elf.machine));
        if elf.kind != Kind::Archive {
            parts.push(if elf.stripped { "stripped" } else { "not stripped" }.to_owned());
        }
        if elf.packed {
            parts.push("packed".to_owned());
        }
        match &elf.build_id {
            Some(id) => parts.push(format!("build-id {id}")),
            None if elf.kind != Kind::Archive && elf.kind != Kind::Relocatable => {
                parts.push("no build-id".to_owned());
            }
            None => {}
        }
    }
    if !parts.is_empty() {
        let _ = writeln!(out, "{}", terminal(&parts.join(", ")));
    }
}

pub(super) fn problems(out: &mut String, facts: &Facts, options: Options) {
    if facts.status != Status::Ok {
        labelled(out, 0, "status", status_word(facts.status), options);
    }
    for problem in &facts.problems {
        labelled(out, 0, "!", &terminal(&problem.message), options);
    }
}

fn optimization(out: &mut String, facts: &Facts, options: Options) {
    let optimization = &facts.optimization;
    if facts.elf.is_none() && optimization.level == Level::Unknown && facts.status == Status::Failed {
        return;
    }
    let sources: Vec<&str> = optimization.sources.iter().map(|s| s.as_str()).collect();
    let known = if sources.is_empty() {
        String::new()
    } else {
        format!("  {}: {}", optimization.strength.as_str(), sources.join(", "))
    };
    let style = level_style(optimization.level);
    let complete = if optimization.complete { "" } else { "  (not complete)" };
    labelled(
        out,
        0,
        "level",
        &format!("{}{known}{complete}", paint(style, optimization.level.as_str())),
        options,
    );
    if !optimization.reason.is_empty() {
        labelled(out, 0, "", &terminal(&optimization.reason), options);
    }
    for conflict in &facts.conflicts {
        let said: Vec<String> = conflict
            .claims
            .iter()
            .map(|claim| {
                let value = claim.value.as_str().map_or_else(|| claim.value.to_string(), str::to_owned);
                let quote = claim.quote.as_deref().map(|q| format!(" ({q})")).unwrap_or_default();
                format!("{} says {value}{quote}", claim.source.as_str())
            })
            .collect();
        labelled(out, 0, "conflict", &terminal(&format!("{}: {}", conflict.fact, said.join("; "))), options);
    }
}

pub(super) fn level_style(level: Level) -> anstyle::Style {
    match level {
        Level::O0 => RED,
        Level::Og | Level::Unknown => YELLOW,
        _ => GREEN,
    }
}

/// How nginx's filters hand over; shown only where they were found, since the share among all functions says little.
fn tail_calls(out: &mut String, facts: &Facts, options: Options) {
    let Some(calls) = facts.optimization.tail_calls.as_ref().filter(|c| c.scope == "filter-chain") else {
        return;
    };
    let depth = if calls.tail_calls == 0 {
        ": each adds to the stack, as in every build by gcc below -O2"
    } else {
        ""
    };
    let line = format!(
        "{} of {} header and body filters hand over by a jump{depth}",
        calls.tail_calls, calls.functions
    );
    labelled(out, 0, "filters", &line, options);
}

fn compilers(out: &mut String, facts: &Facts, options: Options) {
    if facts.compilers.is_empty() {
        return;
    }
    let list: Vec<String> = facts
        .compilers
        .iter()
        .map(|c| {
            let version = c.version.as_deref().unwrap_or("");
            let language = c.language.as_deref().map(|l| format!(" {l}")).unwrap_or_default();
            let units =
                if c.units > 0 { format!(" ({})", plural(c.units as usize, "unit")) } else { String::new() };
            format!("{} {version}{language}{units}", c.family).replace("  ", " ")
        })
        .collect();
    labelled(out, 0, "by", &terminal(&list.join(", ")), options);
}

fn build_strings(out: &mut String, facts: &Facts, options: Options) {
    for text in &facts.build_strings {
        // A configure line or a list of features fills the screen; the whole is one option away.
        let value = if options.verbose { text.value.clone() } else { clip(&text.value, SAID_CHARS) };
        let cut = if value.len() < text.value.len() { " (-v shows all)" } else { "" };
        let line = format!("{} {}: {value}{cut}", text.program, text.key);
        labelled(out, 0, "says", &terminal(&line), options);
    }
}

fn hardening(out: &mut String, facts: &Facts, options: Options) {
    let Some(elf) = &facts.elf else { return };
    if matches!(elf.kind, Kind::Archive | Kind::Relocatable | Kind::SeparateDebug | Kind::Core) {
        return;
    }
    let hardening = &facts.hardening;
    let mut parts = Vec::new();
    let mut yes_no = |name: &str, held: &Held<bool>| {
        if let Some(value) = held.value {
            parts.push(format!("{name} {}", if value { "yes" } else { "no" }));
        }
    };
    yes_no("pie", &hardening.pie);
    yes_no("bind-now", &hardening.bind_now);
    yes_no("nx-stack", &hardening.nx_stack);
    yes_no("stack-protector", &hardening.canary);
    if let Some(value) = &hardening.relro.value {
        parts.push(format!("relro {value}"));
    }
    if let Some(value) = &hardening.fortify.value {
        parts.push(format!("fortify {value}"));
    }
    for (name, held) in [("rpath", &hardening.rpath), ("runpath", &hardening.runpath)] {
        if let Some(value) = &held.value {
            parts.push(format!("{name} {value}"));
        }
    }
    if hardening.textrel.value == Some(true) {
        parts.push("text relocations".to_owned());
    }
    if !parts.is_empty() {
        labelled(out, 0, "hardening", &terminal(&parts.join(", ")), options);
    }
    let instrumentation = &facts.instrumentation;
    let mut found: Vec<String> = instrumentation.sanitizers.value.clone().unwrap_or_default();
    if instrumentation.coverage.value == Some(true) {
        found.push("coverage".to_owned());
    }
    if instrumentation.profiling.value == Some(true) {
        found.push("profiling".to_owned());
    }
    if !found.is_empty() {
        labelled(out, 0, "instrumented", &paint(RED, &terminal(&found.join(", "))), options);
    }
}

fn listings(out: &mut String, facts: &Facts, options: Options) {
    if let Some(units) = &facts.units {
        let _ = writeln!(out, "{}", paint(BOLD, &format!("units ({})", units.len())));
        for unit in units {
            let lost = if unit.overridden.is_empty() {
                String::new()
            } else {
                format!("  ({} overridden)", terminal(&unit.overridden.join(", ")))
            };
            let member = unit.member.as_deref().map(|m| format!("{m}: ")).unwrap_or_default();
            let kind = serde_json::to_value(unit.kind).ok();
            let kind = kind.as_ref().and_then(|k| k.as_str()).filter(|k| *k != "source").unwrap_or("");
            let _ = writeln!(
                out,
                "  {} {:>9}  {}{}  {} {kind}",
                paint(level_style(unit.level), &format!("{:<9}", unit.level.as_str())),
                grouped(unit.text_bytes),
                terminal(&format!("{member}{}", unit.name)),
                lost,
                terminal(unit.compiler.as_deref().unwrap_or("")),
            );
        }
    }
    if let Some(flags) = &facts.flags {
        let _ = writeln!(out, "{}", paint(BOLD, "flags (units)"));
        for flag in flags {
            let _ = writeln!(out, "  {:>6}  {}", flag.units, terminal(&flag.flag));
        }
    }
    if let Some(list) = &facts.functions.list {
        let _ = writeln!(out, "{}", paint(BOLD, &format!("functions ({})", list.len())));
        for function in list {
            let _ = writeln!(
                out,
                "  {} {:#x}-{:#x}  {}",
                paint(level_style(function.level), &format!("{:<9}", function.level.as_str())),
                function.start,
                function.end,
                terminal(function.name.as_deref().unwrap_or("")),
            );
        }
    }
    if let Some(list) = facts.nginx.as_ref().and_then(|n| n.directives.as_ref()) {
        let _ = writeln!(out, "{}", paint(BOLD, &format!("directives ({})", list.len())));
        for directive in list {
            let _ = writeln!(
                out,
                "  {}  {}",
                terminal(&directive.name),
                paint(DIM, &terminal(&directive.module))
            );
        }
    }
    let _ = options;
}

/// Every claim about the level, with its place.
pub(super) fn claims(out: &mut String, facts: &Facts, options: Options) {
    for claim in &facts.optimization.claims {
        let value = claim.value.as_str().map_or_else(|| claim.value.to_string(), str::to_owned);
        let place =
            claim.at.as_ref().map(|p| format!(" at {}+{:#x}", p.section, p.offset)).unwrap_or_default();
        let quote = claim.quote.as_deref().map(|q| format!(": {q}")).unwrap_or_default();
        labelled(
            out,
            0,
            "evidence",
            &terminal(&format!(
                "{} {} {value}{place}{quote}",
                claim.strength.as_str(),
                claim.source.as_str()
            )),
            options,
        );
    }
}
