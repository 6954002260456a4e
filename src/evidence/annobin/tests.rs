use super::*;
use crate::image::Input;
use crate::limits::Limits;
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionFlags, SectionKind};
use proptest::prelude::*;

/// One note; `range` becomes its description.
fn note(kind: u32, name: &[u8], range: Option<(u64, u64)>, big: bool, wide: bool) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut description = Vec::new();
    for value in range.into_iter().flat_map(|(start, end)| [start, end]) {
        match (wide, big) {
            (true, true) => description.extend(value.to_be_bytes()),
            (true, false) => description.extend(value.to_le_bytes()),
            (false, _) => description.extend(word(u32::try_from(value).unwrap())),
        }
    }
    let mut out = Vec::new();
    for n in [name.len(), description.len()] {
        out.extend(word(u32::try_from(n).unwrap()));
    }
    out.extend(word(kind));
    for part in [name, &description[..]] {
        out.extend(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

fn image(name: &str, bytes: &[u8], architecture: Architecture, linked: bool) -> Image {
    let big = matches!(architecture, Architecture::S390x | Architecture::PowerPc);
    let endian = if big { Endianness::Big } else { Endianness::Little };
    let mut object = Object::new(BinaryFormat::Elf, architecture, endian);
    let kind = if name.starts_with(".gnu") { SectionKind::Note } else { SectionKind::OtherString };
    let section = object.add_section(Vec::new(), name.into(), kind);
    object.section_mut(section).flags = SectionFlags::None;
    object.append_section_data(section, bytes, 4);
    let mut file = object.write().unwrap();
    if linked {
        file[if big { 17 } else { 16 }] = 2;
    }
    Image::open(Input::memory(file), &Limits::default()).unwrap()
}

const O2: &[u8] = b"GA*GOW\0\x6c\x05\xd6\x03\0";
const O0: &[u8] = b"GA*GOW\0\x40\x01\xd6\x03\0";

fn sample(big: bool, wide: bool) -> Vec<u8> {
    let n = |kind, name: &[u8], range| note(kind, name, range, big, wide);
    [
        n(0x100, b"GA$\x013p127500\0", Some((0x1070, 0x1070))),
        n(0x100, O0, None),
        n(0x100, b"GA$\x013p127500\0", Some((0x1220, 0x1283))),
        n(0x100, b"GA$\x05running gcc 12.2.0 20220819\0", None),
        n(0x100, O2, None),
        n(0x101, O0, Some((0x1237, 0x1257))),
        n(0x100, b"GA*\x02\x03\0", None),
        n(0x101, b"GA*\x07\x04\0", None),
        n(0x100, b"GA+stack_clash\0", None),
        n(0x100, b"GA*cf_protection\0\x08\0", None),
        n(0x100, b"GA*FORTIFY\0\xff\0", None),
        n(0x100, b"GA!GLIBCXX_ASSERTIONS\0", None),
    ]
    .concat()
}

#[test]
fn ranges_are_inherited_by_type_in_both_byte_orders_and_classes() {
    for (architecture, big, wide) in [
        (Architecture::X86_64, false, true),
        (Architecture::I386, false, false),
        (Architecture::S390x, true, true),
        (Architecture::PowerPc, true, false),
    ] {
        let image = image(".gnu.build.attributes", &sample(big, wide), architecture, true);
        let notes = read(&image).unwrap();
        assert_eq!(notes.problems, [], "{architecture:?}");
        let levels = notes.levels();
        let shown: Vec<_> =
            levels.iter().map(|r| (r.range.start, r.range.end, r.level, r.of_function)).collect();
        assert_eq!(
            shown,
            [
                (0x1220, 0x1237, Level::O2, false),
                (0x1237, 0x1257, Level::O0, true),
                (0x1257, 0x1283, Level::O2, false)
            ],
            "{architecture:?}"
        );
        let properties: Vec<&Property> = notes.notes.iter().map(|n| &n.property).collect();
        assert!(properties.contains(&&Property::Writer('p', "127500".to_owned())));
        assert!(properties.contains(&&Property::StackProtector(3)));
        assert!(properties.contains(&&Property::ControlFlow { branch: true, returns: true }));
        assert!(properties.contains(&&Property::Fortify(None)));
        assert!(properties.contains(&&Property::StackClash(true)));
        assert!(properties.contains(&&Property::LibraryAssertions(false)));
        let pic = notes.notes.iter().find(|n| n.property == Property::PositionIndependence(4)).unwrap();
        assert_eq!((pic.range.clone(), pic.of_function), (Some(0x1237..0x1257), true));
        assert_eq!(notes.tools(), ["running gcc 12.2.0 20220819"]);
        let claims = notes.claims(&image);
        assert_eq!(claims.iter().map(|c| c.value.as_str().unwrap()).collect::<Vec<_>>(), ["O0", "O2"]);
        assert!(claims[0].quote.as_ref().unwrap().contains("1 notes, 32 bytes"), "{:?}", claims[0].quote);
    }
}

#[test]
fn levels_in_a_number() {
    for (number, level) in [
        (0x3d6_0140, Level::O0),
        (0x3d6_016c, Level::O0),
        (0x3d6_0340, Level::O1),
        (0x3d6_056c, Level::O2),
        (0x3d6_0740, Level::O3),
        (0x3d6_0540 | 1 << 11, Level::Os),
        (0x3d6_0740 | 1 << 12, Level::Ofast),
        (0x3d6_0340 | 1 << 13, Level::Og),
    ] {
        assert_eq!(level_of_gow(number), level, "{number:#x}");
    }
}

#[test]
fn where_units_overlap_the_lowest_level_holds() {
    let bytes = [
        note(0x100, O2, Some((0x100, 0x300)), false, true),
        note(0x100, O0, Some((0x200, 0x400)), false, true),
        note(0x100, O2, Some((0x400, 0x500)), false, true),
        note(0x100, O2, Some((0x500, 0x600)), false, true),
    ]
    .concat();
    let notes = read(&image(".gnu.build.attributes", &bytes, Architecture::X86_64, true)).unwrap();
    let shown: Vec<_> = notes.levels().iter().map(|r| (r.range.start, r.range.end, r.level)).collect();
    assert_eq!(shown, [(0x100, 0x200, Level::O2), (0x200, 0x400, Level::O0), (0x400, 0x600, Level::O2)]);
}

#[test]
fn relocatable_files_keep_the_words_without_the_addresses() {
    let image = image(".gnu.build.attributes.lo", &sample(false, true), Architecture::X86_64, false);
    let notes = read(&image).unwrap();
    assert!(notes.levels().is_empty());
    assert!(notes.notes.iter().any(|n| matches!(n.property, Property::Level(Level::O0, _))));
    assert!(notes.notes.iter().all(|n| n.range.is_none()));
    assert_eq!(notes.problems[0].code, "unlocated-build-notes");
    assert!(!notes.problems[0].loses_facts);
}

#[test]
fn the_string_form() {
    let bytes = b"AV:4p127500\0RV:running gcc 12.2.0 20220819\0GW:0x3d60540 u2.c\0GW:0x3d60140 u2.c slow\0SP:3 u2.c\0\
                  FL:-1 u2.c\0CF:8 u2.c\0PI:4\0SC:1 u2.c\0GA:-1\0iS:0\0x\0:\0GW:zz u2.c\0";
    let image = image(".annobin.notes", bytes, Architecture::X86_64, true);
    let notes = read(&image).unwrap();
    let levels: Vec<_> = notes
        .notes
        .iter()
        .filter_map(|n| match n.property {
            Property::Level(level, _) => Some((level, n.unit.as_deref(), n.of_function)),
            _ => None,
        })
        .collect();
    assert_eq!(levels, [(Level::O2, Some("u2.c"), false), (Level::O0, Some("u2.c"), true)]);
    assert!(notes.notes.iter().any(|n| n.property == Property::Fortify(None)));
    assert!(notes.notes.iter().any(|n| n.property == Property::StackProtector(3)));
    let claims = notes.claims(&image);
    assert!(claims.iter().all(|c| c.scope == Scope::Some), "no addresses, so no ranges");
    assert_eq!(&*claims[0].at.as_ref().unwrap().section, ".annobin.notes");
}

#[test]
fn a_truncated_note_keeps_what_came_before() {
    let mut bytes = sample(false, true);
    bytes.truncate(bytes.len() - 9);
    let notes = read(&image(".gnu.build.attributes", &bytes, Architecture::X86_64, true)).unwrap();
    assert_eq!(notes.problems[0].code, "damaged-build-notes");
    assert_eq!(notes.levels().len(), 3);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), flips in proptest::collection::vec((0usize..400, any::<u8>()), 0..6)) {
        let mut near = sample(false, true);
        for (at, byte) in flips {
            if let Some(b) = near.get_mut(at) { *b = byte; }
        }
        for bytes in [bytes, near] {
            for name in [".gnu.build.attributes", ".annobin.notes"] {
                if let Some(notes) = read(&image(name, &bytes, Architecture::X86_64, true)) {
                    let levels = notes.levels();
                    prop_assert!(levels.windows(2).all(|p| p[0].range.end <= p[1].range.start));
                }
            }
        }
    }
}
