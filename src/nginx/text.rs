//! The text that `nginx -V` prints, on standard input or in a file.

use super::configure::{self, Arguments};
use super::version;
use crate::facts::{OpenSsl, Product};
use std::borrow::Cow;

/// How far a text is searched for the lines that make it one of these.
const LOOKED_AT: usize = 64 << 10;

/// Most lines joined to one text of arguments.
const MAX_CONTINUATIONS: usize = 200;

/// Beginnings of the lines that programs of the family print.
const LINES: [&str; 9] = [
    "nginx version: ",
    "Angie version: ",
    "Tengine version: ",
    "built by ",
    "built on ",
    "built with ",
    "TLS SNI support ",
    "configure arguments:",
    "loaded modules:",
];

/// What such a text says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionText {
    /// The program; `None` where no version line is there.
    pub product: Option<Product>,
    /// The lines the product was read from.
    pub version_lines: Vec<String>,
    /// After `built by`, as it stands.
    pub compiler_line: Option<String>,
    /// The `built with` line.
    pub openssl_line: Option<String>,
    /// Read from that line.
    pub openssl: OpenSsl,
    /// `TLS SNI support enabled`.
    pub tls_sni: Option<bool>,
    /// After `configure arguments:`, as it stands.
    pub configure_raw: Option<String>,
    /// The same taken apart.
    pub arguments: Option<Arguments>,
    /// A line that says something else than an earlier one of its kind, and that one: the text is of two programs.
    pub contradiction: Option<(String, String)>,
}

/// Notes the first two lines of one kind that differ. The same line twice is the same text twice.
fn note<T: AsRef<str>>(
    contradiction: &mut Option<(String, String)>,
    before: Option<&T>,
    now: &str,
    begins: &str,
) {
    if let Some(before) = before.map(AsRef::as_ref).filter(|before| before.trim() != now.trim()) {
        contradiction
            .get_or_insert_with(|| (format!("{begins}{}", before.trim()), format!("{begins}{}", now.trim())));
    }
}

/// Whether bytes are the text that `nginx -V` prints (of any product of the family), by a line that begins
/// like one of its own. Binary data never is.
pub fn looks_like_version_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    if memchr::memchr(0, head).is_some() {
        return false;
    }
    without_marks(&String::from_utf8_lossy(head)).lines().any(|line| {
        let line = own_line(line);
        let names_program = ["nginx version: ", "Angie version: ", "Tengine version: "]
            .iter()
            .any(|prefix| line.strip_prefix(prefix).is_some_and(|rest| rest.contains('/')));
        names_program || line.starts_with("configure arguments:")
    })
}

/// The text without what editors and terminals put into it: a byte order mark, and colours (`ESC [ … m`).
fn without_marks(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.map(|end| part.split_at(end)) {
            Some((_, rest)) if rest.starts_with(['m', 'K']) => out.push_str(&rest[1..]),
            _ => {
                out.push_str("\u{1b}[");
                out.push_str(part);
            }
        }
    }
    Cow::Owned(out)
}

/// A line of arguments without the mark that the next one continues it.
fn without_continuation(line: &str) -> &str {
    let line = line.trim_end();
    match line.strip_suffix('\\') {
        Some(rest) if rest.is_empty() || rest.ends_with(char::is_whitespace) => rest.trim_end(),
        _ => line,
    }
}

/// The line without what old versions put before each, and without blanks around it.
fn own_line(line: &str) -> &str {
    let line = line.trim();
    match line.strip_prefix("nginx: ") {
        Some(rest) if LINES.iter().any(|prefix| rest.starts_with(prefix)) => rest,
        _ => line,
    }
}

