//! Which module brings which directive, from the sources of nginx, Angie and Tengine.

use std::collections::HashMap;
use std::sync::LazyLock;

#[derive(Debug, Default)]
struct Vocabulary {
    modules: HashMap<&'static str, Vec<&'static str>>,
    owners: HashMap<&'static str, Vec<&'static str>>,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let mut out = Vocabulary::default();
    for line in include_str!("directives.tsv").lines().filter(|line| !line.starts_with('#')) {
        let Some((module, names)) = line.split_once('\t') else { continue };
        let names: Vec<&'static str> = names.split(' ').collect();
        for name in &names {
            out.owners.entry(name).or_default().push(module);
        }
        out.modules.insert(module, names);
    }
    out
});

/// Directives that some version of a module has; empty for modules without directives and unknown ones.
pub fn directives_of(symbol: &str) -> &'static [&'static str] {
    VOCABULARY.modules.get(symbol).map(Vec::as_slice).unwrap_or_default()
}

/// Modules that bring a directive, as symbols; several where `http`, `stream` and `mail` each have their own.
pub fn modules_of(directive: &str) -> &'static [&'static str] {
    VOCABULARY.owners.get(directive).map(Vec::as_slice).unwrap_or_default()
}

/// What a directive needs besides its own module: the sources hold it under an `#if`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// One of these modules.
    OneOf(&'static [&'static str]),
    /// That this configure argument is not given.
    Without(&'static str),
}

/// What a directive of a module needs besides the module (`NGX_HTTP_SSL`, `NGX_STREAM_SSL`, `NGX_HTTP_CACHE`).
pub fn needs(symbol: &str, directive: &str) -> Option<Needs> {
    let (part, rest) = symbol.strip_prefix("ngx_")?.strip_suffix("_module")?.split_once('_')?;
    let rest = directive
        .strip_prefix(rest)
        .filter(|_| matches!(rest, "proxy" | "grpc" | "fastcgi" | "uwsgi" | "scgi"))?;
    match part {
        // HTTP/3 brings TLS along.
        "http" if rest.starts_with("_ssl_") => {
            Some(Needs::OneOf(&["ngx_http_ssl_module", "ngx_http_v3_module"]))
        }
        "http" if rest.starts_with("_cache") || rest == "_no_cache" => {
            Some(Needs::Without("--without-http-cache"))
        }
        "stream" if rest.starts_with("_ssl") => Some(Needs::OneOf(&["ngx_stream_ssl_module"])),
        _ => None,
    }
}

/// Whether directives read from a program can be those of the module of that symbol: all of them are known to be its
/// own, and it has none only if the module never has.
pub(super) fn fits(symbol: &str, read: &[String]) -> bool {
    let known = directives_of(symbol);
    read.is_empty() == known.is_empty() && read.iter().all(|name| known.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::catalogue;

    #[test]
    fn every_module_of_the_vocabulary_is_in_the_catalogue() {
        for module in VOCABULARY.modules.keys() {
            assert!(catalogue::known(module).is_some(), "{module}");
        }
    }

    #[test]
    fn what_directives_need() {
        let ssl = Some(Needs::OneOf(&["ngx_http_ssl_module", "ngx_http_v3_module"]));
        assert_eq!(needs("ngx_http_grpc_module", "grpc_ssl_name"), ssl);
        assert_eq!(
            needs("ngx_http_scgi_module", "scgi_no_cache"),
            Some(Needs::Without("--without-http-cache"))
        );
        assert_eq!(
            needs("ngx_stream_proxy_module", "proxy_ssl"),
            Some(Needs::OneOf(&["ngx_stream_ssl_module"]))
        );
        for (symbol, name) in [
            ("ngx_http_proxy_module", "proxy_store"),
            ("ngx_http_ssl_module", "ssl_certificate"),
            ("ngx_http_core_module", "open_file_cache"),
            ("ngx_core_module", "user"),
        ] {
            assert_eq!(needs(symbol, name), None, "{name}");
        }
    }

    #[test]
    fn owners() {
        assert_eq!(modules_of("gzip_static"), ["ngx_http_gzip_static_module"]);
        assert_eq!(modules_of("gunzip"), ["ngx_http_gunzip_filter_module"]);
        let pass = modules_of("proxy_pass");
        assert!(pass.contains(&"ngx_http_proxy_module") && pass.contains(&"ngx_stream_proxy_module"));
        assert!(modules_of("no_such").is_empty());
        assert!(directives_of("ngx_http_write_filter_module").is_empty());
    }
}
