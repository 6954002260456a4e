//! Lists of targets, read as they come: a list may be longer than memory, and its end may not be there yet. A signal ends
//! the wait for it.

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Longest line, in bytes; Linux takes no path longer than 4,096.
const MOST_LINE: u64 = 64 << 10;

/// The entries of a list; an error is the last one.
pub(super) struct List<R = BufReader<Waiting>> {
    from: R,
    separator: u8,
    name: String,
    ended: bool,
}

/// Opens `--files-from` or `--files0-from`; `-` is standard input.
pub(super) fn open(lines: Option<&Path>, zeros: Option<&Path>) -> anyhow::Result<Option<List>> {
    let (path, separator) = match (lines, zeros) {
        (Some(path), _) => (path, b'\n'),
        (None, Some(path)) => (path, 0),
        (None, None) => return Ok(None),
    };
    let name = path.display().to_string();
    let file = if path.as_os_str() == "-" {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(path)
    };
    let file = file.with_context(|| format!("{name} cannot be read"))?;
    let from = BufReader::new(Waiting { file, until: None });
    Ok(Some(List { from, separator, name, ended: false }))
}

impl List {
    /// The list ends when `until` becomes readable, also while its next line is waited for.
    pub(super) fn ends_with(&mut self, until: UnixStream) {
        self.from.get_mut().until = Some(until);
    }
}

/// A file that may be a pipe or a terminal, on which reading waits.
pub(super) struct Waiting {
    file: File,
    until: Option<UnixStream>,
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = &self.until {
            let mut polled = [PollFd::new(until, PollFlags::IN), PollFd::new(&self.file, PollFlags::IN)];
            while let Err(error) = poll(&mut polled, None) {
                if error != rustix::io::Errno::INTR {
                    return Err(error.into());
                }
            }
            if polled.first().is_some_and(|until| !until.revents().is_empty()) {
                return Ok(0);
            }
        }
        self.file.read(buffer)
    }
}

impl<R: BufRead> Iterator for List<R> {
    type Item = Result<PathBuf, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let mut line = Vec::new();
            let got = self.from.by_ref().take(MOST_LINE).read_until(self.separator, &mut line);
            match got {
                Ok(0) => self.ended = true,
                Ok(_) => {
                    if line.last() == Some(&self.separator) {
                        line.pop();
                    } else if line.len() as u64 == MOST_LINE {
                        self.ended = true;
                        return Some(Err(format!("{}: a line of more than {MOST_LINE} bytes", self.name)));
                    }
                    if !line.is_empty() {
                        return Some(Ok(PathBuf::from(OsString::from_vec(line))));
                    }
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(format!("{} cannot be read: {error}", self.name)));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(bytes: &'static [u8], separator: u8) -> Vec<Result<PathBuf, String>> {
        List { from: bytes, separator, name: "list".into(), ended: false }.collect()
    }

    #[test]
    fn entries_end_with_their_separator_or_with_the_list() {
        let paths = |names: &[&str]| names.iter().map(|name| Ok(PathBuf::from(name))).collect::<Vec<_>>();
        assert_eq!(list(b"a\n\nb c\nlast", b'\n'), paths(&["a", "b c", "last"]));
        assert_eq!(list(b"with\nline feed\0b\0", 0), paths(&["with\nline feed", "b"]));
        assert_eq!(list(b"", b'\n'), []);
    }

    #[test]
    fn an_endless_line_ends_the_list() {
        let endless = List {
            from: BufReader::new(io::repeat(b'x')),
            separator: b'\n',
            name: "list".into(),
            ended: false,
        };
        let seen: Vec<_> = endless.collect();
        assert!(matches!(&seen[..], [Err(why)] if why.contains("more than 65536 bytes")), "{seen:?}");
    }
}
