//! The files under a place's root, and the compressed ones beside them.

use super::types::Types;
use crate::nginx::config::settings::Scope;
use crate::nginx::config::{Directive, Model, source};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Most files looked at, at one place.
const MAX_FILES: usize = 20_000;
/// Directories in directories.
const MAX_DEPTH: usize = 16;
/// `gzip_min_length` where none is set.
const MIN_LENGTH: u64 = 20;

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// The directory, as the configuration names it.
    pub root: String,
    /// Files that would be compressed and have no `.gz` beside them.
    pub missing: Vec<String>,
    /// Files whose `.gz` is older.
    pub stale: Vec<String>,
}

/// Looks at the files of a place. Errors: why they cannot be seen.
pub fn look(model: &Model, scope: &Scope<'_>, types: &Types) -> Result<Seen, &'static str> {
    if model.is_dump && model.root.is_none() {
        return Err("a dump says nothing of files");
    }
    let alias = scope.own().and_then(|own| own.children().iter().find(|d| d.name == "alias"));
    let root = match alias {
        Some(alias) => alias.first(),
        None => scope.value("root").ok().flatten().ok_or("no root is named")?,
    };
    if root.contains('$') || !root.starts_with('/') {
        return Err("the root cannot be told");
    }
    let own = scope.own().filter(|own| own.name == "location");
    // A prefix location serves the part of the tree that it names, or with an alias the whole of it.
    let prefix = match own.map(|own| own.args.iter().map(String::as_str).collect::<Vec<_>>()) {
        None => "/".to_owned(),
        Some(words) => match words[..] {
            [prefix] | ["^~" | "=", prefix] => prefix.to_owned(),
            _ => return Err("which files a pattern serves is not looked at"),
        },
    };
    let start = if alias.is_some() { String::new() } else { prefix.trim_start_matches('/').to_owned() };
    let base = source::directory_of(model.root.as_deref(), Path::new(root))
        .map_err(|_| "the root is not to be had")?;
    let min = scope.value("gzip_min_length").ok().flatten().and_then(size).unwrap_or(MIN_LENGTH);
    let others = others(scope);
    let mut seen = Seen { root: root.to_owned(), ..Seen::default() };
    let mut left = MAX_FILES;
    let mut todo: Vec<(PathBuf, usize)> = vec![(PathBuf::new(), 0)];
    while let Some((directory, depth)) = todo.pop() {
        let Ok(entries) = base.entries(&directory) else { continue };
        for entry in entries.flatten() {
            left = left.checked_sub(1).ok_or("there are too many files")?;
            let path = directory.join(entry.name);
            if entry.kind == FileType::Directory && depth < MAX_DEPTH {
                todo.push((path, depth + 1));
                continue;
            }
            let Some(relative) = path.to_str() else { continue };
            let mine = relative.starts_with(&start) && !others.iter().any(|other| other.takes(relative));
            if entry.kind != FileType::RegularFile || !mine || !types.compresses(relative) {
                continue;
            }
            let Ok(metadata) = base.metadata(&path) else { continue };
            let mut compressed = path.clone().into_os_string();
            compressed.push(".gz");
            match base.metadata(Path::new(&compressed)) {
                // How old the file is that a link leads to is not looked at.
                Ok(beside) if beside.is_symlink() => {}
                Ok(beside) => {
                    let changed = |m: &std::fs::Metadata| m.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    if changed(&beside) < changed(&metadata) {
                        seen.stale.push(relative.to_owned());
                    }
                }
                Err(_) if metadata.len() >= min => seen.missing.push(relative.to_owned()),
                Err(_) => {}
            }
        }
    }
    seen.missing.sort_unstable();
    seen.stale.sort_unstable();
    Ok(seen)
}

/// Another location of the same server, which takes files away.
enum Other<'m> {
    Prefix(&'m str),
    Pattern(regex::Regex),
    Any,
}

impl Other<'_> {
    fn takes(&self, relative: &str) -> bool {
        match self {
            Self::Prefix(prefix) => relative.starts_with(prefix),
            Self::Pattern(regex) => regex.is_match(&format!("/{relative}")),
            Self::Any => true,
        }
    }
}

fn others<'m>(scope: &Scope<'m>) -> Vec<Other<'m>> {
    let own = scope.own();
    let own_length = own.map_or(0, |own| own.args.last().map_or(0, String::len));
    let Some(server) = scope.block("server") else { return Vec::new() };
    let mut out = Vec::new();
    let mut todo: Vec<&Directive> = server.children().iter().collect();
    while let Some(other) = todo.pop() {
        if other.name != "location" || own.is_some_and(|own| std::ptr::eq(own, other)) {
            continue;
        }
        todo.extend(other.children());
        let words: Vec<&str> = other.args.iter().map(String::as_str).collect();
        match words[..] {
            [prefix] | ["^~" | "=", prefix] if !prefix.starts_with('@') && prefix.len() > own_length => {
                out.push(Other::Prefix(prefix.trim_start_matches('/')));
            }
            ["~" | "~*", pattern] => {
                let regex = regex::RegexBuilder::new(pattern).case_insensitive(words[0] == "~*").build();
                // What a pattern of another kind takes is not known: nothing is then said of the files.
                out.push(regex.map_or(Other::Any, Other::Pattern));
            }
            _ => {}
        }
    }
    out
}

/// A size as nginx writes it.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M']);
    let number: u64 = digits.parse().ok()?;
    match text.as_bytes().last()? {
        b'k' | b'K' => number.checked_mul(1024),
        b'm' | b'M' => number.checked_mul(1 << 20),
        _ => Some(number),
    }
}
