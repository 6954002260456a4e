//! What is known of the modules and configure options of nginx and its forks, by version.

use super::version::{Family, Version};
use crate::facts::ConfigureArgument;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

/// A module of the product's own source.
#[derive(Debug)]
pub struct Known {
    /// Symbol: `ngx_http_gzip_static_module`.
    pub name: &'static str,
    families: &'static str,
    default_in: &'static str,
    /// First nginx version that has it; `None` for a fork's own module.
    pub since: Option<Version>,
    /// First nginx version that has it no more.
    pub removed: Option<Version>,
    /// Options that add it, the usual one first.
    pub with: Vec<&'static str>,
    /// Options that remove it, with the version before which that holds.
    pub without: Vec<(&'static str, Option<Version>)>,
}

#[derive(Debug)]
struct OptionRow {
    since: Option<Version>,
    removed: Option<Version>,
}

#[derive(Debug)]
struct Bundled {
    name: &'static str,
    directory: &'static str,
    option: &'static str,
}

#[derive(Debug, Default)]
struct Catalogue {
    modules: Vec<Known>,
    by_name: HashMap<&'static str, usize>,
    options: HashMap<&'static str, OptionRow>,
    bundled: Vec<Bundled>,
    added: Vec<(&'static str, Vec<&'static str>)>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| read(include_str!("modules.tsv")));

fn read(text: &'static str) -> Catalogue {
    let mut out = Catalogue::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&'static str> = line.split('\t').collect();
        match fields[..] {
            ["module", name, families, default_in, since, removed, with, without] => {
                out.by_name.insert(name, out.modules.len());
                out.modules.push(Known {
                    name,
                    families,
                    default_in,
                    since: since.parse().ok().or((since == "0").then_some(Version::default())),
                    removed: removed.parse().ok(),
                    with: words(with).collect(),
                    without: words(without)
                        .map(|w| match w.split_once('<') {
                            Some((option, before)) => (option, before.parse().ok()),
                            None => (w, None),
                        })
                        .collect(),
                });
            }
            ["option", name, _families, since, removed] => {
                let row = OptionRow { since: since.parse().ok(), removed: removed.parse().ok() };
                out.options.insert(name, row);
            }
            ["bundled", name, directory, option] => out.bundled.push(Bundled { name, directory, option }),
            ["added", directory, names] => out.added.push((directory, words(names).collect())),
            _ => {}
        }
    }
    out
}

fn words(field: &'static str) -> impl Iterator<Item = &'static str> {
    field.split(' ').filter(|word| *word != "-")
}

impl Known {
    /// Whether that version has the module in its source; a fork's own modules are taken to be there.
    pub fn exists_in(&self, family: Family, version: Version) -> bool {
        self.families.contains(letter(family))
            && self.since.is_none_or(|since| since <= version)
            && self.removed.is_none_or(|removed| version < removed)
    }

    /// Whether the module is compiled in unless an option removes it.
    pub fn is_default(&self, family: Family, version: Version) -> bool {
        self.default_in.contains(letter(family)) && self.exists_in(family, version)
    }
}

fn letter(family: Family) -> char {
    match family {
        Family::Nginx => 'n',
        Family::Tengine => 't',
        Family::Angie => 'a',
        Family::Freenginx => 'f',
    }
}

/// A module of nginx's or a fork's own source, by its symbol.
pub fn known(symbol: &str) -> Option<&'static Known> {
    CATALOGUE.by_name.get(symbol).and_then(|&at| CATALOGUE.modules.get(at))
}

/// All modules of nginx and its forks in the order of the program's own table.
pub fn modules() -> &'static [Known] {
    &CATALOGUE.modules
}

/// Whether the symbol is one OpenResty brings along.
pub fn is_bundled_with_openresty(symbol: &str) -> bool {
    CATALOGUE.bundled.iter().any(|b| b.name == symbol)
}

/// Modules that OpenResty's wrapper compiles in unless told not to.
pub fn openresty_defaults() -> impl Iterator<Item = &'static str> {
    CATALOGUE.bundled.iter().filter(|b| b.option.starts_with("--without-")).map(|b| b.name)
}

/// Whether some version of the family's `configure` knows that option (without its `=value`).
pub fn is_configure_option(name: &str) -> bool {
    CATALOGUE.options.contains_key(name)
}

