use crate::image::{Image, Input};
use crate::limits::Limits;
use std::path::{Path, PathBuf};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn open(bytes: &[u8]) -> Image {
    Image::open(Input::memory(bytes), &Limits::default()).unwrap()
}

/// Fields of a 64-bit section header: offset and size.
const NAME: (usize, usize) = (0, 4);
const FLAGS: (usize, usize) = (8, 8);
const ADDRESS: (usize, usize) = (16, 8);
const OFFSET: (usize, usize) = (24, 8);
const SIZE: (usize, usize) = (32, 8);

/// What is said of the file once a field of a section's header holds another value.
fn with(file: &str, section: &str, (field, len): (usize, usize), value: u64) -> Vec<String> {
    let mut bytes = std::fs::read(testdata(file)).unwrap();
    let index = match section {
        "" => 0,
        name => open(&bytes).section(name).unwrap().index,
    };
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let at = table + index * 64 + field;
    bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    said(&bytes)
}

fn said(bytes: &[u8]) -> Vec<String> {
    open(bytes)
        .problems
        .iter()
        .filter(|p| p.loses_facts)
        .map(|p| format!("{}: {}", p.code, p.message))
        .collect()
}

fn assert_says(said: &[String], word: &str) {
    assert!(said.iter().any(|line| line.contains(word)), "{word}: {said:#?}");
}

#[test]
fn a_size_that_hides_code_is_damage() {
    let all = with("cases/annobin-note", ".text", SIZE, 0x2a);
    assert_says(&all, "behind section 15 .text belong to no section");
    assert_says(&all, "the program begins at 0x10f0, where no section of code is");
}

#[test]
fn a_size_that_hides_functions_is_damage() {
    assert_says(&with("shape/gcc-mixed", ".eh_frame", SIZE, 0x40), ".eh_frame belong to no section");
    // Constants say nothing of functions, and Go's linker leaves gaps behind them.
    assert_eq!(with("dwarf/gcc12-O2", ".rodata", SIZE, 1), [""; 0]);
}

#[test]
fn an_address_that_moves_code_is_damage() {
    assert_says(
        &with("shape/gcc-mixed", ".text", ADDRESS, 0x33),
        "lies elsewhere in the file than its segment says",
    );
    assert_says(&with("shape/gcc-mixed", ".text", ADDRESS, 1 << 40), ".text lies in no loaded segment");
    assert_says(&with("shape/gcc-mixed", ".text", SIZE, 1 << 40), ".text reaches out of its segment");
}

#[test]
fn an_offset_that_lets_other_bytes_be_read_is_damage() {
    assert_says(
        &with("dwarf/gcc12-O2", ".text", OFFSET, 0x40),
        "lies elsewhere in the file than its segment says",
    );
    assert_says(&with("dwarf/gcc12-O2", ".debug_info", OFFSET, 0x1000), "claim the same bytes");
}

#[test]
fn code_that_is_not_marked_as_code_is_damage() {
    assert_says(&with("dwarf/gcc12-O2", ".text", FLAGS, 2), ".text is not marked as executable");
    assert_says(&with("elf/tx1.o", ".text", FLAGS, 2), ".text is not marked as executable");
}

#[test]
fn code_in_a_segment_without_execution_is_damage() {
    let mut bytes = std::fs::read(testdata("dwarf/gcc12-O2")).unwrap();
    let code = open(&bytes).segments.iter().position(|s| s.kind.0 == 1 && s.flags & 1 != 0).unwrap();
    let flags = 64 + code * 56 + 4;
    bytes[flags] = 4;
    assert_says(&said(&bytes), "is code in a segment that may not be executed");
}

#[test]
fn a_part_of_the_debug_information_that_no_section_counts_is_damage() {
    for (file, size) in [("dwarf/gcc12-O2", 0x20), ("elf/tx1.o", 0x20)] {
        assert_says(&with(file, ".debug_info", SIZE, size), "belong to neither");
    }
    assert_says(&with("dwarf/gcc12-O2", ".debug_info", NAME, 1), "no .debug_info that it is of");
    assert_says(
        &with("dwarf/gcc12-O2", ".debug_info", NAME, 1 << 20),
        "named by a text outside the table of names",
    );
}

#[test]
fn a_program_that_is_called_relocatable_is_damage() {
    let mut bytes = std::fs::read(testdata("shape/dark-around-O2")).unwrap();
    bytes[16] = 1;
    assert_says(&said(&bytes), "a relocatable file with segments to be loaded");
}

