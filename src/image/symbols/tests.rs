use super::*;
use crate::evidence::testing::open;
use crate::image::linkage;

fn imports(name: &str) -> Vec<String> {
    let image = open(name);
    let symbols = Symbols::new();
    let table = symbols.dynamic(&image, &linkage::read(&image));
    assert_eq!(table.problems, [], "{name}");
    let undefined = table.iter().filter(|symbol| symbol.undefined && !symbol.is_weak());
    undefined.map(|symbol| String::from_utf8_lossy(symbol.name).into_owned()).collect()
}

#[test]
fn imports_are_found_with_and_without_section_headers() {
    let expected = ["__libc_start_main", "puts", "strcpy", "printf"];
    for name in ["gcc12-stripped", "v_noshdr", "v_shoff_big"] {
        let mut found = imports(name);
        found.sort_unstable();
        let mut expected = expected.to_vec();
        expected.retain(|name| found.iter().any(|f| f == name));
        assert!(expected.len() >= 3, "{name}: {found:?}");
        assert_eq!(found, imports_sorted("gcc12-stripped"), "{name}");
    }
}

fn imports_sorted(name: &str) -> Vec<String> {
    let mut found = imports(name);
    found.sort_unstable();
    found
}

#[test]
fn both_classes_and_byte_orders_are_read() {
    for (name, function) in [("ppc32.so", "helper"), ("gcc12-m32", "helper"), ("a64-bti.so", "helper")] {
        let image = open(name);
        let symbols = Symbols::new();
        let table = symbols.full(&image);
        let exported = symbols.dynamic(&image, &linkage::read(&image));
        let defined: Vec<_> = exported.iter().filter(|s| !s.undefined).collect();
        assert!(!defined.is_empty(), "{name}");
        for symbol in defined {
            assert_eq!(symbol.kind, elf::STT_FUNC, "{name}");
            assert!(symbol.size > 0 && symbol.value > 0, "{name} {function}");
            assert!(table.iter().any(|s| s.name == symbol.name && s.value == symbol.value), "{name}");
        }
    }
}

#[test]
fn stripped_files_have_no_full_table_and_versions_are_cut_off() {
    assert!(Symbols::new().full(&open("gcc12-stripped")).is_empty());
    let image = open("gcc12-O0");
    let symbols = Symbols::new();
    let printf = symbols.full(&image).iter().find(|s| s.base_name() == b"printf" || s.base_name() == b"puts");
    let symbol = printf.unwrap();
    assert!(symbol.name.len() > symbol.base_name().len() && symbol.undefined, "{symbol:?}");
}

#[test]
fn a_table_that_ends_outside_the_file_gives_what_is_there() {
    let image = open("v_allsizes_big");
    let symbols = Symbols::new();
    assert!(symbols.full(&image).problems.iter().any(|p| p.code == "damaged-symbols"));
    assert_eq!(symbols.dynamic(&image, &linkage::read(&image)).len(), 8);
}
