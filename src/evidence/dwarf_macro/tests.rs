use super::*;
use crate::evidence::dwarf_producer;
use crate::image::Input;
use crate::limits::Limits;

fn bytes(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases").join(name);
    std::fs::read(path).unwrap()
}

fn read_bytes(bytes: Vec<u8>, limits: &Limits) -> UnitMacros {
    let image = Image::open(Input::memory(bytes), limits).unwrap();
    let units = dwarf_producer::read(&image, None).units;
    read(&image, None, &units)
}

fn only(name: &str) -> Macros {
    let mut found = read_bytes(bytes(name), &Limits::default());
    assert_eq!((found.units.len(), found.problems.as_slice()), (1, &[][..]), "{name}");
    found.units.remove(0).1
}

#[test]
fn every_form_tells_the_level() {
    for (name, level, words) in [
        ("macro-gnu4-O0", Level::O0, vec!["__NO_INLINE__"]),
        ("macro-macinfo-Os", Level::Os, vec!["__OPTIMIZE__", "__OPTIMIZE_SIZE__"]),
        ("macro-O2.o", Level::Optimized, vec!["__OPTIMIZE__"]),
        ("macro-clang", Level::Optimized, vec!["__OPTIMIZE__"]),
        ("macro-clang-split.dwo", Level::O0, vec!["__NO_INLINE__"]),
        ("gcc12-g3-macro", Level::Optimized, vec!["__OPTIMIZE__"]),
        // Defined on the command line and removed there.
        ("macro-lie", Level::O0, vec!["__NO_INLINE__"]),
    ] {
        let macros = only(name);
        assert_eq!((macros.level, macros.level_words), (level, words), "{name}");
    }
}

#[test]
fn macros_of_programs() {
    let macros = only("gcc12-g3-macro");
    assert_eq!(macros.nginx_debug, Some(true));
    assert_eq!(macros.fortify_source.as_deref(), Some("2"));
    assert_eq!(macros.fortify_level, Some(2), "what glibc made of it");
    let macros = only("macro-gnu4-O0");
    assert_eq!((macros.nginx_debug, macros.fortify_source, macros.fortify_level), (None, None, None));
}

#[test]
fn what_happens_on_a_later_line_is_no_predefinition() {
    let event = |name: &str, line, value: Option<&str>| Event {
        name: NAMES.iter().position(|known| *known == name).unwrap(),
        line,
        value: value.map(str::to_owned),
    };
    // `#pragma GCC optimize ("O0")` for one function of an optimized unit, and the other way round.
    let of = |events: &[Event]| Macros::of(events).level;
    assert_eq!(of(&[event("__OPTIMIZE__", 0, Some("1")), event("__OPTIMIZE__", 4, None)]), Level::Optimized);
    assert_eq!(of(&[event("__NO_INLINE__", 0, Some("1")), event("__OPTIMIZE__", 4, Some("1"))]), Level::O0);
    assert_eq!(
        of(&[event("__OPTIMIZE__", 0, Some("1")), event("__NO_INLINE__", 0, Some("1"))]),
        Level::Optimized
    );
    assert_eq!(of(&[]), Level::Unknown);
}

#[test]
fn what_is_dropped_would_have_changed_nothing() {
    let mut events: Vec<Event> = (0..500u64)
        .map(|step| Event {
            name: (step * 7 % 8) as usize,
            line: step % 3,
            value: (step % 5 != 0).then(|| (step % 11).to_string()),
        })
        .collect();
    let before = Macros::of(&events);
    settle(&mut events);
    assert!(events.len() <= 2 * NAMES.len());
    assert_eq!(Macros::of(&events), before);
}

/// Lists that each import the one before twice would double their definitions every time, and a chain of a hundred
/// thousand lists would be followed for ever.
#[test]
fn chains_of_imports_are_bounded() {
    let mut macros = Vec::new();
    // Version 5, 4-byte offsets, no line table; `__OPTIMIZE__ 1` many times over.
    macros.extend_from_slice(&[5, 0, 0]);
    for _ in 0..1000 {
        macros.extend_from_slice(b"\x01\x00__OPTIMIZE__ 1\0");
    }
    macros.push(0);
    let mut previous = 0u32;
    for _ in 0..100_000 {
        let own = macros.len() as u32;
        macros.extend_from_slice(&[5, 0, 0]);
        for _ in 0..2 {
            macros.push(7);
            macros.extend_from_slice(&previous.to_le_bytes());
        }
        macros.push(0);
        previous = own;
    }
    // One unit whose DW_AT_macros is the last list, and one whose is a list that can be followed.
    let abbreviations = [1, 0x11, 0, 0x79, 0x17, 0, 0, 0];
    let unit = |offset: u32| {
        let mut body = vec![5, 0, 1, 8, 0, 0, 0, 0, 1];
        body.extend_from_slice(&offset.to_le_bytes());
        let mut out = (body.len() as u32).to_le_bytes().to_vec();
        out.append(&mut body);
        out
    };
    let near = macros.len() as u32 - 14 * 99_990;
    let info = [unit(previous), unit(near)].concat();
    let mut object = object::write::Object::new(
        object::BinaryFormat::Elf,
        object::Architecture::X86_64,
        object::Endianness::Little,
    );
    for (name, data) in
        [(".debug_info", &info[..]), (".debug_abbrev", &abbreviations), (".debug_macro", &macros)]
    {
        let section = object.add_section(Vec::new(), name.into(), object::SectionKind::Debug);
        object.append_section_data(section, data, 1);
    }
    let mut file = object.write().unwrap();
    file[16] = 3;
    let found = read_bytes(file, &Limits::default());
    let levels: Vec<(usize, Level)> =
        found.units.iter().map(|(index, macros)| (*index, macros.level)).collect();
    assert_eq!(levels, [(1, Level::Optimized)]);
}

#[test]
fn lists_that_import_themselves_and_lists_cut_off() {
    let sound = bytes("gcc12-g3-macro");
    let image = Image::open(Input::memory(sound.clone()), &Limits::default()).unwrap();
    let start = image.section(".debug_macro").unwrap().offset as usize;
    // Behind a header of seven bytes, an import.
    assert_eq!(sound[start + 7], 7);
    for offset in [0u32, u32::MAX] {
        let mut file = sound.clone();
        file[start + 8..start + 12].copy_from_slice(&offset.to_le_bytes());
        let found = read_bytes(file, &Limits::default());
        assert!(found.units.is_empty(), "what was not read whole says nothing");
        assert!(found.problems.iter().any(|problem| problem.code == "damaged-debug-macro"), "{offset}");
    }
    let few = Limits { die_attributes: 100, ..Limits::default() };
    let found = read_bytes(sound, &few);
    assert!(found.units.is_empty());
    assert_eq!(found.problems[0].code, "too-many-debug-attributes");
}
