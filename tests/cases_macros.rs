//! Macro definitions in debug information, and command lines that only some objects left.

#![allow(clippy::unwrap_used)]

mod common;

use common::{json, testdata};
use serde_json::{Value, json as value};

fn inspect(name: &str) -> Value {
    let path = testdata(name);
    let (status, report) = json(["inspect".as_ref(), "--units".as_ref(), path.as_os_str()]);
    assert_eq!(status, 0, "{name}");
    report["targets"][0].clone()
}

fn check(name: &str, minimum: &str) -> (i32, Value) {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.toml");
    std::fs::write(&policy, format!("schema = 1\n[optimization]\nminimum = \"{minimum}\"\n")).unwrap();
    let path = testdata(name);
    let (status, report) = json(["check".as_ref(), "-p".as_ref(), policy.as_os_str(), path.as_os_str()]);
    (status, report["targets"][0].clone())
}

#[test]
fn the_level_where_no_options_were_recorded() {
    for (file, level) in [
        ("cases/macro-gnu4-O0", "O0"),
        ("cases/macro-macinfo-Os", "Os"),
        ("cases/macro-O2.o", "optimized"),
        ("cases/macro-clang", "optimized"),
        ("cases/macro-clang-split.o", "O0"),
    ] {
        let target = inspect(file);
        let optimization = &target["optimization"];
        assert_eq!(optimization["level"], level, "{file}: {optimization}");
        assert_eq!(optimization["strength"], "recorded", "{file}");
        assert_eq!(optimization["sources"], value!(["dwarf-macro"]), "{file}");
        assert_eq!(target["conflicts"], value!([]), "{file}");
        assert_eq!(target["status"], "ok", "{file}: {}", target["problems"]);
    }
    assert_eq!(check("cases/macro-gnu4-O0", "O1").0, 1);
    assert_eq!(check("cases/macro-clang", "O1").0, 0);
}

#[test]
fn options_and_macros_that_agree_stand_side_by_side() {
    let target = inspect("cases/gcc12-g3-macro");
    assert_eq!(target["optimization"]["level"], "O2");
    assert_eq!(target["optimization"]["sources"], value!(["dwarf-producer", "dwarf-macro"]));
    assert_eq!(target["units"][0]["sources"], value!(["dwarf-producer", "dwarf-macro"]));
    let debug = &target["instrumentation"]["debug_build"];
    assert_eq!((&debug["value"], &debug["strength"]), (&value!(true), &value!("recorded")));
    assert_eq!(target["hardening"]["fortify"]["value"], "yes");
    assert!(target["hardening"]["fortify"]["sources"].as_array().unwrap().contains(&value!("dwarf-macro")));
}

#[test]
fn a_value_that_looks_like_an_option_is_settled_by_macros() {
    // -frandom-seed='a -O0 b': the words alone leave open whether that -O0 was one.
    let target = inspect("cases/macro-ambiguous");
    assert_eq!(target["optimization"]["level"], "optimized");
    assert_eq!(target["optimization"]["sources"], value!(["dwarf-macro"]));
    assert_eq!(check("cases/macro-ambiguous", "O1").0, 0);
}

#[test]
fn options_and_macros_that_disagree_are_a_conflict() {
    let target = inspect("cases/macro-lie");
    assert_eq!(target["optimization"]["level"], "O2");
    let claims = target["conflicts"][0]["claims"].as_array().unwrap();
    let said: Vec<(&str, &str)> = claims
        .iter()
        .map(|claim| (claim["source"].as_str().unwrap(), claim["value"].as_str().unwrap()))
        .collect();
    assert_eq!(said, [("dwarf-producer", "O2"), ("dwarf-macro", "O0")]);
    let (status, target) = check("cases/macro-lie", "O1");
    assert_eq!(status, 1);
    let rules: Vec<&Value> = target["findings"].as_array().unwrap().iter().map(|f| &f["rule"]).collect();
    assert!(rules.contains(&&value!("conflicting-evidence")), "{rules:?}");
}

#[test]
fn one_command_line_does_not_speak_for_every_object() {
    // recorded.c left its -O2; unrecorded.c is -O0 and left nothing.
    for file in ["cases/lone-record", "cases/lone-record-stripped"] {
        let target = inspect(file);
        let optimization = &target["optimization"];
        assert_eq!(optimization["text"]["recorded"], 0, "{file}: {optimization}");
        assert_eq!(optimization["complete"], false, "{file}");
        let reason = optimization["reason"].as_str().unwrap();
        assert!(reason.contains("a recorded command line says -O2 of some part"), "{file}: {reason}");
        let (_, target) = check(file, "O2");
        let open = target["findings"].as_array().unwrap().iter().any(|finding| {
            finding["rule"] == "undetermined-optimization" && finding["status"] == "undetermined"
        });
        assert!(open, "{file}: {}", target["findings"]);
    }
    // Two objects, and a command line for each.
    let all = inspect("cases/gcc12-record");
    assert_eq!(all["optimization"]["level"], "O2");
    assert_eq!(all["optimization"]["strength"], "recorded");
    assert_eq!(all["optimization"]["complete"], true);
}
