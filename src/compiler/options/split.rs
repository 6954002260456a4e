//! Splitting a text into options, each with its argument.

use super::Opt;

/// Options whose argument GCC records as a word of its own.
const GCC_SEPARATE: &[&str] = &[
    "--param",
    "-fintrinsic-modules-path",
    "-D",
    "-U",
    "-A",
    "-G",
    "-I",
    "-J",
    "-L",
    "-aux-info",
    "-auxbase",
    "-auxbase-strip",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-idirafter",
    "-imacros",
    "-imultiarch",
    "-imultilib",
    "-include",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-iwithprefix",
    "-MF",
    "-MQ",
    "-MT",
    "-o",
    "-x",
    "-specs",
];

/// Options of the clang driver that take the next word as their argument, besides those of GCC.
const CLANG_SEPARATE: &[&str] = &[
    "--sysroot",
    "--config",
    "-F",
    "-T",
    "-Xanalyzer",
    "-Xassembler",
    "-Xclang",
    "-Xclangas",
    "-Xcuda-fatbinary",
    "-Xcuda-ptxas",
    "-Xlinker",
    "-Xopenmp-target",
    "-Xpreprocessor",
    "-Xoffload-linker",
    "-arch",
    "-b",
    "-e",
    "-framework",
    "-iframework",
    "-isystem-after",
    "-ivfsoverlay",
    "-l",
    "-main-file-name",
    "-mllvm",
    "-mmlir",
    "-resource-dir",
    "-target",
    "-u",
    "-working-directory",
    "-z",
];

/// Whether an option may hold free text after its `=` (or, with a word of its own, after the space),
/// and so a space. Processor, debug and language options take words from fixed lists.
fn takes_free_text(option: &str) -> bool {
    let fixed = ["-m", "-std=", "-O", "-g", "-G", "--param"];
    if fixed.iter().any(|prefix| option.starts_with(prefix)) {
        return false;
    }
    option.contains('=') || GCC_SEPARATE.contains(&option.split(' ').next().unwrap_or(option))
}

/// Splits options as GCC records them: unquoted, one space between.
///
/// A word that does not begin with `-` and that no option awaits is attached to the option before it.
/// It shows that some value held a space, so every option from the first that may hold free text on is marked ambiguous:
/// a value that holds spaces may also hold what looks like options, before that word and after it.
pub fn split_raw(text: &str) -> Vec<Opt> {
    let mut options: Vec<Opt> = Vec::new();
    let mut last_stray = None;
    let mut awaits = false;
    for word in text.split_ascii_whitespace() {
        if word.starts_with('-') {
            awaits = GCC_SEPARATE.contains(&word);
            options.push(Opt::new(word));
            continue;
        }
        let Some(previous) = options.last_mut() else { continue };
        previous.text.push(' ');
        previous.text.push_str(word);
        if !awaits {
            previous.ambiguous = true;
            last_stray = Some(options.len());
        }
        awaits = false;
    }
    if let Some(end) = last_stray {
        let begin = options.iter().position(|option| takes_free_text(&option.text)).unwrap_or(end);
        for option in options.iter_mut().skip(begin) {
            option.ambiguous = true;
        }
    }
    options
}

/// Splits a command line in which a backslash escapes the byte after it, as clang records it.
pub fn split_escaped(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut within = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                word.push(letters.next().unwrap_or('\\'));
                within = true;
            }
            ' ' | '\t' | '\n' => {
                if within {
                    words.push(std::mem::take(&mut word));
                }
                within = false;
            }
            other => {
                word.push(other);
                within = true;
            }
        }
    }
    if within {
        words.push(word);
    }
    words
}

/// Splits a command line as a POSIX shell does: single and double quotes and backslashes group words.
/// A quote that is never closed reaches to the end.
pub fn split_shell(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut within = false;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                within = true;
            }
            (Some(open), close) if open == close => quote = None,
            (None | Some('"'), '\\') => {
                word.extend(letters.next());
                within = true;
            }
            (None, space) if space.is_ascii_whitespace() => {
                if within {
                    words.push(std::mem::take(&mut word));
                }
                within = false;
            }
            (_, other) => {
                word.push(other);
                within = true;
            }
        }
    }
    if within {
        words.push(word);
    }
    words
}

/// Groups separate words into options with their arguments. Words that are no option and no argument
/// (input files) are dropped. Nothing is in doubt here: the words came apart safely.
pub fn group<S: AsRef<str>>(words: &[S]) -> Vec<Opt> {
    let mut options = Vec::new();
    let mut words = words.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            continue;
        }
        let mut text = word.to_owned();
        // `-Xarch_x86_64 -O0`: the driver hands the word on for that processor alone, or leaves it unused.
        let awaits = GCC_SEPARATE.contains(&word)
            || CLANG_SEPARATE.contains(&word)
            || word.starts_with("-Xarch_") && !word.contains('=');
        if let Some(argument) = awaits.then(|| words.next()).flatten() {
            text.push(' ');
            text.push_str(argument);
        }
        options.push(Opt::new(text));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_gcc_records_apart_are_not_in_doubt() {
        let text = "-D _FORTIFY_SOURCE=3 -U X -g -O2 --param ssp-buffer-size=4 \
                    -fintrinsic-modules-path /usr/lib/gcc/x86_64-linux-gnu/12/finclude -G 8";
        let options = split_raw(text);
        assert!(options.iter().all(|option| !option.ambiguous), "{options:?}");
        assert_eq!(options[0].text, "-D _FORTIFY_SOURCE=3");
        assert_eq!(options[4].text, "--param ssp-buffer-size=4");
    }

    #[test]
    fn clang_words_are_unescaped_and_grouped() {
        let words =
            split_escaped(r#"/opt/my\ llvm/bin/clang -g -O3 -O1 -D X="a\ b" -I /tmp/x\ y\\z -c u.c -o o.o"#);
        assert_eq!(words[0], "/opt/my llvm/bin/clang");
        let options: Vec<String> = group(&words[1..]).into_iter().map(|option| option.text).collect();
        assert_eq!(options, ["-g", "-O3", "-O1", r#"-D X="a b""#, r"-I /tmp/x y\z", "-c", "-o o.o"]);
    }

    #[test]
    fn a_word_for_another_processor_is_no_option_of_its_own() {
        let options = group(&["-O2", "-g", "-Xarch_x86_64", "-O0", "-Xarch_host", "-O1", "-c"]);
        let options: Vec<String> = options.into_iter().map(|option| option.text).collect();
        assert_eq!(options, ["-O2", "-g", "-Xarch_x86_64 -O0", "-Xarch_host -O1", "-c"]);
    }

    #[test]
    fn shell_words() {
        assert_eq!(
            split_shell(r#"-g '-D X=a b' "-DY=\"q\"" a\ b ''"#),
            ["-g", "-D X=a b", "-DY=\"q\"", "a b", ""]
        );
        assert_eq!(split_shell("'open -O0"), ["open -O0"]);
    }
}
