//! A first policy from a good binary: it passes, and what would make it worse is caught.

use super::check::{FAMILIES, is_baseline};
use super::matching::module_names;
use super::show::quote;
use crate::compiler::{Level, Satisfies};
use crate::evidence::{Held, Strength};
use crate::facts::{Facts, Kind, Linkage, ModuleOrigin, Unit, UnitKind};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Flags worth keeping once every unit of the binary's own has them: each guards against a class of memory errors.
const GUARDS: [&str; 4] = [
    "-fstack-protector-strong",
    "-fstack-protector-all",
    "-fstack-clash-protection",
    "-ftrivial-auto-var-init=zero",
];

/// Configure arguments that say where and by whom, not what: they differ between good builds.
const LOCAL: [&str; 12] = [
    "--prefix",
    "--user",
    "--group",
    "--build",
    "--builddir",
    "--with-cc",
    "--with-cpp",
    "--with-cc-opt",
    "--with-ld-opt",
    "--add-module",
    "--add-dynamic-module",
    "--with-perl",
];

/// Writes a commented policy, in TOML, which the inspected binary passes.
///
/// Only what the facts hold is asked for; where they are unsure, the policy says so and is as lenient as it must be.
/// `name` becomes the policy's name.
pub fn init(facts: &Facts, name: &str) -> String {
    let mut out = Draft { text: String::new() };
    out.comment(&format!("Made by `flagaudit policy init` from {}.", one_line(&facts.path)));
    out.comment(&described(facts));
    out.comment("That binary passes; every line below is something a later build could lose. Loosen what is too strict.");
    out.text.push('\n');
    let _ = writeln!(out.text, "schema  = 1\nname    = {}\nextends = \"builtin:release\"", quote(name));
    out.optimization(facts);
    out.compiler(facts);
    out.flags(facts);
    out.cpu(facts);
    out.hardening(facts);
    out.instrumentation(facts);
    out.nginx(facts);
    out.rules(facts);
    out.text
}

struct Draft {
    text: String,
}

impl Draft {
    fn comment(&mut self, words: &str) {
        let _ = writeln!(self.text, "# {words}");
    }

    fn table(&mut self, name: &str) {
        let _ = writeln!(self.text, "\n[{name}]");
    }

    /// `key = value   # why`, with the comments of a table roughly under each other.
    fn line(&mut self, key: &str, value: &str, why: &str) {
        let text = format!("{key} = {value}");
        let _ = if why.is_empty() {
            writeln!(self.text, "{text}")
        } else {
            writeln!(self.text, "{text:<34} # {}", one_line(why))
        };
    }

    fn list(&mut self, key: &str, items: &[String]) {
        let _ = writeln!(self.text, "{key} = [");
        for item in items {
            let _ = writeln!(self.text, "  {},", quote(item));
        }
        let _ = writeln!(self.text, "]");
    }

