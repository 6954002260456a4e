//! One file of every compiler, with the flags it was really built with.

#![allow(clippy::unwrap_used)]

mod common;

use common::{json, testdata};
use serde_json::Value;
use std::path::Path;

fn inspect(path: &Path) -> Value {
    let (status, report) =
        json(["inspect".as_ref(), "--units".as_ref(), "--flags".as_ref(), path.as_os_str()]);
    assert_eq!(status, 0, "{}", path.display());
    report["targets"][0].clone()
}

fn of(name: &str) -> Value {
    inspect(&testdata(name))
}

/// File, level, compiler with version, language.
const WITH_UNITS: &[(&str, &str, &str, &str)] = &[
    ("dwarf/gcc12-O2", "O2", "gcc 12.2.0", "C"),
    ("elf/gcc12-O0", "O0", "gcc 12.2.0", "C"),
    ("cases/gcc12-noO", "O0", "gcc 12.2.0", "C"),
    ("cases/gcc12-O3thenO0", "O0", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-fat.o", "O3", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-slim.o", "O3", "gcc 12.2.0", "C"),
    ("cases/gcc12-attr-O0", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-dwarf2", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-dwarf3", "O2", "gcc 12.2.0", "C"),
    ("cases/gcc12-dwarf4", "O2", "gcc 12.2.0", "C"),
    ("cases/gcc12-dwarf5", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-dwarf64", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-zlib", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-zdebug", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-zstd", "O2", "gcc 12.2.0", "C"),
    ("elf/gcc12-split", "O2", "gcc 12.2.0", "C"),
    ("elf/gcc12-stripped", "O2", "gcc 12.2.0", "C"),
    ("elf/gcc12-stripped.debug", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-dwz1", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-m32", "O1", "gcc 12.2.0", "C"),
    ("cases/fortran.o", "O2", "gcc 12.2.0", "Fortran"),
    ("cases/d.o", "O2", "gcc 12.2.0", "D"),
    ("cases/gccgo.o", "O2", "gcc 12.2.0", "Go"),
    ("cases/m2.o", "O2", "gcc 12.2.0", "Modula-2"),
    ("cases/clang19-rec", "O1", "clang 19.1.7", "C"),
    ("elf/gold", "O2", "gcc 12.2.0", "C"),
    ("elf/pkgnote", "O2", "gcc 12.2.0", "C"),
    ("elf/cet", "O2", "gcc 12.2.0", "C"),
    ("elf/a64-bti.so", "O2", "gcc 12.2.0", "C"),
    ("dwarf/ppc32.o", "O2", "gcc 12.2.0", "C"),
    ("elf/ppc32.so", "O2", "gcc 12.2.0", "C"),
    ("dwarf/s390x.o", "O2", "gcc 12.2.0", "C"),
    ("cases/gcc9-O2", "O2", "gcc 9.3.0", "C"),
    ("cases/gcc14-hardened", "O2", "gcc 14.2.0", "C"),
    ("dwarf/gcc12-split-t.dwo", "O2", "gcc 12.2.0", "C"),
    ("dwarf/gcc12-split-t.o", "O2", "gcc 12.2.0", "C"),
    ("elf/tx1.o", "O0", "gcc 12.2.0", "C"),
    ("elf/tx2.o", "O3", "gcc 12.2.0", "C"),
    ("cases/gcc12-g3-macro", "O2", "gcc 12.2.0", "C"),
];

#[test]
fn the_level_that_the_compiler_recorded() {
    for (file, level, compiler, language) in WITH_UNITS {
        let target = of(file);
        let optimization = &target["optimization"];
        assert_eq!(optimization["level"], *level, "{file}: {optimization}");
        assert_eq!(optimization["bound"], "exact", "{file}");
        assert_eq!(optimization["strength"], "recorded", "{file}");
        assert_eq!(target["status"], "ok", "{file}: {}", target["problems"]);
        let unit = &target["units"][0];
        assert_eq!(unit["compiler"], *compiler, "{file}");
        assert_eq!(unit["language"], *language, "{file}");
        assert_eq!(unit["level"], *level, "{file}");
        assert_eq!(target["unit_count"], 1, "{file}");
        assert_eq!(target["conflicts"].as_array().map(Vec::len), Some(0), "{file}");
    }
}

#[test]
fn every_byte_of_the_text_is_accounted_for() {
    for (file, ..) in WITH_UNITS {
        let text = of(file)["optimization"]["text"].clone();
        let number = |key: &str| text[key].as_u64().unwrap_or_else(|| panic!("{file}: {key} of {text}"));
        let parts =
            ["padding", "runtime", "recorded", "structural", "declared", "inferred", "unknown"].map(number);
        assert_eq!(parts.iter().sum::<u64>(), number("bytes"), "{file}: {text}");
        // A separate debug file has no code to tell padding by; split and slim LTO objects have none at all.
        if !matches!(*file, "elf/gcc12-stripped.debug" | "dwarf/gcc12-split-t.dwo" | "dwarf/gcc12-slim.o") {
            assert_eq!(number("unknown"), 0, "{file}: {text}");
            assert!(number("recorded") > 0, "{file}: {text}");
        }
    }
}

