//! Files of every form, written hostile ones, and flipped bytes.

use super::*;
use crate::image::Input;
use crate::limits::Limits;
use std::path::Path;
use std::time::{Duration, Instant};

mod hostile;
mod shared_out;

const GCC: &str = "GNU C17 12.2.0 -mtune=generic -march=x86-64";

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dwarf").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn image(bytes: Vec<u8>) -> Image {
    Image::open(Input::memory(bytes), &Limits::default()).unwrap()
}

fn sound(name: &str) -> DwarfUnits {
    let units = read(&image(bytes(name)), None);
    assert_eq!(units.problems, [], "{name}");
    units
}

/// The only unit of a file: name, directory, producer.
fn only(name: &str) -> (String, String, String) {
    let units = sound(name);
    assert_eq!(units.units.len(), 1, "{name}");
    let unit = &units.units[0];
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&unit.name), text(&unit.comp_dir), text(unit.producer.as_deref().unwrap_or_default()))
}

fn triple(name: &str, directory: &str, producer: &str) -> (String, String, String) {
    (name.to_owned(), directory.to_owned(), producer.to_owned())
}

#[test]
fn every_version_and_format_reads_the_same() {
    for (file, version, flags) in [
        ("gcc12-dwarf2", 2, "-gdwarf-2 -g -O2"),
        ("gcc12-dwarf3", 3, "-gdwarf-3 -g -O2"),
        ("gcc12-O2", 5, "-g -O2"),
        ("gcc12-dwarf64", 5, "-gdwarf64 -g -O2"),
    ] {
        let producer = format!("{GCC} {flags} -fasynchronous-unwind-tables");
        assert_eq!(only(file), triple("t.c", "/w", &producer), "{file}");
        let units = sound(file);
        assert_eq!(units.versions, [version], "{file}");
        assert_eq!(units.units[0].ranges, [0x1060..0x108e, 0x1180..0x1184], "{file}");
        assert_eq!(units.units[0].kind, DwarfUnitKind::Compile);
        assert_eq!(units.units[0].at, Place { section: ".debug_info".into(), offset: 0 });
    }
}

#[test]
fn compression_of_every_kind_is_undone_and_named() {
    for (file, how, flags) in [
        ("gcc12-zlib", "zlib", "-g -gz=zlib -O2"),
        ("gcc12-zstd", "zstd", "-g -O2"),
        ("gcc12-zdebug", "zlib-gnu", "-g -O2"),
    ] {
        let producer = format!("{GCC} {flags} -fasynchronous-unwind-tables");
        assert_eq!(only(file), triple("t.c", "/w", &producer), "{file}");
        assert_eq!(sound(file).compressed.as_deref(), Some(how), "{file}");
        assert_eq!(sound(file).units[0].ranges, [0x1060..0x108e, 0x1180..0x1184], "{file}");
    }
    // Compressed and relocatable: relocations count in inflated bytes.
    let clang = "Debian clang version 19.1.7 (3~deb12u1)";
    assert_eq!(only("clang19-zstd.o"), triple("l1.c", "/w", clang));
}

#[test]
fn relocatable_files_of_many_machines_are_relocated() {
    let clang = "Debian clang version 19.1.7 (3~deb12u1)";
    let tail = "-fasynchronous-unwind-tables";
    for (file, name, producer, range) in [
        ("gcc12-fat.o", "l2.c", format!("{GCC} -g -O3 -flto -ffat-lto-objects {tail}"), 0..0xdf),
        ("gcc12-i686.o", "u.c", format!("GNU C17 12.2.0 -mtune=generic -march=i686 -g -O2 {tail}"), 0..0x19),
        (
            "gcc12-aarch64.o",
            "u.c",
            format!("GNU C17 12.2.0 -mlittle-endian -mabi=lp64 -g -O2 {tail}"),
            0..0x1c,
        ),
        ("s390x.o", "u.c", format!("GNU C17 12.2.0 -march=z196 -m64 -mzarch -g -O2 {tail}"), 0..0x22),
        ("ppc32.o", "u.c", "GNU C17 12.2.0 -msecure-plt -g -O2".to_owned(), 0..0x1c),
        ("clang19-O2.o", "t.c", clang.to_owned(), 0..0x45),
        ("clang19-crel.o", "l1.c", clang.to_owned(), 0..0x7a),
        ("clang19-mips64el.o", "l1.c", clang.to_owned(), 0..0xa0),
        // Its length of text is a pair of relocations, as the linker may shorten the code.
        ("clang19-riscv-relax.o", "l1.c", clang.to_owned(), 0..0x56),
    ] {
        assert_eq!(only(file), triple(name, "/w", &producer), "{file}");
        assert_eq!(sound(file).units[0].ranges, [range], "{file}");
    }
}

#[test]
fn an_unknown_relocation_is_a_problem_and_not_another_string() {
    let mut file = bytes("gcc12-fat.o");
    // e_machine: one whose relocation types are not known.
    file[18..20].copy_from_slice(&0x1234u16.to_le_bytes());
    let units = read(&image(file), None);
    assert!(units.units.iter().all(|unit| unit.producer.is_none()), "{units:?}");
    assert!(units.problems.iter().any(|p| p.message.contains("relocation")), "{:?}", units.problems);
}

