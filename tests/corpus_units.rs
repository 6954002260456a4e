//! Units, producers and levels of real binaries, held against other readers of DWARF.

mod common;

use common::{corpus, json, output_of};
use flagaudit::evidence::dwarf_producer::{self, DwarfUnitKind};
use flagaudit::image::{Image, Input};
use flagaudit::limits::Limits;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn units(path: &Path) -> (Value, Vec<Value>) {
    let (_, report) = json(["inspect".as_ref(), "--units".as_ref(), path.as_os_str()]);
    let target = report["targets"][0].clone();
    let units = target["units"].as_array().expect("units were asked for").clone();
    (target, units)
}

/// Name and number of `-O` the oracle saw, by unit name: the last one wins.
fn oracle(path: &Path) -> Vec<(String, String)> {
    let text = output_of(
        "llvm-dwarfdump-14",
        &["--debug-info".as_ref(), "--recurse-depth=0".as_ref(), path.as_os_str()],
    );
    let mut found = Vec::new();
    let mut current: Option<(String, String)> = None;
    for line in text.lines() {
        if line.contains("DW_TAG_compile_unit") {
            found.extend(current.take());
            current = Some(Default::default());
        } else if line.contains("DW_TAG_") {
            found.extend(current.take());
        }
        let value = || {
            line.split_once("(\"").and_then(|(_, rest)| rest.rsplit_once("\")")).map(|(v, _)| v.to_owned())
        };
        if let Some(current) = &mut current {
            let attribute = line.split_whitespace().next();
            if attribute == Some("DW_AT_producer") {
                current.1 = value().unwrap_or_default();
            } else if attribute == Some("DW_AT_name") {
                current.0 = value().unwrap_or_default();
            }
        }
    }
    found.extend(current);
    found
}

/// The producers of all compilation units, word for word.
fn producers(path: &Path) -> Vec<String> {
    let file = std::fs::File::open(path).expect("a file");
    let image =
        Image::open(Input::file(file).expect("a regular file"), &Limits::default()).expect("an ELF file");
    let units = dwarf_producer::read(&image, None).units;
    let own = units.into_iter().filter(|unit| unit.kind == DwarfUnitKind::Compile);
    sorted(own.map(|u| String::from_utf8_lossy(&u.producer.unwrap_or_default()).into_owned()).collect())
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort_unstable();
    list
}

#[test]
#[ignore = "needs the corpus"]
fn names_and_producers_equal_what_llvm_dwarfdump_prints() {
    let mut files: Vec<_> =
        ["default", "O2", "O0", "O2O0", "mixed", "nodebug", "envcflags", "clangO0", "clangO2"]
            .iter()
            .map(|name| corpus(name))
            .collect();
    let mut debug = Vec::new();
    let mut pending = vec![corpus("libc6-dbg")];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).expect("a folder").flatten() {
            if entry.path().is_dir() {
                pending.push(entry.path());
            } else if entry.path().extension().is_some_and(|e| e == "debug") {
                debug.push(entry.path());
            }
        }
    }
    debug.sort();
    // A sample, spread over the package; the whole of it takes minutes in llvm-dwarfdump.
    files.extend(debug.iter().step_by((debug.len() / 25).max(1)).cloned());
    for path in files {
        let (_, units) = units(&path);
        let ours = sorted(units.iter().map(|u| u["name"].as_str().unwrap_or_default().to_owned()).collect());
        let oracle = oracle(&path);
        let theirs = sorted(oracle.iter().map(|(name, _)| name.clone()).collect());
        assert_eq!(ours, theirs, "{}", path.display());
        assert_eq!(
            producers(&path),
            sorted(oracle.into_iter().map(|(_, words)| words).collect()),
            "{}",
            path.display()
        );
    }
}

#[test]
#[ignore = "needs the corpus"]
fn levels_equal_the_last_o_of_each_recorded_command_line() {
    for name in ["default", "O2", "Os", "O0", "O2O0", "mixed", "envcflags"] {
        let path = corpus(name);
        let (_, units) = units(&path);
        let ours: BTreeMap<&str, &str> = units
            .iter()
            .map(|u| (u["name"].as_str().unwrap_or_default(), u["level"].as_str().unwrap_or_default()))
            .collect();
        for (unit, producer) in oracle(&path) {
            let expected = match producer.split_whitespace().rfind(|word| word.starts_with("-O")) {
                None => "O0".to_owned(),
                Some("-O") => "O1".to_owned(),
                Some(option) => option[1..].to_owned(),
            };
            assert_eq!(ours[unit.as_str()], expected, "{name}: {unit}: {producer}");
        }
    }
}

#[test]
#[ignore = "needs the corpus"]
fn the_account_of_the_text_sums_to_what_readelf_counts() {
    for name in ["O2", "nodebug", "O0-stripped", "debian-nginx/usr/sbin/nginx", "haproxy/usr/sbin/haproxy"] {
        let path = corpus(name);
        let (target, _) = units(&path);
        let text = target["optimization"]["text"].as_object().expect("an account").clone();
        let parts: u64 = text.iter().filter(|(key, _)| *key != "bytes").filter_map(|(_, v)| v.as_u64()).sum();
        let bytes = text["bytes"].as_u64().expect("a number");
        assert_eq!(parts, bytes, "{name}: {text:?}");
        let sections = output_of("readelf", &["-SW".as_ref(), path.as_os_str()]);
        let executable: u64 = sections
            .lines()
            .filter_map(|line| line.split_once(']'))
            .map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>())
            .filter(|f| f.len() > 6 && f[6].contains('A') && f[6].contains('X'))
            .filter_map(|f| u64::from_str_radix(f[4], 16).ok())
            .sum();
        assert_eq!(bytes, executable, "{name}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn the_guilty_unit_is_named_and_its_overridden_option_kept() {
    let (target, units) = units(&corpus("mixed"));
    let guilty: Vec<&Value> = units.iter().filter(|u| u["level"] == "O0").collect();
    assert_eq!(guilty.len(), 1);
    assert_eq!(guilty[0]["name"], "src/http/ngx_http_upstream.c");
    assert_eq!(guilty[0]["overridden"], serde_json::json!(["-O", "-O2"]));
    assert_eq!(target["optimization"]["level"], "O0");
    assert_eq!(target["optimization"]["strength"], "recorded");
}
