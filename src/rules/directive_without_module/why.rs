//! Why a build does not know a directive, and what to do about it.

use super::Vocabulary;
use crate::facts::Linkage;
use crate::nginx::catalogue::{self, Remedy};
use crate::nginx::config::history::{self, Standing};
use crate::nginx::vocabulary::{self, Needs};
use crate::rules::check::listed;
use crate::rules::config_common::{View, file_of};

/// The reason.
pub struct Why {
    /// Whether nginx would refuse the directive for certain.
    pub certain: bool,
    /// What is wrong, without the directive's name.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// The module that brings it, where known.
    pub module: Option<&'static str>,
}

/// Directives of well-known modules of third parties, by their beginning.
const THIRD_PARTIES: [(&str, &str); 22] = [
    ("brotli", "ngx_brotli"),
    ("zstd", "zstd-nginx-module"),
    ("more_", "headers-more-nginx-module"),
    ("lua_", "lua-nginx-module"),
    ("geoip2", "ngx_http_geoip2_module"),
    ("js_", "njs"),
    ("modsecurity", "ModSecurity-nginx"),
    ("vhost_traffic_status", "nginx-module-vts"),
    ("echo", "echo-nginx-module"),
    ("rtmp", "nginx-rtmp-module"),
    ("nchan_", "nchan"),
    ("push_stream", "nginx-push-stream-module"),
    ("fancyindex", "ngx-fancyindex"),
    ("proxy_cache_purge", "ngx_cache_purge"),
    ("fastcgi_cache_purge", "ngx_cache_purge"),
    ("dav_ext_", "nginx-dav-ext-module"),
    ("subs_filter", "ngx_http_substitutions_filter_module"),
    ("otel_", "nginx-otel"),
    ("opentracing", "nginx-opentracing"),
    ("passenger_", "Phusion Passenger"),
    ("pagespeed", "ngx_pagespeed"),
    ("auth_pam", "ngx_http_auth_pam_module"),
];

/// What the version of the build has of a directive of a module.
pub fn standing(view: &View<'_>, module: &str, directive: &str) -> Standing {
    history::standing(module, directive, view.family, view.version_or_newest())
}

/// The reason why a directive is not known.
pub fn of(view: &View<'_>, known: &Vocabulary<'_>, name: &str, part: Option<&str>) -> Why {
    let owners = owners(name, part);
    let unread: Vec<&str> = view.unread_files().collect();
    let standings: Vec<(&'static str, Standing)> =
        owners.iter().map(|module| (*module, standing(view, module, name))).collect();
    let program = view.program();
    let there = |module: &&(&'static str, Standing)| module.1 == Standing::There;
    if let Some((module, _)) = standings.iter().find(there) {
        return missing(view, module, name, &unread);
    }
    if !unread.is_empty() {
        return unread_files(&unread, None);
    }
    for (module, standing) in &standings {
        match standing {
            Standing::Since(version) => {
                return Why {
                    certain: true,
                    message: format!("{program} does not have this directive; it comes with {version}"),
                    remedy: instead(name).map_or_else(
                        || format!("upgrade to nginx {version} or newer, or take the directive out"),
                        |here| format!("upgrade to nginx {version} or newer; here: {here}"),
                    ),
                    module: Some(module),
                };
            }
            Standing::RemovedIn(version) => {
                return Why {
                    certain: true,
                    message: format!("was removed in nginx {version}; this is {program}"),
                    remedy: instead(name).map_or_else(
                        || "take the directive out".to_owned(),
                        |here| format!("use {here} instead"),
                    ),
                    module: Some(module),
                };
            }
            _ => {}
        }
    }
    if let Some((module, _)) = standings.first() {
        return Why {
            certain: true,
            message: format!(
                "{program} does not have this directive; {module} is a module of another program of the family"
            ),
            remedy: "take the directive out, or run the program it was written for".to_owned(),
            module: Some(module),
        };
    }
    elsewhere(&program, known, name)
}

/// Modules that bring a directive, those of the part it stands in first.
fn owners(name: &str, part: Option<&str>) -> Vec<&'static str> {
    let all = vocabulary::modules_of(name);
    let fits = |module: &&'static str| match part {
        Some(part) => module.starts_with(&format!("ngx_{part}_")),
        None => !["ngx_http_", "ngx_stream_", "ngx_mail_"].iter().any(|p| module.starts_with(p)),
    };
    let fitting: Vec<&'static str> = all.iter().copied().filter(fits).collect();
    if fitting.is_empty() { all.to_vec() } else { fitting }
}

/// This version has the module, and the build has not.
fn missing(view: &View<'_>, module: &'static str, name: &str, unread: &[&str]) -> Why {
    let file = file_of(module);
    if unread.contains(&file.as_str()) {
        return unread_files(&[file.as_str()], Some(module));
    }
    if view.is_unloaded(module) {
        let (message, remedy) = load(view, module, &file);
        return Why { certain: true, message, remedy, module: Some(module) };
    }
    let present = view.has(module) == Some(true);
    if let Some(needs) = view.lacks(module, name).filter(|_| present) {
        return lacking(view, module, needs);
    }
    if present {
        return Why {
            certain: true,
            message: format!("{module} is in this build, but without this directive"),
            remedy: "the directive depends on a library or the system at build time: build where that is there, or take it out"
                .to_owned(),
            module: Some(module),
        };
    }
    let certain = view.has(module).is_some();
    let message = format!("this build has no {module}");
    Why { certain, message, remedy: rebuild(view, module), module: Some(module) }
}

