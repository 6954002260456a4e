//! Clang under its many names, `[vendor] clang version <version> [(…)]… [recorded command line]`.

use super::{Family, Producer, major, skip_groups, version_of};
use crate::compiler::Level;
use crate::compiler::options::{LevelWord, Opt, Recorded, WithoutLevel, group, level, split_escaped};
use crate::facts::Bound;

pub(super) fn parse(text: &str) -> Option<Producer> {
    let marker = "clang version ";
    let at = text.find(marker)?;
    // The words before must be a vendor's name: a compiler that is only based on clang says so in brackets.
    let vendor = text.get(..at)?;
    if !vendor.is_empty() && !vendor.ends_with(' ')
        || vendor.matches('(').count() != vendor.matches(')').count()
    {
        return None;
    }
    let after = text.get(at + marker.len()..)?;
    let word_end = after.find(' ').unwrap_or(after.len());
    let version = version_of(after.get(..word_end)?);
    let tail = after.get(word_end..)?;
    let command = skip_groups(tail).unwrap_or("");
    let options = command_line(command);
    let raw = match &options {
        Some(_) => text.get(..text.len() - command.len()).unwrap_or(text),
        None => text,
    };
    let level = match &options {
        Some(list) => clang_level(list, major(version.as_deref())),
        None => LevelWord::unknown("clang does not record its options unless asked to"),
    };
    Some(Producer {
        options: options.map_or(Recorded::NotRecorded, Recorded::Known),
        ..Producer::bare(Family::Clang, version, raw, level)
    })
}

/// A recorded command line by itself, as `-frecord-command-line` leaves it. It names no version. It is known by the
/// option that asked for it, which is recorded with the rest.
pub(super) fn parse_command(text: &str) -> Option<Producer> {
    let options = command_line(text)?;
    let asked = |option: &Opt| {
        matches!(
            option.text.as_str(),
            "-frecord-command-line"
                | "-frecord-gcc-switches"
                | "-grecord-command-line"
                | "-grecord-gcc-switches"
        )
    };
    if text.starts_with('-') || !options.iter().any(asked) {
        return None;
    }
    let level = clang_level(&options, None);
    let compiler = split_escaped(text).into_iter().next().unwrap_or_default();
    Some(Producer {
        options: Recorded::Known(options),
        ..Producer::bare(Family::Clang, None, &compiler, level)
    })
}

/// The options of a recorded command line: the compiler's path, then its arguments. A text without any option is
/// not a command line, since the option that asks for recording is recorded too.
fn command_line(text: &str) -> Option<Vec<Opt>> {
    let words = split_escaped(text);
    let (first, arguments) = words.split_first()?;
    let arguments = if first.starts_with('-') { words.as_slice() } else { arguments };
    arguments.iter().any(|word| word.starts_with('-')).then(|| group(arguments))
}

/// Clang's level; `-O` alone was `-O2` before clang 11 (its release notes).
fn clang_level(options: &[Opt], major: Option<u64>) -> LevelWord {
    let mut word = level(options, WithoutLevel::Unoptimized);
    let bare = matches!(word.winner.as_deref(), Some("-O" | "--optimize"));
    if bare && word.level == Level::O1 && major.is_none_or(|major| major < 11) {
        word.bound = Bound::AtLeast;
        word.note = Some("-O alone meant -O2 in clang before 11".to_owned());
    }
    word
}
