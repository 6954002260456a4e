//! Shapes of units whose levels are known, and bounds.

use super::*;
use crate::evidence::dwarf_producer;
use crate::image::Input;
use crate::limits::Limits;
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::path::Path;
use std::time::{Duration, Instant};

fn image(name: &str) -> Image {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dwarf").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Image::open(Input::memory(bytes), &Limits::default()).unwrap()
}

fn shape(name: &str) -> Shape {
    let image = image(name);
    let units = dwarf_producer::read(&image, None);
    let shapes = read(&image, &units.units, |_| true);
    assert_eq!((shapes.problems, shapes.units.len()), (vec![], 1), "{name}");
    shapes.units[&0]
}

#[test]
fn clang_marks_every_function_if_it_optimized_and_none_if_it_did_not() {
    let plain = shape("clang19-O0.o");
    assert_eq!(plain, Shape { functions: 2, fixed: 5, ..Shape::default() });
    let optimized = shape("clang19-O2.o");
    assert_eq!((optimized.functions, optimized.all_calls), (2, 2));
    assert!(optimized.call_sites > 0 && optimized.loclists > 0);
    // DWARF 4: the GNU attributes.
    let old = shape("clang19-v4-O1.o");
    assert_eq!((old.functions, old.all_calls), (2, 2));
    assert!(old.call_sites > 0);
}

#[test]
fn gcc_marks_functions_that_call_otherwise_without_optimization() {
    let optimized = shape("gcc12-O2");
    assert_eq!((optimized.functions, optimized.all_calls, optimized.all_tail_calls), (2, 2, 0));
    // `loc` calls nothing, `main` does.
    let plain = shape("gcc12-v4-O0.o");
    assert_eq!((plain.functions, plain.all_calls, plain.all_tail_calls), (2, 1, 1));
    assert_eq!((plain.call_sites, plain.loclists), (0, 0));
}

#[test]
fn only_units_asked_for_are_walked() {
    let image = image("gcc12-lto-mixed");
    let units = dwarf_producer::read(&image, None);
    let shapes = read(&image, &units.units, |unit| unit.name == b"l1.c");
    assert_eq!(shapes.units.keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn link_time_text_is_traced_to_the_units_it_came_from() {
    let image = image("gcc12-lto-mixed");
    let units = dwarf_producer::read(&image, None);
    let link_time = |unit: &DwarfUnit| unit.producer.as_ref().is_some_and(|p| p.starts_with(b"GNU GIMPLE"));
    let origins = origins(&image, &units.units, link_time);
    assert_eq!(origins.problems, []);
    let text = &origins.text[&0];
    // From the symbol table: loc 1130, main 1161 (both of l1.c), helper 1190 (l2.c).
    assert_eq!(text[&1], std::slice::from_ref(&(0x1130..0x118f)));
    assert_eq!(text[&2], std::slice::from_ref(&(0x1190..0x126f)));
    assert_eq!((text.len(), origins.text.len()), (2, 1));
}

#[test]
fn a_walk_is_bounded_by_attributes_and_not_by_entries() {
    // 4 000 flags that take no byte, for 200 000 entries of one byte: 800 million attributes in 200 kB.
    let mut abbreviations = vec![1, 0x11, 1, 0, 0, 2, 0x34, 0];
    abbreviations.extend([0x3f, 0x19].repeat(4_000));
    abbreviations.extend_from_slice(&[0, 0, 0]);
    let mut info = (200_000u32 + 8).to_le_bytes().to_vec();
    info.extend_from_slice(&[4, 0, 0, 0, 0, 0, 8, 1]);
    info.extend(std::iter::repeat_n(2, 200_000));
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    for (name, data) in [(".debug_info", &info), (".debug_abbrev", &abbreviations)] {
        let id = object.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::Debug);
        object.append_section_data(id, data, 1);
    }
    let image = Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap();
    let units = dwarf_producer::read(&image, None);
    assert_eq!((units.units.len(), units.problems.len()), (1, 0));
    let start = Instant::now();
    let shapes = read(&image, &units.units, |_| true);
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(shapes.units.is_empty());
    assert_eq!(shapes.problems[0].code, "too-many-debug-attributes");
}

#[test]
fn tables_that_overlap_are_read_until_they_cost_too_much() {
    // Each unit has a table of its own, which is the rest of the one before: 3 000 tables of 67 kB on average.
    let (mut abbreviations, mut info) = (Vec::new(), Vec::new());
    for code in 1..=3_000u32 {
        let low = [(code & 0x7f) as u8 | 0x80, (code >> 7) as u8];
        info.extend(9u32.to_le_bytes());
        info.extend([4, 0]);
        info.extend((abbreviations.len() as u32).to_le_bytes());
        info.push(8);
        info.extend(low);
        abbreviations.extend(low);
        abbreviations.extend([0x11, 0]);
        abbreviations.extend([0x3f, 0x19].repeat(20));
        abbreviations.extend([0, 0]);
    }
    abbreviations.push(0);
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    for (name, data) in [(".debug_info", &info), (".debug_abbrev", &abbreviations)] {
        let id = object.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::Debug);
        object.append_section_data(id, data, 1);
    }
    let image = Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap();
    let units = dwarf_producer::read(&image, None);
    assert_eq!((units.units.len(), units.problems), (3_000, vec![]));
    let shapes = read(&image, &units.units, |_| true);
    assert!((10..500).contains(&shapes.units.len()), "{}", shapes.units.len());
    assert!(shapes.problems[0].message.contains("overlap too much"), "{:?}", shapes.problems);
}

