//! TOML to the tree, all syntax errors in one go.

use super::diagnostic::Draft;
use super::source::Span;
use super::tree::{DEPTH, Entry, Node, Table, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads `text` (the text numbered `file`) as TOML. The flag tells whether the tree can be trusted for further checks:
/// after an error of structure, what follows may be read as something it is not.
pub(crate) fn parse(file: u32, text: &str, drafts: &mut Vec<Draft>) -> (Table, bool) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut sound = true;
    let mut last_line = None;
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        let line = memchr::memchr_iter(b'\n', text.get(..range.start).unwrap_or("").as_bytes()).count();
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        sound = sound && (message.starts_with("duplicate key") || message.starts_with("invalid date"));
        // The parser goes on within the line, and what it says next is about its own recovery.
        if last_line.replace(line) != Some(line) {
            drafts.push(Draft::error(Span::new(file, range), format!("not valid TOML: {message}")));
        }
    }
    (table(file, root.into_inner(), 0, drafts), sound)
}

fn table(file: u32, from: DeTable<'_>, depth: usize, drafts: &mut Vec<Draft>) -> Table {
    let mut entries: Vec<Entry> = from
        .into_iter()
        .map(|(key, value)| Entry {
            key_span: Span::new(file, key.span()),
            key: key.into_inner().into_owned(),
            node: node(file, value, depth.saturating_add(1), drafts),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span);
    Table { entries }
}

fn node(file: u32, from: Spanned<DeValue<'_>>, depth: usize, drafts: &mut Vec<Draft>) -> Node {
    let span = Span::new(file, from.span());
    if depth > DEPTH {
        drafts.push(Draft::error(span, format!("nested more than {DEPTH} deep")));
        return Node { value: Value::Null, span };
    }
    let value = match from.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Float,
        },
        DeValue::Float(_) => Value::Float,
        DeValue::Boolean(yes) => Value::Boolean(yes),
        DeValue::Datetime(when) => Value::Date(match (when.date, when.time) {
            (Some(date), None) => civil(date.year, date.month, date.day),
            _ => None,
        }),
        DeValue::Array(items) => Value::List(
            items.into_iter().map(|item| node(file, item, depth.saturating_add(1), drafts)).collect(),
        ),
        DeValue::Table(inner) => Value::Table(table(file, inner, depth, drafts)),
    };
    Node { value, span }
}

fn civil(year: u16, month: u8, day: u8) -> Option<jiff::civil::Date> {
    jiff::civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}
