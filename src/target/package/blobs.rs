//! Where the files of a container image lie: in an archive, or in an unpacked directory.

use super::START;
use super::contents::{self, Contents, Event, Found};
use crate::image::Input;
use crate::image::confined::Directory;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// A file of an image.
pub(super) enum Blob {
    /// There is none of that name.
    Missing,
    /// Its bytes.
    Bytes(Input),
    /// It is there, and neither an archive, nor a program, nor a document in JSON.
    Other,
    /// It cannot be read, and why.
    Refused(String),
}

/// The files of an image by their names, which begin with `/`.
pub(super) enum Blobs<'a> {
    Archive(HashMap<&'a str, Option<&'a Found>>),
    Directory { top: &'a Directory, most: u64 },
}

impl<'a> Blobs<'a> {
    /// The entries of an archive.
    pub(super) fn of_archive(outer: &'a Contents) -> Self {
        let files = outer.events.iter().filter(|(_, event)| matches!(event, Event::File(_)));
        let mut by_name: HashMap<&str, Option<&Found>> =
            files.map(|(name, _)| (name.as_str(), None)).collect();
        by_name.extend(outer.found.iter().map(|found| (found.name.as_str(), Some(found))));
        Self::Archive(by_name)
    }

    /// The files below a directory, of at most so many bytes each. They are opened when they are asked for.
    pub(super) fn of_directory(top: &'a Directory, most: u64) -> Self {
        Self::Directory { top, most }
    }

    /// The file of that name. Links are followed inside the directory only.
    pub(super) fn get(&self, name: &str) -> Blob {
        match self {
            Self::Archive(by_name) => match by_name.get(name) {
                None => Blob::Missing,
                Some(None) => Blob::Other,
                Some(Some(found)) => match &found.bytes {
                    Ok(input) => Blob::Bytes(input.clone()),
                    Err(why) => Blob::Refused(why.clone()),
                },
            },
            Self::Directory { top, most } => {
                let inside = Path::new(name.trim_start_matches('/'));
                let opened = top.find(inside).and_then(|below| Input::file(below.open()?));
                match opened {
                    Ok(input) if input.len() > *most => {
                        Blob::Refused(format!("refused: {} bytes, more than {most}", input.len()))
                    }
                    Ok(input) if is_wanted(&input) => Blob::Bytes(input),
                    Ok(_) => Blob::Other,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Blob::Missing,
                    Err(error) => Blob::Refused(error.to_string()),
                }
            }
        }
    }
}

fn is_wanted(input: &Input) -> bool {
    let mut start = [0; START];
    let got = input.read_at(0, &mut start).unwrap_or_default();
    contents::is_wanted(start.get(..got).unwrap_or_default(), input.len())
}
