use super::*;
use crate::image::{Input, functions};
use crate::limits::Limits;
use proptest::prelude::*;

macro_rules! shape_file {
    ($name:literal) => {
        include_bytes!(concat!("../../../testdata/shape/", $name))
    };
}

fn open(bytes: &[u8]) -> Image {
    Image::open(Input::memory(bytes), &Limits::default()).unwrap()
}

fn judge_all(bytes: &[u8]) -> CodeShape {
    let image = open(bytes);
    let table = functions::read(&image);
    judge(&image, &table.functions, &Selection::All)
}

#[test]
fn unoptimized_code_of_two_compilers() {
    for bytes in [&shape_file!("gcc-O0")[..], shape_file!("clang-O0")] {
        let shape = judge_all(bytes);
        assert_eq!(shape.verdict, Verdict::O0);
        assert_eq!((shape.counts.o0, shape.counts.optimized), (29, 0));
        assert_eq!((shape.runs.len(), shape.strays.len()), (1, 0));
        assert!(shape.votes.iter().all(Vote::holds), "{:?}", shape.votes);
        assert!(shape.sentence.starts_with("29 of 29 judged functions"), "{}", shape.sentence);
    }
}

#[test]
fn unoptimized_code_without_frame_pointers() {
    let shape = judge_all(shape_file!("gcc-O0-omitfp"));
    assert_eq!(shape.verdict, Verdict::O0);
    assert_eq!(shape.counts.optimized, 0);
}

#[test]
fn code_that_stores_its_arguments_is_not_optimized_for_loading_nothing_twice() {
    let shape = judge_all(shape_file!("once-O0-omitfp"));
    assert!(shape.totals.keeps_arguments() && shape.totals.redundant == 0, "{:?}", shape.totals);
    assert_eq!(shape.verdict, Verdict::Unknown(Unknown::Undecided { decided: 0, judged: 30 }));
    assert!(!judge_all(shape_file!("gcc-O2")).totals.keeps_arguments());
    // Arguments that come on the stack are not stored; the frame pointer they are found by is kept.
    let shape = judge_all(shape_file!("i386-once-O0"));
    assert_eq!(shape.verdict, Verdict::Unknown(Unknown::Undecided { decided: 0, judged: 30 }));
    assert_eq!(judge_all(shape_file!("i386-once-O2")).verdict, Verdict::Optimized);
}

#[test]
fn optimized_code_at_each_level_and_with_frame_pointers() {
    let files = [
        &shape_file!("gcc-O1")[..],
        shape_file!("gcc-O2"),
        shape_file!("gcc-O2-fp"),
        shape_file!("gcc-Os"),
        shape_file!("clang-O2"),
    ];
    for bytes in files {
        let shape = judge_all(bytes);
        assert_eq!(shape.verdict, Verdict::Optimized);
        assert_eq!((shape.counts.o0, shape.runs.len()), (0, 0));
        assert!(!shape.votes[0].holds() && !shape.votes[1].holds() && !shape.votes[2].holds());
    }
}

#[test]
fn an_unoptimized_file_in_an_optimized_program_is_located() {
    let shape = judge_all(shape_file!("gcc-mixed"));
    assert_eq!(shape.verdict, Verdict::Mixed);
    assert_eq!((shape.counts.o0, shape.counts.optimized), (14, 14));
    let [optimized, unoptimized] = &shape.runs[..] else { panic!("{:?}", shape.runs) };
    assert_eq!((optimized.state, optimized.functions), (State::Optimized, 14));
    assert_eq!((unoptimized.state, unoptimized.functions), (State::O0, 14));
    assert!(optimized.end <= unoptimized.start);
}

#[test]
fn a_selection_is_judged_alone() {
    let image = open(shape_file!("gcc-mixed"));
    let table = functions::read(&image);
    let all = judge(&image, &table.functions, &Selection::All);
    let unoptimized = all.runs[1].start..all.runs[1].end;
    let part = judge(&image, &table.functions, &Selection::Ranges(vec![unoptimized.clone()]));
    assert_eq!(part.counts.functions, 14);
    assert_eq!(part.counts.o0, 14);
    assert_eq!(part.verdict, Verdict::O0);
    let optimized = all.runs[0].start + 1..all.runs[0].end;
    let other = judge(&image, &table.functions, &Selection::Ranges(vec![optimized]));
    assert_eq!(other.verdict, Verdict::Unknown(Unknown::TooSmall { judged: 14, o0: 0 }));
    assert!(part.functions.iter().all(|j| unoptimized.contains(&j.start)));
    assert!(part.bytes_read < all.bytes_read);
}

