//! An nginx has a module that the policy does not list, where the list is to be exact.
//!
//! # What it checks
//!
//! With `nginx.modules.exact = true`, that every module of the table is named by `nginx.modules.require` or
//! `nginx.modules.allow`. Modules that are part of every build of that version and that no option removes are left out,
//! and so is a module that comes with a listed one (the filter of `http_v2`).
//!
//! ```text
//! error[unlisted-module]: 2 modules are not listed: ngx_http_dav_module, ngx_http_lua_module (third-party)
//! ```
//!
//! # Why it matters
//!
//! A module nobody listed came in by a changed option or a patch. It is code that serves requests and that nobody reviewed.
//!
//! # How to fix
//!
//! Configure without it, or list it under `nginx.modules.allow`.
//!
//! # Policy keys
//!
//! `nginx.modules.exact`, `nginx.modules.require`, `nginx.modules.allow`
//!
//! # Evidence
//!
//! The module table in the data of the binary; for a printed text, the configure arguments.
//!
//! # Limits
//!
//! A distribution's patch can change a listed module; its name stays the same.

use super::Rule;
use super::check::{Context, Draft, Outcome, listed};
use super::nginx_common::{is_infrastructure, known_by, missing_list};
use crate::facts::{Module, ModuleOrigin};
use crate::finding::Severity;
use crate::nginx::catalogue;
use crate::policy::matching::module_matches;
use crate::wording::plural;

/// The rule.
pub const RULE: Rule = Rule {
    id: "unlisted-module",
    severity: Severity::Error,
    keys: &["nginx.modules.exact"],
    source: include_str!("unlisted_module.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let policy = &context.policy.nginx;
    let Some(exact) = policy.exact.as_ref().filter(|exact| exact.value) else { return Outcome::NotAsked };
    let nginx = match context.nginx_server() {
        Ok(nginx) => nginx,
        Err(reason) => return Outcome::NotChecked(reason),
    };
    let Some(modules) = &nginx.modules else {
        return Outcome::Checked(vec![missing_list(nginx, "module table").policy(&exact.at)]);
    };
    let mut named: Vec<&Module> = Vec::new();
    let mut rest: Vec<&Module> = Vec::new();
    for module in modules {
        let mut hit = policy.modules.require.iter().any(|entry| module_matches(&entry.value, &module.name));
        for entry in policy.allow_modules.iter().filter(|entry| module_matches(&entry.value, &module.name)) {
            context.mark_used(&entry.at);
            hit = true;
        }
        if hit { named.push(module) } else { rest.push(module) }
    }
    let unlisted: Vec<&Module> = rest
        .into_iter()
        .filter(|module| !is_infrastructure(context, module) && !comes_with(module, &named))
        .collect();
    if unlisted.is_empty() {
        return Outcome::Checked(Vec::new());
    }
    let names: Vec<String> = unlisted.iter().map(|module| named_with_origin(module)).collect();
    let mut keys: Vec<&str> = unlisted.iter().map(|module| module.name.as_str()).collect();
    keys.sort_unstable();
    let number = unlisted.len() as u64;
    let message = format!(
        "{} {} not listed: {}",
        plural(number, "module"),
        if number == 1 { "is" } else { "are" },
        listed(&names, 6)
    );
    let (strength, sources) = known_by(modules);
    let mut draft = Draft::violation(format!("modules:{}", keys.join(",")), message)
        .evidence(strength, &sources)
        .policy(&exact.at)
        .remedy("configure without them, or list them under nginx.modules.allow");
    if let [module] = unlisted.as_slice() {
        draft = draft.module(module.name.clone());
    }
    Outcome::Checked(vec![draft])
}

fn named_with_origin(module: &Module) -> String {
    let origin = match module.origin {
        ModuleOrigin::Builtin | ModuleOrigin::Unknown => return module.name.clone(),
        ModuleOrigin::Bundled => "bundled",
        ModuleOrigin::ThirdParty => "third-party",
        ModuleOrigin::DistroPatch => "distribution's patch",
    };
    format!("{} ({origin})", module.name)
}

/// Whether the option that adds a module also adds one that is listed.
fn comes_with(module: &Module, named: &[&Module]) -> bool {
    let Some(known) = catalogue::known(&module.name) else { return false };
    named
        .iter()
        .filter_map(|other| catalogue::known(&other.name))
        .any(|other| other.with.iter().any(|option| known.with.contains(option)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;

    const ID: &str = "unlisted-module";

    fn exact() -> Policy {
        let mut wanted = policy();
        wanted.nginx.exact = Some(at(true, 45));
        wanted.nginx.modules.require = vec![glob("http_gzip_static", 46), glob("http_v2", 46)];
        wanted
    }

    #[test]
    fn a_module_nobody_listed_is_named_with_its_origin() {
        let mut facts = nginx(1, Level::O2);
        let modules = facts.nginx.as_mut().unwrap().modules.as_mut().unwrap();
        modules.push(module("ngx_http_v2_module"));
        modules.push(module("ngx_http_v2_filter_module"));
        let mut lua = module("ngx_http_lua_module");
        lua.origin = ModuleOrigin::ThirdParty;
        modules.push(lua);
        let found = only(&facts, &exact(), ID);
        assert_eq!(found.message, "1 module is not listed: ngx_http_lua_module (third-party)");
        let mut wanted = exact();
        wanted.nginx.allow_modules = vec![glob("http_lua", 47), glob("http_never", 47)];
        assert_passed(&facts, &wanted, ID);
        let used = judged(&facts, &wanted).used;
        assert!(
            used.contains(&wanted.nginx.allow_modules[0].at)
                && !used.contains(&wanted.nginx.allow_modules[1].at)
        );
    }

    #[test]
    fn without_exact_nothing_is_asked_and_without_a_table_nothing_known() {
        assert_silent(&nginx(1, Level::O2), &policy(), ID);
        assert_passed(&nginx(1, Level::O2), &exact(), ID);
        let mut facts = nginx(1, Level::O2);
        facts.nginx.as_mut().unwrap().modules = None;
        assert_eq!(only(&facts, &exact(), ID).status, FindingStatus::Undetermined);
    }
}
