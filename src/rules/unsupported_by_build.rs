//! The configuration asks for something that this build cannot do, in words it knows.
//!
//! # What it checks
//!
//! Parameters, schemes and variables of a configuration (`--nginx-conf`) that need a module, a library or a version which the
//! build does not have: `listen … ssl`, `http2`, `quic`; `proxy_pass https://`; `aio on` and `aio threads`; patterns in locations and
//! server names; `server … resolve`; `proxy_http_version 2`; `$ssl_…` and `$geoip_…` variables; `load_module` of a module
//! that is compiled in.
//!
//! ```text
//! error[unsupported-by-build]: listen 443 quic: this build has no ngx_http_v3_module
//!   where   /etc/nginx/sites-enabled/default:4:5
//!   fix     configure with --with-http_v3_module; make clean; rebuild
//! ```
//!
//! # Why it matters
//!
//! nginx refuses to start with such a configuration.
//!
//! # How to fix
//!
//! Build with what is missing, or take it out of the configuration.
//!
//! # Policy keys
//!
//! `rules.unsupported-by-build`; it is also checked whenever a configuration is given.
//!
//! # Evidence
//!
//! The module table of the binary, and texts that are in it only if a feature was left out.
//!
//! # Limits
//!
//! Other parameters and values are not looked at. A variable that the configuration itself defines is never reported.

use super::Rule;
use super::check::{Context, Draft, Outcome, listed};
use super::config_common::{View, file_of, view};
use crate::evidence::{Held, Source, Strength};
use crate::finding::Severity;
use crate::nginx::catalogue::{self, Remedy};
use crate::nginx::config::{Directive, Place};
use crate::nginx::version::{Family, Version};
use std::collections::BTreeMap;

mod variables;

/// The rule.
pub const RULE: Rule = Rule {
    id: "unsupported-by-build",
    severity: Severity::Error,
    keys: &["rules.unsupported-by-build"],
    source: include_str!("unsupported_by_build.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let view = match view(context, RULE.id) {
        Ok(view) => view,
        Err(outcome) => return outcome,
    };
    let is_plus = crate::nginx::version::is_plus(context.facts.product.as_ref());
    let mut judge = Judge { view, is_plus, found: BTreeMap::new() };
    judge.blocks(&view.model.main, "", "");
    judge.modules();
    for found in variables::unknown(&view) {
        let module = found.module;
        judge.missing(&format!("${}", found.name), module, found.at);
    }
    let mut found: Vec<(String, Found)> = judge.found.into_iter().collect();
    found.sort_by_key(|(_, found)| found.places.first().copied());
    view.outcome(found.into_iter().map(|(key, found)| draft(&view, key, found)).collect())
}

/// One thing that cannot be done, at however many places.
struct Found {
    message: String,
    remedy: String,
    held: Held<bool>,
    module: Option<String>,
    places: Vec<Place>,
}

fn draft<'a>(view: &View<'a>, key: String, found: Found) -> Draft<'a> {
    let mut draft = Draft::violation(key, found.message).held(&found.held).remedy(found.remedy);
    if let Some(first) = found.places.first() {
        draft = draft.location(view.model.location(*first));
    }
    if let Some(module) = found.module {
        draft = draft.module(module);
    }
    if found.places.len() > 1 {
        let more = listed(found.places.iter().skip(1).map(|at| view.at(*at)), 5);
        draft = draft.known(vec![format!("also at {more}")]);
    }
    draft
}

struct Judge<'a> {
    view: View<'a>,
    is_plus: bool,
    found: BTreeMap<String, Found>,
}

impl<'a> Judge<'a> {
    /// Looks at every directive; `part` is `http`, `stream` or `mail`, `block` the block around it.
    fn blocks(&mut self, list: &'a [Directive], part: &'a str, block: &str) {
        for directive in list {
            let name = directive.name.as_str();
            match part {
                "" => {
                    let part = if matches!(name, "http" | "stream" | "mail") { name } else { "" };
                    self.blocks(directive.children(), part, name);
                    continue;
                }
                "http" => self.http(directive, block),
                _ => {}
            }
            match name {
                "listen" => self.listen(directive, part),
                "server" if block == "upstream" => self.server(directive),
                "server_name" if directive.args.iter().any(|arg| arg.starts_with('~')) => {
                    self.pattern(directive, "server_name ~");
                }
                _ => {}
            }
            self.blocks(directive.children(), part, name);
        }
    }

