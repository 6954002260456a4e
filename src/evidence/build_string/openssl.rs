//! OpenSSL's libcrypto carries what `openssl version -a` prints: `compiler:`, `platform:`, `built on:`.
//!
//! Linked statically into a server these texts are there too, and say nothing about the server.

use super::{Builder, Found, Recogniser, Texts, word_after};

/// OpenSSL.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "openssl",
    marks: &[
        "^compiler: ",
        "^platform: ",
        "^built on: ",
        "^OpenSSL 0.",
        "^OpenSSL 1.",
        "^OpenSSL 3.",
        "^OpenSSL 4.",
    ],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    let starts = |start: &str| texts.all().find(|text| text.text.starts_with(start));
    let named = ["OpenSSL 0.", "OpenSSL 1.", "OpenSSL 3.", "OpenSSL 4."].into_iter().find_map(starts);
    // Flags that only OpenSSL's own build sets tell its text from another program's.
    let compiler =
        texts.all().find(|text| text.text.starts_with("compiler: ") && text.text.contains("OPENSSL"))?;
    let command = compiler.text.strip_prefix("compiler: ")?;
    let mut builder = Builder::new("openssl", &compiler.at)
        .version(named.and_then(|text| word_after(&text.text, "OpenSSL ")));
    builder.contained_unless_named(texts, &["libcrypto", "libssl"]);
    builder.add("compiler", command);
    for key in ["platform", "built on"] {
        if let Some(value) = starts(&format!("{key}: ")).and_then(|text| text.text.get(key.len() + 2..)) {
            builder.add(key, value);
        }
    }
    // The first word is the compiler.
    if let Some((_, flags)) = command.split_once(' ') {
        builder.all_flags(flags, &compiler.at);
    }
    Some(builder.found)
}
