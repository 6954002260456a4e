//! One program by each compiler that the corpus has, with the flags it was really built with.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{corpus, json};
use serde_json::Value;

/// `None` where this machine has no such compiler, which is said.
fn inspect(name: &str) -> Option<Value> {
    let path = corpus("compilers").join(name);
    if !path.exists() {
        eprintln!("no {name}: its compiler could not be installed when the corpus was made");
        return None;
    }
    let (status, report) = json(["inspect".as_ref(), "--units".as_ref(), path.as_os_str()]);
    assert_eq!(status, 0, "{name}");
    let target = report["targets"][0].clone();
    assert_eq!(target["status"], "ok", "{name}: {}", target["problems"]);
    Some(target)
}

fn check(name: &str) -> Option<(i32, Value)> {
    let path = corpus("compilers").join(name);
    path.exists().then(|| {
        let (status, report) = json(["check".as_ref(), "--no-config".as_ref(), path.as_os_str()]);
        (status, report["targets"][0].clone())
    })
}

fn compiler(target: &Value, language: &str) -> String {
    let list = target["compilers"].as_array().unwrap();
    let found = list.iter().find(|compiler| compiler["language"] == language);
    found.map_or_else(String::new, |compiler| compiler["family"].as_str().unwrap().to_owned())
}

