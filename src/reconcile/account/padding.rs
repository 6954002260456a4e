//! Which bytes of the text are padding, and the text read only where that is asked.

use crate::image::Image;
use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};
use object::elf;
use std::ops::Range;

/// Most bytes of text looked at together.
const WINDOW: u64 = 64 << 10;
/// Most bytes read ahead.
const AHEAD: u64 = 64 << 10;
/// Gaps this close together, in bytes, are fetched by one read. From memory that costs as much as a second call; from a disk
/// it is one request for many.
const NEAR: u64 = 8 << 10;

/// The text in the gaps between what is described, fetched gap by gap.
pub(super) struct TextWindow<'a> {
    pub(super) image: &'a Image,
    /// Where bytes will be asked for, ascending.
    gaps: &'a [Range<u64>],
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> TextWindow<'a> {
    pub(super) fn new(image: &'a Image, gaps: &'a [Range<u64>]) -> Self {
        Self { image, gaps, start: 0, bytes: Vec::new() }
    }

    /// How many bytes at the start of the range are padding: nop, int3 or zero.
    pub(super) fn padding_prefix(&mut self, range: &Range<u64>) -> u64 {
        let machine = self.image.header.machine;
        let mut done = 0;
        while range.start + done < range.end {
            let at = range.start + done;
            let size = (range.end - at).min(WINDOW);
            let Some(bytes) = self.read(at, size) else { return done };
            let here = padding_bytes(bytes, machine) as u64;
            done += here;
            // An instruction cut by the window is looked at again from its start.
            if here == 0 || (here < size && size < WINDOW) || here + 16 < size {
                return done;
            }
        }
        done
    }

    /// The bytes at an address, if the file holds them.
    fn read(&mut self, at: u64, size: u64) -> Option<&[u8]> {
        let held = |window: &Self| {
            let from = at.checked_sub(window.start)? as usize;
            let to = from.checked_add(size as usize)?;
            (to <= window.bytes.len()).then_some(from..to)
        };
        if held(self).is_none() {
            let whole = self.ahead(at, size);
            if !(self.fetch(at, whole) || whole > size && self.fetch(at, size)) {
                self.bytes.clear();
                return None;
            }
        }
        self.bytes.get(held(self)?)
    }

    fn fetch(&mut self, at: u64, size: u64) -> bool {
        self.start = at;
        self.image.read_address_into(at, size, &mut self.bytes)
    }

    /// How much is read in one go: the rest of the gap, and gaps that follow closely.
    fn ahead(&self, at: u64, size: u64) -> u64 {
        let (most, mut end) = (at.saturating_add(AHEAD), at.saturating_add(size));
        let first = self.gaps.partition_point(|gap| gap.end <= at);
        for gap in &self.gaps[first..] {
            if end >= most || gap.start > end.saturating_add(NEAR) {
                break;
            }
            end = end.max(gap.end.min(most));
        }
        end - at
    }
}

/// Bytes at the start of x86 code that fill it one by one: zero, `int3`, and the one-byte `nop`. Pages are filled so.
fn filler(bytes: &[u8]) -> usize {
    let other = |byte: u8| u8::from(byte != 0) & u8::from(byte != 0xcc) & u8::from(byte != 0x90);
    // Blocks without a branch in them, which the compiler makes vectors of.
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let filled = |block: &&[u8; BLOCK]| block.iter().fold(0, |any, &byte| any | other(byte)) == 0;
    let done = blocks.iter().take_while(filled).count() * BLOCK;
    done + bytes[done..].iter().take_while(|&&byte| other(byte) == 0).count()
}

/// Bytes tested together.
const BLOCK: usize = 32;

/// How many bytes at the start of code are padding on a machine.
pub(super) fn padding_bytes(bytes: &[u8], machine: elf::Machine) -> usize {
    match machine {
        elf::EM_X86_64 | elf::EM_386 => {
            let bitness = if machine == elf::EM_X86_64 { 64 } else { 32 };
            let mut at = 0;
            while at < bytes.len() {
                at += filler(&bytes[at..]);
                if at == bytes.len() {
                    break;
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

    #[test]
    fn gcc_padding_is_nops_of_any_length_and_nothing_else() {
        let nops = [0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x66, 0x90, 0x90, 0xcc, 0, 0];
        assert_eq!(padding_bytes(&nops, elf::EM_X86_64), nops.len());
        // push rbp behind two nops
        assert_eq!(padding_bytes(&[0x90, 0x90, 0x55, 0x90], elf::EM_X86_64), 2);
        assert_eq!(padding_bytes(&[0x1f, 0x20, 0x03, 0xd5, 0, 0, 0, 0, 1], elf::EM_AARCH64), 8);
    }

    #[test]
    fn runs_of_filler_end_at_the_first_other_byte_whatever_the_block() {
        for len in 0..100 {
            let mut bytes = vec![0xcc; len];
            bytes.iter_mut().step_by(3).for_each(|byte| *byte = 0);
            bytes.push(0x55);
            bytes.extend([0x90; 40]);
            assert_eq!(padding_bytes(&bytes, elf::EM_X86_64), len);
        }
    }
}
