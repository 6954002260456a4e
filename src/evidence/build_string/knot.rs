//! Knot DNS carries one text of many lines with the summary of its `configure`, which `knotd -VV` prints.

use super::{Builder, Found, Recogniser, Texts, names_version, word_after};

/// Knot DNS.
pub(super) const RECOGNISER: Recogniser =
    Recogniser { program: "knot", marks: &["^  Knot DNS ", "^Knot DNS "], read };

fn read(texts: &Texts<'_>) -> Option<Found> {
    let summary = texts.all().find(|text| {
        names_version(&text.text, "Knot DNS ")
            && text.text.lines().any(|line| line.starts_with("    CFLAGS:"))
    })?;
    let mut builder = Builder::new("knot", &summary.at).version(word_after(&summary.text, "Knot DNS "));
    for line in summary.text.lines() {
        let Some((key, value)) = line.strip_prefix("    ").and_then(|line| line.split_once(':')) else {
            continue;
        };
        if ["Target", "Compiler", "CFLAGS", "LIBS"].contains(&key) {
            builder.add(key, value);
        }
        if key == "CFLAGS" {
            builder.all_flags(value, &summary.at);
        }
    }
    Some(builder.found)
}
