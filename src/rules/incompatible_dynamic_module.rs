//! A dynamic module would be refused by the nginx it is meant for.
//!
//! # What it checks
//!
//! Every dynamic module held against the server (a module file given beside it, or one that the configuration names with
//! `load_module`): its version must be the server's, its signature must be equal, and it must not be there already. Where
//! a configuration gives the order of loading, the symbols it needs must be those of the server or of a module before it, and
//! a file that is no ELF file is refused. Where the file is not to be had, or only the text of `nginx -V` is, the question
//! stays open.
//!
//! ```text
//! error[incompatible-dynamic-module]: ngx_stream_module.so would not load: not binary compatible (bit 23)
//! ```
//!
//! # Why it matters
//!
//! nginx refuses to start with such a module: "module is not binary compatible", or "version 1022001 instead of 1024000".
//! It is found at the next restart, which may be the one after an incident.
//!
//! # How to fix
//!
//! Build the module from the same nginx source with the same configure arguments. `--with-compat` on both sides makes most
//! arguments irrelevant, but not all.
//!
//! # Policy keys
//!
//! `rules.incompatible-dynamic-module`
//!
//! # Evidence
//!
//! Structural: version number and signature text in the module structures of both files, which is what nginx compares; the
//! dynamic symbols of both.
//!
//! # Limits
//!
//! Libraries the module needs are not looked at.

use super::Rule;
use super::check::{Context, Draft, Outcome, base_name};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use std::collections::HashMap;

/// The rule.
pub const RULE: Rule = Rule {
    id: "incompatible-dynamic-module",
    severity: Severity::Error,
    keys: &[],
    source: include_str!("incompatible_dynamic_module.rs"),
    check,
};

/// What to do where it cannot be told.
const OPEN: &str = "audit the server's binary where the module files are, or give --root DIR for the file system they are in";

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let modules =
        context.facts.nginx.as_ref().map(|nginx| nginx.dynamic_modules.as_slice()).unwrap_or_default();
    if modules.is_empty() {
        return Outcome::NotAsked;
    }
    let mut drafts = Vec::new();
    let model = context.facts.nginx.as_ref().and_then(|nginx| nginx.config_model.as_deref());
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for module in modules {
        let file = base_name(&module.path);
        let name = module.name.clone().unwrap_or_else(|| file.to_owned());
        // A file that is loaded twice is refused at its second line.
        let before = seen.entry(module.path.as_str()).or_insert(0_usize);
        let line = model.and_then(|model| model.loaded.iter().filter(|l| l.path == module.path).nth(*before));
        *before += 1;
        let why = module.why_not.as_deref();
        let draft = match module.loadable {
            Some(true) => continue,
            Some(false) => Draft::violation(
                format!("module:{name}"),
                format!("{file} would not load: {}", why.unwrap_or("version or signature differ")),
            )
            .evidence(Strength::Structural, &[Source::ModuleTable])
            .remedy(remedy(why.unwrap_or_default())),
            None => Draft::undetermined(
                format!("module:{name}"),
                format!(
                    "whether {file} would load cannot be told: {}",
                    why.unwrap_or("its version or signature cannot be read")
                ),
            )
            .severity(Severity::Warning)
            .remedy(OPEN),
        };
        let draft = match (model, line) {
            (Some(model), Some(line)) => draft.location(model.location(line.at)),
            _ => draft,
        };
        drafts.push(draft.module(name));
    }
    Outcome::Checked(drafts)
}

/// What to do about a module that is refused for that reason.
fn remedy(why: &str) -> String {
    if why.ends_with("is already loaded") {
        return "take the load_module line out: the module is compiled in, or loaded by another line"
            .to_owned();
    }
    if why.ends_with("(invalid ELF header)") || why.ends_with("(file too short)") {
        return "put the module there again: the file is no shared object".to_owned();
    }
    if why.contains("is linked statically") {
        return "compile the module in, or link the server dynamically".to_owned();
    }
    if let Some((_, symbols)) = why.split_once("undefined symbol: ").filter(|_| !why.contains("; besides, "))
    {
        let brings = [
            ("ngx_stream_", "ngx_stream_module.so"),
            ("ngx_mail_", "ngx_mail_module.so"),
            ("ndk_", "ndk_http_module.so"),
        ];
        return match brings.iter().find(|(prefix, _)| symbols.starts_with(prefix)) {
            Some((_, file)) => format!("put `load_module modules/{file};` above this line"),
            None => "put the load_module line of the module that brings the symbol above this one, or build the server with it".to_owned(),
        };
    }
    "build the module from the same nginx source with the same configure arguments (--with-compat on both sides helps)".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::facts::DynamicModule;
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    const ID: &str = "incompatible-dynamic-module";

    #[test]
    fn fires_passes_and_leaves_open() {
        let mut facts = nginx(1, Level::O2);
        assert_silent(&facts, &policy(), ID);
        let module = DynamicModule {
            path: "/usr/lib/nginx/modules/ngx_stream_module.so".into(),
            name: Some("ngx_stream_module".into()),
            version: Some("1.22.1".into()),
            signature: None,
            loadable: Some(true),
            why_not: None,
        };
        facts.nginx.as_mut().unwrap().dynamic_modules = vec![module];
        assert_passed(&facts, &policy(), ID);
        let module = &mut facts.nginx.as_mut().unwrap().dynamic_modules[0];
        module.loadable = Some(false);
        module.why_not = Some("version 1022001 instead of 1024000".into());
        let found = only(&facts, &policy(), ID);
        assert_eq!(found.message, "ngx_stream_module.so would not load: version 1022001 instead of 1024000");
        let why = "dlopen() \"m.so\" failed (undefined symbol: ngx_stream_top_filter)".to_owned();
        facts.nginx.as_mut().unwrap().dynamic_modules[0].why_not = Some(why);
        let found = only(&facts, &policy(), ID);
        assert_eq!(found.remedy.unwrap(), "put `load_module modules/ngx_stream_module.so;` above this line");
        facts.nginx.as_mut().unwrap().dynamic_modules[0].loadable = None;
        let found = only(&facts, &policy(), ID);
        assert_eq!((found.severity, found.status), (Severity::Warning, FindingStatus::Undetermined));
    }
}
