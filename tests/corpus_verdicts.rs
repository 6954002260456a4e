//! What `check` says of real nginx builds: the right verdict, the guilty units and nothing else.

mod common;

use common::{corpus, json};
use serde_json::Value;
use std::path::PathBuf;

fn check(name: &str, arguments: &[&str]) -> (i32, Value) {
    let path = corpus(name);
    let mut all = vec!["check".to_owned(), "--no-config".to_owned(), path.display().to_string()];
    all.extend(arguments.iter().map(|a| (*a).to_owned()));
    let (status, report) = json(all);
    (status, report["targets"][0].clone())
}

fn policy(text: &str) -> tempfile::TempPath {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    file.into_temp_path()
}

fn findings<'a>(target: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = target["findings"].as_array().expect("findings");
    all.iter().filter(|f| f["rule"] == rule && f["status"] != "passed").collect()
}

fn errors(target: &Value) -> Vec<&Value> {
    let all = target["findings"].as_array().expect("findings");
    all.iter()
        .filter(|f| f["severity"] == "error" && (f["status"] == "violation" || f["status"] == "undetermined"))
        .collect()
}

const MINIMUM_O2: &str =
    "schema = 1\nname = \"o2\"\nextends = \"builtin:release\"\n[optimization]\nminimum = \"O2\"\n";

#[test]
#[ignore = "needs the corpus"]
fn every_build_gets_its_verdict() {
    let o2 = policy(MINIMUM_O2);
    let o2 = o2.to_str().expect("UTF-8");
    // build, exit status under builtin:release, exit status where -O2 is asked for
    for (name, release, strict) in [
        ("default", 0, 1),
        ("O2", 0, 0),
        ("Os", 0, 1),
        ("O0", 1, 1),
        ("O2O0", 1, 1),
        ("envcflags", 1, 1),
        ("mixed", 1, 1),
        ("nodebug", 1, 1),
        ("clangO0", 1, 1),
        ("clangO2", 0, 0),
        ("O2-stripped", 0, 0),
        ("O0-stripped", 1, 1),
        ("O2O0-stripped", 1, 1),
        ("mixed-stripped", 1, 1),
        ("nodebug-stripped", 1, 1),
        ("clangO0-stripped", 1, 1),
        ("debian-nginx/usr/sbin/nginx", 0, 0),
        ("split/O2", 0, 0),
    ] {
        let (status, target) = check(name, &[]);
        assert_eq!(status, release, "{name}: {:#}", target["findings"]);
        let (status, target) = check(name, &["--policy", o2]);
        assert_eq!(status, strict, "{name} at O2: {:#}", target["findings"]);
    }
}

#[test]
#[ignore = "needs the corpus"]
fn exactly_the_guilty_unit_is_named() {
    let (_, target) = check("mixed", &[]);
    let errors = errors(&target);
    assert_eq!(errors.len(), 1, "one fact makes one finding: {errors:#?}");
    assert_eq!(errors[0]["rule"], "unoptimized-code");
    assert_eq!(errors[0]["strength"], "recorded");
    assert_eq!(errors[0]["units_total"], 1);
    assert_eq!(errors[0]["units"][0]["name"], "src/http/ngx_http_upstream.c");
    assert_eq!(errors[0]["policy"]["path"], "builtin:release");
}