/// All configure options known, sorted, for "did you mean".
pub fn option_names() -> Vec<&'static str> {
    let mut names: Vec<_> = CATALOGUE.options.keys().copied().collect();
    names.sort_unstable();
    names
}

/// Module names that a policy may use, short and full, sorted, for "did you mean".
pub fn module_names() -> Vec<&'static str> {
    let bundled = CATALOGUE.bundled.iter().map(|b| b.name);
    let added = CATALOGUE.added.iter().flat_map(|(_, names)| names.iter().copied());
    let mut names = BTreeSet::new();
    for name in modules().iter().map(|m| m.name).chain(bundled).chain(added).filter(|n| !n.contains('*')) {
        names.insert(name);
        names.insert(short_name(name));
    }
    names.into_iter().collect()
}

/// Symbols that come from a directory given to `--add-module`; empty if the directory is not known.
/// The version at the end of the directory's name is ignored.
pub fn symbols_of_directory(path: &str) -> Vec<&'static str> {
    let stem = directory_stem(path);
    let bundled = CATALOGUE.bundled.iter().filter(|b| b.directory == stem).map(|b| b.name);
    let added =
        CATALOGUE.added.iter().filter(|(d, _)| *d == stem).flat_map(|(_, names)| names.iter().copied());
    bundled.chain(added).collect()
}

/// The last part of a path without a version at its end: `../ngx_lua-0.10.5` is `ngx_lua`. njs keeps its module in a
/// directory `nginx` of its source: `../njs-0.8.4/nginx` is `njs/nginx`.
pub fn directory_stem(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    match path.strip_suffix("/nginx").map(own_stem) {
        Some("njs") => "njs/nginx",
        _ => own_stem(path),
    }
}

fn own_stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('-') {
        Some((stem, version))
            if version.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit())
                && !stem.is_empty() =>
        {
            stem
        }
        _ => name,
    }
}

/// The name a policy uses: without `ngx_` and `_module`.
pub fn short_name(symbol: &str) -> &str {
    let name = symbol.strip_prefix("ngx_").unwrap_or(symbol);
    name.strip_suffix("_module").filter(|short| !short.is_empty()).unwrap_or(name)
}

/// Every short name of a module: its own, and the one of its option where that differs
/// (`http_sub` is `ngx_http_sub_filter_module`). A name that another module really bears is no alias.
fn short_names(symbol: &str) -> Vec<String> {
    let own = short_name(symbol).to_owned();
    let mut names = vec![own.clone()];
    if let Some(stem) = own.strip_suffix("_filter")
        && known(&format!("ngx_{stem}_module")).is_none()
    {
        names.push(stem.to_owned());
    }
    for row in CATALOGUE.bundled.iter().filter(|b| b.name == symbol) {
        let option = row.option.trim_start_matches("--without-").trim_start_matches("--with-");
        let alias = option.strip_suffix("_module").unwrap_or(option).to_owned();
        if !names.contains(&alias) {
            names.push(alias);
        }
    }
    names
}

/// Whether a name in a policy means that module: short or full symbol name, the option's name, or a glob over any of these.
pub fn module_names_match(pattern: &str, symbol: &str) -> bool {
    let names: Vec<String> = short_names(symbol);
    if !pattern.contains(['*', '?', '[', '{']) {
        let wanted = short_name(pattern);
        return pattern == symbol || names.iter().any(|name| name == wanted || name == pattern);
    }
    let Ok(glob) = globset::Glob::new(pattern) else { return false };
    let glob = glob.compile_matcher();
    glob.is_match(symbol)
        || names.iter().any(|name| {
            glob.is_match(name)
                || glob.is_match(format!("{name}_module"))
                || glob.is_match(format!("ngx_{name}_module"))
        })
}

/// Known symbols that a policy's name means; empty for names of unknown modules and globs that match none.
pub fn symbols_named(pattern: &str) -> Vec<&'static str> {
    let bundled = CATALOGUE.bundled.iter().map(|b| b.name);
    let mut names: Vec<_> =
        modules().iter().map(|m| m.name).chain(bundled).filter(|s| module_names_match(pattern, s)).collect();
    names.dedup();
    names
}

