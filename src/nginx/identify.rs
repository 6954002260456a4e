//! Names for the entries of the module table, and where each comes from.

use super::memory::Memory;
use super::modules::Table;
use super::{binary, declared_modules};
use crate::evidence::Source;
use crate::facts::{self, Linkage, Module, ModuleOrigin, Problem, Product};
use crate::image::symbols::Symbols;
use std::collections::BTreeMap;

/// The static list (or, for a loadable module, its own).
pub(super) struct Listed {
    pub(super) modules: Option<Vec<Module>>,
    pub(super) problems: Vec<Problem>,
}

/// Names every entry of the table. Since 1.9.11 the program holds the names; before, symbols do, or the order that
/// configure makes of its arguments, if it fits the table in number and kinds.
pub(super) fn modules(
    memory: &Memory<'_>,
    symbols: &Symbols,
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
    let fits = declared.len() == table.structures.len()
        && declared
            .iter()
            .zip(&table.structures)
            .all(|(module, s)| kind_of(&module.name).is_none_or(|k| k == s.kind));
    if fits {
        for module in &mut declared {
            module.sources.insert(0, Source::ModuleTable);
        }
        return Listed { modules: Some(declared), problems };
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

/// The kind a module of that name has; `None` where the name does not tell.
fn kind_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "ngx_conf_module" => "CONF",
        "ngx_http_module" | "ngx_mail_module" | "ngx_stream_module" | "ngx_events_module" => "CORE",
        "ngx_event_core_module"
        | "ngx_epoll_module"
        | "ngx_select_module"
        | "ngx_poll_module"
        | "ngx_rtsig_module"
        | "ngx_kqueue_module"
        | "ngx_devpoll_module"
        | "ngx_eventport_module"
        | "ngx_aio_module" => "EVNT",
        name if name.starts_with("ngx_http_") => "HTTP",
        name if name.starts_with("ngx_mail_") => "MAIL",
        name if name.starts_with("ngx_stream_") => "STRM",
        name if super::catalogue::known(name).is_some() => "CORE",
        _ => return None,
    })
}
