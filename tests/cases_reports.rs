//! Faults that users met in neighbouring tools, each as a case with the right answer.

#![allow(clippy::unwrap_used)]

mod common;

use common::{json, run, testdata};
use serde_json::{Value, json as value};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `inspect` makes of the text that `nginx -V` printed.
fn text(words: &str) -> Value {
    let mut child = common::flagaudit()
        .args(["inspect", "--format", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{words}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["targets"][0].clone()
}

/// The same with a first line and these configure arguments.
fn configured(arguments: &str) -> Value {
    text(&format!("nginx version: nginx/1.22.1\nbuilt by gcc 12.2.0\nconfigure arguments: {arguments}\n"))
}

fn argument(target: &Value, name: &str) -> Value {
    let list = target["nginx"]["configure_arguments"].as_array().unwrap();
    let mut found = list.iter().filter(|argument| argument["name"] == name);
    let value = found.next().unwrap_or_else(|| panic!("{name} in {list:?}"))["value"].clone();
    assert!(found.next().is_none(), "{name} twice in {list:?}");
    value
}

fn linkage(target: &Value, name: &str) -> Option<String> {
    let list = target["nginx"]["modules"].as_array().unwrap();
    list.iter().find(|m| m["name"] == name).and_then(|m| m["linkage"].as_str().map(str::to_owned))
}

fn inspect(path: &Path) -> Value {
    json(["inspect".as_ref(), "--units".as_ref(), path.as_os_str()]).1["targets"][0].clone()
}

fn check(path: &Path, more: &[&str]) -> (i32, Value) {
    let mut arguments = vec!["check".as_ref(), "--no-config".as_ref(), path.as_os_str()];
    arguments.extend(more.iter().map(std::ffi::OsStr::new));
    let (status, report) = json(arguments);
    (status, report["targets"][0].clone())
}

fn findings<'a>(target: &'a Value, rule: &str) -> Vec<&'a Value> {
    target["findings"].as_array().unwrap().iter().filter(|f| f["rule"] == rule).collect()
}

#[test]
fn an_option_inside_a_quoted_value_is_no_argument() {
    let target = configured(
        "--with-threads --with-cc-opt='-g -O2 --param=ssp-buffer-size=4 -Wformat' --with-ld-opt='-Wl,-z,relro'",
    );
    assert_eq!(target["nginx"]["configure_arguments"].as_array().unwrap().len(), 3);
    assert_eq!(argument(&target, "--with-cc-opt"), "-g -O2 --param=ssp-buffer-size=4 -Wformat");
    assert_eq!(target["optimization"]["level"], "O2");
}

#[test]
fn quotes_are_no_part_of_a_value() {
    let (bare, quoted) = (
        configured("--with-ld-opt=-Wl,-rpath,/usr/local/lib"),
        configured("--with-ld-opt='-Wl,-rpath,/usr/local/lib'"),
    );
    assert_eq!(
        bare["nginx"]["configure_arguments"], quoted["nginx"]["configure_arguments"],
        "the same value either way"
    );
}

#[test]
fn declared_levels() {
    for (arguments, level) in [
        ("--with-cc-opt='-O0 -g -DX=1'", "O0"),
        ("--with-cc-opt='-O2 -O0'", "O0"),
        ("--with-cc-opt='-O0 -O2'", "O2"),
        ("--with-cc-opt=-Og", "Og"),
        // nginx itself adds a bare -O.
        ("--with-threads", "O1"),
    ] {
        let target = configured(arguments);
        assert_eq!(target["optimization"]["level"], level, "{arguments}");
        assert_eq!(target["optimization"]["strength"], "declared", "{arguments}");
        assert_eq!(target["optimization"]["complete"], false, "{arguments}");
    }
}

#[test]
fn a_path_ends_where_its_argument_ends() {
    let target = configured("--conf-path=/etc/nginx/nginx.conf --with-cc-opt='-DX=/tmp/a.conf -O2'");
    assert_eq!(argument(&target, "--conf-path"), "/etc/nginx/nginx.conf");
}

