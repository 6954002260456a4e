//! Varnish carries the command with which it compiles a configuration. Its flags are those it was itself compiled with.

use super::{Builder, Found, Recogniser, Texts, word_after};

/// Varnish Cache.
pub(super) const RECOGNISER: Recogniser =
    Recogniser { program: "varnish", marks: &["^varnish-", " -o %o %s"], read };

fn read(texts: &Texts<'_>) -> Option<Found> {
    let command =
        texts.all().find(|text| text.text.starts_with("exec ") && text.text.contains(" -o %o %s"))?;
    let named = texts.all().find(|text| {
        text.text.strip_prefix("varnish-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let mut builder = Builder::new("varnish", &command.at)
        .version(named.and_then(|text| word_after(&text.text, "varnish-")));
    builder.add("cc_command", &command.text);
    if let Some((_, flags)) = command.text.strip_prefix("exec ").and_then(|rest| rest.split_once(' ')) {
        builder.some_flags(flags, &command.at);
    }
    Some(builder.found)
}
