//! Where the bytes come from. Nothing else opens files that are to be audited.

use crate::facts::{Facts, Library, Origin, Process};
use crate::image::Input;
use crate::image::confined::{Below, open_regular};
use crate::limits::Limits;
use base64::Engine as _;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub mod directory;
pub mod glance;
pub mod libraries;
pub mod mapped;
pub mod package;
pub mod process;

/// A target before it is read.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its name.
    pub path: PathBuf,
    /// Where it came from.
    pub origin: Origin,
    /// Its name inside a package or image.
    pub member: Option<String>,
    /// The process, for a running program.
    pub process: Option<Process>,
    /// As which library it was found.
    pub library: Option<Library>,
    /// Its bytes, where they are at hand already.
    pub input: Option<Input>,
    /// Where the file lies, if that is not its name. What belongs to it is looked for beside it.
    pub place: Option<PathBuf>,
    /// The file by the directory that it was found in, where that is to be opened and not a name.
    pub below: Option<Below>,
    /// It is one compressed program, as kernel modules are: what is audited is what it decompresses to.
    pub compressed: bool,
    /// The root file system it belongs to, if that is not the one the user named.
    pub root: Option<PathBuf>,
    /// Why it cannot be read, where that is known already.
    pub refused: Option<String>,
    /// When it was started, for a running program (see [`process::started`]).
    pub started: Option<u64>,
    /// It was met among all processes: that it ends meanwhile is no error.
    pub may_end: bool,
    /// How it was started, for a running program.
    pub command_line: Option<process::CommandLine>,
    /// What a quick look at it told, where somebody has looked.
    pub glance: Option<glance::Glance>,
    /// Device and inode, where they are known.
    pub identity: Option<(u64, u64)>,
}

/// Why a target could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system's words.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Refused before it was opened, in the words of who did.
    #[error("{0}")]
    Refused(String),
    /// Too large to be read from a stream.
    #[error("more than {0} bytes on standard input")]
    TooLarge(u64),
}

impl Subject {
    /// A target that is read by its name.
    pub fn new(path: impl Into<PathBuf>, origin: Origin) -> Self {
        Self {
            path: path.into(),
            origin,
            member: None,
            process: None,
            library: None,
            input: None,
            place: None,
            below: None,
            compressed: false,
            root: None,
            refused: None,
            started: None,
            may_end: false,
            command_line: None,
            glance: None,
            identity: None,
        }
    }

    /// A running program.
    pub fn process(running: process::Running) -> Self {
        // What belongs to the program lies where the process sees it.
        let place = match &running.root {
            Some(root) => root.join(running.place.strip_prefix("/").unwrap_or(&running.place)),
            None => running.place,
        };
        Self {
            process: Some(running.process.clone()),
            input: Some(running.input),
            identity: Some(running.identity),
            place: Some(place),
            root: running.root,
            started: Some(running.started),
            command_line: Some(running.command_line),
            ..Self::new(process::target_name(running.process.pid), Origin::Process)
        }
    }

    /// A target that cannot be read, for a reason known already.
    pub fn refused(path: impl Into<PathBuf>, origin: Origin, why: String) -> Self {
        Self { refused: Some(why), ..Self::new(path, origin) }
    }

    /// A file that a walk met.
    pub fn met(met: directory::Met) -> Self {
        Self {
            glance: met.glance,
            identity: Some(met.identity),
            below: Some(met.below),
            compressed: met.compressed,
            ..Self::new(met.path, Origin::Directory)
        }
    }

    /// Its name as it is shown: of a member of a package `PACKAGE!MEMBER`.
    pub fn shown(&self) -> String {
        let path = self.path.to_string_lossy();
        match &self.member {
            Some(member) => format!("{path}!{member}"),
            None => path.into_owned(),
        }
    }

    /// Facts under the name of this target.
    pub fn named(&self, facts: Facts) -> Facts {
        let bytes = self.path.as_os_str().as_bytes();
        let not_text = std::str::from_utf8(bytes).is_err();
        Facts {
            path: self.path.to_string_lossy().into_owned(),
            path_bytes: not_text.then(|| base64::engine::general_purpose::STANDARD.encode(bytes)),
            origin: self.origin,
            member: self.member.clone(),
            process: self.process.clone(),
            library: self.library.clone(),
            ..facts
        }
    }

    /// Where the file lies.
    pub fn place(&self) -> &Path {
        self.place.as_deref().unwrap_or(&self.path)
    }

    /// Opens the target for positioned reads. A compressed one is decompressed each time: a walk may meet thousands.
    pub fn open(&self, limits: &Limits) -> Result<Input, OpenError> {
        let input = self.open_as_it_is(limits.stream_bytes)?;
        if self.compressed {
            return package::decompressed(&input, limits).map_err(OpenError::Refused);
        }
        Ok(input)
    }

    fn open_as_it_is(&self, stream_limit: u64) -> Result<Input, OpenError> {
        if let Some(why) = &self.refused {
            return Err(OpenError::Refused(why.clone()));
        }
        if let Some(input) = &self.input {
            return Ok(input.clone());
        }
        match (&self.below, self.origin) {
            (Some(below), _) => Ok(Input::file(below.open()?)?),
            (None, Origin::Stdin) => read_stream(io::stdin().lock(), stream_limit),
            (None, _) => Ok(Input::file(open_regular(self.place())?)?),
        }
    }
}

fn read_stream(stream: impl Read, limit: u64) -> Result<Input, OpenError> {
    let mut bytes = Vec::new();
    let got = stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if got as u64 > limit {
        return Err(OpenError::TooLarge(limit));
    }
    Ok(Input::memory(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_over_the_limit_is_refused() {
        assert!(matches!(read_stream(&b"12345"[..], 4), Err(OpenError::TooLarge(4))));
        assert_eq!(read_stream(&b"1234"[..], 4).map(|i| i.len()).ok(), Some(4));
    }
}
