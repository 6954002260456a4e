//! Searching loaded data for many marks at once, in bounded memory.

use super::Recogniser;
use crate::evidence::Place;
use crate::facts::Problem;
use crate::image::Image;
use object::elf;
use regex::bytes::{Regex, RegexBuilder};
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

/// Bytes read at a time.
const CHUNK: u64 = 1 << 20;
/// Longest text kept, in bytes. `configure` lines of distributions are below 8 KiB; Erlang carries a whole header file.
const TEXT: u64 = 32 << 10;
/// Most texts kept for one mark. Marks are chosen to be rare; a file made to hold many gains nothing.
const TEXTS: usize = 32;

/// A string in the file that holds a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Where it begins.
    pub at: Place,
    /// The string, lossily decoded, cut at its NUL or at the limit.
    pub text: String,
}

/// The texts of a file, as one recogniser sees them.
pub struct Texts<'a> {
    pub(super) list: &'a [Text],
    pub(super) marks: &'static [&'static str],
    /// `DT_SONAME` of the file.
    pub soname: Option<&'a str>,
}

impl<'a> Texts<'a> {
    /// Texts that hold any of this recogniser's marks.
    pub fn all(&self) -> impl Iterator<Item = &'a Text> {
        self.list.iter().filter(|text| {
            self.marks.iter().any(|mark| match mark.strip_prefix('^') {
                Some(start) => text.text.starts_with(start),
                None => text.text.contains(mark),
            })
        })
    }

    /// The first text that holds `mark`, which is one of this recogniser's.
    pub fn with(&self, mark: &str) -> Option<&'a Text> {
        self.list.iter().find(|text| text.text.contains(mark))
    }

    /// The first text that begins with `mark`, which is one of this recogniser's.
    pub fn starting(&self, mark: &str) -> Option<&'a Text> {
        self.list.iter().find(|text| text.text.starts_with(mark))
    }

    /// The first text that is a `configure` line in autoconf's quotes.
    pub fn configure_line(&self) -> Option<&'a Text> {
        self.list.iter().find(|text| super::is_configure_line(&text.text))
    }
}

/// A run of bytes of the file to be searched.
struct Region {
    name: String,
    offset: u64,
    size: u64,
}

/// Texts with any of the marks of the recognisers, in file order. Only sections that are loaded and hold no code are read, or, without a section
/// table, all loaded segments.
pub(super) fn scan(image: &Image) -> (Vec<Text>, Vec<Problem>) {
    // One table of recognisers, one pattern: making it takes longer than searching a small file.
    static MARKS: OnceLock<Option<Marks>> = OnceLock::new();
    let mut problems = Vec::new();
    let mut texts: Vec<Text> = Vec::new();
    let Some(marks) = MARKS.get_or_init(|| Marks::new(super::RECOGNISERS)) else { return (texts, problems) };
    let mut counts = HashMap::new();
    let mut left = image.limits.section_bytes;
    for region in regions(image) {
        if region.size > left {
            problems.push(Problem::damage(
                "data-not-searched",
                format!("{} was not searched for build texts: over the limit", region.name),
            ));
            continue;
        }
        left = left.saturating_sub(region.size);
        search(image, &region, marks, &mut counts, &mut texts);
    }
    (texts, problems)
}

/// All marks as one pattern. A mark that begins with `^` is one for the beginning of a text, which is what follows a NUL.
struct Marks {
    pattern: Regex,
    starts: Vec<&'static [u8]>,
}

impl Marks {
    fn new(recognisers: &[Recogniser]) -> Option<Self> {
        let all: BTreeSet<&'static str> =
            recognisers.iter().flat_map(|recogniser| recogniser.marks).copied().collect();
        let escaped: Vec<String> = all
            .iter()
            .map(|mark| match mark.strip_prefix('^') {
                Some(start) => format!("\\x00{}", regex::escape(start)),
                None => regex::escape(mark),
            })
            .collect();
        let pattern = RegexBuilder::new(&escaped.join("|")).unicode(false).build().ok()?;
        let starts = all.iter().filter_map(|mark| mark.strip_prefix('^')).map(str::as_bytes).collect();
        Some(Self { pattern, starts })
    }

