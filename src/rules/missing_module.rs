//! An nginx lacks a module that the policy requires.
//!
//! # What it checks
//!
//! That the module table of an nginx server holds each entry of `nginx.modules.require`. Names may be short
//! (`http_gzip_static`), full (`ngx_http_gzip_static_module`), as in nginx's options, or globs.
//!
//! ```text
//! error[missing-module]: http_gzip_static is not in this nginx
//!   fix     configure with --with-http_gzip_static_module; make clean; rebuild
//! ```
//!
//! # Why it matters
//!
//! A module that got lost in a rebuild is noticed when the configuration is refused, or not at all: without
//! `http_gzip_static`, nginx compresses the same file again for every request.
//!
//! # How to fix
//!
//! Give `./configure` the option that adds the module, or leave out the one that removes it, and rebuild.
//!
//! # Policy keys
//!
//! `nginx.modules.require`
//!
//! # Evidence
//!
//! The module table in the data of the binary (`ngx_modules`), which works on stripped files; for a printed text, what the
//! configure arguments amount to in that version.
//!
//! # Limits
//!
//! A module built to be loaded counts as present; whether `load_module` names it is a matter of the configuration, and a
//! note says so.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::nginx_common::{all_dynamic, found, held_against, how_to_add, known_by};
use crate::evidence::Source;
use crate::facts::{Module, ModuleOrigin};
use crate::finding::Severity;
use crate::nginx::catalogue;
use crate::policy::{At, Pattern};

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-module",
    severity: Severity::Error,
    keys: &["nginx.modules.require"],
    source: include_str!("missing_module.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let entries = &context.policy.nginx.modules.require;
    held_against(
        context,
        entries,
        "module table",
        |nginx| nginx.modules.as_ref(),
        |modules| entries.iter().filter_map(|entry| missing(context, modules, entry)).collect(),
    )
}

fn missing<'a>(context: &Context<'a>, modules: &[Module], entry: &'a At<Pattern>) -> Option<Draft<'a>> {
    let text = &entry.value.text;
    let matching = found(modules, &entry.value);
    if let Some(directory) =
        unknown_directory(modules).filter(|_| matching.is_empty() && is_third_party(text))
    {
        let message = format!("nothing tells whether {text} is in this nginx: {directory} may bring it");
        let draft = Draft::undetermined(format!("module:{text}"), message)
            .policy(&entry.at)
            .module(text.clone())
            .remedy("give the binary itself: its own table of modules tells");
        return Some(draft);
    }
    if matching.is_empty() {
        let (strength, sources) = known_by(modules);
        let draft = Draft::violation(format!("module:{text}"), format!("{text} is not in this nginx"))
            .evidence(strength, &sources)
            .policy(&entry.at)
            .module(text.clone())
            .remedy(how_to_add(context, &entry.value));
        return Some(draft);
    }
    all_dynamic(&matching).then(|| {
        let message = format!("{text} is dynamic: needs load_module, which was not checked");
        Draft::remark(format!("dynamic:{text}"), message).policy(&entry.at)
    })
}

/// Whether a name is none of nginx's own modules and of those that OpenResty brings along.
fn is_third_party(text: &str) -> bool {
    catalogue::symbols_named(text).is_empty()
}

