//! Reports where others read them: faults that users met in how neighbouring tools deliver, each with the right answer.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Run, flagaudit, run, testdata};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn check(arguments: &[&str], targets: &[&Path]) -> Run {
    let mut all = vec!["check".as_ref(), "--no-config".as_ref()];
    all.extend(arguments.iter().map(std::ffi::OsStr::new));
    all.extend(targets.iter().map(|target| target.as_os_str()));
    run(all)
}

fn bad() -> PathBuf {
    testdata("guide/bad")
}

fn sarif(arguments: &[&str], targets: &[&Path]) -> Value {
    let mut all = vec!["--format", "sarif"];
    all.extend(arguments);
    serde_json::from_str(&check(&all, targets).stdout).unwrap()
}

#[test]
fn every_sarif_result_has_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("p.toml");
    // A finding about a whole binary, one about units, and one about the policy itself.
    let text = "extends = \"builtin:hardened\"\n[build]\nallow = [\"00112233\"]\n[[waiver]]\nrule = \"missing-lto\"\n\
                unit = \"nothing.c\"\nreason = \"x\"\n";
    std::fs::write(&policy, text).unwrap();
    let report = sarif(&["-p", policy.to_str().unwrap()], &[&bad()]);
    let results = report["runs"][0]["results"].as_array().unwrap();
    let rules: HashSet<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    for rule in ["unapproved-build", "unoptimized-code", "unused-policy-entry"] {
        assert!(rules.contains(rule), "{rule} in {rules:?}");
    }
    for result in results {
        let locations = result["locations"].as_array().unwrap();
        assert!(!locations.is_empty(), "{result}");
        for location in locations {
            let place = &location["physicalLocation"];
            assert!(place["artifactLocation"]["uri"].as_str().is_some_and(|uri| !uri.is_empty()), "{result}");
            assert!(place["region"]["startLine"].as_u64().is_some_and(|line| line >= 1), "{result}");
        }
    }
}

#[test]
fn sarif_is_one_run_of_relative_addresses_whatever_the_targets_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let mut targets = vec![bad()];
    for name in ["container:app", "a b#c?.so", "100%.o", "d\\e"] {
        let path = folder.path().join(name);
        std::fs::copy(bad(), &path).unwrap();
        targets.push(path);
    }
    let targets: Vec<&Path> = targets.iter().map(PathBuf::as_path).collect();
    let report = sarif(&[], &targets);
    assert_eq!(report["runs"].as_array().unwrap().len(), 1);
    let text = report.to_string();
    let mut seen = HashSet::new();
    for uri in text.split("\"uri\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        seen.insert(uri.to_owned());
        assert!(
            !uri.starts_with('/') && !uri.contains("://") && !uri.contains(['\\', ' ', '#', '?']),
            "{uri}"
        );
        // A colon in the first part would make it a scheme.
        assert!(!uri.split('/').next().unwrap().contains(':'), "{uri}");
    }
    assert!(seen.len() >= targets.len(), "{seen:?}");
}

/// A program whose unit has a name of nasty bytes.
fn nasty(folder: &Path, other: &[u8]) -> PathBuf {
    let mut bytes = std::fs::read(bad()).unwrap();
    let name = &b"src/lookup/table.c\0"[..];
    let mut hits = 0;
    for at in 0..bytes.len() - name.len() {
        if &bytes[at..at + name.len()] == name {
            bytes[at..at + other.len()].copy_from_slice(other);
            hits += 1;
        }
    }
    assert!(hits > 0);
    let path = folder.join("nasty");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn names_of_any_bytes_are_well_formed_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let target = nasty(folder.path(), b"a\x1b[1m]]>\xff\x01&<\"'\x7fz\0");
    for format in ["text", "json", "ndjson", "sarif", "junit", "github", "markdown", "prometheus", "html"] {
        let run = check(&["--format", format, "--color", "never"], &[&target]);
        assert_eq!(run.status, 1, "{format}: {}", run.stderr);
        let bad = run.stdout.chars().find(|&c| (c < ' ' && !"\t\n\r".contains(c)) || c == '\x7f');
        assert_eq!(bad, None, "{format}");
        for reference in ["&#27;", "&#x1b;", "&#1;", "&#x1;", "&#0;"] {
            assert!(!run.stdout.contains(reference), "{format}: {reference}");
        }
        assert!(format != "junit" || !run.stdout.contains("]]>"), "{}", run.stdout);
    }
    // The name itself is not lost: it is shown with its odd characters named.
    let junit = check(&["--format", "junit"], &[&target]).stdout;
    assert!(junit.contains("]]&gt;") && junit.contains("\\u{1b}"), "{junit}");
}

