//! What a dynamic program asks of the C library, and what that says of the compiler's work.
//!
//! glibc's headers turn some calls into macros or checked variants only where `__OPTIMIZE__` is defined, and
//! compilers replace some calls only when optimizing. Such an import is left by *some* unit, and no more is claimed.

use super::comment::Comment;
use super::hardening::is_fortified;
use super::{Claim, Scope, Source, Strength};
use crate::compiler::Level;
use crate::image::linkage::Linkage;
use crate::image::symbols::SymbolTable;

/// Functions of `<netinet/in.h>` that glibc's headers replace by macros when optimizing. Measured: every dynamic -O0
/// build of nginx, haproxy, memcached and redis imports some, none of their optimized builds and none of 440
/// distribution files does.
const UNOPTIMIZED_ONLY: [&[u8]; 4] = [b"htonl", b"htons", b"ntohl", b"ntohs"];

/// The C library a file is linked against, as far as its names tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CLibrary {
    /// The GNU C library.
    Glibc,
    /// musl.
    Musl,
    /// Another, or none.
    Other,
}

/// Tells the C library by interpreter and needed libraries.
pub fn c_library(linkage: &Linkage) -> CLibrary {
    let interpreter = linkage.interpreter.as_deref().unwrap_or_default();
    let base = interpreter.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let needs = |test: &dyn Fn(&[u8]) -> bool| linkage.needed.iter().any(|name| test(name));
    if base.starts_with(b"ld-musl-") || needs(&|name| name.starts_with(b"libc.musl-")) {
        CLibrary::Musl
    } else if needs(&|name| name == b"libc.so.6" || name == b"libc.so.6.1") {
        CLibrary::Glibc
    } else {
        CLibrary::Other
    }
}

/// Claims about the optimization level of some part of the file.
pub fn claims(linkage: &Linkage, dynamic: &SymbolTable, comment: &Comment) -> Vec<Claim> {
    let mut plain: Vec<&[u8]> = Vec::new();
    let mut fortified: Vec<&[u8]> = Vec::new();
    let mut bcmp = false;
    for symbol in dynamic.iter().filter(|symbol| symbol.undefined) {
        let name = symbol.base_name();
        if UNOPTIMIZED_ONLY.contains(&name) {
            plain.push(name);
        } else if is_fortified(name) {
            fortified.push(name);
        } else if name == b"bcmp" {
            bcmp = true;
        }
    }
    plain.sort_unstable();
    fortified.sort_unstable();
    let mut claims = Vec::new();
    // Other C libraries have no such macros, and so these imports at any level.
    if !plain.is_empty() && c_library(linkage) == CLibrary::Glibc {
        claims.push(claim(
            Level::O0,
            format!(
                "imports {} of 4 functions that glibc's headers replace when optimizing: {}",
                plain.len(),
                list(&plain)
            ),
        ));
    }
    if !fortified.is_empty() {
        claims.push(claim(
            Level::Optimized,
            format!(
                "imports {} checked functions, which need optimization: {}",
                fortified.len(),
                list(&fortified)
            ),
        ));
    }
    // Rust's library brings bcmp at any level, and old sources call it by name, so clang must be the only other one.
    if bcmp && comment.names("clang version") && !comment.names("rustc") {
        claims.push(claim(
            Level::Optimized,
            "imports bcmp, by which an optimizing clang replaces memcmp".to_owned(),
        ));
    }
    claims
}

fn claim(level: Level, quote: String) -> Claim {
    Claim {
        fact: "optimization.level".to_owned(),
        value: level.as_str().into(),
        strength: Strength::Inferred,
        source: Source::Imports,
        scope: Scope::Some,
        at: None,
        quote: Some(quote),
    }
}

fn list(names: &[&[u8]]) -> String {
    const SHOWN: usize = 8;
    let mut text =
        names.iter().take(SHOWN).map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::comment;
    use crate::evidence::testing::open;
    use crate::image::linkage;
    use crate::image::symbols::Symbols;

    fn levels(name: &str) -> Vec<(String, String)> {
        let image = open(name);
        let linkage = linkage::read(&image);
        let symbols = Symbols::new();
        let claims = claims(&linkage, symbols.dynamic(&image, &linkage), &comment::read(&image));
        claims
            .into_iter()
            .map(|claim| {
                assert_eq!(
                    (claim.strength, claim.source, claim.scope),
                    (Strength::Inferred, Source::Imports, Scope::Some)
                );
                (claim.value.as_str().unwrap().to_owned(), claim.quote.unwrap())
            })
            .collect()
    }

    #[test]
    fn byte_order_functions_are_called_only_without_optimization() {
        let found = levels("net-O0");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "O0");
        assert!(found[0].1.contains("2 of 4") && found[0].1.contains("htons, ntohl"), "{found:?}");
        assert_eq!(levels("net-O2"), []);
        assert_eq!(levels("net-musl"), [], "musl has no macros for them");
    }

    #[test]
    fn checked_functions_need_optimization() {
        let found = levels("h_fort3");
        assert_eq!(found[0].0, "optimized");
        assert!(found[0].1.contains("__memset_chk, __printf_chk, __strcpy_chk"), "{found:?}");
        assert_eq!(levels("h_ssp"), [], "the stack protector is no checked function");
        assert_eq!(levels("gcc12-O0"), []);
    }

    #[test]
    fn c_libraries_are_told_apart() {
        for (name, expected) in [
            ("h_relro", CLibrary::Glibc),
            ("musl-dynamic", CLibrary::Musl),
            ("musl-static", CLibrary::Other),
            ("cet", CLibrary::Other),
        ] {
            assert_eq!(c_library(&linkage::read(&open(name))), expected, "{name}");
        }
    }
}
