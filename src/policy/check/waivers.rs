//! `[[waiver]]` and the `match` of `[[target]]`.

use super::{Checker, Draft, Node, Span, Table, Value};
use crate::policy::dates::parse_date;
use crate::policy::{At, Pattern, TargetMatch, Waiver};
use jiff::civil::Date;

const WAIVER: [&str; 11] = [
    "rule",
    "unit",
    "function",
    "module",
    "upstream",
    "file",
    "target",
    "fingerprint",
    "reason",
    "owner",
    "expires",
];

impl Checker<'_> {
    /// All `[[waiver]]` tables.
    pub(super) fn waivers(&mut self, tree: &Table) -> Vec<Waiver> {
        self.tables(tree, "waiver").into_iter().filter_map(|(table, span)| self.waiver(table, span)).collect()
    }

    /// The tables of an array of tables.
    pub(crate) fn tables<'n>(&mut self, tree: &'n Table, key: &str) -> Vec<(&'n Table, Span)> {
        let Some(entry) = tree.get(key) else { return Vec::new() };
        let items: &[Node] = match &entry.node.value {
            Value::List(items) => items,
            Value::Table(_) => {
                let title = format!("`{key}` is a list of tables");
                let help = format!("write `[[{key}]]` with two brackets (in JSON, a list of objects)");
                self.drafts.push(Draft::error(entry.key_span, title).help(help));
                return Vec::new();
            }
            _ => {
                self.wrong_type(&entry.node, key, "a list of tables");
                return Vec::new();
            }
        };
        let mut out = Vec::new();
        for item in items {
            match &item.value {
                Value::Table(table) => out.push((table, item.span)),
                _ => self.wrong_type(item, key, "a table"),
            }
        }
        out
    }

    /// Reports an element of an array of tables that is none.
    pub(crate) fn not_a_table(&mut self, node: &Node, key: &str) {
        self.wrong_type(node, key, "a table");
    }

    fn waiver(&mut self, table: &Table, span: Span) -> Option<Waiver> {
        self.unknown_keys(table, &WAIVER, "`[[waiver]]`");
        let rule = self.string(table, "rule");
        if table.get("rule").is_none() {
            self.drafts.push(
                Draft::error(span, "a waiver without `rule`").help("name the rule whose finding is waived"),
            );
        }
        if table.get("reason").is_none() {
            self.drafts.push(
                Draft::error(span, "a waiver without `reason`")
                    .help("say why, so that whoever reads it later can tell whether it still holds"),
            );
        }
        let reason = self.string(table, "reason");
        let rule = rule.filter(|(id, span)| self.rule(id, *span));
        let waiver = Waiver {
            unit: self.one_pattern(table, "unit", Pattern::path),
            function: self.one_pattern(table, "function", Pattern::word),
            module: self.waived_module(table),
            upstream: self.one_pattern(table, "upstream", Pattern::word),
            file: self.one_pattern(table, "file", Pattern::path),
            target: self.one_pattern(table, "target", Pattern::path),
            fingerprint: self.string(table, "fingerprint").map(|(text, span)| self.at(text.to_owned(), span)),
            owner: self.string(table, "owner").map(|(text, span)| self.at(text.to_owned(), span)),
            expires: self.date(table, "expires"),
            rule: rule.map(|(text, span)| self.at(text.to_owned(), span))?,
            reason: reason.map(|(text, span)| self.at(text.to_owned(), span))?,
            at: self.sources.place(span),
        };
        Some(waiver)
    }

    fn waived_module(&mut self, table: &Table) -> Option<At<Pattern>> {
        let span = table.get("module")?.node.span;
        let pattern = self.one_pattern(table, "module", Pattern::word)?;
        self.module(&pattern.value, span);
        Some(pattern)
    }

    fn one_pattern(
        &mut self,
        table: &Table,
        key: &str,
        build: fn(&str) -> Result<Pattern, String>,
    ) -> Option<At<Pattern>> {
        let item = self.string(table, key)?;
        self.pattern(item, build)
    }

    fn date(&mut self, table: &Table, key: &str) -> Option<At<Date>> {
        let node = &table.get(key)?.node;
        let date = match &node.value {
            Value::Date(date) => *date,
            Value::String(text) => parse_date(text),
            _ => {
                self.wrong_type(node, key, "a date such as 2027-03-31");
                return None;
            }
        };
        if date.is_none() {
            let written = self.sources.text(node.span).trim_matches('"').to_owned();
            let shape = |byte: (usize, u8)| {
                if matches!(byte.0, 4 | 7) { byte.1 == b'-' } else { byte.1.is_ascii_digit() }
            };
            let mark = match node.value {
                Value::Date(_) => "a time; only the day counts",
                _ if written.len() == 10 && written.bytes().enumerate().all(shape) => "no such day",
                _ => "not a date",
            };
            self.drafts.push(
                Draft::error(node.span, format!("bad date `{written}`"))
                    .mark(mark)
                    .help("write year, month and day: 2027-03-31"),
            );
        }
        date.map(|date| self.at(date, node.span))
    }

    /// The `match` of a `[[target]]`.
    pub(crate) fn target_match(&mut self, table: &Table, span: Span) -> Option<TargetMatch> {
        if table.get("match").is_none() {
            self.drafts.push(
                Draft::error(span, "a target without `match`")
                    .help("say which targets it is for: match = { path = \"**/libfoo*\" }"),
            );
            return None;
        }
        let keys = ["path", "product", "build_id", "process"];
        let inner = self.table(table, "match", &keys, "`match`")?;
        if inner.entries.is_empty() {
            self.drafts.push(
                Draft::error(table.get("match")?.node.span, "an empty `match` is for no target")
                    .help(format!("known keys: {}", keys.join(", "))),
            );
        }
        let builds = self.one_or_many(inner, "build_id");
        Some(TargetMatch {
            path: self.many_patterns(inner, "path", Pattern::path),
            product: self.many_patterns(inner, "product", Pattern::word),
            build_id: builds.into_iter().filter_map(|item| self.build_id(item)).collect(),
            process: self.many_patterns(inner, "process", Pattern::word),
        })
    }

    fn many_patterns(
        &mut self,
        table: &Table,
        key: &str,
        build: fn(&str) -> Result<Pattern, String>,
    ) -> Vec<At<Pattern>> {
        self.one_or_many(table, key).into_iter().filter_map(|item| self.pattern(item, build)).collect()
    }

    /// A string, or a list of strings.
    fn one_or_many<'n>(&mut self, table: &'n Table, key: &str) -> Vec<(&'n str, Span)> {
        match table.get(key).map(|entry| &entry.node.value) {
            None => Vec::new(),
            Some(Value::List(_)) => self.strings(table, key),
            Some(_) => self.string(table, key).into_iter().collect(),
        }
    }
}
