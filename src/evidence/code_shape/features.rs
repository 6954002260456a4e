//! What is counted in one function's code, and what those counts make of it.
//!
//! Code without optimization has a shape of its own, on every machine and from every compiler: each
//! parameter is stored into the frame before anything else happens and read back when it is needed,
//! each variable lives in memory, so a value just stored or loaded is loaded again, and registers that
//! survive calls stay unused. Optimized code has the opposite of each.

/// Functions shorter than this many instructions have no shape that could be told.
pub const MIN_INSTRUCTIONS: u32 = 8;

/// Counts over one function's instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Instructions, without landing pads and patch space at the entry and padding at the end.
    pub instructions: u32,
    /// The function keeps a frame pointer.
    pub frame_pointer: bool,
    /// The first argument's register is stored into the frame in the entry block.
    pub first_stored: bool,
    /// It is a floating-point register. No such register survives a call on x86-64, so code at every level stores it
    /// around one.
    pub first_is_float: bool,
    /// That slot is read again later.
    pub read_back: bool,
    /// Some argument's register is stored into the frame in the entry block.
    pub any_stored: bool,
    /// The function stores its arguments for `va_arg`, which it must at every level.
    pub varargs: bool,
    /// An argument is used from its register before it was stored anywhere.
    pub argument_used: bool,
    /// Instructions that access a slot of the frame.
    pub slots: u32,
    /// Loads of a slot that the same basic block has loaded or stored already.
    pub redundant: u32,
    /// Saves a callee-saved register that unoptimized code leaves alone.
    pub saves_high: bool,
    /// Saves the first callee-saved register.
    pub saves_low: bool,
    /// Takes an address from one of the registers of `saves_high`. Where it does not save them, another convention
    /// rules: generated code (V8's builtins keep the roots in `r13`), Go (`r14`), Haskell.
    pub uses_high: bool,
    /// The function's own work begins between saving the old frame pointer and setting the new one, which only a
    /// scheduler does (`-fschedule-insns2`: GCC from `-O2` and `-Os` on; clang from `-O1` on).
    pub scheduled: bool,
    /// Packed integer instructions.
    pub packed: u32,
    /// The first two distinct targets of jumps out of the function; 0 for none.
    pub jumps_out: [u64; 2],
    /// Ends in a jump through a pointer that is no jump table.
    pub jumps_through_pointer: bool,
    /// Bytes that are no instruction.
    pub undecodable: u32,
    /// Not a function of the program's own: a branch thunk or a PLT entry.
    pub thunk: bool,
    /// Which checks clang's traps in it are for: a bit for each number of `SanitizerHandler`.
    pub checks: u32,
    /// How many such traps there are.
    pub traps: u32,
}

impl Features {
    /// Notes a jump to an address outside the function.
    pub fn jump_out(&mut self, target: u64) {
        if self.jumps_out[0] == 0 {
            self.jumps_out[0] = target;
        } else if self.jumps_out[0] != target && self.jumps_out[1] == 0 {
            self.jumps_out[1] = target;
        }
    }

    /// Notes a trap for a check.
    pub fn trap(&mut self, check: u32) {
        if let Some(bit) = 1u32.checked_shl(check) {
            self.checks |= bit;
            self.traps += 1;
        }
    }

    /// Whether anything can be said of the function at all.
    pub fn is_judged(&self) -> bool {
        self.instructions >= MIN_INSTRUCTIONS && !self.thunk && self.undecodable == 0
    }

    /// At least `thousandths` of the instructions, in integers so that results are the same everywhere.
    fn share_at_least(&self, count: u32, thousandths: u64) -> bool {
        u64::from(count) * 1000 >= u64::from(self.instructions) * thousandths
    }

    /// Reloads are frequent enough to speak of variables that live in memory: 1.5 % of the instructions.
    fn reloads(&self) -> bool {
        self.redundant > 0 && self.share_at_least(self.redundant, 15)
    }

    /// Reloads alone are enough: 3 % of the instructions, and not a single one by chance.
    fn reloads_often(&self) -> bool {
        self.redundant >= 2 && self.share_at_least(self.redundant, 30)
    }
}

/// What one function's code looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Unoptimized.
    O0,
    /// Optimized.
    Optimized,
    /// No information either way.
    Neutral,
    /// Too short, not decodable, left out by a limit, or not a function of the program's own.
    NotJudged,
}

/// How arguments are passed, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// The first ones in registers.
    InRegisters,
    /// On the stack: nothing is stored at the entry.
    OnStack,
}

/// The state of one function. `tail` says that it ends in a jump to another function, which needs optimization.
pub fn state(f: &Features, tail: bool, arguments: Arguments) -> State {
    if !f.is_judged() {
        return State::NotJudged;
    }
    if tail {
        return State::Optimized;
    }
    if looks_unoptimized(f, arguments) {
        return State::O0;
    }
    if looks_optimized(f, arguments) { State::Optimized } else { State::Neutral }
}