/// Runners look for these anywhere in what a program prints, whatever format that is.
#[test]
fn a_name_from_a_binary_is_no_command_for_a_ci_system_in_any_format() {
    let folder = tempfile::tempdir().unwrap();
    let command = regex::Regex::new(r"##[A-Za-z]*\[").unwrap();
    for name in [&b"##vso[task.x a=b]\0"[..], b"###[error]x\0", b"x ##teamcity[m]\0"] {
        let target = nasty(folder.path(), name);
        for format in ["text", "json", "ndjson", "sarif", "junit", "github", "markdown", "prometheus", "html"]
        {
            let checked = check(&["--format", format, "--color", "never"], &[&target]);
            let listed = run(["inspect", "--units", "--format", format, target.to_str().unwrap()]);
            for text in [checked.stdout, checked.stderr, listed.stdout] {
                assert!(!command.is_match(&text), "{format}: {text}");
            }
        }
    }
}

#[test]
fn standard_output_is_the_document_whatever_happens_beside() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "hello").unwrap();
    let misspelt = folder.path().join("p.toml");
    std::fs::write(
        &misspelt,
        "extends = \"builtin:release\"\n[nginx.configure]\nforbid = [\"--with-debg\"]\n",
    )
    .unwrap();
    for format in ["json", "ndjson", "sarif"] {
        let output = flagaudit()
            .args(["check", "-v", "--format", format, "-p"])
            .args([&misspelt, &bad(), &text, &folder.path().join("missing")])
            .env("RUST_LOG", "trace")
            .env("CLICOLOR_FORCE", "1")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        for word in ["--with-debug", "notes.txt", "missing"] {
            assert!(stderr.contains(word), "{word}: {stderr}");
        }
        let documents: Vec<Value> =
            serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(Result::unwrap).collect();
        assert_eq!(documents.len(), if format == "ndjson" { 4 } else { 1 }, "{format}");
    }
}

#[test]
fn errors_and_findings_have_statuses_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_eq!(check(&[], &[&testdata("guide/good")]).status, 0);
    assert_eq!(check(&[], &[&bad()]).status, 1);
    for (arguments, target) in [
        (&[][..], folder.path().join("missing")),
        (&["--format", "yaml"], bad()),
        (&["--output", "/nowhere/report"], bad()),
        (&["--output", "/dev/full"], bad()),
        (&["--policy", "/nowhere/policy.toml"], bad()),
        (&["--today", "tomorrow"], bad()),
        (&["--baseline", "/nowhere/old.json"], bad()),
        (&[], empty.clone()),
    ] {
        let run = check(arguments, &[&target]);
        assert_eq!(run.status, 2, "{arguments:?} {}: {}", target.display(), run.stderr);
        assert!(!run.stderr.is_empty());
    }
    // A finding and an unreadable file: the worse status, and the finding all the same.
    let both = check(&[], &[&bad(), &folder.path().join("missing")]);
    assert_eq!(both.status, 2);
    assert!(both.stdout.contains("error[unoptimized-code]"), "{}", both.stdout);
    // Nothing to audit can be allowed, and then every report says so.
    for format in ["text", "json", "github", "markdown", "html", "sarif", "junit"] {
        let run = check(&["--allow-empty", "--format", format], &[&empty]);
        assert_eq!(run.status, 0, "{format}");
        assert!(!run.stdout.contains("INCOMPLETE"), "{format}: {}", run.stdout);
    }
    let report: Value =
        serde_json::from_str(&check(&["--allow-empty", "--format", "json"], &[&empty]).stdout).unwrap();
    assert_eq!(report["verdict"], "pass");
    let report: Value = serde_json::from_str(&check(&["--format", "json"], &[&empty]).stdout).unwrap();
    assert_eq!(report["verdict"], "error");
}

