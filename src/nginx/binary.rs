//! Everything about a program of the family that its own file shows.

use super::features::Reading;
use super::loadable::{self, ModuleFile, Server};
use super::memory::Memory;
use super::modules::{self, Hints, Table};
use super::scan::{self, Found};
use super::version::{self, Family, Version};
use super::{NginxFacts, catalogue, directives, features, identify, merging, signature};
use crate::evidence::{Claim, Scope, Source, Strength};
use crate::facts::{Base, ConfigureArgument, Conflict, Linkage, Module, ModuleOrigin, Problem, Product};
use crate::image::Image;
use crate::image::linkage::Linkage as Linked;
use crate::image::pointers::Pointers;
use crate::image::symbols::{SymbolTable, Symbols};
use object::elf;
use std::collections::BTreeSet;

/// Reads a program of the nginx family, or a module built to be loaded by one. `None` if the file is neither.
///
/// The constants are searched for the program's texts and for the module signature (at most 48 MiB of them); everything
/// else is reached through pointers.
pub fn read(image: &Image, linkage: &Linked, symbols: &Symbols, pointers: &Pointers) -> Option<NginxFacts> {
    if !linkage.linked {
        return None;
    }
    let memory = Memory::new(image);
    let found = scan::find(&memory)?;
    let exports = symbols.dynamic(image, linkage);
    let hint = |name: &[u8]| exports.iter().find(|s| s.name == name && !s.undefined).map(|s| s.value);
    let hints = Hints { table: hint(b"ngx_modules"), names: hint(b"ngx_module_names") };
    let table = modules::read(&memory, pointers, &found.signatures, &found.core_module, hints);
    let says_itself = found.configured || !found.said.version_lines.is_empty();
    if !found.configured && table.structures.is_empty() {
        return None;
    }
    let library = image.header.kind == elf::ET_DYN && !linkage.pie;
    let is_module = !says_itself && (found.core_module.is_empty() || library);
    let mut out = super::from_words(&found.said, found.problems.clone(), Some(&found.places));
    if is_module {
        out.product = module_product(&table);
    }
    name_base(&mut out.product, &table);
    let listed = identify::modules(&memory, symbols, pointers, &out.product, &out.nginx, &table, is_module);
    out.problems.extend(listed.problems);
    add_modules(&mut out, listed.modules, is_module, exports);
    let names: Vec<String> = out
        .nginx
        .modules
        .iter()
        .flatten()
        .take(table.structures.len())
        .map(|module| module.name.clone())
        .collect();
    if !names.is_empty() {
        let pairs = names.iter().map(String::as_str).zip(&table.structures);
        out.handlers = super::handlers::of_modules(&memory, pointers, pairs.clone());
        let chaining = super::handlers::postconfigurations(&memory, pointers, &table.structures);
        out.filters = super::filters::installed(&memory, pointers, &chaining);
        out.nginx.directives = Some(directives::all(&memory, pointers, pairs));
    }
    add_signature(&mut out, &found, &table);
    add_version_number(&mut out, &table);
    if let Some(mut merging) = merging::read(&table.structures) {
        let arguments = out.nginx.configure_arguments.as_deref().unwrap_or_default();
        if merging::explained_otherwise(arguments, out.nginx.compiler_line.as_deref()) {
            merging.unmerged.clear();
        }
        out.claims.extend(merging::claims(&merging, &names));
        out.unmerged_modules = merging.unmerged.iter().filter_map(|&n| names.get(n).cloned()).collect();
    }
    // What is absent from a module says nothing of the server, and texts may be a module's own.
    if !is_module {
        let (memory, table, found, symbols) = (&memory, &table, &found, exports);
        let reading = Reading { memory, pointers, linkage, symbols, found, table, names: &names };
        features::add(&mut out, &reading);
    }
    out.server = server(&out, &table, &names, exports, linkage);
    Some(out)
}

