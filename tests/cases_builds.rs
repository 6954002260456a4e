//! Builds that went wrong in public, rebuilt small, each with the right verdict.

#![allow(clippy::unwrap_used)]

mod common;

use common::{json, run, testdata};
use serde_json::{Value, json as value};
use std::path::Path;

fn inspect(path: &Path) -> Value {
    json(["inspect".as_ref(), "--units".as_ref(), "--flags".as_ref(), path.as_os_str()]).1["targets"][0]
        .clone()
}

fn of(name: &str) -> Value {
    inspect(&testdata(name))
}

fn check(path: &Path) -> (i32, Value) {
    let (status, report) = json(["check".as_ref(), "--no-config".as_ref(), path.as_os_str()]);
    (status, report["targets"][0].clone())
}

fn findings<'a>(target: &'a Value, rule: &str) -> Vec<&'a Value> {
    target["findings"].as_array().unwrap().iter().filter(|f| f["rule"] == rule).collect()
}

#[test]
fn a_vendored_source_without_optimization_is_named_alone() {
    // CFLAGS=-w given to make replaced the -O2 of one library.
    let (status, target) = check(&testdata("cases/vendored.so"));
    assert_eq!(status, 1);
    let found = findings(&target, "unoptimized-code");
    assert_eq!(found[0]["units"], value!([{"name": "l1.c", "level": "O0"}]));
    assert_eq!(found[0]["units_total"], 1);
}

#[test]
fn a_file_that_a_pragma_keeps_unoptimized_is_told_whole_beside_its_record() {
    for (name, level, functions) in
        [("shape/pragma-gcc", "O2", 14), ("shape/pragma-clang-16", "optimized", 13)]
    {
        let (status, target) = check(&testdata(name));
        assert_eq!((status, &target["optimization"]["level"]), (0, &value!(level)), "{name}");
        let first = &target["functions"]["runs"][0];
        assert_eq!(
            (&first["unit"], &first["functions"]),
            (&value!("pragma.c"), &value!(functions)),
            "{name}"
        );
        assert_eq!(target["functions"]["o0_shaped"], functions, "{name}");
        let found = findings(&target, "unoptimized-code");
        assert_eq!((found.len(), &found[0]["severity"]), (1, &value!("warning")), "{name}");
        assert!(findings(&target, "conflicting-evidence").is_empty(), "{name}: told once");
        let path = testdata(name);
        let text = run(["inspect".as_ref(), path.as_os_str()]).stdout;
        assert!(text.contains(&format!("but {functions} functions are shaped like -O0")), "{text}");
    }
}

#[test]
fn a_program_that_is_unoptimized_against_its_record_does_not_pass() {
    // clang records nothing; its marks of calls say that it optimized.
    for (name, level) in [("shape/pragma-all", "O2"), ("shape/pragma-all-clang-16", "optimized")] {
        let (status, target) = check(&testdata(name));
        assert_eq!((status, &target["optimization"]["level"]), (1, &value!(level)), "{name}");
        let found = findings(&target, "conflicting-evidence");
        assert_eq!((found.len(), &found[0]["severity"]), (1, &value!("error")), "{name}");
        assert!(findings(&target, "unoptimized-code").is_empty(), "{name}");
    }
}

#[test]
fn undescribed_code_on_both_sides_of_a_recorded_unit_is_not_taken_for_that_unit_s() {
    let (status, target) = check(&testdata("shape/dark-around-O2"));
    assert_eq!((status, &target["optimization"]["level"]), (1, &value!("O0")));
    let runs = target["functions"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs.iter().all(|run| run["unit"].is_null() && run["functions"] == 6), "{runs:?}");
}