    fn optimization(&mut self, facts: &Facts) {
        let optimization = &facts.optimization;
        let why = format!("{}; {}", optimization.strength.as_str(), optimization.reason);
        self.table("optimization");
        match known_level(facts) {
            Level::Unknown => {
                self.comment(
                    "Nothing tells the level of this binary; the minimum below is the built-in one.",
                );
                self.line("minimum", "\"O1\"", "");
            }
            Level::Optimized => {
                self.comment(
                    "Optimized; how far cannot be proven from the binary. Built with -g, it would say.",
                );
                self.line("minimum", "\"O1\"", &why);
            }
            Level::O0 | Level::Og => {
                self.comment("This is hardly a good build: its lowest level is below -O1. Raise it once that is mended.");
                self.line("minimum", &quote(known_level(facts).as_str()), &why);
            }
            level @ (Level::Os | Level::Oz) => {
                self.line("minimum", "\"O2\"", "");
                self.line("allow", &format!("[{}]", quote(level.as_str())), &why);
                self.line("recommended", "\"O1\"", "so that the allowed level passes without a warning");
            }
            level => {
                self.line("minimum", &quote(level.as_str()), &why);
                if level.satisfies(Level::O2) == Satisfies::Yes {
                    self.line("recommended", &quote(level.as_str()), "");
                } else {
                    self.comment("`recommended` stays O2: this build gets a warning.");
                }
            }
        }
        let unread = optimization.strength == Strength::Declared && facts.functions.judged == 0;
        if unread {
            self.line(
                "evidence",
                "\"declared\"",
                "its code could not be read, so that only the declaration stands",
            );
        }
        let unsure = !optimization.complete
            || optimization.level == Level::Unknown
            || optimization.text.unknown > 0
            || facts.units.iter().flatten().any(|unit| judged(unit) && unit.level == Level::Unknown);
        if unsure {
            let why = "part of this binary's code is told by nothing; \"error\" once it is built with -g";
            self.line("undetermined", "\"warning\"", why);
        }
        let lowest = facts
            .units
            .iter()
            .flatten()
            .filter(|unit| unit.kind == UnitKind::Library && unit.level != Level::Unknown)
            .map(|unit| unit.level)
            .min();
        if let Some(lowest) = lowest.filter(|level| level.satisfies(Level::O1) == Satisfies::No) {
            let value = format!("{{ minimum = {}, undetermined = \"warning\" }}", quote(lowest.as_str()));
            self.line("libraries", &value, "a library linked into it is built so");
        }
    }

    fn compiler(&mut self, facts: &Facts) {
        let unknown = facts
            .units
            .iter()
            .flatten()
            .filter(|unit| {
                matches!(unit.kind, UnitKind::Source | UnitKind::Skeleton) && unit.compiler.is_none()
            })
            .count();
        if unknown > 0 {
            self.text.push('\n');
            self.comment("[compiler] allow is left out: of some units, nothing tells the compiler.");
            return;
        }
        // Assemblers make units without a level, and are not held against the list.
        let compiles = |family: &str| {
            FAMILIES.contains(&family) && !matches!(family, "gas" | "nasm" | "yasm" | "unknown")
        };
        let seen: BTreeSet<String> = facts
            .compilers
            .iter()
            .filter(|seen| compiles(&seen.family))
            .map(|seen| match seen.version.as_deref().and_then(super::version::leading_numbers) {
                Some(numbers) => {
                    format!("{} = {}", seen.family, numbers.first().copied().unwrap_or_default())
                }
                None => seen.family.clone(),
            })
            .collect();
        if !seen.is_empty() {
            self.table("compiler");
            self.comment(
                "Family and major version. The maker of the start files and of linked libraries counts too.",
            );
            self.list("allow", &seen.into_iter().collect::<Vec<_>>());
        }
    }

    fn flags(&mut self, facts: &Facts) {
        let own: Vec<&Unit> = facts.units.iter().flatten().filter(|unit| judged(unit)).collect();
        if own.is_empty() || !own.iter().all(|unit| unit.flags_recorded || !unit.flags.is_empty()) {
            return;
        }
        let guards: Vec<String> = GUARDS
            .iter()
            .filter(|guard| own.iter().all(|unit| unit.flags.iter().any(|flag| flag == *guard)))
            .map(|guard| (*guard).to_owned())
            .collect();
        if !guards.is_empty() {
            self.once_recorded(
                "Recorded for every unit of its own",
                &format!(
                    "[flags]\nrequire = [{}]",
                    guards.iter().map(|guard| quote(guard)).collect::<Vec<_>>().join(", ")
                ),
            );
        }
    }

    /// Something that only the compiler's record shows: in a stripped build it would be undetermined, so it is offered and
    /// not asked for.
    fn once_recorded(&mut self, what: &str, lines: &str) {
        self.text.push('\n');
        self.comment(&format!(
            "{what}. For builds that keep their debug information (stripped, nothing tells):"
        ));
        for line in lines.lines() {
            self.comment(line);
        }
    }