    fn http(&mut self, directive: &'a Directive, block: &str) {
        let first = directive.first();
        match directive.name.as_str() {
            "proxy_pass" | "grpc_pass" | "uwsgi_pass" => {
                let lower = first.to_ascii_lowercase();
                for scheme in ["https://", "grpcs://", "suwsgi://"] {
                    if lower.starts_with(scheme) {
                        let what = format!("{} {scheme}", directive.name);
                        self.missing(&what, "ngx_http_ssl_module", directive.at);
                    }
                }
            }
            "aio" => self.aio(directive),
            "location" if matches!(first, "~" | "~*") || first.starts_with('~') => {
                self.pattern(directive, "location ~");
            }
            "valid_referers" if directive.args.iter().any(|arg| arg.starts_with('~')) => {
                self.pattern(directive, "valid_referers ~");
            }
            "proxy_http_version" if first == "2" => {
                const SINCE: Version = Version(1, 29, 4);
                if self.view.version.is_some_and(|version| version < SINCE) {
                    self.version("proxy_http_version 2", SINCE, "use 1.1", directive.at);
                } else {
                    self.missing("proxy_http_version 2", "ngx_http_proxy_v2_module", directive.at);
                }
            }
            "keepalive" if block == "upstream" && self.view.keeps_by_default() == Some(false) => {
                let what = if first == "0" {
                    "keepalive 0"
                } else if directive.args.len() > 1 {
                    "keepalive with a second argument"
                } else {
                    return;
                };
                self.version(what, Version(1, 29, 7), "leave the line out", directive.at);
            }
            _ => {}
        }
    }

    fn listen(&mut self, directive: &'a Directive, part: &str) {
        for parameter in directive.args.iter().skip(1) {
            let module = match (part, parameter.as_str()) {
                ("http", "ssl") => "ngx_http_ssl_module",
                ("http", "http2") => "ngx_http_v2_module",
                ("http", "quic") => {
                    const SINCE: Version = Version(1, 25, 0);
                    if self.view.version.is_some_and(|version| version < SINCE) {
                        self.version("listen … quic", SINCE, "take the parameter out", directive.at);
                        continue;
                    }
                    "ngx_http_v3_module"
                }
                ("stream", "ssl") => "ngx_stream_ssl_module",
                ("mail", "ssl") => "ngx_mail_ssl_module",
                _ => continue,
            };
            // A part that is not there at all is another rule's finding.
            if part != "http" && self.view.has(&format!("ngx_{part}_module")) != Some(true) {
                continue;
            }
            let what = if part == "http" {
                format!("listen … {parameter}")
            } else {
                format!("listen … {parameter} in {part}")
            };
            self.missing(&what, module, directive.at);
        }
    }

    /// `server … resolve` came to nginx in 1.27.3; nginx Plus, Angie and Tengine have it as their own.
    fn server(&mut self, directive: &'a Directive) {
        const SINCE: Version = Version(1, 27, 3);
        let own = self.is_plus || matches!(self.view.family, Family::Angie | Family::Tengine);
        let old = self.view.version.is_some_and(|version| version < SINCE);
        if !own && old && directive.args.iter().skip(1).any(|arg| arg == "resolve") {
            self.version(
                "server … resolve",
                SINCE,
                "take `resolve` out; names are then looked up once, at the start",
                directive.at,
            );
        }
    }

    fn aio(&mut self, directive: &'a Directive) {
        let features = &self.view.nginx.features;
        let shown = |fact: &str| features.get(fact).filter(|held| held.value == Some(false)).cloned();
        if directive.first() == "on" {
            let declared = || {
                let arguments = self.view.nginx.configure_arguments.as_ref()?;
                let absent = arguments.iter().all(|argument| argument.name != "--with-file-aio");
                (absent && !features.contains_key("file_aio"))
                    .then(|| Held::new(false, Strength::Declared, Source::ConfigureArguments))
            };
            if let Some(held) = shown("file_aio").or_else(declared) {
                let message = "aio on: this build has no asynchronous file access";
                self.add(
                    "aio on",
                    message,
                    "configure with --with-file-aio; make clean; rebuild",
                    held,
                    None,
                    directive.at,
                );
            }
        } else if directive.first().starts_with("threads") {
            let held = shown("threads").or_else(|| {
                (self.view.has("ngx_thread_pool_module") == Some(false))
                    .then(|| Held::new(false, Strength::Structural, Source::ModuleTable))
            });
            if let Some(held) = held {
                let message = "aio threads: this build has no threads";
                self.add(
                    "aio threads",
                    message,
                    "configure with --with-threads; make clean; rebuild",
                    held,
                    None,
                    directive.at,
                );
            }
        }
    }

