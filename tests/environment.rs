//! What surrounds a run: the environment decides nothing, pipes and full disks and signals cost what they must and no
//! more, and files may change while they are read.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Run, flagaudit, json, run, testdata};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a shell script with the program as `$F` and a folder as `$D`; `ulimit` and redirections are the shell's.
fn shell(script: &str, folder: &Path) -> Run {
    let output = Command::new("bash")
        .args(["-c", script])
        .env("F", env!("CARGO_BIN_EXE_flagaudit"))
        .env("D", folder)
        .env_remove("DEBUGINFOD_URLS")
        .output()
        .unwrap();
    output.into()
}

/// A folder with `count` programs.
fn many(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = std::fs::read(testdata("dwarf/gcc12-O2")).unwrap();
    for index in 0..count {
        std::fs::write(folder.path().join(format!("program-{index:05}")), &program).unwrap();
    }
    folder
}

fn path(text: &Path) -> &str {
    text.to_str().unwrap()
}

#[test]
fn no_variable_of_the_environment_changes_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    // A cache of debuginfod with a file that would tell more: it has the right build-id.
    let stripped = testdata("elf/gcc12-stripped");
    let id =
        json(["inspect", path(&stripped)]).1["targets"][0]["elf"]["build_id"].as_str().unwrap().to_owned();
    for cache in ["cache", "home/.cache/debuginfod_client", "xdg/debuginfod_client"] {
        let place = folder.path().join(cache).join(&id);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::copy(testdata("elf/gcc12-stripped.debug"), place.join("debuginfo")).unwrap();
    }
    let at = |name: &str| folder.path().join(name).display().to_string();
    let hostile = [
        ("HOME", at("home")),
        ("XDG_CACHE_HOME", at("xdg")),
        ("DEBUGINFOD_CACHE_PATH", at("cache")),
        ("DEBUGINFOD_URLS", "http://127.0.0.1:9/".to_owned()),
        ("PATH", at("nowhere")),
        ("TMPDIR", at("nowhere")),
        ("LANG", "tr_TR.UTF-8".to_owned()),
        ("LC_ALL", "xx_XX".to_owned()),
        ("TZ", "Pacific/Kiritimati".to_owned()),
        ("SOURCE_DATE_EPOCH", "0".to_owned()),
        ("FLAGAUDIT_POLICY", at("lenient.toml")),
        ("FLAGAUDIT_CONFIG", at("lenient.toml")),
        ("FLAGAUDIT_LIMIT", "units=0".to_owned()),
        ("RUST_LOG", "trace".to_owned()),
        ("RUST_BACKTRACE", "full".to_owned()),
        ("RAYON_NUM_THREADS", "nonsense".to_owned()),
        ("COLUMNS", "nonsense".to_owned()),
        ("GITHUB_STEP_SUMMARY", "/dev/full".to_owned()),
        ("GITHUB_ACTIONS", "true".to_owned()),
        ("CI", "true".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("NO_COLOR", "1".to_owned()),
        ("LD_LIBRARY_PATH", at("nowhere")),
    ];
    std::fs::write(folder.path().join("lenient.toml"), "schema = 1\nname = \"lenient\"\n").unwrap();
    let archive = folder.path().join("a.tar.gz");
    let packed =
        Command::new("tar").arg("-C").arg(testdata("elf")).arg("-czf").arg(&archive).arg("gcc12-O0").status();
    assert!(packed.unwrap().success());
    for target in [stripped, testdata("cases/gcc12-mixed"), testdata("dwarf/gcc12-O2"), archive] {
        for format in ["json", "github", "sarif"] {
            let plain: Run = flagaudit()
                .args(["check", "--no-config", "--today=2026-01-01", "-f", format, path(&target)])
                .env_clear()
                .output()
                .unwrap()
                .into();
            let besieged: Run = flagaudit()
                .args(["check", "--no-config", "--today=2026-01-01", "-f", format, path(&target)])
                .envs(hostile.clone())
                .output()
                .unwrap()
                .into();
            assert_eq!(
                (plain.status, plain.stdout),
                (besieged.status, besieged.stdout),
                "{}",
                target.display()
            );
        }
    }
}

#[test]
fn threads_that_the_system_does_not_give_are_not_missed() {
    let folder = many(100);
    for setting in
        ["RUST_MIN_STACK=0", "RUST_MIN_STACK=1000", "RUST_MIN_STACK=99999999999999999", "prlimit --nproc=1"]
    {
        let run = shell(&format!("{setting} $F inspect -q -f json --jobs 1024 $D"), folder.path());
        assert_eq!(run.status, 0, "{setting}: {}", run.stderr);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(report["summary"]["ok"], 100, "{setting}");
        // A target that is alone has the threads for itself.
        let alone = shell(&format!("{setting} $F inspect -q --jobs 8 $D/program-00000"), folder.path());
        assert_eq!(alone.status, 0, "{setting}: {}", alone.stderr);
    }
}

