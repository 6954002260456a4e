//! Finding the program's texts in a file, without symbols.
//!
//! Each is one constant ending in NUL (`src/core/nginx.c`, `ngx_show_version_info`); from 1.0.11 to 1.7.12 the `built by`,
//! `TLS SNI` and `configure arguments` lines are one constant together, so a marker may stand inside a string.

use super::Places;
use super::configure;
use super::memory::Memory;
use super::text::{self, VersionText};
use super::version;
use crate::facts::Problem;
use memchr::memmem::Finder;

/// Bytes of constants searched for the first marker. nginx has 100 to 800 KB, with everything linked statically.
const MAX_SEARCHED: u64 = 48 << 20;
/// Most occurrences of one marker looked at.
const MAX_HITS: usize = 4096;
/// Longest version line.
const MAX_LINE: usize = 1024;

const CONFIGURE: usize = 0;
const NGINX: usize = 1;
const TENGINE: usize = 2;
const ANGIE: usize = 3;
const BUILT_BY: usize = 4;
const BUILT_WITH: usize = 5;
const SNI: usize = 6;
const SIGNATURES: usize = 7;
const CORE_MODULE: usize = SIGNATURES + 4;
/// The needles; those from [`CORE_MODULE`] + 1 on are [`super::markers::TEXTS`].
const NEEDLES: [&[u8]; CORE_MODULE + 1] = [
    b"configure arguments:",
    b"nginx version: ",
    b"Tengine version: ",
    b"Angie version: ",
    b"built by ",
    b"built with ",
    b"TLS SNI support ",
    b"8,4,8,",
    b"8,8,8,",
    b"4,4,4,",
    b"4,4,8,",
    b"ngx_core_module\0",
];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) said: VersionText,
    /// Whether configure arguments are there, also where none are taken.
    pub(super) configured: bool,
    pub(super) places: Places,
    /// Address and text of every copy of a module signature.
    pub(super) signatures: Vec<(u64, String)>,
    /// Addresses of the string `ngx_core_module`.
    pub(super) core_module: Vec<u64>,
    /// File offset of the first occurrence of each text of [`super::markers::TEXTS`].
    pub(super) markers: Vec<Option<u64>>,
    pub(super) problems: Vec<Problem>,
}

/// Searches the constants. `None` if neither a configure text nor a module signature is there.
pub(super) fn find(memory: &Memory<'_>) -> Option<Found> {
    let ranges = memory.constants();
    // Sizes of a pointer, of sig_atomic_t and of time_t; the first is known.
    let signatures =
        if memory.format.is_64 { SIGNATURES..SIGNATURES + 2 } else { SIGNATURES + 2..SIGNATURES + 4 };
    let first: Vec<Finder<'_>> = std::iter::once(CONFIGURE)
        .chain(signatures.clone())
        .filter_map(|needle| NEEDLES.get(needle))
        .map(Finder::new)
        .collect();
    let mut is_one = false;
    let mut tried = 0;
    memory.search(&ranges, &first, MAX_SEARCHED, |needle, offset| {
        tried += 1;
        is_one = match needle {
            0 => configure_text(memory, offset).is_some() || is_too_long(memory, offset),
            _ => signature(memory, offset).is_some(),
        };
        !is_one && tried < MAX_HITS
    });
    if !is_one {
        return None;
    }
    let mut hits: Vec<Vec<u64>> = vec![Vec::new(); NEEDLES.len() + super::markers::TEXTS.len()];
    let needles: Vec<Finder<'_>> = NEEDLES
        .iter()
        .copied()
        .chain(super::markers::TEXTS.iter().map(|marker| marker.text.as_bytes()))
        .map(Finder::new)
        .collect();
    let missed = memory.search(&ranges, &needles, MAX_SEARCHED, |needle, offset| {
        if let Some(list) = hits.get_mut(needle).filter(|list| list.len() < MAX_HITS) {
            list.push(offset);
        }
        true
    });
    let mut found = Found::default();
    if missed > 0 {
        found.problems.push(Problem::damage(
            "constants-not-searched",
            format!("the last {missed} bytes of constants were not searched for the program's texts"),
        ));
    }
    let of = |needle: usize| hits.get(needle).map(Vec::as_slice).unwrap_or_default();
    version_and_compiler(memory, &of, &mut found);
    found.markers = (NEEDLES.len()..hits.len()).map(|n| of(n).first().copied()).collect();
    for needle in signatures {
        for (start, text) in of(needle).iter().filter_map(|&offset| signature(memory, offset)) {
            if let Some(address) = memory.address_of(start) {
                found.signatures.push((address, text));
            }
        }
    }
    found.signatures.sort_unstable();
    found.signatures.dedup();
    found.core_module = of(CORE_MODULE).iter().filter_map(|&offset| memory.address_of(offset)).collect();
    Some(found)
}

