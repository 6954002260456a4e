use super::*;
use crate::evidence::testing::open;
use crate::image::linkage;
use crate::image::symbols::Symbols;

/// The address of a string in the loaded data.
fn address_of(image: &Image, text: &[u8]) -> u64 {
    let bytes = image.read(0, image.input.len(), "file").unwrap();
    let whole = [text, b"\0"].concat();
    let offset = memchr::memmem::find(&bytes, &whole).unwrap() as u64;
    let segment =
        image.loaded_segments().find(|s| (s.offset..s.offset + s.file_size).contains(&offset)).unwrap();
    segment.address + offset - segment.offset
}

#[test]
fn a_record_of_pointers_reads_alike_however_it_is_relocated() {
    // RELA, RELR with symbolic RELA, nothing at all, REL, RELA of another processor.
    for name in ["ptr-pie", "ptr-relr.so", "ptr-exec", "ptr-i386.so", "ptr-a64.so"] {
        let image = open(name);
        let linkage = linkage::read(&image);
        let pointers = Pointers::read(&image, &linkage);
        let word = if image.header.is_64 { 8 } else { 4 };
        let slots = pointers.slots_pointing_to(&image, address_of(&image, b"a record"));
        let [record] = slots[..] else { panic!("{name}: {slots:x?}") };
        let at = |index: u64| pointers.value_at(&image, record + index * word);
        let here = at(1).unwrap();
        assert_eq!(image.read_address(here, 1), Some(vec![3]), "{name}: the third number");
        assert_eq!(at(2), Some(0), "{name}: a null pointer");
        let table = at(4).unwrap();
        for (index, text) in [b"first".as_slice(), b"second", b"third"].into_iter().enumerate() {
            let slot = table + index as u64 * word;
            assert_eq!(pointers.value_at(&image, slot), Some(address_of(&image, text)), "{name}");
            assert!(pointers.slots_pointing_to(&image, address_of(&image, text)).contains(&slot), "{name}");
        }
        assert_eq!(pointers.value_at(&image, table + 3 * word), Some(0), "{name}: the end of the table");
        let import = pointers.import_at(&image, record + 3 * word);
        if matches!(name, "ptr-exec" | "ptr-pie") {
            assert_eq!((import, at(3)), (None, Some(0)), "{name}: nobody can define it");
        } else {
            assert_eq!(at(3), None, "{name}: only the loader knows");
            let symbols = Symbols::new();
            let symbol = symbols.dynamic(&image, &linkage).get(import.unwrap()).unwrap();
            assert_eq!(symbol.name, b"elsewhere", "{name}");
        }
        assert_eq!(pointers.problems(), [], "{name}");
        assert!(pointers.pairs(&image).is_sorted_by_key(|pair| pair.0), "{name}");
    }
}

#[test]
fn a_plain_number_in_a_relocated_file_is_no_pointer() {
    let image = open("ptr-pie");
    let pointers = Pointers::read(&image, &linkage::read(&image));
    let record = pointers.slots_pointing_to(&image, address_of(&image, b"a record"))[0];
    let here = pointers.value_at(&image, record + 8).unwrap();
    assert_eq!(pointers.value_at(&image, here), None);
    assert_eq!(pointers.value_at(&image, u64::MAX), None);
}

#[test]
fn section_headers_are_not_needed() {
    for name in ["ptr-exec", "ptr-pie", "h_nopie"] {
        let image = open(name);
        let with = Pointers::read(&image, &linkage::read(&image)).pairs(&image).to_vec();
        let mut bytes = image.read(0, image.input.len(), "file").unwrap();
        // e_shoff, e_shnum and e_shstrndx of a 64-bit header.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        let bare = Image::open(crate::image::Input::memory(bytes), &image.limits).unwrap();
        let without = Pointers::read(&bare, &linkage::read(&bare)).pairs(&bare).to_vec();
        assert!(!with.is_empty() && with.iter().all(|pair| without.contains(pair)), "{name}");
    }
    let image = open("v_noshdr");
    let pointers = Pointers::read(&image, &linkage::read(&image));
    assert_eq!(pointers.pairs(&image).len(), 3);
}

#[test]
fn the_limit_is_told_and_can_be_raised() {
    for (name, code) in [("ptr-pie", "too-many-relocations"), ("ptr-exec", "too-much-data")] {
        let mut image = open(name);
        for (relocations, told) in [(1, true), (1 << 20, false)] {
            image.limits.relocations = relocations;
            let pointers = Pointers::read(&image, &linkage::read(&image));
            pointers.pairs(&image);
            let codes: Vec<String> = pointers.problems().into_iter().map(|problem| problem.code).collect();
            assert_eq!(codes.iter().any(|found| found == code), told, "{name} {relocations}: {codes:?}");
        }
    }
}

#[test]
fn damaged_files_yield_nothing_and_do_not_panic() {
    for name in ["v_trunc", "v_trunc64", "v_phentsize0", "v_allsizes_big", "v_shnum_ext_big"] {
        let image = open(name);
        let pointers = Pointers::read(&image, &linkage::read(&image));
        assert!(pointers.pairs(&image).len() <= 3, "{name}");
    }
}
