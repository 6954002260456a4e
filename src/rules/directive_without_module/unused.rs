//! Modules that were compiled in and that the configuration never uses.

use super::why::optional_modules;
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::catalogue;
use crate::nginx::config::{Body, Directive};
use crate::rules::check::{Draft, listed};
use crate::rules::config_common::View;
use crate::wording::plural;
use std::collections::HashSet;

/// A note about them; `None` where all are used, or where not all of the configuration was seen.
pub fn draft<'a>(view: &View<'a>) -> Option<Draft<'a>> {
    let model = view.model;
    let directives = view.nginx.directives.as_ref()?;
    if !model.is_whole() || !model.not_seen.is_empty() {
        return None;
    }
    let mut names: HashSet<&str> = HashSet::new();
    let mut words: HashSet<&str> = HashSet::new();
    used(&model.main, &mut names, &mut words);
    let unused: Vec<&str> = optional_modules(view)
        .filter(|module| {
            let mut own = directives.iter().filter(|d| d.module == *module).peekable();
            own.peek().is_some() && own.all(|d| !names.contains(d.name.as_str())) && !by_word(module, &words)
        })
        .collect();
    if unused.is_empty() {
        return None;
    }
    let names = listed(unused.iter().map(|name| catalogue::short_name(name)), 20);
    let verb = if unused.len() == 1 { "is" } else { "are" };
    let modules = plural(unused.len() as u64, "module");
    Some(
        Draft::violation(
            "unused-modules",
            format!("{modules} compiled in {verb} never used by the configuration: {names}"),
        )
        .severity(Severity::Note)
        .at_most(Severity::Note)
        .evidence(Strength::Structural, &[Source::ModuleTable])
        .remedy("nothing need be done; a build of your own can leave them out"),
    )
}

/// Names of all directives, and the words of those whose words ask for a module.
fn used<'m>(list: &'m [Directive], names: &mut HashSet<&'m str>, words: &mut HashSet<&'m str>) {
    for directive in list {
        names.insert(&directive.name);
        if matches!(directive.name.as_str(), "listen" | "aio" | "proxy_http_version" | "use") {
            words.extend(directive.args.iter().map(String::as_str));
        }
        if directive.name.ends_with("_pass") {
            words.extend(directive.first().split_once("://").map(|(scheme, _)| scheme));
        }
        if let Body::Block(inner) | Body::Keys(inner) = &directive.body {
            used(inner, names, words);
        }
    }
}

/// Modules that are used by a parameter, without a directive of their own.
fn by_word(module: &str, words: &HashSet<&str>) -> bool {
    let any = |list: &[&str]| list.iter().any(|word| words.contains(word));
    match module {
        "ngx_http_ssl_module" | "ngx_stream_ssl_module" | "ngx_mail_ssl_module" => {
            any(&["ssl", "quic", "https", "grpcs", "suwsgi"])
        }
        "ngx_http_v2_module" => any(&["http2", "2", "grpc", "grpcs"]),
        "ngx_http_v3_module" => any(&["quic"]),
        "ngx_thread_pool_module" => words.iter().any(|word| word.starts_with("threads")),
        "ngx_select_module" => any(&["select"]),
        "ngx_poll_module" => any(&["poll"]),
        _ => false,
    }
}
