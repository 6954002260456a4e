//! Erlang's emulator carries the flags it was compiled with, which `erlang:system_info(build_flags)` returns.

use super::{Builder, Found, Recogniser, Texts, names_version, word_after};

/// Erlang/OTP: `beam.smp`.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "erlang",
    marks: &[
        "^(BEAM) emulator version ",
        "^Erlang (%s) emulator version ",
        "-D_THREAD_SAFE -D_REENTRANT -DPOSIX_THREADS",
    ],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    let named = texts.all().find(|text| names_version(&text.text, ") emulator version "))?;
    let flags =
        texts.all().find(|text| text.text.starts_with('-') && text.text.contains("-DPOSIX_THREADS"))?;
    let mut builder = Builder::new("erlang", &flags.at).version(word_after(&named.text, "emulator version "));
    builder.add("CFLAGS", &flags.text);
    builder.all_flags(&flags.text, &flags.at);
    Some(builder.found)
}
