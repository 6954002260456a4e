//! Squid carries its `configure` line, which `squid -v` prints.

use super::{Builder, Found, Recogniser, Texts};

/// Squid.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "squid",
    marks: &["^Squid Cache: Version %s", "^squid/", "'--build=", "'--prefix=", "'CXXFLAGS=", "'CFLAGS="],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    texts.with("Squid Cache: Version %s")?;
    let line = texts.configure_line()?;
    let version = texts.all().find_map(|text| {
        text.text.strip_prefix("squid/").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let mut builder = Builder::new("squid", &line.at).version(version.and_then(|v| v.split(' ').next()));
    builder.configure(line);
    Some(builder.found)
}
