//! Lists of targets: read as they come, answered as results come, in order, with bounded memory.

#![allow(clippy::unwrap_used)]

mod common;

use common::{flagaudit, json, run, testdata};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// A program whose compiler says -O2, made to say -O0.
fn at_o0(program: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(program).unwrap();
    let at = memchr::memmem::find(&bytes, b"-O2").expect("the option is in the file");
    bytes[at + 2] = b'0';
    bytes
}

#[test]
fn results_come_before_the_list_ends_and_memory_does_not_grow() {
    let program = testdata("dwarf/gcc12-O2");
    let mut child = flagaudit()
        .args(["check", "--no-config", "-f", "ndjson", "--jobs", "2", "--files-from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut list = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // One line in, one line out, while the list stays open.
    writeln!(list, "{}", program.display()).unwrap();
    let first = value(&lines.next().unwrap().unwrap());
    assert_eq!((&first["type"], &first["verdict"]), (&"target".into(), &"pass".into()));
    let peak = |pid: u32| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let mut feed = |count: usize| {
        for _ in 0..count {
            writeln!(list, "{}", program.display()).unwrap();
            list.flush().unwrap();
            lines.next().unwrap().unwrap();
        }
        peak(child.id())
    };
    let before = feed(300);
    let after = feed(1500);
    assert!(after < before + 4096, "{before} KiB after 300 targets, {after} KiB after 1,800");
    drop(list);
    let last = value(&lines.next().unwrap().unwrap());
    assert_eq!((&last["type"], &last["summary"]["targets"]), (&"summary".into(), &1801.into()));
    assert!(lines.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_bad_target_never_stops_the_run_and_order_is_that_of_the_list() {
    let directory = tempfile::tempdir().unwrap();
    let good = testdata("dwarf/gcc12-O2");
    let text = directory.path().join("text");
    std::fs::write(&text, "no program\n").unwrap();
    let empty = directory.path().join("folder");
    std::fs::create_dir(&empty).unwrap();
    let odd = directory.path().join("with\nline feed");
    std::fs::copy(&good, &odd).unwrap();
    let names = [&good, &text, &directory.path().join("missing"), &empty, &good, &odd, &good];
    let mut list = Vec::new();
    for name in names {
        list.extend(std::os::unix::ffi::OsStrExt::as_bytes(name.as_os_str()));
        list.push(0);
    }
    let file = directory.path().join("list");
    std::fs::write(&file, list).unwrap();
    let mut outputs = Vec::new();
    for jobs in ["1", "2", "7"] {
        let run = run(["inspect", "-f", "ndjson", "--jobs", jobs, "--files0-from", file.to_str().unwrap()]);
        assert_eq!(run.status, 2, "{}", run.stderr);
        for said in ["text: not an ELF file", "missing: No such file", "no ELF file in this directory"] {
            assert!(run.stderr.contains(said), "{}", run.stderr);
        }
        outputs.push(run.stdout);
    }
    assert!(outputs.iter().all(|output| *output == outputs[0]), "threads change nothing");
    let seen: Vec<Value> = outputs[0].lines().map(value).collect();
    let statuses: Vec<&str> = seen.iter().filter_map(|line| line["status"].as_str()).collect();
    assert_eq!(statuses, ["ok", "failed", "failed", "ok", "ok", "ok"]);
    assert_eq!(seen.last().unwrap()["summary"]["failed"], 2);
}

#[test]
fn a_list_without_an_entry_is_not_a_pass() {
    let run1 = run(["check", "--no-config", "--files-from", "/dev/null"]);
    assert_eq!(run1.status, 2);
    assert!(run1.stderr.contains("the list of targets is empty"), "{}", run1.stderr);
    assert_eq!(run(["check", "--no-config", "--allow-empty", "--files-from", "/dev/null"]).status, 0);
    assert_eq!(run(["inspect", "--files-from", "-", "-"]).status, 2);
    assert_eq!(run(["inspect", "--files-from", "/no/such/list"]).status, 2);
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out.ndjson");
    let good = testdata("dwarf/gcc12-O2");
    let arguments = ["inspect", "-f", "ndjson", "-o", output.to_str().unwrap(), good.to_str().unwrap()];
    assert_eq!(run(arguments).status, 0);
    let text = std::fs::read_to_string(&output).unwrap();
    assert_eq!(text.lines().count(), 2);
    // A run that is ended on the way leaves the old file.
    let mut child = flagaudit()
        .args(["inspect", "-f", "ndjson", "--files-from", "-", "-o", output.to_str().unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{}", good.display()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_to_string(&output).unwrap(), text);
}

#[test]
fn a_reader_that_goes_away_changes_no_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    let good = testdata("dwarf/gcc12-O2");
    let bad = directory.path().join("bad");
    std::fs::write(&bad, at_o0(&good)).unwrap();
    let lines = format!("{}\n", good.display()).repeat(300) + &format!("{}\n", bad.display());
    std::fs::write(&list, lines).unwrap();
    for (command, expected) in [("check", 1), ("inspect", 0)] {
        let mut process = flagaudit();
        process.args([command, "-f", "ndjson", "--files-from", list.to_str().unwrap()]);
        if command == "check" {
            process.arg("--no-config");
        }
        let mut child = process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 16]).unwrap();
        drop(stdout);
        assert_eq!(child.wait().unwrap().code(), Some(expected), "{command}");
    }
}

#[test]
fn a_debug_file_beside_one_copy_is_not_lost_and_not_lent() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(place("with/.debug")).unwrap();
    std::fs::create_dir_all(place("without")).unwrap();
    for name in ["with/program", "without/program"] {
        std::fs::copy(testdata("elf/gcc12-stripped"), place(name)).unwrap();
    }
    std::fs::copy(testdata("elf/gcc12-stripped.debug"), place("with/.debug/gcc12-stripped.debug")).unwrap();
    for order in [["with/program", "without/program"], ["without/program", "with/program"]] {
        let paths = order.map(place);
        let (status, report) = json([Path::new("inspect"), &paths[0], &paths[1]]);
        assert_eq!(status, 0);
        for (index, name) in order.iter().enumerate() {
            let found = &report["targets"][index]["debug_info"]["source"];
            assert_eq!(*found, if name.starts_with("with/") { "separate" } else { "none" }, "{order:?}");
        }
    }
}

#[test]
fn copies_are_audited_once_and_reported_each() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        std::fs::copy(testdata("dwarf/gcc12-O2"), directory.path().join(name)).unwrap();
    }
    // The same build-id and size do not make a copy: only the bytes do.
    std::fs::write(directory.path().join("d"), at_o0(&testdata("dwarf/gcc12-O2"))).unwrap();
    std::fs::hard_link(directory.path().join("a"), directory.path().join("z")).unwrap();
    let mut documents = Vec::new();
    for jobs in ["1", "4"] {
        let (status, report) = json(["inspect", "--jobs", jobs, directory.path().to_str().unwrap()]);
        assert_eq!(status, 0);
        let list = report["targets"].as_array().unwrap();
        let names: Vec<&str> =
            list.iter().map(|facts| facts["path"].as_str().unwrap().rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c", "d"], "a hard link is the same file");
        let levels: Vec<&Value> = list.iter().map(|facts| &facts["optimization"]["level"]).collect();
        assert_eq!(levels, ["O2", "O2", "O2", "O0"]);
        documents.push(report);
    }
    assert_eq!(documents[0], documents[1]);
}

#[test]
fn debug_files_of_a_walk_serve_their_programs_wherever_they_lie() {
    let directory = tempfile::tempdir().unwrap();
    for (name, folder) in [("gcc12-stripped", "bin"), ("gcc12-stripped.debug", "symbols/far/away")] {
        std::fs::create_dir_all(directory.path().join(folder)).unwrap();
        std::fs::copy(testdata("elf").join(name), directory.path().join(folder).join(name)).unwrap();
    }
    let (status, report) = json(["inspect", directory.path().to_str().unwrap()]);
    assert_eq!(status, 0);
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(report["targets"][0]["debug_info"]["source"], "separate");
    // In archives, too: the two lie in packages of their own.
    let archive = |name: &str| {
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_path_with_name(testdata("elf").join(name), name).unwrap();
        let path = directory.path().join(format!("{name}.tar"));
        std::fs::write(&path, builder.into_inner().unwrap()).unwrap();
        path
    };
    let (program, debug) = (archive("gcc12-stripped"), archive("gcc12-stripped.debug"));
    let (_, report) = json(["inspect", program.to_str().unwrap(), debug.to_str().unwrap()]);
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(1), "{report}");
    let found = &report["targets"][0]["debug_info"];
    assert_eq!(found["source"], "separate");
    assert_eq!(found["path"], format!("{}!/gcc12-stripped.debug", debug.display()));
}

