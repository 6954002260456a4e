//! GCC, `GNU <language> <version> [date] [(vendor)] [options]`, and the GNU assembler.

use super::{Family, Producer, Role, split_at_options, version_of};
use crate::compiler::options::{LevelWord, Recorded, WithoutLevel, level, split_raw};

/// Languages whose standard GCC appends to the name (`lang_hooks.name`).
const WITH_STANDARD: &[&str] = &["C++", "C", "Objective-C++", "Objective-C", "Fortran", "Ada", "COBOL"];

pub(super) fn parse(text: &str) -> Option<Producer> {
    let (words, options) = split_at_options(text);
    let rest = words.strip_prefix("GNU ").or_else(|| words.strip_prefix("GCC "))?;
    let rest = rest.trim_start();
    let (language, version) = language_and_version(rest);
    if language == "AS" {
        return Some(Producer::assembler(Family::Gas, version, words));
    }
    let (language, standard) = split_standard(language);
    let options = match options {
        Some(text) => Recorded::Known(split_raw(text)),
        None => Recorded::NotRecorded,
    };
    let partition = language == "GIMPLE";
    let level = match &options {
        _ if partition => LevelWord::unknown(
            "made at link time: the level is that of the sources it was made from, not of its own options",
        ),
        Recorded::Known(list) => level(list, WithoutLevel::Unoptimized),
        Recorded::NotRecorded => LevelWord::unknown("GCC did not record its options"),
    };
    Some(Producer {
        family: Family::Gcc,
        version,
        language: (!partition && !language.is_empty()).then(|| language.to_owned()),
        standard: standard.map(str::to_owned),
        raw: words.to_owned(),
        options,
        role: if partition { Role::LtoPartition } else { Role::Source },
        level,
    })
}

/// The words up to the version, which is the first word with digits on both sides of a dot. A language may have
/// a space in its name.
fn language_and_version(text: &str) -> (&str, Option<String>) {
    let mut at = 0;
    for word in text.split(' ').take(5) {
        if let Some(version) = version_of(word).filter(|version| version.contains('.')) {
            return (text.get(..at).unwrap_or("").trim_end(), Some(version));
        }
        at += word.len() + 1;
    }
    (text.split(' ').next().unwrap_or(""), None)
}

fn split_standard(language: &str) -> (&str, Option<&str>) {
    WITH_STANDARD
        .iter()
        .find_map(|name| {
            let year = language.strip_prefix(name)?;
            (!year.is_empty()
                && year.bytes().all(|b| b.is_ascii_alphanumeric())
                && year.as_bytes()[0].is_ascii_digit())
            .then_some((*name, Some(language)))
        })
        .unwrap_or((language, None))
}
