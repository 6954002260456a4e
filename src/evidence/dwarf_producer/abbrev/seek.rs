//! Where a table declares a code, without going through the declarations before it.
//!
//! GCC numbers abbreviations by how often they are used, so the one of a unit's root entry, used once, stands behind most of
//! the table. A declaration ends with a pair of zeros and the next one begins with its code (DWARF 5, section 7.5.3). In a
//! table whose numbers are written in as few bytes as they need, a pair of zeros with anything but a zero behind it stands
//! nowhere else: names, forms, tags and codes are not zero and do not end in a zero byte; what may is a constant or the byte
//! about children, and behind each of them stands a name, which is not zero, or the pair itself. So the bytes are searched
//! for that pair with the code and the tag of a unit. Where it may be the pair of another table, nothing is said, and the
//! table is read in order.

use crate::image::SectionData;
use memchr::memmem::Finder;

/// Tables are searched as far as this, in bytes. Those of large C++ units have some ten thousand.
const FAR: u64 = 64 << 10;
/// Longest code looked for, in bytes (LEB128).
const CODE: usize = 3;
/// The pair of zeros, the code, the tag and the byte about children.
const LONGEST: usize = 2 + CODE + 2;

/// What a declaration begins with: its code and the tag of a unit's root entry, which together are rare.
struct Begin {
    bytes: [u8; CODE + 1],
    len: usize,
}

