//! `.comment`: the identification strings of the tools that touched the link.
//!
//! A set, not a list of units: the linker merges equal strings, start files add their own, and anybody may remove
//! the section. It says which compilers were there, never what they compiled.

use crate::facts::Problem;
use crate::image::{Image, sections};

/// Most bytes read; a real section has some hundred.
const MAX_BYTES: u64 = 1 << 20;
/// Most strings kept.
const MAX_IDENTS: usize = 4096;

/// What `.comment` holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comment {
    /// Every distinct string, in order of first appearance, linkers included.
    pub idents: Vec<Vec<u8>>,
    /// The linker, as it names itself (`LLD 16.0.6`, `mold 2.4.0`); GNU ld leaves no name.
    pub linker: Option<String>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

impl Comment {
    /// The strings that name compilers.
    pub fn compilers(&self) -> impl Iterator<Item = &[u8]> {
        self.idents.iter().map(Vec::as_slice).filter(|ident| linker(ident).is_none())
    }

    /// Whether a compiler calls itself by this word.
    pub fn names(&self, word: &str) -> bool {
        self.compilers().any(|ident| memchr::memmem::find(ident, word.as_bytes()).is_some())
    }
}

/// Reads `.comment`; empty where there is none.
pub fn read(image: &Image) -> Comment {
    let mut out = Comment::default();
    for section in image.sections_named(".comment").filter(|section| section.has_data()).take(MAX_IDENTS) {
        let there = match sections::there(image, section, MAX_BYTES) {
            Ok(there) => there,
            Err(error) => {
                out.problems.push(Problem::damage("damaged-comment", error.to_string()));
                continue;
            }
        };
        let size = there.len().min(MAX_BYTES);
        if size < section.size && !section.is_compressed() {
            let message = format!("only {size} of {} bytes of .comment are read", section.size);
            out.problems.push(Problem::damage("damaged-comment", message));
        }
        let Ok(bytes) = there.read_vec(0, size, MAX_BYTES, "section .comment") else { continue };
        for ident in bytes.split(|&byte| byte == 0).filter(|ident| !ident.is_empty()) {
            if out.idents.len() < MAX_IDENTS && !out.idents.iter().any(|known| known == ident) {
                out.idents.push(ident.to_vec());
            }
        }
    }
    out.linker = out.idents.iter().find_map(|ident| linker(ident));
    out
}

/// The linker's name, if the string is a linker's: `Linker: LLD 16.0.6`, `Linker: Debian LLD 19.1.7`, `mold 2.4.0 (…)`.
fn linker(ident: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(ident);
    if let Some(name) = text.strip_prefix("Linker: ") {
        return Some(name.trim().to_owned());
    }
    ["mold ", "Wild version ", "GNU gold "]
        .iter()
        .any(|name| text.starts_with(name))
        .then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::testing::open;

    #[test]
    fn equal_strings_count_once_and_the_linker_is_told_apart() {
        let comment = read(&open("lld19"));
        assert_eq!(comment.linker.as_deref(), Some("Debian LLD 19.1.7"));
        assert!(comment.names("GCC: (Debian"), "{comment:?}");
        assert!(!comment.names("LLD"));
        assert_eq!(read(&open("v_noshdr")), Comment::default());
    }
}