#[test]
fn type_units_stand_in_sections_of_their_own_beside_the_unit() {
    let units = sound("gcc12-types5.o");
    let kinds: Vec<_> = units.units.iter().map(|unit| unit.kind.clone()).collect();
    assert_eq!(kinds, [DwarfUnitKind::Type, DwarfUnitKind::Type, DwarfUnitKind::Compile]);
    assert_eq!(units.units[2].name, b"types.cpp");
    assert!(units.units[2].producer.is_some());
    // DWARF 4 keeps them in .debug_types, which holds no units to judge.
    assert_eq!(only("gcc12-types4.o").0, "types.cpp");
}

#[test]
fn early_debug_information_of_slim_lto_objects_is_found() {
    let producer = format!("{GCC} -g -O3 -flto -fasynchronous-unwind-tables");
    assert_eq!(only("gcc12-slim.o"), triple("l2.c", "/w", &producer));
    assert_eq!(&*sound("gcc12-slim.o").units[0].at.section, ".gnu.debuglto_.debug_info");
}

#[test]
fn link_time_units_stand_beside_early_ones() {
    let units = sound("gcc12-lto-mixed");
    let seen: Vec<_> = units.units.iter().map(|unit| (unit.name.as_slice(), unit.ranges.len())).collect();
    assert_eq!(seen, [(&b"<artificial>"[..], 1), (&b"l1.c"[..], 0), (&b"l2.c"[..], 0)]);
}

#[test]
fn split_units_and_their_skeletons_name_each_other() {
    for (skeleton, dwo_name, split) in [
        ("gcc12-split-t.o", "/ex/gcc12-split-t.dwo", Some("gcc12-split-t.dwo")),
        ("clang19-split-t.o", "/ex/clang19-split-t.dwo", Some("clang19-split-t.dwo")),
        ("gcc12-split4-t.o", "/ex/gcc12-split4-t.dwo", None),
    ] {
        let units = sound(skeleton);
        let DwarfUnitKind::Skeleton { dwo_name: name, dwo_id } = &units.units[0].kind else {
            panic!("{skeleton}: {units:?}");
        };
        assert_eq!(name, dwo_name.as_bytes());
        assert!(dwo_id.is_some() && units.units[0].producer.is_none() && !units.units[0].ranges.is_empty());
        let Some(split) = split else { continue };
        assert_eq!(only(split).0, "t.c");
        let units = sound(split);
        assert_eq!(units.units[0].kind, DwarfUnitKind::Compile);
        assert_eq!(units.units[0].dwo_id, *dwo_id);
        assert_eq!(&*units.units[0].at.section, ".debug_info.dwo");
        assert!(units.units[0].producer.is_some());
    }
    // Both in one object file.
    let units = sound("clang19-single.o");
    assert_eq!(units.units.len(), 2);
    assert!(
        matches!(units.units[0].kind, DwarfUnitKind::Skeleton { dwo_id, .. } if dwo_id == units.units[1].dwo_id)
    );
}

#[test]
fn packages_of_split_units_give_each_unit_its_own_part() {
    for (file, version) in [("clang19-v4.dwp", 4), ("clang19-v5.dwp", 5)] {
        let units = sound(file);
        let names: Vec<_> = units.units.iter().map(|unit| unit.name.as_slice()).collect();
        assert_eq!(names, [b"l1.c", b"l2.c"], "{file}");
        assert_eq!(units.versions, [version]);
        for unit in &units.units {
            assert_eq!(unit.producer.as_deref(), Some(&b"Debian clang version 19.1.7 (3~deb12u1)"[..]));
            assert!(unit.dwo_id.is_some() && unit.kind == DwarfUnitKind::Compile);
        }
        assert_ne!(units.units[0].dwo_id, units.units[1].dwo_id);
    }
}

#[test]
fn strings_in_the_supplementary_file_are_read_there_or_missed() {
    let alone = sound("gcc12-dwz1");
    assert_eq!(alone.units[0].name, b"/w/dz1.c");
    assert_eq!(alone.units[0].producer, None);
    assert_eq!(alone.missing.len(), 1);
    let supplementary = image(bytes("gcc12-dwz-alt.debug"));
    let both = read(&image(bytes("gcc12-dwz1")), Some(&supplementary));
    let producer = format!("{GCC} -g -O2 -fasynchronous-unwind-tables");
    assert_eq!(both.units[0].producer.as_deref(), Some(producer.as_bytes()));
    assert!(both.missing.is_empty() && both.problems.is_empty());
}

#[test]
fn thirty_two_bits_and_none_at_all() {
    assert_eq!(only("gcc12-m32").0, "u.c");
    assert_eq!(sound("tcc.o"), DwarfUnits::default());
}

