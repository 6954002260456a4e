//! What optimization level the configure arguments stand for, and why.
//!
//! nginx compiles with `-pipe -O … -g` followed by the value of `--with-cc-opt`; the last `-O` wins, so a plain
//! `./configure` gives `-O1` (`auto/cc/gcc`, `auto/cc/clang`, unchanged from 1.0.0 to 1.31.4). If the environment
//! variable `CFLAGS` is set, it replaces all that (`auto/cc/conf`) and is recorded nowhere; before 1.29.4 the
//! `built by` line was missing in that case.

use super::configure::last_value;
use super::version::{self, Family, Version};
use crate::compiler::Level;
use crate::compiler::options::{self, WithoutLevel, split_shell};
use crate::facts::{ConfigureArgument, Product};
use std::fmt::Write as _;

/// A declared level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The level; `Unknown` where the arguments do not tell.
    pub level: Level,
    /// Compiler options declared, in order of effect.
    pub flags: Vec<String>,
    /// `-O` options given and overridden by a later one.
    pub overridden: Vec<String>,
    /// One sentence: how the level follows, or why it does not.
    pub why: String,
    /// The argument it rests on, as it stands in the text; `None` where it rests on what is not there.
    pub quote: Option<String>,
}

/// The level that words of a command line ask for; `Unknown` if none does.
fn level_word(flags: &[String]) -> options::LevelWord {
    options::level(&options::group(flags), WithoutLevel::Unknown("no -O"))
}

/// The level of words that hold an `-O`.
fn declared_level(flags: &[String]) -> Option<Level> {
    Some(level_word(flags).level).filter(|level| *level != Level::Unknown)
}

/// The level the arguments declare for the program's own code.
///
/// `compiler_line` is the text after `built by`.
pub fn declared(
    arguments: &[ConfigureArgument],
    product: Option<&Product>,
    compiler_line: Option<&str>,
) -> Declared {
    let option = last_value(arguments, "--with-cc-opt");
    let flags = option.map(split_shell).unwrap_or_default();
    let quote = option.map(|value| quoted("--with-cc-opt", value));
    let own = own_options(product, compiler_line);
    let word = level_word(&flags);
    if let Some(open) = open_word(&flags) {
        let why = format!("{open} in --with-cc-opt stands for words that are not in the text");
        return Declared { level: Level::Unknown, flags, overridden: Vec::new(), why, quote };
    }
    if let Some(winner) = word.winner {
        let mut overridden = word.overridden;
        if own == Own::Bare {
            overridden.insert(0, "-O".to_owned());
        }
        let why = match overridden.as_slice() {
            [] => format!("{winner} is given in --with-cc-opt"),
            list => format!("the last -O wins: {winner} overrides {}", list.join(" ")),
        };
        return Declared { level: word.level, flags, overridden, why, quote };
    }
    // The compiler's name may carry options of its own: --with-cc='gcc -O0'.
    let in_cc = last_value(arguments, "--with-cc").map(split_shell).unwrap_or_default();
    let in_cc_level = declared_level(&in_cc);
    let (level, why) = match (own, in_cc_level) {
        (Own::Bare, _) => {
            let mut why = "no -O in --with-cc-opt: nginx's own bare -O is in force, which is -O1".to_owned();
            if clang_before_11(compiler_line) {
                why.push_str(" (this clang takes bare -O for -O2)");
            }
            if let Some(earlier) = replaced(arguments) {
                let _ = write!(why, "; the last --with-cc-opt replaces {earlier}");
            }
            (Level::O1, why)
        }
        (Own::Other(name), _) => {
            (Level::Unknown, format!("no -O in --with-cc-opt, and nginx's own options for {name} are not of that kind"))
        }
        (Own::Replaced | Own::Maybe, Some(_)) => (
            Level::Unknown,
            "an -O stands only in --with-cc, where the environment variable CFLAGS or nginx's own -O come after it".to_owned(),
        ),
        (Own::Replaced, None) => (
            Level::Unknown,
            "no -O in --with-cc-opt, and no `built by` line: the environment variable CFLAGS replaced nginx's own -O and is recorded nowhere"
                .to_owned(),
        ),
        (Own::Maybe, None) => (
            Level::Unknown,
            "no -O in --with-cc-opt: nginx's own -O is in force unless the environment variable CFLAGS was set, which nothing in this version's text shows"
                .to_owned(),
        ),
    };
    Declared { level, flags, overridden: Vec::new(), why, quote: None }
}

