//! The account of the text: which bytes which unit describes, which are padding or start code, and
//! which nothing describes. The parts sum to the whole.

use crate::compiler::Level;
use crate::image::functions::FunctionTable;
use crate::image::ranges::{intersect, subtract, total};
use crate::image::{Image, merge};
use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};
use object::elf;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

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

/// Makes the account.
pub fn account(image: &Image, units: &[Described<'_>], table: &FunctionTable) -> Account {
    let text = image.text_ranges();
    let live: Vec<Vec<Range<u64>>> = units
        .iter()
        .map(|unit| {
            let mut live = intersect(&merge(unit.ranges.to_vec()), &text);
            live.retain(|range| {
                !unit.link_time
                    || padding_prefix(&mut TextWindow::new(image), range) < range.end - range.start
            });
            live
        })
        .collect();
    let (per_unit, covered) = attribute(units, &live);
    let mut account = Account { bytes: total(&text), per_unit, live, ..Account::default() };

    let uncovered = subtract(&text, &covered);
    account.runtime = total(&intersect(&uncovered, &table.runtime));
    let gaps = subtract(&uncovered, &table.runtime);
    let functions: Vec<Range<u64>> = table.functions.iter().map(|f| f.start..f.end).collect();
    if crate::image::linkage::is_separate_debug(image) {
        // The bytes are in the binary, not here: what lies between units cannot be told.
        account.undescribed = gaps.into_iter().flat_map(|gap| split(gap, &functions)).collect();
        return account;
    }
    let mut window = TextWindow::new(image);
    for gap in gaps {
        classify_gap(&mut window, gap, &functions, &mut account);
    }
    account
}

/// A range cut where functions begin and end.
pub(super) fn split(range: Range<u64>, functions: &[Range<u64>]) -> Vec<Range<u64>> {
    let first = functions.partition_point(|f| f.end <= range.start);
    let mut pieces = Vec::new();
    let mut at = range.start;
    for function in functions[first..].iter().take_while(|f| f.start < range.end) {
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

fn classify_gap(text: &mut TextWindow<'_>, gap: Range<u64>, functions: &[Range<u64>], account: &mut Account) {
    let image = text.image;
    let first = functions.partition_point(|f| f.end <= gap.start);
    let mut at = gap.start;
    for function in functions[first..].iter().take_while(|f| f.start < gap.end) {
        if function.start > at {
            classify_between(text, at..function.start, account);
        }
        let start = function.start.max(at);
        let end = function.end.min(gap.end);
        if start < end {
            if is_start_code(image, start) && end - start <= START_CODE_BYTES {
                account.runtime += end - start;
            } else {
                account.undescribed.push(start..end);
            }
            at = end;
        }
    }
    if at < gap.end {
        classify_between(text, at..gap.end, account);
    }
}

/// Bytes between functions: padding, start code behind the entry point, or undescribed code.
fn classify_between(text: &mut TextWindow<'_>, range: Range<u64>, account: &mut Account) {
    let image = text.image;
    let size = range.end - range.start;
    let padding = padding_prefix(text, &range);
    account.padding += padding;
    let rest = range.start + padding..range.end;
    if rest.is_empty() {
        return;
    }
    let entry = image.header.entry;
    let near_entry = entry.abs_diff(rest.start) <= START_CODE_BYTES && size <= START_CODE_BYTES;
    if (near_entry && is_start_code(image, entry))
        || (size <= START_CODE_BYTES && is_crtbegin(image, rest.start))
    {
        account.runtime += rest.end - rest.start;
    } else {
        account.undescribed.push(rest);
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

/// How many bytes at the start of the range are padding: nop, int3 or zero.
fn padding_prefix(text: &mut TextWindow<'_>, range: &Range<u64>) -> u64 {
    let machine = text.image.header.machine;
    let mut done = 0;
    while range.start + done < range.end {
        let at = range.start + done;
        let size = (range.end - at).min(WINDOW);
        let Some(bytes) = text.read(at, size) else { return done };
        let here = padding_bytes(bytes, machine) as u64;
        done += here;
        // An instruction cut by the window is looked at again from its start.
        if here == 0 || (here < size && size < WINDOW) || here + 16 < size {
            return done;
        }
    }
    done
}

/// Most bytes of text looked at together.
const WINDOW: u64 = 64 << 10;
/// Bytes read ahead: gaps lie close together, and one read serves many of them.
const AHEAD: u64 = 16 << 10;

/// A piece of the text, kept for the next gap.
struct TextWindow<'i> {
    image: &'i Image,
    start: u64,
    bytes: Vec<u8>,
}

impl<'i> TextWindow<'i> {
    fn new(image: &'i Image) -> Self {
        Self { image, start: 0, bytes: Vec::new() }
    }

    /// The bytes at an address, if the file holds them.
    fn read(&mut self, at: u64, size: u64) -> Option<&[u8]> {
        let held = |window: &Self| {
            let from = at.checked_sub(window.start)? as usize;
            let to = from.checked_add(size as usize)?;
            (to <= window.bytes.len()).then_some(from..to)
        };
        if held(self).is_none() {
            let ahead = self.image.read_address(at, size.max(AHEAD));
            self.bytes = ahead.or_else(|| self.image.read_address(at, size))?;
            self.start = at;
        }
        self.bytes.get(held(self)?)
    }
}

fn padding_bytes(bytes: &[u8], machine: elf::Machine) -> usize {
    match machine {
        elf::EM_X86_64 | elf::EM_386 => {
            let bitness = if machine == elf::EM_X86_64 { 64 } else { 32 };
            let mut at = 0;
            while at < bytes.len() {
                // Long runs of zeros fill pages; they are passed over in blocks.
                let rest = &bytes[at..];
                let zeros =
                    rest.chunks_exact(64).take_while(|block| block.iter().all(|&b| b == 0)).count() * 64;
                if zeros > 0 {
                    at += zeros;
                    continue;
                }
                if rest[0] == 0 || rest[0] == 0xcc {
                    at += 1;
                    continue;
                }
                let mut decoder = Decoder::new(bitness, &bytes[at..], DecoderOptions::NONE);
                let instruction = decoder.decode();
                let idle_lea = bitness == 32
                    && instruction.mnemonic() == Mnemonic::Lea
                    && instruction.memory_base() == instruction.op0_register()
                    && instruction.memory_displacement64() == 0
                    && instruction.memory_index() == iced_x86::Register::None;
                let is_nop = instruction.mnemonic() == Mnemonic::Nop
                    || instruction.code() == Code::Xchg_rm16_r16
                        && instruction.op0_register() == instruction.op1_register()
                    || idle_lea;
                if !is_nop {
                    break;
                }
                at += instruction.len();
            }
            at
        }
        _ => {
            let nops: &[[u8; 4]] = match machine {
                elf::EM_AARCH64 => &[[0x1f, 0x20, 0x03, 0xd5], [0, 0, 0, 0]],
                elf::EM_ARM => &[
                    [0x00, 0xf0, 0x20, 0xe3],
                    [0x00, 0x00, 0xa0, 0xe1],
                    [0x00, 0xbf, 0x00, 0xbf],
                    [0, 0, 0, 0],
                ],
                elf::EM_PPC64 => &[[0x00, 0x00, 0x00, 0x60], [0x60, 0x00, 0x00, 0x00], [0, 0, 0, 0]],
                elf::EM_RISCV => &[[0x13, 0x00, 0x00, 0x00], [0x01, 0x00, 0x01, 0x00], [0, 0, 0, 0]],
                _ => &[[0, 0, 0, 0]],
            };
            let whole: usize =
                bytes.chunks_exact(4).take_while(|word| nops.iter().any(|n| n == word)).count() * 4;
            let tail = bytes.len() - whole;
            if tail < 4 && bytes[whole..].iter().all(|&b| b == 0) { bytes.len() } else { whole }
        }
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

    #[test]
    fn gcc_padding_is_nops_of_any_length_and_nothing_else() {
        let nops = [0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x66, 0x90, 0x90, 0xcc, 0, 0];
        assert_eq!(padding_bytes(&nops, elf::EM_X86_64), nops.len());
        // push rbp behind two nops
        assert_eq!(padding_bytes(&[0x90, 0x90, 0x55, 0x90], elf::EM_X86_64), 2);
        assert_eq!(padding_bytes(&[0x1f, 0x20, 0x03, 0xd5, 0, 0, 0, 0, 1], elf::EM_AARCH64), 8);
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
