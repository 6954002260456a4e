//! The module signature: sizes of three types, then one digit for each of 33 to 35 features
//! (`NGX_MODULE_SIGNATURE_1` and following, `src/core/ngx_module.h`, since 1.9.11).

use super::version::{Family, Version};
use crate::facts::Signature;
use std::collections::BTreeMap;

/// The feature at each position, as the program's own macros name it. `const_from` is the version from which on the
/// digit is the same in every build and says nothing.
struct Position {
    name: &'static str,
    const_from: Option<Version>,
}

const fn varies(name: &'static str) -> Position {
    Position { name, const_from: None }
}

const fn until(name: &'static str, minor: u32, patch: u32) -> Position {
    Position { name, const_from: Some(Version(1, minor, patch)) }
}

const POSITIONS: [Position; 35] = [
    varies("kqueue"),
    varies("iocp"),
    varies("file_aio"),
    varies("aio_sendfile"),
    varies("eventfd"),
    varies("epoll"),
    varies("keepalive_tunable"),
    varies("inet6"),
    until("ipv6_only", 11, 5),
    until("reuseport", 11, 5),
    varies("so_accept_filter"),
    until("tcp_defer_accept", 11, 5),
    varies("setfib"),
    varies("tcp_fastopen"),
    varies("unix_domain"),
    varies("variadic_macros"),
    until("md5", 11, 2),
    // A constant from 1.11.2 to 1.25.2; from 1.25.3 on the position tells whether QUIC is there.
    varies("quic"),
    varies("openat"),
    varies("atomic_ops"),
    varies("posix_semaphores"),
    varies("threads"),
    varies("pcre"),
    varies("http_ssl"),
    until("http_v2", 11, 5),
    varies("http_gzip"),
    until("http_degradation", 11, 5),
    varies("http_x_forwarded_for"),
    varies("http_realip"),
    varies("http_headers"),
    varies("http_dav"),
    varies("http_cache"),
    varies("http_upstream_zone"),
    varies("compat"),
    varies("http_client"),
];

/// The digits of a signature.
fn digits(raw: &str) -> &str {
    raw.rsplit(',').next().unwrap_or_default()
}

/// Name of the feature at a position of that version, or `None` where the digit says nothing.
fn name_at(position: usize, family: Family, version: Option<Version>) -> Option<&'static str> {
    let entry = POSITIONS.get(position)?;
    let version = version?;
    if entry.name == "quic" {
        return if version < Version(1, 11, 2) {
            Some("sha1")
        } else {
            (version >= Version(1, 25, 3) && family != Family::Tengine).then_some("quic")
        };
    }
    entry.const_from.is_none_or(|from| version < from).then_some(entry.name)
}

/// Decodes a signature for the nginx version whose layout it has. With `--with-compat` the digits of
/// `file_aio`, `aio_sendfile`, `quic`, `threads`, `http_ssl`, `http_gzip`, `http_x_forwarded_for`, `http_realip`,
/// `http_headers`, `http_dav`, `http_upstream_zone` are set whether or not the feature is there.
pub fn decode(raw: &str, family: Family, version: Option<Version>) -> Signature {
    let digits = digits(raw).as_bytes();
    let flags: BTreeMap<String, bool> = digits
        .iter()
        .enumerate()
        .filter_map(|(at, digit)| Some((name_at(at, family, version)?.to_owned(), *digit == b'1')))
        .collect();
    // The 34th digit came with --with-compat in 1.11.5.
    let compat = digits.get(33).map(|digit| *digit == b'1');
    Signature { raw: raw.to_owned(), flags, compat }
}

/// Names of the features in which two signatures differ, for saying why a module is not binary compatible.
/// Where the sizes or the lengths differ that is said instead.
pub fn differences(one: &str, other: &str, family: Family, version: Option<Version>) -> Vec<String> {
    let head = |raw: &str| raw.rsplit_once(',').map_or_else(String::new, |(head, _)| head.to_owned());
    let mut out = Vec::new();
    if head(one) != head(other) {
        out.push(format!("type sizes {} and {}", head(one), head(other)));
    }
    let (one, other) = (digits(one), digits(other));
    if one.len() != other.len() {
        out.push(format!("{} and {} feature digits", one.len(), other.len()));
    }
    for (at, _) in one.bytes().zip(other.bytes()).enumerate().filter(|(_, (a, b))| a != b) {
        let name = name_at(at, family, version).map_or_else(|| format!("position {}", at + 1), str::to_owned);
        out.push(name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "8,4,8,0011111111010111001111111111111111";
    const MINIMAL: &str = "8,4,8,0000111111010111001110001011000110";

    #[test]
    fn a_compatible_build_and_a_minimal_one() {
        let version = Some(Version(1, 22, 1));
        let full = decode(DEBIAN, Family::Nginx, version);
        assert_eq!(full.compat, Some(true));
        assert_eq!((full.flags["pcre"], full.flags["http_cache"], full.flags["kqueue"]), (true, true, false));
        let minimal = decode(MINIMAL, Family::Nginx, version);
        assert_eq!(minimal.compat, Some(false));
        assert_eq!(
            (minimal.flags["pcre"], minimal.flags["threads"], minimal.flags["http_gzip"]),
            (false, false, false)
        );
        // Constants of that version are not shown.
        assert!(
            !full.flags.contains_key("http_v2")
                && !full.flags.contains_key("md5")
                && !full.flags.contains_key("quic")
        );
    }

    #[test]
    fn layouts_of_other_versions() {
        let old = decode("8,4,8,000011111101011100111000101100011", Family::Nginx, Some(Version(1, 9, 11)));
        assert_eq!(old.compat, None);
        assert!(old.flags.contains_key("md5") && old.flags.contains_key("http_v2"));
        let new = decode(DEBIAN, Family::Nginx, Some(Version(1, 27, 0)));
        assert!(!new.flags["quic"]);
        let angie =
            decode("Angie,8,4,8,00001111110101110011100010110001101", Family::Angie, Some(Version(1, 31, 2)));
        assert!(angie.flags["http_client"]);
        assert!(decode(DEBIAN, Family::Nginx, None).flags.is_empty());
    }

    #[test]
    fn what_makes_two_incompatible() {
        let version = Some(Version(1, 22, 1));
        let other = "8,4,8,0011111111010111001111011111111111";
        assert_eq!(differences(DEBIAN, other, Family::Nginx, version), ["pcre"]);
        assert_eq!(
            differences(DEBIAN, "4,4,4,0011111111010111001111111111111111", Family::Nginx, version),
            ["type sizes 8,4,8 and 4,4,4"]
        );
        assert!(differences(DEBIAN, DEBIAN, Family::Nginx, version).is_empty());
    }
}
