//! Functions of text that neither frame descriptions nor symbols tell of
//! (`-fno-asynchronous-unwind-tables`, languages that have no use for them).
//!
//! The text is swept from one end to the other. Where a direct call leads there is a function; so there is
//! where a landing pad or a prologue stands, and at an aligned address after a return and its padding.
//! Functions that are only called through pointers and have none of these are taken for the tail of the one before.

use super::Code;
use super::text::Loaded;
use crate::image::functions::{Function, Origin, runtime_sections};
use crate::image::{Image, merge};
use crate::parallel;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// Bytes swept at once.
const WINDOW: u64 = 4 << 20;

/// Windows swept before it is looked whether there are too many functions. The number of threads has no part in it.
const ROUND: usize = 8;

/// Targets collected before those that are there twice are thrown out.
const CROWD: usize = 1 << 20;

/// Gaps smaller than this hold thunks and padding.
const MIN_GAP: u64 = 64;

/// Less text than this that no function covers is start code, which comes ready-made.
const MIN_OPEN: u64 = 1024;

/// Text that no function covers, if it is more than a fiftieth of all: less is what assembled code and tables come to, which
/// say nothing of a compiler.
pub(super) fn uncovered(image: &Image, functions: &[Function]) -> Vec<Range<u64>> {
    let text = image.text_ranges();
    let total = sum(text.iter().map(|r| r.end - r.start));
    if is_lesser(total.saturating_sub(sum(functions.iter().map(Function::size))), total) {
        return Vec::new();
    }
    let mut covered: Vec<Range<u64>> = functions.iter().map(|f| f.start..f.end).collect();
    covered.append(&mut runtime_sections(image));
    let covered = merge(covered);
    let mut gaps = Vec::new();
    for range in &text {
        let mut at = range.start;
        let from = covered.partition_point(|c| c.end <= range.start);
        for cover in covered.get(from..).unwrap_or_default().iter().take_while(|c| c.start < range.end) {
            gaps.push(at..cover.start);
            at = at.max(cover.end);
        }
        gaps.push(at..range.end);
    }
    gaps.retain(|gap| gap.end.saturating_sub(gap.start) >= MIN_GAP);
    let open = sum(gaps.iter().map(|r| r.end - r.start));
    if is_lesser(open, total) { Vec::new() } else { gaps }
}

