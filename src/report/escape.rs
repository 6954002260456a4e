//! Whatever comes from a file is escaped for where it is printed.

use std::fmt::Write as _;

/// For a terminal: control characters, bidirectional overrides and invalid bytes become visible escapes.
pub fn terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Characters that change how their neighbours are shown, or hide.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_could_move_its_cursor() {
        assert_eq!(terminal("a\x1b[2Jb\r\nc\u{202e}d"), "a\\u{1b}[2Jb\\u{d}\\u{a}c\\u{202e}d");
        assert_eq!(terminal("src/größe.c"), "src/größe.c");
    }
}