/// Reads a module file for holding it against a server. `None` if the file holds no module structures.
pub fn read_module(
    image: &Image,
    linkage: &Linked,
    symbols: &Symbols,
    pointers: &Pointers,
    path: &str,
) -> Option<ModuleFile> {
    let facts = read(image, linkage, symbols, pointers)?;
    let server = facts.server?;
    Some(ModuleFile {
        path: path.to_owned(),
        names: server.modules,
        version: server.version,
        signature: server.signature,
        angie: server.angie,
        needs: own_symbols(symbols.dynamic(image, linkage), true),
    })
}

/// Names of the family's own symbols that a file needs (and cannot do without), or exports.
fn own_symbols(table: &SymbolTable, needed: bool) -> BTreeSet<String> {
    table
        .iter()
        .filter(|s| s.undefined == needed && !(needed && s.is_weak()))
        .map(|s| s.base_name())
        .filter(|name| loadable::is_own_symbol(name))
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// A loadable module names no program; its structures hold the version it was compiled for.
fn module_product(table: &Table) -> Product {
    let first = table.structures.first();
    let version = first.and_then(|s| s.version).and_then(Version::from_number);
    let base = if first.is_some_and(|s| s.angie) { "angie" } else { "nginx" };
    Product {
        name: "nginx-module".to_owned(),
        version: None,
        base: Some(Base { name: base.to_owned(), version: version.map(|v| v.to_string()) }),
        build_text: None,
    }
}

/// Which nginx it is that somebody gave a name and a number of his own: the module structures tell.
fn name_base(product: &mut Product, table: &Table) {
    let number = table.structures.first().and_then(|structure| structure.version);
    let own_name = !matches!(product.name.as_str(), "tengine" | "angie" | "nginx-module");
    if let Some(base) = product.base.as_mut().filter(|base| own_name && base.version.is_none()) {
        base.version = number.and_then(Version::from_number).map(|version| version.to_string());
    }
}

fn add_modules(out: &mut NginxFacts, listed: Option<Vec<Module>>, is_module: bool, exports: &SymbolTable) {
    let Some(mut modules) = listed else { return };
    let exported: BTreeSet<&[u8]> = exports.iter().filter(|s| !s.undefined).map(|s| s.name).collect();
    let arguments = out.nginx.configure_arguments.clone().unwrap_or_default();
    let family = version::family(Some(&out.product));
    let expected = catalogue::expected(family, version::nginx_version(Some(&out.product)), &arguments);
    for module in &mut modules {
        if exported.contains(module.name.as_bytes()) {
            module.sources.push(Source::Symbols);
        }
        let asked = expected.iter().any(|(row, dynamic)| {
            row.name == module.name
                && !dynamic
                && row.with.iter().any(|option| arguments.iter().any(|a| a.name == *option))
        });
        if asked && !module.sources.contains(&Source::ConfigureArguments) {
            module.sources.push(Source::ConfigureArguments);
        }
    }
    if !is_module {
        let missing = contradicted(&out.product, &expected, &modules, &arguments);
        let unasked = unasked(&out.product, &expected, &modules, out.nginx.configure_arguments.is_some());
        if !missing.is_empty() || !unasked.is_empty() {
            let asked = if missing.is_empty() { "no option asks for these" } else { "asked for by options" };
            let there = if unasked.is_empty() { "not in the module table" } else { "in the module table" };
            out.conflicts.push(Conflict {
                fact: "nginx.modules".to_owned(),
                claims: vec![
                    modules_claim(&missing, Strength::Declared, Source::ConfigureArguments, asked),
                    modules_claim(&unasked, Strength::Structural, Source::ModuleTable, there),
                ],
            });
        }
        let dynamic = super::declared_modules(&out.product, &arguments, Linkage::Dynamic, &mut out.problems);
        modules.extend(dynamic);
        out.nginx.disabled = super::disabled(&out.product, &modules);
    }
    out.nginx.modules = Some(modules);
}

/// Modules that an option asks for by name and the table does not have: the text is not that of this build.
fn contradicted<'c>(
    product: &Product,
    expected: &[(&'c catalogue::Known, bool)],
    modules: &[Module],
    arguments: &[ConfigureArgument],
) -> Vec<&'c str> {
    let there = |name: &str| modules.iter().any(|m| m.name == name);
    if version::is_plus(Some(product)) || !modules.iter().any(|m| m.sources.contains(&Source::ModuleTable)) {
        return Vec::new();
    }
    expected
        .iter()
        .filter(|(row, dynamic)| {
            let asked = row.with.first().is_some_and(|option| {
                catalogue::module_names_match(option.trim_start_matches("--with-"), row.name)
                    && arguments.iter().any(|a| a.name == *option)
            });
            // Options for parts that are not compiled at all do nothing.
            let whole = ["stream", "mail", "http"].iter().all(|part| {
                !row.name.starts_with(&format!("ngx_{part}_")) || there(&format!("ngx_{part}_module"))
            });
            asked && whole && !dynamic && !there(row.name)
        })
        .map(|(row, _)| row.name)
        .collect()
}

/// Modules of nginx's own that the table has though the text asks for none of them: the text is not that of this build.
/// Only for products whose every version is known, which leaves out most forks.
fn unasked<'m>(
    product: &Product,
    expected: &[(&catalogue::Known, bool)],
    modules: &'m [Module],
    has_text: bool,
) -> Vec<&'m str> {
    // Its option only removes it; whether it is there besides is up to the kernel's headers.
    const BY_PLATFORM: &str = "ngx_quic_bpf_module";
    let family = version::family(Some(product));
    let version = version::nginx_version(Some(product)).filter(|version| *version <= catalogue::NEWEST);
    let known = matches!(product.name.as_str(), "nginx" | "openresty") && !version::is_plus(Some(product));
    let Some(version) = version.filter(|_| has_text && known) else { return Vec::new() };
    let shown = modules.iter().filter(|module| module.sources.contains(&Source::ModuleTable));
    shown
        .map(|module| module.name.as_str())
        .filter(|name| *name != BY_PLATFORM)
        .filter(|name| {
            catalogue::known(name).is_some_and(|row| row.exists_in(family, version))
                && !expected.iter().any(|(row, dynamic)| row.name == *name && !dynamic)
        })
        .collect()
}

