//! Names of functions as their languages write them.

use cpp_demangle::DemangleOptions;
use std::borrow::Cow;
use std::fmt::Write;

/// Longest name that is demangled, and longest result, in bytes. Names repeat their parts by reference, and can be made to
/// grow without end.
const LONGEST: usize = 4_096;

/// A symbol's name for people: demangled if it is a Rust or C++ name, without Rust's hash. What cannot be demangled stays.
/// The result is as hostile as the name, and is escaped where it is printed.
pub fn readable(name: &str) -> Cow<'_, str> {
    if name.len() > LONGEST {
        return Cow::Borrowed(name);
    }
    let mut out = Bounded(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return if write!(out, "{rust:#}").is_ok() { Cow::Owned(out.0) } else { Cow::Borrowed(name) };
    }
    let symbol = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()).flatten();
    match symbol.map(|symbol| symbol.structured_demangle(&mut out, &DemangleOptions::new())) {
        Some(Ok(())) => Cow::Owned(out.0),
        _ => Cow::Borrowed(name),
    }
}

/// The name for a line among others, cut where it is long.
pub fn brief(name: &str) -> String {
    const CHARS: usize = 60;
    let name = readable(name);
    match name.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()),
        None => name.into_owned(),
    }
}

/// Text that refuses to grow beyond [`LONGEST`], which ends the demangling.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len().saturating_add(text.len()) > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_three_languages() {
        for (name, expected) in [
            (
                "_ZN4core4iter6traits8iterator8Iterator3zip17h288558e740419f7eE",
                "core::iter::traits::iterator::Iterator::zip",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)"),
            ("ngx_http_init", "ngx_http_init"),
            ("_Zbroken", "_Zbroken"),
        ] {
            assert_eq!(readable(name), expected);
        }
    }

    #[test]
    fn hostile_names_stay_short() {
        // Every P doubles what the one before it stands for: 2^n of nothing.
        let mut doubling = "_Z1fSt6vectorIiSaIiEE".to_owned();
        for index in 0..30 {
            let digit = char::from_digit(index, 36).map(|c| c.to_ascii_uppercase()).unwrap();
            write!(doubling, "4pairIS{digit}_S{digit}_E").unwrap();
        }
        for name in [
            doubling,
            format!("_Z1f{}", "P".repeat(100_000)),
            format!("_Z1f{}i", "P".repeat(3_000)),
            "_R".repeat(50_000),
        ] {
            let started = std::time::Instant::now();
            let text = readable(&name);
            assert!(text.len() <= LONGEST.max(name.len()));
            assert!(started.elapsed().as_secs() < 5, "{}", &name[..40]);
        }
    }
}