#[test]
fn the_last_level_wins_and_the_loser_is_told() {
    assert_eq!(of("cases/gcc12-O3thenO0")["units"][0]["overridden"][0], "-O3");
    let recorded = of("cases/clang19-rec");
    assert_eq!(recorded["units"][0]["overridden"][0], "-O3");
    let flags = recorded["units"][0]["flags"].as_array().unwrap().clone();
    assert!(flags.iter().any(|flag| flag == "-D X=\"a b\""), "{flags:?}");
}

#[test]
fn mixed_builds_name_the_guilty_unit() {
    for (file, member) in [
        ("cases/gcc12-mixed", [None, None]),
        ("dwarf/gcc12-lto-mixed", [None, None]),
        ("elf/lib.a", [Some("x1.o"), Some("x2.o")]),
        ("elf/libthin.a", [Some("tx1.o"), Some("tx2.o")]),
    ] {
        let target = of(file);
        let optimization = &target["optimization"];
        assert_eq!(optimization["level"], "O0", "{file}");
        assert_eq!(optimization["complete"], true, "{file}: {optimization}");
        assert!(optimization["reason"].as_str().unwrap().contains("l1.c"), "{file}");
        let units: Vec<&Value> =
            target["units"].as_array().unwrap().iter().filter(|u| u["kind"] == "source").collect();
        for (unit, (name, level, member)) in
            units.iter().zip([("l1.c", "O0", member[0]), ("l2.c", "O3", member[1])])
        {
            assert_eq!((&unit["name"], &unit["level"]), (&name.into(), &level.into()), "{file}");
            assert_eq!(unit["member"].as_str(), member, "{file}");
        }
        assert_eq!((units.len(), &target["unit_count"]), (2, &2.into()), "{file}");
    }
    assert_eq!(of("dwarf/gcc12-lto-mixed")["lto"]["value"], "gcc");
}

#[test]
fn link_time_units_take_the_level_of_their_sources() {
    let guilty = of("cases/lto-O0-linked-O2");
    assert_eq!(guilty["optimization"]["level"], "O0");
    assert_eq!(guilty["optimization"]["complete"], true);
    let reason = guilty["optimization"]["reason"].as_str().unwrap();
    assert!(reason.contains("guilty.c") && reason.contains("1 of 2 units is -O0"), "{reason}");
    let clean = of("cases/lto-O2-linked-O0");
    assert_eq!(clean["optimization"]["level"], "O2");
    assert_eq!(clean["optimization"]["complete"], true);
}

#[test]
fn what_tells_no_flags_is_known_by_its_shape_at_most() {
    for (file, level, strength) in [
        ("cases/clang19-O0", "O0", "structural"),
        ("cases/clang19-O2", "optimized", "structural"),
        ("elf/lld19", "optimized", "structural"),
        ("cases/gcc12-norecord", "optimized", "inferred"),
        ("dwarf/clang19-split-t.dwo", "unknown", "none"),
        ("dwarf/clang19-split-t.o", "unknown", "none"),
        ("dwarf/gcc12-split4-t.o", "unknown", "none"),
        ("dwarf/tcc.o", "unknown", "none"),
    ] {
        let optimization = of(file)["optimization"].clone();
        assert_eq!(optimization["level"], level, "{file}: {optimization}");
        assert_eq!(optimization["strength"], strength, "{file}");
        assert!(!optimization["reason"].as_str().unwrap().is_empty(), "{file}");
    }
    assert_eq!(of("cases/clang19-O0")["units"][0]["language"], "C");
}

#[test]
fn assembly_has_no_level_and_fails_nothing() {
    for (file, compiler) in
        [("elf/gas.o", "gas 2.40"), ("cases/nasm.o", "nasm 2.16.01"), ("cases/yasm.o", "yasm 1.3.0")]
    {
        let target = of(file);
        assert_eq!(target["optimization"]["level"], "unknown", "{file}");
        let reason = target["optimization"]["reason"].as_str().unwrap();
        assert_eq!(reason, "all code is assembly, to which no level applies", "{file}");
        assert_eq!(target["units"][0]["kind"], "assembly", "{file}");
        assert_eq!(target["units"][0]["compiler"], compiler, "{file}");
        let (status, report) = json(["check".as_ref(), testdata(file).as_os_str()]);
        assert_eq!((status, &report["targets"][0]["verdict"]), (0, &"pass".into()), "{file}");
    }
}

#[test]
fn command_lines_outside_the_debug_information() {
    let gcc = of("cases/gcc12-record");
    assert_eq!(gcc["optimization"]["level"], "O2");
    assert_eq!(gcc["optimization"]["sources"][0], "gcc-command-line");
    let levels: Vec<&str> = gcc["optimization"]["claims"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|claim| claim["source"] == "gcc-command-line")
        .filter_map(|claim| claim["value"].as_str())
        .collect();
    assert!(levels.contains(&"O2") && levels.contains(&"O3"), "{levels:?}");
    let clang = of("cases/clang19-frec");
    assert_eq!(clang["optimization"]["level"], "O2");
    assert_eq!(clang["compilers"][0]["family"], "clang");
}

