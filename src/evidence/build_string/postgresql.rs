//! PostgreSQL carries its `configure` line and, as strings without labels beside it, the flags that line led to
//! (the view `pg_config`). They are recognised by what PostgreSQL always puts into them.

use super::{Builder, Found, Recogniser, Texts, is_configure_line, word_after};
use crate::compiler::options::split_shell;

/// PostgreSQL: the server and `pg_config`.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "postgresql",
    marks: &[
        "^PostgreSQL ",
        " -Wmissing-prototypes ",
        "--enable-cassert",
        "^-lpgcommon",
        "'--build=",
        "'--prefix=",
    ],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    let is_version =
        |text: &str| text.starts_with("PostgreSQL ") && text.contains(|c: char| c.is_ascii_digit());
    let named = texts.all().find(|text| is_version(&text.text));
    let compiled = texts.all().find(|text| {
        text.text.starts_with('-')
            && text.text.contains("-Wmissing-prototypes")
            && text.text.contains("-fwrapv")
    });
    // Other programs name PostgreSQL's version too: its clients, and what is linked with its library.
    // `--enable-cassert` is PostgreSQL's alone, as a word of a whole line: elsewhere it is somebody speaking of it.
    let configure = texts.all().find(|text| {
        is_configure_line(&text.text)
            && (named.is_some() && compiled.is_some() || has_word(&text.text, "--enable-cassert"))
    });
    let first = configure.or(compiled.filter(|_| named.is_some()))?;
    let version = named.and_then(|text| word_after(&text.text, "PostgreSQL "));
    let mut builder = Builder::new("postgresql", &first.at).version(version);
    if let Some(named) = named {
        builder.add("version", &named.text);
    }
    if let Some(line) = configure {
        builder.configure(line);
        builder.found.assertions = Some(has_word(&line.text, "--enable-cassert"));
    }
    if let Some(flags) = compiled {
        builder.found.strings.retain(|string| string.key != "CFLAGS");
        builder.add("CFLAGS", &flags.text);
        builder.all_flags(&flags.text, &flags.at);
    }
    if let Some(libraries) = texts.all().find(|text| text.text.starts_with("-lpgcommon")) {
        builder.add("LIBS", &libraries.text);
    }
    Some(builder.found)
}

fn has_word(line: &str, word: &str) -> bool {
    split_shell(line).iter().any(|w| w == word)
}
