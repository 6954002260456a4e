//! How an option that is written on a command line (and so in a policy) appears where a compiler records it.
//!
//! GCC rewrites some options and drops others (`gen_producer_string`; measured with GCC 9 to 16). Clang
//! records its command line nearly as it was given. So "this unit has no `-DNDEBUG`" can be said of a clang unit
//! with recorded options, and never of a GCC unit.

use super::producer::Family;

/// The recorded form of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedForm {
    /// These options, all of them (globs are kept).
    Flags(Vec<String>),
    /// The compiler expands it to what the building machine has; see [`is_native`].
    NativeCpu,
    /// No trace of it is recorded, for the reason given.
    NeverRecorded(String),
}

/// The recorded form in the words of GCC, the compiler that changes most: for a policy that is read without any
/// binary at hand.
pub fn canonical(written: &str) -> RecordedForm {
    recorded_by(written, Family::Gcc, None)
}

/// The recorded form of an option in a unit made by that compiler. `major` is the first number of its version;
/// without one, that of no particular version.
pub fn recorded_by(written: &str, family: Family, major: Option<u64>) -> RecordedForm {
    let flag = normalise(written.trim());
    match family {
        Family::Gcc => by_gcc(&flag, major),
        Family::Clang => RecordedForm::Flags(vec![by_clang(flag, major)]),
        Family::Icc | Family::Go | Family::Unknown => RecordedForm::Flags(vec![flag]),
        other => RecordedForm::NeverRecorded(format!("{other} records no options")),
    }
}

/// One spelling for options that have several, whether written or recorded: `-D X` is `-DX`, `--param x=y` is
/// `--param=x=y`, `--optimize=2` is `-O2`, `--std=c99` is `-std=c99`.
pub fn normalise(flag: &str) -> String {
    for option in ["-D", "-U", "-I", "-L", "-l"] {
        if let Some(value) = flag.strip_prefix(option).and_then(|rest| rest.strip_prefix(' ')) {
            return format!("{option}{}", value.trim_start());
        }
    }
    if let Some(value) = flag.strip_prefix("--param ") {
        return format!("--param={}", value.trim_start());
    }
    if let Some(value) = flag.strip_prefix("--optimize") {
        return format!("-O{}", value.strip_prefix('=').unwrap_or(value));
    }
    match flag {
        "--debug" => "-g".to_owned(),
        "-coverage" => "--coverage".to_owned(),
        "--profile" => "-p".to_owned(),
        "--pedantic" => "-pedantic".to_owned(),
        "--no-warnings" => "-w".to_owned(),
        _ if flag.starts_with("--std=") => flag.trim_start_matches('-').replacen("std=", "-std=", 1),
        _ => flag.to_owned(),
    }
}

/// Whether GCC's options are what `-march=native` expands to, or clang's hold the word itself.
///
/// GCC's driver asks the processor and hands on its cache sizes, which nobody writes by hand, and a long list of
/// what it has and has not. On processors other than x86 the expansion looks like any other `-march`.
pub fn is_native<S: AsRef<str>>(flags: &[S]) -> bool {
    let starts = |prefix: &str| flags.iter().filter(|flag| flag.as_ref().starts_with(prefix)).count();
    let literal = flags.iter().any(|flag| matches!(flag.as_ref(), "-march=native" | "-mcpu=native"));
    literal
        || (starts("--param=l1-cache-size=") + starts("--param l1-cache-size=") > 0 && starts("-mno-") >= 8)
}

/// Options GCC does not record, by exact name, with the kind they are of.
const DROPPED: &[(&str, &[&str])] = &[
    (
        "a link option",
        &[
            "-pie",
            "-no-pie",
            "-static",
            "-static-pie",
            "-shared",
            "-rdynamic",
            "-s",
            "-nostdlib",
            "-nodefaultlibs",
            "-nostartfiles",
            "-static-libgcc",
            "-static-libstdc++",
            "-pthread",
        ],
    ),
    (
        "an option of the driver",
        &[
            "-c",
            "-S",
            "-E",
            "-pipe",
            "-v",
            "-###",
            "-save-temps",
            "-time",
            "-pass-exit-codes",
            "-Q",
            "-fverbose-asm",
        ],
    ),
    ("a warning option", &["-w", "-pedantic", "-pedantic-errors"]),
    (
        "an option of the preprocessor",
        &["-nostdinc", "-nostdinc++", "-M", "-MM", "-MD", "-MMD", "-MP", "-MG"],
    ),
    ("an option about recording", &["-frecord-gcc-switches", "-grecord-gcc-switches", "-fpreprocessed"]),
];