    /// Patterns need PCRE, and with it comes `ngx_regex_module` (since 1.1.12).
    fn pattern(&mut self, directive: &'a Directive, what: &str) {
        let module = "ngx_regex_module";
        if self.view.version.is_some_and(|version| version < Version(1, 1, 12))
            || self.view.has(module) != Some(false)
        {
            return;
        }
        let held = Held::new(false, Strength::Structural, Source::ModuleTable);
        let message = format!("{what}: this build has no PCRE, so no patterns");
        let remedy =
            "configure without --without-pcre and --without-http_rewrite_module; make clean; rebuild";
        self.add(what, message, remedy, held, Some(module), directive.at);
    }

    /// `load_module` of what is compiled in, where the file itself could not be looked at.
    fn modules(&mut self) {
        let names: Vec<String> = self.view.nginx.modules.iter().flatten().map(|m| m.name.clone()).collect();
        for loaded in self.view.model.loaded.iter().filter(|loaded| loaded.module.is_err()) {
            let file = super::check::base_name(&loaded.path);
            let name = names.iter().find(|name| file_of(name) == file && format!("{name}.so") == file);
            let Some(name) = name.filter(|name| self.is_static(name)) else { continue };
            let held = Held::new(true, Strength::Structural, Source::ModuleTable);
            let message = format!("load_module {file}: {name} is compiled in already");
            self.add(
                &format!("load:{name}"),
                message,
                "take the load_module line out",
                held,
                Some(name),
                loaded.at,
            );
        }
    }

    fn is_static(&self, name: &str) -> bool {
        let modules = self.view.nginx.modules.iter().flatten();
        modules.into_iter().any(|m| m.name == name && m.linkage == crate::facts::Linkage::Static)
    }

    fn missing(&mut self, what: &str, module: &str, at: Place) {
        if self.view.has(module) != Some(false) {
            return;
        }
        let remedy = match catalogue::remedy(module, self.view.family, self.view.version) {
            _ if self.view.is_unloaded(module) => {
                format!(
                    "it was built to be loaded: `load_module modules/{};` at the top of the main file",
                    file_of(module)
                )
            }
            Some(Remedy::Add(option)) => format!("configure with {option}; make clean; rebuild"),
            Some(Remedy::Drop(option)) => format!("configure without {option}; make clean; rebuild"),
            Some(Remedy::NeedsVersion(version)) => {
                format!("it comes with nginx {version}: upgrade, or take it out")
            }
            _ => "take it out".to_owned(),
        };
        let held = Held::new(false, self.modules_strength(), Source::ModuleTable);
        let message = format!("{what}: this build has no {module}");
        self.add(what, message, remedy, held, Some(module), at);
    }

    /// How firmly the list of modules stands.
    fn modules_strength(&self) -> Strength {
        let shown =
            self.view.nginx.modules.iter().flatten().any(|m| m.sources.contains(&Source::ModuleTable));
        if shown { Strength::Structural } else { Strength::Declared }
    }

    fn version(&mut self, what: &str, since: Version, here: &str, at: Place) {
        let held = Held::new(false, Strength::Declared, Source::BuildString);
        let message = format!("{what}: comes with nginx {since}; this is {}", self.view.program());
        self.add(what, message, format!("upgrade to nginx {since} or newer; here: {here}"), held, None, at);
    }

    fn add(
        &mut self,
        key: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
        held: Held<bool>,
        module: Option<&str>,
        at: Place,
    ) {
        let entry = self.found.entry(key.to_owned()).or_insert_with(|| Found {
            message: message.into(),
            remedy: remedy.into(),
            held,
            module: module.map(str::to_owned),
            places: Vec::new(),
        });
        entry.places.push(at);
    }
}

#[cfg(test)]
mod tests;
