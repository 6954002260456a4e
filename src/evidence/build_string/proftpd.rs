//! ProFTPD carries what `proftpd -V` prints: its `configure` line, and the flags with labels.

use super::{Builder, Found, Recogniser, Texts, names_version, word_after};

/// ProFTPD.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "proftpd",
    marks: &["^ProFTPD Version 1", "^  Built With:\n", "^  CFLAGS: ", "^  LDFLAGS: ", "^  LIBS: "],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    let named =
        texts.with("ProFTPD Version 1").filter(|text| names_version(&text.text, "ProFTPD Version "))?;
    let labelled = |label: &str| {
        texts.all().find_map(|text| {
            Some((text.text.strip_prefix("  ")?.strip_prefix(label)?.strip_prefix(": ")?, text))
        })
    };
    let built = texts.all().find(|text| text.text.starts_with("  Built With:\n"));
    let flags = labelled("CFLAGS");
    let at = flags.map(|(_, text)| text).or(built)?;
    let mut builder = Builder::new("proftpd", &at.at).version(word_after(&named.text, "ProFTPD Version "));
    if let Some((_, line)) = built.and_then(|text| text.text.split_once("configure ")) {
        builder.add("configure", line);
    }
    for label in ["CFLAGS", "LDFLAGS", "LIBS"] {
        if let Some((value, _)) = labelled(label) {
            builder.add(label, value);
        }
    }
    if let Some((value, text)) = flags {
        builder.all_flags(value, &text.at);
    }
    Some(builder.found)
}
