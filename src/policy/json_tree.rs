//! JSON to the tree. `serde_json` keeps no places, but a borrowed [`RawValue`] is a slice of the text, and its
//! address in the text is its offset.

use super::diagnostic::Draft;
use super::source::Span;
use super::tree::{DEPTH, Entry, Node, Table, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Reads `text` (the text numbered `file`) as JSON. The flag tells whether the tree can be trusted for further checks.
pub(crate) fn parse(file: u32, text: &str, drafts: &mut Vec<Draft>) -> (Table, bool) {
    let mut reader = Reader { file, text, drafts, sound: true };
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => match reader.node(raw, 0) {
            Node { value: Value::Table(table), .. } => return (table, reader.sound),
            Node { value, span } => {
                let title = format!("a policy is an object, not {}", value.kind());
                reader.drafts.push(Draft::error(span, title));
            }
        },
        Err(error) => reader.syntax(&error, 0),
    }
    (Table::default(), false)
}

struct Reader<'t, 'd> {
    file: u32,
    text: &'t str,
    drafts: &'d mut Vec<Draft>,
    sound: bool,
}

/// The pairs of an object, unread.
struct Pairs<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(PairsVisitor)
    }
}

impl<'t> Reader<'t, '_> {
    fn span(&self, raw: &'t RawValue) -> Span {
        // The address of the slice is only compared, never followed.
        let start = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        Span::new(self.file, start..start.saturating_add(raw.get().len()))
    }

    fn syntax(&mut self, error: &serde_json::Error, base: usize) {
        let rest = self.text.get(base..).unwrap_or("");
        self.sound = false;
        let line_start = match error.line() {
            0 | 1 => 0,
            line => memchr::memchr_iter(b'\n', rest.as_bytes())
                .nth(line.saturating_sub(2))
                .map_or(rest.len(), |at| at.saturating_add(1)),
        };
        // serde_json counts bytes and names the last byte it took.
        let at = base.saturating_add(line_start).saturating_add(error.column().saturating_sub(1));
        let at = at.min(self.text.len());
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text);
        let span = Span::new(self.file, at..at.saturating_add(1));
        self.drafts.push(Draft::error(span, format!("not valid JSON: {message}")));
    }

    fn read<T: Deserialize<'t>>(&mut self, raw: &'t RawValue) -> Option<T> {
        match serde_json::from_str(raw.get()) {
            Ok(value) => Some(value),
            Err(error) => {
                let base = self.span(raw).start as usize;
                self.syntax(&error, base);
                None
            }
        }
    }

    fn node(&mut self, raw: &'t RawValue, depth: usize) -> Node {
        let span = self.span(raw);
        if depth > DEPTH {
            self.drafts.push(Draft::error(span, format!("nested more than {DEPTH} deep")));
            return Node { value: Value::Null, span };
        }
        let value = match raw.get().bytes().next() {
            Some(b'{') => self.read::<Pairs<'t>>(raw).map(|pairs| Value::Table(self.table(pairs, depth))),
            Some(b'[') => self.read::<Vec<&'t RawValue>>(raw).map(|items| {
                Value::List(items.into_iter().map(|item| self.node(item, depth.saturating_add(1))).collect())
            }),
            Some(b'"') => self.read(raw).map(Value::String),
            Some(b't' | b'f') => self.read(raw).map(Value::Boolean),
            Some(b'n') => None,
            _ => Some(raw.get().parse().map_or(Value::Float, Value::Integer)),
        };
        Node { value: value.unwrap_or(Value::Null), span }
    }

    fn table(&mut self, pairs: Pairs<'t>, depth: usize) -> Table {
        let mut table = Table::default();
        let mut seen: HashMap<String, Span> = HashMap::new();
        for (raw_key, raw) in pairs.0 {
            let key_span = self.span(raw_key);
            let Some(key) = self.read::<String>(raw_key) else { continue };
            let node = self.node(raw, depth.saturating_add(1));
            if let Some(&first) = seen.get(&key) {
                self.drafts.push(
                    Draft::error(key_span, format!("`{key}` is given twice")).also(first, "first given here"),
                );
                continue;
            }
            seen.insert(key.clone(), key_span);
            table.entries.push(Entry { key, key_span, node });
        }
        table
    }
}
