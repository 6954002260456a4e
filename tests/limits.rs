//! Every limit is hit, named when it is hit, and can be raised.

#![allow(clippy::unwrap_used)]

mod common;

use common::{json, run, testdata};
use flagaudit::limits;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Limit, a value too small for the fixture, the fixture, the problem's code, and words of the message.
const HIT: &[(&str, &str, &str, &str, &str)] = &[
    ("section-bytes", "64", "dwarf/gcc12-O2", "damaged-section-names", "larger than the limit"),
    ("inflated-bytes", "16", "dwarf/gcc12-zlib", "too-large-debug-info", "limit 16"),
    ("sections", "4", "dwarf/gcc12-O2", "too-many-sections", "the first 4 are read"),
    ("string-bytes", "30", "dwarf/gcc12-O2", "too-long-debug-text", "is cut after 30 bytes"),
    ("units", "1", "cases/mixed-dwarf", "too-many-units", "1"),
    ("die-attributes", "8", "dwarf/gcc12-O2", "too-many-debug-attributes", "are not read"),
    ("functions", "2", "elf/gcov-static", "too-many-functions", "more than 2 functions"),
    ("code-bytes", "64", "elf/gcov-stripped", "code-limit", "the limit of 64 bytes"),
    // The tests of `image::pointers` hit this one.
    ("relocations", "1", "", "", ""),
    ("archive-members", "1", "elf/lib.a", "too-many-members", "only the first 1 members are read"),
    ("text-bytes", "10", "nginx-V", "not-elf", "texts of more than 10 bytes are not looked at"),
    ("stream-bytes", "100", "a.tar.gz", "unreadable", "more than 100"),
    ("package-bytes", "100", "a.tar.gz", "unreadable", "more than 100"),
    ("package-entries", "1", "a.tar", "unreadable", "more than 1 entries; the rest is not read"),
    ("conf-bytes", "20", "nginx.conf", "configuration-unreadable", "more than 20 bytes of configuration"),
    ("conf-files", "1", "nginx.conf", "configuration-limit", "more than 1 files are included"),
    ("conf-directives", "2", "nginx.conf", "configuration-limit", "more than 2 directives"),
    ("findings", "1", "", "", ""),
    ("document-bytes", "10", "", "", ""),
];

const NGINX_V: &str =
    "nginx version: nginx/1.27.4\nconfigure arguments: --with-cc-opt='-O2' --with-threads\n";

/// A folder with the inputs that are no fixtures.
fn workshop() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("nginx-V", NGINX_V.as_bytes());
    write("nginx.conf", b"events {}\nhttp {\n  include a.inc;\n  server { listen 80; }\n}\n");
    write("a.inc", b"gzip on;\n");
    let mut builder = tar::Builder::new(Vec::new());
    for name in ["usr/bin/a", "usr/bin/b"] {
        builder.append_path_with_name(testdata("dwarf/gcc12-O2"), name).unwrap();
    }
    let tar = builder.into_inner().unwrap();
    write("a.tar", &tar);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &tar).unwrap();
    write("a.tar.gz", &encoder.finish().unwrap());
    folder
}

/// What `inspect` says under these settings: exit status, and codes with messages.
fn problems(arguments: &[String]) -> (i32, Vec<(String, String)>) {
    let (status, report) = json(["inspect".to_owned(), "--jobs=1".to_owned()].iter().chain(arguments));
    let list = |target: &Value| target["problems"].as_array().unwrap().clone();
    let all = report["targets"].as_array().unwrap().iter().flat_map(list);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (status, all.map(|problem| (text(&problem["code"]), text(&problem["message"]))).collect())
}

#[test]
fn every_limit_is_named_when_it_is_hit_and_can_be_raised() {
    let folder = workshop();
    for (limit, value, input, code, words) in HIT.iter().filter(|row| !row.2.is_empty()) {
        let path: PathBuf = if input.contains('/') {
            testdata(input)
        } else {
            folder.path().join(input.replace("nginx.conf", "nginx-V"))
        };
        let mut arguments = vec![path.display().to_string()];
        if *input == "nginx.conf" {
            arguments.push(format!("--nginx-conf={}", folder.path().join(input).display()));
        }
        let hit = |problems: &[(String, String)]| {
            problems.iter().any(|(found, message)| found.starts_with(code) && message.contains(words))
        };
        let (_, sound) = problems(&arguments);
        assert!(!hit(&sound), "{limit}: {sound:?}");
        arguments.push(format!("--limit={limit}={value}"));
        let (_, small) = problems(&arguments);
        assert!(hit(&small), "{limit}: {small:?}");
        // The last one counts.
        arguments.push(format!("--limit={limit}=1G"));
        let (_, raised) = problems(&arguments);
        assert_eq!(raised, sound, "{limit}");
    }
}

#[test]
fn every_limit_has_its_case() {
    let cases: BTreeSet<&str> = HIT.iter().map(|row| row.0).collect();
    let names: Vec<String> = limits::TABLE.iter().map(limits::Limit::name).collect();
    assert_eq!(cases, names.iter().map(String::as_str).collect());
}

#[test]
fn findings_are_kept_to_the_limit_and_the_worst_stay() {
    let target = testdata("cases/gcc12-mixed");
    let target = target.to_str().unwrap();
    let policy = "builtin:hardened";
    let (status, all) = json(["check", "-p", policy, target]);
    let (less, kept) = json(["check", "-p", policy, "--limit", "findings=1", target]);
    let findings = |report: &Value| report["targets"][0]["findings"].as_array().unwrap().clone();
    assert!(findings(&all).len() > 1 && status == 1 && less == 1);
    assert_eq!(findings(&kept), findings(&all)[..1]);
    assert_eq!(kept["targets"][0]["problems"][0]["code"], "too-many-findings");
}

#[test]
fn documents_of_another_schema_are_refused_whatever_they_hold() {
    let folder = workshop();
    let target = testdata("dwarf/gcc12-O2");
    let saved = folder.path().join("saved.json");
    let (target, saved) = (target.to_str().unwrap(), saved.to_str().unwrap());
    for targets in ["[]", "[{}]"] {
        std::fs::write(saved, format!("{{\"schema\": \"flagaudit/inspect/2\", \"targets\": {targets}}}"))
            .unwrap();
        let refused = run(["check", "--baseline", saved, target]);
        assert_eq!(refused.status, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("\"flagaudit/inspect/2\" is no document"), "{}", refused.stderr);
    }
    std::fs::write(saved, "{\"schema\": \"flagaudit/check/1\", \"targets\": []}").unwrap();
    assert!(run(["check", "--baseline", saved, target]).status < 2);
}

#[test]
fn documents_are_read_to_the_limit() {
    let folder = workshop();
    let target = testdata("dwarf/gcc12-O2");
    let (target, saved) = (target.to_str().unwrap(), folder.path().join("saved.json"));
    let saved = saved.to_str().unwrap();
    assert_eq!(run(["inspect", "-f", "json", "-o", saved, target]).status, 0);
    for arguments in [vec!["diff", saved, target], vec!["check", "--baseline", saved, target]] {
        let sound = run(&arguments);
        assert!(sound.status < 2, "{arguments:?}: {}", sound.stderr);
        let small = run(arguments.iter().chain(&["--limit", "document-bytes=10"]));
        assert_eq!(small.status, 2, "{arguments:?}");
        assert!(small.stderr.contains("it is larger than 10 bytes"), "{}", small.stderr);
    }
    let refused = run(["inspect", "--limit", "unit=3", target]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("there is no limit \"unit\"; did you mean units?"), "{}", refused.stderr);
}
