//! What is in a server of the nginx family.

use crate::facts::{ConfigChoice, Facts, Linkage, Module, ModuleOrigin, Nginx};
use crate::nginx::config::GIVEN;
use crate::nginx::features;
use crate::report::text::{BOLD, Options, labelled, paint, terminal};
use crate::wording::plural;
use std::fmt::Write as _;

/// Modules, what the build is able to do, its configuration and how it was configured.
pub(super) fn nginx(out: &mut String, facts: &Facts, options: Options) {
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
            if !is_module_file(facts) {
                labelled(out, 0, "has", &present(modules), options);
            }
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
        // They are in the server.
        None if is_module_file(facts) => {}
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
                more if list.is_empty() => {
                    list.push(format!("{} (-v shows them)", plural(more as u64, "argument")));
                }
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
pub(in crate::report::text) fn nginx_summary(out: &mut String, facts: &Facts, options: Options) {
    let Some(nginx) = &facts.nginx else { return };
    let Some(modules) = &nginx.modules else { return };
    if is_module_file(facts) {
        return;
    }
    let unchecked =
        if nginx.config.is_none() { " · configuration not checked: no --nginx-conf" } else { "" };
    labelled(out, 0, "has", &format!("{}{unchecked}", present(modules)), options);
    configuration(out, nginx, options);
}

/// Whether the file is a dynamic module: what that lacks is in the server that loads it.
fn is_module_file(facts: &Facts) -> bool {
    facts.product.as_ref().is_some_and(|product| product.name == "nginx-module")
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
fn short(name: &str) -> &str {
    let name = name.strip_prefix("ngx_").unwrap_or(name);
    name.strip_suffix("_module").unwrap_or(name)
}