#[test]
fn a_link_of_a_root_file_system_is_followed_inside_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir_all(root.join("opt/bin")).unwrap();
    std::fs::copy(testdata("dwarf/gcc12-O2"), root.join("opt/bin/program")).unwrap();
    std::os::unix::fs::symlink("/opt/bin", root.join("bin")).unwrap();
    std::os::unix::fs::symlink("/opt/bin/program", root.join("current")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/env", root.join("outside")).unwrap();
    let inside =
        |name: &str| json(["inspect", "--root", root.to_str().unwrap(), root.join(name).to_str().unwrap()]);
    for name in ["current", "bin/program", "bin"] {
        let (status, report) = inside(name);
        assert_eq!((status, &report["targets"][0]["optimization"]["level"]), (0, &"O2".into()), "{name}");
    }
    let (status, report) = inside("outside");
    assert_eq!((status, &report["targets"][0]["status"]), (2, &"failed".into()), "{report}");
}

/// Standard error of a run on a terminal that takes longer than a moment.
fn on_a_terminal(options: &str, variable: &str) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("list");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let program = flagaudit().get_program().to_string_lossy().into_owned();
    let command =
        format!("{program} inspect {options} -f json --files-from '{}' > /dev/null", pipe.display());
    let child = std::process::Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env_remove("CI")
        .env("TERM", "xterm")
        .envs(variable.split_once('='))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(child) = child else { return None };
    let mut list = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    for _ in 0..3 {
        writeln!(list, "{}", testdata("dwarf/gcc12-O2").display()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(400));
    }
    drop(list);
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn progress_is_for_a_terminal_and_leaves_nothing_behind() {
    let Some(shown) = on_a_terminal("", "A=b") else { return };
    // How many are done when the line is drawn is a matter of the machine's load.
    let counted = ["\r1  ", "\r2  ", "\r3  "].iter().any(|count| shown.contains(count));
    assert!(counted && shown.contains("gcc12-O2\u{1b}[K"), "{shown:?}");
    assert!(shown.ends_with("\r\u{1b}[K"), "{shown:?}");
    assert_eq!(on_a_terminal("-q", "A=b").as_deref(), Some(""));
    assert_eq!(on_a_terminal("", "CI=true").as_deref(), Some(""));
    assert_eq!(on_a_terminal("", "TERM=dumb").as_deref(), Some(""));
    // Elsewhere there is none at all.
    let quiet = run(["inspect", testdata("dwarf").to_str().unwrap()]);
    assert!(!quiet.stderr.contains('\r'), "{}", quiet.stderr);
}

#[test]
fn archives_without_programs_are_no_programs_of_a_walk() {
    let directory = tempfile::tempdir().unwrap();
    let entry = |name: &str, bytes: &str| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{bytes}", 0, 0, 0, 100_644, bytes.len())
    };
    let put = |name: &str, bytes: String| std::fs::write(directory.path().join(name), bytes).unwrap();
    put("empty.a", "!<arch>\n".to_owned());
    put("package.deb", format!("!<arch>\n{}", entry("debian-binary", "2.0\n")));
    put("texts.a", format!("!<arch>\n{}", entry("readme/", "text")));
    std::fs::copy(testdata("elf/lib.a"), directory.path().join("lib.a")).unwrap();
    let (status, report) = json(["inspect", directory.path().to_str().unwrap()]);
    assert_eq!(status, 0, "{report}");
    assert_eq!((&report["summary"]["targets"], &report["summary"]["skipped"]), (&1.into(), &3.into()));
}