/// Takes such a text apart. Lines that belong to none of its parts are passed over.
pub fn parse(text: &str) -> VersionText {
    let mut out = VersionText::default();
    let text = without_marks(text);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = own_line(line);
        let contradiction = &mut out.contradiction;
        let version = ["nginx version: ", "Angie version: ", "Tengine version: "];
        if let Some(begins) = version.iter().find(|begins| line.starts_with(**begins)) {
            let before = out.version_lines.iter().find(|before| before.starts_with(begins));
            note(contradiction, before, line, "");
            out.version_lines.push(line.to_owned());
        } else if let Some(rest) = line.strip_prefix("built by ") {
            let mut rest = rest.trim().to_owned();
            // The compiler's name can hold a line break; it is kept as it stands.
            while let Some(next) = lines.next_if(|next| !begins_a_part(next) && !next.trim().is_empty()) {
                rest.push('\n');
                rest.push_str(next.trim());
            }
            note(contradiction, out.compiler_line.as_ref(), &rest, "built by ");
            out.compiler_line = Some(rest);
        } else if let Some(rest) = line.strip_prefix("built with ") {
            note(contradiction, out.openssl_line.as_ref(), rest, "built with ");
            out.openssl = openssl(rest);
            out.openssl_line = Some(rest.trim().to_owned());
        } else if let Some(rest) = line.strip_prefix("TLS SNI support ") {
            out.tls_sni = Some(rest.trim() == "enabled");
        } else if let Some(rest) = line.strip_prefix("configure arguments:") {
            let mut raw = without_continuation(rest).to_owned();
            let mut arguments = configure::parse(&raw);
            // A value that is still open, or a line of further options, was broken by whatever carried the text here.
            let mut left = MAX_CONTINUATIONS;
            while let Some(next) = lines.next_if(|next| {
                left > 0
                    && !begins_a_part(next)
                    && (arguments.unterminated || next.trim_start().starts_with("--"))
            }) {
                left -= 1;
                raw.push(' ');
                raw.push_str(without_continuation(next).trim_start());
                arguments = configure::parse(&raw);
            }
            note(contradiction, out.configure_raw.as_ref(), &raw, "configure arguments: ");
            out.arguments = Some(arguments);
            out.configure_raw = Some(raw);
        }
    }
    out.product = version::product(&out.version_lines);
    out
}

fn begins_a_part(line: &str) -> bool {
    let line = own_line(line);
    LINES.iter().any(|prefix| line.starts_with(prefix))
}

/// Reads what follows `built with `: `OpenSSL 1.1.1n  15 Mar 2022 (running with OpenSSL 1.1.1d  10 Sep 2019)`.
/// For OpenSSL itself the version alone is kept, for its forks their name too.
pub fn openssl(text: &str) -> OpenSsl {
    let (built, running) = match text.split_once("running with ") {
        Some((built, running)) => {
            (built.trim_end().trim_end_matches(['(', ',']).trim(), Some(running.trim().trim_end_matches(')')))
        }
        None => (text.trim(), None),
    };
    OpenSsl { built: library_version(built), running: running.and_then(library_version) }
}

