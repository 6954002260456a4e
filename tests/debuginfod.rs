//! `--debuginfod` against Debian's own server on the loopback interface, and against servers that hang or lie.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{corpus, flagaudit};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for the server to have scanned one file.
const SCAN: Duration = Duration::from_secs(90);
/// Longest run where a server never answers: the 20 seconds of patience, and room for a busy machine.
const PATIENT: Duration = Duration::from_secs(40);

/// Ends the server whatever becomes of the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("skipped: {program} is not installed (Debian package debuginfod)");
    }
    found.is_ok()
}

/// A stripped nginx whose debug file lies where only a server can find it.
fn files() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let binary = directory.path().join("bin/nginx");
    std::fs::create_dir(directory.path().join("bin")).unwrap();
    std::fs::create_dir(directory.path().join("served")).unwrap();
    std::fs::copy(corpus("split/O2"), &binary).unwrap();
    std::fs::copy(corpus("split/O2.debug"), directory.path().join("served/O2.debug")).unwrap();
    (directory, binary)
}

/// The target, and how long it took.
fn inspect(binary: &Path, url: &str, cache: &Path, more: &[&str]) -> (Value, Duration) {
    let begun = Instant::now();
    let output = flagaudit()
        .args(["inspect", "--units", "--format", "json"])
        .args(more)
        .arg(binary)
        .env("DEBUGINFOD_URLS", url)
        .env("DEBUGINFOD_CACHE_PATH", cache)
        .output()
        .unwrap();
    let took = begun.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    (report["targets"][0].clone(), took)
}

#[test]
#[ignore = "needs the corpus"]
fn what_is_missing_is_fetched_from_a_real_server_if_allowed() {
    assert!(installed("debuginfod") && installed("debuginfod-find"), "the corpus comes with them");
    let (directory, binary) = files();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let child = Command::new("debuginfod")
        .args(["-p", &port.to_string(), "-d", ":memory:", "-t", "1", "-F"])
        .arg(directory.path().join("served"))
        .env_remove("DEBUGINFOD_URLS")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server(child);
    let deadline = Instant::now() + SCAN;
    let mut attempt = 0;
    // The client remembers what a server did not have, so that each attempt has a cache of its own.
    let (found, cache) = loop {
        attempt += 1;
        let cache = directory.path().join(format!("cache{attempt}"));
        let (target, _) = inspect(&binary, &url, &cache, &["--debuginfod"]);
        if target["debug_info"]["source"] == "separate" {
            break (target, cache);
        }
        assert!(Instant::now() < deadline, "the server did not serve the file: {}", target["problems"]);
        std::thread::sleep(Duration::from_millis(500));
    };
    assert_eq!(found["optimization"]["level"], "O2");
    assert_eq!(found["optimization"]["strength"], "recorded");
    assert!(found["unit_count"].as_u64() > Some(100), "{}", found["unit_count"]);
    assert_eq!(found["status"], "ok");

    // Not asked: the network is left alone although the server is there.
    let unused = directory.path().join("unused");
    let (target, _) = inspect(&binary, &url, &unused, &[]);
    assert_eq!(target["debug_info"]["source"], "none");
    assert!(!unused.exists(), "nothing was fetched");

    // What was fetched once is read from the client's cache, without a server.
    drop(server);
    let (target, _) = inspect(&binary, &url, &cache, &["--debuginfod"]);
    assert_eq!(target["debug_info"]["source"], "separate");
    assert_eq!(target["optimization"]["level"], "O2");
}

/// Serves every connection with `answer`; `None` never answers.
fn serve(answer: Option<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut held: Vec<TcpStream> = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if let Some(body) = &answer {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
            } else {
                held.push(stream);
            }
        }
    });
    format!("http://127.0.0.1:{port}")
}

#[test]
#[ignore = "needs the corpus"]
fn a_server_that_never_answers_costs_a_bounded_time_once() {
    assert!(installed("debuginfod-find"), "the corpus comes with it");
    let (directory, binary) = files();
    let other = directory.path().join("bin/other");
    std::fs::copy(corpus("O0-stripped"), &other).unwrap();
    let url = serve(None);
    let more = ["--debuginfod", "--jobs", "1", other.to_str().unwrap()];
    let (target, took) = inspect(&binary, &url, &directory.path().join("cache"), &more);
    assert!(took < PATIENT, "{took:?} for two files");
    let (offline, _) = inspect(&binary, "", &directory.path().join("none"), &[]);
    assert_eq!(target["optimization"]["level"].is_string(), offline["optimization"]["level"].is_string());
    assert_eq!(target["status"], "ok", "an absence is no damage");
    let problems = target["problems"].as_array().unwrap();
    assert!(problems.iter().any(|problem| problem["code"] == "not-fetched"), "{problems:?}");
}

#[test]
#[ignore = "needs the corpus"]
fn the_debug_file_of_another_build_is_refused() {
    assert!(installed("debuginfod-find"), "the corpus comes with it");
    let (directory, binary) = files();
    let url = serve(Some(std::fs::read(corpus("O0")).unwrap()));
    let (target, _) = inspect(&binary, &url, &directory.path().join("cache"), &["--debuginfod"]);
    assert_eq!(target["debug_info"]["source"], "none");
    assert_ne!(target["optimization"]["level"], "O0");
    let problems = target["problems"].as_array().unwrap();
    assert!(problems.iter().any(|problem| problem["code"] == "debug-file-mismatch"), "{problems:?}");
}
