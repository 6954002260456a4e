//! nginx compresses the same static files again for every request.
//!
//! # What it checks
//!
//! The places of a configuration (`--nginx-conf`) that serve files: whether `gzip` is on there for types that files have
//! (style sheets, scripts, JSON), and `gzip_static` is not, though it could be.
//!
//! ```text
//! warning[dynamic-gzip-of-static-files]: gzip level 6 on static css, js; gzip_static compiled in, off
//!   where   /etc/nginx/conf.d/cdn.conf:9:5
//!   fix     make the .gz files when deploying, then `gzip_static on;` beside `gzip on;`
//! ```
//!
//! # Why it matters
//!
//! Compressing costs processor time for each answer; a file compressed beforehand costs it once. In one measurement serving
//! compressed files instead went from 50,000 to 270,000 requests a second, while the processor's load fell from 90 % to 7 %.
//!
//! # How to fix
//!
//! Make `.gz` files beside the files when deploying (`gzip -k9`), and set `gzip_static on;` and `gzip_vary on;` where they
//! are served. Behind a CDN or another proxy also `gzip_proxied any;`: without it, requests with a `Via` header get plain
//! bytes even where a `.gz` file is there.
//!
//! # Policy keys
//!
//! `rules.dynamic-gzip-of-static-files`; it is also checked whenever a configuration is given.
//!
//! # Evidence
//!
//! The configuration, the modules of the binary, and the files under `root` where they can be seen.
//!
//! # Limits
//!
//! Passed requests are not judged. A place is taken to serve files if nothing known answers there; content handlers of unknown
//! modules are not seen. Where filters change files on the way (SSI, substitution), nothing is said: `.gz` files would go out
//! unfiltered.

use super::Rule;
use super::check::{Context, Draft, Outcome, listed};
use super::config_common::{View, view};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::config::settings::{Scope, identity, title};
use crate::nginx::config::{Directive, Place, serving};
use crate::wording::plural;
use std::collections::{BTreeMap, HashSet};

mod tree;
mod types;

use types::Types;

/// The rule.
pub const RULE: Rule = Rule {
    id: "dynamic-gzip-of-static-files",
    severity: Severity::Warning,
    keys: &["rules.dynamic-gzip-of-static-files"],
    source: include_str!("dynamic_gzip_of_static_files.rs"),
    check,
};

/// What was measured, and no more.
const COST: &str = "measured with compressed files instead: 50,000 to 270,000 requests a second, processor load from 90 % to 7 %";
/// Most places whose files are looked at.
const MAX_LOOKED: usize = 50;
/// Levels from here on cost much more than they save.
const HIGH_LEVEL: u32 = 6;
/// Directives that make answers of files anew; with `gzip_static` they would be passed over for a `.gz` file.
const FILTERS: [&str; 9] = [
    "sub_filter",
    "add_before_body",
    "add_after_body",
    "image_filter",
    "xslt_stylesheet",
    "body_filter_by_lua",
    "body_filter_by_lua_block",
    "body_filter_by_lua_file",
    "subs_filter",
];

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let view = match view(context, RULE.id) {
        Ok(view) => view,
        Err(outcome) => return outcome,
    };
    let mut judge = Judge {
        view,
        groups: BTreeMap::new(),
        drafts: Vec::new(),
        unseen: Vec::new(),
        looked: 0,
        keys: HashSet::new(),
    };
    for place in serving::file_places(view.model) {
        judge.place(&place);
    }
    judge.finish();
    view.outcome(judge.drafts)
}

/// One `gzip on` with what is in force beside it: one fact, at however many places.
struct Group<'a> {
    gzip: &'a Directive,
    types: Types,
    level: u32,
    /// What tells it from other groups, in a finding's identity.
    word: String,
    /// The block of the `gzip_types` line; empty where there is none.
    types_in: String,
    places: Vec<(String, Place)>,
}

struct Judge<'a> {
    view: View<'a>,
    groups: BTreeMap<(Place, Option<Place>, u32), Group<'a>>,
    drafts: Vec<Draft<'a>>,
    unseen: Vec<String>,
    /// Places whose files were looked at.
    looked: usize,
    keys: HashSet<String>,
}

impl<'a> Judge<'a> {
    fn place(&mut self, scope: &Scope<'a>) {
        let Some(own) = scope.own() else { return };
        if scope.is_on("ssi") || FILTERS.iter().any(|name| !scope.effective(name).set.is_empty()) {
            return;
        }
        let gzip_static = match scope.value("gzip_static") {
            Ok(value) => value.is_some_and(|value| !value.eq_ignore_ascii_case("off")),
            Err(include) => return self.hidden(scope, include),
        };
        let gzip = scope.effective("gzip");
        let line = gzip.one().filter(|line| line.says("on"));
        if let (None, Some(include)) = (gzip.one(), gzip.hidden) {
            return self.hidden(scope, include);
        }
        let types = match types::of(scope) {
            Ok(types) => types,
            Err(include) => return self.hidden(scope, include),
        };
        if gzip_static {
            return self.compressed_files(scope, line.is_some(), &types);
        }
        let Some(gzip) = line else { return };
        let level = scope.value("gzip_comp_level").ok().flatten().and_then(|n| n.parse().ok()).unwrap_or(1);
        let model = self.view.model;
        let group = self.groups.entry((gzip.at, types.at, level)).or_insert_with(|| {
            // Where both lines stand, which other places that are served change nothing of.
            let at = |line: Option<&Directive>| {
                let around = line.and_then(|line| scope.around(line));
                around.map(|around| identity(model, &around)).unwrap_or_default()
            };
            let types_in = at(scope.effective("gzip_types").set.first().copied());
            let word = format!("{}:{types_in}:{level}", at(Some(gzip)));
            Group { gzip, types, level, word, types_in, places: Vec::new() }
        });
        group.places.push((title(scope), own.at));
    }

