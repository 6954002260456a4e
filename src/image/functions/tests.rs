use super::*;
use crate::image::Input;
use crate::limits::Limits;
use proptest::prelude::*;

const OPTIMIZED: &[u8] = include_bytes!("../../../testdata/shape/gcc-O2");
const UNOPTIMIZED: &[u8] = include_bytes!("../../../testdata/shape/gcc-O0");
const AARCH64: &[u8] = include_bytes!("../../../testdata/shape/aarch64-O2");

fn open(bytes: &[u8]) -> Image {
    Image::open(Input::memory(bytes), &Limits::default()).unwrap()
}

/// The file as `sstrip` leaves it: no section table.
fn without_sections(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    bytes
}

#[test]
fn a_stripped_library_tells_its_functions_and_what_they_save() {
    let table = read(&open(OPTIMIZED));
    assert!(table.problems.is_empty());
    assert_eq!(table.functions.len(), 29);
    // Counted with `readelf --debug-dump=frames`.
    assert_eq!(table.functions.iter().filter(|f| f.saves_high).count(), 4);
    assert_eq!(table.functions.iter().filter(|f| f.saves_low).count(), 11);
    assert!(table.functions.iter().all(|f| !f.cold && f.from == Origin::EhFrame && f.name.is_none()));
    let table = read(&open(UNOPTIMIZED));
    assert_eq!(table.functions.iter().filter(|f| f.saves_high).count(), 0);
    assert!(table.functions.iter().all(|f| f.frame_pointer));
    let table = read(&open(AARCH64));
    assert_eq!(table.functions.len(), 29);
    assert!(table.functions.iter().any(|f| f.saves_high));
}

#[test]
fn functions_are_sorted_do_not_overlap_and_lie_in_the_text() {
    let image = open(UNOPTIMIZED);
    let table = read(&image);
    let text = image.text_ranges();
    for pair in table.functions.windows(2) {
        assert!(pair[0].end <= pair[1].start);
    }
    for function in &table.functions {
        assert!(text.iter().any(|r| r.start <= function.start && function.end <= r.end));
        assert_eq!(table.containing(function.end - 1), Some(function));
        assert_eq!(table.at(function.start), Some(function));
    }
}

#[test]
fn the_plt_is_runtime_and_no_function() {
    let image = open(UNOPTIMIZED);
    let plt = image.section(".plt").unwrap().address;
    let table = read(&image);
    assert!(table.containing(plt).is_none());
    assert!(table.runtime.iter().any(|r| r.contains(&plt)));
}

#[test]
fn without_a_section_table_the_same_functions_are_found() {
    let with = read(&open(OPTIMIZED));
    let image = open(&without_sections(OPTIMIZED));
    assert!(image.sections.is_empty());
    let without = read(&image);
    assert!(without.problems.is_empty());
    let starts =
        |t: &FunctionTable| t.functions.iter().filter(|f| !f.cold).map(|f| f.start).collect::<Vec<_>>();
    assert_eq!(starts(&with), starts(&without));
    // The PLT's own entry begins with its frame set up.
    assert_eq!(without.functions.iter().filter(|f| f.cold).count(), 1);
}

#[test]
fn symbols_name_functions_and_add_those_without_a_frame_description() {
    let image = open(UNOPTIMIZED);
    let mut table = read(&image);
    let first = table.functions[0].clone();
    let last = table.functions.pop().unwrap();
    let inside = first.start + 1;
    let plt = image.section(".plt").unwrap().address;
    let symbols = [
        (first.start, first.size(), "first"),
        (first.start, first.size(), "alias"),
        (inside, 4, "label"),
        (last.start, last.size(), "last.cold.3"),
        (plt, 16, "f@plt"),
        (u64::MAX, 4, "absolute"),
        (8, 0, "outside"),
    ];
    table.add_symbols(&image, symbols);
    assert_eq!(table.functions.len(), 29);
    assert_eq!(table.at(first.start).unwrap().name.as_deref(), Some("first"));
    let added = table.at(last.start).unwrap();
    assert_eq!((added.from, added.cold, added.end), (Origin::Symbol, true, last.end));
}

#[test]
fn names_of_split_off_parts() {
    assert!(is_cold_name("f.cold"));
    assert!(is_cold_name("f.cold.12"));
    assert!(!is_cold_name("cold"));
    assert!(!is_cold_name("f.colder"));
}

#[test]
fn a_damaged_entry_costs_only_itself() {
    let image = open(OPTIMIZED);
    let section = image.section(".eh_frame").unwrap();
    let mut bytes = OPTIMIZED.to_vec();
    // The second entry (the first is the common one) gets a pointer to a common entry before the table.
    let at = section.offset as usize + 0x18 + 4;
    bytes[at..at + 4].copy_from_slice(&0x00ff_ffff_u32.to_le_bytes());
    let table = read(&open(&bytes));
    assert_eq!(table.problems.len(), 1);
    assert!(table.problems[0].message.starts_with("1 of "), "{:?}", table.problems);
    assert!(table.functions.len() >= 28);
}

#[test]
fn more_functions_than_the_limit_is_a_problem() {
    let limits = Limits { functions: 5, ..Limits::default() };
    let table = read(&Image::open(Input::memory(OPTIMIZED), &limits).unwrap());
    assert_eq!(table.functions.len(), 5);
    assert_eq!(table.problems[0].code, "too-many-functions");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn flipped_bytes_never_panic(flips in prop::collection::vec((0..OPTIMIZED.len(), any::<u8>()), 1..40)) {
        let mut bytes = OPTIMIZED.to_vec();
        for (at, value) in flips {
            bytes[at] = value;
        }
        if let Ok(image) = Image::open(Input::memory(bytes), &Limits::default()) {
            let table = read(&image);
            prop_assert!(table.functions.windows(2).all(|w| w[0].end <= w[1].start));
        }
    }

    #[test]
    fn a_table_of_any_bytes_never_panics(noise in prop::collection::vec(any::<u8>(), 1..600)) {
        let image = open(UNOPTIMIZED);
        let section = image.section(".eh_frame").unwrap();
        let mut bytes = UNOPTIMIZED.to_vec();
        let at = section.offset as usize;
        let size = noise.len().min(section.size as usize);
        bytes[at..at + size].copy_from_slice(&noise[..size]);
        let _ = read(&open(&bytes));
        let _ = read(&open(&without_sections(&bytes)));
    }
}
