//! Machine code: is it optimized?
//!
//! For every function a state is read from its code ([`features`]); all of them together cast votes on
//! the whole ([`votes`]), and their order of addresses shows runs of one state: an unoptimized
//! object file, or archive, in an optimized program ([`segments`]). A verdict always comes with its
//! counts, and where they do not carry one it is [`Verdict::Unknown`] with the reason.
//!
//! Absence of tail calls proves nothing (gcc makes them from `-O2` on); one tail call proves optimization.

use crate::facts::Problem;
use crate::image::functions::{Function, Origin, runtime_sections};
use crate::image::ranges::range_at;
use crate::image::{Image, merge, ranges};
use crate::parallel;
use crate::wording::grouped;
use object::elf;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

pub mod features;
pub mod votes;

mod aarch64;
mod discover;
mod segments;
mod shape;
mod text;
mod verdict;
mod x86_64;

pub use features::State;
use features::{Arguments, Features, Scratch};
pub use shape::{CodeShape, Counts, Judged, Run, Unknown, Verdict};
pub use votes::{Totals, Vote};

/// Which functions are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those that begin in one of these ranges of addresses.
    Ranges(Vec<Range<u64>>),
    /// A fixed sample of that many, evenly spread over the order of addresses.
    Sample(usize),
}

/// Size of the sample by which recorded levels are cross-checked.
pub const SAMPLE: usize = 64;

/// Fewest judged functions for a verdict on the whole; a run of unoptimized functions stands for itself below that.
pub const MIN_FUNCTIONS: u64 = 15;

/// Decoding less than so many bytes of code takes no longer than it takes to start a thread a few times over.
const WORTH_A_THREAD: u64 = 256 << 10;

/// Makes the tables by which x86 code is decoded. They are made once, which takes half a millisecond.
pub fn make_tables() {
    let _ = iced_x86::Decoder::new(64, &[0x90], iced_x86::DecoderOptions::NONE).decode();
}

/// What differs between machines.
#[derive(Clone, Copy)]
struct Machine {
    code: Code,
    arguments: Arguments,
    high: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    X86 { bits: u32 },
    A64,
}

fn machine(image: &Image) -> Result<Machine, Unknown> {
    let high = "functions save r12–r15";
    match image.header.machine {
        // The x32 ABI has 32-bit files with 64-bit code.
        elf::EM_X86_64 => {
            Ok(Machine { code: Code::X86 { bits: 64 }, arguments: Arguments::InRegisters, high })
        }
        elf::EM_386 => Ok(Machine {
            code: Code::X86 { bits: 32 },
            arguments: Arguments::OnStack,
            high: "functions save esi or edi",
        }),
        elf::EM_AARCH64 => {
            Ok(Machine {
                code: Code::A64, arguments: Arguments::InRegisters, high: "functions save x20–x28"
            })
        }
        _ => Err(Unknown::Machine(crate::image::identity::machine_name(image))),
    }
}

/// Judges functions by their code. `functions` is the whole table, in order of address: targets of jumps
/// are looked up in it, also where the selection is smaller.
pub fn judge(image: &Image, functions: &[Function], selection: &Selection) -> CodeShape {
    if image.is_relocatable() {
        return CodeShape::unknown(Unknown::Relocatable);
    }
    let machine = match machine(image) {
        Ok(machine) => machine,
        Err(why) => return CodeShape::unknown(why),
    };
    if let Some(language) = other_shape(image) {
        return judge_beside(language, image, machine, functions, selection);
    }
    // Only text that is asked for is searched for functions; a sample is drawn from known ones alone.
    let gaps = match selection {
        Selection::All => discover::uncovered(image, functions),
        Selection::Ranges(wanted) => {
            ranges::intersect(&discover::uncovered(image, functions), &merge(wanted.clone()))
        }
        Selection::Sample(_) => Vec::new(),
    };
    if gaps.is_empty() {
        return judge_known(image, machine, functions, selection);
    }
    let discover::Found { functions: mut found, swept, left_out, unreadable } =
        discover::functions(image, machine.code, &gaps);
    let discovered = found.len() as u64;
    found.extend_from_slice(functions);
    found.sort_by_key(|f| f.start);
    let mut shape = judge_known(image, machine, &found, selection);
    shape.discovered = discovered;
    shape.bytes_read = shape.bytes_read.saturating_add(swept);
    if left_out > 0 {
        shape.bytes_left_out = shape.bytes_left_out.saturating_add(left_out);
        shape.problems.push(code_limit(image, left_out));
    }
    if unreadable > 0 {
        let bytes = grouped(unreadable);
        let message = format!("{bytes} bytes of code are not judged: the file does not hold them all");
        shape.problems.push(Problem::damage("unreadable-text", message));
    }
    shape
}

