//! A policy as it holds, after everything it extends: TOML, and on every line where the value comes from.

use super::source::{SourceMap, Span};
use super::target::LoadedPolicy;
use super::tree::{Entry, Node, Table, Value};
use std::fmt::Write as _;

/// Column at which the comment with the origin begins, if the line leaves room.
const ORIGIN_COLUMN: usize = 56;

/// Writes the effective policy. The text is itself a policy that means the same.
pub fn show(policy: &LoadedPolicy) -> String {
    let mut out = Writer { sources: &policy.sources, text: String::new() };
    let _ = writeln!(
        out.text,
        "# {} with everything it extends; each line says where it comes from.",
        policy.path()
    );
    let files: Vec<&str> = policy.files().iter().map(|file| file.path.as_str()).collect();
    let _ = writeln!(out.text, "# Read, from the last word to the first: {}", files.join(", "));
    let _ = writeln!(out.text, "schema = 1\nname = {}", quote(policy.name()));
    let mut waivers = Vec::new();
    let mut tree = policy.tree.clone();
    if let Some(Entry { node: Node { value: Value::List(items), .. }, .. }) = tree.take("waiver") {
        waivers = items;
    }
    out.table("", &tree);
    for target in &policy.targets {
        let _ = writeln!(out.text, "\n[[target]]");
        if let Some(matcher) = &target.written {
            out.line("match", &matcher.node);
        }
        out.table("target", &target.overlay);
    }
    for waiver in waivers {
        let _ = writeln!(out.text, "\n[[waiver]]");
        if let Value::Table(table) = &waiver.value {
            out.table("waiver", table);
        }
    }
    out.text
}

struct Writer<'a> {
    sources: &'a SourceMap,
    text: String,
}

impl Writer<'_> {
    /// Values first, then tables under their own header: TOML counts everything after a header to it.
    fn table(&mut self, path: &str, table: &Table) {
        for entry in table.entries.iter().filter(|entry| !matches!(entry.node.value, Value::Table(_))) {
            self.line(&entry.key, &entry.node);
        }
        for entry in &table.entries {
            let Value::Table(inner) = &entry.node.value else { continue };
            let path = if path.is_empty() { key(&entry.key) } else { format!("{path}.{}", key(&entry.key)) };
            if inner.entries.iter().any(|entry| !matches!(entry.node.value, Value::Table(_))) {
                let _ = writeln!(self.text, "\n[{path}]");
            }
            self.table(&path, inner);
        }
    }

    fn line(&mut self, name: &str, node: &Node) {
        let name = key(name);
        match &node.value {
            Value::List(items) if !items.is_empty() && !self.one_line(items) => {
                let _ = writeln!(self.text, "{name} = [");
                for item in items {
                    self.with_origin(&format!("  {},", inline(&item.value)), item.span);
                }
                let _ = writeln!(self.text, "]");
            }
            Value::List(items) => {
                // An added entry keeps its own place; a list from one line is told by its first entry.
                let span = items.first().map_or(node.span, |item| item.span);
                self.with_origin(&format!("{name} = {}", inline(&node.value)), span);
            }
            value => self.with_origin(&format!("{name} = {}", inline(value)), node.span),
        }
    }

    /// Whether a list stands on one line of one text, and is short.
    fn one_line(&self, items: &[Node]) -> bool {
        let place = |item: &Node| {
            let place = self.sources.place(item.span);
            (place.path, place.line)
        };
        let first = items.first().map(place);
        items.len() <= 6 && items.iter().all(|item| Some(place(item)) == first)
    }

    fn with_origin(&mut self, text: &str, span: Span) {
        let place = self.sources.place(span);
        let width = ORIGIN_COLUMN;
        let _ = writeln!(self.text, "{text:<width$} # {}:{}", comment(&place.path), place.line);
    }
}

/// A path in a comment must not end the line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A key, quoted if TOML wants it.
pub(crate) fn key(name: &str) -> String {
    let bare =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    if bare { name.to_owned() } else { quote(name) }
}

/// A basic string (TOML 1.0, section "String").
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        Value::Date(Some(date)) => date.to_string(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let entries: Vec<String> = table
                .entries
                .iter()
                .map(|entry| format!("{} = {}", key(&entry.key), inline(&entry.node.value)))
                .collect();
            if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
        }
        // A loaded policy holds none of these: they are errors.
        Value::Float | Value::Date(None) | Value::Null => quote(""),
    }
}