#[test]
fn a_sample_is_fixed_and_says_what_it_left_out() {
    let image = open(shape_file!("gcc-O0"));
    let table = functions::read(&image);
    let one = judge(&image, &table.functions, &Selection::Sample(16));
    let two = judge(&image, &table.functions, &Selection::Sample(16));
    assert_eq!(one.functions, two.functions);
    assert_eq!(one.counts.judged(), 16);
    assert_eq!(one.counts.not_judged, 13);
    assert_eq!(one.verdict, Verdict::O0);
    assert!(one.runs.is_empty());
    assert!(one.bytes_left_out > 0);
}

#[test]
fn a_limit_thins_out_evenly_and_is_reported() {
    let limits = Limits { code_bytes: 3000, ..Limits::default() };
    let image = Image::open(Input::memory(&shape_file!("gcc-O0")[..]), &limits).unwrap();
    let table = functions::read(&image);
    let shape = judge(&image, &table.functions, &Selection::All);
    assert!(shape.counts.judged() > 10 && shape.counts.judged() < 29);
    assert_eq!(shape.problems[0].code, "code-limit");
    let all: u64 = table.functions.iter().map(Function::size).sum();
    assert!(shape.bytes_left_out > 0 && shape.bytes_left_out < all);
}

#[test]
fn what_a_sweep_leaves_out_has_no_functions() {
    let limits = Limits { code_bytes: 1000, ..Limits::default() };
    let image = Image::open(Input::memory(&shape_file!("gcc-O0-noeh")[..]), &limits).unwrap();
    let text = image.section(".text").unwrap();
    let shape = judge(&image, &functions::read(&image).functions, &Selection::All);
    assert!(shape.discovered > 5 && shape.discovered < 29);
    assert!(shape.functions.iter().all(|f| f.end <= text.address + 1000));
    assert_eq!(shape.bytes_left_out, text.size - 1000);
    assert_eq!(shape.problems[0].code, "code-limit");
}

#[test]
fn code_that_the_file_does_not_hold_is_not_said_to_be_left_out_by_a_limit() {
    let whole = Image::open(Input::memory(&shape_file!("gcc-O0-noeh")[..]), &Limits::default()).unwrap();
    let text = whole.section(".text").unwrap();
    let cut = (text.offset + text.size / 2) as usize;
    let image = Image::open(Input::memory(&shape_file!("gcc-O0-noeh")[..cut]), &Limits::default()).unwrap();
    let shape = judge(&image, &functions::read(&image).functions, &Selection::All);
    let codes: Vec<&str> = shape.problems.iter().map(|problem| problem.code.as_str()).collect();
    assert_eq!(codes, ["unreadable-text"]);
    assert_eq!(shape.bytes_left_out, 0);
}

#[test]
fn returns_through_a_thunk_are_no_tail_calls() {
    let shape = judge_all(shape_file!("gcc-O0-thunk"));
    assert_eq!((shape.verdict.clone(), shape.totals.tail_calls), (Verdict::O0, 0));
    let shape = judge_all(shape_file!("gcc-O2-thunk"));
    assert_eq!(shape.verdict, Verdict::Optimized);
    assert!(shape.return_thunks && shape.tail_calls(None).is_none());
}

#[test]
fn tail_calls_are_counted_among_the_functions_asked_for() {
    let shape = judge_all(shape_file!("gcc-O2"));
    let all = shape.tail_calls(None).unwrap();
    assert_eq!((all.functions, all.scope.as_str()), (29, "all"));
    assert!(all.tail_calls > 0);
    let tail: Vec<u64> = shape.functions.iter().filter(|j| j.tail_call).map(|j| j.start).collect();
    let some = shape.tail_calls(Some(&tail)).unwrap();
    assert_eq!((some.functions, some.tail_calls), (all.tail_calls, all.tail_calls));
    assert!(shape.tail_calls(Some(&[1, 2])).is_none());
    assert_eq!(judge_all(shape_file!("gcc-O0")).tail_calls(None).unwrap().tail_calls, 0);
}

