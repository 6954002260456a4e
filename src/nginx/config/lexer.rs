//! nginx's own lexical rules (`ngx_conf_read_token` in `src/core/ngx_conf_file.c`), and the balanced bodies of Lua blocks.

/// Words up to `;` or `{`, or a `}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lexed {
    /// A directive: at least one word, and whether a block follows.
    Statement {
        /// Name and arguments with quotes and escapes taken off.
        words: Vec<String>,
        /// Line of the first word, from 1.
        line: u32,
        /// Column of the first word in characters, from 1.
        column: u32,
        /// The statement ends in `{`.
        opens: bool,
    },
    /// `}`.
    Close,
    /// The end of the text.
    End,
}

/// Text that nginx refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: u32,
    /// nginx's own words.
    pub what: String,
}

/// Reads one text.
#[derive(Debug)]
pub struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    column: u32,
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of a text.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1, column: 0 }
    }

    /// The line that is being read, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        if byte == b'\n' {
            self.line = self.line.saturating_add(1);
            self.column = 0;
        } else if byte & 0xc0 != 0x80 {
            // A continuation byte of UTF-8 is no character of its own.
            self.column = self.column.saturating_add(1);
        }
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn error<T>(&self, what: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError { line: self.line, what: what.into() })
    }

    /// The next statement.
    pub fn statement(&mut self) -> Result<Lexed, SyntaxError> {
        let mut words: Vec<String> = Vec::new();
        let mut place = (1, 1);
        loop {
            let Some(byte) = self.peek() else {
                return if words.is_empty() {
                    Ok(Lexed::End)
                } else {
                    self.error("unexpected end of file, expecting \";\" or \"}\"")
                };
            };
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.bump();
                }
                b'#' => {
                    while self.peek().is_some_and(|b| b != b'\n') {
                        self.bump();
                    }
                }
                b';' | b'{' => {
                    self.bump();
                    if words.is_empty() {
                        return self.error(format!("unexpected \"{}\"", char::from(byte)));
                    }
                    let (line, column) = place;
                    return Ok(Lexed::Statement { words, line, column, opens: byte == b'{' });
                }
                b'}' => {
                    self.bump();
                    return if words.is_empty() { Ok(Lexed::Close) } else { self.error("unexpected \"}\"") };
                }
                _ => {
                    if words.is_empty() {
                        place = (self.line, self.column.saturating_add(1));
                    }
                    words.push(self.word()?);
                }
            }
        }
    }

    /// One word. What ends an unquoted one is left to be read; a closing quote must be followed by white space, `;`, `{`
    /// or `)`, of which the last begins the next word.
    fn word(&mut self) -> Result<String, SyntaxError> {
        let quote = self.peek().filter(|b| matches!(b, b'"' | b'\''));
        if quote.is_some() {
            self.bump();
        }
        let start = self.at;
        let mut after_dollar = false;
        let end = loop {
            let Some(byte) = self.peek() else {
                return self.error("unexpected end of file, expecting \";\" or \"}\"");
            };
            match byte {
                // `${name}`: this brace opens no block.
                b'{' if after_dollar => {
                    self.bump();
                    continue;
                }
                b'\\' => {
                    self.bump();
                    self.bump();
                    after_dollar = false;
                    continue;
                }
                b'$' => {
                    self.bump();
                    after_dollar = true;
                    continue;
                }
                _ => after_dollar = false,
            }
            match quote {
                Some(quote) if byte == quote => break self.at,
                None if matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{') => break self.at,
                _ => {
                    self.bump();
                }
            }
        };
        let text = unescape(self.bytes.get(start..end).unwrap_or_default());
        if quote.is_some() {
            self.bump();
            match self.peek() {
                None | Some(b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{' | b')') => {}
                Some(other) => return self.error(format!("unexpected \"{}\"", char::from(other))),
            }
        }
        Ok(text)
    }

    /// Passes over the body of a Lua block up to and including its `}`: Lua's strings, long brackets and comments may hold
    /// braces (lua-nginx-module reads them the same way).
    pub fn skip_lua(&mut self) -> Result<(), SyntaxError> {
        let start = self.line;
        let mut depth = 1u32;
        while let Some(byte) = self.bump() {
            match byte {
                b'{' => depth = depth.saturating_add(1),
                b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                b'"' | b'\'' => {
                    while let Some(inner) = self.bump() {
                        match inner {
                            b'\\' => {
                                self.bump();
                            }
                            _ if inner == byte => break,
                            _ => {}
                        }
                    }
                }
                b'-' if self.peek() == Some(b'-') => {
                    self.bump();
                    if self.peek() == Some(b'[') && self.long_bracket(1) {
                        continue;
                    }
                    while self.peek().is_some_and(|b| b != b'\n') {
                        self.bump();
                    }
                }
                b'[' => {
                    self.long_bracket(0);
                }
                _ => {}
            }
        }
        Err(SyntaxError { line: start, what: "Lua block without its closing \"}\"".to_owned() })
    }

    /// If a long bracket (`[[`, `[=[`, …) stands here, passes over it and gives true. `skip` bytes up to and including its
    /// first `[` have not been read yet.
    fn long_bracket(&mut self, skip: usize) -> bool {
        let rest = self.bytes.get(self.at.saturating_add(skip)..).unwrap_or_default();
        let level = rest.iter().take_while(|b| **b == b'=').count();
        if rest.get(level) != Some(&b'[') {
            return false;
        }
        for _ in 0..=skip.saturating_add(level) {
            self.bump();
        }
        while let Some(byte) = self.bump() {
            if byte != b']' {
                continue;
            }
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let closes = rest.iter().take(level).filter(|b| **b == b'=').count() == level
                && rest.get(level) == Some(&b']');
            if closes {
                for _ in 0..=level {
                    self.bump();
                }
                break;
            }
        }
        true
    }
}

/// Takes the escapes off, as nginx does: of a quote or a backslash, and of `\t`, `\r`, `\n`. Others stay as they are.
fn unescape(raw: &[u8]) -> String {
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let plain = match bytes.peek() {
            Some(b'"') => b'"',
            Some(b'\'') => b'\'',
            Some(b'\\') => b'\\',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            _ => {
                out.push(byte);
                continue;
            }
        };
        bytes.next();
        out.push(plain);
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<String>, SyntaxError> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut out = Vec::new();
        loop {
            match lexer.statement()? {
                Lexed::End => return Ok(out),
                Lexed::Close => out.push("}".to_owned()),
                Lexed::Statement { words, opens, .. } => {
                    let lua = opens && words[0].ends_with("_by_lua_block");
                    out.push(format!("{}{}", words.join("|"), if opens { " {" } else { "" }));
                    if lua {
                        lexer.skip_lua()?;
                    }
                }
            }
        }
    }

    #[test]
    fn words_quotes_and_escapes() {
        for (text, want) in [
            ("a b;", "a|b"),
            ("\"gzip\" on;", "gzip|on"),
            ("a 'b c' \"d;e\" f;", "a|b c|d;e|f"),
            ("a \"q\\\"q\" 'w\\'w' \\\\x;", "a|q\"q|w'w|\\x"),
            ("a b\\tc \\.d \\;e;", "a|b\tc|\\.d|\\;e"),
            ("a ${x}y$z;", "a|${x}y$z"),
            ("a b#c; # comment } {\n", "a|b#c"),
            ("a \"#\" it's;", "a|#|it's"),
            ("a x\"y z\";", "a|x\"y|z\""),
            ("if ($a = \"b\") {", "if|($a|=|b|) {"),
            // The brace ends the word and opens the block: such a pattern must be quoted.
            ("location ~ ^/a{1,2}/ {", "location|~|^/a {"),
            ("a b}c;", "a|b}c"),
            ("a \"\";", "a|"),
            ("a \"${\";", "a|${"),
            ("a \u{e4}\u{f6};", "a|\u{e4}\u{f6}"),
        ] {
            let got = all(text).map(|list| list[0].clone());
            assert_eq!(got.as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_nginx_refuses() {
        for (text, want) in [
            ("a b", "unexpected end of file"),
            ("a \"b", "unexpected end of file"),
            (";", "unexpected \";\""),
            ("{", "unexpected \"{\""),
            ("a }", "unexpected \"}\""),
            ("a \"b\"c;", "unexpected \"c\""),
            ("\n\nx_by_lua_block { {", "Lua block"),
        ] {
            let error = all(text).unwrap_err();
            assert!(error.what.contains(want), "{text}: {error}");
        }
        assert_eq!(all("a;\n\nb c").unwrap_err().line, 3);
    }

    #[test]
    fn lua_is_passed_over() {
        for body in [
            "return {a = {}}",
            "local s = '}' .. \"}\\\"}\"",
            "-- }\n x = 1",
            "--[[ } \n } ]] x = {}",
            "--[==[ ]] } ]==] x = 1",
            "s = [[ } ]] t = [=[ ]] } ]=] u = a[b[1]]",
            "x = a[1] -- it's }\n",
            "s = '\\'}'",
        ] {
            let text = format!("content_by_lua_block {{ {body} }} next;");
            assert_eq!(all(&text).unwrap(), ["content_by_lua_block {", "next"], "{body}");
        }
    }

    #[test]
    fn places() {
        let mut lexer = Lexer::new("a;\n  \u{e4}b 'x\ny' {\n".as_bytes());
        lexer.statement().unwrap();
        let Lexed::Statement { line, column, .. } = lexer.statement().unwrap() else { panic!() };
        assert_eq!((line, column), (2, 3));
        assert_eq!(lexer.line(), 3);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_without_a_panic(bytes: Vec<u8>, text in "[a{};'\"#$\\\\\\[\\]=\\- \n]{0,200}") {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                let mut lexer = Lexer::new(bytes);
                // Each statement takes at least one byte, and the end is one more.
                let mut left = bytes.len() + 2;
                while left > 0 {
                    left -= 1;
                    match lexer.statement() {
                        Ok(Lexed::Statement { opens: true, .. }) if bytes.len() % 2 == 0 => {
                            let _ = lexer.skip_lua();
                        }
                        Ok(Lexed::End) | Err(_) => break,
                        Ok(_) => {}
                    }
                }
                proptest::prop_assert!(left > 0 || bytes.is_empty(), "no end");
            }
        }
    }
}
