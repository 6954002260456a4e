//! A policy as written: one tree for TOML and JSON, in which every key and value keeps its place.

use super::diagnostic::Draft;
use super::source::Span;

/// Nesting a policy may have; the deepest meaningful one is 5 (`target` → table → `optimization` → `libraries` → list).
pub(crate) const DEPTH: usize = 16;

/// Most keys of one table; the largest meaningful one has a line for each rule.
const KEYS: usize = 1000;

/// Most values of one file. Lists of approved builds can be long, but not endless: each pattern is compiled.
const VALUES: usize = 20_000;

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The value.
    pub(crate) value: Value,
    /// Where it is written.
    pub(crate) span: Span,
}

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Text.
    String(String),
    /// Whole number.
    Integer(i64),
    /// Any other number; policies use none, so only its existence counts.
    Float,
    /// Yes or no.
    Boolean(bool),
    /// A TOML date (also date-time: then only the date is meant and it is reported).
    Date(Option<jiff::civil::Date>),
    /// List.
    List(Vec<Node>),
    /// Table.
    Table(Table),
    /// JSON's `null`.
    Null,
}

impl Value {
    /// The word for error messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float => "a number",
            Self::Boolean(_) => "a boolean",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Null => "null",
        }
    }
}

/// Keys and values in the order written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// The entries.
    pub(crate) entries: Vec<Entry>,
}

/// One key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key is written.
    pub(crate) key_span: Span,
    /// The value.
    pub(crate) node: Node,
}

impl Table {
    /// The entry of that key.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Takes the entry of that key out.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }
}

/// What makes a tree too large to work on, and where.
pub(crate) fn oversized(tree: &Table) -> Option<(Span, String)> {
    fn walk(table: &Table, left: &mut usize) -> Option<(Span, String)> {
        if let Some(entry) = table.entries.get(KEYS) {
            return Some((entry.key_span, format!("more than {KEYS} keys in one table")));
        }
        table.entries.iter().find_map(|entry| visit(&entry.node, left))
    }
    fn visit(node: &Node, left: &mut usize) -> Option<(Span, String)> {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return Some((node.span, format!("more than {VALUES} values")));
        }
        match &node.value {
            Value::List(items) => items.iter().find_map(|item| visit(item, left)),
            Value::Table(table) => walk(table, left),
            _ => None,
        }
    }
    let mut left = VALUES;
    walk(tree, &mut left)
}

/// Lays `over` on `base`: tables are merged key by key, everything else is replaced, and a list can be changed with
/// `{ add = [..], remove = [..] }`.
pub(crate) fn merge(base: &mut Table, over: Table, drafts: &mut Vec<Draft>) {
    for entry in over.entries {
        let Entry { key, key_span, node } = entry;
        let existing = base.entries.iter_mut().find(|known| known.key == key);
        let Node { value, span } = node;
        match (existing, value) {
            (Some(Entry { node: Node { value: Value::Table(into), .. }, .. }), Value::Table(from))
                if !is_change(&from) =>
            {
                merge(into, from, drafts);
            }
            (Some(Entry { node: Node { value: Value::List(list), .. }, .. }), Value::Table(change))
                if is_change(&change) =>
            {
                apply_change(list, change, drafts);
            }
            (None, Value::Table(change)) if is_change(&change) => {
                let mut list = Vec::new();
                apply_change(&mut list, change, drafts);
                base.entries.push(Entry { key, key_span, node: Node { value: Value::List(list), span } });
            }
            (None, Value::Table(from)) => {
                // Laid on an empty table, so that changes of lists further down are resolved too.
                let mut into = Table::default();
                merge(&mut into, from, drafts);
                base.entries.push(Entry { key, key_span, node: Node { value: Value::Table(into), span } });
            }
            (Some(existing), value) => *existing = Entry { key, key_span, node: Node { value, span } },
            (None, value) => base.entries.push(Entry { key, key_span, node: Node { value, span } }),
        }
    }
}

/// A tree by itself, with changes of lists taken as lists.
pub(crate) fn alone(tree: &Table) -> Table {
    let mut out = Table::default();
    merge(&mut out, tree.clone(), &mut Vec::new());
    out
}

/// Whether a table is `{ add = [..], remove = [..] }`.
fn is_change(table: &Table) -> bool {
    !table.entries.is_empty()
        && table.entries.iter().all(|entry| {
            matches!(entry.key.as_str(), "add" | "remove") && matches!(entry.node.value, Value::List(_))
        })
}

fn apply_change(list: &mut Vec<Node>, change: Table, drafts: &mut Vec<Draft>) {
    for entry in change.entries {
        let Value::List(items) = entry.node.value else { continue };
        if entry.key == "add" {
            list.extend(items);
            continue;
        }
        for item in items {
            let before = list.len();
            if let Value::String(word) = &item.value {
                list.retain(|kept| !matches!(&kept.value, Value::String(text) if text == word));
            }
            if list.len() == before {
                drafts.push(
                    Draft::warning(item.span, "nothing to remove: the list does not hold this")
                        .help("`remove` takes entries exactly as they are written in the extended policy"),
                );
            }
        }
    }
}
