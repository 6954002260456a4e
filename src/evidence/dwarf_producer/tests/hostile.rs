//! Files nobody's compiler wrote.

use super::*;
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};

/// An object file of these sections. 64-bit, little-endian.
pub(super) fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    for (name, data) in sections {
        let id = object.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::Debug);
        object.append_section_data(id, data, 1);
    }
    object.write().unwrap()
}

fn units_of(sections: &[(&str, &[u8])]) -> DwarfUnits {
    let start = Instant::now();
    let units = read(&image(elf(sections)), None);
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
    units
}

/// A DWARF 4 unit: header and contents.
pub(super) fn unit4(abbreviations: u32, contents: &[u8]) -> Vec<u8> {
    let mut unit = (contents.len() as u32 + 7).to_le_bytes().to_vec();
    unit.extend_from_slice(&4u16.to_le_bytes());
    unit.extend_from_slice(&abbreviations.to_le_bytes());
    unit.push(8);
    unit.extend_from_slice(contents);
    unit
}

/// Code 1: a compile unit with inline name and producer.
pub(super) const PLAIN: &[u8] = &[1, 0x11, 0, 0x03, 0x08, 0x25, 0x08, 0, 0, 0];

pub(super) fn plain(name: &str) -> Vec<u8> {
    let mut contents = vec![1];
    contents.extend_from_slice(name.as_bytes());
    contents.extend_from_slice(b"\0cc -O2\0");
    unit4(0, &contents)
}

fn names(units: &DwarfUnits) -> Vec<&str> {
    units.units.iter().map(|unit| std::str::from_utf8(&unit.name).unwrap()).collect()
}

#[test]
fn a_bad_unit_of_sound_length_is_passed_over_and_named() {
    let mut version = plain("version");
    version[4] = 9;
    let unknown = unit4(0, &[7]);
    // These two describe nothing, which is no damage.
    let null = unit4(0, &[0]);
    let empty = unit4(0, &[]);
    let far = unit4(0xffff, &[1, b'x', 0, b'y', 0]);
    let cut = unit4(0, &[1, b'c', b'u', b't', 0, b'n', b'o', b'e', b'n', b'd']);
    let info = [plain("a"), version, unknown, plain("b"), null, empty, far, cut, plain("c")].concat();
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", PLAIN)]);
    // What stands before the damage is kept.
    assert_eq!(names(&units), ["a", "b", "cut", "c"]);
    assert_eq!(units.units[2].producer, None);
    let codes: Vec<_> = units.problems.iter().map(|p| p.code.as_str()).collect();
    assert_eq!(codes.iter().filter(|c| **c == "damaged-debug-info").count(), 2, "{:?}", units.problems);
    assert_eq!(codes.iter().filter(|c| **c == "damaged-debug-abbrev").count(), 2, "{:?}", units.problems);
    assert!(units.problems.iter().all(|p| p.loses_facts && p.message.contains(".debug_info+0x")));
}

#[test]
fn a_bad_length_ends_the_walk_and_says_what_is_lost() {
    let mut bad = plain("bad");
    bad[..4].copy_from_slice(&0x00ff_ffffu32.to_le_bytes());
    let info = [plain("a"), bad.clone(), plain("b")].concat();
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", PLAIN)]);
    assert_eq!(names(&units), ["a"]);
    assert_eq!(units.problems.len(), 1);
    let left = bad.len() + plain("b").len();
    assert!(units.problems[0].message.contains(&format!("of {left} left")), "{:?}", units.problems);
    // A reserved length.
    bad[..4].copy_from_slice(&0xffff_fff5u32.to_le_bytes());
    let info = [plain("a"), bad].concat();
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", PLAIN)]);
    assert_eq!((names(&units), units.problems.len()), (vec!["a"], 1));
}

#[test]
fn a_unit_of_code_is_no_shared_part_whatever_its_tag_became() {
    // Name, producer, low and high address of a compile unit (0x11), a partial (0x3c) and a type unit (0x41).
    for (tag, problems) in [(0x11, 0), (0x3c, 1), (0x41, 1)] {
        let abbreviations = [1, tag, 0, 0x03, 0x08, 0x25, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, 0];
        let mut contents = b"\x01a\0cc -O0\0".to_vec();
        contents.extend_from_slice(&0x1000u64.to_le_bytes());
        contents.extend_from_slice(&0x20u64.to_le_bytes());
        let units = units_of(&[(".debug_info", &unit4(0, &contents)), (".debug_abbrev", &abbreviations)]);
        assert_eq!(units.units[0].kind, DwarfUnitKind::Compile, "{tag:#x}");
        assert_eq!(units.units[0].ranges.first(), Some(&(0x1000..0x1020)));
        assert_eq!(units.problems.len(), problems, "{:?}", units.problems);
    }
}