#[test]
fn functions_found_in_the_code_alone_are_counted_and_listed() {
    for (name, level) in [("shape/gcc-O0-noeh", "O0"), ("shape/gcc-O2-noeh", "optimized")] {
        // Without section headers there is no symbol table, and these files have no frame descriptions.
        let mut bytes = std::fs::read(testdata(name)).unwrap();
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
        // Nor does the dynamic table name any.
        let headers = 0x40..0x40 + 56 * usize::from(bytes[0x38]);
        for at in headers.step_by(56).filter(|&at| bytes[at..at + 4] == [2, 0, 0, 0]).collect::<Vec<_>>() {
            bytes[at] = 0;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let path = file.path();
        let (_, document) = common::json(["inspect".as_ref(), "--functions".as_ref(), path.as_os_str()]);
        let functions = &document["targets"][0]["functions"];
        let list = functions["list"].as_array().unwrap();
        assert_eq!(functions["count"], list.len(), "{name}");
        let of_level = |level: &str| list.iter().filter(|f| f["level"] == level).count() as u64;
        assert!(
            functions["judged"].as_u64() >= Some(15)
                && functions["judged"].as_u64() <= Some(list.len() as u64)
        );
        assert!(of_level(level) >= 15, "{name}: {list:?}");
        assert_eq!(functions["o0_shaped"], of_level("O0"), "{name}");
        assert!(list.is_sorted_by_key(|f| f["start"].as_u64()), "{name}");
    }
}

#[test]
fn options_without_a_level_are_no_optimization() {
    for (file, level) in [("cases/march-only", "O0"), ("cases/O2-then-O1", "O1"), ("cases/O1-then-O2", "O2")]
    {
        assert_eq!(of(file)["optimization"]["level"], level, "{file}");
    }
    let flags = of("cases/march-only")["flags"].as_array().unwrap().clone();
    assert!(flags.iter().any(|flag| flag["flag"] == "-march=x86-64-v2"), "{flags:?}");
    assert_eq!(check(&testdata("cases/march-only")).0, 1);
}

#[test]
fn a_processor_is_known_by_its_options_and_not_by_the_word_native() {
    let target = of("cases/native");
    let flags = target["flags"].as_array().unwrap();
    assert!(!flags.iter().any(|flag| flag["flag"].as_str().unwrap().contains("native")), "{flags:?}");
    assert_eq!(target["cpu"]["baseline"]["value"], "x86-64-v4");
    assert_eq!(of("cases/march-only")["cpu"]["baseline"]["value"], "x86-64-v2");
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.toml");
    std::fs::write(&policy, "schema = 1\n[cpu]\nbaseline = \"x86-64-v2\"\n").unwrap();
    let judge = |name: &str| {
        run(["check".as_ref(), "-p".as_ref(), policy.as_os_str(), testdata(name).as_os_str()]).status
    };
    assert_eq!((judge("cases/native"), judge("cases/march-only")), (1, 0));
}

#[test]
fn debug_information_is_no_debug_build() {
    let directory = tempfile::tempdir().unwrap();
    let named = directory.path().join("server-debug");
    std::fs::copy(testdata("dwarf/gcc12-O2"), &named).unwrap();
    let target = inspect(&named);
    assert_eq!(target["optimization"]["level"], "O2");
    assert_eq!(target["debug_info"]["present"], true);
    assert_eq!(target["instrumentation"]["debug_build"]["value"], Value::Null);
    assert_eq!(check(&named).0, 0);
    assert_eq!(of("elf/h_relro")["debug_info"]["present"], false);
}

#[test]
fn fortification_needs_optimization() {
    assert_eq!(of("cases/fortify-O0")["hardening"]["fortify"]["value"], "no");
    assert_eq!(of("cases/fortify-O2")["hardening"]["fortify"]["value"], "yes");
    // musl has no checked variants: that there are none says nothing.
    for file in ["elf/musl-dynamic", "elf/musl-static"] {
        assert_eq!(of(file)["hardening"]["fortify"]["value"], "unknown", "{file}");
    }
}

#[test]
fn coverage_is_found_in_a_stripped_release() {
    for file in ["elf/h_gcov", "elf/gcov-stripped"] {
        assert_eq!(of(file)["instrumentation"]["coverage"]["value"], true, "{file}");
        let (status, target) = check(&testdata(file));
        // Whether a profile was to be made as well, only symbols tell.
        let expected = if file == "elf/h_gcov" { 1 } else { 2 };
        assert_eq!((status, findings(&target, "instrumented-build").len()), (1, expected), "{file}");
    }
}

#[test]
fn assertions_are_a_note_and_their_absence_is_not_known() {
    let (status, target) = check(&testdata("elf/withassert.so"));
    let found = findings(&target, "debug-build");
    assert_eq!((status, found.len()), (0, 1), "{}", target["findings"]);
    assert_eq!(found[0]["severity"], "note");
    assert_eq!(of("cases/fortify-O2")["instrumentation"]["assertions"]["value"], Value::Null);
}

#[test]
fn partitions_of_the_link_are_not_counted_as_units() {
    let target = of("cases/lto-partitions");
    assert_eq!(target["unit_count"], 2);
    let kinds: Vec<&str> =
        target["units"].as_array().unwrap().iter().map(|unit| unit["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["lto-partition", "lto-partition", "source", "source"]);
    assert_eq!(target["optimization"]["level"], "O2");
    assert_eq!(target["lto"]["value"], "gcc");
}

#[test]
fn words_without_options_are_not_read_as_no_optimization() {
    let plain = of("cases/clang19-O0");
    assert_eq!(plain["flags"], value!([]));
    assert_eq!(plain["optimization"]["sources"], value!(["dwarf-shape"]));
    let recorded = of("cases/clang19-rec");
    assert_eq!(recorded["optimization"]["sources"], value!(["dwarf-producer"]));
    // The -O was never there to be read: what the debug information shows is all there is.
    assert_ne!(of("cases/clang19-O2")["optimization"]["level"], "O0");
}

#[test]
fn a_program_that_prints_the_packer_s_name_is_not_packed() {
    assert_eq!(of("elf/upx-text")["elf"]["packed"], false);
}

#[test]
fn a_package_note_names_product_and_version() {
    let target = of("elf/pkgnote");
    assert_eq!(
        target["product"],
        value!({"name": "nginx", "version": "1.2-3", "base": null, "build_text": "debian"})
    );
    let said: Vec<&str> =
        target["build_strings"].as_array().unwrap().iter().map(|s| s["program"].as_str().unwrap()).collect();
    assert!(said.iter().all(|program| *program == "package-note") && said.len() == 5, "{said:?}");
    // A name is not the program: nothing of nginx is there.
    assert_eq!(target["nginx"], Value::Null);
}

#[test]
fn what_is_written_to_a_file_has_no_colours_and_no_redraws() {
    for arguments in [["inspect", "--units"], ["check", "--no-config"]] {
        let output = common::flagaudit()
            .args(arguments)
            .arg(testdata("cases/gcc12-mixed"))
            .env("CI", "1")
            .env("TERM", "xterm-256color")
            .output()
            .unwrap();
        for stream in [&output.stdout, &output.stderr] {
            assert!(!stream.iter().any(|byte| matches!(byte, 0x1b | b'\r')), "{arguments:?}");
        }
    }
}
