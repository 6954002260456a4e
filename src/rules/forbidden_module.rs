//! An nginx has a module that the policy forbids.
//!
//! # What it checks
//!
//! That the module table of an nginx server holds no module of `nginx.modules.forbid`. Names may be short
//! (`http_autoindex`), full, as in nginx's options, or globs. Modules built to be loaded count as well.
//!
//! ```text
//! error[forbidden-module]: ngx_http_autoindex_module is in this nginx
//!   fix     configure with --without-http_autoindex_module; make clean; rebuild
//! ```
//!
//! # Why it matters
//!
//! What is compiled in can be switched on by one line of configuration, and has to be kept patched.
//!
//! # How to fix
//!
//! Leave out the option that adds the module, or give the one that removes it, and rebuild.
//!
//! # Policy keys
//!
//! `nginx.modules.forbid`
//!
//! # Evidence
//!
//! The module table in the data of the binary; for a printed text, the configure arguments.
//!
//! # Limits
//!
//! Whether a module is used is a matter of the configuration and is not looked at here.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::nginx_common::{found, held_against, known_by};
use crate::facts::{Linkage, Module};
use crate::finding::Severity;
use crate::nginx::catalogue;

/// The rule.
pub const RULE: Rule = Rule {
    id: "forbidden-module",
    severity: Severity::Error,
    keys: &["nginx.modules.forbid"],
    source: include_str!("forbidden_module.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let entries = &context.policy.nginx.modules.forbid;
    held_against(
        context,
        entries,
        "module table",
        |nginx| nginx.modules.as_ref(),
        |modules| {
            let mut drafts: Vec<Draft<'a>> = Vec::new();
            let mut seen: Vec<&str> = Vec::new();
            for entry in entries {
                for module in found(modules, &entry.value) {
                    if seen.contains(&module.name.as_str()) {
                        continue;
                    }
                    seen.push(&module.name);
                    let how = if module.linkage == Linkage::Dynamic { " as a dynamic module" } else { "" };
                    let message = format!("{} is in this nginx{how}", module.name);
                    drafts.push(
                        Draft::violation(format!("module:{}", module.name), message)
                            .evidence(known_by(modules).0, &module.sources)
                            .policy(&entry.at)
                            .module(module.name.clone())
                            .remedy(how_to_remove(module)),
                    );
                }
            }
            drafts
        },
    )
}

/// The option that keeps a module out of the next build.
fn how_to_remove(module: &Module) -> String {
    const REBUILD: &str = "; make clean; rebuild";
    match catalogue::known(&module.name) {
        Some(known) => match (known.without.first(), known.with.first()) {
            (Some((option, _)), _) => format!("configure with {option}{REBUILD}"),
            (None, Some(option)) => format!("configure without {option}{REBUILD}"),
            (None, None) => "no option removes it".to_owned(),
        },
        None => format!("leave out its --add-module or --add-dynamic-module{REBUILD}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;

    const ID: &str = "forbidden-module";

    fn forbids(names: &[&str]) -> Policy {
        let mut wanted = policy();
        wanted.nginx.modules.forbid = names.iter().map(|name| glob(name, 42)).collect();
        wanted
    }

    #[test]
    fn a_forbidden_module_is_found_once() {
        let mut facts = nginx(1, Level::O2);
        facts.nginx.as_mut().unwrap().modules.as_mut().unwrap().push(module("ngx_http_autoindex_module"));
        let found = only(&facts, &forbids(&["http_autoindex", "http_auto*"]), ID);
        assert_eq!(found.message, "ngx_http_autoindex_module is in this nginx");
        assert!(found.remedy.unwrap().starts_with("configure with --without-http_autoindex_module"));
    }

    #[test]
    fn its_absence_passes_and_no_table_is_undetermined() {
        let mut facts = nginx(1, Level::O2);
        assert_passed(&facts, &forbids(&["http_autoindex"]), ID);
        assert_silent(&facts, &policy(), ID);
        facts.nginx.as_mut().unwrap().modules = None;
        assert_eq!(only(&facts, &forbids(&["http_autoindex"]), ID).status, FindingStatus::Undetermined);
    }

    #[test]
    fn a_waiver_can_name_the_module() {
        let mut wanted = forbids(&["http_gzip_static"]);
        let mut one = waiver(ID, 50);
        one.module = Some(glob("http_gzip_static", 51));
        wanted.waivers = vec![one];
        assert_eq!(only(&nginx(1, Level::O2), &wanted, ID).status, FindingStatus::Waived);
    }
}
