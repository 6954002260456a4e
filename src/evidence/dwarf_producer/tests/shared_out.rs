//! Sections walked from several places at the same time: what comes out is what one walk finds.

use super::hostile::{PLAIN, elf, plain, unit4};
use super::*;
use proptest::prelude::*;

/// A linked file of these units, which are long.
fn linked(units: &[Vec<u8>], limits: &Limits) -> Image {
    with(&[(".debug_info", &units.concat()), (".debug_abbrev", PLAIN)], limits)
}

fn with(sections: &[(&str, &[u8])], limits: &Limits) -> Image {
    let mut file = elf(sections);
    file[16] = 2; // ET_EXEC
    Image::open(Input::memory(file), limits).unwrap()
}

/// A unit with a name and so many bytes of entries nobody reads.
fn long(name: &str, size: usize, fill: &[u8]) -> Vec<u8> {
    let mut contents = vec![1];
    contents.extend_from_slice(name.as_bytes());
    contents.extend_from_slice(b"\0cc -O2\0");
    contents.extend(fill.iter().cycle().take(size));
    unit4(0, &contents)
}

fn alike(units: &[Vec<u8>], limits: &Limits) -> DwarfUnits {
    alike_in(linked(units, limits))
}

fn alike_in(mut image: Image) -> DwarfUnits {
    let one = read(&image, None);
    for workers in [2, 3, 5, 8] {
        image.workers = workers;
        assert_eq!(read(&image, None), one, "{workers} threads");
    }
    one
}

fn shares(image: &Image) -> Vec<shares::Share> {
    let section = image.section(".debug_info").unwrap();
    let info = SectionData::open_forward(image, section).unwrap();
    let mut budget = Budget::new(&image.limits);
    shares::ahead(
        image,
        image.workers,
        Family::Plain,
        section,
        &info,
        &Family::Plain.open(image, None),
        &mut budget,
    )
}

fn many() -> Vec<Vec<u8>> {
    (0..300).map(|index| long(&format!("u{index}.c"), 40_000 + index * 150, b"\x02entry")).collect()
}

#[test]
fn the_walks_meet_and_nothing_is_lost_or_doubled() {
    let units = many();
    let found = alike(&units, &Limits::default());
    assert_eq!((found.units.len(), found.problems.as_slice()), (300, &[][..]));
    let mut image = linked(&units, &Limits::default());
    assert!(shares(&image).is_empty(), "one thread");
    image.workers = 2;
    let shares = shares(&image);
    assert!(shares.len() > 3, "{}", shares.len());
    assert_eq!(shares.iter().map(|share| share.units.len()).sum::<usize>(), 300);
    assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
}

#[test]
fn what_looks_like_a_unit_inside_of_another_is_none() {
    let false_units = plain("false.c").repeat(20);
    let mut units = many();
    for index in (0..300).step_by(3) {
        units[index] = long("true.c", 120_000, &false_units);
    }
    let found = alike(&units, &Limits::default());
    assert_eq!((found.units.len(), found.problems.as_slice()), (300, &[][..]));
    assert!(found.units.iter().all(|unit| unit.name != b"false.c"));
}

#[test]
fn damage_and_limits_are_reported_as_by_one_walk() {
    let mut units = many();
    units[140][4] = 9; // no such version
    units[200] = vec![0; 64];
    let found = alike(&units, &Limits::default());
    assert_eq!((found.units.len(), found.problems.len()), (298, 2));
    units.truncate(250);
    units.push(vec![0xff; 20]);
    assert_eq!(alike(&units, &Limits::default()).units.len(), 248);
    let limits = Limits { units: 100, ..Limits::default() };
    assert_eq!(alike(&many(), &limits).units.len(), 100);
    let limits = Limits { die_attributes: 500, ..Limits::default() };
    let found = alike(&many(), &limits);
    assert_eq!((found.units.len(), found.problems.len()), (250, 1));
}