    fn cpu(&mut self, facts: &Facts) {
        if let Some(baseline) = facts.cpu.baseline.value.as_deref().filter(|word| is_baseline(word)) {
            let lines = format!("[cpu]\nbaseline = {}", quote(baseline));
            if facts.cpu.baseline.strength == Strength::Recorded {
                self.once_recorded("Anything beyond this would not start on older machines", &lines);
            } else {
                self.table("cpu");
                self.line(
                    "baseline",
                    &quote(baseline),
                    "anything beyond it would not start on older machines",
                );
            }
        }
    }

    fn hardening(&mut self, facts: &Facts) {
        let hardening = &facts.hardening;
        let yes = |held: &Held<bool>| held.value == Some(true);
        let mut lines: Vec<(&str, String)> = Vec::new();
        if yes(&hardening.pie) {
            lines.push(("pie", "true".to_owned()));
        }
        if let Some(relro @ ("partial" | "full")) = hardening.relro.value.as_deref() {
            lines.push(("relro", quote(relro)));
        }
        let more = [
            ("bind-now", yes(&hardening.bind_now)),
            ("nx-stack", yes(&hardening.nx_stack)),
            ("stack-protector", yes(&hardening.canary)),
            ("fortify", hardening.fortify.value.as_deref() == Some("yes")),
            ("cet", yes(&hardening.ibt) && yes(&hardening.shstk)),
        ];
        lines.extend(more.into_iter().filter(|(_, has)| *has).map(|(key, _)| (key, "true".to_owned())));
        let linked = facts
            .elf
            .as_ref()
            .is_some_and(|elf| matches!(elf.kind, Kind::Executable | Kind::Pie | Kind::SharedObject));
        let none = |held: &Held<String>| held.value.as_deref().unwrap_or("").is_empty();
        if linked && none(&hardening.rpath) && none(&hardening.runpath) {
            lines.push(("rpath", "false".to_owned()));
        }
        if linked && hardening.textrel.value == Some(false) {
            lines.push(("text-relocations", "false".to_owned()));
        }
        if !lines.is_empty() {
            self.table("hardening");
            for (key, value) in lines {
                self.line(key, &value, "");
            }
        }
    }

    fn instrumentation(&mut self, facts: &Facts) {
        let seen = &facts.instrumentation;
        let present = [
            ("sanitizers", seen.sanitizers.value.as_ref().is_some_and(|names| !names.is_empty())),
            ("coverage", seen.coverage.value == Some(true)),
            ("profiling", seen.profiling.value == Some(true)),
        ];
        if present.iter().any(|(_, there)| *there) {
            let names = |wanted: bool| {
                let names = present.iter().filter(|(_, there)| *there == wanted).map(|(name, _)| quote(name));
                names.collect::<Vec<_>>().join(", ")
            };
            self.table("instrumentation");
            self.comment(&format!("This binary is instrumented ({}): hardly one to ship.", names(true)));
            self.line("forbid", &format!("[{}]", names(false)), "");
        }
    }

