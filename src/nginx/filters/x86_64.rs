//! Stores of function addresses in x86-64 code.

use super::{Reach, Store};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use std::collections::HashMap;

/// What `code`, which begins at `address`, stores of known values into known variables, in its first function.
pub(super) fn stores(code: &[u8], address: u64, word_at: &dyn Fn(u64) -> Option<u64>) -> Vec<Store> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut infos = InstructionInfoFactory::new();
    let mut known: HashMap<Register, u64> = HashMap::new();
    let mut found = Vec::new();
    let mut reach = Reach::new(code, address);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            break;
        }
        let branches = instruction.op0_kind() == OpKind::NearBranch64;
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::ConditionalBranch if branches => reach.to(instruction.near_branch64()),
            // A call leaves nothing known in the registers it may use.
            FlowControl::Call | FlowControl::IndirectCall => known.clear(),
            flow => {
                if flow == FlowControl::UnconditionalBranch && branches {
                    reach.to(instruction.near_branch64());
                }
                if reach.ends_at(instruction.next_ip()) {
                    break;
                }
                known.clear();
            }
        }
        if instruction.mnemonic() == Mnemonic::Mov && instruction.op0_kind() == OpKind::Memory {
            let value = match instruction.op1_kind() {
                OpKind::Register => known.get(&instruction.op1_register()).copied(),
                OpKind::Immediate32to64 => Some(instruction.immediate(1)),
                _ => None,
            };
            if let (Some(variable), Some(value)) = (place(&instruction, &known), value) {
                found.push((variable, value));
            }
            continue;
        }
        let set = (instruction.op0_kind() == OpKind::Register).then(|| instruction.op0_register());
        let value = set.filter(|register| register.is_gpr()).and_then(|_| match instruction.mnemonic() {
            Mnemonic::Lea => place(&instruction, &known),
            Mnemonic::Mov => match instruction.op1_kind() {
                OpKind::Register => known.get(&instruction.op1_register()).copied(),
                OpKind::Memory => place(&instruction, &known).and_then(word_at),
                OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 => {
                    Some(instruction.immediate(1))
                }
                _ => None,
            },
            _ => None,
        });
        for used in infos.info(&instruction).used_registers() {
            if !matches!(
                used.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
            ) {
                known.remove(&used.register().full_register());
            }
        }
        if let (Some(register), Some(value)) = (set, value) {
            // Writing the lower half clears the upper one.
            known.insert(register.full_register(), value);
        }
    }
    found
}

/// The address of the operand in memory, where it is known.
fn place(instruction: &Instruction, known: &HashMap<Register, u64>) -> Option<u64> {
    if instruction.memory_index() != Register::None || instruction.has_segment_prefix() {
        return None;
    }
    let displacement = instruction.memory_displacement64();
    match instruction.memory_base() {
        Register::None | Register::RIP => Some(displacement),
        base => known.get(&base).map(|at| at.wrapping_add(displacement)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &dyn Fn(u64) -> Option<u64> = &|_| None;

    /// What gcc -O2 makes of a filter's initialisation, at 0x1000: two heads.
    #[test]
    fn direct() {
        let code = [
            0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0, // mov rax, [0x2000]
            0x48, 0x89, 0x05, 0xf2, 0x1f, 0, 0, // mov [0x3000], rax
            0x48, 0x8d, 0x05, 0xeb, 0x00, 0, 0, // lea rax, [0x1100]
            0x48, 0x89, 0x05, 0xe4, 0x0f, 0, 0, // mov [0x2000], rax
            0x31, 0xc0, 0xc3, // xor eax, eax; ret
            0x48, 0x89, 0x05, 0xe4, 0x0f, 0, 0, // another function's
        ];
        assert_eq!(stores(&code, 0x1000, NOTHING), [(0x2000, 0x1100)]);
    }

    /// What clang makes of it: the variable's address in a register.
    #[test]
    fn through_a_register() {
        let code = [
            0x48, 0x8d, 0x05, 0xf9, 0x0f, 0, 0, // lea rax, [0x2000]
            0x48, 0x8b, 0x08, // mov rcx, [rax]
            0x48, 0x8d, 0x0d, 0xef, 0x00, 0, 0, // lea rcx, [0x1100]
            0x48, 0x89, 0x48, 0x08, // mov [rax+8], rcx
            0xc3,
        ];
        assert_eq!(stores(&code, 0x1000, NOTHING), [(0x2008, 0x1100)]);
    }

    /// A fixed address, as in a program that is not position-independent.
    #[test]
    fn an_immediate() {
        let code = [0x48, 0xc7, 0x04, 0x25, 0, 0x20, 0x40, 0, 0, 0x11, 0x40, 0, 0xc3]; // mov qword [0x402000], 0x401100
        assert_eq!(stores(&code, 0x40_1000, NOTHING), [(0x40_2000, 0x40_1100)]);
    }

    /// What a call may have changed, and what was overwritten, is not known.
    #[test]
    fn what_is_not_known_any_more() {
        let call = [
            0x48, 0x8d, 0x05, 0xf9, 0x00, 0, 0, // lea rax, [0x1100]
            0xe8, 0, 0, 0, 0, // call
            0x48, 0x89, 0x05, 0xed, 0x0f, 0, 0, // mov [0x2000], rax
            0xc3,
        ];
        assert_eq!(stores(&call, 0x1000, NOTHING), []);
        let overwritten = [
            0x48, 0x8d, 0x05, 0xf9, 0x00, 0, 0, // lea rax, [0x1100]
            0x31, 0xc0, // xor eax, eax
            0x48, 0x89, 0x05, 0xf0, 0x0f, 0, 0, // mov [0x2000], rax
            0xc3,
        ];
        assert_eq!(stores(&overwritten, 0x1000, NOTHING), []);
    }
}
