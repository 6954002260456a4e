//! Unbound carries its `configure` line without quotes, so that a value with spaces falls apart.

use super::{Builder, Found, Recogniser, Texts, names_version, word_after};

/// Unbound.
pub(super) const RECOGNISER: Recogniser = Recogniser {
    program: "unbound",
    marks: &[
        "^Configure line: %s",
        "^unbound 1.",
        "^--build=",
        "^--prefix=",
        "^--with-",
        "^--enable-",
        "^--disable-",
        "^--sysconfdir=",
    ],
    read,
};

fn read(texts: &Texts<'_>) -> Option<Found> {
    texts.with("Configure line: %s")?;
    let named = texts
        .all()
        .find(|text| text.text.starts_with("unbound 1.") && names_version(&text.text, "unbound "))?;
    let line = texts.all().find(|text| text.text.starts_with("--"))?;
    let mut builder = Builder::new("unbound", &line.at).version(word_after(&named.text, "unbound "));
    builder.add("configure", &line.text);
    if let Some(flags) = variable(&line.text, "CFLAGS") {
        builder.add("CFLAGS", &flags);
        builder.some_flags(&flags, &line.at);
    }
    Some(builder.found)
}

/// The value of a variable: all words up to the next variable or long option.
fn variable(line: &str, name: &str) -> Option<String> {
    let mut words = line.split(' ');
    let first = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    let is_next = |word: &str| {
        word.starts_with("--")
            || word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
            })
    };
    let rest: Vec<&str> = std::iter::once(first).chain(words.take_while(|word| !is_next(word))).collect();
    Some(rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn a_value_reaches_to_the_next_variable_or_option() {
        let line = "--prefix=/usr CFLAGS=-g -O2 -DX=1 -fPIC LDFLAGS=-Wl,-z,relro --with-libevent";
        assert_eq!(variable(line, "CFLAGS").as_deref(), Some("-g -O2 -DX=1 -fPIC"));
        assert_eq!(variable(line, "LDFLAGS").as_deref(), Some("-Wl,-z,relro"));
        assert_eq!(variable(line, "CC"), None);
    }
}
