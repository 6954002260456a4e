//! Several texts looked for at once, in one pass over the bytes.

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, Input, MatchKind, Span};

/// Texts that are looked for. Where two of them begin at one place, the one given first is found.
#[derive(Debug)]
pub struct Needles {
    search: Search,
    longest: usize,
}

#[derive(Debug)]
enum Search {
    /// With vector instructions.
    Packed(packed::Searcher),
    /// On processors that have none for it.
    Automaton(AhoCorasick),
}

impl Needles {
    /// Those given; `None` if there are none, or an empty one, which is everywhere.
    pub fn new<T: AsRef<[u8]>>(needles: &[T]) -> Option<Self> {
        let longest = needles.iter().map(|needle| needle.as_ref().len()).max()?;
        if needles.iter().any(|needle| needle.as_ref().is_empty()) {
            return None;
        }
        let search = match packed::Searcher::new(needles) {
            Some(packed) => Search::Packed(packed),
            None => Search::Automaton(
                AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(needles).ok()?,
            ),
        };
        Some(Self { search, longest })
    }

    /// Size of the longest in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The first place at or behind `from` where one of them stands, and which it is.
    pub fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let span = Span::from(from.min(bytes.len())..bytes.len());
        let found = match &self.search {
            Search::Packed(packed) => packed.find_in(bytes, span),
            Search::Automaton(automaton) => automaton.find(Input::new(bytes).span(span)),
        };
        found.map(|found| (found.start(), found.pattern().as_usize()))
    }

    /// All places where one of them stands, and which it is. They may overlap.
    pub fn all(&self, bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = self.find(bytes, from)?;
            from = found.0 + 1;
            Some(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_also_where_they_overlap() {
        let needles = Needles::new(&["\0ab\0", "\0cd\0", "b"]).unwrap();
        let found: Vec<(usize, usize)> = needles.all(b"\0ab\0cd\0ab\0\0ab").collect();
        assert_eq!(found, [(0, 0), (2, 2), (3, 1), (6, 0), (8, 2), (12, 2)]);
        assert_eq!((needles.longest(), needles.find(b"b", 5)), (4, None));
    }

    #[test]
    fn nothing_and_the_empty_text_are_not_looked_for() {
        assert!(Needles::new::<&str>(&[]).is_none());
        assert!(Needles::new(&["a", ""]).is_none());
    }
}
