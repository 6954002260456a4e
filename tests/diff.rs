//! `diff`: what changed between two builds, which way it goes, and the exit status that says so.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Run, flagaudit, json, run, testdata};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn diff(old: &Path, new: &Path, more: &[&str]) -> Run {
    let mut arguments = vec!["diff".as_ref(), old.as_os_str(), new.as_os_str()];
    arguments.extend(more.iter().map(std::ffi::OsStr::new));
    run(arguments)
}

fn document(old: &Path, new: &Path) -> Value {
    json(["diff".as_ref(), old.as_os_str(), new.as_os_str()]).1
}

fn o2() -> PathBuf {
    testdata("dwarf/gcc12-O2")
}

fn o0() -> PathBuf {
    testdata("elf/gcc12-O0")
}

/// Saves the document of `inspect`.
fn save(directory: &Path, target: &Path, name: &str, more: &[&str]) -> PathBuf {
    let path = directory.join(name);
    let output = flagaudit()
        .arg("inspect")
        .arg(target)
        .args(["-f", "json", "-o"])
        .arg(&path)
        .args(more)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

#[test]
fn a_build_without_optimization_is_a_regression_said_first() {
    let run = diff(&o2(), &o0(), &[]);
    assert_eq!(run.status, 0, "no status was asked for: {}", run.stderr);
    let mut lines = run.stdout.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("REGRESSION")), "{}", run.stdout);
    let sentence = lines.next().expect("a sentence");
    assert!(
        sentence.contains("units went from -O2 to -O0") || sentence.contains("unit went from -O2 to -O0"),
        "{sentence}"
    );
    let document = document(&o2(), &o0());
    assert_eq!(document["schema"], "flagaudit/diff/1");
    assert_eq!((&document["same"], &document["regression"]), (&Value::Bool(false), &Value::Bool(true)));
    let change = &document["changes"][0];
    assert_eq!(
        (&change["what"], &change["old"], &change["new"]),
        (&"units".into(), &"O2".into(), &"O0".into())
    );
    assert_eq!(change["direction"], "worse");
    assert_eq!(change["count"], change["of"]);
    assert_ne!(document["old"]["build_id"], document["new"]["build_id"]);
}

