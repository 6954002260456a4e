//! A `configure` line in autoconf's quotes, in a program that no other recogniser knows.
//!
//! Nothing tells whether it is the program's own or that of a library it contains.

use super::{Builder, Found, Recogniser, Texts};

/// Any program built with autoconf.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "autoconf",
    marks: &["'--build=", "'--prefix=", "'--enable-", "'--with-", "'CFLAGS="],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    let line = texts.configure_line()?;
    let mut builder = Builder::new("autoconf", &line.at);
    builder.found.is_file_itself = false;
    builder.configure(line);
    Some(builder.found)
}
