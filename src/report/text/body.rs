//! What is in the binary.

use super::{
    BOLD, DIM, GREEN, Options, RED, YELLOW, labelled, paint, plural, status_word, terminal, thousands,
};
use crate::compiler::Level;
use crate::evidence::Held;
use crate::facts::{ConfigChoice, Facts, Kind, Linkage, Module, ModuleOrigin, Nginx, Status};
use crate::nginx::config::GIVEN;
use crate::nginx::features;
use crate::report::shared::clip;
use std::fmt::Write as _;

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
    nginx(out, facts, options);
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
            let _ = write!(text, ", on {} {}", base.name, base.version.as_deref().unwrap_or("?"));
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

/// The text by level, as bars.
pub(super) fn text_map(out: &mut String, facts: &Facts, options: Options) {
    let text = facts.optimization.text;
    if text.bytes == 0 {
        return;
    }
    let columns: usize = if options.width < 90 { 8 } else { 16 };
    let mut label = "text";
    let mut row = |name: &str, bytes: u64, style: anstyle::Style, what: String| {
        if bytes == 0 {
            return;
        }
        let share = bytes as f64 / text.bytes as f64;
        let cells = ((share * columns as f64).round() as usize).max(1);
        let bar = format!("{}{}", "█".repeat(cells), "·".repeat(columns.saturating_sub(cells)));
        let _ = writeln!(
            out,
            "{}{:pad$}{} {} {:>5.1} %  {:>11} bytes{what}",
            paint(super::CYAN, label),
            "",
            paint(style, &format!("{name:<9}")),
            paint(style, &bar),
            share * 100.0,
            thousands(bytes),
            pad = 8 - label.len(),
        );
        label = "";
    };
    for share in &facts.optimization.by_level {
        let what = match (share.units, share.functions) {
            (0, 0) => String::new(),
            (0, functions) => format!("  {}", plural(functions as usize, "function")),
            (units, _) => format!("  {}", plural(units as usize, "unit")),
        };
        row(share.level.as_str(), share.text_bytes, level_style(share.level), what);
    }
    // The parts sum to the whole: what has a record but no level of its own is assembler, toolchain and library code.
    let judged: u64 = facts.optimization.by_level.iter().map(|share| share.text_bytes).sum();
    let apart = text.bytes.saturating_sub(judged).saturating_sub(text.runtime).saturating_sub(text.padding);
    row("no level", apart, DIM, "  assembler, toolchain, library".to_owned());
    row("runtime", text.runtime, DIM, "  start code, PLT".to_owned());
    if options.verbose {
        row("padding", text.padding, DIM, String::new());
    }
}

/// How nginx's filters hand over; shown only where symbols name them, since elsewhere it says little.
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

fn nginx(out: &mut String, facts: &Facts, options: Options) {
    let Some(nginx) = &facts.nginx else { return };
    match &nginx.modules {
        None => labelled(out, 0, "modules", "unknown: no module table could be read", options),
        Some(modules) => {
            let count = |l: Linkage| modules.iter().filter(|m| m.linkage == l).count();
            let named = |origin: ModuleOrigin| -> String {
                let list: Vec<&str> =
                    modules.iter().filter(|m| m.origin == origin).map(|m| short(&m.name)).collect();
                if list.is_empty() { "none".to_owned() } else { list.join(" ") }
            };
            let mut line = format!("{} static, {} dynamic", count(Linkage::Static), count(Linkage::Dynamic));
            let loaded: Vec<&str> =
                nginx.dynamic_modules.iter().filter_map(|m| m.name.as_deref()).map(short).collect();
            if !loaded.is_empty() {
                let _ = write!(line, " (loaded: {})", loaded.join(" "));
            }
            for (word, origin) in [
                ("bundled", ModuleOrigin::Bundled),
                ("third-party", ModuleOrigin::ThirdParty),
                ("distribution patch", ModuleOrigin::DistroPatch),
                ("unknown origin", ModuleOrigin::Unknown),
            ] {
                let list = named(origin);
                if list != "none" || origin == ModuleOrigin::ThirdParty {
                    let _ = write!(line, " · {word}: {list}");
                }
            }
            labelled(out, 0, "modules", &terminal(&line), options);
            labelled(out, 0, "has", &present(modules), options);
            if options.verbose {
                let all: Vec<&str> = modules.iter().map(|m| m.name.as_str()).collect();
                labelled(out, 0, "", &terminal(&all.join(" ")), options);
            }
        }
    }
    if let Some(debug) = nginx.debug.value {
        labelled(out, 0, "debug", &format!("--with-debug: {}", if debug { "yes" } else { "no" }), options);
    }
    able(out, nginx, options);
    configuration(out, nginx, options);
    match &nginx.configure_arguments {
        None => labelled(out, 0, "configured", "unknown: no configure arguments in the file", options),
        Some(arguments) => {
            // How it was compiled; modules are named above, and paths are one option away.
            let telling = |name: &str| {
                let compiled =
                    ["--with-cc", "--with-cpu", "--with-ld", "--with-debug", "--with-compat", "--add-"];
                options.verbose
                    || compiled.iter().any(|start| name.starts_with(start))
                    || name.ends_with("-opt")
            };
            let mut list: Vec<String> = arguments
                .iter()
                .filter(|a| telling(&a.name))
                .map(|a| match &a.value {
                    None => a.name.clone(),
                    Some(value) if value.contains(' ') => format!("{}='{value}'", a.name),
                    Some(value) => format!("{}={value}", a.name),
                })
                .collect();
            match arguments.len() - list.len() {
                0 => {}
                more if list.is_empty() => list.push(format!("{more} arguments (-v shows them)")),
                more => list.push(format!("and {more} more (-v shows all)")),
            }
            let text = if list.is_empty() { "no arguments".to_owned() } else { list.join(" ") };
            labelled(out, 0, "configured", &terminal(&text), options);
        }
    }
}