#[test]
fn padding_is_passed_over_and_a_hole_is_reported() {
    let info = [plain("a"), vec![0; 8], plain("b"), vec![0; 3]].concat();
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", PLAIN)]);
    assert_eq!((names(&units), units.problems.len()), (vec!["a", "b"], 0));
    let info = [plain("a"), vec![0; 4096], plain("b")].concat();
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", PLAIN)]);
    assert_eq!((names(&units), units.problems.len()), (vec!["a", "b"], 1));
    assert!(units.problems[0].message.contains("4096 zero bytes"));
}

#[test]
fn string_indexes_may_come_before_their_base() {
    // Code 1: a compile unit whose name is strx1, with DW_AT_str_offsets_base (sec_offset) after it.
    let abbreviations = [1, 0x11, 0, 0x03, 0x25, 0x25, 0x25, 0x72, 0x17, 0, 0, 0];
    let mut info = vec![0; 4];
    info.extend_from_slice(&[5, 0, 1, 8, 0, 0, 0, 0, 1, 1, 0, 16, 0, 0, 0]);
    info[0] = info.len() as u8 - 4;
    let mut offsets = vec![0xee; 16];
    for offset in [3u32, 0] {
        offsets.extend_from_slice(&offset.to_le_bytes());
    }
    let units = units_of(&[
        (".debug_info", &info),
        (".debug_abbrev", &abbreviations),
        (".debug_str_offsets", &offsets),
        (".debug_str", b"cc\0n.c\0"),
    ]);
    assert_eq!(units.problems, []);
    assert_eq!((names(&units), units.units[0].producer.as_deref()), (vec!["cc"], Some(&b"n.c"[..])));
}

#[test]
fn strings_without_end_or_outside_are_problems() {
    let abbreviations = [1, 0x11, 0, 0x03, 0x0e, 0x25, 0x0e, 0, 0, 0];
    let unit = |name: u32, producer: u32| {
        let mut contents = vec![1];
        contents.extend_from_slice(&name.to_le_bytes());
        contents.extend_from_slice(&producer.to_le_bytes());
        unit4(0, &contents)
    };
    let info = [unit(0, 4), unit(0, 5), unit(0, 0xffff_ffff)].concat();
    let units =
        units_of(&[(".debug_info", &info), (".debug_abbrev", &abbreviations), (".debug_str", b"n.c\0noend")]);
    assert_eq!(names(&units), ["n.c", "n.c", "n.c"]);
    assert!(units.units.iter().all(|unit| unit.producer.is_none()));
    assert_eq!(units.problems.iter().filter(|p| p.code == "damaged-debug-str").count(), 3);
}

