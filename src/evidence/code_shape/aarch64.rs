//! Counting in A64 code, by masks and values on whole words (Arm Architecture Reference Manual for A-profile,
//! C4.1 "A64 instruction set encoding"). No decoder is needed: the instructions that matter are few.

use super::features::{Event, Features, Scratch, slot_key};

/// How many instructions may belong to the entry block.
const ENTRY_BLOCK: u32 = 28;

/// The stack pointer's number where a base register is meant.
const SP: u32 = 31;
/// The frame pointer (AAPCS64, section 6.1.1).
const FP: u32 = 29;
/// Place in the list of argument registers of the first floating-point register.
const FIRST_FLOAT: u32 = 8;

/// A load or store of one register or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    load: bool,
    /// The general registers moved, or vector registers with 32 added.
    first: u32,
    second: Option<u32>,
    base: u32,
    /// Bytes moved by one register.
    width: i64,
    /// Byte offset; `None` for an index register or for an address that is written back.
    offset: Option<i64>,
}

/// Counts over the function whose code this is, in the byte order of instructions (always little-endian).
pub(super) fn read(
    code: &[u8],
    start: u64,
    size: u64,
    frame_pointer: bool,
    scratch: &mut Scratch,
) -> Features {
    let mut reader = Reader {
        features: Features { frame_pointer, ..Features::default() },
        in_entry: true,
        entry_work: 0,
        overwritten: 0,
        first_slot: None,
        trailing: 0,
        begun: false,
        epilogue: None,
    };
    scratch.clear();
    for (index, word) in code.chunks_exact(4).enumerate() {
        let Ok(word) = <[u8; 4]>::try_from(word) else { break };
        reader.see(u32::from_le_bytes(word), (index * 4) as u32, start, size, scratch);
    }
    reader.features.redundant = scratch.count_redundant();
    reader.features
}

struct Reader {
    features: Features,
    in_entry: bool,
    entry_work: u32,
    /// Argument registers that have been written, one bit each.
    overwritten: u32,
    first_slot: Option<i64>,
    trailing: u32,
    begun: bool,
    /// Number of the last instruction that restored frame pointer and link register.
    epilogue: Option<u32>,
}

fn bits(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}

fn signed(word: u32, low: u32, count: u32) -> i64 {
    let value = i64::from(bits(word, low, count));
    if value >> (count - 1) & 1 == 1 { value - (1 << count) } else { value }
}

impl Reader {
    fn see(&mut self, word: u32, at: u32, start: u64, size: u64, scratch: &mut Scratch) {
        // HINT: nop, bti, paciasp, autiasp and their like.
        if word & 0xffff_f01f == 0xd503_201f {
            let nop = word == 0xd503_201f;
            if self.begun && nop {
                self.trailing += 1;
            }
            return;
        }
        // Zeros between functions are no instructions.
        if word >> 16 == 0 {
            self.trailing += u32::from(self.begun);
            return;
        }
        self.begun = true;
        self.features.instructions += 1 + self.trailing;
        self.trailing = 0;
        // BRK: LLVM writes `llvm.ubsantrap` with the number of the check below 0x55.. (`AArch64InstrInfo.td`).
        if word & 0xffe0_001f == 0xd420_0000 && bits(word, 13, 8) == 0x55 {
            self.features.trap(bits(word, 5, 8));
        }
        if self.branch(word, at, start, size, scratch) {
            return;
        }
        // add/sub (immediate) that writes sp; `mov x29, sp` is `add x29, sp, #0`.
        if word & 0x1f00_0000 == 0x1100_0000 && bits(word, 31, 1) == 1 {
            let (to, from) = (bits(word, 0, 5), bits(word, 5, 5));
            if from == SP && to == FP && bits(word, 30, 1) == 0 {
                self.features.frame_pointer = true;
                return;
            }
            if to == SP && bits(word, 29, 1) == 0 {
                scratch.events.push((at, Event::Boundary));
                return;
            }
        }
        // Arithmetic on packed integers: Advanced SIMD three same, two registers, shift by immediate.
        let packed =
            word & 0x9f20_0400 == 0x0e20_0400 || word & 0x9f80_0400 == 0x0f00_0400 && bits(word, 19, 4) != 0;
        self.features.packed += u32::from(packed);
        let access = access(word);
        if self.in_entry {
            self.entry(word, access);
        }
        let Some(Access { load, base, offset, first, second, width }) = access else { return };
        self.features.uses_high |= (20..=28).contains(&base);
        if base != SP && !(base == FP && self.features.frame_pointer) {
            return;
        }
        // The pair of frame pointer and link register is not a variable.
        if first == FP && second == Some(30) {
            if load {
                self.epilogue = Some(self.features.instructions);
            }
            return;
        }
        self.features.slots += 1;
        let Some(offset) = offset else { return };
        let slot = slot_key(offset, width.cast_unsigned(), base == SP);
        if load {
            self.features.read_back |= self.first_slot == Some(slot);
        }
        scratch.events.push((at, if load { Event::Load(slot) } else { Event::Store(slot) }));
    }

