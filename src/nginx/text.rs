//! The text that `nginx -V` prints, on standard input or in a file.

use super::catalogue;
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
    /// What another program printed follows, and is left out.
    pub more: bool,
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
        let names_program =
            VERSIONS.iter().any(|prefix| line.strip_prefix(prefix).is_some_and(|rest| rest.contains('/')));
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

/// The beginnings of lines that name the program.
const VERSIONS: [&str; 3] = ["nginx version: ", "Angie version: ", "Tengine version: "];

/// Takes such a text apart. Lines that belong to none of its parts are passed over. Of several programs' texts the first
/// is read: facts of two are never put together.
pub fn parse(text: &str) -> VersionText {
    let text = without_marks(text);
    let all: Vec<&str> = text.lines().collect();
    let mut rest = &all[..];
    let mut first: Option<VersionText> = None;
    while !rest.is_empty() {
        let (this, after) = rest.split_at(end_of_one(rest));
        rest = after;
        let said = parse_one(this);
        match &mut first {
            None => first = Some(said),
            Some(first) => first.more |= said != VersionText { more: false, ..first.clone() },
        }
    }
    first.unwrap_or_default()
}

/// Where another program's text begins: at a version line behind the arguments, or one that names another version than
/// before; at second arguments.
fn end_of_one(lines: &[&str]) -> usize {
    let mut named: Vec<&str> = Vec::new();
    let mut configured = false;
    for (at, line) in lines.iter().enumerate() {
        let line = own_line(line);
        if let Some(prefix) = VERSIONS.iter().find(|prefix| line.starts_with(**prefix)) {
            let other = named.iter().any(|known| known.starts_with(prefix) && *known != line);
            if configured || other {
                return at;
            }
            named.push(line);
        } else if line.starts_with("configure arguments:") {
            if configured {
                return at;
            }
            configured = true;
        }
    }
    lines.len()
}

fn parse_one(lines: &[&str]) -> VersionText {
    let mut out = VersionText::default();
    let mut lines = lines.iter().copied().peekable();
    while let Some(line) = lines.next() {
        let line = own_line(line);
        if VERSIONS.iter().any(|prefix| line.starts_with(prefix)) {
            out.version_lines.push(line.to_owned());
        } else if let Some(rest) = line.strip_prefix("built by ") {
            let mut rest = rest.trim().to_owned();
            // The compiler's name can hold a line break; it is kept as it stands.
            while let Some(next) = lines.next_if(|next| !begins_a_part(next) && !next.trim().is_empty()) {
                rest.push('\n');
                rest.push_str(next.trim());
            }
            out.compiler_line = Some(rest);
        } else if let Some(rest) = line.strip_prefix("built with ") {
            out.openssl = openssl(rest);
            out.openssl_line = Some(rest.trim().to_owned());
        } else if let Some(rest) = line.strip_prefix("TLS SNI support ") {
            out.tls_sni = Some(rest.trim() == "enabled");
        } else if let Some(rest) = line.strip_prefix("configure arguments:") {
            let mut raw = without_continuation(rest).to_owned();
            let mut arguments = configure::parse(&raw);
            // A value that is still open, or a line of further options, was broken by whatever carried the text here.
            let mut left = MAX_CONTINUATIONS;
            let mut before = line;
            while let Some(next) = lines.next_if(|next| {
                left > 0
                    && !begins_a_part(next)
                    && (arguments.unterminated
                        || next.trim_start().starts_with("--")
                        || holds_an_option(next))
            }) {
                left -= 1;
                if !is_cut_inside_a_word(before, next) {
                    raw.push(' ');
                }
                raw.push_str(without_continuation(next).trim_start());
                arguments = configure::parse(&raw);
                before = next;
            }
            out.arguments = Some(arguments);
            out.configure_raw = Some(raw);
        }
    }
    out.product = version::product(&out.version_lines);
    out
}

