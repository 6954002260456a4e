//! Damaged and lying files: bounded time and memory, what can be had is had, and what was lost is told.

#![allow(clippy::unwrap_used)]

mod common;

use common::bounded::{codes, inspect};
use common::testdata;
use serde_json::Value;

/// File, `status` of the target, a problem that must be named.
const DAMAGED: &[(&str, &str, &str)] = &[
    ("cases/h_zlib_huge2", "partial", "too-large-debug-info"),
    ("cases/h_zlib_lie", "partial", "damaged-debug-info"),
    ("cases/h_zstd_lie", "partial", "damaged-debug-info"),
    ("elf/v_allsizes_big", "partial", "damaged-section-headers"),
    ("elf/v_class0", "failed", "damaged-elf-header"),
    ("elf/v_phentsize0", "partial", "damaged-program-headers"),
    ("elf/v_shnum_ext_big", "partial", "too-many-sections"),
    ("elf/v_shoff_big", "partial", "damaged-section-headers"),
    ("cases/v_shstrndx_bad", "partial", "damaged-section-names"),
    ("elf/v_shstrndx_bad2", "partial", "damaged-section-names"),
    ("elf/v_trunc", "partial", "damaged-section-headers"),
    ("elf/v_trunc64", "partial", "damaged-program-headers"),
];

#[test]
fn damage_is_named_and_the_rest_is_read() {
    for (file, wanted, code) in DAMAGED {
        let (status, target) = inspect(&testdata(file));
        assert_eq!(target["status"], *wanted, "{file}: {}", target["problems"]);
        assert_eq!(status, if *wanted == "failed" { 2 } else { 0 }, "{file}");
        assert!(codes(&target).contains(code), "{file}: {:?}", codes(&target));
        let bytes = target["optimization"]["text"]["bytes"].as_u64().unwrap();
        let size = std::fs::metadata(testdata(file)).unwrap().len();
        assert!(bytes <= size, "{file}: {bytes} bytes of text in {size}");
    }
    // No section table at all is an ordinary thing to do to a binary.
    assert_eq!(inspect(&testdata("elf/v_noshdr")).1["status"], "ok");
}

#[test]
fn debug_information_that_cannot_be_read_is_not_absent() {
    for file in ["cases/h_zlib_huge2", "cases/h_zlib_lie", "cases/h_zstd_lie"] {
        let (_, target) = inspect(&testdata(file));
        let reason = target["optimization"]["reason"].as_str().unwrap();
        assert!(reason.starts_with("the debug information cannot be read"), "{file}: {reason}");
        assert_eq!(target["optimization"]["level"], "unknown", "{file}");
    }
}

/// A 64-bit ELF file of these sections, without segments.
fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut headers = vec![[0u8; 64]];
    let mut bytes = vec![0u8; 64];
    let mut add = |name: &str, kind: u32, data: Option<&[u8]>| {
        let at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        let own = names.clone();
        let data = data.unwrap_or(&own);
        let mut header = [0u8; 64];
        header[0..4].copy_from_slice(&at.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(data.len() as u64).to_le_bytes());
        header[48..56].copy_from_slice(&1u64.to_le_bytes());
        bytes.extend_from_slice(data);
        headers.push(header);
    };
    for (name, data) in sections {
        add(name, 1, Some(data));
    }
    add(".shstrtab", 3, None);
    let table = bytes.len() as u64;
    let count = headers.len() as u16;
    bytes.extend(headers.iter().flatten());
    bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    bytes[16..18].copy_from_slice(&3u16.to_le_bytes());
    bytes[18..20].copy_from_slice(&62u16.to_le_bytes());
    bytes[20..24].copy_from_slice(&1u32.to_le_bytes());
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes[52..54].copy_from_slice(&64u16.to_le_bytes());
    bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    bytes
}

fn uleb(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        out.push(if value == 0 { byte } else { byte | 0x80 });
        if value == 0 {
            return out;
        }
    }
}

/// A unit of DWARF 5 with abbreviations at 0.
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut body = vec![5, 0, 1, 8, 0, 0, 0, 0];
    body.extend_from_slice(entries);
    let mut out = (body.len() as u32).to_le_bytes().to_vec();
    out.append(&mut body);
    out
}

fn written(bytes: &[u8]) -> (i32, Value) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hostile");
    std::fs::write(&path, bytes).unwrap();
    inspect(&path)
}

const PRODUCER: &[u8] = b"clang version 19.1.7\0";

#[test]
fn many_units_that_share_one_large_table() {
    let mut table = Vec::new();
    let mut code = 0u64;
    while table.len() < 520_000 {
        code += 1;
        table.extend(uleb(code));
        table.extend([0x34, 0, 0x03, 0x08, 0, 0]);
    }
    code += 1;
    table.extend(uleb(code));
    table.extend([0x11, 1, 0x25, 0x08, 0, 0, 0]);
    let mut entries = uleb(code);
    entries.extend_from_slice(PRODUCER);
    entries.push(0);
    let units = unit(&entries).repeat(300);
    let (status, target) = written(&elf(&[(".debug_info", &units), (".debug_abbrev", &table)]));
    assert_eq!((status, &target["unit_count"]), (0, &300.into()));
}