#[test]
fn the_verdict_is_the_worst_of_its_findings() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("p.toml");
    for (severity, fail_on, status) in [
        ("note", "error", 0),
        ("note", "note", 1),
        ("warning", "error", 0),
        ("warning", "warning", 1),
        ("error", "error", 1),
    ] {
        let text = format!("extends = \"builtin:release\"\n[rules]\nunoptimized-code = \"{severity}\"\n");
        std::fs::write(&policy, text).unwrap();
        let arguments = ["-p", policy.to_str().unwrap(), "--fail-on", fail_on];
        let json = check(&[&arguments[..], &["--format", "json"]].concat(), &[&bad()]);
        assert_eq!(json.status, status, "{severity} {fail_on}");
        let report: Value = serde_json::from_str(&json.stdout).unwrap();
        let verdict = if status == 0 { "pass" } else { "fail" };
        assert_eq!(
            (&report["verdict"], &report["targets"][0]["verdict"]),
            (&verdict.into(), &verdict.into())
        );
        let finding = report["targets"][0]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["rule"] == "unoptimized-code");
        assert_eq!(finding.unwrap()["severity"], severity);
        // Every format for people agrees.
        let word = if status == 0 { "PASS" } else { "FAIL" };
        let text = check(&arguments, &[&bad()]).stdout;
        assert!(text.starts_with(word) && text.contains(&format!("{severity}[unoptimized-code]")), "{text}");
        for format in ["markdown", "github"] {
            let out = check(&[&arguments[..], &["--format", format]].concat(), &[&bad()]).stdout;
            assert!(out.contains(word), "{format}: {out}");
        }
    }
}

fn series(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().0).collect()
}

#[test]
fn textfiles_of_two_runs_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a\"b\\c\nd");
    std::fs::copy(bad(), &odd).unwrap();
    let write = |name: &str, arguments: &[&str], targets: &[&Path]| -> String {
        let path = folder.path().join(name);
        let mut all = vec!["--format", "prometheus", "--output", path.to_str().unwrap()];
        all.extend(arguments);
        let run = check(&all, targets);
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{}", run.stderr);
        std::fs::read_to_string(path).unwrap()
    };
    let first = write("one.prom", &[], &[&bad(), &bad()]);
    let second = write("two.prom", &["-p", "builtin:hardened"], &[&bad(), &odd]);
    // Written anew, not written into.
    assert_eq!(write("one.prom", &[], &[&bad()]), first, "the same file twice is one target");
    let names: Vec<String> = folder
        .path()
        .read_dir()
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 3, "no temporary file stays: {names:?}");
    assert!(second.contains("a\\\"b\\\\c"), "{second}");
    // Help and type are the same text in both, and no series is in both or twice in one.
    let heads = |text: &str| -> HashSet<String> {
        text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect()
    };
    let all: HashSet<String> = heads(&first).union(&heads(&second)).cloned().collect();
    let metrics: HashSet<&str> = all.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(all.len(), 2 * metrics.len(), "one HELP and one TYPE a metric");
    let mut seen = HashSet::new();
    for one in series(&first).into_iter().chain(series(&second)) {
        assert!(seen.insert(one.to_owned()), "{one} twice");
    }
}

#[test]
fn two_processes_of_one_program_are_two_series() {
    let mut children: Vec<std::process::Child> =
        (0..2).map(|_| Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()).collect();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let pids: Vec<String> = children.iter().map(|child| format!("pid:{}", child.id())).collect();
    let targets: Vec<&Path> = pids.iter().map(Path::new).collect();
    let run = check(&["--format", "prometheus"], &targets);
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let all = series(&run.stdout);
    let distinct: HashSet<&&str> = all.iter().collect();
    assert_eq!(all.len(), distinct.len());
    assert_eq!(
        all.iter().filter(|one| one.starts_with("flagaudit_target_audited")).count(),
        2,
        "{}",
        run.stdout
    );
}