    /// The next mark: its bytes' place in the window, without the NUL before it.
    fn next(&self, window: &[u8], from: usize, at_region_start: bool) -> Option<(usize, usize)> {
        let begins = |start: &&&[u8]| from == 0 && at_region_start && window.starts_with(start);
        if let Some(start) = self.starts.iter().find(begins) {
            return Some((0, start.len()));
        }
        let hit = self.pattern.find_at(window, from)?;
        let nul = usize::from(hit.as_bytes().first() == Some(&0));
        Some((hit.start().saturating_add(nul), hit.end()))
    }
}

fn regions(image: &Image) -> Vec<Region> {
    if !image.described {
        return image
            .segments
            .iter()
            .enumerate()
            .filter(|(_, segment)| segment.kind == elf::PT_LOAD && segment.file_size > 0)
            .map(|(index, s)| Region {
                name: format!("segment {index}"),
                offset: s.offset,
                size: s.file_size.min(image.input.len().saturating_sub(s.offset)),
            })
            .collect();
    }
    let unwind: [&[u8]; 3] = [b".eh_frame", b".eh_frame_hdr", b".gcc_except_table"];
    image
        .sections
        .iter()
        .filter(|s| s.kind == elf::SHT_PROGBITS && s.flags & elf::SHF_ALLOC.0 != 0 && !s.is_text())
        .filter(|s| !unwind.contains(&s.name.as_slice()))
        .map(|s| Region {
            name: String::from_utf8_lossy(&s.name).into_owned(),
            offset: s.offset,
            size: s.size.min(image.input.len().saturating_sub(s.offset)),
        })
        .collect()
}

fn search(
    image: &Image,
    region: &Region,
    marks: &Marks,
    counts: &mut HashMap<Vec<u8>, usize>,
    texts: &mut Vec<Text>,
) {
    let mut from = 0u64;
    let mut seen_to = 0u64;
    while from < region.size {
        // The window reaches back and forth by the length of a text, so that every mark has its whole text around it.
        let begin = from.saturating_sub(TEXT);
        let end = from.saturating_add(CHUNK).saturating_add(TEXT).min(region.size);
        let Some(at) = region.offset.checked_add(begin) else { return };
        let mut window = vec![0; end.saturating_sub(begin) as usize];
        match image.input.read_at(at, &mut window) {
            Ok(got) if got > 0 => window.truncate(got),
            _ => return,
        }
        // One byte back, to the NUL that may stand before a mark.
        let first = (from.saturating_sub(begin) as usize).saturating_sub(1);
        let last = (from.saturating_sub(begin) as usize).saturating_add(CHUNK as usize);
        let mut position = first;
        let mut behind = 0;
        // The file became shorter while it was read.
        if first > window.len() {
            return;
        }
        while let Some((hit, hit_end)) = marks.next(&window, position, begin == 0).filter(|hit| hit.0 < last)
        {
            let (start, stop) = bounds(&window, hit, hit_end, behind);
            behind = stop;
            position = stop.max(hit_end);
            let offset = begin.saturating_add(start as u64);
            let mark = window.get(hit..hit_end).unwrap_or_default();
            let count = counts.entry(mark.to_vec()).or_insert(0);
            // A text that was already taken, by an earlier mark in it before the border of a chunk, comes again.
            if offset < seen_to || *count >= TEXTS {
                continue;
            }
            *count += 1;
            seen_to = begin.saturating_add(stop as u64);
            let bytes = window.get(start..stop).unwrap_or_default();
            texts.push(Text {
                at: Place { section: region.name.as_str().into(), offset },
                text: String::from_utf8_lossy(bytes).into_owned(),
            });
        }
        from = from.saturating_add(CHUNK);
    }
}

/// The string around a mark: from the NUL before it to the NUL after it, no further than the limit, and not back into the string
/// before, which would make data without any NUL cost its square.
fn bounds(window: &[u8], start: usize, end: usize, behind: usize) -> (usize, usize) {
    let floor = start.saturating_sub(TEXT as usize).max(behind).min(start);
    let before = window.get(floor..start).unwrap_or_default();
    let begin = memchr::memrchr(0, before).map_or(floor, |at| floor.saturating_add(at).saturating_add(1));
    let ceiling = begin.saturating_add(TEXT as usize).max(end).min(window.len());
    let after = window.get(end..ceiling).unwrap_or_default();
    let stop = memchr::memchr(0, after).map_or(ceiling, |at| end.saturating_add(at));
    (begin, stop)
}
