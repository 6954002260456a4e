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
