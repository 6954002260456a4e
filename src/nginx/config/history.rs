//! Since when nginx has a directive, and until when it had it.

use crate::nginx::catalogue;
use crate::nginx::version::{Family, Version};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Versions in which a module has a directive: from the first one on, and before the second. `None` is an open end.
type Life = (Option<Version>, Option<Version>);

static HISTORY: LazyLock<HashMap<(&'static str, &'static str), Life>> = LazyLock::new(|| {
    let mut out = HashMap::new();
    for line in include_str!("history.tsv").lines().filter(|line| !line.starts_with('#')) {
        let Some((module, list)) = line.split_once('\t') else { continue };
        for entry in list.split(' ') {
            let Some((name, life)) = entry.split_once('=') else { continue };
            let Some((since, removed)) = life.split_once("..") else { continue };
            out.insert((module, name), (since.parse().ok(), removed.parse().ok()));
        }
    }
    out
});

/// What became of a directive of a module in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// That version has it, if the module is compiled in.
    There,
    /// It was removed in this version, or its module was.
    RemovedIn(Version),
    /// It comes with this version.
    Since(Version),
    /// Another program of the family has it.
    Elsewhere,
}

/// What became of a directive of a module in one version. `directive` must be one that the module has in some version.
pub fn standing(module: &str, directive: &str, family: Family, version: Version) -> Standing {
    let Some(known) = catalogue::known(module) else { return Standing::Elsewhere };
    let (since, removed) = HISTORY.get(&(module, directive)).copied().unwrap_or_default();
    if let Some(removed) = [removed, known.removed].into_iter().flatten().min().filter(|v| *v <= version) {
        return Standing::RemovedIn(removed);
    }
    if let Some(since) = [since, known.since].into_iter().flatten().max().filter(|v| *v > version) {
        return Standing::Since(since);
    }
    if known.exists_in(family, version) { Standing::There } else { Standing::Elsewhere }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(module: &str, directive: &str, version: Version) -> Standing {
        standing(module, directive, Family::Nginx, version)
    }

    #[test]
    fn directives_come_and_go() {
        let old = Version(1, 22, 1);
        let new = Version(1, 31, 3);
        assert_eq!(at("ngx_http_v2_module", "http2", old), Standing::Since(Version(1, 25, 1)));
        assert_eq!(at("ngx_http_v2_module", "http2", new), Standing::There);
        assert_eq!(at("ngx_http_ssl_module", "ssl", new), Standing::RemovedIn(Version(1, 25, 1)));
        assert_eq!(at("ngx_http_ssl_module", "ssl", old), Standing::There);
        assert_eq!(at("ngx_http_v3_module", "quic_retry", old), Standing::Since(Version(1, 25, 0)));
        assert_eq!(at("ngx_http_gzip_static_module", "gzip_static", old), Standing::There);
        assert_eq!(at("ngx_http_spdy_module", "spdy_chunk_size", old), Standing::RemovedIn(Version(1, 9, 5)));
    }

    #[test]
    fn every_line_names_a_module_of_the_catalogue() {
        assert!(HISTORY.len() > 200);
        for ((module, name), (since, removed)) in HISTORY.iter() {
            assert!(catalogue::known(module).is_some(), "{module}");
            assert!(since.is_some() || removed.is_some(), "{name}");
        }
    }
}
