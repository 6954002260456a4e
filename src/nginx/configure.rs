//! The text that nginx's `./configure` leaves in the program, taken apart.
//!
//! `auto/options` joins the arguments by one space. An argument that holds a space after its first
//! `=` has everything after that `=` put in single quotes; quotes inside are not escaped. So the
//! text alone is ambiguous, and what decides is that `configure` refuses options it does not know:
//! a closing quote is one that is followed by the end of the text or by a known option.

use super::catalogue;
use crate::facts::ConfigureArgument;
use std::collections::HashSet;

/// The arguments, and what was odd about the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// In the order of the text; repeated ones are kept.
    pub list: Vec<ConfigureArgument>,
    /// Whether the text ended inside a quoted value (it was cut).
    pub unterminated: bool,
}

/// Long options of compilers and linkers, which may stand inside an unquoted value of old versions.
const COMPILER_LONG_OPTIONS: [&str; 7] =
    ["--param", "--sysroot", "--coverage", "--std", "--target", "--gcc-toolchain", "--verbose"];

/// Takes the text after `configure arguments:` apart. An empty text gives an empty list.
pub fn parse(text: &str) -> Arguments {
    let mut out = Arguments::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let name_end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (name, after) = rest.split_at(name_end);
        let Some(value) = after.strip_prefix('=') else {
            push(&mut out, name, None);
            rest = after.trim_start();
            continue;
        };
        // nginx itself writes single quotes; double ones are of whoever typed the text.
        let quote = value.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let (value, left) = match quote {
            Some(quote) => {
                let (value, left, closed) = quoted_value(value.get(1..).unwrap_or_default(), quote);
                out.unterminated |= !closed;
                (value, left)
            }
            None => bare_value(name, value),
        };
        push(&mut out, name, Some(value));
        rest = left.trim_start();
    }
    out
}

/// A word that is no option can only belong to the value before it: versions before 0.7.53 put no quotes.
fn push(out: &mut Arguments, name: &str, value: Option<&str>) {
    if !name.starts_with('-')
        && let Some(ConfigureArgument { value: Some(last), .. }) = out.list.last_mut()
    {
        last.push(' ');
        last.push_str(name);
        if let Some(value) = value {
            last.push('=');
            last.push_str(value);
        }
        return;
    }
    out.list.push(ConfigureArgument { name: name.to_owned(), value: value.map(str::to_owned) });
}

/// Splits at the closing quote. Returns the value, the rest, and whether the quote was closed.
fn quoted_value(text: &str, quote: char) -> (&str, &str, bool) {
    for (inner_quotes, (at, _)) in text.match_indices(quote).enumerate() {
        let after = &text[at + 1..];
        let follows = after.trim_start();
        let closes = follows.is_empty()
            || (follows.len() < after.len()
                && match option_name(follows) {
                    None => false,
                    Some(name) if catalogue::is_configure_option(name) => true,
                    // An option of a patched `configure`: believed if the quotes inside the value pair up.
                    Some(name) => looks_like_configure_option(name) && inner_quotes.is_multiple_of(2),
                });
        if closes {
            return (&text[..at], after, true);
        }
    }
    (text.trim_end(), "", false)
}

/// A value without quotes ends at the next space, except in texts of versions that never quoted.
fn bare_value<'a>(name: &str, text: &'a str) -> (&'a str, &'a str) {
    let takes_flags = name.ends_with("-opt");
    let mut end = text.find(char::is_whitespace).unwrap_or(text.len());
    loop {
        let rest = &text[end..];
        let next = rest.trim_start();
        let stops = !takes_flags
            || next.is_empty()
            || option_name(next).is_some_and(|n| n.starts_with("--") && !COMPILER_LONG_OPTIONS.contains(&n));
        if stops {
            return text.split_at(end);
        }
        let next_at = text.len() - next.len();
        end = next.find(char::is_whitespace).map_or(text.len(), |n| next_at + n);
    }
}

/// The word up to `=` or a space, if it begins like an option of `configure`.
fn option_name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(text.len());
    let name = &text[..end];
    let body = name.strip_prefix("--")?;
    body.starts_with(|c: char| c.is_ascii_lowercase()).then_some(name)
}

/// The families of names nginx and its forks use for their options.
fn looks_like_configure_option(name: &str) -> bool {
    ["--with-", "--without-", "--add-", "--http-"].iter().any(|p| name.starts_with(p))
        || name.ends_with("-path")
}

/// Options that `configure` adds up; of every other one that is given twice the last counts (`auto/options`).
const ADDED_UP: [&str; 2] = ["--add-module", "--add-dynamic-module"];

/// The arguments in force, in their order: those that no later one replaces.
pub fn in_force(arguments: &[ConfigureArgument]) -> Vec<&ConfigureArgument> {
    let mut later = HashSet::new();
    let mut list: Vec<&ConfigureArgument> = arguments
        .iter()
        .rev()
        .filter(|a| later.insert(a.name.as_str()) || ADDED_UP.contains(&a.name.as_str()))
        .collect();
    list.reverse();
    list
}