#[test]
fn a_first_header_that_is_not_empty_is_damage() {
    assert_says(&with("elf/tx1.o", "", ADDRESS, 1), "the first section header is not empty");
}

#[test]
fn names_that_stand_in_no_table_of_strings_are_damage() {
    let mut bytes = std::fs::read(testdata("elf/tx1.o")).unwrap();
    bytes[62] = 1;
    assert_says(&said(&bytes), "section 1 is said to hold the names of the sections");
}

#[test]
fn sound_files_contradict_nothing() {
    let mut checked = 0;
    for folder in ["dwarf", "elf", "shape", "cases", "guide"] {
        for entry in std::fs::read_dir(testdata(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let damaged =
                name.starts_with("v_") || ["h_zlib_lie", "h_zlib_huge2", "h_zstd_lie"].contains(&&name[..]);
            let Ok(bytes) = std::fs::read(&path) else { continue };
            if damaged || !bytes.starts_with(b"\x7fELF") {
                continue;
            }
            checked += 1;
            assert_eq!(said(&bytes), [""; 0], "{}", path.display());
        }
    }
    assert!(checked > 150, "{checked}");
}

/// What patchelf leaves where it moved a table from, and a gap of zeros, are no parts of the program.
#[test]
fn one_byte_over_and_over_fills() {
    let mut bytes = std::fs::read(testdata("cases/annobin-note")).unwrap();
    let text = open(&bytes).section(".text").unwrap().clone();
    let from = text.offset as usize + 0x2a;
    let end = (text.offset + text.size) as usize;
    bytes[from..end].fill(b'X');
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    bytes[table + text.index * 64 + 32..][..8].copy_from_slice(&0x2au64.to_le_bytes());
    assert!(!said(&bytes).iter().any(|line| line.contains("belong to no section")), "{:?}", said(&bytes));
}

/// Offsets of a 64-bit file's header: where its section headers are, how many, and which has the names.
const TABLE: usize = 40;
const COUNT: usize = 60;
const NAMES: usize = 62;

#[test]
fn a_table_of_nothing_is_damage_and_the_segments_hold_the_code() {
    for (file, kind) in
        [("dwarf/gcc12-O2", "linked"), ("elf/h_relro", "linked"), ("elf/tx1.o", "relocatable")]
    {
        let whole = std::fs::read(testdata(file)).unwrap();
        let table = u64::from_le_bytes(whole[TABLE..TABLE + 8].try_into().unwrap()) as usize;
        let count = usize::from(u16::from_le_bytes(whole[COUNT..COUNT + 2].try_into().unwrap()));
        let mut one = whole.clone();
        one[COUNT..COUNT + 2].copy_from_slice(&[1, 0]);
        let mut zeros = whole.clone();
        zeros[table..table + count * 64].fill(0);
        zeros[NAMES..NAMES + 2].fill(0);
        for bytes in [one, zeros] {
            assert_says(&said(&bytes), "lists no section");
            let image = open(&bytes);
            assert!(image.sections.is_empty() && !image.described);
            assert_eq!(image.text_ranges().is_empty(), kind == "relocatable", "{file}");
        }
    }
    // Sections that are no part of the program: none is allocated.
    let mut bytes = std::fs::read(testdata("dwarf/gcc12-O2")).unwrap();
    let table = u64::from_le_bytes(bytes[TABLE..TABLE + 8].try_into().unwrap()) as usize;
    for index in 0..open(&bytes).sections.len() {
        bytes[table + index * 64 + FLAGS.0] = 0;
    }
    assert_says(&said(&bytes), "no section holds the code of the program");
    assert!(!open(&bytes).text_ranges().is_empty() && open(&bytes).section(".debug_info").is_some());
}

#[test]
fn a_number_without_a_place_and_a_place_without_a_number_are_damage() {
    let whole = std::fs::read(testdata("dwarf/gcc12-O2")).unwrap();
    let changed = |places: &[std::ops::Range<usize>]| {
        let mut bytes = whole.clone();
        for place in places {
            bytes[place.clone()].fill(0);
        }
        said(&bytes)
    };
    let (table, count, names) = (TABLE..TABLE + 8, COUNT..COUNT + 2, NAMES..NAMES + 2);
    assert_says(&changed(std::slice::from_ref(&table)), "section headers, and nowhere in the file");
    assert_says(&changed(std::slice::from_ref(&count)), "and their number is 0");
    // As `objcopy --strip-sections` and sstrip leave it.
    assert_eq!(changed(&[table, count, names]), [""; 0]);
}

#[test]
fn names_without_a_table_or_in_another_one_are_damage() {
    for file in ["dwarf/gcc12-O2", "elf/tx1.o", "dwarf/clang19-O2.o"] {
        let whole = std::fs::read(testdata(file)).unwrap();
        let image = open(&whole);
        let names = u16::from_le_bytes(whole[NAMES..NAMES + 2].try_into().unwrap());
        let tables = image.sections.iter().filter(|s| s.kind.0 == 3 && s.index != usize::from(names));
        for index in tables.map(|s| s.index as u16).chain([0]) {
            let mut bytes = whole.clone();
            bytes[NAMES..NAMES + 2].copy_from_slice(&index.to_le_bytes());
            let all = said(&bytes);
            let why = if index == 0 { "no table of names" } else { "holds other texts" };
            assert_says(&all, why);
        }
    }
}

/// A program whose allocated sections are said to hold no bytes is not a separate debug file, which holds none.
#[test]
fn a_program_that_is_called_a_debug_file_is_damage() {
    for file in ["dwarf/gcc12-O2", "elf/h_relro", "elf/musl-static", "elf/static-pie"] {
        let mut bytes = std::fs::read(testdata(file)).unwrap();
        let image = open(&bytes);
        let table = u64::from_le_bytes(bytes[TABLE..TABLE + 8].try_into().unwrap()) as usize;
        for section in image.sections.iter().filter(|s| s.is_allocated() && s.kind.0 != 7) {
            bytes[table + section.index * 64 + 4] = 8;
        }
        assert_says(&said(&bytes), "no section holds the code of the program");
        let changed = open(&bytes);
        assert!(!crate::image::identity::is_separate_debug(&changed), "{file}");
        assert!(!changed.text_ranges().is_empty(), "{file}");
    }
    for file in
        ["elf/gcc12-stripped.debug", "cases/no-id.debug", "cases/no-id-O2.debug", "elf/gcc12-dwz-alt.debug"]
    {
        let image = open(&std::fs::read(testdata(file)).unwrap());
        assert!(crate::image::identity::is_separate_debug(&image), "{file}");
    }
}

/// As `eu-strip -f` leaves them: the program headers are those of the program, and their places are other things.
#[test]
fn a_debug_file_may_keep_the_program_headers_of_its_program() {
    let mut bytes = std::fs::read(testdata("elf/gcc12-stripped.debug")).unwrap();
    let program = open(&std::fs::read(testdata("elf/gcc12-stripped")).unwrap());
    let headers = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
    for (index, segment) in program.segments.iter().enumerate() {
        let at = headers + index * 56;
        assert_eq!(bytes[at..at + 4], segment.kind.0.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&segment.offset.to_le_bytes());
        bytes[at + 32..at + 40].copy_from_slice(&segment.file_size.to_le_bytes());
    }
    assert_eq!(said(&bytes), [""; 0]);
    assert!(crate::image::identity::is_separate_debug(&open(&bytes)));
}

#[test]
fn a_program_may_begin_at_a_descriptor_where_functions_have_one() {
    let begins = "the program begins at";
    let mut bytes = std::fs::read(testdata("dwarf/gcc12-O2")).unwrap();
    let data = open(&bytes).section(".data").unwrap().address;
    bytes[24..32].copy_from_slice(&data.to_le_bytes());
    assert_says(&said(&bytes), begins);
    for (machine, flags, sound) in
        [(21u16, 1u8, true), (21, 0, true), (21, 2, false), (15, 0, true), (50, 0, true)]
    {
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[48] = flags;
        assert_eq!(!said(&bytes).iter().any(|line| line.contains(begins)), sound, "{machine} {flags}");
    }
}

#[test]
fn names_over_the_limit_are_told() {
    let bytes = std::fs::read(testdata("elf/tx1.o")).unwrap();
    let codes = |string_bytes| {
        let limits = Limits { string_bytes, ..Limits::default() };
        let image = Image::open(Input::memory(bytes.clone()), &limits).unwrap();
        image.problems.into_iter().map(|problem| problem.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(10), ["string-too-long"]);
    assert_eq!(codes(100), [""; 0]);
}
