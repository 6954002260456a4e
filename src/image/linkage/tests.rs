use super::*;
use crate::evidence::testing::open;
use crate::facts::{self, Kind};
use crate::image::identity::{elf_facts, is_packed};

fn facts(name: &str) -> (facts::Elf, Linkage) {
    let image = open(name);
    let linkage = read(&image);
    (elf_facts(&image, &linkage, None), linkage)
}

#[test]
fn relocation_protection_needs_immediate_binding_to_be_full() {
    for (name, relro, now) in [
        ("h_norelro", Relro::None, false),
        ("h_nopie", Relro::Partial, false),
        ("h_relro", Relro::Full, true),
        ("musl-static", Relro::Full, true),
    ] {
        let linkage = facts(name).1;
        assert_eq!((linkage.relro, linkage.bind_now), (Some(relro), Some(now)), "{name}");
    }
}

/// A 64-bit little-endian file, some bytes of whose program headers are replaced: of the first of one kind, and of the
/// first of another.
fn with_headers(name: &str, changes: &[(u32, usize, &[u8])]) -> Linkage {
    let mut bytes = std::fs::read(crate::evidence::testing::path(name)).unwrap();
    let table = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    let count = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
    let places: Vec<usize> = changes
        .iter()
        .map(|(kind, at, _)| {
            let mut headers = (0..count).map(|index| table + index * 56);
            headers.find(|&header| bytes[header..header + 4] == kind.to_le_bytes()).unwrap() + at
        })
        .collect();
    for (place, (_, _, new)) in places.into_iter().zip(changes) {
        bytes[place..place + new.len()].copy_from_slice(new);
    }
    let input = crate::image::Input::memory(bytes);
    read(&Image::open(input, &crate::limits::Limits::default()).unwrap())
}

#[test]
fn of_several_stack_headers_the_last_counts() {
    let (stack, frames) = (0x6474_e551u32, 0x6474_e550u32);
    let kind = stack.to_le_bytes();
    let (plain, executable) = (6u32.to_le_bytes(), 7u32.to_le_bytes());
    // The header of .eh_frame_hdr stands before that of the stack and becomes another one.
    for (first, last, nx) in [(plain, executable, false), (executable, plain, true)] {
        let linkage = with_headers("h_relro", &[(frames, 4, &first), (frames, 0, &kind), (stack, 4, &last)]);
        assert_eq!(linkage.nx_stack, Some(nx));
    }
}

#[test]
fn a_protected_range_without_bytes_protects_nothing() {
    let linkage = with_headers("h_relro", &[(0x6474_e552, 32, &[0; 16])]);
    assert_eq!((linkage.relro, linkage.bind_now), (Some(Relro::None), Some(true)));
}

#[test]
fn kinds_are_told_apart() {
    for (name, kind, machine, is_static) in [
        ("h_nopie", Kind::Executable, "x86-64", false),
        ("h_relro", Kind::Pie, "x86-64", false),
        ("musl-static", Kind::Executable, "x86-64", true),
        ("ptr-pie", Kind::Pie, "x86-64", false),
        ("cet", Kind::SharedObject, "x86-64", false),
        ("a64-bti.so", Kind::SharedObject, "aarch64", false),
        ("ppc32.so", Kind::SharedObject, "ppc", false),
        ("gcc12-m32", Kind::SharedObject, "i386", false),
        ("gas.o", Kind::Relocatable, "x86-64", false),
        ("gcc12-stripped.debug", Kind::SeparateDebug, "x86-64", false),
        ("gcc12-dwz-alt.debug", Kind::SeparateDebug, "x86-64", false),
        ("gcc12-split-t.dwo", Kind::Relocatable, "x86-64", false),
    ] {
        let (elf, _) = facts(name);
        assert_eq!((elf.kind, elf.machine.as_str(), elf.is_static), (kind, machine, is_static), "{name}");
    }
}