/// What a program of such a language holds besides: C code has frame descriptions, which those compilers do not write.
fn judge_beside(
    language: &'static str,
    image: &Image,
    machine: Machine,
    functions: &[Function],
    selection: &Selection,
) -> CodeShape {
    let framed: Vec<Function> = functions.iter().filter(|f| f.from == Origin::EhFrame).cloned().collect();
    let mut shape = judge_known(image, machine, &framed, selection);
    if shape.functions.is_empty() {
        return CodeShape::unknown(Unknown::Language(language));
    }
    shape.only_functions = true;
    shape.sentence = format!("of the code beside {language}, {}", shape.sentence);
    shape
}

/// The language of a program whose compiler keeps arguments and variables in the frame at higher levels, too, and
/// describes its functions in tables of its own: Go at every level, Free Pascal below its -O2.
fn other_shape(image: &Image) -> Option<&'static str> {
    image.sections.iter().find_map(|section| match section.name.as_slice() {
        b".go.buildinfo" => Some("Go"),
        name if name.ends_with(b".gopclntab") => Some("Go"),
        b".fpcdata" => Some("Free Pascal"),
        _ => None,
    })
}

fn judge_known(image: &Image, machine: Machine, functions: &[Function], selection: &Selection) -> CodeShape {
    let selected = select(functions, selection);
    if selected.is_empty() {
        return CodeShape::unknown(Unknown::NoFunctions);
    }
    let all =
        selected.iter().filter_map(|&i| functions.get(i)).map(Function::size).fold(0, u64::saturating_add);
    let most_of_each = text::most_of_each(all);
    let (chosen, bytes_left_out) =
        thin(functions, &selected, selection, most_of_each, image.limits.code_bytes);
    let (measured, bytes_read, missing) = measure_all(image, machine, functions, &chosen, most_of_each);
    let mut shape = CodeShape::unknown(Unknown::NoFunctions);
    shape.bytes_read = bytes_read;
    shape.bytes_left_out = bytes_left_out;
    for (_, features) in &measured {
        shape.checks |= features.checks;
        shape.traps += u64::from(features.traps);
    }
    if missing > 0 {
        shape.problems.push(Problem::damage(
            "unreadable-text",
            format!("the code of {missing} functions lies outside the file: they are not judged"),
        ));
    }
    if bytes_left_out > 0 && !matches!(selection, Selection::Sample(_)) {
        shape.problems.push(code_limit(image, bytes_left_out));
    }
    states(image, machine, functions, &selected, &measured, &mut shape);
    shape.votes = shape.totals.votes(machine.arguments, machine.high);
    let neighbours = match selection {
        Selection::Sample(_) => Vec::new(),
        Selection::All | Selection::Ranges(_) => neighbours(functions, &selected),
    };
    verdict::settle(&mut shape, &neighbours, machine.arguments);
    let told = !matches!(shape.verdict, Verdict::Unknown(_));
    if told && !neighbours.is_empty() && most_of_each < text::FUNCTION_BYTES {
        let first = grouped(most_of_each);
        let _ = write!(shape.sentence, "; of longer functions the first {first} bytes were read");
    }
    shape
}

/// Stretches of the selection, by position in it, between which no other function lies: what was not asked for is no part
/// of a run.
fn neighbours(functions: &[Function], selected: &[usize]) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let mut before: Option<usize> = None;
    for (position, &index) in selected.iter().enumerate() {
        let apart =
            |before: usize| functions.get(before + 1..index).unwrap_or_default().iter().any(|f| !f.cold);
        match stretches.last_mut() {
            Some(stretch) if !before.is_some_and(apart) => stretch.end = position + 1,
            _ => stretches.push(position..position + 1),
        }
        before = Some(index);
    }
    stretches
}