/// Options GCC does not record, by prefix.
const DROPPED_PREFIXES: &[(&str, &[&str])] = &[
    ("a warning option", &["-W"]),
    ("a link option", &["-l", "-L", "-Wl,", "-Xlinker", "-T", "-z "]),
    ("an option of the assembler", &["-Wa,", "-Xassembler"]),
    (
        "an option of the preprocessor",
        &[
            "-I",
            "-isystem",
            "-iquote",
            "-idirafter",
            "-include",
            "-imacros",
            "-isysroot",
            "-iprefix",
            "-Wp,",
            "-MF",
            "-MT",
            "-MQ",
            "-Xpreprocessor",
        ],
    ),
    ("an option of the driver", &["-o ", "-B", "--sysroot", "-specs", "-save-temps=", "-wrapper", "-dump"]),
    ("an option about diagnostics", &["-fdiagnostics-", "-fno-diagnostics-", "-fdump-"]),
    (
        "a mapping of paths",
        &[
            "-fdebug-prefix-map",
            "-ffile-prefix-map",
            "-fmacro-prefix-map",
            "-fprofile-prefix-map",
            "-foffload",
        ],
    ),
];

/// Clang records the command as given, but for options that are another name for a third (measured with clang 14, 16 and 19).
fn by_clang(flag: String, major: Option<u64>) -> String {
    let recorded = match flag.as_str() {
        "-O" if major.is_some_and(|major| major < 11) => "-O2",
        "-O" => "-O1",
        "-fcf-protection" => "-fcf-protection=full",
        "-flto" | "-flto=auto" | "-flto=jobserver" => "-flto=full",
        "-gz" => "-gz=zlib",
        "-ftree-vectorize" => "-fvectorize",
        "-fdiagnostics-color" => "-fcolor-diagnostics",
        "-frecord-gcc-switches" => "-frecord-command-line",
        "-grecord-gcc-switches" => "-grecord-command-line",
        _ => return flag,
    };
    recorded.to_owned()
}

