//! Which relocations make pointers, by processor.

use crate::image::Image;
use crate::image::bytes::Format;
use object::elf;

/// The relocation types of a processor that make pointers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    pub(super) relative: u32,
    /// The address of a symbol plus addend, in a word.
    pub(super) absolute: u32,
    /// The address of a symbol, in the global offset table.
    pub(super) global: u32,
    pub(super) jump_slot: u32,
    /// MIPS has one type for relative and symbolic relocations and tells them by the symbol.
    pub(super) needs_symbol_zero: bool,
    mips64: bool,
}

impl Kinds {
    pub(super) fn of(image: &Image) -> Option<Self> {
        let wide = image.header.is_64;
        let kinds = |relative, absolute, global, jump_slot| {
            Some(Self { relative, absolute, global, jump_slot, needs_symbol_zero: false, mips64: false })
        };
        match image.header.machine {
            elf::EM_X86_64 if wide => kinds(8, 1, 6, 7),
            elf::EM_X86_64 => kinds(8, 10, 6, 7),
            elf::EM_386 => kinds(8, 1, 6, 7),
            elf::EM_AARCH64 if wide => kinds(1027, 257, 1025, 1026),
            elf::EM_AARCH64 => kinds(183, 1, 181, 182),
            elf::EM_ARM => kinds(23, 2, 21, 22),
            // RISC-V and LoongArch fill the global offset table with the plain absolute type.
            elf::EM_RISCV | elf::EM_LOONGARCH => {
                let absolute = if wide { 2 } else { 1 };
                kinds(3, absolute, absolute, 5)
            }
            elf::EM_PPC64 => kinds(22, 38, 20, 21),
            elf::EM_PPC => kinds(22, 1, 20, 21),
            elf::EM_S390 => kinds(12, if wide { 22 } else { 4 }, 10, 11),
            elf::EM_SPARC | elf::EM_SPARC32PLUS => kinds(22, 3, 20, 21),
            elf::EM_SPARCV9 => kinds(22, 32, 20, 21),
            elf::EM_MIPS | elf::EM_MIPS_RS3_LE => Some(Self {
                relative: 3,
                absolute: 3,
                global: 51,
                jump_slot: 127,
                needs_symbol_zero: true,
                mips64: wide,
            }),
            _ => None,
        }
    }

    pub(super) fn is_symbolic(self, kind: u32) -> bool {
        kind == self.absolute || kind == self.global || kind == self.jump_slot
    }

    /// Type and symbol of `r_info`.
    pub(super) fn split(self, info: u64, format: Format) -> (u32, u32) {
        if self.mips64 {
            // Symbol, then a special symbol and three types of one byte each, in this order in either byte order.
            return if format.little_endian {
                ((info >> 56) as u32, info as u32)
            } else {
                ((info & 0xff) as u32, (info >> 32) as u32)
            };
        }
        if format.is_64 {
            (info as u32, (info >> 32) as u32)
        } else {
            ((info & 0xff) as u32, (info >> 8) as u32)
        }
    }
}
