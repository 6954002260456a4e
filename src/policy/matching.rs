//! How patterns of a policy are held against names: paths, units, modules, flags.

use super::{Matcher, Pattern};
use crate::nginx::catalogue;
use std::borrow::Cow;

/// Memory a compiled regular expression may take, in bytes.
const REGEX_BYTES: usize = 1 << 20;

impl Pattern {
    /// A pattern for paths and units: `*` and `?` stop at `/`, `**` does not. `/…/` is a regular expression.
    pub fn path(text: &str) -> Result<Self, String> {
        Self::build(text, true)
    }

    /// A pattern for words (flags, modules, functions, products): `*` matches anything. `/…/` is a regular expression.
    pub fn word(text: &str) -> Result<Self, String> {
        Self::build(text, false)
    }

    fn build(text: &str, literal_separator: bool) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        let inner =
            text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|rest| !rest.is_empty());
        let matcher = if let Some(inner) = inner {
            let regex = regex::RegexBuilder::new(inner).size_limit(REGEX_BYTES).build();
            Matcher::Regex(regex.map_err(|error| regex_error(&error))?)
        } else {
            let glob = globset::GlobBuilder::new(text)
                .literal_separator(literal_separator)
                .backslash_escape(true)
                .build()
                .map_err(|error| error.kind().to_string())?;
            Matcher::Glob(glob.compile_matcher())
        };
        Ok(Self { text: text.to_owned(), matcher })
    }

    /// The text itself, if it has no special characters and so can match only that.
    pub fn literal(&self) -> Option<&str> {
        let special = self.text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        (matches!(self.matcher, Matcher::Glob(_)) && !special).then_some(self.text.as_str())
    }
}

/// The last line of a `regex` error holds what is wrong; those before repeat the pattern.
fn regex_error(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or("not a regular expression");
    last.trim_start_matches("error: ").trim().to_owned()
}

/// Whether a pattern covers a unit: its name, or its directory and name, both also without `./` and `dir/../`.
pub fn unit_matches(pattern: &Pattern, name: &str, comp_dir: Option<&str>) -> bool {
    if path_matches(pattern, name) {
        return true;
    }
    match comp_dir {
        Some(dir) if !name.starts_with('/') => {
            path_matches(pattern, &format!("{}/{name}", dir.trim_end_matches('/')))
        }
        _ => false,
    }
}

/// Whether a pattern covers a path, as given or without `./` and `dir/../` in it.
pub fn path_matches(pattern: &Pattern, path: &str) -> bool {
    pattern.matches(path)
        || match normalize(path) {
            Cow::Borrowed(_) => false,
            Cow::Owned(plain) => pattern.matches(&plain),
        }
}

/// Whether a pattern covers a target: its path as given, or its name in a package or image.
pub fn target_matches(pattern: &Pattern, path: &str, member: Option<&str>) -> bool {
    file_matches(pattern, path) || member.is_some_and(|member| file_matches(pattern, member))
}

/// Whether a pattern covers a file: its path or, where the pattern is one plain name, its name in any directory.
pub fn file_matches(pattern: &Pattern, path: &str) -> bool {
    path_matches(pattern, path)
        || pattern.literal().is_some_and(|name| !name.contains('/') && path.rsplit('/').next() == Some(name))
}

/// Drops `.` and resolves `..` by the text alone; nothing is looked up. `..` beyond the start is kept.
fn normalize(path: &str) -> Cow<'_, str> {
    if !path.split('/').any(|part| matches!(part, "." | "..")) && !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            other => parts.push(other),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    Cow::Owned(format!("{root}{}", parts.join("/")))
}

/// The names a module can be called by in a policy: its symbol, without `ngx_` (or `ndk_`) and `_module`, and
/// without `_filter` as nginx's own options spell it (`--with-http_gunzip_module` builds `ngx_http_gunzip_filter_module`).
pub fn module_names(symbol: &str) -> Vec<&str> {
    let mut names = vec![symbol];
    let mut add = |name| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    let bare = symbol.strip_prefix("ngx_").unwrap_or(symbol);
    add(bare);
    if let Some(short) = bare.strip_suffix("_module") {
        add(short);
        if let Some(option) = short.strip_suffix("_filter") {
            add(option);
        }
    }
    names
}

/// Whether a pattern covers a module: by its short or full symbol name, by the name of its option, by a glob over these,
/// or by a regular expression over the symbol, short or full.
pub fn module_matches(pattern: &Pattern, symbol: &str) -> bool {
    match &pattern.matcher {
        Matcher::Glob(_) => catalogue::module_names_match(&pattern.text, symbol),
        Matcher::Regex(regex) => regex.is_match(symbol) || regex.is_match(catalogue::short_name(symbol)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_stop_at_slashes_in_paths_only() {
        let path = Pattern::path("src/*.c").unwrap();
        assert!(path.matches("src/a.c") && !path.matches("src/core/a.c"));
        assert!(Pattern::path("**/*.S").unwrap().matches("a.S"));
        assert!(Pattern::path("**/*.S").unwrap().matches("/b/c/a.S"));
        assert!(Pattern::word("-fplugin=*").unwrap().matches("-fplugin=/usr/lib/x.so"));
        assert!(Pattern::word("/^-O[01]$/").unwrap().matches("-O0"));
        assert!(!Pattern::word("/^-O[01]$/").unwrap().matches("-O2"));
        // An absolute path is a glob, not a regular expression.
        assert!(Pattern::path("/usr/sbin/nginx").unwrap().matches("/usr/sbin/nginx"));
        assert!(!Pattern::path("/usr/sbin/nginx").unwrap().matches("/usr/sbin/nginx-debug"));
    }

    #[test]
    fn broken_patterns_are_explained() {
        assert!(Pattern::path("src/[a.c").unwrap_err().contains("unclosed"));
        assert!(Pattern::word("/(/").unwrap_err().contains("unclosed group"));
        assert!(Pattern::word("/a{1000}{1000}{1000}/").unwrap_err().contains("size limit"));
        assert!(Pattern::word("").is_err());
    }

    #[test]
    fn units_by_name_and_by_directory() {
        let pattern = Pattern::path("/build/nginx/src/core/*.c").unwrap();
        assert!(unit_matches(&pattern, "src/core/nginx.c", Some("/build/nginx")));
        assert!(unit_matches(&pattern, "../nginx/./src/core/nginx.c", Some("/build/objs/")));
        assert!(!unit_matches(&pattern, "src/os/x.c", Some("/build/nginx")));
        assert!(unit_matches(&Pattern::path("src/a.c").unwrap(), "./src/a.c", None));
        assert!(!unit_matches(&Pattern::path("a.c").unwrap(), "src/a.c", Some("/b")));
    }

    #[test]
    fn modules_by_every_usual_name() {
        let names =
            ["http_gunzip", "http_gunzip_filter", "http_gunzip_module", "ngx_http_gunzip_filter_module"];
        for name in names {
            assert!(module_matches(&Pattern::word(name).unwrap(), "ngx_http_gunzip_filter_module"), "{name}");
        }
        assert!(!module_matches(&Pattern::word("http_gzip").unwrap(), "ngx_http_gzip_static_module"));
        assert!(module_matches(&Pattern::word("http_lua*").unwrap(), "ngx_http_lua_upstream_module"));
        assert!(module_matches(&Pattern::word("ndk_http").unwrap(), "ndk_http_module"));
    }

    #[test]
    fn dots_are_resolved_by_text_alone() {
        assert_eq!(normalize("a/../../b"), "../b");
        assert_eq!(normalize("/../b//c/."), "/b/c");
        assert_eq!(normalize("a/b"), "a/b");
    }
}
