//! Whatever comes from a file is escaped for where it is printed: one function a destination.
//!
//! All of them first make visible what a reader could not see ([`terminal`]): a control character has no business in a
//! name, and some destinations (XML 1.0, Prometheus' scanner) cannot carry it in any spelling.

use std::fmt::Write as _;

/// The letters between `##` and `[` of a text that begins like a command for a CI system, which its runner looks for anywhere in
/// what a program prints: `##vso[` and `##[` (Azure Pipelines), `##[` (GitHub), `##teamcity[` (`TeamCity`).
fn command_word(behind: &str) -> Option<&str> {
    let end = behind.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (word, rest) = behind.split_at(end);
    rest.starts_with('[').then_some(word)
}

/// Breaks commands up: the second `#` of each is written as `hash`.
fn no_commands(text: &str, hash: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("##") {
        let (before, found) = rest.split_at(at + 1);
        out.push_str(before);
        rest = found;
        if rest.strip_prefix('#').and_then(command_word).is_some() {
            out.push_str(hash);
            rest = rest.strip_prefix('#').unwrap_or_default();
        }
    }
    out.push_str(rest);
    out
}

/// For a terminal, and the logs that CI systems make of it: control characters, bidirectional overrides and invalid bytes become
/// visible escapes, and what would be a command is broken up.
pub fn terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            c if c.is_control() || is_invisible(c) || is_noncharacter(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    if out.contains("##") { no_commands(&out, "\\u{23}") } else { out }
}

/// For a log that a CI system reads: no line begins with `::`, which GitHub's runner would take for a command, and other
/// commands are broken up. For whole texts: colours before the first word do not count.
pub fn log(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        loop {
            let trimmed = rest.trim_start();
            let style = trimmed.strip_prefix("\x1b[").and_then(|style| style.split_once('m'));
            let Some((_, after)) = style else {
                rest = trimmed;
                break;
            };
            rest = after;
        }
        let (head, rest) = line.split_at(line.len() - rest.len());
        out.push_str(head);
        match rest.strip_prefix("::") {
            Some(after) => {
                out.push_str("\\u{3a}:");
                out.push_str(after);
            }
            None => out.push_str(rest),
        }
    }
    no_commands(&out, "\\u{23}")
}

/// Characters that change how their neighbours are shown, break lines, or hide.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Code points that are no characters (Unicode, section 23.7). XML 1.0 forbids some and HTML all of them.
fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || (c as u32) & 0xfffe == 0xfffe
}

/// For XML 1.0, in text and in attribute values of either quote. `]]>` cannot come out, as `>` is always escaped.
pub fn xml(text: &str) -> String {
    markup(text)
}

/// For HTML, in text and in attribute values of either quote.
pub fn html(text: &str) -> String {
    markup(text)
}

fn markup(text: &str) -> String {
    let text = terminal(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// For JSON inside an HTML `script` element: nothing in it can end the element, open a comment, or break a line.
/// `json` is a finished JSON text; outside of strings none of these characters occurs in JSON.
pub fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    no_commands(&out, "\\u0023")
}

/// For JSON that may reach a terminal or a log: DEL and the C1 control characters, which JSON need not escape, are escaped, and
/// commands for CI systems are spelt in another way.
/// `json` is a finished JSON text; outside of strings none of these characters occurs in JSON.
pub fn json_controls(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}') {
            let _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push(c);
        }
    }
    no_commands(&out, "\\u0023")
}

/// For the message of a GitHub workflow command. A line feed is data there when written as `%0A`.
pub fn github_message(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push_str("%0A");
        }
        out.push_str(&terminal(line).replace('%', "%25"));
    }
    out
}

/// For a property (`file=`, `title=`) of a GitHub workflow command.
pub fn github_property(text: &str) -> String {
    terminal(text).replace('%', "%25").replace(':', "%3A").replace(',', "%2C")
}

/// For running text in Markdown (`CommonMark`, GitHub, chat systems). Markup, HTML, mentions, references to issues,
/// and links that the reader's software makes by itself are all kept from coming into being.
pub fn markdown(text: &str) -> String {
    let text = terminal(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            ':' if rest.peek() == Some(&'/') => out.push_str("\\:"),
            // A backslash does not stop a mention or a reference: they are looked for after rendering.
            '@' => out.push_str("@\u{200b}"),
            '#' if rest.peek().is_some_and(char::is_ascii_digit) => out.push_str("#\u{200b}"),
            '.' if ends_with_www(&out) => out.push_str("\\."),
            c => out.push(c),
        }
    }
    out
}

fn ends_with_www(text: &str) -> bool {
    text.len().checked_sub(3).and_then(|at| text.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case("www"))
}

