//! The account of the text: which bytes which unit describes, which are padding or start code, and
//! which nothing describes. The parts sum to the whole.

use crate::compiler::Level;
use crate::image::functions::{Function, FunctionTable};
use crate::image::ranges::{intersect, merged, subtract, total};
use crate::image::{Image, merge};
use crate::parallel;
use object::elf;
use padding::TextWindow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

mod padding;

/// Longest run of start code (`_start` and what `crtbegin.o` adds behind it) that is accepted at
/// the entry point. Measured: 0xdd bytes with gcc 12 on x86-64, 0x94 on aarch64.
const START_CODE_BYTES: u64 = 0x140;

/// How bytes of the text are accounted for, before code is judged.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// All bytes.
    pub bytes: u64,
    /// Gaps that hold only padding.
    pub padding: u64,
    /// Start code, PLT, thunks.
    pub runtime: u64,
    /// Live bytes per unit, in the order given.
    pub per_unit: Vec<u64>,
    /// Live ranges per unit: intersected with the text and merged (overlaps are not removed here).
    pub live: Vec<Vec<Range<u64>>>,
    /// Code that no unit describes, split at function boundaries, ascending.
    pub undescribed: Vec<Range<u64>>,
}

/// What the account needs to know of a unit.
#[derive(Debug, Clone)]
pub struct Described<'a> {
    /// Ranges as recorded, in any order.
    pub ranges: &'a [Range<u64>],
    /// Its level: an overlap goes to the lowest.
    pub level: Level,
    /// Made at link time: what is left of its ranges once code is traced to sources may be padding only.
    pub link_time: bool,
}

/// Makes the account: first of what units describe, then of the gaps between, as often as more functions become known.
pub struct Accounting<'i> {
    image: &'i Image,
    /// What no unit describes, less what is settled.
    uncovered: Vec<Range<u64>>,
    /// Bytes of padding and of the toolchain in gaps where nothing else is. No function can be found there.
    settled: (u64, u64),
    /// Padding found so far: where (ascending) and how much. Another table of functions moves few gaps.
    known: Vec<(Range<u64>, u64)>,
    account: Account,
}

impl<'i> Accounting<'i> {
    /// Accounts for what units describe.
    pub fn new(image: &'i Image, units: &[Described<'_>]) -> Self {
        let text = image.text_ranges();
        let live: Vec<Vec<Range<u64>>> = units
            .iter()
            .map(|unit| {
                let mut live = intersect(&merged(unit.ranges), &text);
                live.retain(|range| {
                    !unit.link_time
                        || TextWindow::new(image, &[]).padding_prefix(range) < range.end - range.start
                });
                live
            })
            .collect();
        let (per_unit, covered) = attribute(units, &live);
        let uncovered = subtract(&text, &covered);
        let account = Account { bytes: total(&text), per_unit, live, ..Account::default() };
        Self { image, uncovered, settled: (0, 0), known: Vec::new(), account }
    }

    /// Accounts for the gaps, in the light of these functions. They may be more than the last time in what was undescribed
    /// then; of that, what was said before is forgotten.
    pub fn gaps(&mut self, table: &FunctionTable) -> &Account {
        let Self { image, uncovered, settled, known, account } = self;
        account.padding = settled.0;
        account.runtime = settled.1 + total(&intersect(uncovered, &table.runtime));
        account.undescribed.clear();
        let gaps = subtract(uncovered, &table.runtime);
        if crate::image::identity::is_separate_debug(image) {
            // The bytes are in the binary, not here: what lies between units cannot be told.
            account.undescribed =
                gaps.into_iter().flat_map(|gap| split(gap, &table.functions, |f| f.start..f.end)).collect();
            return account;
        }
        let between: Vec<Range<u64>> =
            gaps.iter().flat_map(|gap| between_functions(gap, &table.functions)).collect();
        *known = padding(image, &between, known);
        let mut classifier = Classifier { image, padding: known, account };
        let (mut open, mut unsettled) = (Vec::new(), (0, 0));
        for gap in gaps {
            let before = (classifier.account.padding, classifier.account.runtime);
            let undescribed = classifier.account.undescribed.len();
            classifier.gap(&gap, &table.functions);
            if classifier.account.undescribed.len() > undescribed {
                unsettled.0 += classifier.account.padding - before.0;
                unsettled.1 += classifier.account.runtime - before.1;
                open.push(gap);
            }
        }
        *uncovered = open;
        *settled = (account.padding - unsettled.0, account.runtime - unsettled.1);
        account
    }

    /// The account as it stands.
    pub fn finish(self) -> Account {
        self.account
    }
}