    /// An include that was not seen hides what is in force: said once for each.
    fn hidden(&mut self, scope: &Scope<'a>, include: &Directive) {
        let key = format!("hidden:{}", include.first());
        if self.keys.insert(key.clone()) {
            let what = format!("{}: whether files are compressed for each request", title(scope));
            self.drafts.push(self.view.hidden(key, &what, include));
        }
    }

    /// `gzip_static` is on: whether the compressed files are there and new.
    fn compressed_files(&mut self, scope: &Scope<'a>, gzip: bool, types: &Types) {
        let place = scope.own().map(|own| self.view.model.location(own.at));
        self.looked += 1;
        let seen =
            if self.looked <= MAX_LOOKED { tree::look(self.view.model, scope, types).ok() } else { None };
        let Some(seen) = seen else { return self.unseen.push(title(scope)) };
        let here = title(scope);
        let name = identity(self.view.model, scope);
        let mut add = |key: &str, files: &[String], message: String, remedy: &str| {
            if files.is_empty() {
                return;
            }
            let mut draft = Draft::violation(format!("{key}:{name}"), message)
                .at_most(Severity::Warning)
                .evidence(Strength::Structural, &[])
                .known(vec![listed(files, 5)])
                .remedy(remedy);
            if let Some(place) = place.clone() {
                draft = draft.location(place);
            }
            self.drafts.push(draft);
        };
        if gzip {
            let files = plural(seen.missing.len() as u64, "file");
            let message =
                format!("{here}: {files} of {} without .gz: compressed again for each request", seen.root);
            add("missing", &seen.missing, message, "make the .gz files when deploying: gzip -k9 FILE");
        }
        let files = plural(seen.stale.len() as u64, ".gz file");
        let message =
            format!("{here}: {files} of {} older than the source: old contents are served", seen.root);
        add("stale", &seen.stale, message, "make the .gz files again whenever the sources change");
    }

    fn finish(&mut self) {
        for group in std::mem::take(&mut self.groups).into_values() {
            self.group(&group);
        }
        if !self.unseen.is_empty() {
            let places = listed(&self.unseen, 3);
            self.drafts.push(Draft::remark(
                "gz-presence",
                format!("gzip_static is on; .gz presence not checked, the files are not visible: {places}"),
            ));
        }
    }

    fn group(&mut self, group: &Group<'a>) {
        let statics = group.types.of_files();
        let at = self.view.model.location(group.gzip.at);
        let places =
            listed(group.places.iter().map(|(title, at)| format!("{title} ({})", self.view.at(*at))), 5);
        let known = vec![format!("files are served at {places}")];
        let evidence = |draft: Draft<'a>| draft.evidence(Strength::Structural, &[Source::ModuleTable]);
        if statics.is_empty() {
            self.drafts.push(
                evidence(Draft::violation(format!("html:{}", group.word), "gzip is on for text/html alone, where files are served"))
                    .severity(Severity::Note)
                    .at_most(Severity::Note)
                    .location(at)
                    .known(known)
                    .remedy("nothing need be done for a few pages; for many, gzip_static with .gz files made when deploying"),
            );
            return;
        }
        let names = listed(&statics, 6);
        let level = group.level;
        let compiled = self.view.has("ngx_http_gzip_static_module");
        let (state, remedy) = match compiled {
            Some(true) => (
                "gzip_static compiled in, off",
                "make the .gz files when deploying (gzip -k9), then `gzip_static on;` and `gzip_vary on;` where the files are served",
            ),
            Some(false) => (
                "gzip_static not compiled in",
                "first configure with --with-http_gzip_static_module and rebuild; then make the .gz files when deploying, and `gzip_static on;` and `gzip_vary on;` where the files are served",
            ),
            None => (
                "gzip_static off",
                "make the .gz files when deploying, then `gzip_static on;` and `gzip_vary on;` where the files are served",
            ),
        };
        let key = format!("gzip:{}", group.word);
        let mut draft =
            evidence(Draft::violation(key, format!("gzip level {level} on static {names}; {state}")))
                .location(at)
                .known(known)
                .cost(COST)
                .remedy(format!("{remedy}; behind a CDN or proxy also `gzip_proxied any;`"));
        if level >= HIGH_LEVEL && compiled == Some(true) {
            draft = draft.severity(Severity::Error);
        }
        self.drafts.push(draft);
        self.compressed_already(group);
    }

    /// Types whose files are compressed as they are: a fact of the `gzip_types` line, said once.
    fn compressed_already(&mut self, group: &Group<'a>) {
        let (Some(at), Some(bad)) = (group.types.at, group.types.compressed_already()) else { return };
        let location = self.view.model.location(at);
        let key = format!("types:{}:{bad}", group.types_in);
        if !self.keys.insert(key.clone()) {
            return;
        }
        self.drafts.push(
            Draft::violation(
                key,
                format!(
                    "gzip_types names {bad}: such files are compressed already, and cost time for nothing"
                ),
            )
            .at_most(Severity::Warning)
            .evidence(Strength::Declared, &[])
            .location(location)
            .remedy("name text types only: text/css application/javascript application/json image/svg+xml"),
        );
    }
}

#[cfg(test)]
mod tests;