fn modules_claim(names: &[&str], strength: Strength, source: Source, quote: &str) -> Claim {
    Claim {
        fact: "nginx.modules".to_owned(),
        value: names.into(),
        strength,
        source,
        scope: Scope::File,
        at: None,
        quote: Some(quote.to_owned()),
    }
}

/// The signature most structures point at, decoded.
fn add_signature(out: &mut NginxFacts, found: &Found, table: &Table) {
    let text_at = |address: u64| found.signatures.iter().find(|(at, _)| *at == address).map(|(_, raw)| raw);
    let used = table.structures.iter().find_map(|s| s.signature).and_then(text_at);
    let Some(raw) = used.or_else(|| found.signatures.first().map(|(_, raw)| raw)) else { return };
    let base = table.structures.first().and_then(|s| s.version).and_then(Version::from_number);
    let mut family = version::family(Some(&out.product));
    if raw.starts_with("Angie,") {
        family = Family::Angie;
    }
    // Angie began with the layout of nginx 1.23.1, and says from 1.5.0 on which nginx it holds.
    let fallback = if family == Family::Angie { Some(Version(1, 23, 1)) } else { base };
    let version = version::nginx_version(Some(&out.product)).or(fallback);
    out.nginx.signature = Some(signature::decode(raw, family, version));
    let mut others: Vec<&str> =
        found.signatures.iter().map(|(_, text)| text.as_str()).filter(|t| *t != raw).collect();
    others.dedup();
    if !others.is_empty() {
        out.problems.push(Problem::notice(
            "several-signatures",
            format!("module signatures differ within the file: {raw} and {}", others.join(", ")),
        ));
    }
}