/// A range cut where functions begin and end; they ascend, and `span` is where one lies.
pub(super) fn split<T>(
    range: Range<u64>,
    functions: &[T],
    span: impl Fn(&T) -> Range<u64>,
) -> Vec<Range<u64>> {
    let first = functions.partition_point(|f| span(f).end <= range.start);
    let mut pieces = Vec::new();
    let mut at = range.start;
    for function in functions[first..].iter().map(&span).take_while(|f| f.start < range.end) {
        let (start, end) = (function.start.max(at), function.end.min(range.end));
        pieces.push(at..start);
        pieces.push(start..end);
        at = end.max(at);
    }
    pieces.push(at..range.end);
    pieces.retain(|piece| piece.start < piece.end);
    pieces
}

/// Gives every covered byte to the unit with the lowest level that claims it.
fn attribute(units: &[Described<'_>], live: &[Vec<Range<u64>>]) -> (Vec<u64>, Vec<Range<u64>>) {
    let mut starts: Vec<(u64, u64, usize)> = live
        .iter()
        .enumerate()
        .flat_map(|(unit, ranges)| ranges.iter().map(move |r| (r.start, r.end, unit)))
        .collect();
    starts.sort_unstable();
    let mut per_unit = vec![0u64; units.len()];
    let mut heap: BinaryHeap<Reverse<(Level, usize, u64)>> = BinaryHeap::new();
    let mut next = starts.iter().peekable();
    let mut position = 0;
    loop {
        while heap.peek().is_some_and(|Reverse((_, _, end))| *end <= position) {
            heap.pop();
        }
        if heap.is_empty() {
            match next.peek() {
                Some((start, ..)) => position = position.max(*start),
                None => break,
            }
        }
        while let Some((start, end, unit)) = next.peek().copied().copied() {
            if start > position {
                break;
            }
            heap.push(Reverse((units[unit].level, unit, end)));
            next.next();
        }
        let Some(Reverse((_, unit, end))) = heap.peek().copied() else { continue };
        let stop = next.peek().map_or(end, |(start, ..)| end.min(*start));
        per_unit[unit] += stop.saturating_sub(position);
        position = stop.max(position);
    }
    let covered = merge(live.iter().flatten().cloned().collect());
    (per_unit, covered)
}

/// Ranges of a gap between the functions in it.
fn between_functions(gap: &Range<u64>, functions: &[Function]) -> Vec<Range<u64>> {
    let first = functions.partition_point(|f| f.end <= gap.start);
    let mut between = Vec::new();
    let mut at = gap.start;
    for function in functions[first..].iter().take_while(|f| f.start < gap.end) {
        if function.start > at {
            between.push(at..function.start);
        }
        at = at.max(function.end.min(gap.end));
    }
    if at < gap.end {
        between.push(at..gap.end);
    }
    between
}

/// Gaps looked at together by one thread.
const BATCH: usize = 128;

/// Each range (they ascend), and how many bytes at its start are padding. Those `known` from before are not looked at again.
fn padding(image: &Image, ranges: &[Range<u64>], known: &[(Range<u64>, u64)]) -> Vec<(Range<u64>, u64)> {
    let before = |range: &Range<u64>| {
        let found = known.binary_search_by_key(&range.start, |(known, _)| known.start).ok()?;
        known.get(found).filter(|(known, _)| known == range).map(|(_, padding)| *padding)
    };
    let new: Vec<Range<u64>> = ranges.iter().filter(|range| before(range).is_none()).cloned().collect();
    let batches: Vec<&[Range<u64>]> = new.chunks(BATCH).collect();
    let of_batch = |(): &mut (), batch: &&[Range<u64>]| {
        let mut text = TextWindow::new(image, batch);
        batch.iter().map(|range| text.padding_prefix(range)).collect::<Vec<u64>>()
    };
    let mut found = parallel::pieces(image.workers, &batches, || (), of_batch).into_iter().flatten();
    let of = |range: &Range<u64>| before(range).or_else(|| found.next()).unwrap_or_default();
    ranges.iter().cloned().zip(ranges.iter().map(of)).collect()
}

/// Says of each part of a gap what it is.
struct Classifier<'a> {
    image: &'a Image,
    /// Padding of all ranges between functions.
    padding: &'a [(Range<u64>, u64)],
    account: &'a mut Account,
}

impl Classifier<'_> {
    fn gap(&mut self, gap: &Range<u64>, functions: &[Function]) {
        let first = functions.partition_point(|f| f.end <= gap.start);
        let mut at = gap.start;
        for function in functions[first..].iter().take_while(|f| f.start < gap.end) {
            if function.start > at {
                self.between(at..function.start);
            }
            let start = function.start.max(at);
            let end = function.end.min(gap.end);
            if start < end {
                if is_start_code(self.image, start) && end - start <= START_CODE_BYTES {
                    self.account.runtime += end - start;
                } else {
                    self.account.undescribed.push(start..end);
                }
                at = end;
            }
        }
        if at < gap.end {
            self.between(at..gap.end);
        }
    }

    /// Bytes between functions: padding, start code behind the entry point, or undescribed code.
    fn between(&mut self, range: Range<u64>) {
        let image = self.image;
        let size = range.end - range.start;
        let padding = self.padding(&range);
        self.account.padding += padding;
        let rest = range.start + padding..range.end;
        if rest.is_empty() {
            return;
        }
        let entry = image.header.entry;
        let near_entry = entry.abs_diff(rest.start) <= START_CODE_BYTES && size <= START_CODE_BYTES;
        if (near_entry && is_start_code(image, entry))
            || (size <= START_CODE_BYTES && is_crtbegin(image, rest.start))
        {
            self.account.runtime += rest.end - rest.start;
        } else {
            self.account.undescribed.push(rest);
        }
    }

    fn padding(&self, range: &Range<u64>) -> u64 {
        let found = self.padding.binary_search_by_key(&range.start, |(known, _)| known.start);
        found.ok().and_then(|index| self.padding.get(index)).map_or(0, |(_, padding)| *padding)
    }
}

