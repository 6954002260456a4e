//! Variables of modules that are not there.

use crate::nginx::config::values::{variable, variables};
use crate::nginx::config::{Body, Directive, Place};
use crate::rules::config_common::View;
use std::collections::{BTreeMap, BTreeSet};

/// Directives whose words are patterns, names or programs: a `$` in them may mean something else.
const NOT_LOOKED_AT: [&str; 8] =
    ["location", "server_name", "perl", "perl_set", "js_set", "env", "perl_require", "upstream"];

/// A variable that nothing defines.
pub struct Unknown {
    /// Its name, without the dollar sign.
    pub name: String,
    /// The module that would define it.
    pub module: &'static str,
    /// Where it is used first.
    pub at: Place,
}

/// Variables that modules of this build would have to define and do not, with their first places.
pub fn unknown(view: &View<'_>) -> Vec<Unknown> {
    let mut used: BTreeMap<(&str, String), Place> = BTreeMap::new();
    let mut defined = BTreeSet::new();
    for block in &view.model.main {
        let part = block.name.as_str();
        if matches!(part, "http" | "stream") {
            walk(block.children(), part, &mut used, &mut defined);
        }
    }
    used.into_iter()
        .filter(|((_, name), _)| !defined.contains(name))
        .filter_map(|((part, name), at)| {
            let module = module_of(part, &name)?;
            (view.has(module) == Some(false)).then_some(Unknown { name, module, at })
        })
        .collect()
}

fn module_of(part: &str, name: &str) -> Option<&'static str> {
    let http = part == "http";
    if name.starts_with("ssl_preread_") {
        return (!http).then_some("ngx_stream_ssl_preread_module");
    }
    if name.starts_with("ssl_") {
        return Some(if http { "ngx_http_ssl_module" } else { "ngx_stream_ssl_module" });
    }
    if name.starts_with("geoip_") {
        return Some(if http { "ngx_http_geoip_module" } else { "ngx_stream_geoip_module" });
    }
    None
}

fn walk<'m>(
    list: &'m [Directive],
    part: &'m str,
    used: &mut BTreeMap<(&'m str, String), Place>,
    defined: &mut BTreeSet<String>,
) {
    for directive in list {
        let name = directive.name.as_str();
        let mut words: &[String] = &directive.args;
        match name {
            // The last word names the variable that the block defines.
            "map" | "geo" | "split_clients" => {
                if let Some((last, rest)) = words.split_last() {
                    defined.extend(variable(last).map(str::to_lowercase));
                    words = rest;
                }
            }
            "geoip2" => {
                defined.extend(
                    directive.keys().iter().filter_map(|row| variable(&row.name)).map(str::to_lowercase),
                );
            }
            _ => {}
        }
        if name == "set" || name.ends_with("_set") || name.starts_with("set_") {
            defined.extend(words.first().and_then(|word| variable(word)).map(str::to_lowercase));
            words = words.get(1..).unwrap_or_default();
        }
        defined.extend(words.iter().flat_map(|word| captures(word)));
        if !NOT_LOOKED_AT.contains(&name) && !name.contains("_by_lua") {
            note(words, part, directive.at, used);
        }
        match &directive.body {
            Body::Block(inner) => walk(inner, part, used, defined),
            Body::Keys(rows) if name == "map" => {
                for row in rows {
                    defined.extend(captures(&row.name));
                    note(&row.args, part, row.at, used);
                }
            }
            _ => {}
        }
    }
}

fn note<'m>(words: &[String], part: &'m str, at: Place, used: &mut BTreeMap<(&'m str, String), Place>) {
    for name in words.iter().flat_map(|word| variables(word)) {
        if name.starts_with("ssl_") || name.starts_with("geoip_") {
            used.entry((part, name.to_lowercase())).or_insert(at);
        }
    }
}

/// Names that a pattern gives to its groups: `(?<name>…)`, `(?P<name>…)`, `(?'name'…)`.
fn captures(word: &str) -> impl Iterator<Item = String> + '_ {
    word.split("(?").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('P').unwrap_or(rest);
        let (open, close) = if rest.starts_with('<') { ('<', '>') } else { ('\'', '\'') };
        let (name, _) = rest.strip_prefix(open)?.split_once(close)?;
        (!name.is_empty()).then(|| name.to_lowercase())
    })
}