    fn nginx(&mut self, facts: &Facts) {
        let Some(nginx) = &facts.nginx else { return };
        let version = facts.product.as_ref().and_then(|product| product.version.as_deref());
        if let Some(numbers) = version.and_then(super::version::leading_numbers) {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            self.table("nginx");
            self.line("version", &format!("[{}]", quote(&format!(">= {}", numbers.join(".")))), "");
        }
        let mut modules: Vec<String> = Vec::new();
        let mut dynamic: Vec<String> = Vec::new();
        for module in nginx.modules.iter().flatten().filter(|module| is_name(&module.name)) {
            let own = module.origin == ModuleOrigin::Builtin;
            let name = match module_names(&module.name).get(2) {
                Some(short) if own => (*short).to_owned(),
                _ => module.name.clone(),
            };
            // The core is in every nginx; listing it would only be noise.
            let optional =
                !own || ["http_", "mail_", "stream_"].iter().any(|prefix| name.starts_with(prefix));
            // A dynamic one is not in this file, and no check of it would find it there. Its argument is required below.
            let elsewhere = module.linkage == Linkage::Dynamic && own && nginx.configure_arguments.is_some();
            let list = if elsewhere { &mut dynamic } else { &mut modules };
            if optional && !list.contains(&name) {
                list.push(name);
            }
        }
        if !modules.is_empty() {
            self.table("nginx.modules");
            self.comment("Set `exact = true` to have anything beyond these reported as well.");
            self.list("require", &modules);
            if !dynamic.is_empty() {
                let words = "Dynamic modules are files of their own, and the arguments that build them are required below.";
                self.comment(&format!("{words} With `exact`:"));
                let names: Vec<String> = dynamic.iter().map(|name| quote(name)).collect();
                self.comment(&format!("allow = [{}]", names.join(", ")));
            }
        }
        let Some(arguments) = &nginx.configure_arguments else { return };
        let wanted: Vec<String> = arguments
            .iter()
            .filter(|argument| {
                argument.name.starts_with("--") && is_name(argument.name.trim_start_matches('-'))
            })
            .filter(|argument| !LOCAL.contains(&argument.name.as_str()) && !argument.name.ends_with("-path"))
            .filter_map(|argument| match argument.value.as_deref() {
                None => Some(argument.name.clone()),
                Some("dynamic") => Some(format!("{}=dynamic", argument.name)),
                Some(_) => None,
            })
            .filter(|text| text != "--with-debug")
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let debug = arguments.iter().any(|argument| argument.name == "--with-debug");
        if !wanted.is_empty() || !debug {
            self.table("nginx.configure");
        }
        if !wanted.is_empty() {
            self.list("require", &wanted);
        }
        if !debug {
            self.line("forbid", "[\"--with-debug\"]", "");
        }
    }

    fn rules(&mut self, facts: &Facts) {
        let mut lines = Vec::new();
        let seen = &facts.instrumentation;
        if seen.debug_build.value == Some(false) && seen.assertions.value != Some(true) {
            lines.push(("debug-build", "\"error\"", "this build is none"));
        }
        if !facts.conflicts.is_empty() {
            lines.push((
                "conflicting-evidence",
                "\"warning\"",
                "what this binary says about itself does not agree: look into it",
            ));
        }
        if !lines.is_empty() {
            self.table("rules");
            for (key, value, why) in lines {
                self.line(key, value, why);
            }
        }
    }
}

/// The level of the whole; where that is unknown, the lowest one that is known of a unit.
fn known_level(facts: &Facts) -> Level {
    let lowest = facts
        .units
        .iter()
        .flatten()
        .filter(|unit| unit.kind == UnitKind::Source && unit.level != Level::Unknown)
        .map(|unit| unit.level)
        .min();
    match facts.optimization.level {
        Level::Unknown => lowest.unwrap_or_default(),
        level => level,
    }
}

/// Whether the policy's levels are held against a unit.
fn judged(unit: &Unit) -> bool {
    unit.kind == UnitKind::Source && unit.text_bytes > 0
}

/// Product, build-id and compilers in one line.
fn described(facts: &Facts) -> String {
    let mut words = Vec::new();
    if let Some(product) = &facts.product {
        words.push(format!("{} {}", product.name, product.version.as_deref().unwrap_or("(version unknown)")));
    }
    if let Some(id) = facts.elf.as_ref().and_then(|elf| elf.build_id.as_ref()) {
        words.push(format!("build-id {id}"));
    }
    words.push(format!("level {}", facts.optimization.level));
    one_line(&words.join(", "))
}

/// Names from a binary go into a policy only if they look like names: anything else could break out of its line.
fn is_name(text: &str) -> bool {
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.');
    !text.is_empty() && text.len() <= 200 && text.chars().all(named)
}

/// Text from a binary in a comment must not end the line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

#[cfg(test)]
mod tests;
