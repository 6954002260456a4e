//! The configuration uses a directive that this build does not know.
//!
//! # What it checks
//!
//! Each directive of the configuration (`--nginx-conf`) against the directives in the data of the binary and of the module
//! files that `load_module` names. What is not among them makes nginx refuse to start.
//!
//! ```text
//! error[directive-without-module]: gzip_static: this build has no ngx_http_gzip_static_module
//!   where   /etc/nginx/conf.d/cdn.conf:9:5
//!   fix     configure with --with-http_gzip_static_module; make clean; rebuild
//! ```
//!
//! Also a note about modules that were compiled in by an option and that the configuration never uses.
//!
//! # Why it matters
//!
//! `nginx: [emerg] unknown directive` stops the start after an upgrade, on the machine where it hurts.
//!
//! # How to fix
//!
//! The finding tells which of these it is: build the module in, load the module file, use another version, or correct
//! the name.
//!
//! # Policy keys
//!
//! `rules.directive-without-module`; it is also checked whenever a configuration is given.
//!
//! # Evidence
//!
//! The command tables of the modules in the binary's data, also of stripped files. For a text printed by `nginx -V`, what
//! the modules named by its arguments are known to bring.
//!
//! # Limits
//!
//! Whether a known directive may stand where it does, and its arguments, are not looked at. Blocks that a module of a third
//! party reads by itself are not looked into.

use super::Rule;
use super::check::{Context, Draft, Outcome, listed};
use super::config_common::{View, view};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::config::{Body, Directive};
use crate::nginx::{catalogue, vocabulary};
use crate::wording::plural;
use std::collections::{BTreeMap, HashMap, HashSet};

mod unused;
mod why;

/// The rule.
pub const RULE: Rule = Rule {
    id: "directive-without-module",
    severity: Severity::Error,
    keys: &["rules.directive-without-module"],
    source: include_str!("directive_without_module.rs"),
    check,
};

/// Most unknown names reported one by one.
const MAX_NAMES: usize = 500;

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let view = match view(context, RULE.id) {
        Ok(view) => view,
        Err(outcome) => return outcome,
    };
    let Some(vocabulary) = Vocabulary::of(&view) else {
        return Outcome::Checked(vec![
            Draft::undetermined("no-directives", "the directives this nginx knows cannot be read")
                .remedy("audit the binary itself, before anything packs it"),
        ]);
    };
    let mut found: BTreeMap<(&'a str, Option<&'a str>), Vec<&'a Directive>> = BTreeMap::new();
    collect(&view.model.main, None, &vocabulary, &mut found);
    let mut unknown: Vec<_> = found.into_iter().collect();
    unknown.sort_by_key(|(_, places)| places.first().map(|d| d.at));
    let more = unknown.len().saturating_sub(MAX_NAMES);
    unknown.truncate(MAX_NAMES);
    let mut drafts: Vec<Draft<'a>> =
        unknown.iter().map(|((name, part), places)| draft(&view, &vocabulary, name, *part, places)).collect();
    if more > 0 {
        let message = format!("{} more unknown", plural(more as u64, "directive"));
        drafts.push(Draft::violation("more", message).remedy("is this a configuration of nginx?"));
    }
    drafts.extend(unused::draft(&view));
    Outcome::Checked(drafts)
}

/// What the program knows.
struct Vocabulary<'a> {
    /// Names, with those of loaded modules.
    names: HashSet<&'a str>,
    /// The module that owns a directive, for those of the binary.
    owners: HashMap<&'a str, &'a str>,
    /// The names are what modules are known to bring, not what the binary's data shows.
    is_declared: bool,
}

impl<'a> Vocabulary<'a> {
    fn of(view: &View<'a>) -> Option<Self> {
        let owners: HashMap<&str, &str> = view
            .nginx
            .directives
            .iter()
            .flatten()
            .map(|directive| (directive.name.as_str(), directive.module.as_str()))
            .collect();
        if let Some(names) = view.directives() {
            return Some(Self { names, owners, is_declared: false });
        }
        // Without the binary's data, what its modules are known to bring has to do.
        let modules = view.nginx.modules.as_ref()?;
        let mut names = HashSet::new();
        for module in modules.iter().filter(|m| view.has(&m.name) == Some(true)) {
            names.extend(vocabulary::directives_of(&module.name).iter().copied().filter(|name| {
                why::standing(view, &module.name, name) == crate::nginx::config::history::Standing::There
                    && view.lacks(&module.name, name).is_none()
            }));
        }
        (!names.is_empty()).then_some(Self { names, owners, is_declared: true })
    }

    /// Whether a block is read by a module of a third party in a way of its own.
    fn is_foreign(&self, name: &str) -> bool {
        match self.owners.get(name) {
            Some(module) => catalogue::known(module).is_none(),
            // Directives of loaded files that no module of nginx's own has.
            None => vocabulary::modules_of(name).is_empty(),
        }
    }
}

/// Unknown directives by name and part (`http`, `stream`, `mail`). A block that is unknown itself is not looked into.
fn collect<'a>(
    list: &'a [Directive],
    part: Option<&'a str>,
    known: &Vocabulary<'a>,
    out: &mut BTreeMap<(&'a str, Option<&'a str>), Vec<&'a Directive>>,
) {
    for directive in list {
        let name = directive.name.as_str();
        if !known.names.contains(name) {
            out.entry((name, part)).or_default().push(directive);
        } else if let Body::Block(inner) = &directive.body {
            let part =
                if part.is_none() && matches!(name, "http" | "stream" | "mail") { Some(name) } else { part };
            if !known.is_foreign(name) {
                collect(inner, part, known, out);
            }
        }
    }
}

fn draft<'a>(
    view: &View<'a>,
    known: &Vocabulary<'a>,
    name: &str,
    part: Option<&str>,
    places: &[&'a Directive],
) -> Draft<'a> {
    let shown: String = name.chars().take(64).collect();
    let why = why::of(view, known, name, part);
    let key = format!("directive:{shown}");
    let mut draft = if why.certain {
        Draft::violation(key, format!("{shown}: {}", why.message))
    } else {
        Draft::undetermined(key, format!("{shown}: {}", why.message))
    };
    draft = if known.is_declared {
        draft.evidence(Strength::Declared, &[Source::ConfigureArguments])
    } else {
        draft.evidence(Strength::Structural, &[Source::ModuleTable])
    };
    if let Some(first) = places.first() {
        draft = draft.location(view.model.location(first.at));
    }
    if let Some(module) = why.module {
        draft = draft.module(module);
    }
    if places.len() > 1 {
        let more = listed(places.iter().skip(1).map(|d| view.at(d.at)), 5);
        draft = draft.known(vec![format!("also at {more}")]);
    }
    draft.remedy(why.remedy)
}

#[cfg(test)]
mod tests;