fn library_version(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    let version = words.next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    Some(match (name, version) {
        ("OpenSSL", Some(version)) => version.to_owned(),
        (name, Some(version)) => format!("{name} {version}"),
        (_, None) => text.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debian_like_text() {
        let text = "nginx version: nginx/1.22.1\nbuilt by gcc 12.2.0 (Debian 12.2.0-14+deb12u1) \nbuilt with OpenSSL 3.0.22 25 Aug 2026\nTLS SNI support enabled\nconfigure arguments: --with-cc=gcc --with-cc-opt='-O2 -O0' --with-threads\n";
        assert!(looks_like_version_text(text.as_bytes()));
        let got = parse(text);
        assert_eq!(got.compiler_line.as_deref(), Some("gcc 12.2.0 (Debian 12.2.0-14+deb12u1)"));
        assert_eq!(got.openssl, OpenSsl { built: Some("3.0.22".into()), running: None });
        assert_eq!(got.tls_sni, Some(true));
        assert_eq!(got.arguments.unwrap().list.len(), 3);
        assert_eq!(
            got.configure_raw.as_deref(),
            Some(" --with-cc=gcc --with-cc-opt='-O2 -O0' --with-threads")
        );
    }

    #[test]
    fn two_openssl_versions_in_both_spellings() {
        let want = |b: &str, r: &str| OpenSsl { built: Some(b.into()), running: Some(r.into()) };
        assert_eq!(
            openssl("OpenSSL 1.1.1n  15 Mar 2022 (running with OpenSSL 1.1.1d  10 Sep 2019)"),
            want("1.1.1n", "1.1.1d")
        );
        assert_eq!(
            openssl("OpenSSL 3.5.2 5 Aug 2025, running with OpenSSL 3.5.0 8 Apr 2025"),
            want("3.5.2", "3.5.0")
        );
        assert_eq!(openssl("LibreSSL 3.8.2").built.as_deref(), Some("LibreSSL 3.8.2"));
        assert_eq!(openssl("BoringSSL").built.as_deref(), Some("BoringSSL"));
    }

    #[test]
    fn missing_lines_are_absent_and_no_error() {
        let got = parse("nginx version: nginx/1.28.0\nbuilt with OpenSSL 3.5.2 5 Aug 2025\n");
        assert_eq!(got.compiler_line, None);
        assert_eq!(got.arguments, None);
        assert_eq!(parse("configure arguments:\n").arguments, Some(Arguments::default()));
    }

    #[test]
    fn old_prefixes_line_breaks_and_foreign_lines() {
        let text = "$ nginx -V\r\nnginx: nginx version: nginx/1.0.0\r\nnginx: built by gcc 4.4.5\r\nnginx: configure arguments: --prefix=/x \r\n   --with-cc-opt='-O2\r\n -g' \r\n--with-debug\r\n$ exit\r\n";
        let got = parse(text);
        assert_eq!(got.product.unwrap().version.as_deref(), Some("1.0.0"));
        assert_eq!(got.compiler_line.as_deref(), Some("gcc 4.4.5"));
        let list = got.arguments.unwrap().list;
        assert_eq!(configure::last_value(&list, "--with-cc-opt"), Some("-O2 -g"));
        assert_eq!(list.len(), 3);
    }

    #[test]
    fn a_compilers_name_with_a_line_break_is_kept_whole() {
        let got =
            parse("nginx version: nginx/1.25.3\nbuilt by gcc 13.2.0'\n13.2.0 (GCC)\nconfigure arguments:\n");
        assert_eq!(got.compiler_line.as_deref(), Some("gcc 13.2.0'\n13.2.0 (GCC)"));
    }

    #[test]
    fn marks_of_editors_terminals_and_shells_are_no_part_of_the_text() {
        let args = |got: &VersionText| {
            let list = &got.arguments.as_ref().unwrap().list;
            list.iter()
                .map(|a| format!("{}={}", a.name, a.value.as_deref().unwrap_or("")))
                .collect::<Vec<_>>()
        };
        let plain = "nginx version: nginx/1.25.3\nconfigure arguments: --prefix=/etc/nginx --with-threads --with-cc-opt='-g -O2'\n";
        let want = parse(plain);
        for text in [format!("\u{feff}{plain}"), format!("\u{1b}[1;32m{plain}\u{1b}[0m")] {
            assert!(looks_like_version_text(text.as_bytes()), "{text}");
            assert_eq!(parse(&text), want, "{text}");
        }
        let broken = parse(&plain.replace(" --", " \\\n    --"));
        assert_eq!((broken.product.as_ref(), args(&broken)), (want.product.as_ref(), args(&want)));
    }

    #[test]
    fn the_texts_of_two_programs_are_told_from_one_text_twice() {
        let one = "nginx version: nginx/1.22.1\nbuilt by gcc 12.2.0\nbuilt with OpenSSL 3.0.22\nconfigure arguments: --with-debug\n";
        let of = |text: &str| parse(text).contradiction;
        assert_eq!(of(one), None);
        assert_eq!(of(&format!("nginx version: nginx/1.22.1\n\n{one}{one}")), None);
        let tengine = "Tengine version: Tengine/2.3.0\nnginx version: nginx/1.15.9\nconfigure arguments:\n";
        assert_eq!(of(tengine), None);
        for (old, new) in [
            ("nginx version: nginx/1.22.1", "nginx version: nginx/1.25.3"),
            ("built by gcc 12.2.0", "built by clang 16"),
            ("built with OpenSSL 3.0.22", "built with OpenSSL 1.1.1"),
            ("configure arguments: --with-debug", "configure arguments: --with-threads"),
        ] {
            let two = of(&format!("{one}{}", one.replace(old, new)));
            assert_eq!(two, Some((old.to_owned(), new.to_owned())));
        }
    }

    #[test]
    fn what_is_no_such_text() {
        for bytes in
            [&b"\x7fELF\x02\x01\x01\0nginx version: nginx/1.22.1\n"[..], b"[nginx]\nversion = 1\n", b""]
        {
            assert!(!looks_like_version_text(bytes));
        }
        assert!(looks_like_version_text(b"configure arguments: --with-threads"));
        assert!(looks_like_version_text(b"Tengine version: Tengine/2.3.0 (nginx/1.15.9)"));
    }
}