fn looks_unoptimized(f: &Features, arguments: Arguments) -> bool {
    // Slots are at least 12 % of what unoptimized code touches; hashes and struct builders of
    // optimized code get there too, so it is a condition and never a reason.
    if f.saves_high || f.uses_high || f.argument_used || f.scheduled || !f.share_at_least(f.slots, 120) {
        return false;
    }
    match arguments {
        Arguments::InRegisters if f.frame_pointer => {
            let plain = f.first_stored && !f.first_is_float && f.read_back && !f.saves_low && f.packed <= 3;
            plain || (f.first_stored && f.reloads()) || f.reloads_often()
        }
        Arguments::InRegisters => {
            f.first_stored && if f.saves_low { f.reloads_often() && f.packed <= 3 } else { f.reloads() }
        }
        // Arguments are in the frame from the start, so the frame of any code is busier.
        Arguments::OnStack => f.reloads_often() && f.share_at_least(f.slots, 250) && f.packed <= 3,
    }
}

fn looks_optimized(f: &Features, arguments: Arguments) -> bool {
    if f.reloads() {
        return false;
    }
    // Sanitizers at -O0 make gcc save all registers, in functions that keep a frame pointer and store their
    // arguments as ever; so there it takes an argument that stayed in its register as well.
    if f.saves_high && (f.argument_used || !f.frame_pointer && !f.first_stored) {
        return true;
    }
    // An argument that is worked on in the register it came in, and never stored.
    if arguments == Arguments::InRegisters && f.argument_used && !f.first_stored {
        return true;
    }
    if f.scheduled {
        return true;
    }
    // A register that survives calls is in use, and the frame hardly is.
    // (Where arguments come on the stack, position-independent code needs it at every level.)
    let few_slots = !f.share_at_least(f.slots, 50);
    arguments == Arguments::InRegisters && f.saves_low && few_slots && f.instructions >= 12
}

/// Where in a slot's key the width stands.
const WIDTH_SHIFT: u32 = 48;

/// Slots relative to the stack pointer are told apart from those relative to the frame pointer by this bit.
const FROM_STACK_POINTER: i64 = 1 << 62;

/// A slot of no width, which no access names.
const NO_SLOT: i64 = i64::MIN;

/// The key of a slot: slots are told apart by displacement, by width (a structure that is built by fields and copied as a
/// whole is no variable that is loaded again), and by base register.
pub(super) fn slot_key(displacement: i64, width: u64, from_stack_pointer: bool) -> i64 {
    let from = if from_stack_pointer { FROM_STACK_POINTER } else { 0 };
    displacement ^ (width << WIDTH_SHIFT).cast_signed() ^ from
}

/// First displacement of a slot and the one past its end. The two base registers get ranges far from each other.
fn extent(key: i64) -> (i64, i64) {
    let displacement = key << (64 - WIDTH_SHIFT) >> (64 - WIDTH_SHIFT);
    let rest = key ^ displacement;
    let width = (rest & !FROM_STACK_POINTER & !NO_SLOT) >> WIDTH_SHIFT;
    let start = displacement.saturating_add(rest & FROM_STACK_POINTER);
    (start, start.saturating_add(width))
}

/// The slots of the frame that the current basic block has touched.
#[derive(Debug, Default)]
pub struct Slots {
    known: [i64; 16],
    len: usize,
    next: usize,
}

impl Slots {
    /// A basic block ends or begins.
    pub fn clear(&mut self) {
        self.len = 0;
        self.next = 0;
    }

    /// Notes an access, and says whether the block had touched that slot before.
    pub fn touch(&mut self, slot: i64) -> bool {
        if self.known.iter().take(self.len).any(|&known| known == slot) {
            return true;
        }
        if let Some(place) = self.known.get_mut(self.next) {
            *place = slot;
        }
        self.next = (self.next + 1) % self.known.len();
        self.len = (self.len + 1).min(self.known.len());
        false
    }

    /// Notes a store: slots of another width that it writes over hold something new, and loading them is not redundant.
    /// Optimized code passes structures and vectors through the frame so.
    pub fn store(&mut self, slot: i64) {
        let (start, end) = extent(slot);
        for known in self.known.iter_mut().take(self.len).filter(|known| **known != slot) {
            let (from, to) = extent(*known);
            if from < end && start < to {
                *known = NO_SLOT;
            }
        }
        self.touch(slot);
    }
}

/// What the second pass over a function needs of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Loads a slot.
    Load(i64),
    /// Stores to a slot.
    Store(i64),
    /// Control leaves here, or the stack pointer moves: what is known of slots ends.
    Boundary,
}

/// Buffers used for one function after another.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Offset in the function and what happens there, in order.
    pub events: Vec<(u32, Event)>,
    /// Offsets that branches of the function lead to.
    pub targets: Vec<u32>,
}

impl Scratch {
    /// Makes ready for the next function.
    pub fn clear(&mut self) {
        self.events.clear();
        self.targets.clear();
    }

    /// Counts redundant loads: basic blocks begin at branch targets and end at boundaries.
    pub fn count_redundant(&mut self) -> u32 {
        self.targets.sort_unstable();
        let mut targets = self.targets.iter().copied().peekable();
        let mut slots = Slots::default();
        let mut redundant = 0;
        for &(offset, event) in &self.events {
            let mut enters = false;
            while targets.next_if(|&target| target <= offset).is_some() {
                enters = true;
            }
            if enters {
                slots.clear();
            }
            match event {
                Event::Load(slot) => redundant += u32::from(slots.touch(slot)),
                Event::Store(slot) => slots.store(slot),
                Event::Boundary => slots.clear(),
            }
        }
        redundant
    }
}
