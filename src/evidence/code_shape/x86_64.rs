//! Counting in x86 code, 64 and 32 bit, with the iced decoder.

use super::features::{Event, Features, Scratch, slot_key};
use iced_x86::{Code, Decoder, Instruction, Mnemonic, OpKind, Register};

mod mnemonics;
use mnemonics::{is_move, is_packed_integer};

/// How many instructions may belong to the entry block, in which arguments are stored. Six argument
/// registers, eight floating-point ones and a prologue fit.
const ENTRY_BLOCK: u32 = 28;

/// The registers of the first integer arguments (System V AMD64 psABI, section 3.2.3), in order.
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];

/// Place in the list of arguments of the first floating-point register.
const FIRST_FLOAT: usize = 6;

/// Counts over the function that begins at `code[offset]`, of `size` bytes.
///
/// `decoder` runs over `code`, whose first byte has the address `base`.
pub(super) fn read(
    decoder: &mut Decoder<'_>,
    base: u64,
    offset: usize,
    size: usize,
    frame_pointer: bool,
    scratch: &mut Scratch,
) -> Features {
    let mut reader = Reader::new(decoder.bitness() == 64, frame_pointer);
    scratch.clear();
    let Some(end) = offset.checked_add(size) else { return reader.features };
    if decoder.set_position(offset).is_err() {
        return reader.features;
    }
    let start = base.wrapping_add(offset as u64);
    decoder.set_ip(start);
    let mut instruction = Instruction::default();
    while decoder.position() < end && decoder.can_decode() {
        let at = decoder.position() - offset;
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            reader.features.undecodable += 1;
            if reader.features.undecodable > 3 {
                break;
            }
            continue;
        }
        reader.see(&instruction, at as u32, start, size as u64, scratch);
    }
    reader.finish(scratch)
}

/// The check that a trap is for, as LLVM writes `llvm.ubsantrap`: `ud1 eax, [eax + number]` (`X86MCInstLower.cpp`,
/// `X86InstrSystem.td`); for other uses of the instruction a number that is none.
fn trap_check(i: &Instruction) -> u32 {
    let plain = i.op0_register() == Register::EAX
        && i.memory_base() == Register::EAX
        && i.memory_index() == Register::None
        && i.memory_displ_size() <= 1;
    if plain { i.memory_displacement32() & 0xff } else { u32::MAX }
}

/// What is known while one function's instructions pass by.
struct Reader {
    features: Features,
    wide: bool,
    /// Still in the entry block.
    in_entry: bool,
    /// Instructions of the entry block that are not the prologue's own.
    entry_work: u32,
    /// How many there were when the frame pointer was saved.
    work_at_push: Option<u32>,
    /// Argument registers that have been written, one bit each.
    overwritten: u8,
    /// Low registers that hold a copy of an argument, made to store it narrowed: (register, argument).
    copies: [Option<(Register, usize)>; 3],
    first_slot: Option<i64>,
    trailing: u32,
    begun: bool,
    /// Number of the last instruction that took the frame down.
    epilogue: Option<u32>,
    first_is_inner_call: bool,
    saw_vararg_test: bool,
}

impl Reader {
    fn new(wide: bool, frame_pointer: bool) -> Self {
        Self {
            features: Features { frame_pointer, ..Features::default() },
            wide,
            in_entry: true,
            entry_work: 0,
            work_at_push: None,
            overwritten: 0,
            copies: [None; 3],
            first_slot: None,
            trailing: 0,
            begun: false,
            epilogue: None,
            first_is_inner_call: false,
            saw_vararg_test: false,
        }
    }

    fn see(&mut self, i: &Instruction, at: u32, start: u64, size: u64, scratch: &mut Scratch) {
        let mnemonic = i.mnemonic();
        match mnemonic {
            // Landing pads and patch space; later on, padding that a jump goes over.
            Mnemonic::Nop | Mnemonic::Fnop if !self.begun => return,
            Mnemonic::Endbr64 | Mnemonic::Endbr32 => return,
            Mnemonic::Nop | Mnemonic::Int3 => {
                self.trailing += 1;
                return;
            }
            _ => {}
        }
        let first = !self.begun;
        self.begun = true;
        let f = &mut self.features;
        f.instructions += self.trailing + 1;
        self.trailing = 0;
        match mnemonic {
            Mnemonic::Jmp => return self.jump(i, first, at, start, size, scratch),
            Mnemonic::Call => return self.call(i, first, at, start, size, scratch),
            Mnemonic::Ret => return self.boundary(at, scratch),
            Mnemonic::Ud1 => return f.trap(trap_check(i)),
            Mnemonic::Pause if self.first_is_inner_call && self.features.instructions == 2 => {
                self.features.thunk = true;
                return;
            }
            Mnemonic::Lea => {}
            Mnemonic::Pop | Mnemonic::Leave => self.epilogue = Some(self.features.instructions),
            _ if matches!(
                i.op0_kind(),
                OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16
            ) =>
            {
                let into = i.near_branch_target().wrapping_sub(start);
                if into < size {
                    scratch.targets.push(into as u32);
                }
                return self.boundary(at, scratch);
            }
            _ => self.features.packed += u32::from(is_packed_integer(mnemonic)),
        }
        let base = i.memory_base();
        self.features.uses_high |=
            matches!(base, Register::R12 | Register::R13 | Register::R14 | Register::R15);
        if self.in_entry {
            self.entry(i, mnemonic);
        }
        if mnemonic != Mnemonic::Lea
            && let Some(slot) = self.slot(i)
        {
            self.slot_access(i, mnemonic, slot, at, scratch);
        }
        if matches!(mnemonic, Mnemonic::Add | Mnemonic::Sub)
            && i.op0_kind() == OpKind::Register
            && is_stack_pointer(i.op0_register())
        {
            scratch.events.push((at, Event::Boundary));
            if mnemonic == Mnemonic::Add {
                self.epilogue = Some(self.features.instructions);
            }
        }
    }