#[test]
fn brands_and_versions_of_old_and_new_forms() {
    for (first, name, version, base, build) in [
        ("nginx version: openresty/1.11.2.2", "openresty", "1.11.2.2", Some("1.11.2"), None),
        ("nginx version: ngx_openresty/1.4.3.6", "openresty", "1.4.3.6", Some("1.4.3"), None),
        ("Tengine version: Tengine/2.3.0 (nginx/1.15.9)", "tengine", "2.3.0", Some("1.15.9"), None),
        (
            "Tengine version: Tengine/2.3.0\nnginx version: nginx/1.15.9",
            "tengine",
            "2.3.0",
            Some("1.15.9"),
            None,
        ),
        (
            "nginx version: nginx/1.25.3 (nginx-plus-r31-p1)",
            "nginx",
            "1.25.3",
            None,
            Some("nginx-plus-r31-p1"),
        ),
        ("nginx: nginx version: nginx/1.0.0", "nginx", "1.0.0", None, None),
        ("nginx version: Angie/1.4.0", "angie", "1.4.0", None, None),
    ] {
        let target = text(&format!("{first}\nconfigure arguments: --with-threads\n"));
        let product = &target["product"];
        assert_eq!((&product["name"], &product["version"]), (&name.into(), &version.into()), "{first}");
        assert_eq!(product["base"]["version"].as_str(), base, "{first}");
        assert_eq!(product["build_text"].as_str(), build, "{first}");
    }
}

#[test]
fn two_openssl_versions_and_no_compiler() {
    for (line, built, running) in [
        ("built with OpenSSL 3.5.2 5 Aug 2025 (running with OpenSSL 3.5.0 8 Apr 2025)", "3.5.2", "3.5.0"),
        ("built with OpenSSL 3.5.2 5 Aug 2025, running with OpenSSL 3.5.0 8 Apr 2025", "3.5.2", "3.5.0"),
        (
            "built with OpenSSL 1.1.1n  15 Mar 2022 (running with OpenSSL 1.1.1d  10 Sep 2019)",
            "1.1.1n",
            "1.1.1d",
        ),
    ] {
        let target =
            text(&format!("nginx version: nginx/1.28.0\n{line}\nconfigure arguments: --with-threads\n"));
        assert_eq!(target["nginx"]["openssl"], value!({"built": built, "running": running}), "{line}");
        assert_eq!(target["nginx"]["compiler_line"], Value::Null);
        assert_eq!(target["status"], "ok");
    }
}

#[test]
fn a_path_of_modules_is_no_module_and_dynamic_is_not_static() {
    let target = text(
        "nginx version: Angie/1.4.0\nconfigure arguments: --modules-path=/usr/lib/angie/modules \
         --with-http_geoip_module=dynamic --with-stream --with-stream_ssl_module\n",
    );
    assert_eq!(linkage(&target, "ngx_http_geoip_module").as_deref(), Some("dynamic"));
    assert_eq!(linkage(&target, "ngx_stream_ssl_module").as_deref(), Some("static"));
    assert_eq!(argument(&target, "--modules-path"), "/usr/lib/angie/modules");
}

