//! The GitHub Action: what a workflow gives reaches the program as data, never as text of a script.

#![allow(clippy::unwrap_used)]

mod common;

use common::testdata;
use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the action's script does with these inputs, in `folder`.
fn action(step: &str, folder: &Path, inputs: &[(&str, &str)]) -> (Output, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_flagaudit")).parent().unwrap();
    let outputs = folder.join("github-output");
    std::fs::write(&outputs, "").unwrap();
    let output = Command::new(root().join("scripts/action.sh"))
        .arg(step)
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_OUTPUT", &outputs)
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
        .env("GITHUB_PATH", folder.join("path"))
        .envs(inputs.iter().copied())
        .output()
        .unwrap();
    let said = std::fs::read_to_string(&outputs).unwrap();
    (output, said)
}

#[test]
fn it_annotates_summarizes_writes_sarif_and_fails_last() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(testdata("guide/bad"), folder.path().join("bad one")).unwrap();
    std::fs::copy(testdata("guide/good"), folder.path().join("good")).unwrap();
    let (output, said) = action("check", folder.path(), &[("INPUT_TARGETS", "bad one\ngood")]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.starts_with("::error"), "{printed}");
    assert!(said.contains("status=1\n") && said.contains("sarif="), "{said}");
    let sarif = std::fs::read(folder.path().join("flagaudit.sarif")).unwrap();
    let sarif: serde_json::Value = serde_json::from_slice(&sarif).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "unoptimized-code");
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert_eq!(summary.matches("FAIL: flagaudit").count(), 1, "once: {summary}");
    let (output, said) = action("check", folder.path(), &[("INPUT_TARGETS", "good")]);
    assert_eq!((output.status.code(), said.contains("status=0\n")), (Some(0), true));
    // A file that is not there is no pass, and nothing stale is uploaded.
    let (output, said) =
        action("check", folder.path(), &[("INPUT_TARGETS", "good"), ("INPUT_POLICY", "missing.toml")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("status=2\n") && !said.contains("sarif="), "{said}");
}

#[test]
fn hostile_inputs_stay_data() {
    let hostile = [
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "\"; touch pwned; \"",
        "--output=pwned",
        "-opwned",
        "x\nstatus=0\nsarif=/etc/passwd",
        "a && touch pwned",
        "::set-output name=status::0",
        "*",
    ];
    for text in hostile {
        for input in [
            "INPUT_TARGETS",
            "INPUT_POLICY",
            "INPUT_FAIL_ON",
            "INPUT_BASELINE",
            "INPUT_NGINX_CONF",
            "INPUT_VERSION",
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::copy(testdata("guide/good"), folder.path().join("good")).unwrap();
            let mut inputs =
                vec![("INPUT_TARGETS", "good"), ("INPUT_INSTALL", "release"), ("ACTION_REPOSITORY", text)];
            inputs.push((input, text));
            for step in ["check", "install"] {
                let (output, said) = action(step, folder.path(), &inputs);
                let as_expected = match (step, input) {
                    // No release is fetched for it: the name of a repository does not look like that.
                    ("install", _) => output.status.code() == Some(2),
                    (_, "INPUT_VERSION") => output.status.code() == Some(0),
                    _ => output.status.code() == Some(2),
                };
                let printed = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(as_expected, "{step} {input}={text:?}: {printed}");
                assert!(!folder.path().join("pwned").exists(), "{step} {input}={text:?}");
                assert!(!said.contains("/etc/passwd"), "{said}");
                assert!(
                    said.lines().all(|line| line.starts_with("status=2")
                        || line.starts_with("status=0")
                        || line.starts_with("sarif=")),
                    "{said}"
                );
                // GitHub reads commands at the beginning of a line.
                let command = |line: &str| line.starts_with("::set-output");
                assert!(!printed.lines().any(command), "{printed}");
            }
        }
    }
}

#[test]
fn no_expression_stands_in_a_script() {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let scripts: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("run:")).collect();
    assert_eq!(scripts.len(), 2, "{scripts:?}");
    for script in scripts {
        assert!(!script.contains("${{"), "{script}");
        assert!(script.starts_with("run: '\"$GITHUB_ACTION_PATH/scripts/action.sh\" "), "{script}");
    }
    // Every input is declared, and every declared one is used.
    let (inputs, rest) = text.split_once("\nruns:").unwrap();
    let declared = inputs.split_once("\ninputs:\n").unwrap().1.split_once("\noutputs:").unwrap().0;
    for line in declared.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.trim().trim_end_matches(':');
        let used = rest.contains(&format!("inputs.{name} ")) || rest.contains(&format!("inputs.{name}"));
        assert!(used, "{name}");
    }
}