/// What `check` prints into a pipe, or into a terminal that `script` makes.
fn printed(terminal: bool, arguments: &str, variables: &[(&str, &str)]) -> String {
    let command =
        format!("{} check --no-config {arguments} {}", env!("CARGO_BIN_EXE_flagaudit"), bad().display());
    let mut child = if terminal {
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]);
        script
    } else {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command} 2>&1")]);
        shell
    };
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "CI", "COLUMNS"] {
        child.env_remove(name);
    }
    child.env("TERM", "xterm").envs(variables.iter().copied()).stdin(Stdio::null());
    String::from_utf8(child.output().unwrap().stdout).unwrap()
}

#[test]
fn colours_go_to_terminals_only() {
    let coloured = |text: &str| text.contains('\x1b');
    let plain = printed(false, "", &[]);
    assert!(plain.contains("FAIL") && !coloured(&plain) && !plain.contains('\r'), "{plain:?}");
    assert!(!coloured(&printed(false, "", &[("CI", "1")])));
    assert!(coloured(&printed(false, "", &[("CLICOLOR_FORCE", "1")])));
    assert!(!coloured(&printed(false, "", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")])));
    assert!(!coloured(&printed(false, "--color never", &[("CLICOLOR_FORCE", "1")])));
    assert!(coloured(&printed(false, "--color always", &[("NO_COLOR", "1")])));
    for format in ["json", "sarif", "junit", "github", "markdown", "prometheus", "html", "ndjson"] {
        assert!(!coloured(&printed(false, &format!("--color always --format {format}"), &[])), "{format}");
    }
    if Command::new("script").arg("--version").output().is_ok() {
        assert!(coloured(&printed(true, "", &[])));
        assert!(!coloured(&printed(true, "", &[("NO_COLOR", "1")])));
        assert!(!coloured(&printed(true, "--color never", &[])));
        assert!(!coloured(&printed(true, "", &[("TERM", "dumb")])));
    }
}

#[test]
fn what_a_baseline_accepts_stays_in_every_report() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("base.json");
    let saved = saved.to_str().unwrap();
    let first = check(&["-f", "json", "-o", saved], &[&bad()]);
    assert_eq!(first.status, 1);
    let again = |format: &str| {
        let run = check(&["-f", format, "--baseline", saved], &[&bad()]);
        assert_eq!(run.status, 0, "{format}: {}", run.stderr);
        run.stdout
    };
    let text = again("text");
    assert!(text.contains("waived") && text.contains("not new: it is in the baseline"), "{text}");
    // A result that vanished would be an alert that is closed as mended, and opened again by the next full run.
    let report: Value = serde_json::from_str(&again("sarif")).unwrap();
    let results = report["runs"][0]["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        assert_eq!(result["suppressions"][0]["status"], "accepted", "{result}");
        assert_eq!(result["level"], "note", "{result}");
    }
    let junit = again("junit");
    assert!(junit.contains("<skipped message=") && junit.contains("failures=\"0\""), "{junit}");
    assert!(again("prometheus").contains("status=\"waived\""));
    // A report made with a baseline is one itself, and holds the same.
    let next = folder.path().join("next.json");
    let next = next.to_str().unwrap();
    assert_eq!(check(&["-f", "json", "-o", next, "--baseline", saved], &[&bad()]).status, 0);
    assert_eq!(check(&["--baseline", next], &[&bad()]).status, 0);
}

#[test]
fn a_baseline_does_not_prolong_a_waiver() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("p.toml");
    let text = "extends = \"builtin:release\"\n[[waiver]]\nrule = \"unoptimized-code\"\nunit = \"**\"\nreason = \"bug 1\"\n\
                expires = 2027-03-31\n";
    std::fs::write(&policy, text).unwrap();
    let saved = folder.path().join("base.json");
    let (policy, saved) = (policy.to_str().unwrap(), saved.to_str().unwrap());
    let on = |today: &str, more: &[&str]| {
        let mut all = vec!["-p", policy, "--today", today, "-f", "json"];
        all.extend(more);
        check(&all, &[&bad()])
    };
    assert_eq!(on("2027-03-01", &["-o", saved]).status, 0);
    assert_eq!(on("2027-03-31", &["--baseline", saved]).status, 0);
    let late = on("2027-04-01", &["--baseline", saved]);
    assert_eq!(late.status, 1, "{}", late.stdout);
}