fn code_limit(image: &Image, left_out: u64) -> Problem {
    let limit = image.limits.code_bytes;
    Problem::notice(
        "code-limit",
        format!("{left_out} bytes of code were left out by the limit of {limit} bytes"),
    )
}

/// Indices of the functions that are to be judged: split-off parts have no entry and so no shape.
fn select(functions: &[Function], selection: &Selection) -> Vec<usize> {
    let whole = functions.iter().enumerate().filter(|(_, f)| !f.cold);
    match selection {
        Selection::All | Selection::Sample(_) => whole.map(|(index, _)| index).collect(),
        Selection::Ranges(ranges) => {
            let ranges = crate::image::merge(ranges.clone());
            whole.filter(|(_, f)| range_at(&ranges, f.start).is_some()).map(|(index, _)| index).collect()
        }
    }
}

/// Thins out the selection: to the sample, or evenly to the limit. Returns what is left, and the bytes that are not.
fn thin(
    functions: &[Function],
    selected: &[usize],
    selection: &Selection,
    most_of_each: u64,
    limit: u64,
) -> (Vec<usize>, u64) {
    let size = |index: &usize| functions.get(*index).map_or(0, Function::size);
    let all: u64 = selected.iter().map(size).fold(0, u64::saturating_add);
    let chosen: Vec<usize> = if let Selection::Sample(wanted) = selection {
        // Functions of less than 32 bytes rarely have eight instructions.
        let long: Vec<usize> = selected.iter().copied().filter(|index| size(index) >= 32).collect();
        spread(&long, *wanted)
    } else {
        let heads: u64 =
            selected.iter().map(|index| size(index).min(most_of_each)).fold(0, u64::saturating_add);
        if heads <= limit {
            return (selected.to_vec(), 0);
        }
        let wanted = u128::from(limit) * selected.len() as u128 / u128::from(heads);
        spread(selected, wanted as usize)
    };
    let kept: u64 = chosen.iter().map(size).fold(0, u64::saturating_add);
    (chosen, all.saturating_sub(kept))
}

/// `wanted` of the indices, evenly spread, the same ones every time.
fn spread(indices: &[usize], wanted: usize) -> Vec<usize> {
    if wanted >= indices.len() {
        return indices.to_vec();
    }
    (0..wanted)
        .filter_map(|i| {
            indices.get(((2 * i + 1) as u128 * indices.len() as u128 / (2 * wanted) as u128) as usize)
        })
        .copied()
        .collect()
}

/// Counts over all chosen functions, in their order; the bytes read; and the number of functions whose text the file does
/// not hold. Spare processors take windows as they come, which changes nothing about the result.
fn measure_all(
    image: &Image,
    machine: Machine,
    functions: &[Function],
    chosen: &[usize],
    most_of_each: u64,
) -> (Vec<(usize, Features)>, u64, u64) {
    let loaded = text::Loaded::of(image);
    let stretches = text::stretches(&loaded, functions, chosen, most_of_each);
    let all = stretches.iter().map(|stretch| stretch.size).fold(0, u64::saturating_add);
    let workers = if all < WORTH_A_THREAD { 1 } else { image.workers };
    let windows = parallel::pieces(
        workers,
        &stretches,
        || (Vec::new(), Scratch::default()),
        |(bytes, scratch), stretch| {
            let members = chosen.get(stretch.members.clone()).unwrap_or_default();
            if !loaded.read_into(stretch.base, stretch.size, bytes) {
                return Err(members.len() as u64);
            }
            let mut measured = Vec::with_capacity(members.len());
            let window = Window { base: stretch.base, bytes, members };
            measure(machine, functions, &window, most_of_each, scratch, &mut measured);
            Ok((measured, stretch.size))
        },
    );
    let (mut measured, mut read, mut missing) = (Vec::with_capacity(chosen.len()), 0u64, 0);
    for window in windows {
        match window {
            Ok((mut of_window, size)) => {
                measured.append(&mut of_window);
                read = read.saturating_add(size);
            }
            Err(members) => missing += members,
        }
    }
    (measured, read, missing)
}

