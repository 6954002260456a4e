//! Asking debuginfod's client, where the user allows it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the client said.
pub(super) enum Answer {
    Path(PathBuf),
    Nothing,
    NotInstalled,
    Late,
}

/// Asks `debuginfod-find` for a build-id, and waits no longer than `patience`.
pub(super) fn ask(client: &Path, id: &str, patience: Duration) -> Answer {
    use std::io::{Read, Seek};
    use std::process::{Command, Stdio};
    // A file and not a pipe: whoever else holds it open can make nobody wait.
    let Ok(mut printed) = tempfile::tempfile() else { return Answer::Nothing };
    let Ok(output) = printed.try_clone() else { return Answer::Nothing };
    let child = Command::new(client)
        .args(["debuginfo", id])
        .env_remove("DEBUGINFOD_PROGRESS")
        .env("DEBUGINFOD_TIMEOUT", patience.as_secs().max(1).to_string())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return Answer::NotInstalled };
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                // It may be gone already; then there is nothing to end.
                let _ = child.kill();
                let _ = child.wait();
                return Answer::Late;
            }
        }
    };
    let mut text = Vec::new();
    let read = printed.rewind().and_then(|()| printed.take(8 << 10).read_to_end(&mut text));
    let path = text.trim_ascii_end();
    if read.is_err() || !status.success() || path.is_empty() {
        return Answer::Nothing;
    }
    Answer::Path(PathBuf::from(OsStr::from_bytes(path)))
}
