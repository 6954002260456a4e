//! What the rules about configurations share: the configuration beside the build that is to read it.

use super::check::{Context, Draft, Outcome};
use crate::facts::{Linkage, Nginx};
use crate::nginx::catalogue;
use crate::nginx::config::{Directive, Model, Place};
use crate::nginx::version::{Family, Version, family, nginx_version};
use crate::nginx::vocabulary::{self, Needs};
use std::collections::HashSet;

/// The rules that need a configuration.
pub const CONFIG_RULES: [&str; 5] = [
    "upstream-without-keepalive",
    "dynamic-gzip-of-static-files",
    "gzip-static-without-gunzip",
    "directive-without-module",
    "unsupported-by-build",
];

/// Why a rule is not checked without a configuration.
pub const NO_CONFIGURATION: &str = "no --nginx-conf";
/// Why a rule is not passed by half of one.
const HALF: &str = "the configuration could not be read to its end";

/// A build and a configuration for it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The build.
    pub nginx: &'a Nginx,
    /// The configuration.
    pub model: &'a Model,
    /// Which program of the family.
    pub family: Family,
    /// The nginx version it has, if known.
    pub version: Option<Version>,
}

/// Build and configuration, or what a rule returns without them: it is asked for by a configuration that was given, or
/// by a policy that names it; and without a configuration it is never passed.
pub fn view<'a>(context: &Context<'a>, rule: &str) -> Result<View<'a>, Outcome<'a>> {
    let absent = |reason: String| match context.switched_on(rule) {
        Some(_) => Outcome::NotChecked(reason),
        None => Outcome::NotAsked,
    };
    let nginx = context.nginx_server().map_err(absent)?;
    let Some(model) = nginx.config_model.as_deref() else {
        return Err(absent(NO_CONFIGURATION.to_owned()));
    };
    let product = context.facts.product.as_ref();
    Ok(View { nginx, model, family: family(product), version: nginx_version(product) })
}

impl<'a> View<'a> {
    /// The version, or the newest known.
    pub fn version_or_newest(&self) -> Version {
        self.version.unwrap_or(catalogue::NEWEST)
    }

    /// How the program is called in texts: `nginx 1.22.1`.
    pub fn program(&self) -> String {
        match self.version {
            Some(version) => format!("nginx {version}"),
            None => "this nginx".to_owned(),
        }
    }

    /// Whether a module is compiled in or loaded by the configuration. `None` where the modules are not known, or a
    /// module file that may be it could not be read.
    pub fn has(&self, module: &str) -> Option<bool> {
        let modules = self.nginx.modules.as_ref()?;
        let compiled = modules.iter().any(|m| m.linkage == Linkage::Static && m.name == module);
        let loaded = self.loaded_names().any(|name| name == module);
        if compiled || loaded {
            return Some(true);
        }
        if self.unread_files().any(|file| file_of(module) == file) { None } else { Some(false) }
    }

    /// Whether a module was built to be loaded and is not.
    pub fn is_unloaded(&self, module: &str) -> bool {
        let dynamic = |name: &str| {
            self.nginx.modules.iter().flatten().any(|m| m.linkage == Linkage::Dynamic && m.name == name)
        };
        // `--with-stream=dynamic` makes one file of all modules of that part.
        let part = file_of(module).strip_suffix(".so").map(str::to_owned).unwrap_or_default();
        self.has(module) == Some(false) && (dynamic(module) || dynamic(&part))
    }

    /// What a directive of a module in the build needs besides, where that is certainly not there.
    pub fn lacks(&self, module: &str, directive: &str) -> Option<Needs> {
        let needs = vocabulary::needs(module, directive)?;
        let lacking = match needs {
            Needs::OneOf(modules) => modules.iter().all(|module| self.has(module) == Some(false)),
            Needs::Without(option) => {
                self.nginx.configure_arguments.iter().flatten().any(|argument| argument.name == option)
            }
        };
        lacking.then_some(needs)
    }

    fn loaded_names(&self) -> impl Iterator<Item = &'a str> {
        let loaded = self.model.loaded.iter().filter_map(|loaded| loaded.module.as_ref().ok());
        loaded.flat_map(|module| module.names.iter().map(String::as_str))
    }

    /// Base names of module files that could not be read.
    pub fn unread_files(&self) -> impl Iterator<Item = &'a str> {
        let unread = self.model.loaded.iter().filter(|loaded| loaded.module.is_err());
        unread.map(|loaded| super::check::base_name(&loaded.path))
    }

    /// The directives the program knows, with those of loaded modules. `None` where they could not be read.
    pub fn directives(&self) -> Option<HashSet<&'a str>> {
        let own = self.nginx.directives.as_ref().filter(|list| !list.is_empty())?;
        let loaded = self.model.loaded.iter().filter_map(|loaded| loaded.module.as_ref().ok());
        let loaded = loaded.flat_map(|module| module.directives.iter().map(String::as_str));
        Some(own.iter().map(|directive| directive.name.as_str()).chain(loaded).collect())
    }

    /// Whether upstreams keep connections without being told (since 1.29.7). `None` where neither the program's data nor its
    /// version tells: freenginx, which left nginx before, has numbers of its own.
    pub fn keeps_by_default(&self) -> Option<bool> {
        const SINCE: Version = Version(1, 29, 7);
        let shown = self.nginx.features.get("upstream_keepalive_default").and_then(|held| held.value);
        let own_numbers = |version: &Version| self.family == Family::Freenginx && *version >= SINCE;
        shown.or_else(|| Some(self.version.filter(|version| !own_numbers(version))? >= SINCE))
    }

    /// What a rule returns that has looked at all that was read: half a configuration without a fault is not passed.
    pub fn outcome(&self, drafts: Vec<Draft<'a>>) -> Outcome<'a> {
        if drafts.is_empty() && !self.model.is_whole() {
            return Outcome::NotChecked(HALF.to_owned());
        }
        Outcome::Checked(drafts)
    }

    /// `file:line`.
    pub fn at(&self, place: Place) -> String {
        self.model.shown(place)
    }

    /// The open question that an include leaves which could not be seen.
    pub fn hidden<'d>(&self, key: String, what: &str, include: &Directive) -> Draft<'d> {
        Draft::undetermined(key, format!("{what} cannot be told: include {} was not seen", include.first()))
            .location(self.model.location(include.at))
            .remedy("give the whole configuration: --root DIR for the file system it is in, or a dump of nginx -T")
            .at_most(crate::finding::Severity::Warning)
    }
}

/// The file a module is built into when it is built to be loaded (`auto/modules`).
pub fn file_of(module: &str) -> String {
    let whole = ["ngx_stream_geoip_module", "ngx_mail_module", "ngx_stream_module"];
    if whole.contains(&module) {
        return format!("{module}.so");
    }
    for part in ["stream", "mail"] {
        if module.starts_with(&format!("ngx_{part}_")) && !vocabulary::directives_of(module).is_empty() {
            return format!("ngx_{part}_module.so");
        }
    }
    format!("{module}.so")
}