    fn boundary(&mut self, at: u32, scratch: &mut Scratch) {
        self.in_entry = false;
        scratch.events.push((at, Event::Boundary));
    }

    fn jump(&mut self, i: &Instruction, first: bool, at: u32, start: u64, size: u64, scratch: &mut Scratch) {
        let f = &mut self.features;
        match i.op0_kind() {
            OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16 => {
                let target = i.near_branch_target();
                let into = target.wrapping_sub(start);
                if into < size {
                    scratch.targets.push(into as u32);
                } else {
                    f.jump_out(target);
                }
            }
            // An index register means a jump table; so does `notrack`, which compilers put on those alone.
            OpKind::Memory if i.memory_index() == Register::None && i.segment_prefix() != Register::DS => {
                f.jumps_through_pointer = true;
                f.thunk |= first;
            }
            // Right after the frame is taken down: a jump table is used while it stands.
            OpKind::Register if self.epilogue.is_some_and(|then| f.instructions <= then + 2) => {
                f.jumps_through_pointer = true;
            }
            _ => {}
        }
        self.boundary(at, scratch);
    }

    fn call(&mut self, i: &Instruction, first: bool, at: u32, start: u64, size: u64, scratch: &mut Scratch) {
        let inner = matches!(i.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32)
            && i.near_branch_target().wrapping_sub(start) < size;
        self.first_is_inner_call = first && inner;
        scratch.events.push((at, Event::Boundary));
        // A call before anything else is a profiling hook (`mcount`, `__fentry__`), which keeps all registers;
        // on i386 it may also fetch the instruction pointer.
        if self.entry_work > 0 || inner {
            self.in_entry = false;
        }
    }

    /// The slot of the frame an instruction's memory operand names, if it names one.
    fn slot(&self, i: &Instruction) -> Option<i64> {
        let base = i.memory_base();
        if base == Register::None || i.memory_index() != Register::None {
            return None;
        }
        let from_stack_pointer = match base {
            Register::RSP | Register::ESP => true,
            Register::RBP | Register::EBP if self.features.frame_pointer => false,
            _ => return None,
        };
        let width = i.memory_size().size() as u64;
        Some(slot_key(i.memory_displacement64().cast_signed(), width, from_stack_pointer))
    }

    fn slot_access(
        &mut self,
        i: &Instruction,
        mnemonic: Mnemonic,
        slot: i64,
        at: u32,
        scratch: &mut Scratch,
    ) {
        let f = &mut self.features;
        if passes_through_memory(mnemonic) {
            // The slot is a way into or out of the x87 unit, and no variable.
            f.first_stored &= self.first_slot != Some(slot);
            scratch.events.push((at, Event::Boundary));
            return;
        }
        f.slots += 1;
        let store = i.op0_kind() == OpKind::Memory;
        let moves = is_move(mnemonic);
        if moves && store {
            scratch.events.push((at, Event::Store(slot)));
        } else {
            f.read_back |= self.first_slot == Some(slot);
            if moves {
                scratch.events.push((at, Event::Load(slot)));
            }
        }
    }

