//! Names for the entries of the module table, and where each comes from.

use super::alignment::{self, Seen};
use super::memory::Memory;
use super::modules::Table;
use super::{binary, declared_modules, directives, version};
use crate::evidence::Source;
use crate::facts::{self, Linkage, Module, ModuleOrigin, Problem, Product};
use crate::image::pointers::Pointers;
use crate::image::symbols::Symbols;
use std::collections::BTreeMap;

/// The static list (or, for a loadable module, its own).
pub(super) struct Listed {
    pub(super) modules: Option<Vec<Module>>,
    pub(super) problems: Vec<Problem>,
}

/// Names every entry of the table. Since 1.9.11 the program holds the names; before, symbols do, or order, kinds and
/// directives, compared with what the version has and the configure arguments ask for.
pub(super) fn modules(
    memory: &Memory<'_>,
    symbols: &Symbols,
    pointers: &Pointers,
    product: &Product,
    nginx: &facts::Nginx,
    table: &Table,
    is_module: bool,
) -> Listed {
    let mut problems = Vec::new();
    if table.structures.is_empty() {
        problems.push(Problem::damage(
            "no-module-table",
            "the module table could not be found; modules are known only by the configure arguments",
        ));
        let declared = nginx
            .configure_arguments
            .as_ref()
            .map(|arguments| declared_modules(product, arguments, Linkage::Static, &mut problems));
        return Listed { modules: declared, problems };
    }
    if table.left_out > 0 {
        problems.push(Problem::notice(
            "modules-outside-the-table",
            format!("{} module structures are in the file but not in the module table", table.left_out),
        ));
    }
    let arguments = nginx.configure_arguments.as_deref();
    let linkage = if is_module { Linkage::Dynamic } else { Linkage::Static };
    let module = |name: String, sources: &[Source]| {
        let origin = if is_module { module_origin(&name) } else { binary::origin(product, arguments, &name) };
        Module { name, linkage, origin, sources: sources.to_vec() }
    };
    if let Some(names) = &table.names {
        let modules = names.iter().map(|name| module(name.clone(), &[Source::ModuleTable])).collect();
        return Listed { modules: Some(modules), problems };
    }
    if let Some(names) = from_symbols(memory, symbols, table) {
        let sources = [Source::ModuleTable, Source::Symbols];
        return Listed { modules: Some(names.into_iter().map(|n| module(n, &sources)).collect()), problems };
    }
    let mut declared = Vec::new();
    if let Some(arguments) = arguments.filter(|_| !is_module) {
        declared = declared_modules(product, arguments, Linkage::Static, &mut problems);
    }
    let directives: Vec<Vec<String>> =
        table.structures.iter().map(|s| directives::of_module(memory, pointers, s)).collect();
    if let Some(version) = version::nginx_version(Some(product)).filter(|_| !is_module) {
        let seen: Vec<Seen<'_>> = table
            .structures
            .iter()
            .zip(&directives)
            .map(|(structure, directives)| Seen { structure, directives })
            .collect();
        let expected: Vec<&str> = declared.iter().map(|m| m.name.as_str()).collect();
        let names = alignment::align(&seen, version::family(Some(product)), version, &expected);
        let added = declared.iter().any(|m| m.origin == ModuleOrigin::ThirdParty);
        let modules = names.iter().zip(&directives).map(|(name, directives)| match name {
            Some(name) => module((*name).to_owned(), &[Source::ModuleTable]),
            None => Module {
                name: unnamed(directives),
                linkage,
                origin: if added { ModuleOrigin::ThirdParty } else { ModuleOrigin::Unknown },
                sources: vec![Source::ModuleTable],
            },
        });
        let modules: Vec<Module> = modules.collect();
        let nameless = names.iter().filter(|name| name.is_none()).count();
        if nameless > 0 {
            problems.push(Problem::notice(
                "unnamed-modules",
                format!("{nameless} modules have no names in this file and are told by their directives"),
            ));
        }
        return Listed { modules: Some(modules), problems };
    }
    problems.push(Problem::damage(
        "unnamed-modules",
        format!("the {} modules of the table have no names in this file", table.structures.len()),
    ));
    Listed { modules: (!declared.is_empty()).then_some(declared), problems }
}

fn module_origin(name: &str) -> ModuleOrigin {
    match super::catalogue::known(name) {
        Some(_) => ModuleOrigin::Builtin,
        None => ModuleOrigin::ThirdParty,
    }
}

/// What stands for the name of a module that nothing names.
fn unnamed(directives: &[String]) -> String {
    match directives.first() {
        Some(first) => format!("(unnamed module with the directive {first})"),
        None => "(unnamed module without directives)".to_owned(),
    }
}

/// Names from the full symbol table, where the file is not stripped.
fn from_symbols(memory: &Memory<'_>, symbols: &Symbols, table: &Table) -> Option<Vec<String>> {
    let full = symbols.full(memory.image);
    if full.is_empty() {
        return None;
    }
    let by_address: BTreeMap<u64, &[u8]> = full
        .iter()
        .filter(|s| !s.undefined && s.name.ends_with(b"_module"))
        .map(|s| (s.value, s.name))
        .collect();
    table
        .structures
        .iter()
        .map(|s| by_address.get(&s.address).map(|name| String::from_utf8_lossy(name).into_owned()))
        .collect()
}