/// Whether `_start` of a C library stands at `address`: it clears the frame pointer, as the psABI asks.
fn is_start_code(image: &Image, address: u64) -> bool {
    if address != image.header.entry {
        return false;
    }
    let Some(bytes) = image.read_address(address, 16) else { return false };
    let after = |prefix: &[u8]| bytes.strip_prefix(prefix).unwrap_or(&bytes).to_vec();
    match image.header.machine {
        elf::EM_X86_64 => {
            after(&[0xf3, 0x0f, 0x1e, 0xfa]).starts_with(&[0x31, 0xed])
                || bytes.starts_with(&[0x48, 0x31, 0xed])
        }
        elf::EM_386 => after(&[0xf3, 0x0f, 0x1e, 0xfb]).starts_with(&[0x31, 0xed]),
        // mov x29, #0; mov x30, #0, behind an optional bti c
        elf::EM_AARCH64 => after(&[0x5f, 0x24, 0x03, 0xd5]).starts_with(&[0x1d, 0x00, 0x80, 0xd2]),
        // mov fp, #0
        elf::EM_ARM => {
            bytes.starts_with(&[0x00, 0xb0, 0xa0, 0xe3]) || bytes.starts_with(&[0x4f, 0xf0, 0x00, 0x0b])
        }
        _ => false,
    }
}

/// Whether `crtbegin.o` begins at `address`: it opens with `deregister_tm_clones`, which loads two equal addresses and
/// compares them. Shared objects have it, too, and no entry point to find it by.
fn is_crtbegin(image: &Image, address: u64) -> bool {
    let Some(bytes) = image.read_address(address, 24) else { return false };
    match image.header.machine {
        // lea table(%rip),%rdi; lea table(%rip),%rax; cmp %rdi,%rax; je
        elf::EM_X86_64 => {
            bytes.starts_with(&[0x48, 0x8d, 0x3d])
                && bytes.get(7..10) == Some(&[0x48, 0x8d, 0x05])
                && bytes.get(14..18) == Some(&[0x48, 0x39, 0xf8, 0x74])
        }
        // adrp x0; add x0, x0; adrp x1; add x1, x1; cmp x1, x0; b.eq
        elf::EM_AARCH64 => {
            let words: Vec<u32> =
                bytes.chunks_exact(4).filter_map(|w| Some(u32::from_le_bytes(w.try_into().ok()?))).collect();
            let masks: [(u32, u32); 6] = [
                (0x9f00_001f, 0x9000_0000),
                (0xffc0_03ff, 0x9100_0000),
                (0x9f00_001f, 0x9000_0001),
                (0xffc0_03ff, 0x9100_0021),
                (0xffff_ffff, 0xeb00_003f),
                (0xff00_001f, 0x5400_0000),
            ];
            words.len() == masks.len() && words.iter().zip(masks).all(|(word, (mask, is))| word & mask == is)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_overlap_goes_to_the_lowest_level_and_is_counted_once() {
        let (a, b) = ([10..30, 30..30], [20..50, 60..70]);
        let units = [
            Described { ranges: &a, level: Level::O2, link_time: false },
            Described { ranges: &b, level: Level::O0, link_time: false },
        ];
        let live = vec![a.to_vec(), b.to_vec()];
        let (per_unit, covered) = attribute(&units, &live);
        assert_eq!(per_unit, [10, 40]);
        assert_eq!(total(&covered), 50);
    }

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0u64..200, 1u64..40).prop_map(|(s, n)| s..s + n), 0..12)
    }

    proptest! {
        #[test]
        fn the_parts_sum_to_the_union(lists in prop::collection::vec((ranges(), 0usize..3), 0..6)) {
            let levels = [Level::O0, Level::O2, Level::Unknown];
            let live: Vec<_> = lists.iter().map(|(r, _)| merge(r.clone())).collect();
            let units: Vec<_> = lists.iter().map(|(r, l)| Described { ranges: r, level: levels[*l], link_time: false }).collect();
            let (per_unit, covered) = attribute(&units, &live);
            prop_assert_eq!(per_unit.iter().sum::<u64>(), total(&covered));
        }
    }
}