    /// Branches, calls and returns; true if the word is one.
    fn branch(&mut self, word: u32, at: u32, start: u64, size: u64, scratch: &mut Scratch) -> bool {
        let here = start.wrapping_add(u64::from(at));
        let target = |offset: i64| here.wrapping_add_signed(offset * 4);
        let mut inside = |target: u64| {
            let into = target.wrapping_sub(start);
            if into < size {
                scratch.targets.push(into as u32);
            }
            into < size
        };
        match word {
            // b.cond, cbz, cbnz
            _ if word & 0xff00_0010 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => {
                inside(target(signed(word, 5, 19)));
                self.in_entry = false;
            }
            // tbz, tbnz
            _ if word & 0x7e00_0000 == 0x3600_0000 => {
                inside(target(signed(word, 5, 14)));
                self.in_entry = false;
            }
            // b
            _ if word & 0xfc00_0000 == 0x1400_0000 => {
                let target = target(signed(word, 0, 26));
                if !inside(target) {
                    self.features.jump_out(target);
                }
                self.in_entry = false;
            }
            // bl; br, blr, ret and their authenticated forms. A call before anything else is a profiling hook.
            _ if word & 0xfc00_0000 == 0x9400_0000 => self.in_entry &= self.entry_work == 0,
            _ if word & 0xfe00_0000 == 0xd600_0000 => {
                // br right after the frame was taken down: a jump table is used while it stands.
                let taken_down = self.epilogue.is_some_and(|then| self.features.instructions <= then + 4);
                self.features.jumps_through_pointer |= taken_down && word & 0xffff_fc1f == 0xd61f_0000;
                self.in_entry = false;
            }
            _ => return false,
        }
        scratch.events.push((at, Event::Boundary));
        true
    }

    /// Follows the argument registers through the entry block.
    fn entry(&mut self, word: u32, access: Option<Access>) {
        if self.features.instructions > ENTRY_BLOCK {
            self.in_entry = false;
            return;
        }
        if let Some(access) = access {
            if access.first == FP && access.second == Some(30) {
                return;
            }
            self.entry_work += 1;
            let registers = [Some(access.first), access.second].into_iter().flatten();
            if access.load {
                self.features.argument_used |= self.live(access.base).is_some();
                registers.for_each(|register| self.write(register));
                return;
            }
            if access.base != SP && access.base != FP {
                self.features.argument_used |= self.live(access.base).is_some();
                return;
            }
            let Some(offset) = access.offset else {
                self.saves(access);
                return;
            };
            self.saves(access);
            for (place, register) in (0i64..).zip(registers) {
                let Some(argument) = self.live(register) else { continue };
                self.features.any_stored = true;
                if argument == 0 || argument == FIRST_FLOAT && access.second.is_none() {
                    self.features.first_is_float = argument == FIRST_FLOAT
                        && (self.features.first_is_float || !self.features.first_stored);
                    self.features.first_stored = true;
                    if self.first_slot.is_none() || argument == 0 {
                        self.first_slot = Some(slot_key(
                            offset + access.width * place,
                            access.width.cast_unsigned(),
                            access.base == SP,
                        ));
                    }
                }
            }
            return;
        }
        self.entry_work += 1;
        // mov (register) is orr rd, zr, rm.
        if word & 0x7fe0_ffe0 == 0x2a00_03e0 {
            let kept = (19..29).contains(&bits(word, 0, 5));
            self.features.argument_used |= kept && self.live(bits(word, 16, 5)).is_some();
        }
        // Data processing writes its first register; compares write the zero register.
        let data = word & 0x1c00_0000 == 0x1000_0000 || word & 0x0e00_0000 == 0x0a00_0000;
        if data {
            self.write(bits(word, 0, 5));
        }
        // Floating-point data processing.
        if word & 0x0e00_0000 == 0x0e00_0000 {
            self.write(bits(word, 0, 5) + 32);
        }
        // subs/ands with a zero register as destination: a comparison of an argument.
        let compares = word & 0x7f00_001f == 0x7100_001f || word & 0x7f20_001f == 0x6b00_001f;
        self.features.argument_used |= compares && self.live(bits(word, 5, 5)).is_some();
    }

    fn saves(&mut self, access: Access) {
        for register in [Some(access.first), access.second].into_iter().flatten() {
            self.features.saves_low |= register == 19;
            self.features.saves_high |= (20..29).contains(&register);
        }
    }

    fn write(&mut self, register: u32) {
        if let Some(argument) = argument_of(register) {
            self.overwritten |= 1 << argument;
        }
    }

