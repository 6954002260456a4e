//! BIND's `named` carries its `configure` line, which `named -V` prints.

use super::{Builder, Found, Recogniser, Texts, word_after};

/// BIND 9.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "bind",
    marks: &["^BIND 9.", "^named version: BIND 9.", "'--build=", "'--prefix=", "'--sysconfdir=", "'CFLAGS="],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    let named = texts
        .all()
        .find(|text| text.text.starts_with("BIND 9.") || text.text.starts_with("named version: BIND 9."))?;
    let line = texts.configure_line()?;
    let mut builder = Builder::new("bind", &line.at).version(word_after(&named.text, "BIND "));
    builder.configure(line);
    Some(builder.found)
}
