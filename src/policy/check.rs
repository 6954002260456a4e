//! From the tree as written to the checked [`Policy`]. Everything that is wrong is reported; what is wrong is left
//! out, so that checking can go on.

use super::diagnostic::{Draft, did_you_mean};
use super::known::Known;
use super::source::{SourceMap, Span};
use super::tree::{Entry, Node, Table, Value};
use super::{At, Pattern, VersionRequirement};
use std::cell::OnceCell;

mod names;
mod sections;
mod waivers;

pub(crate) use names::{FAMILIES, HARDENING, INSTRUMENTATION, is_baseline};
pub(crate) use sections::{Header, LEVELS};

/// Reads one tree.
pub(crate) struct Checker<'a> {
    pub(crate) sources: &'a SourceMap,
    pub(crate) known: &'a Known<'a>,
    pub(crate) drafts: Vec<Draft>,
    modules: OnceCell<Vec<String>>,
}

impl<'a> Checker<'a> {
    /// A checker of trees whose texts are in `sources`.
    pub(crate) fn new(sources: &'a SourceMap, known: &'a Known<'a>) -> Self {
        Self { sources, known, drafts: Vec::new(), modules: OnceCell::new() }
    }

    fn at<T>(&self, value: T, span: Span) -> At<T> {
        At { value, at: self.sources.place(span) }
    }

    /// Reports keys that are not in `allowed`. `inside` names the table, such as "`[optimization]`".
    fn unknown_keys(&mut self, table: &Table, allowed: &[&str], inside: &str) {
        for entry in &table.entries {
            if !allowed.contains(&entry.key.as_str()) {
                let title = format!("unknown key `{}` in {inside}", entry.key);
                let draft = Draft::error(entry.key_span, title);
                self.drafts.push(suggest(draft, &entry.key, allowed, "known keys"));
            }
        }
    }

    fn wrong_type(&mut self, node: &Node, key: &str, expected: &str) {
        let title = format!("`{key}` has the wrong type");
        self.drafts.push(
            Draft::error(node.span, title).mark(format!("expected {expected}, found {}", node.value.kind())),
        );
    }

    /// The table under `key`, with its keys checked.
    fn table<'n>(
        &mut self,
        parent: &'n Table,
        key: &str,
        allowed: &[&str],
        inside: &str,
    ) -> Option<&'n Table> {
        let entry = parent.get(key)?;
        if let Value::Table(table) = &entry.node.value {
            self.unknown_keys(table, allowed, inside);
            return Some(table);
        }
        self.wrong_type(&entry.node, key, "a table");
        None
    }

    /// A string that is not empty.
    fn string<'n>(&mut self, parent: &'n Table, key: &str) -> Option<(&'n str, Span)> {
        let entry = parent.get(key)?;
        self.node_string(&entry.node, key)
    }

    fn node_string<'n>(&mut self, node: &'n Node, key: &str) -> Option<(&'n str, Span)> {
        match &node.value {
            Value::String(text) if text.trim().is_empty() => {
                self.drafts.push(Draft::error(node.span, format!("`{key}` is empty")));
                None
            }
            Value::String(text) => Some((text, node.span)),
            _ => {
                self.wrong_type(node, key, "a string");
                None
            }
        }
    }

    fn boolean(&mut self, parent: &Table, key: &str) -> Option<At<bool>> {
        let entry = parent.get(key)?;
        if let Value::Boolean(yes) = entry.node.value {
            return Some(self.at(yes, entry.node.span));
        }
        self.wrong_type(&entry.node, key, "true or false");
        None
    }

    /// The strings of a list.
    fn strings<'n>(&mut self, parent: &'n Table, key: &str) -> Vec<(&'n str, Span)> {
        let Some(entry) = parent.get(key) else { return Vec::new() };
        if let Value::List(items) = &entry.node.value {
            return items.iter().filter_map(|item| self.node_string(item, key)).collect();
        }
        self.not_a_list(entry);
        Vec::new()
    }

    fn not_a_list(&mut self, entry: &Entry) {
        let help = match &entry.node.value {
            Value::String(text) => format!("write `{} = [\"{text}\"]`", entry.key),
            Value::Table(_) => "a list, or `{ add = [..], remove = [..] }` with both being lists".to_owned(),
            _ => format!("write `{} = [..]`", entry.key),
        };
        let title = format!("`{}` has the wrong type", entry.key);
        let mark = format!("expected a list of strings, found {}", entry.node.value.kind());
        self.drafts.push(Draft::error(entry.node.span, title).mark(mark).help(help));
    }

    /// One word out of `allowed`; `what` names its kind ("baseline").
    fn word(&mut self, word: &str, span: Span, what: &str, allowed: &[&str]) -> bool {
        if allowed.contains(&word) {
            return true;
        }
        let draft = Draft::error(span, format!("unknown {what} `{word}`"));
        self.drafts.push(suggest(draft, word, allowed, "known words"));
        false
    }

    fn pattern(
        &mut self,
        (text, span): (&str, Span),
        build: fn(&str) -> Result<Pattern, String>,
    ) -> Option<At<Pattern>> {
        match build(text) {
            Ok(pattern) => Some(self.at(pattern, span)),
            Err(reason) => {
                let regex = text.len() > 2 && text.starts_with('/') && text.ends_with('/');
                let what = if regex { "regular expression" } else { "glob" };
                let mut draft = Draft::error(span, format!("bad {what} `{text}`")).mark(reason);
                if !regex {
                    draft = draft.help("a backslash takes the special meaning from `*`, `?`, `[`, `{`");
                }
                self.drafts.push(draft);
                None
            }
        }
    }

    fn patterns(
        &mut self,
        parent: &Table,
        key: &str,
        build: fn(&str) -> Result<Pattern, String>,
    ) -> Vec<At<Pattern>> {
        self.strings(parent, key).into_iter().filter_map(|item| self.pattern(item, build)).collect()
    }

    fn requirement(&mut self, (text, span): (&str, Span)) -> Option<At<VersionRequirement>> {
        match VersionRequirement::parse(text) {
            Ok(requirement) => Some(self.at(requirement, span)),
            Err(reason) => {
                self.drafts
                    .push(Draft::error(span, format!("bad version requirement `{text}`")).mark(reason));
                None
            }
        }
    }

    fn modules(&self) -> &[String] {
        self.modules.get_or_init(|| (self.known.modules)())
    }
}

/// Adds "did you mean", or else the list of what there is.
pub(crate) fn suggest(draft: Draft, word: &str, known: &[&str], list: &str) -> Draft {
    match did_you_mean(word, known.iter().copied()) {
        Some(near) => draft.mark(format!("did you mean `{near}`?")),
        None if known.is_empty() => draft,
        None => draft.help(format!("{list}: {}", known.join(", "))),
    }
}
