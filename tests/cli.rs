//! The command line: exit statuses, streams, and bad input that costs one clear line and is never a pass.

mod common;

use common::{Run, flagaudit, json, run, testdata};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

fn good() -> std::path::PathBuf {
    testdata("dwarf/gcc12-O2")
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}

/// The run failed with status 2 and one line on standard error that holds all of `words`.
fn refused(run: &Run, words: &[&str]) {
    assert_eq!(run.status, 2, "stdout {}\nstderr {}", run.stdout, run.stderr);
    let line = run.stderr.lines().find(|line| words.iter().all(|word| line.contains(word)));
    assert!(line.is_some(), "{words:?} in {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

fn check(path: &Path) -> Run {
    run(["check".as_ref(), "--no-config".as_ref(), path.as_os_str()])
}

#[test]
fn what_cannot_be_audited_is_status_2_and_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    refused(&check(&directory.path().join("nothing")), &["nothing", "No such file"]);
    refused(&check(&write(directory.path(), "empty", b"")), &["empty", "empty file"]);
    refused(&check(&write(directory.path(), "text", b"hello\n")), &["text", "not an ELF file"]);
    refused(&check(&write(directory.path(), "short", b"\x7fELF\x02\x01\x01")), &["short", "truncated"]);
    let mut class = std::fs::read(good()).expect("the fixture");
    class[4] = 9;
    refused(&check(&write(directory.path(), "class", &class)), &["class", "damaged ELF header"]);
    refused(&check(Path::new("/dev/null")), &["/dev/null", "device"]);
}

#[test]
fn the_texts_of_two_programs_are_not_mixed() {
    let directory = tempfile::tempdir().expect("a directory");
    let one = "nginx version: nginx/1.22.1\nconfigure arguments: --with-cc-opt=-O2\n";
    let two = format!("{one}nginx version: nginx/1.25.3\nconfigure arguments: --with-cc-opt=-O0\n");
    let (status, report) =
        json(["inspect".as_ref(), write(directory.path(), "two", two.as_bytes()).as_os_str()]);
    let target = &report["targets"][0];
    assert_eq!((status, &target["product"]["version"]), (0, &"1.22.1".into()));
    assert_eq!(
        (&target["status"], &target["problems"][0]["code"]),
        (&"partial".into(), &"several-texts".into())
    );
    let twice = one.repeat(2);
    let (status, report) =
        json(["inspect".as_ref(), write(directory.path(), "twice", twice.as_bytes()).as_os_str()]);
    assert_eq!((status, &report["targets"][0]["product"]["version"]), (0, &"1.22.1".into()));
}

#[test]
fn a_directory_without_elf_files_is_status_2_unless_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "readme", b"hello\n");
    refused(&check(directory.path()), &["no ELF file"]);
    let allowed = run([
        "check".as_ref(),
        "--no-config".as_ref(),
        "--allow-empty".as_ref(),
        directory.path().as_os_str(),
    ]);
    assert_eq!(allowed.status, 0, "{}", allowed.stderr);
}

#[test]
fn a_file_that_may_not_be_read_is_status_2() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("secret");
    std::fs::copy(good(), &path).expect("copied");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).expect("permissions");
    if std::fs::read(&path).is_ok() {
        // The superuser reads everything; then there is nothing to refuse.
        assert_eq!(run(["inspect".as_ref(), path.as_os_str()]).status, 0);
    } else {
        refused(&check(&path), &["secret", "ermission denied"]);
    }
}

#[test]
fn a_fifo_is_not_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    refused(&check(&path), &["fifo", "a FIFO, not a regular file"]);
    // In a directory it is passed over.
    std::fs::copy(good(), directory.path().join("good")).expect("copied");
    let (status, report) = json(["inspect".as_ref(), directory.path().as_os_str()]);
    assert_eq!(status, 0);
    assert_eq!(report["summary"]["targets"], 1);
}

#[test]
fn usage_errors_are_status_2() {
    assert_eq!(run(["inspect"]).status, 2);
    assert_eq!(run(["frobnicate"]).status, 2);
    assert_eq!(run(["inspect", "--format", "yaml", "x"]).status, 2);
    refused(&run(["explain", "unoptimised-code"]), &["unoptimized-code"]);
    assert_eq!(run(["--help"]).status, 0);
    assert_eq!(run(["--version"]).status, 0);
}

#[test]
fn a_bad_policy_is_status_2_and_shows_its_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = write(directory.path(), "p.toml", b"schema = 1\n[optimization]\nminimun = \"O2\"\n");
    let run = run(["check".as_ref(), good().as_os_str(), "--policy".as_ref(), policy.as_os_str()]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("p.toml:3"), "{}", run.stderr);
    assert!(run.stderr.contains("minimum"), "did you mean: {}", run.stderr);
    assert_eq!(run.stdout, "");
}

#[test]
fn damage_is_named_kept_apart_and_never_a_pass() {
    let directory = tempfile::tempdir().expect("a directory");
    let sound = std::fs::read(good()).expect("the fixture");
    // Cut in the middle: the section table at the end is lost.
    let cut = check(&write(directory.path(), "cut", &sound[..sound.len() / 2]));
    assert_eq!(cut.status, 2, "{}\n{}", cut.stdout, cut.stderr);
    assert!(cut.stdout.contains("INCOMPLETE"), "{}", cut.stdout);
    // A section table that points nowhere.
    let mut nowhere = sound.clone();
    nowhere[0x28..0x30].fill(0xff);
    let run = check(&write(directory.path(), "nowhere", &nowhere));
    assert_eq!(run.status, 2, "{}", run.stdout);
    assert!(run.stdout.contains("section headers"), "{}", run.stdout);
    // The program headers and the build-id are still had.
    let (_, report) = json(["inspect".as_ref(), directory.path().join("nowhere").as_os_str()]);
    assert_eq!(report["targets"][0]["status"], "partial");
    assert!(report["targets"][0]["elf"]["build_id"].is_string());
}

