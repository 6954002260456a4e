//! The string form, `.annobin.notes`: `GW:0x3d60540 u2.c`, NUL-terminated, equal ones merged by the linker.
//!
//! Two letters, a value, then (of what is not the whole file's) the source file and perhaps a function. Addresses are
//! not recorded in this form.

use super::{Note, Notes, Property, control_flow, fortify, level_of_gow, writer};
use crate::image::{Image, Section};

pub(super) fn parse(image: &Image, section: &Section, bytes: &[u8], found: &mut Notes) {
    let mut offset = 0u64;
    for string in bytes.split(|&byte| byte == 0) {
        let at = offset;
        offset = offset.saturating_add(string.len() as u64).saturating_add(1);
        let string = string.get(..image.limits.string_bytes).unwrap_or(string);
        let text = String::from_utf8_lossy(string);
        let Some((property, unit, of_function)) = one(&text) else { continue };
        let note = Note { range: None, of_function, unit, property, section: section.index, offset: at };
        if !found.push(note) {
            return;
        }
    }
}

fn one(text: &str) -> Option<(Property, Option<String>, bool)> {
    let (tag, rest) = text.split_once(':')?;
    // These two hold sentences.
    match tag {
        "RV" | "BV" => return Some((Property::Tool(rest.to_owned()), None, false)),
        _ => {}
    }
    let mut words = rest.splitn(3, ' ');
    let value = words.next()?;
    let unit = words.next().map(str::to_owned);
    let of_function = words.next().is_some();
    let number = number(value);
    let property = match (tag, number) {
        ("AV", _) => writer(value),
        ("GW", Some(number)) => Property::Level(level_of_gow(number), number),
        ("SP", Some(number)) => Property::StackProtector(number),
        ("PI", Some(number)) => Property::PositionIndependence(number),
        ("CF", Some(number)) => control_flow(number),
        ("FL", number) => number.map_or(Property::Fortify(None), fortify),
        ("SC", Some(number)) => Property::StackClash(number == 1),
        ("GA", Some(number)) => Property::LibraryAssertions(number == 1),
        (tag, _) if tag.len() == 2 && tag.bytes().all(|b| b.is_ascii_alphabetic()) => {
            Property::Other(format!("{tag}={value}"))
        }
        _ => return None,
    };
    Some((property, unit, of_function))
}

/// A number, decimal or hexadecimal; a negative one means that the value is not known.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