/// One window of text and the functions in it.
struct Window<'a> {
    /// Address of the first byte.
    base: u64,
    bytes: &'a [u8],
    /// Indices of the functions whose heads lie in the window.
    members: &'a [usize],
}

/// Counts over the functions of one window.
fn measure(
    machine: Machine,
    functions: &[Function],
    window: &Window<'_>,
    most_of_each: u64,
    scratch: &mut Scratch,
    out: &mut Vec<(usize, Features)>,
) {
    let mut decoder = match machine.code {
        Code::X86 { bits } => {
            use iced_x86::{Decoder, DecoderOptions};
            Decoder::try_with_ip(bits, window.bytes, window.base, DecoderOptions::NONE).ok()
        }
        Code::A64 => None,
    };
    for &index in window.members {
        let Some(function) = functions.get(index) else { continue };
        let offset = function.start.wrapping_sub(window.base) as usize;
        let size = function.size().min(most_of_each) as usize;
        let mut features = if let Some(decoder) = &mut decoder {
            x86_64::read(decoder, window.base, offset, size, function.frame_pointer, scratch)
        } else {
            let code =
                offset.checked_add(size).and_then(|end| window.bytes.get(offset..end)).unwrap_or_default();
            aarch64::read(code, function.start, function.size(), function.frame_pointer, scratch)
        };
        features.saves_high |= function.saves_high;
        features.saves_low |= function.saves_low;
        out.push((index, features));
    }
}

/// Turns counts into states, after finding out which jumps are tail calls.
fn states(
    image: &Image,
    machine: Machine,
    functions: &[Function],
    selected: &[usize],
    measured: &[(usize, Features)],
    shape: &mut CodeShape,
) {
    let common = common_target(measured);
    shape.return_thunks = common.is_some();
    let thunks: Vec<u64> = measured
        .iter()
        .filter(|(_, f)| f.thunk)
        .filter_map(|(index, _)| functions.get(*index))
        .map(|f| f.start)
        .collect();
    // Functions of other files are called through the PLT.
    let plt = runtime_sections(image);
    let is_tail = |target: u64| {
        let known = functions
            .binary_search_by_key(&target, |f| f.start)
            .is_ok_and(|i| functions.get(i).is_some_and(|f| !f.cold));
        target != 0
            && Some(target) != common
            && thunks.binary_search(&target).is_err()
            && (known || range_at(&plt, target).is_some())
    };
    let mut measured = measured.iter().peekable();
    for &index in selected {
        let Some(function) = functions.get(index) else { continue };
        shape.counts.functions += 1;
        let mut judged = Judged {
            start: function.start,
            end: function.end,
            state: State::NotJudged,
            tail_call: false,
            frame_pointer: false,
        };
        if let Some((_, f)) = measured.next_if(|(i, _)| *i == index) {
            judged.tail_call = !f.thunk && (f.jumps_through_pointer || f.jumps_out.into_iter().any(is_tail));
            judged.frame_pointer = f.frame_pointer;
            judged.state = features::state(f, judged.tail_call, machine.arguments);
            if judged.state != State::NotJudged {
                shape.totals.add(f, judged.tail_call);
            }
        }
        match judged.state {
            State::O0 => shape.counts.o0 += 1,
            State::Optimized => shape.counts.optimized += 1,
            State::Neutral => shape.counts.neutral += 1,
            State::NotJudged => shape.counts.not_judged += 1,
        }
        shape.functions.push(judged);
    }
}

/// A target that more than 30 % of the functions jump to is no function but a way to return (`__x86_return_thunk`).
fn common_target(measured: &[(usize, Features)]) -> Option<u64> {
    if measured.len() < 30 {
        return None;
    }
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for target in measured.iter().flat_map(|(_, f)| f.jumps_out).filter(|&target| target != 0) {
        *seen.entry(target).or_default() += 1;
    }
    let (target, count) = seen.into_iter().max_by_key(|&(target, count)| (count, target))?;
    (count * 10 > measured.len() as u64 * 3).then_some(target)
}

#[cfg(test)]
mod tests;