/// The last argument that held a `-O` and was given again later, which makes it one without effect (`auto/options`).
fn replaced(arguments: &[ConfigureArgument]) -> Option<String> {
    let name = "--with-cc-opt";
    let values = arguments.iter().filter(|argument| argument.name == name).filter_map(|a| a.value.as_deref());
    let earlier: Vec<&str> = values.collect();
    let (_, earlier) = earlier.split_last()?;
    let value = earlier.iter().rev().find(|value| declared_level(&split_shell(value)).is_some())?;
    Some(quoted(name, value))
}

/// A word that stands for others, which may hold a `-O`: a file of options (`@FILE`), a variable that `make` or the shell
/// replaces, the output of a command. Before the last `-O` it does not matter.
fn open_word(flags: &[String]) -> Option<&str> {
    let open =
        |flag: &&String| flag.starts_with('@') || ["$(", "${", "`"].iter().any(|mark| flag.contains(mark));
    let last = flags.iter().rposition(|flag| open(&flag))?;
    let after = flags.get(last + 1..).unwrap_or_default();
    declared_level(after).is_none().then(|| flags.get(last).map(String::as_str)).flatten()
}

/// An argument as `configure` writes it.
pub fn quoted(name: &str, value: &str) -> String {
    if value.contains(' ') { format!("{name}='{value}'") } else { format!("{name}={value}") }
}

/// What is known of the options nginx itself put before `--with-cc-opt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    /// Its bare `-O`.
    Bare,
    /// Options of another kind, for that compiler.
    Other(&'static str),
    /// Replaced by `CFLAGS`.
    Replaced,
    /// One of the two.
    Maybe,
}

/// Whether the `built by` line is missing where `CFLAGS` was set. nginx prints it in any case since 1.29.4, Angie reads
/// the compiler's version apart from its options since 1.7.0.
fn line_tells(product: Option<&Product>) -> bool {
    let own: Option<Version> = product.and_then(|p| p.version.as_deref()).and_then(|v| v.parse().ok());
    match version::family(product) {
        Family::Angie => own.is_some_and(|v| v < Version(1, 7, 0)),
        Family::Freenginx => false,
        Family::Nginx | Family::Tengine => {
            version::nginx_version(product).is_some_and(|v| v < Version(1, 29, 4))
        }
    }
}

fn own_options(product: Option<&Product>, compiler_line: Option<&str>) -> Own {
    let line_tells = line_tells(product);
    match compiler_line {
        Some(line) if line.starts_with("Sun C") => Own::Other("Sun C"),
        // `auto/cc/msvc` gives -O2; Intel's compiler takes the bare -O of `auto/cc/icc` for -O2.
        Some(line) if line == "cl" || line.starts_with("cl ") => Own::Other("Microsoft C"),
        Some(line) if line.starts_with("Intel C") => Own::Other("Intel C"),
        Some(_) if line_tells => Own::Bare,
        None if line_tells => Own::Replaced,
        _ => Own::Maybe,
    }
}

fn clang_before_11(compiler_line: Option<&str>) -> bool {
    matches!(compiler(compiler_line.unwrap_or_default()), Some(("clang", Some(v)))
        if v.split('.').next().and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major < 11))
}

/// Compiler family and version in the text after `built by`. The version is `None` where the text is not of the
/// usual form: `auto/cc` takes it with a pattern that can hit other lines of `gcc -v`.
pub fn compiler(line: &str) -> Option<(&'static str, Option<&str>)> {
    const NAMES: [(&str, &str); 6] = [
        ("gcc ", "gcc"),
        ("clang ", "clang"),
        ("Intel C Compiler ", "icc"),
        ("Sun C ", "suncc"),
        ("cl ", "msvc"),
        ("LLVM ", "clang"),
    ];
    let line = line.trim();
    let (family, rest) =
        NAMES.iter().find_map(|(prefix, family)| Some((*family, line.strip_prefix(prefix)?)))?;
    // Where that pattern hit `Configured with:`, the line it was meant for may stand behind it.
    let own_line = line.lines().skip(1).find_map(|line| line.trim().strip_prefix("gcc version "));
    let rest = own_line.unwrap_or(rest);
    let word = rest.split_whitespace().next().unwrap_or_default();
    let is_version = word.starts_with(|c: char| c.is_ascii_digit())
        && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let one_line = !rest.contains(['\n', '\r']) && !rest.contains("gcc version");
    Some((family, (is_version && one_line).then_some(word)))
}