fn version_and_compiler<'h>(memory: &Memory<'_>, of: &impl Fn(usize) -> &'h [u64], found: &mut Found) {
    let said = &mut found.said;
    for (needle, prefix) in
        [(ANGIE, &b"Angie version: "[..]), (TENGINE, b"Tengine version: "), (NGINX, b"nginx version: ")]
    {
        for &offset in of(needle) {
            let Some(line) = version_line(memory, offset, prefix) else { continue };
            if !said.version_lines.contains(&line) {
                found.places.version = found.places.version.take().or_else(|| memory.place(offset));
                said.version_lines.push(line);
            }
        }
    }
    said.product = version::product(&said.version_lines);

    let mut texts: Vec<(String, u64)> =
        of(CONFIGURE).iter().filter_map(|&o| Some((configure_text(memory, o)?, o))).collect();
    texts.sort();
    texts.dedup_by(|b, a| a.0 == b.0);
    let too_long = of(CONFIGURE).iter().any(|&offset| is_too_long(memory, offset));
    found.configured = too_long || !texts.is_empty();
    if too_long {
        let limit = memory.image.limits.string_bytes;
        let message = format!("the configure arguments are longer than {limit} bytes");
        found.problems.push(Problem::damage("string-too-long", message));
    } else if let [_, _, ..] = texts.as_slice() {
        // Which of them the program would print, nothing tells.
        let message =
            format!("{} different configure texts are in this file, and none is taken", texts.len());
        found.problems.push(Problem::notice("several-configure-texts", message));
    } else if let Some((raw, offset)) = texts.pop() {
        found.places.configure = memory.place(offset);
        if raw.contains('\u{fffd}') {
            found.problems.push(Problem::notice("not-utf8", "the configure arguments are not all UTF-8"));
        }
        said.arguments = Some(configure::parse(&raw));
        said.configure_raw = Some(raw);
    }
    if let Some((line, offset)) = first_line(memory, of(BUILT_BY), b"built by ") {
        found.places.compiler = memory.place(offset);
        said.compiler_line = Some(line);
    }
    // The copy that says more ends where the running library's name is put in.
    if let Some((line, offset)) = first_line(memory, of(BUILT_WITH), b"built with ") {
        let line = line.trim_end_matches("(running with").trim().to_owned();
        found.places.openssl = memory.place(offset);
        said.openssl = text::openssl(&line);
        said.openssl_line = Some(line);
    }
    if let Some((line, _)) = first_line(memory, of(SNI), b"TLS SNI support ") {
        said.tls_sni = Some(line == "enabled");
    }
}

/// The rest of the line after the first occurrence of `prefix` that begins a string or a line.
fn first_line(memory: &Memory<'_>, offsets: &[u64], prefix: &[u8]) -> Option<(String, u64)> {
    offsets.iter().find_map(|&offset| {
        if !begins(memory, offset) {
            return None;
        }
        let whole = memory.c_string_in_file(offset, memory.image.limits.string_bytes)?;
        let rest = whole.strip_prefix(prefix)?;
        // The compiler's name can hold a line break, but no line of nginx's own.
        let end = [&b"\nTLS SNI"[..], b"\nconfigure arguments:", b"\nbuilt "]
            .iter()
            .filter_map(|next| memchr::memmem::find(rest, next))
            .min()
            .unwrap_or(rest.len());
        let line = String::from_utf8_lossy(rest.get(..end)?).trim().to_owned();
        (!line.is_empty()).then_some((line, offset))
    })
}