#[test]
fn a_single_function_without_optimization_is_a_suspect() {
    let target = inspect(&testdata("cases/function-O0"));
    assert_eq!(target["optimization"]["level"], "O2");
    let runs = target["functions"]["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().filter_map(|run| run["name"].as_str()).collect();
    assert_eq!(names, ["slow", "slow2"], "{runs:?}");
    assert!(
        target["optimization"]["reason"].as_str().unwrap().contains("an attribute or a pragma is suspected")
    );
    let (status, target) = check(&testdata("cases/function-O0"), &[]);
    assert_eq!(status, 0);
    let found = findings(&target, "unoptimized-code");
    assert_eq!((found.len(), &found[0]["severity"]), (1, &"warning".into()));
}

#[test]
fn a_command_line_of_another_build_is_a_conflict() {
    let target = inspect(&testdata("cases/stale-record"));
    let claims = target["conflicts"][0]["claims"].as_array().unwrap();
    let values: Vec<&str> = claims.iter().filter_map(|claim| claim["value"].as_str()).collect();
    assert!(values.contains(&"O0") && values.contains(&"O2"), "{values:?}");
    let (status, target) = check(&testdata("cases/stale-record"), &[]);
    assert_eq!(status, 1);
    assert_eq!(findings(&target, "conflicting-evidence").len(), 1);
}

#[test]
fn units_of_all_versions_in_one_file() {
    let target = inspect(&testdata("cases/mixed-dwarf"));
    assert_eq!(target["debug_info"]["dwarf_versions"], value!([2, 3, 5]));
    let units: Vec<(String, String)> = target["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| (unit["name"].as_str().unwrap().to_owned(), unit["level"].as_str().unwrap().to_owned()))
        .collect();
    let wanted =
        [("l1.c", "O0"), ("l2.c", "O2"), ("f.s", "unknown")].map(|(n, l)| (n.to_owned(), l.to_owned()));
    assert_eq!(units, wanted);
    assert_eq!(target["optimization"]["complete"], true);
}

#[test]
fn a_debug_link_without_build_id_goes_by_its_checksum() {
    let directory = tempfile::tempdir().unwrap();
    let binary = directory.path().join("no-id");
    std::fs::copy(testdata("cases/no-id"), &binary).unwrap();
    std::fs::create_dir(directory.path().join(".debug")).unwrap();
    let link = directory.path().join(".debug/no-id.debug");
    std::fs::copy(testdata("cases/no-id.debug"), &link).unwrap();
    let followed = inspect(&binary);
    assert_eq!(followed["optimization"]["level"], "O0");
    assert_eq!(followed["debug_info"]["source"], "separate");

    std::fs::copy(testdata("cases/no-id-O2.debug"), &link).unwrap();
    let replaced = inspect(&binary);
    assert_ne!(replaced["optimization"]["level"], "O2");
    assert_eq!(replaced["debug_info"]["source"], "none");
    assert_eq!(replaced["problems"][0]["code"], "debug-file-mismatch");
    assert_eq!(replaced["status"], "ok");
}

#[test]
fn forms_of_build_ids() {
    for (file, digits) in [
        ("elf/id-md5.so", Some(32)),
        ("elf/id-uuid.so", Some(32)),
        ("elf/id-0xdeadbeef.so", Some(8)),
        ("elf/id-none.so", None),
    ] {
        let id = inspect(&testdata(file))["elf"]["build_id"].clone();
        assert_eq!(id.as_str().map(str::len), digits, "{file}");
    }
}

#[test]
fn a_canary_is_no_fortification() {
    let hardening = inspect(&testdata("cases/canary"))["hardening"].clone();
    assert_eq!(hardening["canary"]["value"], true);
    assert_ne!(hardening["fortify"]["value"], "yes");
}

#[test]
fn both_halves_of_a_split_unit_are_one() {
    let target = inspect(&testdata("cases/single.o"));
    assert_eq!(target["unit_count"], 1);
    assert_eq!(target["units"][0]["name"], "t.c");
    assert_eq!(target["units"][0]["kind"], "source");
    assert_eq!(target["debug_info"]["missing"], value!([]));
}

#[test]
fn a_split_unit_found_and_missing() {
    let directory = tempfile::tempdir().unwrap();
    let object = directory.path().join("gcc12-split-t.o");
    std::fs::copy(testdata("dwarf/gcc12-split-t.o"), &object).unwrap();
    let without = inspect(&object);
    assert_eq!(without["optimization"]["level"], "unknown");
    assert_eq!(without["units"][0]["kind"], "skeleton");
    assert!(without["debug_info"]["missing"][0].as_str().unwrap().contains("gcc12-split-t.dwo"));
    std::fs::copy(testdata("dwarf/gcc12-split-t.dwo"), directory.path().join("gcc12-split-t.dwo")).unwrap();
    let with = inspect(&object);
    assert_eq!(with["optimization"]["level"], "O2");
    assert_eq!(with["units"][0]["kind"], "source");
    assert_eq!(with["debug_info"]["source"], "dwo");
}

#[test]
fn start_code_of_shared_objects_is_the_toolchains() {
    let whole = inspect(&testdata("cases/plain.so"));
    assert_eq!(whole["optimization"]["complete"], true, "{}", whole["optimization"]);
    let stripped = inspect(&testdata("cases/plain-stripped.so"));
    assert_eq!(whole["optimization"]["text"]["runtime"], stripped["optimization"]["text"]["runtime"]);
}

#[test]
fn waivers_hold_until_their_day() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.toml");
    std::fs::write(
        &policy,
        "schema = 1\n[optimization]\nminimum = \"O1\"\n[[waiver]]\nrule = \"unoptimized-code\"\nunit = \"l1.c\"\n\
         reason = \"a lookup breaks at -O2\"\nowner = \"edge\"\nexpires = 2027-03-31\n",
    )
    .unwrap();
    let policy = policy.to_str().unwrap();
    let judged = |day: &str| {
        let path = testdata("cases/gcc12-mixed");
        let (status, report) = json([
            "check".as_ref(),
            path.as_os_str(),
            "-p".as_ref(),
            policy.as_ref(),
            "--today".as_ref(),
            day.as_ref(),
        ]);
        let target = report["targets"][0].clone();
        let status_of = findings(&target, "unoptimized-code")[0]["status"].clone();
        (status, status_of)
    };
    assert_eq!(judged("2027-03-31"), (0, "waived".into()));
    assert_eq!(judged("2027-04-01"), (1, "violation".into()));
}

#[test]
fn og_does_not_meet_a_minimum_of_o2() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.toml");
    std::fs::write(&policy, "schema = 1\n[optimization]\nminimum = \"O2\"\nevidence = \"declared\"\n")
        .unwrap();
    let words = directory.path().join("nginx-V.txt");
    std::fs::write(
        &words,
        "nginx version: nginx/1.22.1\nbuilt by gcc 12.2.0\nconfigure arguments: --with-cc-opt='-g -Og'\n",
    )
    .unwrap();
    let run = run(["check".as_ref(), "-p".as_ref(), policy.as_os_str(), words.as_os_str()]);
    assert_eq!(run.status, 1, "{}", run.stdout);
    assert!(run.stdout.contains("-Og"), "{}", run.stdout);
}

