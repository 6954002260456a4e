//! HAProxy carries one text of many lines, `Build options :`, which `haproxy -vv` prints.

use super::{Builder, Found, Recogniser, Texts, word_after};

/// HAProxy.
pub(super) const RECOGNISER: Recogniser =
    Recogniser { program: "haproxy", marks: &["Build options :\n", ", released 20"], read };

fn read(texts: &Texts<'_>) -> Option<Found> {
    let build = texts
        .with("Build options :\n")
        .filter(|text| text.text.lines().any(|line| line.starts_with("  TARGET") && line.contains('=')))?;
    let version = texts
        .all()
        .filter(|text| text.text.contains(", released 20"))
        .find_map(|text| word_after(&text.text, "version "));
    let mut builder = Builder::new("haproxy", &build.at).version(version);
    for line in build.text.lines() {
        if let Some((key, value)) = line.strip_prefix("  ").and_then(|line| line.split_once('=')) {
            let key = key.trim();
            builder.add(key, value);
            if key == "CFLAGS" {
                builder.all_flags(value, &build.at);
            }
        } else if let Some(list) = line.strip_prefix("Feature list :") {
            // What follows are the defaults of its settings, not its build.
            builder.add("features", list);
            break;
        }
    }
    Some(builder.found)
}