/// A file of 300 units whose names (5,000 bytes) stand elsewhere, the last one's first, and whose ranges are lists of four.
fn with_references(limits: &Limits) -> Image {
    let abbreviations = [1, 0x11, 0, 0x03, 0x0e, 0x25, 0x0e, 0x11, 0x01, 0x55, 0x17, 0, 0, 0];
    let (mut info, mut text, mut ranges) = (Vec::new(), b"cc -O2\0".to_vec(), Vec::new());
    for index in 0u64..300 {
        let mut contents = vec![1];
        contents.extend_from_slice(&(7 + 5001 * (299 - index as u32)).to_le_bytes());
        contents.extend_from_slice(&0u32.to_le_bytes());
        contents.extend_from_slice(&0u64.to_le_bytes());
        contents.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
        contents.resize(60_000 + index as usize, 0xcc);
        info.extend(unit4(0, &contents));
        text.extend_from_slice(format!("{index:05000}\0").as_bytes());
        for part in 0..4 {
            let at = 0x1_0000 + index * 0x100 + part * 0x20;
            ranges.extend([at, at + 0x10].into_iter().flat_map(u64::to_le_bytes));
        }
        ranges.extend([0; 16]);
    }
    let sections: [(&str, &[u8]); 4] = [
        (".debug_info", &info),
        (".debug_abbrev", &abbreviations),
        (".debug_str", &text),
        (".debug_ranges", &ranges),
    ];
    with(&sections, limits)
}

/// So many shares of one budget as there may be hold no more than one walk may.
#[test]
fn all_walks_together_use_what_one_may() {
    let mut image = linked(&many(), &Limits { units: 100, ..Limits::default() });
    image.workers = 8;
    let held: usize = shares(&image).iter().map(|share| share.units.len()).sum();
    assert!(held <= 100, "{held} units");
    // What several take in portions is what there is, to the last.
    let mut first = Budget::new(&Limits { units: 40, die_attributes: 3000, ..Limits::default() });
    first.make_common();
    let mut others = [first.another(), first.another()];
    let mut taken = 0;
    while others.iter_mut().any(|other| other.take_unit(1).is_ok()) {
        taken += 1;
    }
    assert_eq!((taken, first.is_overdrawn()), (40, true));
    assert!(!first.step(1) && !first.take(1), "once one is refused, nobody gets anything");
}

#[test]
fn limits_are_hit_where_one_walk_hits_them_which_reads_texts_last() {
    let found = alike_in(with_references(&Limits::default()));
    assert_eq!((found.units.len(), found.problems.len()), (300, 0));
    assert!(found.units.iter().all(|unit| unit.name.len() == 5000 && unit.ranges.len() == 4));
    // The memory for units does for all of them and some of their names.
    for units in [300, 12_000, 14_000, 16_000] {
        let found = alike_in(with_references(&Limits { units, ..Limits::default() }));
        let named = found.units.iter().filter(|unit| !unit.name.is_empty()).count();
        assert_eq!((found.units.len(), found.problems.len()), (300, 1));
        assert!((150..300).contains(&named), "{named}");
    }
    for steps in [0, 1, 4, 5, 100, 1500, 2699, 2700, 2701, 2800, 5000] {
        alike_in(with_references(&Limits { die_attributes: steps, ..Limits::default() }));
    }
    for units in [0, 1, 17, 150, 299, 301] {
        let found = alike_in(with_references(&Limits { units, ..Limits::default() }));
        assert_eq!(found.units.len(), units.min(300));
    }
}

#[test]
fn abbreviations_are_looked_for_as_long_as_by_one_walk() {
    // Each unit has a table of its own, which overlaps with those of all others and has what it looks for at its end.
    let abbreviations = [&[2, 0x2e, 0, 0, 0].repeat(13_000)[..], PLAIN].concat();
    let unit = |index: u32| {
        let mut contents = b"\x01u.c\0cc -O2\0".to_vec();
        contents.resize(16_000, 0xcc);
        unit4(5 * index, &contents)
    };
    let info: Vec<u8> = (0..1400).flat_map(unit).collect();
    let sections: [(&str, &[u8]); 2] = [(".debug_info", &info), (".debug_abbrev", &abbreviations)];
    let mut image = with(&sections, &Limits::default());
    let one = read(&image, None);
    assert!(one.units.len() > 1000 && one.units.len() < 1400, "{}", one.units.len());
    image.workers = 3;
    assert_eq!(read(&image, None), one);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_bytes_give_the_same_units(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        heads in prop::collection::vec((0usize..300, 0usize..12, any::<u8>()), 0..3),
    ) {
        let mut units = many();
        for (unit, offset, value) in heads {
            units[unit][offset] = value;
        }
        for (place, value) in changes {
            let unit = place.index(300);
            let at = place.index(units[unit].len());
            units[unit][at] = value;
        }
        alike(&units, &Limits::default());
    }
}