impl Begin {
    fn new(code: u64) -> Option<Self> {
        let mut begin = Self { bytes: [0; CODE + 1], len: 0 };
        let mut rest = code;
        while rest > 0 {
            let more = if rest > 0x7f { 0x80 } else { 0 };
            *begin.bytes[..CODE].get_mut(begin.len)? = (rest & 0x7f) as u8 | more;
            begin.len += 1;
            rest >>= 7;
        }
        begin.bytes[begin.len] = gimli::DW_TAG_compile_unit.0 as u8;
        begin.len += 1;
        (begin.len > 1).then_some(begin)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Searches tables.
#[derive(Debug)]
pub(super) struct Seeker {
    /// A zero and code 1 behind it.
    first: Finder<'static>,
}

impl Default for Seeker {
    fn default() -> Self {
        Self { first: Finder::new(&[0, 1]) }
    }
}

/// What a piece of a table shows.
enum Look {
    /// The declaration begins here.
    Found(usize),
    /// It is not there, or that cannot be told so.
    Nothing,
    /// So many bytes may be left behind.
    Further(usize),
}

impl Seeker {
    /// Looks for the declaration of `code` in the table at an offset: where it seems to begin, and how many bytes were
    /// searched. `None` is no answer: the table must be read in order.
    pub(super) fn declaration(&self, section: &SectionData, table: u64, code: u64) -> (Option<u64>, u64) {
        let Some(begin) = Begin::new(code) else { return (None, 0) };
        let finder = Finder::new(begin.bytes());
        let mut at = table;
        while at < section.len() && at - table < FAR {
            let first = at == table;
            let Ok(look) = section.piece(at, |bytes| self.look(bytes, &finder, first)) else {
                // Reading in order meets it, too, and says so.
                let _ = section.take_failure();
                break;
            };
            match look {
                Look::Found(place) => return (Some(at + place as u64), at - table + place as u64),
                // What stands at the end may be the begin of what is looked for.
                Look::Further(used) if used > 0 => at += used as u64,
                Look::Nothing | Look::Further(_) => break,
            }
        }
        (None, at - table)
    }

    fn look(&self, bytes: &[u8], finder: &Finder<'_>, first: bool) -> Look {
        let begin = finder.needle();
        let flag = |place: usize| bytes.get(place + begin.len());
        if first && bytes.starts_with(begin) {
            return if matches!(flag(0), Some(0 | 1)) { Look::Found(0) } else { Look::Nothing };
        }
        let behind_zeros = |place: &usize| bytes[..*place].ends_with(&[0, 0]);
        let found = finder.find_iter(bytes).find(behind_zeros);
        if self.another_table(&bytes[..found.unwrap_or(bytes.len())]) {
            return Look::Nothing;
        }
        let Some(place) = found else { return Look::Further(bytes.len().saturating_sub(LONGEST)) };
        match flag(place) {
            Some(0 | 1) => Look::Found(place),
            Some(_) => Look::Nothing,
            None => Look::Further(place - 2),
        }
    }

    /// Whether a table ends in these bytes and another begins with code 1: the last declaration ends in a pair of zeros,
    /// and a code of zero ends the table.
    fn another_table(&self, bytes: &[u8]) -> bool {
        self.first.find_iter(bytes).any(|place| bytes[..=place].ends_with(&[0, 0, 0]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{End, Search};
    use super::*;
    use proptest::prelude::*;

    fn seen(bytes: &[u8], wanted: u64) -> Option<usize> {
        match Seeker::default().look(bytes, &Finder::new(Begin::new(wanted)?.bytes()), true) {
            Look::Found(at) => Some(at),
            _ => None,
        }
    }

    fn number(value: u64) -> Vec<u8> {
        let mut bytes = Begin::new(value).map_or(vec![0, 0], |begin| begin.bytes().to_vec());
        bytes.pop();
        bytes
    }

    fn constant(value: i64) -> Vec<u8> {
        let (mut rest, mut bytes) = (value, Vec::new());
        loop {
            let byte = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 && byte & 0x40 == 0 || rest == -1 && byte & 0x40 != 0 {
                bytes.push(byte);
                return bytes;
            }
            bytes.push(byte | 0x80);
        }
    }

    /// Tag, children, and attributes: name, form and the constant that some forms have.
    type Declaration = (u64, bool, Vec<(u64, u64, i64)>);

    /// A table as compilers write it, with codes from 1 on, and where its declaration `root`, that of the unit, begins.
    fn table(declarations: &[Declaration], root: usize) -> (Vec<u8>, usize) {
        let (mut bytes, mut begin) = (Vec::new(), 0);
        for (index, (tag, children, attributes)) in declarations.iter().enumerate() {
            if index == root {
                begin = bytes.len();
            }
            bytes.extend(number(index as u64 + 1));
            bytes.extend(number(if index == root { 0x11 } else { *tag }));
            bytes.push(u8::from(*children));
            for (name, form, value) in attributes {
                bytes.extend([number(*name), number(*form)].concat());
                if *form == 0x21 {
                    bytes.extend(constant(*value));
                }
            }
            bytes.extend([0, 0]);
        }
        bytes.push(0);
        (bytes, begin)
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_reading_in_order_finds(
            declarations in prop::collection::vec(
                (
                    prop_oneof![Just(0x11u64), 1u64..0x4b, Just(0x4109)],
                    any::<bool>(),
                    prop::collection::vec(
                        (1u64..0x300, prop_oneof![Just(0x21u64), 1u64..0x2d], -70i64..300),
                        0..4,
                    ),
                ),
                1..300,
            ),
            root in any::<prop::sample::Index>(),
        ) {
            let root = root.index(declarations.len());
            let (bytes, begin) = table(&declarations, root);
            let code = root as u64 + 1;
            let in_order = Search::new(code).feed(&bytes[begin..]);
            prop_assert!(matches!(in_order, Ok((Some(End::Found(_)), _))));
            // Never another place; and no answer only where three zeros may be the end of a table.
            match seen(&bytes, code) {
                Some(at) => prop_assert_eq!(at, begin),
                None => prop_assert!(Seeker::default().another_table(&bytes[..begin])),
            }
            // A code that is not declared there is not found behind the end either.
            let two = [bytes.clone(), bytes].concat();
            prop_assert_eq!(seen(&two, declarations.len() as u64 + 1), None);
        }
    }

    #[test]
    fn a_declaration_that_the_next_table_has_is_not_found() {
        let ours = [1, 0x24, 0, 0x0b, 0x0b, 0, 0, 0];
        let next = [1, 0x24, 0, 0x0b, 0x0b, 0, 0, 2, 0x11, 1, 0x25, 0x0e, 0, 0, 0];
        assert_eq!(seen(&next, 2), Some(7));
        assert_eq!(seen(&[ours.as_slice(), &next].concat(), 2), None);
        // Padding between tables ends one, too.
        assert_eq!(seen(&[ours.as_slice(), &[0; 5], &next].concat(), 2), None);
        // An entry without attributes and children does not.
        let varargs = [1, 0x18, 0, 0, 0, 2, 0x11, 1, 0x25, 0x0e, 0, 0, 0];
        assert_eq!(seen(&varargs, 2), Some(5));
        // Another sort of entry is left to reading in order, which says what it is.
        assert_eq!(seen(&next, 1), None);
    }
}