/// Whether a word of the line behind the first is an option of nginx's `configure`, in a line that is no command.
fn holds_an_option(line: &str) -> bool {
    let name = |word: &str| word.split('=').next().is_some_and(catalogue::is_configure_option);
    let mut words = line.split_whitespace();
    let command = |word: &str| word.contains("configure") || word.ends_with(['$', '#', '%', '>', ':']);
    words.next().is_some_and(|first| !command(first)) && words.any(name)
}

/// Whether a terminal of fixed width broke the text where no blank was: a line that ends in a word and one that begins with
/// neither a blank nor an option.
fn is_cut_inside_a_word(before: &str, next: &str) -> bool {
    let ends_in_a_word = !before.ends_with(|c: char| c.is_whitespace() || c == '\\' || c == ':');
    ends_in_a_word && !next.starts_with(|c: char| c.is_whitespace() || c == '-')
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
            let running = running.trim();
            (
                built.trim_end().trim_end_matches(['(', ',']).trim(),
                running.strip_suffix(')').or(Some(running)),
            )
        }
        None => (text.trim(), None),
    };
    OpenSsl { built: library_version(built), running: running.and_then(library_version) }
}

/// Names in `(compatible; NAME VERSION)`, behind the version of OpenSSL that forks say they are like.
const COMPATIBLE: &str = "(compatible; ";

fn library_version(text: &str) -> Option<String> {
    if let Some((_, fork)) = text.split_once(COMPATIBLE) {
        return Some(fork.trim_end_matches(')').trim().to_owned()).filter(|fork| !fork.is_empty());
    }
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
        assert_eq!(
            openssl("OpenSSL 1.1.1 (compatible; BoringSSL) (running with BoringSSL)"),
            want("BoringSSL", "BoringSSL")
        );
        let aws = "OpenSSL 1.1.1 (compatible; AWS-LC 1.35.1)";
        assert_eq!(openssl(aws), OpenSsl { built: Some("AWS-LC 1.35.1".into()), running: None });
        assert_eq!(openssl(&format!("{aws} (running with {aws})")), want("AWS-LC 1.35.1", "AWS-LC 1.35.1"));
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
    fn facts_of_two_programs_are_not_put_together() {
        let of = |version: &str, opt: &str| {
            format!(
                "nginx version: nginx/{version}\nbuilt by gcc 12.2.0\nconfigure arguments: --with-cc-opt={opt}\n"
            )
        };
        let (one, two) = (of("1.22.1", "-O2"), of("1.27.0", "-O0"));
        let both = parse(&format!("host-a:\n{one}host-b:\n{two}"));
        assert!(both.more);
        assert_eq!(VersionText { more: false, ..both }, parse(&one));
        // nginx -v and nginx -V of one program, or the same text twice, are one.
        assert!(!parse(&format!("nginx version: nginx/1.22.1\n{one}")).more);
        assert!(!parse(&format!("{one}{one}")).more);
        let arguments = "configure arguments: --with-threads\nconfigure arguments: --with-debug\n";
        assert!(parse(arguments).more);
        assert!(
            !parse("Angie version: Angie/1.5.0\nnginx version: nginx/1.25.3\nconfigure arguments:\n").more
        );
    }

    #[test]
    fn lines_cut_at_the_width_of_a_terminal_are_one() {
        let plain = "configure arguments: --with-cc-opt='-g -O2 -fstack-protector-strong' --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf";
        let want = parse(plain).arguments;
        for cut in [
            "configure arguments: --with-cc-opt='-g -O",
            "configure arguments: --with-cc-opt='-g -O2 -fstack-prot",
        ] {
            for second in ["2 -fstack-protector-strong' --prefix=/usr/sha", "ector-strong' --prefix=/usr/sha"]
            {
                let Some(rest) = plain.strip_prefix(&format!("{cut}{second}")) else { continue };
                assert_eq!(parse(&format!("{cut}\n{second}\n{rest}\n$ exit")).arguments, want, "{cut}");
            }
        }
        // A shell's prompt is no argument.
        for command in ["user@host:~$ ls --color", "# ./configure --with-threads", "./configure --with-debug"]
        {
            assert_eq!(parse(&format!("{plain}\n{command}\n")).arguments, want, "{command}");
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
