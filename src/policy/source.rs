//! The texts a policy is read from, and places in them.

use crate::finding::PolicyPlace;
use std::ops::Range;

/// Most characters of a line that a [`PolicyPlace`] keeps; a minified JSON policy is one long line.
const LINE_SHOWN: usize = 200;

/// Bytes between two counts of characters.
const STRIDE: usize = 1024;

/// A range of bytes in one of the texts of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Index of the text.
    pub(crate) file: u32,
    /// First byte.
    pub(crate) start: u32,
    /// Byte past the end.
    pub(crate) end: u32,
}

impl Span {
    /// A span of `range` in the text numbered `file`. Texts are limited to far less than 4 GiB.
    pub(crate) fn new(file: u32, range: Range<usize>) -> Self {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { file, start: clamp(range.start), end: clamp(range.end.max(range.start)) }
    }
}

/// One text.
#[derive(Clone)]
pub(crate) struct Source {
    /// Path as given, or `builtin:NAME`.
    pub(crate) label: String,
    /// The text, without a byte order mark.
    pub(crate) text: String,
    /// Offsets at which lines begin, ascending.
    lines: Vec<usize>,
    /// Characters that begin before each multiple of [`STRIDE`] bytes, so that a column in a long line costs no walk over it.
    characters: Vec<usize>,
}

impl Source {
    fn new(label: String, text: String) -> Self {
        let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        let lines = lines.collect();
        let mut characters = vec![0_usize];
        for chunk in text.as_bytes().chunks(STRIDE) {
            let before = characters.last().copied().unwrap_or(0);
            characters
                .push(before.saturating_add(chunk.iter().filter(|byte| begins_character(**byte)).count()));
        }
        Self { label, text, lines, characters }
    }

    /// Characters that begin before `offset`.
    fn characters_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let index = offset / STRIDE;
        let counted = self.characters.get(index).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(index.saturating_mul(STRIDE)..offset).unwrap_or_default();
        counted.saturating_add(rest.iter().filter(|byte| begins_character(**byte)).count())
    }

    /// Zero-based line that holds `offset`, and the range of its text without the line end.
    pub(crate) fn line_at(&self, offset: usize) -> (usize, Range<usize>) {
        let index = self.lines.partition_point(|&start| start <= offset).saturating_sub(1);
        let start = self.lines.get(index).copied().unwrap_or(0);
        let next = self.lines.get(index.saturating_add(1)).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..next).unwrap_or("");
        (index, start..start.saturating_add(line.trim_end_matches(['\n', '\r']).len()))
    }
}

/// Whether a byte of UTF-8 is not a continuation (RFC 3629).
fn begins_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

impl std::fmt::Debug for Source {
    /// Without the text, which would drown what holds it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("label", &self.label).finish_non_exhaustive()
    }
}

/// All texts that one policy is made of: the file itself and what it extends.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceMap {
    files: Vec<Source>,
}

impl SourceMap {
    /// Adds a text and returns its number.
    pub(crate) fn add(&mut self, label: String, text: String) -> u32 {
        self.files.push(Source::new(label, text));
        u32::try_from(self.files.len()).unwrap_or(u32::MAX).saturating_sub(1)
    }

    /// The text numbered `file`.
    pub(crate) fn get(&self, file: u32) -> Option<&Source> {
        self.files.get(file as usize)
    }

    /// The bytes of `span`.
    pub(crate) fn text(&self, span: Span) -> &str {
        self.get(span.file)
            .and_then(|source| source.text.get(span.start as usize..span.end as usize))
            .unwrap_or("")
    }

    /// Line, column (both from 1, in characters) and line text of the start of `span`.
    pub(crate) fn place(&self, span: Span) -> PolicyPlace {
        let Some(source) = self.get(span.file) else {
            return PolicyPlace { path: String::new(), line: 1, column: 1, text: String::new() };
        };
        let offset = span.start as usize;
        let (index, range) = source.line_at(offset);
        let column = source.characters_before(offset).saturating_sub(source.characters_before(range.start));
        let column = column.saturating_add(1);
        let line = source.text.get(range.clone()).unwrap_or("");
        // A long line is shown from the value on, so that what is kept holds the value.
        let shown = if line.len() > LINE_SHOWN { source.text.get(offset..range.end) } else { None };
        let shown = shown.unwrap_or(line);
        PolicyPlace {
            path: source.label.clone(),
            line: u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            text: shown.trim_end().chars().take(LINE_SHOWN).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_survive_any_offset() {
        let mut map = SourceMap::default();
        let file = map.add("p.toml".into(), "a = 1\r\nß = \"x\"\n".into());
        let place = map.place(Span::new(file, 12..15));
        assert_eq!((place.line, place.column, place.text.as_str()), (2, 5, "ß = \"x\""));
        let past = map.place(Span::new(file, 900..901));
        assert_eq!(past.line, 3);
        assert_eq!(map.place(Span::new(file, 0..1)).text, "a = 1");
    }

    #[test]
    fn a_long_line_is_cut() {
        let mut map = SourceMap::default();
        let file = map.add("p.json".into(), format!("{{{}\"minimum\":\"O2\"}}", " ".repeat(5000)));
        let place = map.place(Span::new(file, 5001..5010));
        assert_eq!(place.column, 5002);
        assert!(place.text.starts_with("\"minimum\"") && place.text.len() <= LINE_SHOWN);
    }
}
