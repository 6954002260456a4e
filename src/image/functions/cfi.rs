//! What a function's frame program tells without being run: which registers it saves, and whether the
//! frame is already set up at the first byte.

use super::Registers;
use gimli::{
    BaseAddresses, CallFrameInstruction, CommonInformationEntry, EhFrame, EndianSlice, FrameDescriptionEntry,
    RunTimeEndian,
};

pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Longest frame program read, in instructions. Real ones have a few dozen; hand-written
/// assembly with a row an instruction may have thousands, but its prologue comes first.
const PROGRAM_LIMIT: usize = 4096;

/// Longest common program read, in instructions. Real ones have two to five; a damaged table may name
/// another common entry for every function, all of them in the same bytes.
const COMMON_LIMIT: usize = 64;

/// Size in bytes (in units of the code alignment on other machines) of the instruction that may stand
/// before an entry point proper: `endbr64`, `bti c`.
const LANDING_PAD: u32 = 4;

/// What one frame program tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Program {
    /// The frame is set up before the first byte: a split-off part (or a PLT entry), not a function's beginning.
    pub cold: bool,
    /// A callee-saved register of the higher ones is saved.
    pub saves_high: bool,
    /// The first callee-saved register is saved.
    pub saves_low: bool,
    /// The frame is addressed through the frame pointer somewhere.
    pub frame_pointer: bool,
    /// The return address is undefined from the first instruction on: nobody called this code. Marks an entry point.
    pub outermost: bool,
}

/// Reads the program of one entry. Damage inside it ends the reading: what came before stands.
pub(super) fn read<'a>(
    fde: &FrameDescriptionEntry<Slice<'a>>,
    section: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    registers: Option<Registers>,
) -> Program {
    let mut program = Program::default();
    let mut at_start = true;
    let mut advanced = 0u32;
    let return_address = fde.cie().return_address_register();
    let mut instructions = fde.instructions(section, bases);
    for _ in 0..PROGRAM_LIMIT {
        let Ok(Some(instruction)) = instructions.next() else { break };
        match instruction {
            CallFrameInstruction::SetLoc { .. } => {
                at_start = false;
                advanced = u32::MAX;
            }
            CallFrameInstruction::AdvanceLoc { delta } => {
                at_start = false;
                advanced = advanced.saturating_add(delta);
            }
            CallFrameInstruction::DefCfa { register, .. }
            | CallFrameInstruction::DefCfaSf { register, .. }
            | CallFrameInstruction::DefCfaRegister { register } => {
                program.cold |= at_start;
                program.frame_pointer |= registers.is_some_and(|r| r.frame == register.0);
            }
            CallFrameInstruction::DefCfaOffset { .. }
            | CallFrameInstruction::DefCfaOffsetSf { .. }
            | CallFrameInstruction::DefCfaExpression { .. } => program.cold |= at_start,
            CallFrameInstruction::Offset { register, .. }
            | CallFrameInstruction::OffsetExtendedSf { register, .. }
            | CallFrameInstruction::Register { dest_register: register, .. }
            | CallFrameInstruction::Expression { register, .. } => {
                if let Some(registers) = registers {
                    program.saves_high |= registers.is_high(register.0);
                    program.saves_low |= registers.low == register.0;
                }
            }
            CallFrameInstruction::Undefined { register } => {
                program.outermost |= advanced <= LANDING_PAD && register == return_address;
            }
            _ => {}
        }
        // Nothing that follows can change any answer.
        if !at_start && program.saves_high && program.saves_low && program.frame_pointer {
            break;
        }
    }
    program
}

/// Whether the instructions all functions of a common entry begin with say that nobody called them.
/// This is how the assembler writes it for `_start` of glibc.
pub(super) fn is_outermost<'a>(
    cie: &CommonInformationEntry<Slice<'a>>,
    section: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
) -> bool {
    let mut instructions = cie.instructions(section, bases);
    for _ in 0..COMMON_LIMIT {
        match instructions.next() {
            Ok(Some(CallFrameInstruction::Undefined { register }))
                if register == cie.return_address_register() =>
            {
                return true;
            }
            Ok(Some(_)) => {}
            _ => break,
        }
    }
    false
}