#[test]
fn many_units_sharing_one_huge_table_cost_one_look_through_it() {
    // 520 kB of declarations before the one that all roots use.
    let mut abbreviations = Vec::new();
    for code in 0..65_000u32 {
        abbreviations.extend_from_slice(&[0x80 | (code & 0x7f) as u8, 0x80 | (code >> 7 & 0x7f) as u8]);
        abbreviations.extend_from_slice(&[(code >> 14) as u8 + 8, 0x24, 0, 0x0b, 0x0b, 0, 0]);
    }
    abbreviations.extend_from_slice(PLAIN);
    let info: Vec<u8> = (0..300).flat_map(|i| plain(&format!("{i}"))).collect();
    let start = Instant::now();
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", &abbreviations)]);
    assert_eq!((units.units.len(), units.problems.len()), (300, 0));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn units_that_each_look_for_another_code_are_bounded() {
    let declaration = [2, 0x24, 0, 0x0b, 0x0b, 0, 0];
    let abbreviations = declaration.repeat(100_000);
    // 20 000 units, each starting at another declaration: 20 000 × 700 kB, were it not for the bound.
    let info: Vec<u8> = (0..20_000u32).flat_map(|i| unit4(i * 7, &[1])).collect();
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", &abbreviations)]);
    assert!(units.units.is_empty());
    assert!(units.problems.iter().any(|p| p.message.contains("more of this kind")));
}

#[test]
fn attributes_without_bytes_are_bounded() {
    // A root entry of 60 000 flags that take no byte, for 10 000 units.
    let mut abbreviations = vec![1, 0x11, 0];
    abbreviations.extend([0x3f, 0x19].repeat(60_000));
    abbreviations.extend_from_slice(&[0, 0, 0]);
    let info = unit4(0, &[1]).repeat(10_000);
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", &abbreviations)]);
    assert!(units.units.is_empty() && !units.problems.is_empty());
    // As many as are accepted, for many units.
    let mut abbreviations = vec![1, 0x11, 0];
    abbreviations.extend([0x3f, 0x19].repeat(4_000));
    abbreviations.extend_from_slice(&[0, 0, 0]);
    let units = units_of(&[(".debug_info", &info), (".debug_abbrev", &abbreviations)]);
    assert!(units.problems.iter().any(|p| p.code == "too-many-debug-attributes"));
}

#[test]
fn shared_texts_and_ranges_are_bounded_in_memory() {
    let abbreviations = [1, 0x11, 0, 0x03, 0x0e, 0x55, 0x17, 0, 0, 0];
    let mut contents = vec![1];
    contents.extend_from_slice(&0u32.to_le_bytes());
    contents.extend_from_slice(&0u32.to_le_bytes());
    let info = unit4(0, &contents).repeat(20_000);
    let mut text = vec![b'x'; 60_000];
    text.push(0);
    let ranges: Vec<u8> =
        (1..4_000u64).flat_map(|i| [(i * 16).to_le_bytes(), (i * 16 + 8).to_le_bytes()]).flatten().collect();
    let units = units_of(&[
        (".debug_info", &info),
        (".debug_abbrev", &abbreviations),
        (".debug_str", &text),
        (".debug_ranges", &[&ranges[..], &[0; 16]].concat()),
    ]);
    let held: usize = units.units.iter().map(|u| u.name.len() + u.ranges.len() * 16).sum();
    assert!(held < 128 << 20, "{held}");
    assert!(!units.problems.is_empty());
}

#[test]
fn a_limit_of_units_is_kept_and_reported() {
    let file = elf(&[(".debug_info", &plain("a").repeat(10)), (".debug_abbrev", PLAIN)]);
    let limits = Limits { units: 3, ..Limits::default() };
    let image = Image::open(Input::memory(file), &limits).unwrap();
    let units = read(&image, None);
    assert_eq!(units.units.len(), 3);
    assert_eq!(units.problems[0].code, "too-many-units");
}

#[test]
fn lying_sizes_are_refused_before_inflation() {
    let start = Instant::now();
    for claim in [6u64 << 30, 900 << 20] {
        let mut section = b"ZLIB".to_vec();
        section.extend_from_slice(&claim.to_be_bytes());
        section.extend_from_slice(&[0x78, 0x9c, 0x63, 0, 0, 0, 1, 0, 1]);
        let units = units_of(&[(".zdebug_info", &section)]);
        assert_eq!(units.units, []);
        assert_eq!(units.problems.len(), 1, "{:?}", units.problems);
    }
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_large_compressed_section_of_strings_passes_by_as_a_stream() {
    use std::io::Write;
    // More than is inflated whole, with the wanted texts far apart and in an order of their own.
    let size = 56usize << 20;
    let mut strings = vec![b'.'; size];
    for (at, text) in [(size - 9, &b"\0last.c\0\0"[..]), (100, b"\0first.c\0")] {
        strings[at..at + text.len()].copy_from_slice(text);
    }
    let mut packed = b"ZLIB".to_vec();
    packed.extend_from_slice(&(size as u64).to_be_bytes());
    let mut encoder = flate2::write::ZlibEncoder::new(packed, flate2::Compression::fast());
    encoder.write_all(&strings).unwrap();
    let packed = encoder.finish().unwrap();
    let abbreviations = [1, 0x11, 0, 0x03, 0x0e, 0, 0, 0];
    let unit = |at: usize| {
        let mut contents = vec![1];
        contents.extend_from_slice(&(at as u32).to_le_bytes());
        unit4(0, &contents)
    };
    let info = [unit(size - 8), unit(101), unit(size - 8)].concat();
    let units =
        units_of(&[(".debug_info", &info), (".debug_abbrev", &abbreviations), (".zdebug_str", &packed)]);
    assert_eq!(units.problems, []);
    assert_eq!(names(&units), ["last.c", "first.c", "last.c"]);
}
