//! `.go.buildinfo`: what the Go command wrote about the build. It is loaded data and survives `-ldflags=-s -w` and `strip`.
//!
//! Layout (Go's `debug/buildinfo`): 16-byte aligned, `\xff Go buildinf:`, pointer size, flags. Since Go 1.18 (flag 2) the version and
//! the module information follow at offset 32, each with a varint length; before, two pointers to string headers did.
//! Build settings are part of the module information since Go 1.18.

use super::{Claim, Place, Scope, Source, Strength};
use crate::compiler::Level;
use crate::compiler::options::{LevelWord, Opt, WithoutLevel, group, level, split_shell};
use crate::compiler::producer::go_level;
use crate::image::Image;
use object::elf;

const SECTION: &str = ".go.buildinfo";
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// Without a section table the linker's first data segment is searched, this far (as Go's own reader does).
const SEARCH_BYTES: u64 = 64 << 10;
/// Longest version or module information accepted: a module graph of tens of thousands of modules.
const TEXT_BYTES: u64 = 16 << 20;
/// Most build settings kept. Go writes about twenty.
const SETTINGS: usize = 1000;

/// What the Go command wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoBuildInfo {
    /// Where it stands.
    pub at: Place,
    /// Go version: `go1.24.4`.
    pub version: String,
    /// Import path of the main package.
    pub path: Option<String>,
    /// Main module and its version.
    pub module: Option<(String, String)>,
    /// Build settings in order: `-gcflags`, `CGO_ENABLED`, `GOAMD64`, `-ldflags`, …
    pub settings: Vec<(String, String)>,
    /// The level the compiler was asked for; `Unknown` where no settings were recorded.
    pub level: LevelWord,
    /// What part of the file `level` speaks of.
    pub scope: Scope,
}

impl GoBuildInfo {
    /// The value of a setting.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The x86-64 level the code needs by `GOAMD64`: `v3` is `x86-64-v3`.
    pub fn baseline(&self) -> Option<&'static str> {
        Some(match self.setting("GOAMD64")? {
            "v1" => "x86-64",
            "v2" => "x86-64-v2",
            "v3" => "x86-64-v3",
            "v4" => "x86-64-v4",
            _ => return None,
        })
    }

    /// The claims about the level, if the settings tell: of Go code, and of the C code that was compiled with it.
    pub fn claims(&self) -> Vec<Claim> {
        let of_c = self.setting("CGO_CFLAGS").filter(|_| self.setting("CGO_ENABLED") == Some("1")).and_then(
            |flags| {
                let word = level(
                    &group(&split_shell(flags)),
                    WithoutLevel::Unknown("packages add options of their own"),
                );
                (word.level != Level::Unknown).then(|| Claim {
                    fact: "optimization.level".to_owned(),
                    value: word.level.as_str().into(),
                    strength: Strength::Declared,
                    source: Source::GoBuildinfo,
                    scope: Scope::Some,
                    at: Some(self.at.clone()),
                    quote: Some(format!("CGO_CFLAGS={flags}")),
                })
            },
        );
        of_c.into_iter().chain(self.claim_of_go()).collect()
    }

    fn claim_of_go(&self) -> Option<Claim> {
        if self.level.level == Level::Unknown {
            return None;
        }
        let quote = self.setting("-gcflags").map_or_else(
            || format!("{} with no -gcflags", self.version),
            |flags| format!("-gcflags={flags}"),
        );
        Some(Claim {
            fact: "optimization.level".to_owned(),
            value: self.level.level.as_str().into(),
            strength: Strength::Recorded,
            source: Source::GoBuildinfo,
            scope: self.scope,
            at: Some(self.at.clone()),
            quote: Some(quote),
        })
    }
}

/// Reads the build information, or `None` where there is none or it makes no sense.
pub fn read(image: &Image) -> Option<GoBuildInfo> {
    let (start, end, at) = locate(image)?;
    let head = image.read(start, 32, SECTION).ok()?;
    if !head.starts_with(MAGIC) {
        return None;
    }
    let flags = *head.get(15)?;
    let (version, module) = if flags & 2 == 2 {
        let after = start.checked_add(32)?;
        let (version, next) = inline_string(image, after, end)?;
        let module = inline_string(image, next, end).map(|(text, _)| text).unwrap_or_default();
        (version, module)
    } else {
        let size = u64::from(*head.get(14)?);
        let little = flags & 1 == 0;
        let pointer = |index: u64| number(&head, 16u64.checked_add(index.checked_mul(size)?)?, size, little);
        let version = header_string(image, pointer(0)?, size, little)?;
        let module = pointer(1).and_then(|at| header_string(image, at, size, little)).unwrap_or_default();
        (version, module)
    };
    if version.is_empty() {
        return None;
    }
    let version = String::from_utf8_lossy(&version).into_owned();
    let module = String::from_utf8_lossy(unframed(&module)).into_owned();
    Some(understand(at, version, &module))
}

