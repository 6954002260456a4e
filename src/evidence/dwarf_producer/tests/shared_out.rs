//! Sections walked from several places at the same time: what comes out is what one walk finds.

use super::hostile::{PLAIN, elf, plain, unit4};
use super::*;
use proptest::prelude::*;

/// A linked file of these units, which are long.
fn linked(units: &[Vec<u8>], limits: &Limits) -> Image {
    let mut file = elf(&[(".debug_info", &units.concat()), (".debug_abbrev", PLAIN)]);
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
    let mut image = linked(units, limits);
    let one = read(&image, None);
    for workers in [2, 3, 8] {
        image.workers = workers;
        assert_eq!(read(&image, None), one, "{workers} threads");
    }
    one
}

fn shares(image: &Image) -> Vec<shares::Share> {
    let section = image.section(".debug_info").unwrap();
    let info = SectionData::open_forward(image, section).unwrap();
    shares::ahead(image, Family::Plain, section, &info, &Family::Plain.open(image, None))
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
