//! The identity of a finding over runs, directories and rebuilds.

use sha2::{Digest, Sha256};

/// Identity of a finding: 64 hexadecimal digits in two halves.
///
/// The first half is made of the rule, the name of the product (soname or base name) and the key within the rule; the
/// second of the normalised units. Two findings with the same first half speak of the same thing and differ only in the
/// units concerned, which lets a baseline accept a list of units that has become shorter.
/// Path, directory, build-id and run do not enter.
pub fn fingerprint<'a>(
    rule: &str,
    product: &str,
    key: &str,
    units: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut units: Vec<&str> = units.into_iter().collect();
    units.sort_unstable();
    units.dedup();
    let mut out = half(&[rule, product, key]);
    out.push_str(&half(&units));
    out
}

/// Whether two fingerprints differ at most in the units concerned.
pub fn same_subject(one: &str, other: &str) -> bool {
    one.len() == 64 && other.len() == 64 && one.get(..32) == other.get(..32)
}

/// The first 128 bits of SHA-256 over parts that are each ended by a NUL, so that no two lists run together.
fn half(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(16).fold(String::with_capacity(64), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        text
    })
}

/// A unit's name without the directory it was built in: `comp_dir` and what both have in common is taken off, and so
/// are leading `./` and `../`. The member of an archive is kept before it.
pub fn normalise_unit(name: &str, comp_dir: Option<&str>, member: Option<&str>) -> String {
    let mut parts: Vec<&str> = name.split('/').collect();
    if name.starts_with('/') {
        let base: Vec<&str> = comp_dir.unwrap_or_default().split('/').collect();
        let common = parts.iter().zip(&base).take_while(|(a, b)| a == b).count();
        // The leading empty component of two absolute paths is always common and says nothing.
        if common > 1 {
            parts.drain(..common.min(parts.len().saturating_sub(1)));
        }
    }
    let leading = parts.iter().take_while(|part| matches!(**part, "" | "." | "..")).count();
    let kept = parts.get(leading..).unwrap_or_default().join("/");
    match member {
        Some(member) => format!("{member}:{kept}"),
        None => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_the_build_does_not_enter() {
        for (name, dir) in [
            ("src/core/nginx.c", Some("/build/nginx-1.22.1")),
            ("/build/nginx-1.22.1/src/core/nginx.c", Some("/build/nginx-1.22.1")),
            ("/home/a/src/core/nginx.c", Some("/home/a/objs")),
            ("../src/core/nginx.c", Some("/x/objs")),
            (".//src/core/nginx.c", None),
        ] {
            assert_eq!(normalise_unit(name, dir, None), "src/core/nginx.c", "{name}");
        }
        assert_eq!(normalise_unit("a.c", None, Some("a.o")), "a.o:a.c");
        assert_eq!(normalise_unit("/", Some("/"), None), "");
    }

    #[test]
    fn order_of_units_does_not_enter_and_the_halves_are_apart() {
        let one = fingerprint("r", "nginx", "k", ["b.c", "a.c"]);
        assert_eq!(one, fingerprint("r", "nginx", "k", ["a.c", "b.c", "a.c"]));
        let other = fingerprint("r", "nginx", "k", ["a.c"]);
        assert_ne!(one, other);
        assert!(same_subject(&one, &other));
        assert!(!same_subject(&one, &fingerprint("r", "nginx", "l", ["a.c", "b.c"])));
        assert_ne!(fingerprint("r", "ng", "inxk", [""]), fingerprint("r", "nginx", "k", [""]));
        assert_eq!(one.len(), 64);
    }
}
