//! A temporary file in which programs out of packages are kept, one behind the other.

use crate::image::Input;
use std::io::{self, Read};
use std::sync::Arc;

/// A temporary file without a name.
#[derive(Debug)]
pub(super) struct Spool {
    file: Arc<std::fs::File>,
    len: u64,
}

impl Spool {
    pub(super) fn new() -> io::Result<Self> {
        // The environment may name a folder for temporary files that is none.
        let made = tempfile::tempfile()
            .or_else(|error| tempfile::tempfile_in("/tmp").map_err(|_| error))
            .or_else(|error| tempfile::tempfile_in("/var/tmp").map_err(|_| error))
            .map_err(|error| io::Error::other(format!("no temporary file can be made: {error}")));
        Ok(Self { file: Arc::new(made?), len: 0 })
    }

    /// Bytes written so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Copies a whole file and gives the copy; `None` if it has more than `limit` bytes. All copies share the one file that
    /// is open: a package may hold more programs than a process may have files open.
    pub(super) fn keep(&mut self, from: impl Read, limit: u64) -> io::Result<Option<Input>> {
        let at = self.len;
        let copied = io::copy(&mut from.take(limit.saturating_add(1)), &mut &*self.file);
        // What was written counts even if the copy was cut short.
        self.len = self.file.metadata()?.len();
        let copied = copied?;
        if copied > limit {
            return Ok(None);
        }
        let cut = || io::Error::other("the temporary file is cut");
        Input::shared(Arc::clone(&self.file))?.part(at, copied).ok_or_else(cut).map(Some)
    }
}
