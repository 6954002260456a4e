//! The text that `nginx -T` prints, taken apart.

use super::source::Text;

/// Begins each file in a dump (`src/core/nginx.c`).
const HEADER: &str = "# configuration file ";

/// The files of a dump, or `None` if the text is not one. What is said before the first header is passed over.
pub(super) fn files(bytes: &[u8]) -> Option<Vec<Text>> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let first = bytes
        .split(|b| *b == b'\n')
        .find(|line| !is_said(line) && !line.iter().all(u8::is_ascii_whitespace))?;
    header(first)?;
    let mut out: Vec<Text> = Vec::new();
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if let Some(path) = header(line) {
            out.push((path, Vec::new()));
        } else if let Some((_, text)) = out.last_mut() {
            text.extend_from_slice(line);
        }
    }
    Some(out)
}

/// Whether a line is one of those that come before a dump and are no part of it: what nginx says of its test, a line of its
/// log (`2026/11/30 12:00:00 [warn] …`), what `kubectl exec` says of the container it takes.
fn is_said(line: &[u8]) -> bool {
    const STARTS: [&[u8]; 4] =
        [b"nginx: ", b"angie: ", b"Defaulted container \"", b"Defaulting container name to "];
    const DATED: &[u8] = b"0000/00/00 00:00:00 [";
    let is_dated = line.len() > DATED.len()
        && line.iter().zip(DATED).all(|(byte, want)| match want {
            b'0' => byte.is_ascii_digit(),
            _ => byte == want,
        });
    is_dated || STARTS.iter().any(|start| line.starts_with(start))
}

fn header(line: &[u8]) -> Option<String> {
    let rest = line.strip_prefix(HEADER.as_bytes())?;
    let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
    let rest = rest.strip_suffix(b"\r").unwrap_or(rest);
    let path = rest.strip_suffix(b":")?;
    (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned())
}
