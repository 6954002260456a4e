//! The parts of a section that are plain tables and lists.

use super::CHARS;
use crate::evidence::Held;
use crate::facts::{Facts, Linkage, ModuleOrigin};
use crate::report::escape::html as text;
use crate::report::shared::clip;
use std::fmt::Write as _;

/// Most rows of one table.
const MOST: usize = 3_000;

/// Opens a table whose rows can be searched.
pub(super) fn open_table(out: &mut String, id: &str, search: &str, columns: &[&str]) {
    let _ = write!(
        out,
        "<div id=\"{id}\" data-filter>\n<div class=\"controls\" hidden><label>{search}<br><input type=\"search\"></label></div>\n\
         <p role=\"status\" class=\"dim\"></p>\n<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"{search}: the table\">\n\
         <table>\n<thead><tr>"
    );
    for column in columns {
        let _ = write!(out, "<th scope=\"col\">{column}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
}

/// Closes what [`open_table`] opened.
pub(super) fn close_table(out: &mut String) {
    out.push_str("</tbody>\n</table>\n</div>\n</div>\n");
}

pub(super) fn nginx(out: &mut String, facts: &Facts, index: usize) {
    let Some(nginx) = &facts.nginx else { return };
    if let Some(modules) = nginx.modules.as_ref().filter(|modules| !modules.is_empty()) {
        let _ = writeln!(out, "<h3>Modules ({})</h3>", modules.len());
        open_table(
            out,
            &format!("modules-{index}"),
            "Search modules",
            &["Module", "Linked", "Origin", "Evidence"],
        );
        for module in modules.iter().take(MOST) {
            let sources: Vec<&str> = module.sources.iter().map(|source| source.as_str()).collect();
            let linkage = match module.linkage {
                Linkage::Static => "static",
                Linkage::Dynamic => "dynamic",
            };
            let origin = match module.origin {
                ModuleOrigin::Builtin => "builtin",
                ModuleOrigin::Bundled => "bundled",
                ModuleOrigin::ThirdParty => "third party",
                ModuleOrigin::DistroPatch => "distribution patch",
                ModuleOrigin::Unknown => "unknown",
            };
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\"><code>{}</code></th><td>{linkage}</td><td>{origin}</td><td>{}</td></tr>",
                short(&module.name),
                sources.join(", ")
            );
        }
        close_table(out);
    }
    if !nginx.disabled.is_empty() {
        let names: Vec<String> =
            nginx.disabled.iter().take(MOST).map(|name| format!("<code>{}</code>", short(name))).collect();
        let _ = writeln!(
            out,
            "<p>Of this version's default modules these are left out: {}.</p>",
            names.join(", ")
        );
    }
    if let Some(arguments) = nginx.configure_arguments.as_ref().filter(|arguments| !arguments.is_empty()) {
        let _ = writeln!(out, "<h3>Configure arguments ({})</h3>", arguments.len());
        open_table(out, &format!("configure-{index}"), "Search configure arguments", &["Argument", "Value"]);
        for argument in arguments.iter().take(MOST) {
            let value = match &argument.value {
                Some(value) => format!("<code>{}</code>", short(value)),
                None => "<span class=\"dim\">no value</span>".to_owned(),
            };
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\"><code>{}</code></th><td>{value}</td></tr>",
                short(&argument.name)
            );
        }
        close_table(out);
    }
}

pub(super) fn conflicts(out: &mut String, facts: &Facts) {
    if facts.conflicts.is_empty() {
        return;
    }
    out.push_str("<h3>Evidence that disagrees</h3>\n");
    for conflict in facts.conflicts.iter().take(MOST) {
        let _ = writeln!(
            out,
            "<div class=\"scroll\">\n<table>\n<caption>About <code>{}</code></caption>\n<thead><tr><th scope=\"col\">Value</th>\
             <th scope=\"col\">Grounds</th><th scope=\"col\">Source</th><th scope=\"col\">Place</th>\
             <th scope=\"col\">Words</th></tr></thead>\n<tbody>",
            short(&conflict.fact)
        );
        for claim in conflict.claims.iter().take(MOST) {
            let value = claim.value.as_str().map_or_else(|| claim.value.to_string(), str::to_owned);
            let place =
                claim.at.as_ref().map(|at| format!("{}+{:#x}", at.section, at.offset)).unwrap_or_default();
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td><td><code>{}</code></td><td><code>{}</code></td></tr>",
                short(&value),
                claim.strength.as_str(),
                claim.source.as_str(),
                short(&place),
                short(claim.quote.as_deref().unwrap_or_default())
            );
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }
}

/// Hardening, instrumentation and the like: what is known, in a list of terms.
pub(super) fn properties(out: &mut String, facts: &Facts) {
    let mut list: Vec<(&str, String)> = Vec::new();
    let hardening = &facts.hardening;
    for (name, held) in [
        ("position-independent", &hardening.pie),
        ("immediate binding", &hardening.bind_now),
        ("stack not executable", &hardening.nx_stack),
        ("stack protector", &hardening.canary),
        ("indirect branch tracking", &hardening.ibt),
        ("shadow stack", &hardening.shstk),
        ("branch target identification", &hardening.bti),
        ("pointer authentication", &hardening.pac),
        ("text relocations", &hardening.textrel),
        ("profile-guided", &facts.pgo),
        ("coverage", &facts.instrumentation.coverage),
        ("profiling", &facts.instrumentation.profiling),
        ("debug build", &facts.instrumentation.debug_build),
        ("assertions", &facts.instrumentation.assertions),
    ] {
        push(&mut list, name, held, |value| if *value { "yes".to_owned() } else { "no".to_owned() });
    }
    for (name, held) in [
        ("relro", &hardening.relro),
        ("fortify", &hardening.fortify),
        ("rpath", &hardening.rpath),
        ("runpath", &hardening.runpath),
        ("link-time optimization", &facts.lto),
        ("processor", &facts.cpu.baseline),
    ] {
        push(&mut list, name, held, Clone::clone);
    }
    push(&mut list, "sanitizers", &facts.instrumentation.sanitizers, |names| {
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    });
    for string in facts.build_strings.iter().take(100) {
        list.push(("says of itself", format!("{} {}: {}", string.program, string.key, string.value)));
    }
    if list.is_empty() {
        return;
    }
    out.push_str("<h3>Build properties</h3>\n<dl>\n");
    for (name, value) in list {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", short(&value));
    }
    out.push_str("</dl>\n");
}

fn push<T>(
    list: &mut Vec<(&'static str, String)>,
    name: &'static str,
    held: &Held<T>,
    word: impl Fn(&T) -> String,
) {
    if let Some(value) = &held.value {
        list.push((name, format!("{} ({})", word(value), held.strength.as_str())));
    }
}

fn short(value: &str) -> String {
    text(&clip(value, CHARS))
}