/// Which configuration was held against the build.
fn configuration(out: &mut String, nginx: &Nginx, options: Options) {
    let Some(config) = &nginx.config else { return };
    let file = config.files.iter().find(|file| *file != GIVEN).map(String::as_str).unwrap_or_default();
    let how = match config.chosen_by {
        ConfigChoice::Option => return,
        ConfigChoice::CommandLine => "from the command line",
        ConfigChoice::BuiltIn => "the built-in path",
    };
    let line = format!("{} ({how}; the copy on disk may differ from memory)", terminal(file));
    labelled(out, 0, "config", &line, options);
}

/// What the build is proven to be able to do, and not; with `-v` by what.
fn able(out: &mut String, nginx: &Nginx, options: Options) {
    let held = |name: &str| nginx.features.get(name).filter(|held| held.value.is_some());
    let words = |wanted: bool| {
        let list =
            features::NAMES.iter().filter(|(name, _)| held(name).is_some_and(|h| h.value == Some(wanted)));
        list.map(|(_, words)| *words).collect::<Vec<_>>().join(", ")
    };
    let (can, cannot) = (words(true), words(false));
    if can.is_empty() && cannot.is_empty() {
        return;
    }
    let mut line = if can.is_empty() { "nothing known".to_owned() } else { can };
    if !cannot.is_empty() {
        let _ = write!(line, "   {} {cannot}", paint(BOLD, "not"));
    }
    labelled(out, 0, "able", &line, options);
    if options.verbose {
        for (name, words) in features::NAMES {
            let Some(held) = held(name) else { continue };
            let sources: Vec<&str> = held.sources.iter().map(|source| source.as_str()).collect();
            let yes = if held.value == Some(true) { "yes" } else { "no" };
            let line = format!("{words}: {yes}, {} ({})", held.strength.as_str(), sources.join(", "));
            labelled(out, 0, "", &line, options);
        }
    }
}

/// The line that ends a verdict on an nginx: what is there, and what nobody asked about.
pub(super) fn nginx_summary(out: &mut String, facts: &Facts, options: Options) {
    let Some(nginx) = &facts.nginx else { return };
    let Some(modules) = &nginx.modules else { return };
    // What a dynamic module lacks is in the server that loads it.
    if facts.product.as_ref().is_some_and(|product| product.name == "nginx-module") {
        return;
    }
    let unchecked =
        if nginx.config.is_none() { " · configuration not checked: no --nginx-conf" } else { "" };
    labelled(out, 0, "has", &format!("{}{unchecked}", present(modules)), options);
    configuration(out, nginx, options);
}

/// The modules people ask for first: which are compiled in, and which are not.
fn present(modules: &[Module]) -> String {
    let has = |name: &str| modules.iter().any(|m| short(&m.name) == name && m.linkage == Linkage::Static);
    let wanted = [
        ("gzip_static", "http_gzip_static"),
        ("gunzip", "http_gunzip_filter"),
        ("threads", "thread_pool"),
        ("http_v2", "http_v2"),
        ("http_v3", "http_v3"),
        ("upstream keepalive", "http_upstream_keepalive"),
    ];
    let (present, absent): (Vec<_>, Vec<_>) = wanted.iter().partition(|(_, module)| has(module));
    let words = |list: Vec<&(&str, &str)>| list.iter().map(|(w, _)| *w).collect::<Vec<_>>().join(" ");
    let mut line = words(present);
    if !absent.is_empty() {
        let _ = write!(line, "   {} {}", paint(BOLD, "lacks"), words(absent));
    }
    line
}

/// A module's name without `ngx_` and `_module`.
pub(super) fn short(name: &str) -> &str {
    let name = name.strip_prefix("ngx_").unwrap_or(name);
    name.strip_suffix("_module").unwrap_or(name)
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
                thousands(unit.text_bytes),
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