/// How to get a module into the next build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Give this option to `configure`.
    Add(&'static str),
    /// Do not give this option; the module is there by default.
    Drop(&'static str),
    /// The module exists only from this version on.
    NeedsVersion(Version),
    /// The module was removed in this version.
    RemovedIn(Version),
}

/// How to get a module into a build of that nginx version. `None` if the catalogue does not know the module or no option governs it.
pub fn remedy(module: &str, family: Family, version: Option<Version>) -> Option<Remedy> {
    let symbol = symbols_named(module).first().copied()?;
    let Some(row) = known(symbol) else {
        let option = CATALOGUE.bundled.iter().find(|b| b.name == symbol)?.option;
        return Some(if option.starts_with("--without-") {
            Remedy::Drop(option)
        } else {
            Remedy::Add(option)
        });
    };
    let version = version.unwrap_or(NEWEST);
    if let Some(since) = row.since.filter(|since| *since > version) {
        return Some(Remedy::NeedsVersion(since));
    }
    if let Some(removed) = row.removed.filter(|removed| *removed <= version) {
        return Some(Remedy::RemovedIn(removed));
    }
    let lives = |option: &&'static str| {
        CATALOGUE.options.get(option).is_none_or(|row| {
            row.since.is_none_or(|since| since <= version) && row.removed.is_none_or(|gone| version < gone)
        })
    };
    if row.is_default(family, version) {
        return row.without.iter().map(|(option, _)| *option).find(lives).map(Remedy::Drop);
    }
    row.with.iter().copied().find(lives).map(Remedy::Add)
}

/// The option that puts a module into a build of that nginx version: `--with-http_gzip_static_module`.
/// `None` where no option has to be given (it is there by default), or none exists in that version.
pub fn remedy_option(module: &str, version: Option<Version>) -> Option<&'static str> {
    match remedy(module, Family::Nginx, version)? {
        Remedy::Add(option) => Some(option),
        _ => None,
    }
}

/// The newest version the catalogue was made from.
pub const NEWEST: Version = Version(1, 31, 4);

/// How an option was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Static,
    Dynamic,
}

fn given(arguments: &[ConfigureArgument], option: &str) -> Option<Given> {
    let last = arguments.iter().rev().find(|a| a.name == option)?;
    Some(if last.value.as_deref() == Some("dynamic") { Given::Dynamic } else { Given::Static })
}

/// What `configure` makes of its arguments, as far as the catalogue knows: own modules, in the program's order.
/// The second value tells whether the module is built to be loaded.
pub fn expected(
    family: Family,
    version: Option<Version>,
    arguments: &[ConfigureArgument],
) -> Vec<(&'static Known, bool)> {
    let version = version.unwrap_or(NEWEST);
    let whole = |symbol: &str| {
        let option = if symbol.starts_with("ngx_stream_") { "--with-stream" } else { "--with-mail" };
        given(arguments, option) == Some(Given::Dynamic)
            && (symbol.starts_with("ngx_stream_") || symbol.starts_with("ngx_mail_"))
    };
    in_order(version)
        .filter(|row| row.exists_in(family, version))
        .filter_map(|row| {
            let removed = row.without.iter().any(|(option, before)| {
                before.is_none_or(|before| version < before) && given(arguments, option).is_some()
            }) || (row.name.starts_with("ngx_http_")
                && given(arguments, "--without-http").is_some());
            if removed {
                return None;
            }
            let asked = row.with.iter().find_map(|option| given(arguments, option));
            match asked {
                Some(Given::Static) => Some((row, whole(row.name))),
                Some(Given::Dynamic) => Some((row, true)),
                None => row.is_default(family, version).then_some((row, false)),
            }
        })
        .collect()
}

/// Rows in the order of the module table of that version.
pub(super) fn in_order(version: Version) -> impl Iterator<Item = &'static Known> {
    // Up to 1.9.10 the regex module came after the event modules.
    let late_regex = version < Version(1, 9, 11);
    let regex = known("ngx_regex_module");
    modules()
        .iter()
        .filter(move |row| !(late_regex && row.name == "ngx_regex_module"))
        .flat_map(move |row| [Some(row), regex.filter(|_| late_regex && row.name == "ngx_epoll_module")])
        .flatten()
}

/// Modules of the version's default set.
pub fn defaults(family: Family, version: Version) -> impl Iterator<Item = &'static str> {
    in_order(version).filter(move |row| row.is_default(family, version)).map(|row| row.name)
}

#[cfg(test)]
mod tests;
