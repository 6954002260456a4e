//! Paths as relative URIs.

use crate::facts::Facts;
use crate::report::escape::uri_path;
use base64::Engine as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The URI of a target; a member of a package stands behind `!/`.
pub(super) fn of_facts(facts: &Facts, base: Option<&Path>) -> String {
    let bytes = facts
        .path_bytes
        .as_deref()
        .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok())
        .unwrap_or_else(|| facts.path.clone().into_bytes());
    let mut uri = of_bytes(&bytes, base);
    if let Some(member) = &facts.member {
        uri.push_str("!/");
        uri.push_str(&of_bytes(member.as_bytes(), None));
    }
    uri
}

/// The URI of a path that is text.
pub(super) fn of_path(path: &str, base: Option<&Path>) -> String {
    of_bytes(path.as_bytes(), base)
}

/// Relative to `base` if the path lies there; otherwise the path without its leading slash. Dots are resolved by the
/// text alone: the report must not depend on what is on the disk.
fn of_bytes(path: &[u8], base: Option<&Path>) -> String {
    let base: Vec<&[u8]> =
        base.map(|base| segments(base.as_os_str().as_bytes(), Vec::new())).unwrap_or_default();
    let absolute = path.first() == Some(&b'/');
    let all = segments(path, if absolute { Vec::new() } else { base.clone() });
    let rest = if all.len() > base.len() { all.strip_prefix(base.as_slice()).unwrap_or(&all) } else { &all };
    let text = rest.iter().map(|segment| uri_path(segment)).collect::<Vec<_>>().join("/");
    if text.is_empty() { "unnamed".to_owned() } else { text }
}

fn segments<'a>(path: &'a [u8], mut before: Vec<&'a [u8]>) -> Vec<&'a [u8]> {
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                before.pop();
            }
            other => before.push(other),
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_relative_to_the_base_by_their_text() {
        let base = Some(Path::new("/home/me/project"));
        for (path, uri) in [
            ("objs/nginx", "objs/nginx"),
            ("./objs//nginx", "objs/nginx"),
            ("/home/me/project/objs/nginx", "objs/nginx"),
            ("../other/nginx", "home/me/other/nginx"),
            ("/usr/sbin/nginx", "usr/sbin/nginx"),
            ("/home/me/project", "home/me/project"),
            ("../../../../../etc/x", "etc/x"),
            ("builtin:release", "builtin%3Arelease"),
            ("container://image/bin/sh", "container%3A/image/bin/sh"),
            ("pid:12", "pid%3A12"),
            ("", "home/me/project"),
        ] {
            assert_eq!(of_path(path, base), uri, "{path}");
        }
        assert_eq!(of_path("", None), "unnamed");
        assert_eq!(of_path("../x", None), "x");
        assert_eq!(of_path("/usr/sbin/nginx", None), "usr/sbin/nginx");
    }
}
