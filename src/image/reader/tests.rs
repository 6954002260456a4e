//! The same bytes, however they are reached.

use super::*;
use crate::image::Input;
use crate::limits::Limits;
use flate2::{Compression as Level, write::ZlibEncoder};
use gimli::Reader;
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::io::Write;

/// 300 kB that do not repeat.
fn data() -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..300_000).map(|_| next()).collect()
}

fn image(name: &str, bytes: &[u8]) -> Image {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let id = object.add_section(Vec::new(), name.as_bytes().to_vec(), SectionKind::Debug);
    object.append_section_data(id, bytes, 1);
    Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap()
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = b"ZLIB".to_vec();
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    let mut encoder = ZlibEncoder::new(out, Level::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn check(section: &SectionData, wanted: &[u8], places: &[usize]) {
    for &at in places {
        let mut reader = section.reader_at(at as u64);
        let value = reader.read_u64();
        match wanted.get(at..at + 8) {
            Some(bytes) => assert_eq!(value.unwrap(), u64::from_le_bytes(bytes.try_into().unwrap()), "{at}"),
            None => assert!(value.is_err(), "{at}"),
        }
        let mut reader = section.reader_at(at as u64);
        let end = wanted[at.min(wanted.len())..].iter().position(|byte| *byte == 0);
        match end {
            Some(len) => {
                let text = reader.read_null_terminated_slice().unwrap();
                assert_eq!(*text.to_slice().unwrap(), wanted[at..at + len], "{at}");
                assert_eq!(section.c_string(at as u64, 1 << 20).unwrap().unwrap().0, wanted[at..at + len]);
            }
            None => assert!(reader.find(0).is_err(), "{at}"),
        }
    }
}

#[test]
fn windows_show_what_is_there_in_any_order() {
    let data = data();
    let image = image(".debug_str", &data);
    let section = SectionData::open(&image, image.section(".debug_str").unwrap(), &mut 0).unwrap();
    assert_eq!(section.len(), data.len() as u64);
    let mut places: Vec<usize> = (0..data.len() + 9).step_by(997).collect();
    places.extend((0..600).chain(data.len() - 20..=data.len()));
    check(&section, &data, &places);
    places.reverse();
    check(&section, &data, &places);
}

#[test]
fn reading_on_takes_few_reads_and_jumps_take_small_ones() {
    let image = image(".debug_info", &data());
    let section = SectionData::open(&image, image.section(".debug_info").unwrap(), &mut 0).unwrap();
    let mut reader = section.reader();
    while reader.read_u8().is_ok() {}
    assert!(section.moves() < 24, "{}", section.moves());
    let before = section.moves();
    for at in (0..290_000).step_by(29_000) {
        let mut reader = section.reader_at(at);
        for _ in 0..30 {
            reader.read_u64().unwrap();
        }
    }
    assert!(section.moves() - before <= 10);
    assert!(section.window.borrow().bytes.len() <= 512);
}

#[test]
fn streams_and_whole_inflated_sections_show_the_same() {
    let data = data();
    let image = image(".zdebug_str", &compressed(&data));
    let header = image.section(".zdebug_str").unwrap();
    let places: Vec<usize> = (0..data.len() + 9).step_by(997).collect();
    let mut memory = 1 << 20;
    let whole = SectionData::open(&image, header, &mut memory).unwrap();
    assert_eq!((memory, whole.compression), ((1 << 20) - data.len() as u64, Some(Compression::ZlibGnu)));
    check(&whole, &data, &places);
    let stream = SectionData::open_forward(&image, header).unwrap();
    check(&stream, &data, &places);
    // A few steps back are at hand, and a few times the start is too; then it is refused.
    check(&stream, &data, &[0, 200_000, 199_000, 5, 250_000, 3]);
    let failed = (0..8).any(|_| {
        let ends = [stream.reader_at(299_000).read_u8(), stream.reader_at(1).read_u8()];
        ends.iter().any(Result::is_err)
    });
    assert!(failed);
    assert!(stream.take_failure().is_some_and(|why| why.contains("too many passes")));
}

#[test]
fn strings_are_cut_at_the_limit_and_say_so() {
    let image = image(".debug_str", b"short\0a longer text\0noend");
    let section = SectionData::open(&image, image.section(".debug_str").unwrap(), &mut 0).unwrap();
    assert_eq!(section.c_string(0, 8).unwrap(), Some((b"short".to_vec(), false)));
    assert_eq!(section.c_string(6, 8).unwrap(), Some((b"a longer".to_vec(), true)));
    assert_eq!(section.c_string(20, 8).unwrap(), None);
    assert_eq!(section.c_string(1 << 40, 8).unwrap(), None);
}

#[test]
fn damaged_streams_are_errors() {
    let data = data();
    let mut packed = compressed(&data);
    let middle = packed.len() / 2;
    packed.truncate(middle);
    let image = image(".zdebug_str", &packed);
    let header = image.section(".zdebug_str").unwrap();
    assert!(SectionData::open(&image, header, &mut (1 << 30)).is_err());
    let stream = SectionData::open_forward(&image, header).unwrap();
    check(&stream, &data[..100_000], &[0, 50_000]);
    assert!(stream.reader_at(299_000).read_u8().is_err());
    assert!(stream.take_failure().is_some());
}