#[test]
fn a_hole_anywhere_in_the_units_leaves_the_ones_before_it() {
    let whole = bytes("gcc12-lto-mixed");
    let section = image(whole.clone()).section(".debug_info").unwrap().clone();
    let (start, end) = (section.offset as usize, (section.offset + section.size) as usize);
    for hole in start..end - 16 {
        let mut file = whole.clone();
        file[hole..end].fill(0);
        let units = read(&image(file), None);
        let sound = sound("gcc12-lto-mixed").units;
        // A hole in the entries below the root is none of our business, one before them is.
        let intact = sound.iter().filter(|unit| start as u64 + unit.at.offset + 60 < hole as u64).count();
        assert!(units.units.len() >= intact, "hole at {hole:#x}: {units:?}");
        assert_eq!(units.units[..intact], sound[..intact], "hole at {hole:#x}");
        assert!(units.units.len() == 3 || !units.problems.is_empty(), "hole at {hole:#x}: {units:?}");
    }
}

#[test]
fn a_section_that_runs_past_the_end_of_the_file_is_read_as_far_as_it_goes() {
    let whole = bytes("gcc12-lto-mixed");
    let info = image(whole.clone()).section(".debug_info").unwrap().clone();
    let mut file = whole.clone();
    // The size in the section's header: the file ends before it.
    let headers = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    let at = headers + info.index * 64 + 32;
    file[at..at + 8].copy_from_slice(&(whole.len() as u64 * 2).to_le_bytes());
    let units = read(&image(file), None);
    assert!(units.units.len() >= 3);
    assert_eq!(units.units[..3], sound("gcc12-lto-mixed").units);
    assert!(units.problems.iter().any(|p| p.message.contains("the file ends")), "{:?}", units.problems);
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn flipped_bytes_neither_panic_nor_hang() {
    let files = [
        "gcc12-dwarf2",
        "gcc12-O2",
        "gcc12-zlib",
        "gcc12-zstd",
        "gcc12-zdebug",
        "gcc12-fat.o",
        "gcc12-types5.o",
        "gcc12-split-t.o",
        "gcc12-split-t.dwo",
        "clang19-split-t.dwo",
        "clang19-v4.dwp",
        "clang19-v5.dwp",
        "clang19-riscv-relax.o",
        "clang19-crel.o",
        "clang19-zstd.o",
        "gcc12-dwz1",
        "s390x.o",
        "ppc32.o",
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let supplementary = image(bytes("gcc12-dwz-alt.debug"));
    for file in files {
        let whole = bytes(file);
        let sound = image(whole.clone());
        let wanted = |s: &&crate::image::Section| {
            s.has_data() && memchr::memmem::find(&s.name, b"debug_").is_some() && s.size > 0
        };
        // Places worth hitting: debug sections, their relocations, and all section headers.
        let mut places: Vec<Range<usize>> = sound
            .sections
            .iter()
            .filter(wanted)
            .map(|s| s.offset as usize..(s.offset + s.size) as usize)
            .collect();
        let table = if sound.header.is_64 { 40..48 } else { 32..36 };
        let fold = |at: u64, byte: &u8| at << 8 | u64::from(*byte);
        let headers = if sound.header.little_endian {
            whole[table].iter().rev().fold(0, fold)
        } else {
            whole[table].iter().fold(0, fold)
        };
        places.push(headers as usize..whole.len());
        for _ in 0..600 {
            let mut mutant = whole.clone();
            for _ in 0..=random.below(4) {
                let place = places[random.below(places.len())].clone();
                let at = place.start + random.below(place.len());
                mutant[at] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => mutant[at] ^ 1 << random.below(8),
                    _ => random.below(256) as u8,
                };
            }
            let Ok(mutant) = Image::open(Input::memory(mutant), &Limits::default()) else { continue };
            let start = Instant::now();
            let units = read(&mutant, Some(&supplementary));
            assert!(start.elapsed() < Duration::from_secs(5), "{file}");
            assert!(units.units.len() < 1000, "{file}");
        }
    }
}

#[test]
fn units_that_describe_nothing_are_no_damage() {
    let units = sound("empty.o");
    assert_eq!(units.units.len(), 1);
    assert_eq!(units.units[0].name, b"a.c");
    // More zeros than an empty unit has are where something was: the first unit's entries are zeroed.
    let mut bytes = bytes("empty.o");
    let at = bytes.windows(4).position(|word| word == b"GNU ").unwrap() - 1;
    bytes[at..at + 39].fill(0);
    assert!(read(&image(bytes), None).problems.iter().any(|problem| problem.message.contains("null")));
}

#[test]
fn a_unit_whose_code_the_linker_dropped_has_none() {
    let units = sound("lld-dead.so");
    let ranges: Vec<(&[u8], bool)> =
        units.units.iter().map(|unit| (unit.name.as_slice(), unit.ranges.is_empty())).collect();
    assert_eq!(ranges, [(&b"live.c"[..], false), (&b"u.c"[..], true)]);
}

#[test]
fn some_machines_keep_addends_in_the_field_too() {
    let (name, directory, producer) = only("sh4.o");
    assert_eq!((name.as_str(), directory.as_str()), ("u.c", "/w"));
    let words: Vec<&str> = producer.split(' ').collect();
    assert!(words.starts_with(&["GNU", "C17", "12.2.0"]) && words.contains(&"-O2"), "{producer}");
}
