//! Plain abbreviation declarations, read whole (DWARF 5, section 7.5.3): those that nobody looks for are passed over,
//! four attributes at a time, and the one that is wanted is taken. A large file has some hundred thousand of them, and
//! nearly all are plain: short numbers, and attributes of two bytes. What is not plain is left to the caller.

use super::{ATTRIBUTES, Abbreviation};
use gimli::{AttributeSpecification, DwAt, DwForm, DwTag};

/// `DW_FORM_implicit_const`, behind which a constant follows.
const IMPLICIT: u8 = gimli::DW_FORM_implicit_const.0 as u8;
/// Longest constant that is taken here, in bytes.
const CONSTANT: usize = 9;

/// Bytes taken by leading declarations that are whole, plain and not of the wanted code.
pub(super) fn declarations(bytes: &[u8], wanted: u64) -> usize {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..)
        && let Some(used) = declaration(rest, wanted)
    {
        done += used;
    }
    done
}

/// The code at the start of a declaration, and its bytes.
fn code(bytes: &[u8]) -> Option<(u64, usize)> {
    match *bytes {
        [a, ..] if a < 0x80 => Some((u64::from(a), 1)),
        [a, b, ..] if b < 0x80 => Some((u64::from(a & 0x7f) | u64::from(b) << 7, 2)),
        _ => None,
    }
}

/// The declaration at the start, and its bytes, if it is of the wanted code, whole and plain.
pub(super) fn wanted(bytes: &[u8], wanted: u64) -> Option<(Abbreviation, usize)> {
    let (_, mut at) = code(bytes).filter(|&(code, _)| code == wanted && code != 0)?;
    let small = |at: &mut usize| match *bytes.get(*at..)? {
        [a, ..] if a < 0x80 => {
            *at += 1;
            Some(u16::from(a))
        }
        [a, b, ..] if b > 0 && b < 0x80 => {
            *at += 2;
            Some(u16::from(a & 0x7f) | u16::from(b) << 7)
        }
        _ => None,
    };
    let tag = DwTag(small(&mut at)?);
    at += 1;
    let mut attributes = Vec::with_capacity(16);
    loop {
        let (name, form) = (DwAt(small(&mut at)?), DwForm(small(&mut at)?));
        if (name.0, form.0) == (0, 0) {
            return Some((Abbreviation { tag, attributes }, at));
        }
        let mut constant = None;
        if form == gimli::DW_FORM_implicit_const {
            let len = 1 + bytes.get(at..)?.iter().take(CONSTANT).position(|byte| *byte < 0x80)?;
            let digits = bytes.get(at..at + len)?;
            let value = digits.iter().rev().fold(0i64, |sum, byte| sum << 7 | i64::from(byte & 0x7f));
            let unused = 64 - 7 * len as u32;
            constant = Some(value << unused >> unused);
            at += len;
        }
        if attributes.len() == ATTRIBUTES {
            return None;
        }
        attributes.push(AttributeSpecification::new(name, form, constant));
    }
}

fn declaration(bytes: &[u8], wanted: u64) -> Option<usize> {
    let (code, after_code) = code(bytes)?;
    if code == 0 || code == wanted {
        return None;
    }
    // The tag, and the byte that says whether there are children.
    let rest = bytes.get(after_code..)?;
    let after_tag = match *rest {
        [a, ..] if a < 0x80 => 2,
        [_, b, ..] if b < 0x80 => 3,
        [_, _, c, ..] if c < 4 => 4,
        _ => return None,
    };
    let rest = rest.get(after_tag..)?;
    Some(after_code + after_tag + attributes(rest)?)
}