#[test]
fn without_frame_descriptions_functions_are_found_in_the_code() {
    let shape = judge_all(shape_file!("gcc-O0-noeh"));
    assert_eq!(shape.verdict, Verdict::O0);
    assert_eq!(shape.discovered, 29);
    assert_eq!(shape.counts.o0, 29);
    let shape = judge_all(shape_file!("gcc-O2-noeh"));
    assert_eq!(shape.verdict, Verdict::Optimized);
    assert_eq!(shape.counts.o0, 0);
}

/// The file as Free Pascal would mark it: `.comment` takes the name of that compiler's own section.
fn as_pascal(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.windows(8).rposition(|w| w == b".comment").unwrap();
    bytes[at..at + 8].copy_from_slice(b".fpcdata");
    bytes
}

#[test]
fn in_a_program_of_another_language_only_code_with_frame_descriptions_is_judged() {
    let shape = judge_all(&as_pascal(shape_file!("gcc-O0")));
    assert_eq!((&shape.verdict, shape.counts.o0), (&Verdict::O0, 29));
    assert!(shape.only_functions && shape.sentence.starts_with("of the code beside Free Pascal, 29 of 29"));
    let shape = judge_all(&as_pascal(shape_file!("gcc-O0-noeh")));
    assert!(matches!(shape.verdict, Verdict::Unknown(_)), "{:?}", shape.verdict);
    // Symbols of functions say nothing about the language.
    let image = open(&as_pascal(shape_file!("gcc-O0-noeh")));
    let mut table = functions::read(&image).functions;
    let text = image.section(".text").unwrap();
    table.push(functions::Function {
        start: text.address,
        end: text.address + text.size,
        name: Some("P$MAIN_$$_RUN".to_owned()),
        cold: false,
        saves_high: false,
        saves_low: false,
        frame_pointer: false,
        from: Origin::Symbol,
    });
    let shape = judge(&image, &table, &Selection::All);
    assert!(matches!(shape.verdict, Verdict::Unknown(_)), "{:?}", shape.verdict);
}

#[test]
fn other_machines() {
    let shape = judge_all(shape_file!("aarch64-O0"));
    assert_eq!((shape.verdict.clone(), shape.counts.optimized), (Verdict::O0, 0));
    let shape = judge_all(shape_file!("aarch64-O2"));
    assert_eq!((shape.verdict.clone(), shape.counts.o0), (Verdict::Optimized, 0));
    let shape = judge_all(shape_file!("i386-O0"));
    assert_eq!((shape.verdict.clone(), shape.counts.optimized), (Verdict::O0, 0));
    let shape = judge_all(shape_file!("i386-O2"));
    assert_eq!((shape.verdict.clone(), shape.counts.o0), (Verdict::Optimized, 0));
    let mut bytes = shape_file!("gcc-O0").to_vec();
    bytes[18] = 0xf3; // EM_RISCV
    let shape = judge_all(&bytes);
    assert_eq!(shape.sentence, "reading machine code of riscv64 is not supported here");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_bytes_as_code_never_panic(noise in prop::collection::vec(any::<u8>(), 64..4000)) {
        for file in [&shape_file!("gcc-O0")[..], shape_file!("aarch64-O0"), shape_file!("i386-O0")] {
            let image = open(file);
            let table = functions::read(&image);
            let text = image.section(".text").unwrap();
            let mut bytes = file.to_vec();
            let at = text.offset as usize;
            let size = noise.len().min(text.size as usize);
            bytes[at..at + size].copy_from_slice(&noise[..size]);
            let image = open(&bytes);
            let shape = judge(&image, &table.functions, &Selection::All);
            prop_assert!(shape.counts.functions >= shape.counts.judged());
            let _ = judge(&image, &table.functions, &Selection::Sample(5));
        }
    }
}