#[test]
fn the_cache_that_the_environment_names_is_read_only_where_asking_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let stripped = testdata("elf/gcc12-stripped");
    let id =
        json(["inspect", path(&stripped)]).1["targets"][0]["elf"]["build_id"].as_str().unwrap().to_owned();
    let place = folder.path().join(&id);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::copy(testdata("elf/gcc12-stripped.debug"), place.join("debuginfo")).unwrap();
    // Where its debug link does not lead to it.
    let target = folder.path().join("program");
    std::fs::copy(stripped, &target).unwrap();
    let present = |option: &[&str]| {
        let mut command = flagaudit();
        command.args(["inspect", "-f", "json", path(&target)]).args(option);
        let output = command.env("DEBUGINFOD_CACHE_PATH", folder.path()).env("PATH", "").output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["targets"][0]["debug_info"]["present"].as_bool().unwrap()
    };
    assert!(!present(&[]));
    assert!(present(&["--debuginfod"]));
}

#[test]
fn a_policy_may_come_from_a_pipe_and_special_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let target = testdata("elf/gcc12-O0");
    let target = path(&target);
    let piped = shell(
        &format!("$F check -p <(printf 'schema = 1\\nextends = \"builtin:release\"\\n') {target}"),
        folder.path(),
    );
    assert_eq!(piped.status, 1, "{}", piped.stderr);
    let piped = shell(&format!("printf 'schema = 1\\n' | $F check -p /dev/stdin {target}"), folder.path());
    assert_eq!(piped.status, 0, "{}", piped.stderr);
    for (policy, wanted) in
        [("/dev/null", "it is a device"), ("/dev/zero", "it is a device"), ("/tmp", "it is a directory")]
    {
        let refused = run(["check", "-p", policy, target]);
        assert!(refused.status == 2 && refused.stderr.contains(wanted), "{policy}: {}", refused.stderr);
    }
    let baseline = run(["check", "--baseline", "/dev/zero", target]);
    assert!(baseline.status == 2 && baseline.stderr.contains("it is a device"), "{}", baseline.stderr);
}

#[test]
fn special_files_in_the_way_are_never_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["fifo", ".debug/gcc12-stripped.debug", "conf.d/a.conf"] {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(at(name)).status().unwrap().success());
    }
    std::fs::copy(testdata("elf/gcc12-stripped"), at("gcc12-stripped")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("gcc12-stripped.debug")).unwrap();
    std::fs::write(at("nginx.conf"), "events {}\nhttp { include conf.d/*.conf; include /dev/zero; }\n")
        .unwrap();
    std::fs::write(at("nginx-V"), "nginx version: nginx/1.27.4\nconfigure arguments: --with-debug\n")
        .unwrap();
    let begun = Instant::now();
    let (_, walked) = json(["inspect", path(folder.path())]);
    assert_eq!(walked["summary"]["targets"], 1, "{}", walked["summary"]);
    assert_eq!(walked["targets"][0]["debug_info"]["present"], false);
    let conf = at("nginx.conf");
    let (_, with) = json(["inspect", "--nginx-conf", path(&conf), path(&at("nginx-V"))]);
    let unseen = with["targets"][0]["nginx"]["config"]["not_seen"].as_array().unwrap().clone();
    assert!(unseen.iter().any(|one| one.to_string().contains("/dev/zero")), "{unseen:?}");
    for special in ["--debug-file", "--nginx-conf"] {
        let refused = run(["inspect", special, path(&at("fifo")), path(&at("gcc12-stripped"))]);
        assert_eq!(refused.status, 2, "{special}: {}", refused.stderr);
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "something waited");
}

