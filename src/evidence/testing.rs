//! Test files.

use crate::image::{Image, Input};
use crate::limits::Limits;
use std::path::PathBuf;

/// Path of a file in `testdata/elf`.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/elf").join(name)
}

/// Opens a file of `testdata/elf`.
pub(crate) fn open(name: &str) -> Image {
    let file = std::fs::File::open(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    Image::open(Input::file(file).unwrap(), &Limits::default())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}
