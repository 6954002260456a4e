//! What the rules about nginx programs share.

use super::check::{Context, Draft, Outcome};
use super::config_common::{CONFIG_RULES, NO_CONFIGURATION};
use super::{Judgement, TABLE, waivers};
use crate::evidence::{Source, Strength};
use crate::facts::{ConfigureArgument, Linkage, Module, ModuleOrigin, Nginx};
use crate::nginx::catalogue;
use crate::nginx::version::{family, nginx_version};
use crate::policy::matching::module_matches;
use crate::policy::{At, Pattern};
use crate::wording::plural;

/// Rules that are about nginx servers alone.
const NGINX_RULES: [&str; 6] = [
    "missing-module",
    "forbidden-module",
    "unlisted-module",
    "missing-configure-argument",
    "forbidden-configure-argument",
    "disallowed-product-version",
];

/// How firmly the list of modules stands, and whose it is: the program's own table, or what its text declares.
pub fn known_by(modules: &[Module]) -> (Strength, Vec<Source>) {
    let mut sources: Vec<Source> = modules.iter().flat_map(|module| module.sources.iter().copied()).collect();
    sources.sort_unstable();
    sources.dedup();
    let structural = [Source::ModuleTable, Source::Symbols, Source::Imports];
    let strength = if sources.iter().any(|s| structural.contains(s)) {
        Strength::Structural
    } else {
        Strength::Declared
    };
    (strength, sources)
}

/// One remark where the policy asks for nginx things and the target is no nginx server, instead of one a rule.
pub fn remark_not_nginx(context: &Context<'_>, judgement: &mut Judgement) {
    let Err(reason) = context.nginx_server() else { return };
    let asked: Vec<&'static str> = judgement
        .not_checked
        .iter()
        .map(|(id, _)| *id)
        .filter(|id| NGINX_RULES.contains(id) || CONFIG_RULES.contains(id))
        .collect();
    let Some(rule) = asked.first().and_then(|first| TABLE.iter().find(|rule| rule.id == *first)) else {
        return;
    };
    let rules = plural(asked.len() as u64, "rule");
    let draft = Draft::remark("not-nginx", format!("{rules} about nginx not checked: {reason}"));
    judgement.findings.extend(waivers::finish(rule.id, rule.severity, context, &draft));
}

/// One remark where the policy asks for rules about the configuration and none was given, instead of one a rule.
pub fn remark_no_configuration(context: &Context<'_>, judgement: &mut Judgement) {
    if context.nginx_server().is_err() {
        return;
    }
    let asked: Vec<&'static str> = judgement
        .not_checked
        .iter()
        .filter(|(id, reason)| CONFIG_RULES.contains(id) && reason == NO_CONFIGURATION)
        .map(|(id, _)| *id)
        .collect();
    let Some(rule) = asked.first().and_then(|first| TABLE.iter().find(|rule| rule.id == *first)) else {
        return;
    };
    let rules = plural(asked.len() as u64, "rule");
    let draft = Draft::remark(
        "no-configuration",
        format!("{rules} about the configuration not checked: {NO_CONFIGURATION}"),
    );
    judgement.findings.extend(waivers::finish(rule.id, rule.severity, context, &draft));
}

/// Modules that are part of every build: they belong to the product and no option removes them.
pub fn is_infrastructure(context: &Context<'_>, module: &Module) -> bool {
    if module.origin != ModuleOrigin::Builtin {
        return false;
    }
    match catalogue::known(&module.name) {
        Some(known) => {
            let version = nginx_version(context.facts.product.as_ref()).unwrap_or(catalogue::NEWEST);
            known.is_default(family(context.facts.product.as_ref()), version) && known.without.is_empty()
        }
        None => false,
    }
}

/// Modules that a pattern means.
pub fn found<'a>(modules: &'a [Module], pattern: &Pattern) -> Vec<&'a Module> {
    modules.iter().filter(|module| module_matches(pattern, &module.name)).collect()
}

/// Whether all of these modules are built to be loaded.
pub fn all_dynamic(modules: &[&Module]) -> bool {
    !modules.is_empty() && modules.iter().all(|module| module.linkage == Linkage::Dynamic)
}