/// Offset of the head in the file, and of the end of what may belong to it.
fn locate(image: &Image) -> Option<(u64, u64, Place)> {
    if let Some(section) = image.section(SECTION).filter(|section| section.has_data()) {
        let end = section.offset.checked_add(section.size)?;
        return Some((section.offset, end, Place { section: SECTION.into(), offset: 0 }));
    }
    if image.described {
        return None;
    }
    let writable = |s: &&crate::image::Segment| s.kind == elf::PT_LOAD && s.flags & elf::PF_W.0 != 0;
    let (index, segment) = image.segments.iter().enumerate().find(|(_, s)| writable(s))?;
    let bytes = image.read(segment.offset, segment.file_size.min(SEARCH_BYTES), "data segment").ok()?;
    let found = memchr::memmem::find_iter(&bytes, MAGIC).find(|at| at % 16 == 0)? as u64;
    let start = segment.offset.checked_add(found)?;
    let end = segment.offset.checked_add(segment.file_size)?;
    Some((start, end, Place { section: format!("segment {index}").into(), offset: found }))
}

/// A varint length and that many bytes, all before `end`; also returns the offset after them.
fn inline_string(image: &Image, at: u64, end: u64) -> Option<(Vec<u8>, u64)> {
    let left = end.checked_sub(at)?;
    let prefix = image.read(at, left.min(10), SECTION).ok()?;
    let mut length = 0u64;
    let mut used = 0u64;
    for (index, byte) in prefix.iter().enumerate() {
        length |= u64::from(byte & 0x7f).checked_shl(u32::try_from(index).ok()?.checked_mul(7)?)?;
        used = index as u64 + 1;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let start = at.checked_add(used)?;
    let next = start.checked_add(length)?;
    if length > TEXT_BYTES || next > end {
        return None;
    }
    Some((image.read(start, length, SECTION).ok()?, next))
}

/// A Go string by the address of its header: pointer and length.
fn header_string(image: &Image, address: u64, size: u64, little: bool) -> Option<Vec<u8>> {
    if address == 0 || !matches!(size, 4 | 8) {
        return None;
    }
    let header = image.read_address(address, size.checked_mul(2)?)?;
    let length = number(&header, size, size, little)?;
    if length > TEXT_BYTES {
        return None;
    }
    image.read_address(number(&header, 0, size, little)?, length)
}

fn number(bytes: &[u8], at: u64, size: u64, little: bool) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let end = at.checked_add(usize::try_from(size).ok()?)?;
    let bytes = bytes.get(at..end).filter(|bytes| bytes.len() <= 8)?;
    let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Some(if little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
}

/// The module information stands between two marks of 16 bytes.
fn unframed(text: &[u8]) -> &[u8] {
    let framed = text.len() >= 33 && text.get(text.len() - 17) == Some(&b'\n');
    if framed { text.get(16..text.len() - 16).unwrap_or_default() } else { &[] }
}

fn understand(at: Place, version: String, text: &str) -> GoBuildInfo {
    let mut info = GoBuildInfo {
        at,
        version,
        path: None,
        module: None,
        settings: Vec::new(),
        level: LevelWord::unknown("the Go command recorded no build settings"),
        scope: Scope::File,
    };
    for line in text.lines() {
        let mut fields = line.split('\t');
        match (fields.next(), fields.next()) {
            (Some("path"), Some(path)) => info.path = Some(path.to_owned()),
            (Some("mod"), Some(module)) => {
                info.module = Some((module.to_owned(), fields.next().unwrap_or("").to_owned()));
            }
            (Some("build"), Some(setting)) if info.settings.len() < SETTINGS => {
                info.settings.extend(key_and_value(setting));
            }
            _ => {}
        }
    }
    // The Go command always records which compiler it used, if it records settings at all, and -gcflags if any were given.
    if info.setting("-compiler") == Some("gc") {
        (info.level, info.scope) = level_of_gcflags(info.setting("-gcflags").unwrap_or(""));
    } else if info.setting("-compiler").is_some() {
        info.level = LevelWord::unknown("compiled by gccgo, whose options are not among the build settings");
    }
    info
}

/// `key=value`, either of which is quoted as a Go string where it holds anything special.
fn key_and_value(setting: &str) -> Option<(String, String)> {
    let (key, rest) = if setting.starts_with(['"', '`']) {
        unquote(setting)?
    } else {
        let at = setting.find('=')?;
        (setting.get(..at)?.to_owned(), setting.get(at..)?)
    };
    let value = rest.strip_prefix('=')?;
    let value = if value.starts_with(['"', '`']) {
        unquote(value).map_or_else(|| value.to_owned(), |(value, _)| value)
    } else {
        value.to_owned()
    };
    Some((key, value))
}

/// A Go string literal at the start of a text, and what follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next()?;
    let mut out = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Some((out, text.get(at.checked_add(1)?..)?)),
            '\\' if quote == '"' => out.push(match letters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            other => out.push(other),
        }
    }
    None
}

/// The level by `-gcflags`. The value may begin with a pattern of packages, `all=-N -l`; without one it is for the packages
/// named on the command line, and the rest, among it the runtime, is compiled as usual. Of several `-gcflags` the
/// command records the last.
fn level_of_gcflags(value: &str) -> (LevelWord, Scope) {
    let (pattern, flags) = match value.split_once('=') {
        Some((pattern, flags)) if !pattern.starts_with('-') && !pattern.contains(' ') => (pattern, flags),
        _ => ("", value),
    };
    let options: Vec<Opt> = flags
        .split_ascii_whitespace()
        .map(|flag| Opt::new(flag.trim_matches(['\'', '"'])))
        .filter(|option| option.text.starts_with('-'))
        .collect();
    let level = go_level(&options);
    let scope = if level.level == Level::O0 && pattern != "all" { Scope::Some } else { Scope::File };
    (level, scope)
}

#[cfg(test)]
mod tests;
