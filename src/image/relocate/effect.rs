//! What the relocation types of each machine mean, as far as debug sections use them.

use object::elf::{self, Machine, RelocationType};

/// What a relocation does to its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    None,
    /// Symbol plus addend.
    Set,
    /// The field plus symbol plus addend (RISC-V, `LoongArch`: label differences; SH, Xtensa: what has been added).
    Add,
    /// The field minus symbol minus addend.
    Sub,
}

/// What a relocation type of a machine does, and to how many bytes. Only those that compilers use in debug
/// sections for offsets, addresses and differences; thread-local offsets in expressions are not among them.
pub(super) fn effect(machine: Machine, is_64: bool, kind: RelocationType) -> Option<(Effect, usize)> {
    use Effect::{Add, None as Nothing, Set, Sub};
    if kind.0 == 0 {
        // The null type is 0 on every machine.
        return Some((Nothing, 0));
    }
    Some(match machine {
        elf::EM_X86_64 => match kind {
            elf::R_X86_64_64 => (Set, 8),
            elf::R_X86_64_32 | elf::R_X86_64_32S => (Set, 4),
            elf::R_X86_64_16 => (Set, 2),
            elf::R_X86_64_8 => (Set, 1),
            _ => return None,
        },
        elf::EM_386 | elf::EM_IAMCU => match kind {
            elf::R_386_32 => (Set, 4),
            elf::R_386_16 => (Set, 2),
            elf::R_386_8 => (Set, 1),
            _ => return None,
        },
        elf::EM_AARCH64 => match kind {
            // A second null type, from a draft of the ABI.
            RelocationType(256) => (Nothing, 0),
            elf::R_AARCH64_P32_ABS32 if !is_64 => (Set, 4),
            elf::R_AARCH64_ABS64 => (Set, 8),
            elf::R_AARCH64_ABS32 => (Set, 4),
            elf::R_AARCH64_ABS16 => (Set, 2),
            _ => return None,
        },
        elf::EM_ARM => match kind {
            elf::R_ARM_ABS32 => (Set, 4),
            elf::R_ARM_ABS16 => (Set, 2),
            elf::R_ARM_ABS8 => (Set, 1),
            _ => return None,
        },
        elf::EM_RISCV => match kind {
            elf::R_RISCV_64 => (Set, 8),
            elf::R_RISCV_32 | elf::R_RISCV_SET32 => (Set, 4),
            elf::R_RISCV_SET16 => (Set, 2),
            elf::R_RISCV_SET8 => (Set, 1),
            elf::R_RISCV_ADD64 => (Add, 8),
            elf::R_RISCV_ADD32 => (Add, 4),
            elf::R_RISCV_ADD16 => (Add, 2),
            elf::R_RISCV_ADD8 => (Add, 1),
            elf::R_RISCV_SUB64 => (Sub, 8),
            elf::R_RISCV_SUB32 => (Sub, 4),
            elf::R_RISCV_SUB16 => (Sub, 2),
            elf::R_RISCV_SUB8 => (Sub, 1),
            _ => return None,
        },
        elf::EM_LOONGARCH => match kind {
            elf::R_LARCH_64 => (Set, 8),
            elf::R_LARCH_32 => (Set, 4),
            elf::R_LARCH_ADD64 => (Add, 8),
            elf::R_LARCH_ADD32 => (Add, 4),
            elf::R_LARCH_ADD16 => (Add, 2),
            elf::R_LARCH_ADD8 => (Add, 1),
            elf::R_LARCH_SUB64 => (Sub, 8),
            elf::R_LARCH_SUB32 => (Sub, 4),
            elf::R_LARCH_SUB16 => (Sub, 2),
            elf::R_LARCH_SUB8 => (Sub, 1),
            _ => return None,
        },
        elf::EM_PPC => match kind {
            elf::R_PPC_ADDR32 | elf::R_PPC_UADDR32 => (Set, 4),
            elf::R_PPC_ADDR16 | elf::R_PPC_UADDR16 => (Set, 2),
            _ => return None,
        },
        elf::EM_PPC64 => match kind {
            elf::R_PPC64_ADDR64 | elf::R_PPC64_UADDR64 => (Set, 8),
            elf::R_PPC64_ADDR32 | elf::R_PPC64_UADDR32 => (Set, 4),
            elf::R_PPC64_ADDR16 | elf::R_PPC64_UADDR16 => (Set, 2),
            _ => return None,
        },
        elf::EM_S390 => match kind {
            elf::R_390_64 => (Set, 8),
            elf::R_390_32 => (Set, 4),
            elf::R_390_16 => (Set, 2),
            elf::R_390_8 => (Set, 1),
            _ => return None,
        },
        // 64-bit MIPS packs three types into the field; only the first is used for data.
        elf::EM_MIPS => match kind {
            elf::R_MIPS_64 => (Set, 8),
            elf::R_MIPS_32 => (Set, 4),
            elf::R_MIPS_16 => (Set, 2),
            _ => return None,
        },
        elf::EM_SPARC | elf::EM_SPARC32PLUS | elf::EM_SPARCV9 => match kind {
            elf::R_SPARC_64 | elf::R_SPARC_UA64 => (Set, 8),
            elf::R_SPARC_32 | elf::R_SPARC_UA32 => (Set, 4),
            elf::R_SPARC_16 | elf::R_SPARC_UA16 => (Set, 2),
            elf::R_SPARC_8 => (Set, 1),
            _ => return None,
        },
        elf::EM_ALPHA => match kind {
            elf::R_ALPHA_REFQUAD => (Set, 8),
            elf::R_ALPHA_REFLONG => (Set, 4),
            _ => return None,
        },
        elf::EM_IA_64 => match kind {
            // DWARF offsets are section-relative there, which comes to the same in a relocatable file.
            elf::R_IA64_DIR64LSB
            | elf::R_IA64_DIR64MSB
            | elf::R_IA64_SECREL64LSB
            | elf::R_IA64_SECREL64MSB => (Set, 8),
            elf::R_IA64_DIR32LSB
            | elf::R_IA64_DIR32MSB
            | elf::R_IA64_SECREL32LSB
            | elf::R_IA64_SECREL32MSB => (Set, 4),
            _ => return None,
        },
        elf::EM_PARISC => match kind {
            elf::R_PARISC_DIR64 => (Set, 8),
            elf::R_PARISC_DIR32 | elf::R_PARISC_SECREL32 => (Set, 4),
            _ => return None,
        },
        elf::EM_68K => match kind {
            elf::R_68K_32 => (Set, 4),
            elf::R_68K_16 => (Set, 2),
            elf::R_68K_8 => (Set, 1),
            _ => return None,
        },
        // These keep a part of the addend in the field, although their tables have room for it.
        elf::EM_SH if kind == elf::R_SH_DIR32 => (Add, 4),
        elf::EM_XTENSA if kind == elf::R_XTENSA_32 => (Add, 4),
        elf::EM_HEXAGON if kind == elf::R_HEX_32 => (Set, 4),
        elf::EM_AVR => match kind {
            elf::R_AVR_32 => (Set, 4),
            elf::R_AVR_16 => (Set, 2),
            _ => return None,
        },
        elf::EM_MSP430 => match kind {
            elf::R_MSP430_32 => (Set, 4),
            elf::R_MSP430_16_BYTE => (Set, 2),
            _ => return None,
        },
        elf::EM_BPF => match kind {
            // R_BPF_64_ABS64, R_BPF_64_ABS32 and R_BPF_64_NODYLD32; the named ones are for instructions.
            RelocationType(2) => (Set, 8),
            RelocationType(3 | 4) => (Set, 4),
            _ => return None,
        },
        elf::EM_CSKY if kind == elf::R_CKCORE_ADDR32 => (Set, 4),
        _ => return None,
    })
}