#[test]
fn the_other_way_is_an_improvement() {
    let run = diff(&o0(), &o2(), &["--fail-on", "regression"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("IMPROVEMENT"), "{}", run.stdout);
    assert_eq!(diff(&o0(), &o2(), &["--exit-code"]).status, 1);
    assert_eq!(diff(&o2(), &o0(), &["--fail-on", "regression"]).status, 1);
}

#[test]
fn of_equal_builds_nothing_changed() {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("copy");
    std::fs::copy(o2(), &copy).expect("copied");
    let run = diff(&o2(), &copy, &["--exit-code", "--fail-on", "regression"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
    assert!(run.stdout.starts_with("SAME"), "{}", run.stdout);
    let document = document(&o2(), &copy);
    assert_eq!((&document["same"], &document["regression"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(document["changes"], Value::Array(Vec::new()));
}

#[test]
fn saved_documents_stand_for_the_builds() {
    let directory = tempfile::tempdir().expect("a directory");
    let whole_old = save(directory.path(), &o2(), "old-units.json", &["--units", "--flags"]);
    let whole_new = save(directory.path(), &o0(), "new-units.json", &["--units", "--flags"]);
    let (short_old, short_new) =
        (save(directory.path(), &o2(), "old.json", &[]), save(directory.path(), &o0(), "new.json", &[]));
    for (old, new) in [(&whole_old, &whole_new), (&whole_old, &o0()), (&o2(), &whole_new)] {
        let document = document(old, new);
        assert_eq!(document["changes"][0]["what"], "units", "{document}");
        assert_eq!(document["not_compared"], Value::Array(Vec::new()));
    }
    // Without the list of units the counts of each level are compared, and it says so.
    for (old, new) in [(&short_old, &short_new), (&short_old, &o0()), (&o2(), &short_new)] {
        let run = diff(old, new, &["--fail-on", "regression"]);
        assert_eq!(run.status, 1, "{}", run.stdout);
        assert!(run.stdout.contains("from -O2 to -O0"), "{}", run.stdout);
        assert!(run.stdout.contains("not saved"), "{}", run.stdout);
    }
    assert_eq!(diff(&short_old, &o2(), &["--exit-code"]).status, 0);
}

#[test]
fn a_side_that_failed_is_status_2() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = directory.path().join("text");
    std::fs::write(&text, "hello\n").expect("written");
    for (old, new) in [(&text, &o2()), (&o2(), &text)] {
        let run = diff(old, new, &[]);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""));
        assert!(run.stderr.contains("not an ELF file"), "{}", run.stderr);
    }
    assert_eq!(diff(&o2(), &directory.path().join("nothing"), &[]).status, 2);
    let other = directory.path().join("other.json");
    std::fs::write(&other, "{\"schema\": \"flagaudit/diff/1\", \"targets\": []}").expect("written");
    let run = diff(&other, &o2(), &[]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("no document of inspect or check"), "{}", run.stderr);
    std::fs::write(&other, "{\"schema\": 5").expect("written");
    assert_eq!(diff(&other, &o2(), &[]).status, 2);
}

#[test]
fn texts_of_nginx_v_are_compared_argument_by_argument() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = |name: &str, arguments: &str| {
        let path = directory.path().join(name);
        let text = format!("nginx version: nginx/1.22.1\nconfigure arguments: {arguments}\n");
        std::fs::write(&path, text).expect("written");
        path
    };
    let old =
        text("old", "--with-cc-opt='-g -O2 -ffile-prefix-map=/build/a=.' --with-http_gzip_static_module");
    let new = text("new", "--with-cc-opt='-g -O2 -O0 -ffile-prefix-map=/build/b=.' --with-threads");
    let document = document(&old, &new);
    let find = |what: &str| {
        let list = document["changes"].as_array().expect("a list");
        list.iter()
            .find(|change| change["what"] == what)
            .unwrap_or_else(|| panic!("{what} in {document}"))
            .clone()
    };
    let cause = find("configure:--with-cc-opt");
    assert_eq!((&cause["old"], &cause["new"]), (&"-g -O2".into(), &"-g -O2 -O0".into()));
    assert_eq!(find("optimization.level")["direction"], "worse");
    assert_eq!(find("nginx.module:ngx_http_gzip_static_module")["direction"], "worse");
    assert_eq!(find("configure:--with-threads")["old"], Value::Null);
    let run = diff(&old, &new, &[]);
    assert!(run.stdout.contains("cause   --with-cc-opt: '-g -O2' → '-g -O2 -O0'"), "{}", run.stdout);
    assert!(run.stdout.contains("ignored build paths"), "{}", run.stdout);
    // Only the directory of the build differs: nothing changed.
    let again =
        text("again", "--with-cc-opt='-g -O2 -ffile-prefix-map=/build/c=.' --with-http_gzip_static_module");
    let run = diff(&old, &again, &["--exit-code"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
}

#[test]
fn the_document_validates() {
    let schema = flagaudit::report::json::schemas().into_iter().find(|(name, _)| *name == "diff.schema.json");
    let validator = jsonschema::validator_for(&schema.expect("the schema").1).expect("a sound schema");
    let document = document(&o2(), &o0());
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn a_search_path_that_others_may_write_to_is_worse() {
    let directory = tempfile::tempdir().unwrap();
    let plain = save(directory.path(), &o2(), "plain.json", &[]);
    let with = |name: &str, path: &str| {
        let mut document: Value = serde_json::from_slice(&std::fs::read(&plain).unwrap()).unwrap();
        document["targets"][0]["hardening"]["runpath"] =
            serde_json::json!({"value": path, "strength": "structural", "sources": ["elf"]});
        let file = directory.path().join(name);
        std::fs::write(&file, document.to_string()).unwrap();
        file
    };
    let (sound, open) = (with("sound.json", "/usr/lib/x"), with("open.json", "/usr/lib/x:/tmp/lib"));
    for (old, new, direction) in [
        (&plain, &sound, "neutral"),
        (&plain, &open, "worse"),
        (&sound, &open, "worse"),
        (&open, &sound, "better"),
    ] {
        let document = document(old, new);
        let changes = document["changes"].as_array().unwrap();
        let change = changes.iter().find(|change| change["what"] == "hardening.runpath").unwrap();
        assert_eq!(change["direction"], direction, "{change}");
    }
}