#[test]
fn build_notes_find_the_unit_without_debug_information() {
    let target = of("cases/annobin-note");
    assert_eq!(target["optimization"]["level"], "O0");
    assert_eq!(target["optimization"]["sources"][0], "annobin");
    let reason = target["optimization"]["reason"].as_str().unwrap();
    assert!(reason.contains("2 functions that no unit describes are -O0 (recorded"), "{reason}");
    assert_eq!(of("cases/annobin-note.o")["units"][0]["level"], "O2");
}

#[test]
fn supplementary_files_hold_producers() {
    for file in ["dwarf/gcc12-dwz1", "cases/gcc12-dwz2"] {
        let path = testdata(file);
        let (_, report) = json([
            "inspect".as_ref(),
            "--debug-file".as_ref(),
            testdata("dwarf/gcc12-dwz-alt.debug").as_os_str(),
            path.as_os_str(),
        ]);
        let target = &report["targets"][0];
        assert_eq!(target["optimization"]["level"], "O2", "{file}");
        assert_eq!(target["debug_info"]["supplementary"], "found", "{file}");
    }
    // Without it, what is missing is named: nothing says that the compiler recorded nothing.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("without");
    std::fs::copy(testdata("dwarf/gcc12-dwz1"), &path).unwrap();
    let reason = inspect(&path)["optimization"]["reason"].to_string();
    assert!(reason.contains("lies in the supplementary file of dwz, which was not found"), "{reason}");
    let alone = of("dwarf/gcc12-dwz-alt.debug");
    assert_eq!(alone["elf"]["kind"], "separate-debug");
    assert_eq!(alone["debug_info"]["present"], true);
    assert!(!alone["optimization"]["reason"].as_str().unwrap().starts_with("no debug information"));
}

#[test]
fn compression_and_versions_are_told() {
    for (file, version, compressed) in [
        ("dwarf/gcc12-dwarf2", 2, None),
        ("dwarf/gcc12-dwarf3", 3, None),
        ("cases/gcc12-dwarf4", 4, None),
        ("cases/gcc12-dwarf5", 5, None),
        ("dwarf/gcc12-zlib", 5, Some("zlib")),
        ("dwarf/gcc12-zdebug", 5, Some("zlib-gnu")),
        ("dwarf/gcc12-zstd", 5, Some("zstd")),
        ("cases/gcc9-O2", 4, None),
        ("cases/nasm.o", 3, None),
        ("cases/yasm.o", 2, None),
    ] {
        let debug = of(file)["debug_info"].clone();
        assert_eq!(debug["dwarf_versions"], serde_json::json!([version]), "{file}");
        assert_eq!(debug["compressed"].as_str(), compressed, "{file}");
    }
}

#[test]
fn machines_of_any_width_and_byte_order() {
    for (file, class, endian) in [
        ("dwarf/gcc12-m32", 32, "little"),
        ("dwarf/ppc32.o", 32, "big"),
        ("elf/ppc32.so", 32, "big"),
        ("dwarf/s390x.o", 64, "big"),
        ("elf/a64-bti.so", 64, "little"),
    ] {
        let elf = of(file)["elf"].clone();
        assert_eq!((&elf["class"], &elf["endian"]), (&class.into(), &endian.into()), "{file}");
    }
}

#[test]
fn hardening_and_instrumentation_of_each_option() {
    for (file, part, fact, value) in [
        ("elf/h_asan", "instrumentation", "sanitizers", serde_json::json!(["address"])),
        ("elf/h_ubsan", "instrumentation", "sanitizers", serde_json::json!(["undefined"])),
        ("elf/h_gcov", "instrumentation", "coverage", true.into()),
        ("elf/h_pg", "instrumentation", "profiling", true.into()),
        ("elf/h_instr", "instrumentation", "profiling", true.into()),
        ("elf/h_execstack", "hardening", "nx_stack", false.into()),
        ("elf/h_norelro", "hardening", "relro", "none".into()),
        ("elf/h_relro", "hardening", "relro", "full".into()),
        ("elf/h_relr", "hardening", "relro", "partial".into()),
        ("elf/h_nopie", "hardening", "pie", false.into()),
        ("elf/h_fort2", "hardening", "fortify", "yes".into()),
        ("elf/h_fort3", "hardening", "fortify", "yes".into()),
        ("elf/h_ssp", "hardening", "canary", true.into()),
        ("cases/h_patch", "hardening", "pie", true.into()),
        ("elf/cet", "hardening", "ibt", true.into()),
        ("elf/a64-bti.so", "hardening", "bti", true.into()),
        ("cases/gcc14-hardened", "hardening", "fortify", "yes".into()),
        ("cases/stapsdt", "hardening", "pie", true.into()),
    ] {
        assert_eq!(of(file)[part][fact]["value"], value, "{file}: {part}.{fact}");
    }
}
