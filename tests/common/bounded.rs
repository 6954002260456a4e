//! Running the program on a hostile file, held to a little memory and time.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Address space that one run may use, in KiB. It bounds resident memory from above: 256 MiB and the program itself.
const ADDRESS_SPACE: u64 = 400 << 10;
/// Longest run. Files as small as these take some milliseconds; the rest is for busy machines.
const LONGEST: Duration = Duration::from_secs(10);

/// Exit status and the one target. The run is held to its address space.
pub fn inspect(path: &Path) -> (i32, Value) {
    let begun = Instant::now();
    let script =
        format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" inspect --units --jobs 1 --format json \"$1\"");
    let output = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_flagaudit")])
        .arg(path)
        .env_remove("DEBUGINFOD_URLS")
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(begun.elapsed() < LONGEST, "{}: {:?}", path.display(), begun.elapsed());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{}: {error}: {}", path.display(), String::from_utf8_lossy(&output.stderr))
    });
    let status = output.status.code().unwrap_or_else(|| panic!("{} killed it", path.display()));
    (status, report["targets"][0].clone())
}

/// The codes of a target's problems.
pub fn codes(target: &Value) -> Vec<&str> {
    target["problems"].as_array().unwrap().iter().filter_map(|problem| problem["code"].as_str()).collect()
}