#[test]
fn names_and_flags_of_the_dynamic_table() {
    let (elf, linkage) = facts("h_asan");
    assert_eq!(elf.needed, ["libasan.so.8", "libc.so.6"]);
    assert_eq!(elf.interpreter.as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
    assert!(linkage.complete && !linkage.text_relocations && !elf.stripped && elf.sections);
    assert!(facts("textrel-i386.so").1.text_relocations);
    assert_eq!(facts("h_execstack").1.nx_stack, Some(false));
    assert_eq!(facts("h_relro").1.nx_stack, Some(true));
    assert_eq!(facts("gas.o").1.nx_stack, None);
    assert!(facts("gcc12-stripped").0.stripped);
}

#[test]
fn section_headers_are_not_needed() {
    for name in ["v_noshdr", "v_shoff_big", "v_shstrndx_bad2", "v_shnum_ext_big", "v_allsizes_big"] {
        let (elf, linkage) = facts(name);
        assert_eq!(elf.needed, ["libc.so.6"], "{name}");
        assert_eq!(linkage.relro, Some(Relro::Partial), "{name}");
        assert_eq!(elf.kind, Kind::Pie, "{name}");
    }
}

#[test]
fn a_lost_table_leaves_facts_unknown() {
    let (elf, linkage) = facts("v_trunc");
    assert_eq!((linkage.relro, linkage.bind_now), (None, None));
    assert_eq!(linkage.nx_stack, Some(true), "program headers are there");
    assert_eq!(elf.kind, Kind::Pie, "the interpreter tells");
    assert!(linkage.problems.iter().any(|p| p.code == "damaged-dynamic-table" && p.loses_facts));
    // Program headers are lost here, and the dynamic table is found by its section.
    let (elf, linkage) = facts("v_phentsize0");
    assert_eq!(elf.needed, ["libc.so.6"]);
    assert_eq!((linkage.relro, linkage.bind_now, linkage.nx_stack), (None, None, None));
}

#[test]
fn a_dynamic_table_without_end_is_reported() {
    let image = open("h_relro");
    let mut bytes = image.read(0, image.input.len(), "file").unwrap();
    let dynamic = image.segments.iter().find(|s| s.kind == elf::PT_DYNAMIC).unwrap();
    // Every entry becomes DT_NEEDED of a name far outside the names.
    for at in (dynamic.offset..dynamic.offset + dynamic.file_size).step_by(16) {
        let at = at as usize;
        bytes[at..at + 16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    }
    let image = Image::open(super::super::Input::memory(bytes), &image.limits).unwrap();
    let linkage = read(&image);
    assert!(linkage.needed.is_empty());
    assert!(linkage.problems.iter().any(|p| p.loses_facts), "{:?}", linkage.problems);
}

/// A minimal packed file: header, one program header, loader information.
fn packed(magic: [u8; 4]) -> Image {
    let mut bytes = vec![0u8; 64 + 56];
    bytes[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes[16] = 2;
    bytes[18] = 62;
    bytes[20] = 1;
    bytes[32] = 64;
    bytes[52] = 64;
    bytes[54] = 56;
    bytes[56] = 1;
    bytes[64] = 1;
    bytes[68] = 5;
    bytes.extend_from_slice(&[0x12, 0x34, 0x56, 0x78]);
    bytes.extend_from_slice(&magic);
    bytes.extend_from_slice(&[0x20, 0x08, 13, 22]);
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0x80, 1, 0]);
    bytes.resize(512, 0xcc);
    Image::open(super::super::Input::memory(bytes), &crate::limits::Limits::default()).unwrap()
}

#[test]
fn packed_means_the_structure_and_not_the_word() {
    assert!(is_packed(&packed(*b"UPX!")));
    assert!(!is_packed(&packed(*b"UPX?")));
    assert!(!is_packed(&open("upx-text")), "a program that prints the word");
    // The header at the end tells where the one at the beginning has been overwritten.
    let image = packed(*b"UPX?");
    let mut bytes = image.read(0, image.input.len(), "file").unwrap();
    bytes.extend_from_slice(b"UPX!\x0d\x16\x0e\x07........\0\x80\x01\0\0\x40\0\0........\0\0\0\0");
    assert!(is_packed(&Image::open(super::super::Input::memory(bytes.clone()), &image.limits).unwrap()));
    let end = bytes.len();
    bytes[end - 36..].copy_from_slice(b"UPX! goes brrr, says the last string");
    assert!(!is_packed(&Image::open(super::super::Input::memory(bytes), &image.limits).unwrap()));
}

#[test]
fn a_static_program_binds_nothing_late_wherever_it_is_loaded() {
    let (elf, linkage) = facts("static-pie");
    assert_eq!((elf.kind, elf.is_static), (Kind::Pie, true));
    assert_eq!((linkage.relro, linkage.bind_now), (Some(Relro::Full), Some(true)));
}

#[test]
fn a_flag_set_in_a_finished_file_protects_no_table() {
    let path = crate::evidence::testing::path("h_nopie");
    let mut bytes = std::fs::read(path).unwrap();
    let image = open("h_nopie");
    let dynamic = image.segments.iter().find(|s| s.kind == elf::PT_DYNAMIC).unwrap();
    let range = dynamic.offset as usize..(dynamic.offset + dynamic.file_size) as usize;
    // DT_DEBUG becomes DT_BIND_NOW.
    let entry = range.step_by(16).find(|&at| bytes[at] == 21).unwrap();
    bytes[entry] = 24;
    let image = Image::open(super::super::Input::memory(bytes), &image.limits).unwrap();
    let linkage = read(&image);
    assert_eq!((linkage.relro, linkage.bind_now), (Some(Relro::Partial), Some(true)));
}

#[test]
fn less_than_a_page_is_not_protected() {
    // The range ends where its page ends; without its last bytes no page is left.
    let (address, size) = {
        let image = open("h_relro");
        let header = image.segments.iter().find(|s| s.kind == elf::PT_GNU_RELRO).unwrap();
        (header.address, header.memory_size)
    };
    assert_eq!((address + size) % 4096, 0);
    let linkage = with_headers("h_relro", &[(0x6474_e552, 40, &(size - 8).to_le_bytes())]);
    assert_eq!((linkage.relro, linkage.bind_now), (Some(Relro::None), Some(true)));
}

#[test]
fn of_several_dynamic_entries_of_a_kind_the_last_counts() {
    let path = crate::evidence::testing::path("h_relro");
    let mut bytes = std::fs::read(path).unwrap();
    let image = open("h_relro");
    let dynamic = image.segments.iter().find(|s| s.kind == elf::PT_DYNAMIC).unwrap();
    let range = dynamic.offset as usize..(dynamic.offset + dynamic.file_size) as usize;
    let entry = |bytes: &[u8], tag: u64| {
        range.clone().step_by(16).find(|&at| bytes[at..at + 8] == tag.to_le_bytes()).unwrap()
    };
    // DT_DEBUG, which stands before them, becomes another of each kind that asks for nothing.
    let debug = entry(&bytes, 21);
    for tag in [dynamic::DT_FLAGS, dynamic::DT_FLAGS_1] {
        assert!(debug < entry(&bytes, tag));
        bytes[debug..debug + 8].copy_from_slice(&tag.to_le_bytes());
        bytes[debug + 8..debug + 16].fill(0);
        let image = Image::open(super::super::Input::memory(bytes.clone()), &image.limits).unwrap();
        let linkage = read(&image);
        assert_eq!((linkage.relro, linkage.pie), (Some(Relro::Full), true), "{tag}");
        assert_ne!(linkage.dynamic_value(tag), Some(0));
    }
}

#[test]
fn a_static_program_without_section_headers_is_protected_as_far_as_can_be_told() {
    let range = {
        let image = open("static-pie");
        let header = image.segments.iter().find(|s| s.kind == elf::PT_GNU_RELRO).unwrap();
        header.address..header.address + header.memory_size
    };
    for (name, table, relro) in [
        ("static-pie", Some(range.start + 8), Some(Relro::Full)),
        ("static-pie", Some(range.end), Some(Relro::Partial)),
        ("static-pie", None, None),
        ("musl-static", None, None),
    ] {
        let image = open(name);
        let mut bytes = image.read(0, image.input.len(), "file").unwrap();
        // e_shoff, e_shnum and e_shstrndx.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        if let Some(table) = table {
            // DT_DEBUG becomes DT_PLTGOT.
            let dynamic = image.segments.iter().find(|s| s.kind == elf::PT_DYNAMIC).unwrap();
            let mut entries = (dynamic.offset as usize..).step_by(16);
            let entry = entries.find(|&at| bytes[at..at + 8] == 21u64.to_le_bytes()).unwrap();
            bytes[entry] = 3;
            bytes[entry + 8..entry + 16].copy_from_slice(&table.to_le_bytes());
        }
        let image = Image::open(super::super::Input::memory(bytes), &image.limits).unwrap();
        assert_eq!(read(&image).relro, relro, "{name} {table:x?}");
    }
}