    /// Follows the argument registers through the entry block.
    fn entry(&mut self, i: &Instruction, mnemonic: Mnemonic) {
        if self.features.instructions > ENTRY_BLOCK {
            self.in_entry = false;
            return;
        }
        let to = (i.op0_kind() == OpKind::Register).then(|| i.op0_register());
        let from = (i.op1_kind() == OpKind::Register).then(|| i.op1_register());
        if mnemonic == Mnemonic::Push {
            let Some(register) = to else { return };
            match register {
                Register::RBP | Register::EBP => self.work_at_push = Some(self.entry_work),
                Register::RBX | Register::EBX => self.features.saves_low = true,
                Register::R12 | Register::R13 | Register::R14 | Register::R15 => {
                    self.features.saves_high = true;
                }
                Register::ESI | Register::EDI if !self.wide => self.features.saves_high = true,
                _ => {}
            }
            return;
        }
        if matches!(
            i.code(),
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 | Code::Mov_r32_rm32 | Code::Mov_rm32_r32
        ) && matches!(to, Some(Register::RBP | Register::EBP))
            && from.is_some_and(is_stack_pointer)
        {
            self.features.frame_pointer = true;
            self.features.scheduled |= self.work_at_push.is_some_and(|then| self.entry_work > then);
            return;
        }
        if to.is_some_and(is_stack_pointer) {
            return;
        }
        self.entry_work += 1;
        if !self.wide {
            return;
        }
        if mnemonic == Mnemonic::Test && to == Some(Register::AL) && from == Some(Register::AL) {
            self.saw_vararg_test = true;
        }
        let moves = is_move(mnemonic);
        let slot = if mnemonic == Mnemonic::Lea { None } else { self.slot(i) };
        if moves
            && i.op0_kind() == OpKind::Memory
            && let Some(slot) = slot
        {
            if let Some(argument) = from.and_then(|register| self.argument(register, mnemonic)) {
                self.features.any_stored = true;
                // Without a frame pointer a stored floating-point argument tells nothing: -ffloat-store does it, too.
                if argument == 0 || argument == FIRST_FLOAT && self.features.frame_pointer {
                    self.features.first_is_float = argument == FIRST_FLOAT
                        && (self.features.first_is_float || !self.features.first_stored);
                    self.features.first_stored = true;
                    if self.first_slot.is_none() || argument == 0 {
                        self.first_slot = Some(slot);
                    }
                }
            }
            return;
        }
        self.uses(i, mnemonic, to, from);
        let Some(to) = to.filter(|_| !matches!(mnemonic, Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt))
        else {
            return;
        };
        let full = to.full_register();
        self.copies.iter_mut().filter(|c| c.is_some_and(|(r, _)| r == full)).for_each(|c| *c = None);
        if mnemonic == Mnemonic::Mov
            && let Some(argument) = from.and_then(|r| self.live(r))
            && let Some(free) = self.copies.iter_mut().find(|c| c.is_none())
            && matches!(full, Register::RAX | Register::RCX | Register::RDX)
        {
            *free = Some((full, argument));
        }
        if let Some(index) = ARGUMENTS.iter().position(|&a| a == full) {
            self.overwritten |= 1 << index;
        }
    }

    /// Whether an argument is worked on in its register: as an address, in a comparison, or kept in a register
    /// that survives calls. Unoptimized code stores it first.
    fn uses(&mut self, i: &Instruction, mnemonic: Mnemonic, to: Option<Register>, from: Option<Register>) {
        let base = i.memory_base();
        let index = i.memory_index();
        let mut used = base != Register::None && self.live(base).is_some()
            || index != Register::None && self.live(index).is_some();
        used |= match mnemonic {
            Mnemonic::Test | Mnemonic::Cmp => to.is_some_and(|r| self.live(r).is_some()),
            Mnemonic::Mov => {
                let kept = to.is_some_and(|r| {
                    matches!(
                        r.full_register(),
                        Register::RBX
                            | Register::RBP
                            | Register::R12
                            | Register::R13
                            | Register::R14
                            | Register::R15
                    )
                });
                kept && from.is_some_and(|r| self.live(r).is_some())
            }
            _ => false,
        };
        self.features.argument_used |= used;
    }

    /// Which argument a register still holds.
    fn live(&self, register: Register) -> Option<usize> {
        let full = register.full_register();
        let index = ARGUMENTS.iter().position(|&a| a == full)?;
        (self.overwritten >> index & 1 == 0).then_some(index)
    }

    /// Which argument a store from this register stores.
    fn argument(&self, register: Register, mnemonic: Mnemonic) -> Option<usize> {
        if let Some(argument) = self.live(register) {
            return Some(argument);
        }
        if register.size() <= 2 {
            let full = register.full_register();
            return self
                .copies
                .iter()
                .flatten()
                .find(|(copy, _)| *copy == full)
                .map(|(_, argument)| *argument);
        }
        // Whole vector registers are stored by every function with variable arguments.
        let scalar =
            matches!(mnemonic, Mnemonic::Movss | Mnemonic::Movsd | Mnemonic::Vmovss | Mnemonic::Vmovsd);
        (scalar && register == Register::XMM0).then_some(FIRST_FLOAT)
    }

    fn finish(mut self, scratch: &mut Scratch) -> Features {
        self.features.redundant = scratch.count_redundant();
        self.features.varargs = self.saw_vararg_test;
        self.features
    }
}

/// Moves of integers and of the control word between memory and the x87 unit. There is no other way between it and the
/// integer registers, so optimized code goes through the frame as well.
fn passes_through_memory(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Fild
            | Mnemonic::Fist
            | Mnemonic::Fistp
            | Mnemonic::Fisttp
            | Mnemonic::Fldcw
            | Mnemonic::Fnstcw
    )
}

fn is_stack_pointer(register: Register) -> bool {
    matches!(register, Register::RSP | Register::ESP)
}

#[cfg(test)]
mod tests;