fn by_gcc(flag: &str, major: Option<u64>) -> RecordedForm {
    let flags = |list: &[&str]| RecordedForm::Flags(list.iter().map(|&flag| flag.to_owned()).collect());
    let dropped =
        |what: &str| RecordedForm::NeverRecorded(format!("GCC does not record {what} such as {flag}"));
    if flag.starts_with("-D") || flag.starts_with("-U") {
        let fortify = flag.get(2..).is_some_and(|name| name.starts_with("_FORTIFY_SOURCE"));
        return match major {
            Some(15..) if fortify => flags(&[flag]),
            Some(15..) => RecordedForm::NeverRecorded("GCC records no macro but _FORTIFY_SOURCE".to_owned()),
            Some(_) => RecordedForm::NeverRecorded("GCC before 15 records no macros".to_owned()),
            None => RecordedForm::NeverRecorded(
                "GCC records no macros, but for _FORTIFY_SOURCE since GCC 15".to_owned(),
            ),
        };
    }
    match flag {
        "--coverage" => return flags(&["-fprofile-arcs", "-ftest-coverage"]),
        "-pg" => return flags(&["-p"]),
        "-fcf-protection" => return flags(&["-fcf-protection=full"]),
        "-march=native" | "-mcpu=native" => return RecordedForm::NativeCpu,
        // Only cache sizes are left of it besides the processor's name.
        "-mtune=native" => return flags(&["--param=l1-cache-size=*"]),
        // The driver keeps the number of jobs to itself.
        "-flto=auto" | "-flto=jobserver" => return flags(&["-flto"]),
        _ => {}
    }
    if flag
        .strip_prefix("-flto=")
        .is_some_and(|jobs| !jobs.is_empty() && jobs.bytes().all(|b| b.is_ascii_digit()))
    {
        return flags(&["-flto"]);
    }
    if let Some((what, _)) = DROPPED.iter().find(|(_, names)| names.contains(&flag)) {
        return dropped(what);
    }
    // The longer prefix decides: `-Wl,` is no warning.
    let by_prefix = DROPPED_PREFIXES
        .iter()
        .flat_map(|(what, prefixes)| prefixes.iter().map(move |prefix| (*what, *prefix)))
        .filter(|(_, prefix)| flag.starts_with(prefix))
        .max_by_key(|(_, prefix)| prefix.len());
    by_prefix.map_or_else(|| flags(&[flag]), |(what, _)| dropped(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gcc(written: &str) -> Vec<String> {
        match canonical(written) {
            RecordedForm::Flags(flags) => flags,
            other => panic!("{written}: {other:?}"),
        }
    }

    #[test]
    fn what_gcc_rewrites() {
        // Each seen in the output of gcc 11 and 12 for that option.
        for (written, recorded) in [
            ("--coverage", vec!["-fprofile-arcs", "-ftest-coverage"]),
            ("-coverage", vec!["-fprofile-arcs", "-ftest-coverage"]),
            ("-pg", vec!["-p"]),
            ("-p", vec!["-p"]),
            ("-fcf-protection", vec!["-fcf-protection=full"]),
            ("-fcf-protection=none", vec!["-fcf-protection=none"]),
            ("--param max-inline-insns-single=10", vec!["--param=max-inline-insns-single=10"]),
            ("--optimize=3", vec!["-O3"]),
            ("--optimize", vec!["-O"]),
            ("--std=c99", vec!["-std=c99"]),
            ("--debug", vec!["-g"]),
            ("-flto=auto", vec!["-flto"]),
            ("-flto=4", vec!["-flto"]),
            ("-flto", vec!["-flto"]),
            ("-fsanitize=*", vec!["-fsanitize=*"]),
            ("-fstack-protector-strong", vec!["-fstack-protector-strong"]),
            ("-fuse-ld=gold", vec!["-fuse-ld=gold"]),
            ("-fmessage-length=0", vec!["-fmessage-length=0"]),
            ("-m64", vec!["-m64"]),
        ] {
            assert_eq!(gcc(written), recorded, "{written}");
        }
        assert_eq!(canonical("-march=native"), RecordedForm::NativeCpu);
    }

    #[test]
    fn what_gcc_drops() {
        for (written, word) in [
            ("-DNDEBUG", "macro"),
            ("-D NDEBUG", "macro"),
            ("-Wall", "warning"),
            ("-W*", "warning"),
            ("-w", "warning"),
            ("-Wl,-z,relro", "link"),
            ("-lm", "link"),
            ("-pie", "link"),
            ("-pthread", "link"),
            ("-I/usr/include", "preprocessor"),
            ("-isystem /x", "preprocessor"),
            ("-pipe", "driver"),
            ("-ffile-prefix-map=a=b", "paths"),
            ("-fdiagnostics-color", "diagnostics"),
            ("-Wa,--noexecstack", "assembler"),
        ] {
            match canonical(written) {
                RecordedForm::NeverRecorded(why) => assert!(why.contains(word), "{written}: {why}"),
                other => panic!("{written}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_compiler_and_its_version_count() {
        let fortify = "-D_FORTIFY_SOURCE=3";
        let flags = RecordedForm::Flags(vec![fortify.to_owned()]);
        assert_eq!(recorded_by(fortify, Family::Gcc, Some(15)), flags);
        assert_eq!(normalise("-D _FORTIFY_SOURCE=3"), fortify);
        assert!(matches!(recorded_by(fortify, Family::Gcc, Some(14)), RecordedForm::NeverRecorded(_)));
        assert!(matches!(recorded_by("-DX", Family::Gcc, Some(15)), RecordedForm::NeverRecorded(_)));
        assert_eq!(recorded_by(fortify, Family::Clang, Some(19)), flags);
        assert_eq!(recorded_by("-pg", Family::Clang, None), RecordedForm::Flags(vec!["-pg".to_owned()]));
        assert_eq!(
            recorded_by("-march=native", Family::Clang, None),
            RecordedForm::Flags(vec!["-march=native".to_owned()])
        );
        assert_eq!(recorded_by("-O", Family::Clang, Some(19)), RecordedForm::Flags(vec!["-O1".to_owned()]));
        assert_eq!(
            recorded_by("-flto", Family::Clang, Some(14)),
            RecordedForm::Flags(vec!["-flto=full".to_owned()])
        );
        assert!(matches!(recorded_by("-O2", Family::Rustc, None), RecordedForm::NeverRecorded(_)));
    }

    #[test]
    fn native_is_told_from_a_named_processor() {
        let tail = "-mno-sse4a -mno-fma4 -mno-xop -mno-avx512f -mno-avx512bw -mno-avx512cd -mno-avx512dq -mno-avx512vl \
                    --param=l1-cache-size=32 --param=l1-cache-line-size=64 -mtune=znver3 -O2";
        let native: Vec<&str> =
            "-march=znver3 -mmmx -mpopcnt".split(' ').chain(tail.split_whitespace()).collect();
        assert!(is_native(&native));
        assert!(is_native(&["-O2", "-march=native"]));
        assert!(!is_native(&["-march=znver3", "-mno-avx512f", "-O2"]));
        // -mtune=native alone leaves the cache sizes, and code that runs anywhere.
        assert!(!is_native(&["--param=l1-cache-size=48", "-mtune=znver3", "-march=x86-64"]));
    }
}