fn is_lesser(open: u64, total: u64) -> bool {
    open < MIN_OPEN || open.saturating_mul(50) <= total
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// A piece of a gap that is swept at once.
struct Window {
    /// Index of the gap.
    gap: usize,
    at: u64,
    size: u64,
}

/// What a sweep found.
pub(super) struct Found {
    /// Functions, in order of address.
    pub functions: Vec<Function>,
    /// Bytes swept.
    pub swept: u64,
    /// Bytes that a limit left out: nothing is known of them, also where a call leads there.
    pub left_out: u64,
    /// Bytes that the file does not hold.
    pub unreadable: u64,
}

/// Functions found in the gaps.
pub(super) fn functions(image: &Image, code: Code, gaps: &[Range<u64>]) -> Found {
    let loaded = Loaded::of(image);
    let mut left = image.limits.code_bytes;
    let mut windows: Vec<Window> = Vec::new();
    for (index, gap) in gaps.iter().enumerate() {
        let mut at = gap.start;
        while at < gap.end && left > 0 {
            let size = (gap.end - at).min(WINDOW).min(left);
            windows.push(Window { gap: index, at, size });
            at += size;
            left -= size;
        }
    }
    let sweep = |(): &mut (), window: &Window| {
        let bytes = loaded.read(window.at, window.size)?;
        let mut starts = Vec::new();
        match code {
            Code::X86 { bits } => sweep_x86(bits, &bytes, window.at, &mut starts),
            Code::A64 => sweep_a64(&bytes, window.at, &mut starts),
        }
        Some(starts)
    };
    let mut starts: Vec<u64> = Vec::new();
    let mut crowded = CROWD;
    let (mut swept, mut unreadable) = (0, 0);
    let mut seen: Vec<Range<u64>> = gaps.iter().map(|gap| gap.start..gap.start).collect();
    for round in windows.chunks(ROUND) {
        if starts.len() >= image.limits.functions {
            break;
        }
        let found = parallel::pieces(image.workers, round, || (), sweep);
        for (window, found) in round.iter().zip(found) {
            // Behind what the file does not hold the gap is not swept.
            let seen = seen.get_mut(window.gap).filter(|seen| seen.end == window.at);
            let (Some(seen), Some(mut found)) = (seen, found) else {
                unreadable += window.size;
                continue;
            };
            starts.append(&mut found);
            seen.end = window.at + window.size;
            swept += window.size;
        }
        // Most calls lead where others led before.
        if starts.len() >= crowded {
            starts.sort_unstable();
            starts.dedup();
            crowded = starts.len().saturating_add(CROWD);
        }
    }
    let all = sum(gaps.iter().map(|gap| gap.end - gap.start));
    let left_out = all.saturating_sub(swept).saturating_sub(unreadable);
    starts.sort_unstable();
    starts.dedup();
    let mut found = Vec::new();
    let mut rest = &starts[..];
    for gap in seen {
        let inside = rest.partition_point(|&s| s < gap.end);
        let (here, after) = rest.split_at(inside);
        rest = after;
        let here = here.get(here.partition_point(|&s| s < gap.start)..).unwrap_or_default();
        for (index, &start) in here.iter().enumerate() {
            found.push(Function {
                start,
                end: here.get(index + 1).copied().unwrap_or(gap.end),
                name: None,
                cold: false,
                saves_high: false,
                saves_low: false,
                frame_pointer: false,
                from: Origin::CallTarget,
            });
        }
    }
    found.truncate(image.limits.functions);
    Found { functions: found, swept, left_out, unreadable }
}

fn sweep_x86(bits: u32, bytes: &[u8], base: u64, starts: &mut Vec<u64>) {
    let Ok(mut decoder) = Decoder::try_with_ip(bits, bytes, base, DecoderOptions::NONE) else { return };
    let mut i = Instruction::default();
    let (mut after_return, mut padded) = (false, false);
    let mut pushed_at = None;
    while decoder.can_decode() {
        decoder.decode_out(&mut i);
        let pushed = pushed_at.take();
        match i.mnemonic() {
            // A call of the next instruction fetches the instruction pointer.
            Mnemonic::Call
                if matches!(i.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32)
                    && i.near_branch_target() != i.next_ip() =>
            {
                starts.push(i.near_branch_target());
            }
            Mnemonic::Endbr64 | Mnemonic::Endbr32 => starts.push(i.ip()),
            Mnemonic::Push if matches!(i.op0_register(), Register::RBP | Register::EBP) => {
                pushed_at = Some(i.ip());
            }
            Mnemonic::Mov
                if matches!(i.op0_register(), Register::RBP | Register::EBP)
                    && matches!(i.op1_register(), Register::RSP | Register::ESP) =>
            {
                // The push may itself follow a landing pad, which then is the start.
                starts
                    .extend(pushed.filter(|&at| starts.last().is_none_or(|&last| at.wrapping_sub(last) > 4)));
            }
            Mnemonic::Ret => {
                after_return = true;
                padded = false;
                continue;
            }
            Mnemonic::Nop | Mnemonic::Int3 if after_return => {
                padded = true;
                continue;
            }
            _ => {}
        }
        if after_return && padded && i.ip() % 16 == 0 && !i.is_invalid() {
            starts.push(i.ip());
        }
        after_return = false;
    }
}

fn sweep_a64(bytes: &[u8], base: u64, starts: &mut Vec<u64>) {
    let mut ended = true;
    for (index, word) in bytes.chunks_exact(4).enumerate() {
        let Ok(word) = <[u8; 4]>::try_from(word) else { break };
        let word = u32::from_le_bytes(word);
        let here = base.wrapping_add(index as u64 * 4);
        let padding = word == 0xd503_201f || word == 0;
        // bl
        if word & 0xfc00_0000 == 0x9400_0000 {
            let offset = i64::from((word << 6).cast_signed() >> 6) * 4;
            starts.push(here.wrapping_add_signed(offset));
        }
        // bti c, paciasp; stp x29, x30, [sp, #-n]! or sub sp, sp, #n where the code before has ended
        let pad = matches!(word, 0xd503_245f | 0xd503_233f);
        let prologue = word & 0xffc0_7fff == 0xa980_7bfd || word & 0xff80_03ff == 0xd100_03ff;
        if ended && (pad || prologue) {
            starts.push(here);
        }
        // ret, b; padding changes nothing
        ended = word & 0xffff_fc1f == 0xd65f_0000 || word & 0xfc00_0000 == 0x1400_0000 || ended && padding;
    }
}