#[test]
#[ignore = "needs the corpus"]
fn every_language_by_its_compiler() {
    let mut seen = 0;
    for (name, family, language, level) in [
        ("fortran.o", "gcc", "Fortran", "O2"),
        ("fortran-O0.o", "gcc", "Fortran", "O0"),
        ("ada.o", "gcc", "Ada", "O2"),
        ("ada-O2", "gcc", "Ada", "O2"),
        ("d.o", "gcc", "D", "O2"),
        ("gccgo.o", "gcc", "Go", "O2"),
        ("m2.o", "gcc", "Modula-2", "O2"),
        ("ldc.o", "ldc", "D", "unknown"),
        ("ldc-O0.o", "ldc", "D", "unknown"),
        ("go-default", "go", "Go", "optimized"),
        ("go-noopt", "go", "Go", "O0"),
        ("go-stripped", "go", "Go", "optimized"),
        ("go-symbols", "go", "Go", "optimized"),
    ] {
        let Some(target) = inspect(name) else { continue };
        seen += 1;
        assert_eq!(compiler(&target, language), family, "{name}: {}", target["compilers"]);
        assert_eq!(target["optimization"]["level"], level, "{name}: {}", target["optimization"]["reason"]);
    }
    // A mirror may lack one compiler or another, and not most of them.
    assert!(seen >= 8, "the corpus has {seen} of 13");
    for (name, family) in [("nasm.o", "nasm"), ("yasm.o", "yasm")] {
        let Some(target) = inspect(name) else { continue };
        assert_eq!(compiler(&target, "Assembly"), family, "{name}");
        assert_eq!(target["optimization"]["complete"], true, "{name}: nothing is left open");
    }
    if let Some(target) = inspect("tcc.o") {
        assert_eq!(target["optimization"]["level"], "unknown", "stabs are read by nobody");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn go_records_whether_it_optimized() {
    for (name, status) in [("go-default", 0), ("go-stripped", 0), ("go-noopt", 1)] {
        let Some((got, target)) = check(name) else { continue };
        assert_eq!(got, status, "{name}: {}", target["findings"]);
    }
    // What the Go compiler recorded speaks of all its functions, also of those that symbols name.
    for name in ["go-stripped", "go-symbols"] {
        let Some(target) = inspect(name) else { continue };
        let text = &target["optimization"]["text"];
        assert!(
            text["unknown"].as_u64() < Some(1024) && text["recorded"].as_u64() > Some(100_000),
            "{name}: {text}"
        );
    }
    let Some(target) = inspect("go-default") else { return };
    // Go's linker compresses its DWARF: a version of 0 or none would mean that it was not inflated.
    assert!(target["debug_info"]["dwarf_versions"][0].as_u64() >= Some(4), "{}", target["debug_info"]);
    assert_eq!(target["debug_info"]["compressed"], "zlib");
}

#[test]
#[ignore = "needs the corpus"]
fn c_code_in_a_go_program_is_judged_by_itself() {
    for (name, level) in [
        ("cgo-O0", "O0"),
        ("cgo-O0-stripped", "O0"),
        ("cgo-O2", "optimized"),
        ("cgo-O2-stripped", "optimized"),
    ] {
        let Some(target) = inspect(name) else { continue };
        let optimization = &target["optimization"];
        assert_eq!(optimization["level"], level, "{name}: {}", optimization["reason"]);
        let (status, target) = check(name).unwrap();
        assert_eq!(status, i32::from(level == "O0"), "{name}: {}", target["findings"]);
        // What the Go command gave to the C compiler is a claim about that part only.
        let claims = optimization["claims"].as_array().unwrap();
        let of_c = claims.iter().find(|c| c["quote"].as_str().is_some_and(|q| q.starts_with("CGO_CFLAGS=")));
        assert_eq!(of_c.unwrap()["scope"], "some", "{name}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn a_static_c_library_does_not_speak_for_the_program() {
    for (name, kind) in [("static-O2", "executable"), ("static-plain", "executable"), ("staticpie-O2", "pie")]
    {
        let target = inspect(name).unwrap();
        assert_eq!(
            (&target["elf"]["kind"], &target["elf"]["static"]),
            (&kind.into(), &true.into()),
            "{name}"
        );
        // The library brings __stack_chk_fail and __*_chk, whoever uses them.
        assert_eq!(target["hardening"]["canary"]["value"], Value::Null, "{name}");
        assert_eq!(target["hardening"]["fortify"]["value"], "unknown", "{name}");
        assert_eq!(target["instrumentation"]["profiling"]["value"], false, "{name}");
        assert_eq!(target["optimization"]["level"], "optimized", "{name}");
    }
    // Two units of -O2 in half a per cent of the code are not the program.
    let reason = inspect("static-O2").unwrap()["optimization"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("all 2 units are -O2") && reason.contains("% of the code"), "{reason}");
    for name in ["static-O0", "static-O0-stripped"] {
        let (status, target) = check(name).unwrap();
        assert_eq!((status, &target["optimization"]["level"]), (1, &"O0".into()), "{name}");
        let runs = target["functions"]["runs"].as_array().unwrap();
        assert!(
            runs.iter().any(|run| run["level"] == "O0" && run["functions"].as_u64() >= Some(20)),
            "{runs:?}"
        );
    }
}

#[test]
#[ignore = "needs the corpus"]
fn musl_and_what_zig_brings_are_not_the_program_s_own() {
    if let Some(target) = inspect("musl-static") {
        assert_eq!(target["hardening"]["fortify"]["value"], "unknown");
        let own = target["units"].as_array().unwrap().iter().filter(|unit| unit["kind"] == "source").count();
        assert_eq!(own, 0, "the start file is the library's: {}", target["units"]);
        assert_ne!(target["optimization"]["strength"], "recorded", "{}", target["optimization"]["reason"]);
    }
    for (name, level) in [("zig-O1", "optimized"), ("zig-O0", "O0")] {
        let Some(target) = inspect(name) else { continue };
        let units = target["units"].as_array().unwrap();
        let own: Vec<&str> =
            units.iter().filter(|u| u["kind"] == "source").map(|u| u["name"].as_str().unwrap()).collect();
        assert_eq!(own, ["many.c", "main.c"], "{name}");
        assert_eq!(target["optimization"]["level"], level, "{name}");
        assert_eq!(target["optimization"]["strength"], "structural", "{name}");
        assert!(units.iter().any(|unit| unit["kind"] == "library"), "{name}: musl is there");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn a_command_line_speaks_of_the_object_that_has_one() {
    for name in ["lone-record", "lone-record-stripped"] {
        let (status, target) = check(name).unwrap();
        assert_eq!((status, &target["optimization"]["level"]), (1, &"O0".into()), "{name}");
    }
    // Both objects recorded the same -O2, which the linker keeps once: that there are no others cannot be known.
    for name in ["all-recorded", "all-recorded-stripped"] {
        let target = inspect(name).unwrap();
        assert_eq!(target["optimization"]["level"], "optimized", "{name}");
        let reason = target["optimization"]["reason"].as_str().unwrap();
        assert!(reason.contains("a recorded command line says -O2 of some part"), "{name}: {reason}");
        assert_eq!(check(name).unwrap().0, 0, "{name}");
    }
}
