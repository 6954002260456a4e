//! Stores of function addresses in `AArch64` code (Arm Architecture Reference Manual, C4.1).

use super::{Reach, Store};

/// What `code`, which begins at `address`, stores of known values into known variables, in its first function.
pub(super) fn stores(code: &[u8], address: u64, word_at: &dyn Fn(u64) -> Option<u64>) -> Vec<Store> {
    let mut known = [None; 32];
    let mut found = Vec::new();
    let mut reach = Reach::new(code, address);
    let words = code.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    for (word, at) in words.zip((address..).step_by(4)) {
        let (to, base) = (bits(word, 0, 5), bits(word, 5, 5));
        let of = |known: &[Option<u64>; 32], register: u32| known.get(register as usize).copied().flatten();
        let branch = |word: u32, from: u32, count: u32| {
            let words = i64::from(bits(word, from, count)) << (64 - count) >> (64 - count);
            at.wrapping_add_signed(words * 4)
        };
        let value = match word {
            // ret, br; b
            _ if word & 0xffbf_0000 == 0xd61f_0000 || word & 0xfc00_0000 == 0x1400_0000 => {
                if word >> 26 == 5 {
                    reach.to(branch(word, 0, 26));
                }
                if reach.ends_at(at.wrapping_add(4)) {
                    break;
                }
                known = [None; 32];
                continue;
            }
            // b.cond, cbz, cbnz; tbz, tbnz
            _ if word & 0xff00_0010 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => {
                reach.to(branch(word, 5, 19));
                continue;
            }
            _ if word & 0x7e00_0000 == 0x3600_0000 => {
                reach.to(branch(word, 5, 14));
                continue;
            }
            // bl, blr: nothing stays known.
            _ if word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_0000 == 0xd63f_0000 => {
                known = [None; 32];
                continue;
            }
            // adr, adrp
            _ if word & 0x1f00_0000 == 0x1000_0000 => {
                let low = u64::from(bits(word, 29, 2));
                let offset = ((u64::from(bits(word, 5, 19)) << 2 | low) << 43).cast_signed() >> 43;
                match word >> 31 {
                    0 => Some(at.wrapping_add_signed(offset)),
                    _ => Some((at & !0xfff).wrapping_add_signed(offset << 12)),
                }
            }
            // add (immediate)
            _ if word & 0xff80_0000 == 0x9100_0000 => {
                let shift = 12 * bits(word, 22, 1);
                of(&known, base).map(|from| from.wrapping_add(u64::from(bits(word, 10, 12)) << shift))
            }
            // mov (register), which is orr with the zero register
            _ if word & 0xffe0_ffe0 == 0xaa00_03e0 => of(&known, bits(word, 16, 5)),
            // ldr (unsigned offset): an entry of the global offset table
            _ if word & 0xffc0_0000 == 0xf940_0000 => {
                of(&known, base).and_then(|from| word_at(offset(word, from)))
            }
            // str (unsigned offset)
            _ if word & 0xffc0_0000 == 0xf900_0000 => {
                found.extend(of(&known, base).map(|from| offset(word, from)).zip(of(&known, to)));
                continue;
            }
            // stp (signed offset)
            _ if word & 0xffc0_0000 == 0xa900_0000 => {
                let by = (i64::from(bits(word, 15, 7)) << 57 >> 57) * 8;
                if let Some(start) = of(&known, base).map(|from| from.wrapping_add_signed(by)) {
                    found.extend(of(&known, to).map(|value| (start, value)));
                    found.extend(of(&known, bits(word, 10, 5)).map(|value| (start.wrapping_add(8), value)));
                }
                continue;
            }
            // Whatever else there is may write the register at its end, or, as a load of a pair, the second, too.
            _ => {
                if word & 0x3a00_0000 == 0x2800_0000 {
                    forget(&mut known, bits(word, 10, 5));
                }
                None
            }
        };
        if let Some(register) = known.get_mut(to as usize).filter(|_| to != 31) {
            *register = value;
        }
    }
    found
}

fn forget(known: &mut [Option<u64>; 32], register: u32) {
    if let Some(value) = known.get_mut(register as usize) {
        *value = None;
    }
}

/// The address of a scaled access of eight bytes.
fn offset(word: u32, from: u64) -> u64 {
    from.wrapping_add(u64::from(bits(word, 10, 12)) * 8)
}

fn bits(word: u32, from: u32, count: u32) -> u32 {
    (word >> from) & ((1 << count) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What gcc -O2 makes of a filter's initialisation.
    #[test]
    fn page_and_offset() {
        let code: Vec<u8> = [
            0xb000_0000u32, // adrp x0, 0x2000 (from 0x1000)
            0xf940_0801,    // ldr x1, [x0, #16]
            0xb000_0002,    // adrp x2, 0x2000
            0xf900_0c41,    // str x1, [x2, #24]
            0x9000_0001,    // adrp x1, 0x1000
            0x9104_0021,    // add x1, x1, #0x100
            0xf900_0801,    // str x1, [x0, #16]
            0xa900_0401,    // stp x1, x1, [x0]
            0xd65f_03c0,    // ret
            0xf900_0801,    // another function's
        ]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
        let found = stores(&code, 0x1000, &|_| None);
        assert_eq!(found, [(0x2010, 0x1100), (0x2000, 0x1100), (0x2008, 0x1100)]);
    }

    /// A call leaves nothing known, a branch forward is followed by what it passes over.
    #[test]
    fn calls_and_branches() {
        let code: Vec<u8> = [
            0x9000_0001u32, // adrp x1, 0x1000
            0xd63f_0040,    // blr x2
            0xb000_0000,    // adrp x0, 0x2000
            0xf900_0001,    // str x1, [x0]
            0x3400_0043,    // cbz w3, +8
            0xd65f_03c0,    // ret
            0xb000_0000,    // adrp x0, 0x2000
            0x9000_0001,    // adrp x1, 0x1000
            0xf900_0401,    // str x1, [x0, #8]
            0xd65f_03c0,    // ret
            0xf900_0801,    // another function's
        ]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
        assert_eq!(stores(&code, 0x1000, &|_| None), [(0x2008, 0x1000)]);
    }
}