/// A code span in Markdown, in a table cell too. The fence is longer than any run of backticks inside.
pub fn markdown_code(text: &str) -> String {
    // A bar ends a cell even inside a code span; outside of tables `\|` would be shown as it stands, so it is spelt
    // as a look-alike that is no bar.
    let text = terminal(text).replace('|', "\u{2502}");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.trim().is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// For a label value of the Prometheus text format, the quotes not included.
pub fn prometheus_label(text: &str) -> String {
    terminal(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// For the path of a relative URI (RFC 3986): bytes other than unreserved ones, `/` and a harmless few are
/// percent-encoded. A colon is encoded, for it would make a scheme of what stands before it.
pub fn uri_path(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'/'
            | b'!'
            | b'+'
            | b'='
            | b',' => {
                out.push(char::from(byte));
            }
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// For a SARIF message: what would be read as a link or as a placeholder (SARIF 2.1.0, sections 3.11.5 and 3.11.6) is
/// escaped; other brackets and braces stay, as many viewers show the escapes.
pub fn sarif_message(text: &str) -> String {
    let mut out = terminal(text);
    if out.contains("](") {
        out = out.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
    }
    let bytes = out.as_bytes();
    let placeholder = bytes
        .windows(2)
        .any(|pair| pair.first() == Some(&b'{') && pair.get(1).is_some_and(u8::is_ascii_digit));
    if placeholder { out.replace('{', "{{").replace('}', "}}") } else { out }
}

#[cfg(test)]
#[path = "../../tests/common/nasty.rs"]
mod nasty;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_log_is_no_command() {
        assert_eq!(log("a\n::error::x\n  ::warning::y\n"), "a\n\\u{3a}:error::x\n  \\u{3a}:warning::y\n");
        assert_eq!(log("\x1b[1m\x1b[31m::error::x\x1b[0m"), "\x1b[1m\x1b[31m\\u{3a}:error::x\x1b[0m");
        assert_eq!(log("x ##[error]y :: z"), "x #\\u{23}[error]y :: z");
        assert_eq!(log("plain: a::b\n\n"), "plain: a::b\n\n");
        for (command, broken) in [
            ("##vso[task.setvariable variable=x]y", "#\\u{23}vso[task.setvariable variable=x]y"),
            ("a ##teamcity[buildStatus text='x']", "a #\\u{23}teamcity[buildStatus text='x']"),
            ("###[error]", "##\\u{23}[error]"),
            ("####vso[x]", "###\\u{23}vso[x]"),
        ] {
            assert_eq!((log(command), terminal(command)), (broken.to_owned(), broken.to_owned()));
            let json = json_controls(&serde_json::to_string(command).unwrap());
            assert!(
                !json.contains("##vso[") && !json.contains("##[") && !json.contains("##teamcity["),
                "{json}"
            );
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), command);
        }
        assert_eq!(terminal("## heading, c## [x] ##"), "## heading, c## [x] ##");
    }

    #[test]
    fn nothing_reaches_the_terminal_that_could_move_its_cursor() {
        assert_eq!(terminal("a\x1b[2Jb\r\nc\u{202e}d"), "a\\u{1b}[2Jb\\u{d}\\u{a}c\\u{202e}d");
        assert_eq!(terminal("src/größe.c"), "src/größe.c");
        assert_eq!(terminal("\u{ffff}\u{fdd0}\u{2028}"), "\\u{ffff}\\u{fdd0}\\u{2028}");
    }

    #[test]
    fn every_destination_takes_every_nasty_string() {
        for text in nasty::all() {
            let xml = xml(&text);
            assert!(!xml.contains(['<', '>', '"', '\'']) && !xml.chars().any(char::is_control), "{xml:?}");
            let message = github_message(&text);
            assert!(!message.contains(['\n', '\r']), "{message:?}");
            let property = github_property(&text);
            assert!(!property.contains(['\n', '\r', ':', ',']), "{property:?}");
            let label = prometheus_label(&text);
            assert!(
                !label.replace("\\\\", "").replace("\\\"", "").contains(['"', '\\', '\n', '\0']),
                "{label:?}"
            );
            let uri = uri_path(text.as_bytes());
            assert!(uri.is_ascii() && !uri.contains([' ', ':', '?', '#', '<', '"', '\\']), "{uri:?}");
            let markdown = markdown(&text);
            assert!(
                !markdown.contains(['<', '>', '\n', '\r']) && !markdown.replace("\\:", "").contains("://"),
                "{markdown:?}"
            );
            let code = markdown_code(&text);
            assert!(code.starts_with('`') && code.ends_with('`') && !code.contains(['\n', '|']), "{code:?}");
            let script = json_in_script(&serde_json::to_string(&text).unwrap());
            assert!(!script.contains(['<', '>', '&']), "{script:?}");
            assert_eq!(serde_json::from_str::<String>(&script).unwrap(), text);
            let json = json_controls(&serde_json::to_string(&text).unwrap());
            assert!(!json.chars().any(char::is_control), "{json:?}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }

    #[test]
    fn a_message_for_github_keeps_its_own_lines_and_no_others() {
        assert_eq!(github_message("100%\nsecond\r"), "100%25%0Asecond\\u{d}");
        assert_eq!(github_property("a:b,c\nd"), "a%3Ab%2Cc\\u{a}d");
    }

    #[test]
    fn markdown_stays_text() {
        assert_eq!(
            markdown("a*b_c <i> @all #12 www.x http://y"),
            "a\\*b\\_c &lt;i&gt; @\u{200b}all #\u{200b}12 www\\.x http\\://y"
        );
        assert_eq!(markdown_code("a``b"), "```a``b```");
        assert_eq!(markdown_code("`"), "`` ` ``");
        assert_eq!(markdown_code("a|b"), "`a\u{2502}b`");
    }

    #[test]
    fn links_and_placeholders_of_sarif_are_escaped_and_plain_brackets_stay() {
        assert_eq!(sarif_message("a[1] {x}"), "a[1] {x}");
        assert_eq!(sarif_message("[x](http://y)"), "\\[x\\](http://y)");
        assert_eq!(sarif_message("{0}"), "{{0}}");
    }

    #[test]
    fn a_scheme_in_a_path_is_none_in_its_uri() {
        assert_eq!(uri_path("container://a b/ü".as_bytes()), "container%3A//a%20b/%C3%BC");
        assert_eq!(uri_path(b"\xff#?"), "%FF%23%3F");
    }
}
