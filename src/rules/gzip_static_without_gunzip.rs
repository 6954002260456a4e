//! Clients that do not take gzip get compressed bytes.
//!
//! # What it checks
//!
//! Places of a configuration (`--nginx-conf`) that serve files with `gzip_static always`: whether `gunzip on` is in force at
//! the same place. That the filter is compiled in is not enough.
//!
//! ```text
//! warning[gzip-static-without-gunzip]: location /assets: gzip_static always, and gunzip is off
//!   where   /etc/nginx/conf.d/cdn.conf:12:5
//!   fix     `gunzip on;` in the same location
//! ```
//!
//! # Why it matters
//!
//! With `always` the `.gz` file is sent whether the client takes gzip or not; only `gunzip` unpacks it for those that do not.
//!
//! # How to fix
//!
//! `gunzip on;` in the same place, and a build with `--with-http_gunzip_module`; or `gzip_static on`, with the plain files
//! beside the compressed ones.
//!
//! # Policy keys
//!
//! `rules.gzip-static-without-gunzip`; it is also checked whenever a configuration is given.
//!
//! # Evidence
//!
//! The configuration and the modules of the binary.
//!
//! # Limits
//!
//! A file that is there only as `.gz` is not found under `gzip_static on` by a client without gzip, with gunzip or without; the
//! files are not looked at here.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::config_common::view;
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::config::serving;
use crate::nginx::config::settings::{identity, title};

/// The rule.
pub const RULE: Rule = Rule {
    id: "gzip-static-without-gunzip",
    severity: Severity::Warning,
    keys: &["rules.gzip-static-without-gunzip"],
    source: include_str!("gzip_static_without_gunzip.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let view = match view(context, RULE.id) {
        Ok(view) => view,
        Err(outcome) => return outcome,
    };
    let mut drafts: Vec<Draft<'a>> = Vec::new();
    for scope in serving::file_places(view.model) {
        let Some(own) = scope.own() else { continue };
        let here = title(&scope);
        let key = format!("place:{}", identity(view.model, &scope));
        // An include that was not seen and may set it is reported where gzip itself is judged.
        if scope.says("gzip_static", "always") != Ok(true) {
            continue;
        }
        match scope.says("gunzip", "on") {
            Ok(true) => continue,
            Ok(false) => {}
            Err(include) => {
                drafts.push(view.hidden(key, &format!("{here}: whether gunzip is on"), include));
                continue;
            }
        }
        let compiled = view.has("ngx_http_gunzip_filter_module");
        let (message, remedy) = match compiled {
            Some(false) => (
                format!("{here}: gzip_static always, and this build has no gunzip"),
                "configure with --with-http_gunzip_module; make clean; rebuild; then `gunzip on;` in the same place",
            ),
            _ => (
                format!(
                    "{here}: gzip_static always, and gunzip is off there: clients without gzip get compressed bytes"
                ),
                "`gunzip on;` in the same place, or outside it so that it is inherited",
            ),
        };
        let mut draft = Draft::violation(key, message)
            .at_most(Severity::Warning)
            .evidence(Strength::Structural, &[Source::ModuleTable])
            .location(view.model.location(own.at))
            .remedy(remedy);
        if own.children().iter().any(|d| d.name == "internal") {
            draft = draft.severity(Severity::Note).at_most(Severity::Note);
        }
        drafts.push(draft);
    }
    view.outcome(drafts)
}

#[cfg(test)]
mod tests;