/// An added directory of which it is not known what modules it holds, where only the configure arguments tell of modules.
fn unknown_directory(modules: &[Module]) -> Option<&str> {
    if modules.iter().any(|module| module.sources != [Source::ConfigureArguments]) {
        return None;
    }
    let known = catalogue::module_names();
    let added = modules.iter().filter(|module| module.origin == ModuleOrigin::ThirdParty);
    added.map(|module| module.name.as_str()).find(|name| known.binary_search(name).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::facts::{Kind, Linkage};
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;

    const ID: &str = "missing-module";

    fn requires(names: &[&str]) -> Policy {
        let mut wanted = policy();
        wanted.nginx.modules.require = names.iter().map(|name| glob(name, 40)).collect();
        wanted
    }

    #[test]
    fn a_module_that_is_not_there_is_an_error_with_its_option() {
        let found = only(&nginx(1, Level::O2), &requires(&["http_v2"]), ID);
        assert_eq!(found.message, "http_v2 is not in this nginx");
        assert_eq!(
            found.remedy.as_deref(),
            Some("configure with --with-http_v2_module; make clean; rebuild")
        );
        assert_eq!(found.status, FindingStatus::Violation);
    }

    /// What a printed text tells, with these further arguments.
    fn printed(arguments: &str) -> crate::facts::Facts {
        let text =
            format!("nginx version: nginx/1.22.1\nbuilt by gcc 12.2.0\nconfigure arguments: {arguments}\n");
        let found = crate::nginx::read_text(text.as_bytes()).unwrap();
        let mut facts = nginx(1, Level::O2);
        (facts.nginx, facts.product) = (Some(found.nginx), Some(found.product));
        facts
    }

    #[test]
    fn the_remedy_names_the_part_of_the_server_that_is_needed() {
        let remedy = |arguments: &str, module: &str| {
            only(&printed(arguments), &requires(&[module]), ID).remedy.clone().unwrap()
        };
        let of =
            |arguments: &str, module: &str| remedy(arguments, module).replace("; make clean; rebuild", "");
        assert_eq!(of("", "stream_ssl"), "configure with --with-stream --with-stream_ssl_module");
        assert_eq!(of("--with-stream", "stream_ssl"), "configure with --with-stream_ssl_module");
        assert_eq!(of("", "stream_core"), "configure with --with-stream");
        assert_eq!(of("", "stream_map"), "configure with --with-stream");
        let off = "--with-stream --without-stream_map_module";
        assert_eq!(of(off, "stream_map"), "configure without --without-stream_map_module");
        assert_eq!(
            of("--without-http", "http_gzip_static"),
            "configure with --with-http_gzip_static_module, and without --without-http"
        );
        assert_eq!(
            of("--without-http", "http_proxy"),
            "it is there by default: configure without --without-http"
        );
    }

    #[test]
    fn a_directory_of_which_nothing_is_known_leaves_a_third_party_module_open() {
        let status =
            |arguments: &str, module: &str| only(&printed(arguments), &requires(&[module]), ID).status;
        assert_eq!(status("--add-module=/x/own-gate", "http_js"), FindingStatus::Undetermined);
        assert_eq!(status("--add-module=/x/own-gate", "http_v2"), FindingStatus::Violation);
        assert_eq!(status("--add-module=/x/ngx_brotli", "http_js"), FindingStatus::Violation);
        assert_eq!(status("--with-threads", "http_js"), FindingStatus::Violation);
    }

    #[test]
    fn every_way_of_naming_a_module_works() {
        let names = ["http_gzip_static", "ngx_http_gzip_static_module", "http_gzip_*", "/gzip_static/"];
        assert_passed(&nginx(1, Level::O2), &requires(&names), ID);
        assert_silent(&nginx(1, Level::O2), &policy(), ID);
    }

    #[test]
    fn a_dynamic_module_is_present_with_a_note() {
        let mut facts = nginx(1, Level::O2);
        facts.nginx.as_mut().unwrap().modules.as_mut().unwrap()[1].linkage = Linkage::Dynamic;
        let judgement = judged(&facts, &requires(&["http_gzip_static"]));
        assert!(judgement.passed.contains(&ID));
        let found = only(&facts, &requires(&["http_gzip_static"]), ID);
        assert_eq!((found.severity, found.status), (Severity::Note, FindingStatus::NotChecked));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_undetermined() {
        let mut facts = nginx(1, Level::O2);
        facts.nginx.as_mut().unwrap().modules = None;
        let found = only(&facts, &requires(&["http_v2"]), ID);
        assert_eq!((found.severity, found.status), (Severity::Error, FindingStatus::Undetermined));
    }

    #[test]
    fn a_target_that_is_no_server_is_told_about_once() {
        let mut wanted = requires(&["http_v2"]);
        wanted.nginx.configure.require = vec![glob("--with-threads", 41)];
        let mut facts = nginx(1, Level::O2);
        facts.nginx = None;
        let judgement = judged(&facts, &wanted);
        assert_eq!(judgement.not_checked.len(), 2);
        assert_eq!(judgement.findings.len(), 1);
        assert_eq!(
            judgement.findings[0].message,
            "2 rules about nginx not checked: the target is not of the nginx family"
        );
        assert_eq!(judgement.findings[0].status, FindingStatus::NotChecked);
        let mut module = nginx(1, Level::O2);
        module.elf.as_mut().unwrap().kind = Kind::SharedObject;
        assert!(judged(&module, &wanted).findings[0].message.contains("dynamic module, not the server"));
    }
}
