//! What a build can do, each thing seen in the binary itself: in texts that are there only with it or only without
//! it, in the module table, in the functions it takes from libraries, in the module signature.
//!
//! A feature that nothing proves is not in the list. Where witnesses disagree both are kept as a conflict, and the
//! feature is not in the list either.

use super::memory::Memory;
use super::modules::Table;
use super::scan::Found;
use super::version::{self, Version};
use super::{NginxFacts, configure, directives, markers};
use crate::compiler::options::split_shell;
use crate::evidence::{Claim, Held, Scope, Source, Strength};
use crate::facts::Conflict;
use crate::image::linkage::Linkage as Linked;
use crate::image::pointers::Pointers;
use crate::image::symbols::SymbolTable;
use std::collections::BTreeMap;

/// Names of the features, in the order in which they are shown, with the words for people.
pub const NAMES: [(&str, &str); 12] = [
    ("threads", "threads"),
    ("file_aio", "file AIO"),
    ("pcre", "PCRE"),
    ("pcre_jit", "PCRE JIT"),
    ("http_v2", "HTTP/2"),
    ("http_v3", "HTTP/3"),
    ("ktls", "kTLS-capable"),
    ("reuseport", "reuseport"),
    ("upstream_keepalive_default", "upstream keepalive by default"),
    ("no_pool", "no-pool"),
    ("lua_assertions", "Lua assertions"),
    ("lua_abort_at_panic", "abort at Lua panic"),
];

/// What the program's file is read through.
pub(super) struct Reading<'r> {
    pub(super) memory: &'r Memory<'r>,
    pub(super) pointers: &'r Pointers,
    pub(super) linkage: &'r Linked,
    pub(super) symbols: &'r SymbolTable,
    pub(super) found: &'r Found,
    pub(super) table: &'r Table,
    /// Names of the table's modules, in its order.
    pub(super) names: &'r [String],
}

/// One witness of one feature.
struct Seen {
    feature: &'static str,
    value: bool,
    strength: Strength,
    source: Source,
    quote: String,
}

/// Adds the features to what is known of a program.
pub(super) fn add(out: &mut NginxFacts, reading: &Reading<'_>) {
    let shown = markers::read(reading.memory, reading.found);
    out.claims.extend(shown.iter().cloned());
    debug(out, &shown);
    let mut seen: Vec<Seen> = shown
        .iter()
        .filter_map(|claim| {
            let name = claim.fact.strip_prefix("nginx.")?;
            let (feature, _) = NAMES.iter().find(|(own, _)| *own == name)?;
            let value = claim.value == true;
            let quote = claim.quote.clone().unwrap_or_default();
            Some(Seen { feature, value, strength: claim.strength, source: claim.source, quote })
        })
        .collect();
    modules(out, reading, &mut seen);
    imports(reading, &mut seen);
    no_kernel_tls(reading, &mut seen);
    signature(out, &mut seen);
    arguments(out, &mut seen);
    openresty(out, reading, &mut seen);
    keepalive(reading, &mut seen);
    hold(out, seen);
}

/// `--with-debug`, which has a place of its own among the facts.
fn debug(out: &mut NginxFacts, shown: &[Claim]) {
    let mine: Vec<&Claim> = shown.iter().filter(|claim| claim.fact == "nginx.debug").collect();
    let Some(first) = mine.first() else { return };
    let value = first.value == true;
    let declared = out.nginx.debug.value;
    let divided = mine.iter().any(|claim| claim.value != first.value);
    if divided || declared.is_some_and(|said| said != value) {
        let claims = out.claims.iter().filter(|c| c.fact == "nginx.debug").cloned().collect();
        out.conflicts.push(Conflict { fact: "nginx.debug".to_owned(), claims });
    }
    if divided {
        return;
    }
    let mut held = Held::new(value, Strength::Structural, Source::BuildString);
    if declared == Some(value) {
        held.sources.extend(&out.nginx.debug.sources);
    }
    out.nginx.debug = held;
}