/// The value in force of an option that replaces earlier ones. `None` if it was not given.
pub fn last_value<'a>(arguments: &'a [ConfigureArgument], name: &str) -> Option<&'a str> {
    arguments.iter().rev().find(|a| a.name == name)?.value.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, Option<String>)> {
        parse(text).list.into_iter().map(|a| (a.name, a.value)).collect()
    }

    fn arg(name: &str, value: Option<&str>) -> (String, Option<String>) {
        (name.to_owned(), value.map(str::to_owned))
    }

    #[test]
    fn a_compilers_long_option_does_not_end_the_value() {
        let text = " --with-threads --with-cc-opt='-g -O2 --param=ssp-buffer-size=4 -Wformat' --with-ld-opt='-Wl,-z,relro'";
        assert_eq!(
            pairs(text),
            [
                arg("--with-threads", None),
                arg("--with-cc-opt", Some("-g -O2 --param=ssp-buffer-size=4 -Wformat")),
                arg("--with-ld-opt", Some("-Wl,-z,relro")),
            ]
        );
    }

    #[test]
    fn quotes_are_notation_and_not_part_of_the_value() {
        assert_eq!(
            pairs("--with-ld-opt=-Wl,-rpath,/usr/local/lib"),
            pairs("--with-ld-opt='-Wl,-rpath,/usr/local/lib'")
        );
    }

    #[test]
    fn double_quotes_of_a_typed_command_are_notation_too() {
        assert_eq!(
            pairs("--with-cc-opt=\"-g -DX='a b' -O0\" --with-threads"),
            [arg("--with-cc-opt", Some("-g -DX='a b' -O0")), arg("--with-threads", None)]
        );
        assert_eq!(pairs("--with-cc-opt='-DX=\"a b\" -O0'"), [arg("--with-cc-opt", Some("-DX=\"a b\" -O0"))]);
    }

    #[test]
    fn inner_quotes_are_not_escaped_by_configure() {
        assert_eq!(
            pairs("--with-cc-opt='-DX='a b' --param=n=4 -DY='c d' -O2' --with-threads"),
            [arg("--with-cc-opt", Some("-DX='a b' --param=n=4 -DY='c d' -O2")), arg("--with-threads", None)]
        );
        assert_eq!(pairs("--with-cc-opt='-DX='a b''"), [arg("--with-cc-opt", Some("-DX='a b'"))]);
        assert_eq!(
            pairs("--with-openssl-opt='-DX='a b' --with-rand-seed=os' --prefix=/x"),
            [arg("--with-openssl-opt", Some("-DX='a b' --with-rand-seed=os")), arg("--prefix", Some("/x"))]
        );
    }

    #[test]
    fn empty_values_repeated_options_and_options_of_patched_configures() {
        assert_eq!(
            pairs(
                " --with-cc-opt= --with-ld-opt='-a b' --with-own_thing=x --with-ld-opt=-c --add-module=/é/x"
            ),
            [
                arg("--with-cc-opt", Some("")),
                arg("--with-ld-opt", Some("-a b")),
                arg("--with-own_thing", Some("x")),
                arg("--with-ld-opt", Some("-c")),
                arg("--add-module", Some("/é/x")),
            ]
        );
        assert_eq!(last_value(&parse("--a=1 --a=2 --b").list, "--a"), Some("2"));
        let list =
            parse("--with-x --add-module=a --with-cc-opt=-O2 --add-module=b --with-cc-opt= --with-x").list;
        let shown = |a: &&ConfigureArgument| format!("{}={}", a.name, a.value.as_deref().unwrap_or("-"));
        let shown: Vec<String> = in_force(&list).iter().map(shown).collect();
        assert_eq!(shown, ["--add-module=a", "--add-module=b", "--with-cc-opt=", "--with-x=-"]);
    }

    #[test]
    fn a_path_is_taken_whole_and_exactly() {
        let list = parse("--conf-path=/etc/nginx/nginx.conf --with-cc-opt='-DX=/tmp/a.conf -O2'").list;
        assert_eq!(last_value(&list, "--conf-path"), Some("/etc/nginx/nginx.conf"));
    }

    #[test]
    fn versions_that_never_quoted() {
        assert_eq!(
            pairs("--prefix=/x --with-cc-opt=-O2 -g --param=n=4 -DA=b --with-debug"),
            [
                arg("--prefix", Some("/x")),
                arg("--with-cc-opt", Some("-O2 -g --param=n=4 -DA=b")),
                arg("--with-debug", None)
            ]
        );
    }

    #[test]
    fn no_arguments_is_an_empty_list_and_a_cut_text_says_so() {
        assert_eq!(parse(""), Arguments::default());
        assert_eq!(parse(" \n"), Arguments::default());
        let cut = parse("--with-cc-opt='-O2 -g");
        assert!(cut.unterminated);
        assert_eq!(cut.list[0].value.as_deref(), Some("-O2 -g"));
    }

    /// What `auto/options` does with one argument.
    fn as_configure_writes(name: &str, value: &str) -> String {
        if value.contains(' ') { format!(" {name}='{value}'") } else { format!(" {name}={value}") }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            parse(&text);
        }

        #[test]
        fn what_configure_writes_is_read_back(values in proptest::collection::vec("[-a-zA-Z0-9=,./_é]([-a-zA-Z0-9=,./_é ]{0,20}[a-z])?", 1..6)) {
            let names = ["--with-cc-opt", "--with-ld-opt", "--prefix", "--add-module"];
            // Runs of spaces collapse in configure itself, and a value cannot hold a known option.
            let values: Vec<String> = values.iter().map(|v| v.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            let text: String = values.iter().enumerate().map(|(i, v)| as_configure_writes(names[i % 4], v)).collect();
            let want: Vec<_> = values.iter().enumerate().map(|(i, v)| arg(names[i % 4], Some(v))).collect();
            prop_assert_eq!(pairs(&text), want);
        }
    }
}