#[test]
fn statuses_tell_errors_from_findings() {
    let directory = tempfile::tempdir().unwrap();
    let guilty = testdata("cases/gcc12-noO");
    assert_eq!(run(["check".as_ref(), guilty.as_os_str()]).status, 1);
    assert_eq!(run(["check", "/nonexistent/file"]).status, 2);
    assert_eq!(run(["check".as_ref(), directory.path().as_os_str()]).status, 2);
    assert_eq!(run(["check".as_ref(), "--format".as_ref(), "yaml".as_ref(), guilty.as_os_str()]).status, 2);
    let run = run(["check".as_ref(), "-o".as_ref(), "/nonexistent/out".as_ref(), guilty.as_os_str()]);
    assert_eq!(run.status, 2);
    assert!(run.stdout.is_empty());
}

/// Needs `rustc`, which builds and tests this program.
#[test]
fn rust_is_judged_by_its_code_and_never_by_words() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("hello.rs");
    std::fs::write(&source, "fn main() { for word in std::env::args() { println!(\"{word}\"); } }\n")
        .unwrap();
    let binary = directory.path().join("hello");
    let built = Command::new("rustc")
        .args(["-g", "-O", "-o"])
        .args([&binary, &source])
        .current_dir(directory.path())
        .status()
        .unwrap();
    assert!(built.success());
    let target = inspect(&binary);
    let optimization = &target["optimization"];
    assert_ne!(optimization["level"], "O0", "{optimization}");
    assert_ne!(optimization["strength"], "recorded", "{optimization}");
    assert_eq!(target["compilers"][0]["family"], "rustc");
    assert_eq!(check(&binary, &[]).0, 0);
}

#[test]
fn the_compiler_is_taken_from_its_own_line_only() {
    let of = |line: &str| {
        let target = text(&format!(
            "nginx version: nginx/1.28.0\nbuilt by {line}\nconfigure arguments: --with-threads\n"
        ));
        assert!(target["nginx"]["compiler_line"].as_str().unwrap().starts_with(line.lines().next().unwrap()));
        target["compilers"][0].clone()
    };
    let seen = of("gcc 12.2.0 (Debian 12.2.0-14)");
    assert_eq!((&seen["family"], &seen["version"]), (&"gcc".into(), &"12.2.0".into()));
    let configured = "gcc Configured with: ../src/configure --with-gcc version 9.9";
    assert_eq!(of(configured)["version"], Value::Null);
    assert_eq!(of(&format!("{configured}\ngcc version 12.2.0 (Debian 12.2.0-14)"))["version"], "12.2.0");
}