/// Sends a signal to a run once it has begun to audit. Gives its status and what it said.
fn interrupted(mut child: std::process::Child, signal: &str) -> (std::process::ExitStatus, String) {
    let stat = format!("/proc/{}/status", child.id());
    let begun = Instant::now();
    // Bits 1 and 14 of the mask are SIGINT and SIGTERM (proc(5)).
    let caught = |line: &str| {
        let mask = line.strip_prefix("SigCgt:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & 0x4002 == 0x4002)
    };
    while !std::fs::read_to_string(&stat).unwrap_or_default().lines().any(caught) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // It may have ended meanwhile.
    let _ = Command::new("kill").args(["-s", signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap(), stderr)
}

#[test]
fn a_signal_ends_a_walk_with_what_is_complete() {
    let folder = many(1500);
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("report");
    // A fast machine may be through before the signal comes.
    for _ in 0..10 {
        let child = flagaudit()
            .args(["inspect", "--jobs", "1", "-f", "json", "-o", path(&out), path(folder.path())])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (status, stderr) = interrupted(child, "INT");
        if status.success() {
            continue;
        }
        assert_eq!((status.code(), status.signal()), (Some(130), None), "{stderr}");
        assert!(
            stderr.contains("interrupted: ") && stderr.contains(" of 1500 targets were not audited"),
            "{stderr}"
        );
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
        let targets = report["targets"].as_array().unwrap();
        assert_eq!(targets.len(), 1500);
        let (complete, left_out): (Vec<&Value>, Vec<&Value>) =
            targets.iter().partition(|one| one["status"] == "ok");
        assert!(left_out.iter().all(|one| one["problems"][0]["code"] == "interrupted"));
        assert!(complete.iter().all(|one| one["optimization"]["level"] == "O2"));
        assert!(!left_out.is_empty() && report["summary"]["failed"] == left_out.len());
        return;
    }
    panic!("it was never interrupted");
}

/// A run whose list of targets is written by the test.
fn piped(arguments: &[&str]) -> Child {
    let mut command = flagaudit();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_signal_ends_an_endless_list() {
    let folder = many(1);
    let program = folder.path().join("program-00000").display().to_string();
    for command in ["inspect", "check"] {
        let config = if command == "check" { &["--no-config"][..] } else { &[] };
        let mut child = piped(&[&[command, "--jobs", "2", "--files-from", "-"], config].concat());
        let mut list = child.stdin.take().unwrap();
        let line = format!("{program}\n");
        let writer = std::thread::spawn(move || while list.write_all(line.as_bytes()).is_ok() {});
        let mut stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        let (status, stderr) = interrupted(child, "TERM");
        writer.join().unwrap();
        let text = reader.join().unwrap().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(130), None), "{stderr}");
        assert_eq!(
            text.lines().last(),
            Some("INCOMPLETE  interrupted: the rest of the list was not audited")
        );
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_list() {
    let folder = many(1);
    for jobs in ["1", "2"] {
        let mut child = piped(&["inspect", "--jobs", jobs, "-f", "ndjson", "--files-from", "-"]);
        let mut list = child.stdin.take().unwrap();
        writeln!(list, "{}", folder.path().join("program-00000").display()).unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        // The list is still open, and nothing more is written to it.
        let begun = Instant::now();
        let (status, stderr) = interrupted(child, "INT");
        assert_eq!((status.code(), status.signal()), (Some(130), None), "{stderr}");
        assert!(begun.elapsed() < Duration::from_secs(30), "it waited for the list");
        assert!(first.contains("\"status\":\"ok\""), "{first}");
        let last: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&last["type"], &last["summary"]["ok"]), (&"summary".into(), &1.into()));
        drop(list);
    }
}

#[test]
fn a_reader_that_goes_away_changes_no_verdict() {
    let folder = many(100);
    for (command, wanted) in
        [("inspect --units -v", 0), ("check --no-config", 0), ("check --no-config --fail-on note", 1)]
    {
        let script =
            format!("set -o pipefail; $F {command} $D $D | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}");
        let run = shell(&script, folder.path());
        let whole = shell(&format!("$F {command} $D $D >/dev/null"), folder.path());
        assert_eq!((run.status, run.stderr.as_str()), (whole.status, ""), "{command}");
        assert!(whole.status == wanted || command.contains("note"), "{command}: {}", whole.status);
    }
    // Standard error may be closed, too.
    let run = shell("$F inspect $D/nothing $D/program-00000 2>&- >/dev/null", folder.path());
    assert_eq!(run.status, 2);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_half_report() {
    let folder = many(1);
    let program = "$D/program-00000";
    let commands = [
        "inspect $D",
        "inspect -f json $D",
        "inspect --color always $D",
        "inspect -f ndjson $D",
        "check --no-config $D",
        &format!("diff {program} {program}"),
        "--help",
        "-h",
        "help check",
        "policy init --help",
        "--version",
        "policy schema",
        "policy show",
        "policy validate builtin:release",
        &format!("policy init --from {program}"),
        "explain",
        "explain missing-pie",
        "completions bash",
        "man",
        "man check",
    ];
    for command in commands {
        let full = shell(&format!("$F {command} > /dev/full"), folder.path());
        assert_eq!(full.status, 2, "{command}: {}", full.stderr);
        let said = "flagaudit: standard output cannot be written: No space left on device (os error 28)\n";
        assert_eq!(full.stderr, said, "{command}");
        // A reader that has gone away wants no more, and that is no error.
        let script = format!("{{ sleep 0.05; $F {command}; }} | :; exit ${{PIPESTATUS[0]}}");
        let closed = shell(&script, folder.path());
        assert_eq!((closed.status, closed.stderr.as_str()), (0, ""), "{command}");
    }
    // A report larger than files may be: the old one stays, and nothing is left lying about.
    std::fs::write(folder.path().join("report"), "old").unwrap();
    let limited = shell("ulimit -f 1; $F inspect -f html -o $D/report $D/program-00000", folder.path());
    assert_eq!(limited.status, 2, "{}", limited.stderr);
    assert_eq!(std::fs::read_to_string(folder.path().join("report")).unwrap(), "old");
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    // No room for the programs of a package: each is named, and so is the one that has room.
    let packed = shell(
        "cd $D && tar -czf all.tar.gz program-00000 && ulimit -f 1; $F inspect $D/all.tar.gz $D/program-00000",
        folder.path(),
    );
    assert_eq!(packed.status, 2, "{}", packed.stderr);
    assert!(packed.stderr.contains("all.tar.gz!/program-00000: File too large"), "{}", packed.stderr);
    assert!(packed.stdout.contains("2 targets: 1 read in full"), "{}", packed.stdout);
}

#[test]
fn few_open_files_are_enough_for_many_targets() {
    let folder = many(300);
    let pools = tempfile::tempdir().unwrap();
    let packed = shell(
        "cd $D && tar -czf all.tar.gz program-* && for i in $(seq 99); do tar -czf $i.tar.gz program-0000? && tar -cf $i.tar program-00000; done",
        folder.path(),
    );
    assert_eq!(packed.status, 0, "{}", packed.stderr);
    for (targets, count) in [
        ("$D", 300),
        ("$D/all.tar.gz", 300),
        ("$D/??.tar.gz", 900),
        ("$D/??.tar", 90),
        ("$D/*[0-9].tar*", 1089),
    ] {
        let run = shell(&format!("ulimit -n 60; $F inspect -q -f json {targets}"), folder.path());
        assert_eq!(run.status, 0, "{targets}: {}", run.stderr);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(report["summary"]["ok"], count, "{targets}: {}", report["summary"]);
    }
    drop(pools);
}

#[test]
fn a_read_error_in_the_middle_is_reported() {
    // Memory that is not there cannot be read, whatever size the file claims.
    let mem = run(["inspect", "/proc/self/mem"]);
    assert_eq!(mem.status, 2, "{}", mem.stdout);
    let missing = testdata("elf/gcc12-O2-missing");
    assert_eq!(run(["inspect", path(&missing)]).status, 2);
}

#[test]
fn files_that_change_while_they_are_read_cost_themselves_only() {
    let folder = tempfile::tempdir().unwrap();
    let sound = std::fs::read(testdata("cases/gcc12-mixed")).unwrap();
    let changing: PathBuf = folder.path().join("changing");
    let steady = testdata("dwarf/gcc12-O2");
    std::fs::write(&changing, &sound).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (changing, sound, stop) = (changing.clone(), sound.clone(), stop.clone());
        move || {
            let mut turn = 0usize;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                turn += 1;
                match turn % 4 {
                    0 => {
                        // Cut, as a build or an upgrade in place does.
                        File::options()
                            .write(true)
                            .open(&changing)
                            .unwrap()
                            .set_len((turn * 977 % sound.len()) as u64)
                            .unwrap();
                    }
                    1 => std::fs::write(&changing, &sound).unwrap(),
                    2 => {
                        // Replaced.
                        let other = changing.with_extension("new");
                        std::fs::write(&other, &sound[..turn * 577 % sound.len()]).unwrap();
                        std::fs::rename(&other, &changing).unwrap();
                    }
                    _ => {
                        // Growing.
                        let mut file = File::options().append(true).open(&changing).unwrap();
                        file.write_all(&sound[..4096]).unwrap();
                    }
                }
            }
        }
    });
    let begun = Instant::now();
    for _ in 0..150 {
        let (status, report) = json(["inspect", "--units", "--jobs=2", path(&changing), path(&steady)]);
        assert!(status == 0 || status == 2, "{status}");
        let targets = report["targets"].as_array().unwrap();
        assert_eq!(targets[1]["optimization"]["level"], "O2");
        assert_eq!(targets[1]["status"], "ok");
        // Whatever was seen of it, its unoptimized unit never becomes an optimized whole.
        let changed = &targets[0];
        let level = changed["optimization"]["level"].as_str().unwrap();
        let silent = changed["status"] == "ok" && changed["optimization"]["complete"] == true;
        assert!(level == "O0" || level == "unknown" || !silent, "{level}: {}", changed["problems"]);
    }
    assert!(begun.elapsed() < Duration::from_secs(120));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
}

#[test]
fn an_unreadable_file_in_a_walk_is_named() {
    let folder = many(2);
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let (status, report) = json(["inspect", path(folder.path())]);
    // Who may read everything is not stopped by permissions.
    let root = std::fs::read_dir(&locked).is_ok();
    assert_eq!(
        (status, report["summary"]["unreadable"].as_u64().unwrap()),
        if root { (0, 0) } else { (2, 1) }
    );
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o755)).unwrap();
}
