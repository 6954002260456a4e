//! Running the program in tests.

#![allow(dead_code)]

pub mod bounded;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Copies a program that is to be started. Another process does it: a child that some other thread starts meanwhile would
/// hold this one's writable handle, and a program that is open for writing cannot be started.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-f").arg(from).arg(to).status().expect("cp");
    assert!(copied.success(), "{}", from.display());
}

/// The program with a clean environment as far as its output depends on it.
pub fn flagaudit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagaudit"));
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "DEBUGINFOD_URLS"] {
        command.env_remove(name);
    }
    command
}

/// What a run came to.
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs the program with these arguments.
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    flagaudit().args(arguments).output().expect("the program runs").into()
}

/// Runs the program and reads its JSON.
pub fn json<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> (i32, serde_json::Value) {
    let run: Run =
        flagaudit().args(arguments).args(["--format", "json"]).output().expect("the program runs").into();
    let value = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("one JSON document: {error}\n{}\n{}", run.stdout, run.stderr));
    (run.status, value)
}

/// A file of the repository's `testdata/`.
pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// A file of the corpus that `scripts/corpus.sh` makes.
pub fn corpus(name: &str) -> PathBuf {
    let directory = std::env::var_os("FLAGAUDIT_CORPUS").expect("FLAGAUDIT_CORPUS names the corpus");
    let path = Path::new(&directory).join(name);
    assert!(path.exists(), "{} is missing: run scripts/corpus.sh", path.display());
    path
}

/// What another program prints, standard error included.
pub fn output_of(program: &str, arguments: &[&OsStr]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
