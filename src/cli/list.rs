//! Lists of targets, read as they come: a list may be longer than memory, and its end may not be there yet.

use anyhow::Context;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Longest line, in bytes; Linux takes no path longer than 4,096.
const MOST_LINE: u64 = 64 << 10;

/// The entries of a list; an error is the last one.
pub(super) struct List {
    from: Box<dyn BufRead + Send>,
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
    let from: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).with_context(|| format!("{name} cannot be read"))?))
    };
    Ok(Some(List { from, separator, name, ended: false }))
}

impl Iterator for List {
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
        List { from: Box::new(bytes), separator, name: "list".into(), ended: false }.collect()
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
            from: Box::new(BufReader::new(io::repeat(b'x'))),
            separator: b'\n',
            name: "list".into(),
            ended: false,
        };
        let seen: Vec<_> = endless.collect();
        assert!(matches!(&seen[..], [Err(why)] if why.contains("more than 65536 bytes")), "{seen:?}");
    }
}