/// The version in the module structures is compiled in by every module and is hardest to fake; where it disagrees with
/// the text, both are kept.
fn add_version_number(out: &mut NginxFacts, table: &Table) {
    let mut numbers: Vec<u64> = table.structures.iter().filter_map(|s| s.version).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let Some(number) = numbers.first().copied() else { return };
    let Some(version) = Version::from_number(number) else { return };
    let claim = |number: u64| Claim {
        fact: "product.version".to_owned(),
        value: Version::from_number(number).map(|v| v.to_string()).into(),
        strength: Strength::Structural,
        source: Source::ModuleTable,
        scope: if numbers.len() == 1 { Scope::File } else { Scope::Some },
        at: None,
        quote: Some(format!("version number {number} in the module structures")),
    };
    let own: Vec<Claim> = numbers.iter().copied().map(claim).collect();
    let angie = out.product.name == "angie";
    let said = if angie { out.product.version.as_deref() } else { version_text(&out.product) };
    let said = said.and_then(|text| text.parse::<Version>().ok());
    let agrees = said.is_none_or(|said| numbers.len() == 1 && said == version);
    if !agrees {
        let mut claims: Vec<Claim> =
            out.claims.iter().filter(|c| c.fact == "product.version").cloned().collect();
        claims.extend(own.iter().cloned());
        out.conflicts.push(Conflict { fact: "product.version".to_owned(), claims });
    }
    if out.product.name == "nginx" && out.product.version.is_none() {
        out.product.version = Some(version.to_string());
    }
    out.claims.extend(own);
}

/// The version that stands in the structures: that of the nginx inside a fork, where it has one.
fn version_text(product: &Product) -> Option<&str> {
    match &product.base {
        Some(base) => base.version.as_deref(),
        None => product.version.as_deref(),
    }
}

fn server(
    out: &NginxFacts,
    table: &Table,
    names: &[String],
    symbols: &SymbolTable,
    linkage: &Linked,
) -> Option<Server> {
    let first = table.structures.first()?;
    Some(Server {
        family: if first.angie { Family::Angie } else { version::family(Some(&out.product)) },
        nginx: version::nginx_version(Some(&out.product)),
        version: first.version,
        signature: out.nginx.signature.as_ref().map(|s| s.raw.clone()),
        angie: first.angie,
        modules: names.to_vec(),
        exports: own_symbols(symbols, false),
        is_static: linkage.interpreter.is_none() && linkage.needed.is_empty(),
    })
}

/// Where a module comes from.
pub(super) fn origin(product: &Product, arguments: Option<&[ConfigureArgument]>, name: &str) -> ModuleOrigin {
    if catalogue::known(name).is_some() {
        return ModuleOrigin::Builtin;
    }
    let Some(arguments) = arguments else { return ModuleOrigin::Unknown };
    if product.name == "openresty" && catalogue::is_bundled_with_openresty(name) {
        return ModuleOrigin::Bundled;
    }
    let directories: Vec<&str> =
        arguments.iter().filter(|a| a.name == "--add-module").filter_map(|a| a.value.as_deref()).collect();
    let brings = |directory: &&str| {
        let symbols = catalogue::symbols_of_directory(directory);
        symbols.is_empty()
            || symbols
                .iter()
                .any(|s| *s == name || s.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix)))
    };
    if let Some(directory) = directories.iter().find(|d| brings(d)) {
        let own = product.name == "tengine" && directory.trim_start_matches("./").starts_with("modules/");
        return if own { ModuleOrigin::Bundled } else { ModuleOrigin::ThirdParty };
    }
    // Of forks and of nginx Plus only some versions are known, so a module of their own may be meant.
    let whole_history = matches!(product.name.as_str(), "nginx" | "openresty" | "freenginx");
    let known_version = version::nginx_version(Some(product)).is_some_and(|v| v <= catalogue::NEWEST);
    if whole_history && known_version && !version::is_plus(Some(product)) {
        ModuleOrigin::DistroPatch
    } else {
        ModuleOrigin::Unknown
    }
}

#[cfg(test)]
mod tests;
