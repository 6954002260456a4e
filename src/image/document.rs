//! Documents that the user names: policies, baselines, saved reports, lists of targets.
//!
//! A pipe will do for one, as `<(command)` of a shell is. It is read to its end, and not waited for longer than somebody
//! may be expected to write. A device or a socket is refused untouched.

use super::confined::{LOOK, READ, kind_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, openat};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a pipe is waited for in all.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Reads a document of no more than `most` bytes. Without `patience` a pipe is waited for as long as it takes.
///
/// Errors: it cannot be opened, is neither a file nor a pipe, is larger, or nobody writes.
pub fn read(path: &Path, most: u64, patience: Option<Duration>) -> io::Result<Vec<u8>> {
    let handle = openat(CWD, path, LOOK, Mode::empty())?;
    let (kind, what) = kind_of(&handle)?;
    if !matches!(kind, FileType::RegularFile | FileType::Fifo) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}")));
    }
    // By the handle where there is /proc; a pipe has no other name then.
    let name = format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd());
    let file = File::from(openat(CWD, name, READ, Mode::empty()).or_else(|error| match error {
        rustix::io::Errno::NOENT => openat(CWD, path, READ, Mode::empty()),
        error => Err(error),
    })?);
    match kind {
        FileType::Fifo => all(Pipe { file, end: patience.map(|wait| Instant::now() + wait) }, most),
        _ => all(file, most),
    }
}

/// Reads all there is, and no more than `most` bytes.
pub fn all(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// A pipe opened without waiting.
struct Pipe {
    file: File,
    end: Option<Instant>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Before the first writer comes a read gives nothing, as it does after the last is gone: poll(2) knows.
            let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
            let wait = left.map(|left| Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            });
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut polled, wait.as_ref()) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "nobody has written all of it to the pipe in time",
                    ));
                }
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const SOON: Option<Duration> = Some(Duration::from_millis(300));

    fn fifo(directory: &tempfile::TempDir) -> std::path::PathBuf {
        let path = directory.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is everywhere");
        path
    }

    #[test]
    fn a_pipe_is_read_to_its_end_whenever_the_writer_comes() {
        let directory = tempfile::tempdir().unwrap();
        let path = fifo(&directory);
        let text = "schema = 1\n".repeat(20_000);
        for pause in [0, 100] {
            let (path, text) = (path.clone(), text.clone());
            let writer = std::thread::spawn({
                let (path, text) = (path.clone(), text.clone());
                move || {
                    std::thread::sleep(Duration::from_millis(pause));
                    let mut file = File::options().write(true).open(path).unwrap();
                    let (first, rest) = text.as_bytes().split_at(5);
                    file.write_all(first).unwrap();
                    std::thread::sleep(Duration::from_millis(pause));
                    file.write_all(rest).unwrap();
                }
            });
            let read = read(&path, 1 << 20, Some(Duration::from_secs(60))).unwrap();
            writer.join().unwrap();
            assert!(read == text.as_bytes());
        }
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_given_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = fifo(&directory);
        assert_eq!(read(&path, 10, SOON).unwrap_err().kind(), io::ErrorKind::TimedOut);
        // One who opens it and says nothing holds it up no longer.
        let silent = File::options().read(true).write(true).open(&path).unwrap();
        assert_eq!(read(&path, 10, SOON).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(silent);
    }

    #[test]
    fn devices_folders_and_too_much_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5, SOON).unwrap(), b"12345");
        let why = |path: &Path, most| read(path, most, SOON).unwrap_err().to_string();
        assert_eq!(why(&path, 4), "it is larger than 4 bytes");
        assert_eq!(why(Path::new("/dev/zero"), 4), "it is a device");
        assert_eq!(why(directory.path(), 4), "it is a directory");
    }
}
