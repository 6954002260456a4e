use super::*;
use crate::evidence::testing::open;
use crate::image::identity::hexadecimal;

#[test]
fn a_build_id_has_any_length_and_need_not_come_first() {
    for (name, size) in [
        ("id-md5.so", Some(16)),
        ("id-uuid.so", Some(16)),
        ("id-0xdeadbeef.so", Some(4)),
        ("id-none.so", None),
        ("gcc12-O0", Some(20)),
        ("ppc32.so", Some(20)),
    ] {
        assert_eq!(read(&open(name)).build_id.map(|id| id.len()), size, "{name}");
    }
    assert_eq!(build_id(&open("id-0xdeadbeef.so")), Some(vec![0xde, 0xad, 0xbe, 0xef]));
}

#[test]
fn without_section_headers_the_segments_have_the_notes() {
    for name in ["v_noshdr", "v_trunc", "v_shoff_big", "v_phentsize0", "gcc12-stripped.debug"] {
        let id = read(&open(name)).build_id.map(|id| hexadecimal(&id));
        assert!(id.is_some_and(|id| id.starts_with("3e5bee70")), "{name}");
    }
}

#[test]
fn program_headers_of_a_debug_file_may_be_those_of_the_whole_file() {
    // As eu-strip -f leaves them: the notes of the sections are sound, what the segments name is something else.
    let mut bytes = std::fs::read(crate::evidence::testing::path("gcc12-stripped.debug")).unwrap();
    let table = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    let count = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
    let image = open("gcc12-stripped.debug");
    let strange = image.section(".debug_info").unwrap().offset;
    let mut moved = 0;
    for header in (0..count).map(|index| table + index * 56) {
        if bytes[header..header + 4] == elf::PT_NOTE.0.to_le_bytes() {
            bytes[header + 8..header + 16].copy_from_slice(&strange.to_le_bytes());
            moved += 1;
        }
    }
    assert!(moved > 0);
    let input = crate::image::Input::memory(bytes);
    let notes = read(&Image::open(input, &crate::limits::Limits::default()).unwrap());
    assert_eq!(notes.problems, []);
    assert_eq!(notes.build_id, build_id(&image));
}

#[test]
fn a_note_in_section_and_segment_is_one_note() {
    let notes = read(&open("gcc12-O0")).notes;
    let ids = notes.iter().filter(|n| n.owner == b"GNU" && n.kind == NT_GNU_BUILD_ID).count();
    assert_eq!(ids, 1, "{notes:?}");
}

#[test]
fn package_gold_and_properties() {
    let package = read(&open("pkgnote")).package.unwrap();
    assert!(package.starts_with(br#"{"type":"deb""#) && package.ends_with(b"}"));
    assert_eq!(read(&open("gold")).gold.as_deref(), Some(b"gold 1.16".as_slice()));
    assert_eq!(read(&open("cet")).properties.x86_features, Some(3));
    assert_eq!(read(&open("a64-bti.so")).properties.aarch64_features, Some(3));
    assert_eq!(read(&open("gcc12-O0")).properties.x86_features, None);
}

#[test]
fn links_to_debug_files() {
    let link = read(&open("gcc12-stripped")).debug_link.unwrap();
    assert_eq!((link.name.as_slice(), link.crc), (b"gcc12-stripped.debug".as_slice(), 0x074b_ef63));
    let bytes = std::fs::read(crate::evidence::testing::path("gcc12-stripped.debug")).unwrap();
    assert_eq!(crc32fast::hash(&bytes), link.crc);
    let image = open("debuglink-odd.so");
    assert_eq!(image.section(".gnu_debuglink").unwrap().offset % 2, 1);
    let link = read(&image).debug_link.unwrap();
    assert_eq!(
        (link.name.as_slice(), link.crc),
        (b"some.debug".as_slice(), 0x1234_5678),
        "padding from the start"
    );
    let alt = read(&open("gcc12-dwz1")).supplementary.unwrap();
    assert_eq!(alt.path, b"gcc12-dwz-alt.debug");
    assert_eq!(Some(alt.id), build_id(&open("gcc12-dwz-alt.debug")));
}

#[test]
fn debug_sup_is_read_and_damage_is_not_believed() {
    let format = Format { is_64: true, little_endian: true };
    let (own, link) = debug_sup(b"\x05\0\0alt.debug\0\x03abc", format).unwrap();
    assert!(!own);
    assert_eq!((link.path.as_slice(), link.id.as_slice()), (b"alt.debug".as_slice(), b"abc".as_slice()));
    assert!(debug_sup(b"\x05\0\x01\0\x02ab", format).unwrap().0, "the supplementary file itself");
    assert!(debug_sup(b"\x05\0\0alt.debug\0\x04abc", format).is_none(), "longer than the section");
    assert!(debug_sup(b"\x05\0\0a\0\xff\xff\xff\xff\xff\x01", format).is_none());
    assert!(debug_sup(b"\x06\0\0a\0\x01a", format).is_none());
}

#[test]
fn notes_of_hostile_sizes_end_the_walk() {
    let format = Format { is_64: true, little_endian: true };
    let mut bytes = b"\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0\xde\xad\xbe\xef".to_vec();
    bytes.extend_from_slice(&[4, 0, 0, 0, 0xf0, 0xff, 0xff, 0xff, 1, 0, 0, 0, b'G', b'N', b'U', 0]);
    for align in [4, 8] {
        let (notes, sound) = split(&bytes[..20], format, align);
        assert!(notes.len() == 1 || align == 8, "{notes:?}");
        assert!(sound || align == 8);
    }
    let (notes, sound) = split(&bytes, format, 4);
    assert_eq!((notes.len(), sound), (1, false));
    assert_eq!(notes[0].3, [0xde, 0xad, 0xbe, 0xef]);
}

/// As patchelf before 0.15 leaves it: the note has moved, and what is said to be its segment has not.
#[test]
fn a_segment_that_its_note_has_left_is_no_damage() {
    for (name, x86, aarch64) in [("cet", Some(3), None), ("a64-bti.so", None, None)] {
        let mut bytes = std::fs::read(crate::evidence::testing::path(name)).unwrap();
        let image = open(name);
        let segment = image.segments.iter().position(|s| s.kind == elf::PT_GNU_PROPERTY).unwrap();
        let table = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
        let filled = bytes.len() as u64;
        bytes.extend_from_slice(&[b'X'; 0x40]);
        let at = table + segment * 56 + 8;
        bytes[at..at + 8].copy_from_slice(&filled.to_le_bytes());
        let input = crate::image::Input::memory(bytes);
        let notes = read(&Image::open(input, &crate::limits::Limits::default()).unwrap());
        let problems: Vec<_> = notes.problems.iter().map(|p| (p.code.as_str(), p.loses_facts)).collect();
        assert_eq!(problems, [("misplaced-properties", false)], "{name}");
        let seen = (notes.properties.x86_features, notes.properties.aarch64_features);
        assert_eq!(seen, (x86, aarch64), "{name}");
        assert!(notes.find(b"GNU", NT_GNU_PROPERTY).is_some());
    }
}