#[test]
fn flipped_bytes_neither_panic_nor_hang() {
    for file in ["gcc12-lto-mixed", "gcc12-O2", "clang19-O2.o", "gcc12-dwarf2"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dwarf").join(file);
        let whole = std::fs::read(path).unwrap();
        let sound = image(file);
        let units = dwarf_producer::read(&sound, None).units;
        for name in [".debug_info", ".debug_abbrev"] {
            let section = sound.section(name).unwrap();
            for at in section.offset as usize..(section.offset + section.size) as usize {
                for value in [0, 0xff, whole[at] ^ 1, whole[at] ^ 0x80] {
                    let mut mutant = whole.clone();
                    mutant[at] = value;
                    let mutant = Image::open(Input::memory(mutant), &Limits::default()).unwrap();
                    // The list of units of the sound file: offsets that need not be right any more.
                    let _ = read(&mutant, &units, |_| true);
                    let _ = origins(&mutant, &units, |_| true);
                }
            }
        }
    }
}

#[test]
fn a_block_of_any_size_ends_the_walk_and_is_told() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dwarf/clang19-O0.o");
    let mut bytes = std::fs::read(path).unwrap();
    // The length of a location, as LEB128: the attributes behind it are of known sizes, which are added to it.
    bytes[0x19c..0x1a6].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    let image = Image::open(Input::memory(bytes), &Limits::default()).unwrap();
    let units = dwarf_producer::read(&image, None);
    let shapes = read(&image, &units.units, |_| true);
    assert!(shapes.problems.iter().any(|problem| problem.loses_facts), "{:?}", shapes.problems);
}

#[test]
fn units_beside_type_units_are_walked() {
    // Each type has a section of its own, and all of them begin at 0.
    let image = image("clang14-types5.o");
    let units = dwarf_producer::read(&image, None).units;
    let code = units.iter().position(|unit| unit.name == b"types.cpp").unwrap();
    assert!(code > 0 && units.iter().all(|unit| unit.at.offset == 0), "{units:?}");
    let shapes = read(&image, &units, |unit| unit.place() == units[code].place());
    assert_eq!(shapes.problems, []);
    assert_eq!(
        shapes.units,
        HashMap::from([(code, Shape { functions: 1, all_calls: 1, fixed: 1, ..Shape::default() })])
    );
}