#[test]
fn standard_output_holds_the_document_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = write(directory.path(), "text", b"hello\n");
    let (status, report) = json(["inspect".as_ref(), good().as_os_str(), text.as_os_str()]);
    assert_eq!(status, 2);
    assert_eq!(report["summary"]["ok"], 1);
    assert_eq!(report["summary"]["failed"], 1);
    assert_eq!(report["targets"][0]["status"], "ok");
}

#[test]
fn an_elf_file_on_standard_input_is_audited() {
    let file = std::fs::File::open(good()).expect("the fixture");
    let output = flagaudit().args(["inspect", "-", "-f", "json"]).stdin(file).output().expect("runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["targets"][0]["origin"], "stdin");
    assert_eq!(report["targets"][0]["optimization"]["level"], "O2");
}

#[test]
fn the_text_of_nginx_v_is_a_target() {
    let text = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.8 7 Feb 2023\nTLS SNI support enabled\n\
                configure arguments: --with-cc-opt='-g -O2' --with-http_ssl_module\n";
    let mut child = flagaudit()
        .args(["inspect", "-", "-f", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let target = &report["targets"][0];
    assert_eq!(target["product"]["version"], "1.22.1");
    assert_eq!(target["optimization"]["level"], "O2");
    assert_eq!(target["optimization"]["strength"], "declared");
    assert_eq!(target["optimization"]["complete"], false);
    assert_eq!(target["nginx"]["configure_arguments"][0]["name"], "--with-cc-opt");
    assert_eq!(target["nginx"]["configure_arguments"][0]["value"], "-g -O2");
}

#[test]
fn a_reader_that_goes_away_changes_no_verdict() {
    for (arguments, expected) in [(vec!["inspect"], 0), (vec!["check", "--no-config"], 0)] {
        let mut child = flagaudit()
            .args(&arguments)
            .arg(good())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(expected), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn an_output_file_is_written_whole_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.json");
    let run1 = run([
        "inspect".as_ref(),
        good().as_os_str(),
        "-f".as_ref(),
        "json".as_ref(),
        "-o".as_ref(),
        report.as_os_str(),
    ]);
    assert_eq!((run1.status, run1.stdout.as_str()), (0, ""), "{}", run1.stderr);
    assert!(serde_json::from_slice::<serde_json::Value>(&std::fs::read(&report).expect("written")).is_ok());
    let missing = directory.path().join("no/such/folder/report.json");
    let run2 = run(["inspect".as_ref(), good().as_os_str(), "-o".as_ref(), missing.as_os_str()]);
    refused(&run2, &["cannot be written"]);
}

#[test]
fn equal_input_gives_equal_bytes_whatever_the_threads() {
    let folder = testdata("dwarf");
    let outputs: Vec<String> = ["1", "4"]
        .iter()
        .map(|jobs| {
            run([
                "inspect".as_ref(),
                "--units".as_ref(),
                "-f".as_ref(),
                "json".as_ref(),
                "--jobs".as_ref(),
                jobs.as_ref(),
                folder.as_os_str(),
            ])
            .stdout
        })
        .collect();
    assert!(outputs[0].len() > 1000);
    assert_eq!(outputs[0], outputs[1]);
}

#[test]
fn colours_never_reach_a_pipe() {
    let plain = run(["inspect".as_ref(), good().as_os_str()]);
    assert!(!plain.stdout.contains('\x1b'));
    let asked = run(["inspect".as_ref(), "--color".as_ref(), "always".as_ref(), good().as_os_str()]);
    assert!(asked.stdout.contains('\x1b'));
}

#[test]
fn a_name_that_is_not_utf8_is_kept_byte_for_byte() {
    use std::os::unix::ffi::OsStringExt;
    let directory = tempfile::tempdir().expect("a directory");
    let name = std::ffi::OsString::from_vec(b"bad\xff\x1b[31mname".to_vec());
    let path = directory.path().join(name);
    std::fs::copy(good(), &path).expect("copied");
    let (_, report) = json(["inspect".as_ref(), path.as_os_str()]);
    assert!(report["targets"][0]["path_bytes"].is_string());
    let text = run(["inspect".as_ref(), path.as_os_str()]);
    assert!(!text.stdout.contains('\x1b'), "{:?}", text.stdout);
}

#[test]
fn check_says_what_of_a_policy_is_in_vain() {
    let folder = tempfile::tempdir().expect("a directory");
    let policy = folder.path().join("p.toml");
    let check = |text: &str, quiet: bool| {
        std::fs::write(&policy, text).expect("written");
        let mut arguments = vec!["check".into(), testdata("dwarf/gcc12-O2").into_os_string()];
        arguments.extend(["--policy".into(), policy.clone().into_os_string()]);
        arguments.extend(quiet.then(|| "--quiet".into()));
        run(arguments)
    };
    let misspelt = "extends = \"builtin:release\"\n[nginx.configure]\nforbid = [\"--with-debg\"]\n";
    let told = check(misspelt, false);
    assert_eq!(told.status, 0);
    assert!(told.stderr.contains("did you mean `--with-debug`?"), "{}", told.stderr);
    assert_eq!(check(misspelt, true).stderr, "");
    let empty = check("", false);
    assert!(empty.stderr.contains("names no minimum level"), "{}", empty.stderr);
    assert_eq!(check("extends = \"builtin:release\"\n", false).stderr, "");
}