    /// Which argument a register still holds.
    fn live(&self, register: u32) -> Option<u32> {
        argument_of(register).filter(|argument| self.overwritten >> argument & 1 == 0)
    }
}

/// `x0`–`x7` are arguments 0–7, `v0`–`v7` are 8–15.
fn argument_of(register: u32) -> Option<u32> {
    match register {
        0..8 => Some(register),
        32..40 => Some(register - 32 + FIRST_FLOAT),
        _ => None,
    }
}

/// Loads and stores of one register (with an offset, or an index) and of pairs.
fn access(word: u32) -> Option<Access> {
    let vector = bits(word, 26, 1) * 32;
    let first = bits(word, 0, 5) + vector;
    let base = bits(word, 5, 5);
    // Load/store pair: offset, pre- and post-index, no-allocate.
    if word & 0x3a00_0000 == 0x2800_0000 {
        let size = if vector > 0 { 4 << bits(word, 30, 2) } else { 4 << bits(word, 31, 1) };
        let plain = bits(word, 23, 1) == 0;
        return Some(Access {
            load: bits(word, 22, 1) == 1,
            first,
            second: Some(bits(word, 10, 5) + vector),
            base,
            width: size,
            offset: plain.then_some(signed(word, 15, 7) * size),
        });
    }
    // Load/store register.
    if word & 0x3a00_0000 != 0x3800_0000 {
        return None;
    }
    let opcode = bits(word, 22, 2);
    let scale = bits(word, 30, 2) + if vector > 0 && opcode >= 2 { 4 } else { 0 };
    // Of vector registers the quad form has opcode 2 (store) and 3 (load).
    let load = if vector > 0 { opcode & 1 == 1 } else { opcode != 0 };
    let offset = if bits(word, 24, 1) == 1 {
        Some(i64::from(bits(word, 10, 12)) << scale)
    } else if bits(word, 21, 1) == 0 && bits(word, 10, 2) == 0 {
        Some(signed(word, 12, 9))
    } else {
        None
    };
    Some(Access { load, first, second: None, base, width: 1 << scale, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(words: &[u32]) -> Features {
        let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        read(&code, 0x1000, code.len() as u64, false, &mut Scratch::default())
    }

    #[test]
    fn loads_and_stores_are_taken_apart() {
        // str x0, [sp, #24]
        let store = access(0xf900_0fe0).unwrap();
        assert_eq!((store.load, store.first, store.base, store.offset), (false, 0, SP, Some(24)));
        // ldur w1, [x29, #-4]
        let load = access(0xb85f_c3a1).unwrap();
        assert_eq!((load.load, load.first, load.base, load.offset), (true, 1, FP, Some(-4)));
        // stp x29, x30, [sp, #-48]!
        let pair = access(0xa9bd_7bfd).unwrap();
        assert_eq!((pair.load, pair.first, pair.second, pair.offset), (false, 29, Some(30), None));
        // ldp x19, x20, [sp, #16]
        let pair = access(0xa941_53f3).unwrap();
        assert_eq!((pair.load, pair.first, pair.second, pair.offset), (true, 19, Some(20), Some(16)));
        // str d0, [sp, #8]
        let float = access(0xfd00_07e0).unwrap();
        assert_eq!((float.load, float.first, float.offset), (false, 32, Some(8)));
        // add x0, x0, x1
        assert_eq!(access(0x8b01_0000), None);
    }

    #[test]
    fn an_unoptimized_function_of_gcc() {
        // long f(long *p) { return *p + 1; } by gcc -O0
        let f = features(&[
            0xd100_43ff, // sub sp, sp, #16
            0xf900_07e0, // str x0, [sp, #8]
            0xf940_07e0, // ldr x0, [sp, #8]
            0xf940_0000, // ldr x0, [x0]
            0x9100_0400, // add x0, x0, #1
            0x9100_43ff, // add sp, sp, #16
            0xd65f_03c0, // ret
        ]);
        assert!(f.first_stored && f.read_back && !f.argument_used);
        assert_eq!((f.instructions, f.slots, f.redundant), (7, 2, 1));
    }

    #[test]
    fn a_tail_call_and_an_argument_used_where_it_came() {
        let f = features(&[
            0xf940_0401, // ldr x1, [x0, #8]
            0xb400_0041, // cbz x1, +8
            0x1400_1000, // b far away
            0xd65f_03c0, // ret
        ]);
        assert!(f.argument_used && !f.first_stored);
        assert_eq!(f.jumps_out[0], 0x1008 + 0x4000);
    }

    #[test]
    fn padding_and_landing_pads_do_not_count() {
        let f = features(&[0xd503_245f, 0xd503_233f, 0xd65f_03c0, 0xd503_201f, 0]);
        assert_eq!(f.instructions, 1);
    }
}