/// The module table tells what is a module of its own.
fn modules(out: &NginxFacts, reading: &Reading<'_>, seen: &mut Vec<Seen>) {
    let proven = |name: &str| reading.names.iter().any(|own| own == name);
    if reading.names.is_empty() {
        return;
    }
    let version = version::nginx_version(Some(&out.product));
    for (feature, module, since) in [
        ("threads", "ngx_thread_pool_module", Version(1, 7, 11)),
        ("pcre", "ngx_regex_module", Version(1, 1, 12)),
        ("http_v2", "ngx_http_v2_module", Version(1, 9, 5)),
        ("http_v3", "ngx_http_v3_module", Version(1, 25, 0)),
    ] {
        let value = proven(module);
        // Before its module came, what is called so now was done otherwise: patterns without a module of their own.
        if !value && feature == "pcre" && version.is_none_or(|version| version < since) {
            continue;
        }
        let quote = format!("{module} {}", if value { "is in the table" } else { "is not in the table" });
        seen.push(Seen {
            feature,
            value,
            strength: Strength::Structural,
            source: Source::ModuleTable,
            quote,
        });
    }
}

/// Functions that the program takes from shared libraries.
fn imports(reading: &Reading<'_>, seen: &mut Vec<Seen>) {
    for (feature, name) in
        [("ktls", &b"SSL_sendfile"[..]), ("pcre_jit", b"pcre2_jit_compile_8"), ("pcre", b"pcre2_compile_8")]
    {
        if reading.symbols.iter().any(|s| s.undefined && s.base_name() == name) {
            seen.push(Seen {
                feature,
                value: true,
                strength: Strength::Structural,
                source: Source::Imports,
                quote: String::from_utf8_lossy(name).into_owned(),
            });
        }
    }
}

/// A program that takes OpenSSL from a shared library, and not this function, cannot hand the sending of files to the kernel.
fn no_kernel_tls(reading: &Reading<'_>, seen: &mut Vec<Seen>) {
    let takes = |name: &[u8]| reading.symbols.iter().any(|s| s.undefined && s.base_name() == name);
    if takes(b"SSL_new") && !takes(b"SSL_sendfile") {
        seen.push(Seen {
            feature: "ktls",
            value: false,
            strength: Strength::Structural,
            source: Source::Imports,
            quote: "SSL_new is imported, SSL_sendfile is not".to_owned(),
        });
    }
}

/// Positions of the module signature, but those that `--with-compat` sets whether or not the feature is there.
fn signature(out: &NginxFacts, seen: &mut Vec<Seen>) {
    let Some(signature) = &out.nginx.signature else { return };
    let exact = signature.compat != Some(true);
    for (feature, position) in [
        ("threads", "threads"),
        ("file_aio", "file_aio"),
        ("pcre", "pcre"),
        ("http_v2", "http_v2"),
        ("reuseport", "reuseport"),
    ] {
        let Some(value) = signature.flags.get(position).copied() else { continue };
        if exact || feature == "pcre" {
            let quote = format!("position {position} of {}", signature.raw);
            seen.push(Seen {
                feature,
                value,
                strength: Strength::Structural,
                source: Source::ModuleTable,
                quote,
            });
        }
    }
}

/// What the configure arguments say of features that are no modules (those are compared with the module table).
fn arguments(out: &NginxFacts, seen: &mut Vec<Seen>) {
    let Some(list) = &out.nginx.configure_arguments else { return };
    let value = list.iter().any(|argument| argument.name == "--with-file-aio");
    // A witness of nothing by itself: it counts where the binary shows the feature or its absence.
    if seen.iter().any(|one| one.feature == "file_aio") {
        let quote = if value { "--with-file-aio" } else { "no --with-file-aio" };
        seen.push(Seen {
            feature: "file_aio",
            value,
            strength: Strength::Declared,
            source: Source::ConfigureArguments,
            quote: quote.to_owned(),
        });
    }
}

