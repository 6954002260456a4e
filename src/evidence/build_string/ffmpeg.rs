//! FFmpeg's programs and each of its libraries carry the arguments of `configure`. That script chooses the level by itself;
//! the arguments tell it only where somebody interfered.

use super::{Builder, Found, Recogniser, Texts, word_after};
use crate::compiler::Level;
use crate::compiler::options::{LevelWord, split_shell};

const LIBRARIES: &[&str] = &[
    "libavutil",
    "libavcodec",
    "libavformat",
    "libavfilter",
    "libavdevice",
    "libswscale",
    "libswresample",
    "libpostproc",
];

/// FFmpeg and its libraries.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "ffmpeg",
    marks: &[
        "^FFmpeg version ",
        "^libavutil license: ",
        "^libavcodec license: ",
        "^libavformat license: ",
        "^libavfilter license: ",
        "^libavdevice license: ",
        "^libswscale license: ",
        "^libswresample license: ",
        "^libpostproc license: ",
        "^%sbuilt with %s",
        "^%s version ",
        "^%sconfiguration: ",
        "^--prefix=",
        "^--enable-",
        "^--disable-",
        "^--extra-",
        "^--arch=",
        "^--toolchain=",
        "^--cc=",
        "^--optflags=",
    ],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    let library = texts
        .all()
        .find(|text| LIBRARIES.iter().any(|name| text.text.starts_with(&format!("{name} license: "))));
    let program = texts.all().find(|text| text.text.starts_with("%sbuilt with %s"));
    let first = library.or(program)?;
    let version = texts.all().find_map(|text| {
        text.text
            .strip_prefix("FFmpeg version ")
            .or_else(|| text.text.strip_prefix("%s version "))
            .map(str::trim)
    });
    let mut builder = Builder::new("ffmpeg", &first.at).version(version.and_then(|v| v.split(' ').next()));
    if program.is_none() {
        builder.contained_unless_named(texts, LIBRARIES);
    }
    if let Some(license) = library.and_then(|text| word_after(&text.text, "license: ").map(|_| &text.text)) {
        builder.add("license", license.split_once("license: ").map_or("", |(_, rest)| rest));
    }
    let line = texts.all().find_map(|text| {
        let arguments = text.text.strip_prefix("%sconfiguration: ").unwrap_or(&text.text);
        arguments.starts_with("--").then_some((arguments.trim_end(), text))
    });
    if let Some((arguments, text)) = line {
        builder.add("configure", arguments);
        let words = split_shell(arguments);
        let last = |name: &str| words.iter().rev().find_map(|word| word.strip_prefix(name));
        for key in ["cc", "extra-cflags", "optflags", "extra-ldflags"] {
            if let Some(value) = last(&format!("--{key}=")) {
                builder.add(key, value);
            }
        }
        // Without them, or some word that decides, nothing is declared.
        let flags = last("--optflags=").or_else(|| last("--extra-cflags="));
        builder.some_flags(flags.unwrap_or(""), &text.at);
        if let Some(mut declared) = builder.found.flags.take() {
            declared.level = level(&words, last("--optflags="), declared.level);
            if declared.level.winner.is_some() || flags.is_some() {
                builder.found.flags = Some(declared);
            }
        }
    }
    Some(builder.found)
}

/// `--optflags` replaces the script's choice. What `--extra-cflags` says about the level is not certain to be the last word.
fn level(words: &[String], optflags: Option<&str>, by_flags: LevelWord) -> LevelWord {
    if optflags.is_some() {
        return by_flags;
    }
    let given = |option: &str| words.iter().any(|word| word == option);
    if given("--disable-optimizations") {
        return LevelWord::unknown("configured with --disable-optimizations");
    }
    if given("--enable-small") {
        let mut word = LevelWord::of(Level::Os);
        word.winner = Some("--enable-small".to_owned());
        return word;
    }
    LevelWord::unknown("FFmpeg's configure chooses the level itself and does not name it")
}