#[test]
#[ignore = "needs the corpus"]
fn an_object_without_debug_information_is_located_and_never_passed() {
    for name in ["nodebug", "nodebug-stripped", "mixed-stripped"] {
        let (status, target) = check(name, &[]);
        assert_eq!(status, 1, "{name}");
        let found = findings(&target, "unoptimized-code");
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert_eq!(found[0]["strength"], "inferred");
        let range = &found[0]["ranges"][0];
        let (start, end) = (range["start"].as_u64().expect("start"), range["end"].as_u64().expect("end"));
        // Where the linker put ngx_http_upstream.o in the twin with debug information.
        let twin = common::output_of("nm", &["-n".as_ref(), corpus("nodebug").as_os_str()]);
        let address = |symbol: &str| {
            let line = twin.lines().find(|l| l.ends_with(&format!(" {symbol}"))).expect("the symbol");
            u64::from_str_radix(line.split(' ').next().expect("an address"), 16).expect("hexadecimal")
        };
        assert!(start <= address("ngx_http_upstream_create"), "{name}: {start:#x}");
        assert!(end > address("ngx_http_upstream_hide_headers_hash"), "{name}: {end:#x}");
        assert!(end - start < 60_000, "{name}: {start:#x}..{end:#x}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn the_remedy_names_the_argument_that_did_it() {
    let (_, target) = check("O2O0", &[]);
    let finding = findings(&target, "unoptimized-code")[0].clone();
    assert_eq!(finding["units_total"], 158);
    assert!(finding["remedy"].as_str().expect("a remedy").contains("--with-cc-opt"), "{finding:#}");
    let (_, target) = check("envcflags", &[]);
    let finding = findings(&target, "unoptimized-code")[0].clone();
    assert!(finding["remedy"].as_str().expect("a remedy").contains("CFLAGS"), "{finding:#}");
}

#[test]
#[ignore = "needs the corpus"]
fn a_policy_made_from_the_good_build_catches_its_regressions() {
    let good = corpus("O2");
    let run = common::run(["policy".as_ref(), "init".as_ref(), "--from".as_ref(), good.as_os_str()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let made = policy(&run.stdout);
    let made = made.to_str().expect("UTF-8");
    let (status, target) = check("O2", &["--policy", made]);
    assert_eq!(status, 0, "{:#}", target["findings"]);
    let (status, target) = check("O2O0", &["--policy", made]);
    assert_eq!(status, 1);
    assert!(!findings(&target, "unoptimized-code").is_empty());
    let (status, target) = check("O2nogz", &["--policy", made]);
    assert_eq!(status, 1);
    let lost = findings(&target, "missing-module");
    assert!(
        lost.iter().any(|f| f["message"].as_str().is_some_and(|m| m.contains("gzip_static"))),
        "{lost:#?}"
    );
}

fn waiver(expires: &str) -> tempfile::TempPath {
    policy(&format!(
        "{MINIMUM_O2}\n[[waiver]]\nrule = \"unoptimized-code\"\nunit = \"src/http/ngx_http_up*.c\"\n\
         reason = \"miscompiled at -O2\"\nowner = \"edge team\"\nexpires = {expires}\n"
    ))
}

#[test]
#[ignore = "needs the corpus"]
fn a_waiver_covers_its_unit_until_the_day_after_it_expires() {
    let waiver = waiver("2027-03-31");
    let waiver = waiver.to_str().expect("UTF-8");
    let (status, target) = check("mixed", &["--policy", waiver, "--today", "2027-01-01"]);
    assert_eq!(status, 0, "{:#}", target["findings"]);
    let found = findings(&target, "unoptimized-code");
    assert_eq!(found[0]["status"], "waived");
    assert_eq!(found[0]["waiver"]["owner"], "edge team");
    assert!(findings(&target, "expired-waiver").is_empty());

    let (status, target) = check("mixed", &["--policy", waiver, "--today", "2027-03-20"]);
    assert_eq!(status, 0);
    assert_eq!(findings(&target, "expired-waiver").len(), 1, "a note fourteen days before");

    let (status, _) = check("mixed", &["--policy", waiver, "--today", "2027-03-31"]);
    assert_eq!(status, 0, "the last day still counts");

    let (status, target) = check("mixed", &["--policy", waiver, "--today", "2027-04-01"]);
    assert_eq!(status, 1);
    let found = findings(&target, "unoptimized-code");
    assert!(found[0]["message"].as_str().expect("a message").contains("2027-03-31"), "{found:#?}");
}

#[test]
#[ignore = "needs the corpus"]
fn fingerprints_do_not_know_where_the_file_lies() {
    let directory = tempfile::tempdir().expect("a directory");
    let copy: PathBuf = directory.path().join("mixed");
    std::fs::copy(corpus("mixed"), &copy).expect("copied");
    let (_, here) = check("mixed", &[]);
    let (_, there) = json(["check".as_ref(), "--no-config".as_ref(), copy.as_os_str()]);
    let prints = |target: &Value| -> Vec<Value> {
        target["findings"].as_array().expect("findings").iter().map(|f| f["fingerprint"].clone()).collect()
    };
    assert_eq!(prints(&here), prints(&there["targets"][0]));
    assert!(!prints(&here).is_empty());
}

#[test]
#[ignore = "needs the corpus"]
fn a_baseline_lets_only_what_is_new_fail() {
    let saved = tempfile::NamedTempFile::new().expect("a file");
    let saved = saved.path().to_str().expect("UTF-8");
    let (_, _) = {
        let path = corpus("mixed");
        let run = common::run([
            "check".as_ref(),
            "--no-config".as_ref(),
            path.as_os_str(),
            "-f".as_ref(),
            "json".as_ref(),
            "-o".as_ref(),
            saved.as_ref(),
        ]);
        assert_eq!(run.status, 1);
        (run.stdout, run.stderr)
    };
    let (status, _) = check("mixed", &["--baseline", saved]);
    assert_eq!(status, 0);
    let (status, target) = check("O0", &["--baseline", saved]);
    assert_eq!(status, 1, "{:#}", target["findings"]);
}

#[test]
#[ignore = "needs the corpus"]
fn the_documented_policies_judge_levels_as_their_comments_say() {
    // policy, then what each of O0, default (-O1), Os, O2 and mixed gives: e error, w warning, - nothing.
    for (name, expected) in [
        ("alpine-image", "ee--e"),
        ("distribution-packages", "ee--e"),
        ("edge-gateway", "eee-e"),
        ("fleet", "eww-e"),
        ("legacy-with-waivers", "eee-e"),
    ] {
        let policy = format!("{}/docs/policies/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let found: String = ["O0", "default", "Os", "O2", "mixed"]
            .iter()
            .map(|build| {
                let (_, target) = check(build, &["--policy", &policy]);
                match findings(&target, "unoptimized-code").first().map(|f| f["severity"].clone()) {
                    None => '-',
                    Some(severity) if severity == "error" => 'e',
                    Some(severity) if severity == "warning" => 'w',
                    Some(_) => 'n',
                }
            })
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn a_mistyped_waiver_covers_nothing_and_is_told() {
    let path = corpus("mixed");
    let wrong_key = policy(&format!(
        "{MINIMUM_O2}\n[[waiver]]\nrule = \"unoptimized-code\"\nunti = \"src/http/*.c\"\nreason = \"x\"\n"
    ));
    let run = common::run(["check".as_ref(), path.as_os_str(), "--policy".as_ref(), wrong_key.as_os_str()]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("unit"), "did you mean: {}", run.stderr);
    // A name that is spelt right and matches no unit leaves the finding in force and is itself reported.
    let wrong_unit = policy(&format!(
        "{MINIMUM_O2}\n[[waiver]]\nrule = \"unoptimized-code\"\nunit = \"src/htpt/*.c\"\nreason = \"x\"\n"
    ));
    let (status, report) =
        json(["check".as_ref(), path.as_os_str(), "--policy".as_ref(), wrong_unit.as_os_str()]);
    assert_eq!(status, 1);
    assert_eq!(findings(&report["targets"][0], "unoptimized-code")[0]["status"], "violation");
    let unused = report["policy_findings"].as_array().expect("findings");
    assert_eq!(unused.len(), 1, "{unused:#?}");
    assert_eq!(unused[0]["rule"], "unused-policy-entry");
}