/// Whether a string or a line begins at that offset.
fn begins(memory: &Memory<'_>, offset: u64) -> bool {
    memory.byte_before(offset).is_none_or(|byte| byte == 0 || byte == b'\n')
}

/// The text after `configure arguments:`, if it ends like a C string of printable text. One line end is dropped.
fn configure_text(memory: &Memory<'_>, offset: u64) -> Option<String> {
    if !begins(memory, offset) {
        return None;
    }
    let whole = memory.c_string_in_file(offset, memory.image.limits.string_bytes)?;
    let rest = whole.strip_prefix(NEEDLES[CONFIGURE])?;
    let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
    let rest = rest.strip_suffix(b"\r").unwrap_or(rest);
    let rest = String::from_utf8_lossy(rest);
    let plausible = rest.trim().is_empty() || rest.starts_with(" -") || rest.starts_with("  -");
    plausible.then(|| rest.into_owned())
}

/// Whether configure arguments begin at that offset and do not end within the limit.
fn is_too_long(memory: &Memory<'_>, offset: u64) -> bool {
    let limit = memory.image.limits.string_bytes;
    let mut start = [0; NEEDLES[CONFIGURE].len() + 3];
    let plausible = matches!(memory.image.input.read_at(offset, &mut start), Ok(got) if got == start.len())
        && begins(memory, offset)
        && start.ends_with(b" --");
    plausible
        && memory.c_string_in_file(offset, limit).is_none()
        && memory.image.input.len() - offset > limit as u64
}

/// A line that names program and version, if it ends its string or its line as these do.
fn version_line(memory: &Memory<'_>, offset: u64, prefix: &[u8]) -> Option<String> {
    if !begins(memory, offset) {
        return None;
    }
    let whole = memory.c_string_in_file(offset, MAX_LINE)?;
    let rest = whole.strip_prefix(prefix)?;
    let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    let line = std::str::from_utf8(whole.get(..prefix.len() + end)?).ok()?;
    let (_, version) = line.get(prefix.len()..)?.split_once('/')?;
    let build = version.trim().split_once(' ').map_or("", |(_, build)| build.trim());
    (version.starts_with(|c: char| c.is_ascii_digit())
        && (build.is_empty() || build.starts_with('(') && build.ends_with(')'))
        && version::product(&[line]).is_some())
    .then(|| line.to_owned())
}

/// File offset and text of the signature whose numbers stand at `offset` (`NGX_MODULE_SIGNATURE`, `src/core/ngx_module.h`).
fn signature(memory: &Memory<'_>, offset: u64) -> Option<(u64, String)> {
    let text = memory.c_string_in_file(offset, 64)?;
    let flags = text.get(6..)?;
    if !(33..=40).contains(&flags.len()) || !flags.iter().all(|b| matches!(b, b'0' | b'1')) {
        return None;
    }
    let mut raw = String::from_utf8(text).ok()?;
    let mut start = offset;
    // Angie puts its name before the numbers.
    let back = offset.min(16);
    if let Ok(before) = memory.image.read(offset - back, back, "a signature") {
        let name = before.rsplit(|b| *b == 0).next().unwrap_or_default();
        if let Some(letters) = name.strip_suffix(b",")
            && letters.first().is_some_and(u8::is_ascii_uppercase)
            && letters.iter().all(u8::is_ascii_alphabetic)
        {
            start = offset - name.len() as u64;
            raw.insert_str(0, std::str::from_utf8(name).ok()?);
        }
    }
    Some((start, raw))
}