/// Bytes of attributes up to and with the pair of zeros that ends them.
fn attributes(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        if let Some(eight) = rest.first_chunk() {
            let word = u64::from_le_bytes(*eight);
            let plain = plain_pairs(word);
            at += plain * 2;
            if plain == 4 {
                continue;
            }
            // The pair that stopped it: the end, or a constant of one byte behind.
            let stop = word >> (plain * 16);
            if stop.trailing_zeros() >= 16 {
                return Some(at + 2);
            }
            if plain < 3 && stop & SHORT_CONSTANT == u64::from(IMPLICIT) << 8 {
                at += 3;
                continue;
            }
        }
        let rest = bytes.get(at..)?;
        at += match *rest {
            [0, 0, ..] => return Some(at + 2),
            [name, IMPLICIT, ..] if name < 0x80 => {
                let constant = rest.get(2..)?.iter().take(CONSTANT).position(|byte| *byte < 0x80)?;
                2 + constant + 1
            }
            [name, form, ..] if name < 0x80 && form < 0x80 => 2,
            // A zero behind would make it a short number written long.
            [_, high, form, ..] if high > 0 && high < 0x80 && form < 0x80 && form != IMPLICIT => 3,
            [name, _, high, ..] if name < 0x80 && high > 0 && high < 0x80 => 3,
            _ => return None,
        };
    }
}

/// What makes a name of one byte, `DW_FORM_implicit_const` and a constant of one byte out of three bytes.
const SHORT_CONSTANT: u64 = 0x0080_ff80;

/// How many of the four pairs of bytes at the start of `word` (the first is the lowest) are a name and a form of one
/// byte each, without a constant behind, and not the end.
fn plain_pairs(word: u64) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const LOW: u64 = !HIGH;
    const FORM_HIGH: u64 = 0x8000_8000_8000_8000;
    const FORMS: u64 = IMPLICIT as u64 * 0x0100_0100_0100_0100;
    let long = word & HIGH;
    // Bytes without their highest bit: adding 0x7f sets it for those that are not zero, and carries nowhere.
    let low = word & LOW;
    let filled = low + LOW;
    let ends = !(filled | filled << 8) & FORM_HIGH;
    let implicit = !((low ^ FORMS) + LOW) & FORM_HIGH;
    let stop = long | ends | implicit;
    (stop.trailing_zeros() / 16) as usize
}

#[cfg(test)]
mod tests {
    use super::super::{End, Search};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_declarations_are_passed_and_others_are_not() {
        // code 5, DW_TAG_variable, no children, five attributes, one of them with a constant of two bytes
        let plain = [5, 0x34, 0, 3, 8, 0x3a, 0x21, 0xc0, 0, 0x3b, 0x0b, 0x49, 0x13, 2, 0x18, 0, 0];
        let two = [plain.as_slice(), &[0x85, 1, 0x91, 0x82, 1, 1, 0x91, 0x42, 0x18, 0, 0]].concat();
        assert_eq!(declarations(&two, 1), two.len());
        assert_eq!(declarations(&two, 5), 0);
        assert_eq!(declarations(&two, 133), plain.len());
        assert_eq!(declarations(&two[..two.len() - 1], 1), plain.len());
        assert_eq!(declarations(&[0, 0x34, 0, 0, 0], 1), 0);
    }

    fn outcome(end: Result<(Option<End>, usize), &'static str>) -> (String, usize) {
        match end {
            Ok((end, used)) => (format!("{end:?}"), used),
            Err(why) => (why.to_owned(), 0),
        }
    }

    proptest! {
        #[test]
        fn passing_over_changes_nothing(
            bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(0x21), Just(0x80), 0u8..0x50, any::<u8>()], 0..80),
            wanted in 0u64..4,
        ) {
            let whole = outcome(Search::new(wanted).feed(&bytes));
            // Single bytes are never a whole declaration.
            let (mut search, mut single) = (Search::new(wanted), (format!("{:?}", None::<End>), bytes.len()));
            for (index, byte) in bytes.iter().enumerate() {
                match search.feed(std::slice::from_ref(byte)) {
                    Ok((None, _)) => {}
                    Ok((end, _)) => {
                        single = outcome(Ok((end, index + 1)));
                        break;
                    }
                    Err(why) => {
                        single = outcome(Err(why));
                        break;
                    }
                }
            }
            prop_assert_eq!(whole, single);
        }
    }
}