#[test]
fn entries_that_cost_many_times_their_size() {
    // Each entry is one byte and has 20,000 attributes.
    let mut table = vec![1, 0x11, 1, 0x25, 0x08, 0, 0, 2, 0x2e, 0];
    table.extend([0x3f, 0x19].repeat(20_000));
    table.extend([0, 0, 0]);
    let mut entries = vec![1];
    entries.extend_from_slice(PRODUCER);
    entries.extend(vec![2u8; 4_000_000]);
    let (status, target) = written(&elf(&[(".debug_info", &unit(&entries)), (".debug_abbrev", &table)]));
    assert_eq!((status, &target["status"]), (0, &"partial".into()));
    assert!(codes(&target).contains(&"too-many-debug-attributes"), "{:?}", codes(&target));
}

#[test]
fn entries_that_never_end_their_children() {
    let table = [1, 0x11, 1, 0x25, 0x08, 0, 0, 2, 0x2e, 1, 0, 0, 0];
    let mut entries = vec![1];
    entries.extend_from_slice(PRODUCER);
    entries.extend(vec![2u8; 2_000_000]);
    let (status, target) = written(&elf(&[(".debug_info", &unit(&entries)), (".debug_abbrev", &table)]));
    assert_eq!((status, &target["unit_count"]), (0, &1.into()));
}

#[test]
fn sixty_thousand_sections_with_long_names() {
    const SECTIONS: usize = 60_000;
    let names = [&[0u8][..], &vec![b'A'; 200_000], &[0]].concat();
    let mut bytes = elf(&[]);
    bytes.truncate(64);
    bytes.extend_from_slice(&names);
    let table = bytes.len() as u64;
    for index in 0..SECTIONS {
        let (name, kind, offset, size) = match index {
            0 => (0, 0u32, 0, 0),
            1 => (0, 3, 64, names.len() as u64),
            index => (1 + (index % 1000) as u32, 1, 0, 0),
        };
        let mut header = [0u8; 64];
        header[0..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&u64::to_le_bytes(offset));
        header[32..40].copy_from_slice(&size.to_le_bytes());
        bytes.extend_from_slice(&header);
    }
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes[60..62].copy_from_slice(&(SECTIONS as u16).to_le_bytes());
    bytes[62..64].copy_from_slice(&1u16.to_le_bytes());
    let (status, target) = written(&bytes);
    assert_eq!((status, &target["status"]), (0, &"ok".into()), "{}", target["problems"]);
}

#[test]
fn cut_files_of_every_length() {
    let whole = std::fs::read(testdata("elf/gcc12-O0")).unwrap();
    for length in [40, 64, 65, 200, 900, 4096, 5000, 12_000, whole.len() - 1] {
        let (status, target) = written(&whole[..length]);
        let wanted = if length < 64 { (2, "failed") } else { (0, "partial") };
        assert_eq!((status, target["status"].as_str().unwrap()), wanted, "{length}: {}", target["problems"]);
    }
}

#[test]
fn an_archive_of_which_a_member_is_no_object_any_more_is_not_whole() {
    let whole = std::fs::read(testdata("elf/lib.a")).unwrap();
    let (_, sound) = written(&whole);
    assert_eq!((&sound["status"], &sound["optimization"]["level"]), (&"ok".into(), &"O0".into()));
    // The magic number, and e_type, of the one member that is not optimized.
    let first = whole.windows(4).position(|window| window == b"\x7fELF").unwrap();
    for at in [0, 16] {
        let mut bytes = whole.clone();
        bytes[first + at] = 0;
        let (_, target) = written(&bytes);
        assert_eq!(target["status"], "partial", "{}", target["problems"]);
        assert!(codes(&target).contains(&"damaged-member"), "{:?}", codes(&target));
    }
    // Its name, too, which stands in the first sixteen bytes of the header before it (of sixty).
    for name in [[0u8; 4], *b"    ", [0, 0, b'@', 0]] {
        let mut bytes = whole.clone();
        bytes[first] = 0;
        bytes[first - 60..first - 44].fill(b' ');
        bytes[first - 60..first - 56].copy_from_slice(&name);
        let (_, target) = written(&bytes);
        assert_eq!(target["status"], "partial", "{name:?}: {}", target["problems"]);
    }
}

#[test]
fn an_object_without_sections_and_a_segment_at_no_place_are_damage() {
    let mut object = std::fs::read(testdata("elf/tx1.o")).unwrap();
    // e_shoff of a 64-bit header.
    object[40..48].fill(0);
    let (_, target) = written(&object);
    assert_eq!(target["status"], "partial", "{}", target["problems"]);
    // p_vaddr of the first segment: machine code is then read beside its place.
    let mut program = std::fs::read(testdata("shape/aarch64-O0")).unwrap();
    let first = usize::try_from(u64::from_le_bytes(program[32..40].try_into().unwrap())).unwrap();
    program[first + 16] = 0x7f;
    let (_, target) = written(&program);
    assert_eq!(target["status"], "partial", "{}", target["problems"]);
    assert!(codes(&target).contains(&"damaged-program-headers"), "{:?}", codes(&target));
}