/// How to put a module into the next build.
pub fn how_to_add(context: &Context<'_>, pattern: &Pattern) -> String {
    const REBUILD: &str = "; make clean; rebuild";
    let product = context.facts.product.as_ref();
    let version = nginx_version(product);
    let symbol = catalogue::symbols_named(&pattern.text).first().copied().unwrap_or_default();
    let arguments = context.facts.nginx.as_ref().and_then(|nginx| nginx.configure_arguments.as_deref());
    // Without its part of the server a module is not compiled, whatever its own option says (`auto/options`).
    let given = |name: &str| arguments.unwrap_or_default().iter().any(|argument| argument.name == name);
    let part = ["stream", "mail"].into_iter().find(|part| symbol.starts_with(&format!("ngx_{part}_")));
    let part =
        part.map(|part| format!("--with-{part}")).filter(|option| arguments.is_some() && !given(option));
    let without = symbol.starts_with("ngx_http_") && given("--without-http");
    let row = catalogue::known(symbol);
    let off = row.and_then(|row| row.without.iter().map(|(option, _)| *option).find(|option| given(option)));
    match catalogue::remedy(&pattern.text, family(product), version) {
        Some(catalogue::Remedy::Add(option)) if given(option) && off.is_some() => {
            format!("configure without {}{REBUILD}", off.unwrap_or_default())
        }
        Some(catalogue::Remedy::Add(option)) if without => {
            format!("configure with {option}, and without --without-http{REBUILD}")
        }
        Some(catalogue::Remedy::Add(option)) => match part.filter(|part| part != option) {
            Some(part) => format!("configure with {part} {option}{REBUILD}"),
            None => format!("configure with {option}{REBUILD}"),
        },
        Some(catalogue::Remedy::Drop(option)) => {
            let option = if without && !given(option) { "--without-http" } else { option };
            format!("it is there by default: configure without {option}{REBUILD}")
        }
        Some(catalogue::Remedy::NeedsVersion(least)) => format!("it exists from nginx {least} on: upgrade"),
        Some(catalogue::Remedy::RemovedIn(version)) => {
            format!("it was removed in nginx {version}: take it out of the policy")
        }
        None => format!(
            "configure with the module's --with- option, or --add-module=DIR for one of a third party{REBUILD}"
        ),
    }
}

/// Whether a pattern means a configure argument: by its name, or by name and value (`--with-cc-opt=*-O2*`).
pub fn argument_matches(pattern: &Pattern, argument: &ConfigureArgument) -> bool {
    if pattern.matches(&argument.name) {
        return true;
    }
    argument.value.as_ref().is_some_and(|value| {
        pattern.matches(&format!("{}={value}", argument.name))
            || pattern.matches(&format!("{}='{value}'", argument.name))
    })
}

/// An argument as nginx prints it.
pub fn spelt(argument: &ConfigureArgument) -> String {
    match &argument.value {
        None => argument.name.clone(),
        Some(value) if value.contains(' ') => format!("{}='{value}'", argument.name),
        Some(value) => format!("{}={value}", argument.name),
    }
}

/// Holds entries of a policy against a list that the nginx carries: without entries nothing is asked, a target that is no
/// server is not checked, and a list that is missing leaves the question open at the first entry.
pub fn held_against<'a, T: 'a>(
    context: &Context<'a>,
    entries: &'a [At<Pattern>],
    what: &str,
    list: impl FnOnce(&'a Nginx) -> Option<&'a Vec<T>>,
    judge: impl FnOnce(&'a [T]) -> Vec<Draft<'a>>,
) -> Outcome<'a> {
    let Some(first) = entries.first() else { return Outcome::NotAsked };
    match context.nginx_server() {
        Err(reason) => Outcome::NotChecked(reason),
        Ok(nginx) => Outcome::Checked(match list(nginx) {
            Some(list) => judge(list),
            None => vec![missing_list(nginx, what).policy(&first.at)],
        }),
    }
}

/// The question left open where a list is missing from the binary.
pub fn missing_list<'a>(nginx: &Nginx, what: &str) -> Draft<'a> {
    let remedy = if nginx.modules.is_none() && nginx.configure_arguments.is_none() {
        "the file may be packed or its texts removed: audit the build before that step"
    } else {
        "audit the binary itself, before anything removes its texts"
    };
    Draft::undetermined(
        format!("no-{}", what.replace(' ', "-")),
        format!("the {what} of this nginx cannot be read"),
    )
    .remedy(remedy)
}