/// The level the arguments declare for a library that nginx builds along with itself
/// (`--with-zlib=DIR`, `--with-pcre=DIR`, `--with-openssl=DIR`).
///
/// For zlib and PCRE nginx passes `-O2` itself, and `--with-zlib-opt` or `--with-pcre-opt` replaces that (`auto/cc/gcc`),
/// so an option without `-O` gives an unoptimized library (measured on zlib 1.2.13).
pub fn bundled_libraries(arguments: &[ConfigureArgument]) -> Vec<(&'static str, Declared)> {
    let mut out = Vec::new();
    for (library, at, with_options) in [
        ("zlib", "--with-zlib", "--with-zlib-opt"),
        ("pcre", "--with-pcre", "--with-pcre-opt"),
        ("openssl", "--with-openssl", "--with-openssl-opt"),
    ] {
        if last_value(arguments, at).is_none_or(|dir| dir.is_empty() || dir == "YES") {
            continue;
        }
        let option = last_value(arguments, with_options).filter(|value| !value.is_empty());
        let flags = option.map(split_shell).unwrap_or_default();
        let (level, why) = match (library, declared_level(&flags), option) {
            (_, Some(level), _) => (level, format!("the last -O in {with_options}")),
            ("openssl", None, _) if flags.iter().any(|f| f == "-d" || f == "--debug") => {
                (Level::O0, "OpenSSL's own debug build is asked for".to_owned())
            }
            ("openssl", None, _) => (Level::O3, "OpenSSL's own default".to_owned()),
            (_, None, None) => (Level::O2, format!("nginx passes -O2 as {with_options} is not given")),
            (_, None, Some(_)) => (
                Level::O0,
                format!("{with_options} replaces the -O2 that nginx passes, and holds no -O itself"),
            ),
        };
        let quote = option.map(|value| quoted(with_options, value));
        out.push((library, Declared { level, flags, overridden: Vec::new(), why, quote }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx::configure::parse;

    const GCC: Option<&str> = Some("gcc 12.2.0 (Debian 12.2.0-14+deb12u1) ");
    const V1_22: &str = "nginx version: nginx/1.22.1";

    fn read(text: &str, version_line: &str, line: Option<&str>) -> Declared {
        let product = version::product(&[version_line]);
        declared(&parse(text).list, product.as_ref(), line)
    }

    fn level(text: &str, version_line: &str, line: Option<&str>) -> Level {
        read(text, version_line, line).level
    }

    #[test]
    fn the_last_level_wins() {
        let d = read("--with-cc-opt='-O2 -O0'", V1_22, GCC);
        assert_eq!((d.level, d.overridden.join(" ")), (Level::O0, "-O -O2".to_owned()));
        assert_eq!(d.quote.as_deref(), Some("--with-cc-opt='-O2 -O0'"));
        assert_eq!(level("--with-cc-opt=-O0 --with-cc-opt=-O3", V1_22, GCC), Level::O3);
        assert_eq!(level("--with-cc-opt='-O0 -g -DX=1'", "", None), Level::O0);
        for (flag, want) in [
            ("-O", Level::O1),
            ("-O9", Level::O3),
            ("-Og", Level::Og),
            ("-Ofast", Level::Ofast),
            ("-Oz", Level::Oz),
        ] {
            assert_eq!(level(&format!("--with-cc-opt={flag}"), "", None), want);
        }
    }

    #[test]
    fn what_only_looks_like_a_level() {
        assert_eq!(level("--with-cc-opt='-DX=-O0 -Wl,-O1 -I -O0 -DY='-O0 b' -O2'", V1_22, GCC), Level::O2);
        assert_eq!(level("--with-ld-opt=-O0", V1_22, GCC), Level::O1);
    }

    #[test]
    fn nginx_itself_compiles_with_a_bare_o_unless_cflags_was_set() {
        assert_eq!(level("--with-debug", V1_22, GCC), Level::O1);
        assert_eq!(level("--with-debug", V1_22, None), Level::Unknown);
        assert_eq!(level("", "nginx version: nginx/1.29.4", GCC), Level::Unknown);
        assert_eq!(level("", "", GCC), Level::Unknown);
        assert_eq!(level("", "Angie version: Angie/1.4.1", GCC), Level::O1);
        assert_eq!(level("", "Angie version: Angie/1.11.0", GCC), Level::Unknown);
        assert_eq!(level("", "nginx version: openresty/1.27.1.2", GCC), Level::O1);
        assert!(read("", V1_22, None).why.contains("CFLAGS"));
        assert!(read("", V1_22, Some("clang 10.0.1")).why.contains("-O2"));
    }

    #[test]
    fn options_of_other_compilers_are_not_gccs() {
        for line in ["cl", "cl 19.29.30148 for x64", "Intel C Compiler 15.0.2", "Sun C 5.12"] {
            let said = read("--with-debug", V1_22, Some(line));
            assert_eq!(said.level, Level::Unknown, "{line}");
            assert!(said.why.contains("nginx's own options for"), "{}", said.why);
            assert_eq!(level("--with-cc-opt=-O1", V1_22, Some(line)), Level::O1, "{line}");
        }
        assert_eq!(level("--with-debug", V1_22, Some("clang 16.0.6")), Level::O1);
    }

    #[test]
    fn an_argument_that_a_later_one_replaces_is_named() {
        let said = read("--with-cc-opt='-O0 -g' --with-cc-opt=-Wno-error", V1_22, GCC);
        assert_eq!((said.level, said.quote.as_deref()), (Level::O1, None));
        assert!(
            said.why.ends_with("; the last --with-cc-opt replaces --with-cc-opt='-O0 -g'"),
            "{}",
            said.why
        );
        assert!(!read("--with-cc-opt=-g --with-cc-opt=-pipe", V1_22, GCC).why.contains("replaces"));
    }

    #[test]
    fn words_that_stand_for_others_leave_the_level_open() {
        for opt in
            ["'-O2 @/etc/flags'", "'$(OPT) -g'", "'-O2 ${EXTRA}'", "$(OPT)", "'-O2 `cat opt`'", "`opt`"]
        {
            let said = read(&format!("--with-cc-opt={opt}"), V1_22, GCC);
            assert_eq!(said.level, Level::Unknown, "{opt}");
            assert!(said.why.contains("stands for words"), "{}", said.why);
        }
        assert_eq!(
            level("--with-cc-opt='$(EXTRA) @x -O2'", V1_22, GCC),
            Level::O2,
            "the last -O comes after them"
        );
        assert_eq!(level("--with-cc-opt='`cat opt` -O2'", V1_22, GCC), Level::O2);
        assert_eq!(level("--with-cc-opt='-O2 -Wl,-rpath,$ORIGIN -DX=a@b'", V1_22, GCC), Level::O2);
    }

    #[test]
    fn the_compilers_name() {
        assert_eq!(compiler("gcc 12.2.0 (Debian 12.2.0-14+deb12u1) "), Some(("gcc", Some("12.2.0"))));
        assert_eq!(compiler("clang 14.0.6"), Some(("clang", Some("14.0.6"))));
        assert_eq!(compiler("gcc --enable-languages=c gcc version 13"), Some(("gcc", None)));
        assert_eq!(compiler("gcc 13.2.0\n12.1.0"), Some(("gcc", None)));
        assert_eq!(compiler("something else"), None);
    }

    #[test]
    fn libraries_built_along() {
        let get = |text: &str| {
            let list = bundled_libraries(&parse(text).list);
            list.into_iter().map(|(name, d)| (name, d.level)).collect::<Vec<_>>()
        };
        assert_eq!(get("--with-zlib=/src/zlib --with-pcre"), [("zlib", Level::O2)]);
        assert_eq!(get("--with-zlib=/src/zlib --with-zlib-opt=-fPIC"), [("zlib", Level::O0)]);
        assert_eq!(get("--with-pcre=/p --with-pcre-opt='-g -O2'"), [("pcre", Level::O2)]);
        assert_eq!(get("--with-openssl=/o --with-openssl-opt='no-asm --debug'"), [("openssl", Level::O0)]);
    }
}
