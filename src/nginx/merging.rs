//! Whether the units of modules were compiled with equal string constants merged.
//!
//! Every module structure points at the text of the module signature. GCC puts such texts into mergeable sections
//! at `-O1` and above, so that one copy remains; at `-O0` each unit keeps its own (measured with gcc 12: 51 copies for
//! 51 modules at `-O0`, 1 at `-Og`, `-O1`, `-O2`, `-Os` and with link-time optimization at any level). A module whose
//! copy is its own, beside many that share one, was compiled apart from them.
//! Limits: clang merges at `-O0` too; `-fno-merge-constants`, and lld with `-O0`, keep copies apart at any level.

use super::configure::last_value;
use super::declared;
use super::modules::Structure;
use crate::compiler::options::split_shell;
use crate::evidence::{Claim, Scope, Source, Strength};
use crate::facts::ConfigureArgument;
use std::collections::BTreeMap;

/// The smallest group of modules that shows merging. Units hold two structures at most (`ngx_event.c`,
/// `ngx_http_range_filter_module.c`), and share the text among themselves at any level.
const SHARED: usize = 3;
/// Fewest modules from which anything is concluded.
const ENOUGH: usize = 4;

/// What the copies show.
#[derive(Debug, Default)]
pub(super) struct Merging {
    /// Indices of modules compiled without merging.
    pub(super) unmerged: Vec<usize>,
    /// Number of distinct copies.
    pub(super) copies: usize,
}

/// Counts the copies. `None` where there are too few modules.
pub(super) fn read(structures: &[Structure]) -> Option<Merging> {
    let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, structure) in structures.iter().enumerate() {
        groups.entry(structure.signature?).or_default().push(index);
    }
    if structures.len() < ENOUGH {
        return None;
    }
    let copies = groups.len();
    let mut unmerged: Vec<usize> =
        groups.into_values().filter(|group| group.len() < SHARED).flatten().collect();
    unmerged.sort_unstable();
    Some(Merging { unmerged, copies })
}

/// Whether the declared build explains copies kept apart at any level: a compiler other than gcc, constants kept
/// apart on request, or lld without optimization.
pub(super) fn explained_otherwise(arguments: &[ConfigureArgument], compiler_line: Option<&str>) -> bool {
    let other_compiler =
        compiler_line.and_then(declared::compiler).is_some_and(|(family, _)| family != "gcc");
    let words = |option: &str| last_value(arguments, option).map(split_shell).unwrap_or_default();
    let has = |list: &[String], flag: &str| list.iter().any(|word| word == flag);
    let compile = words("--with-cc-opt");
    let link = words("--with-ld-opt");
    other_compiler
        || has(&compile, "-fno-merge-constants")
        || has(&link, "-fuse-ld=lld") && has(&link, "-Wl,-O0")
}

/// The claims that follow: the count, and the level it suggests for the modules concerned.
pub(super) fn claims(merging: &Merging, names: &[String]) -> Vec<Claim> {
    let total = names.len();
    let claim = |fact: &str, value: serde_json::Value, strength, scope, quote: String| Claim {
        fact: fact.to_owned(),
        value,
        strength,
        source: Source::StringMerging,
        scope,
        at: None,
        quote: Some(quote),
    };
    let copies = format!("{} copies of the module signature for {total} modules", merging.copies);
    let mut out = vec![claim(
        "nginx.signature_copies",
        merging.copies.into(),
        Strength::Structural,
        Scope::File,
        copies.clone(),
    )];
    if merging.unmerged.len() == total {
        let quote = format!("{copies} (a merging build has 1)");
        out.push(claim("optimization.level", "O0".into(), Strength::Inferred, Scope::File, quote));
    } else if !merging.unmerged.is_empty() {
        let apart: Vec<&str> =
            merging.unmerged.iter().filter_map(|&i| names.get(i)).map(String::as_str).collect();
        let quote = format!("{copies}; not shared by {}", apart.join(", "));
        out.push(claim("optimization.level", "O0".into(), Strength::Inferred, Scope::Unit, quote));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_signatures(texts: &[u64]) -> Vec<Structure> {
        texts
            .iter()
            .enumerate()
            .map(|(n, text)| Structure {
                address: n as u64,
                version: Some(1_022_001),
                signature: Some(*text),
                commands: None,
                kind: "HTTP".to_owned(),
                angie: false,
            })
            .collect()
    }

    #[test]
    fn one_module_apart_from_many_that_share() {
        let merging = read(&with_signatures(&[1, 1, 1, 2, 1])).unwrap();
        assert_eq!((merging.copies, merging.unmerged.as_slice()), (2, &[3][..]));
        let names: Vec<String> = (0..5).map(|n| format!("m{n}")).collect();
        let claims = claims(&merging, &names);
        assert_eq!(claims.len(), 2);
        assert_eq!(claims[1].scope, Scope::Unit);
        assert!(claims[1].quote.as_deref().unwrap().ends_with("not shared by m3"));
    }

    #[test]
    fn builds_that_keep_copies_apart_at_any_level() {
        let explained =
            |text: &str, line| explained_otherwise(&crate::nginx::configure::parse(text).list, line);
        assert!(explained("", Some("clang 14.0.6")));
        assert!(explained("--with-cc-opt='-O2 -fno-merge-constants'", Some("gcc 12.2.0")));
        assert!(explained("--with-ld-opt='-fuse-ld=lld -Wl,-O0'", None));
        assert!(!explained("--with-ld-opt=-Wl,-O0", Some("gcc 12.2.0")));
        assert!(!explained("", None));
    }

    #[test]
    fn all_apart_or_all_together() {
        // Two structures of one unit share their text at any level.
        let merging = read(&with_signatures(&[1, 2, 2, 3, 4])).unwrap();
        assert_eq!(merging.unmerged.len(), 5);
        let names = vec![String::new(); 5];
        assert_eq!(claims(&merging, &names)[1].scope, Scope::File);
        let merging = read(&with_signatures(&[7; 5])).unwrap();
        assert!(merging.unmerged.is_empty());
        assert_eq!(claims(&merging, &names).len(), 1);
        assert!(read(&with_signatures(&[1, 2])).is_none());
    }
}