/// What OpenResty's builds have besides: its debugging patches, and Lua.
fn openresty(out: &NginxFacts, reading: &Reading<'_>, seen: &mut Vec<Seen>) {
    let mut say = |feature, value, strength, source, quote: String| {
        seen.push(Seen { feature, value, strength, source, quote });
    };
    if out.product.name == "openresty" {
        let text = out.product.build_text.as_deref();
        let quote = text.map_or_else(|| "no build text".to_owned(), |text| format!("({text})"));
        say("no_pool", text == Some("no pool"), Strength::Declared, Source::BuildString, quote);
    }
    let lua = reading.names.iter().any(|name| name.contains("_lua_module"));
    if !lua {
        return;
    }
    let arguments = out.nginx.configure_arguments.as_deref().unwrap_or_default();
    let options = configure::last_value(arguments, "--with-cc-opt").map(split_shell).unwrap_or_default();
    let panic_text = reading.found.markers.iter().zip(&markers::TEXTS);
    let panic_text = panic_text.filter(|(_, marker)| marker.fact == "nginx.lua_abort_at_panic");
    if panic_text.into_iter().all(|(offset, _)| offset.is_none())
        && options.iter().any(|word| word == "-DNGX_LUA_ABORT_AT_PANIC")
    {
        let quote = "-DNGX_LUA_ABORT_AT_PANIC in --with-cc-opt, and no text of the other way".to_owned();
        say("lua_abort_at_panic", true, Strength::Declared, Source::ConfigureArguments, quote);
    }
    if options.iter().any(|word| word == "-DNGX_LUA_USE_ASSERT") {
        let quote = "-DNGX_LUA_USE_ASSERT in --with-cc-opt".to_owned();
        say("lua_assertions", true, Strength::Declared, Source::ConfigureArguments, quote);
    }
    // `assert` ends in this function, in every C library: a program that does not take it has no assertion.
    let takes = reading.symbols.iter().any(|s| s.undefined && s.base_name() == b"__assert_fail");
    if reading.linkage.interpreter.is_some() && !takes {
        let quote = "__assert_fail is not imported".to_owned();
        say("lua_assertions", false, Strength::Structural, Source::Imports, quote);
    }
}

/// Since 1.29.7 upstreams keep connections without being told, and `keepalive` takes a second argument. It did up to
/// 1.7 too, for another purpose; structures of that time hold no version.
fn keepalive(reading: &Reading<'_>, seen: &mut Vec<Seen>) {
    const TAKE2: u64 = 4;
    let Some(own) = reading.names.iter().position(|name| name == "ngx_http_upstream_keepalive_module") else {
        return;
    };
    let Some(structure) = reading.table.structures.get(own) else { return };
    if let Some(kind) = directives::type_of(reading.memory, reading.pointers, structure, "keepalive") {
        seen.push(Seen {
            feature: "upstream_keepalive_default",
            value: structure.version.is_some() && kind & TAKE2 != 0,
            strength: Strength::Structural,
            source: Source::ModuleTable,
            quote: format!("the keepalive directive's type is {kind:#x}"),
        });
    }
}

/// Takes over what the witnesses agree on; the rest are conflicts.
fn hold(out: &mut NginxFacts, seen: Vec<Seen>) {
    let mut by_feature: BTreeMap<&'static str, Vec<Seen>> = BTreeMap::new();
    for one in seen {
        by_feature.entry(one.feature).or_default().push(one);
    }
    for (feature, mut list) in by_feature {
        list.sort_by_key(|one| std::cmp::Reverse(one.strength));
        let Some(first) = list.first() else { continue };
        if list.iter().any(|one| one.value != first.value) {
            let claims = list.into_iter().map(|one| claim(&one)).collect();
            out.conflicts.push(Conflict { fact: format!("nginx.{feature}"), claims });
            continue;
        }
        let mut sources = Vec::new();
        for source in list.iter().map(|one| one.source) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let held = Held { value: Some(first.value), strength: first.strength, sources, seen: None };
        out.nginx.features.insert(feature.to_owned(), held);
    }
}

fn claim(seen: &Seen) -> Claim {
    Claim {
        fact: format!("nginx.{}", seen.feature),
        value: seen.value.into(),
        strength: seen.strength,
        source: seen.source,
        scope: Scope::File,
        at: None,
        quote: Some(seen.quote.clone()),
    }
}