fn rebuild(view: &View<'_>, module: &str) -> String {
    match catalogue::remedy(module, view.family, view.version) {
        Some(Remedy::Add(option)) => format!("configure with {option}; make clean; rebuild"),
        Some(Remedy::Drop(option)) => {
            format!("the module is there by default: configure without {option}; make clean; rebuild")
        }
        _ => "rebuild with the module".to_owned(),
    }
}

/// The module is there, and what its directive needs besides is not.
fn lacking(view: &View<'_>, module: &'static str, needs: Needs) -> Why {
    let (what, remedy) = match needs {
        Needs::OneOf(modules) => {
            let first = modules.first().copied().unwrap_or_default();
            (format!("which needs {first}"), rebuild(view, first))
        }
        Needs::Without(option) => {
            (format!("which {option} takes out"), format!("configure without {option}; make clean; rebuild"))
        }
    };
    let message = format!("{module} is in this build, but without this directive, {what}");
    Why { certain: true, message, remedy, module: Some(module) }
}

/// A module that was built to be loaded.
fn load(view: &View<'_>, module: &str, file: &str) -> (String, String) {
    let argument = |name: &str| {
        let list = view.nginx.configure_arguments.iter().flatten();
        list.rev().find(|a| a.name == name).and_then(|a| a.value.as_deref())
    };
    let path = match argument("--modules-path") {
        Some(directory) => format!("{}/{file}", directory.trim_end_matches('/')),
        None => format!("modules/{file}"),
    };
    let line = format!("put `load_module {path};` at the top of the main file, before events");
    let remedy = match package(view, file) {
        Some(package) => format!("{line}; the file is in the package {package}"),
        None => line,
    };
    (format!("{module} was built to be loaded ({file}), and no load_module names it"), remedy)
}

/// The package of a distribution that holds a module file.
fn package(view: &View<'_>, file: &str) -> Option<String> {
    let raw = view.nginx.configure_raw.as_deref()?;
    let stem = file.strip_prefix("ngx_")?.strip_suffix("_module.so")?.replace('_', "-");
    // Debian and Ubuntu build below /build with a modules path of their own; Fedora has lib64; Alpine's home is /var/lib/nginx.
    if raw.contains("--modules-path=/usr/lib64/nginx/modules") && raw.contains("--prefix=/usr/share/nginx") {
        return Some(format!("nginx-mod-{stem}"));
    }
    if raw.contains("--prefix=/usr/share/nginx") && raw.contains("--modules-path=/usr/lib/nginx/modules") {
        return Some(format!("libnginx-mod-{stem}"));
    }
    if raw.contains("--prefix=/var/lib/nginx") && raw.contains("--modules-path=/usr/lib/nginx/modules") {
        return Some(format!("nginx-mod-{stem}"));
    }
    if raw.contains("--prefix=/etc/nginx ") && raw.contains("--modules-path=/usr/lib") {
        let short = stem.trim_start_matches("http-").trim_end_matches("-filter");
        return Some(format!("nginx-module-{short} (of nginx.org)"));
    }
    None
}

/// Module files that were not to be had may bring it.
fn unread_files(files: &[&str], module: Option<&'static str>) -> Why {
    let list = listed(files, 3);
    Why {
        certain: false,
        message: format!("not in the binary; it may come with {list}, which could not be read"),
        remedy: "audit where the module files are, or give --root DIR for the file system they are in"
            .to_owned(),
        module,
    }
}

/// No module of the family has it.
fn elsewhere(program: &str, known: &Vocabulary<'_>, name: &str) -> Why {
    let lua = name.contains("_by_lua");
    let third = THIRD_PARTIES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, module)| *module);
    if let Some(third) = third.or(lua.then_some("lua-nginx-module")) {
        return Why {
            certain: !known.is_declared,
            message: format!("{program} does not have this directive; {third} brings it"),
            remedy: format!("build {third} in with --add-module, or load it with load_module"),
            module: None,
        };
    }
    let near = known
        .names
        .iter()
        .map(|candidate| (strsim::jaro_winkler(candidate, name), *candidate))
        .filter(|(score, _)| *score > 0.92)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
    let message = match near {
        Some((_, near)) => format!("no module of {program} has this directive (did you mean {near}?)"),
        None => format!("no module of {program} has this directive"),
    };
    Why {
        // A text names modules of third parties, but not their directives.
        certain: !known.is_declared,
        message,
        remedy: "correct the name, or build in or load the module that brings it".to_owned(),
        module: None,
    }
}

/// What does the same in the version at hand, for directives that came or went.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "http2" => "`listen … http2`",
        "ssl" => "`listen … ssl`",
        "limit_zone" => "limit_conn_zone",
        "satisfy_any" => "`satisfy any`",
        "open_file_cache_retest" => "open_file_cache_valid",
        "optimize_server_names" => "server_name_in_redirect",
        "imap" => "mail",
        "connections" => "worker_connections",
        _ if name.starts_with("spdy_") => "http2",
        _ => return None,
    })
}

/// Modules compiled in by options, as the binary shows them.
pub fn optional_modules<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> {
    let version = view.version_or_newest();
    let family = view.family;
    view.nginx.modules.iter().flatten().filter(|m| m.linkage == Linkage::Static).filter_map(move |module| {
        let name = module.name.as_str();
        match catalogue::known(name) {
            Some(known) => {
                let option = known.with.first()?;
                let stem = option.trim_start_matches("--with-");
                // An option that also brings other modules is named once, for the module it is named after.
                let short = catalogue::short_name(name);
                let named = stem.trim_end_matches("_module");
                let same = short == named || short.strip_suffix("_filter") == Some(named);
                (same && !known.is_default(family, version)).then_some(name)
            }
            None => (module.origin == crate::facts::ModuleOrigin::ThirdParty).then_some(name),
        }
    })
}
