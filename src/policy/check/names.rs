//! Words a policy may use, and the check of names of modules and compilers.

use super::{Checker, Draft, Span, suggest};
use crate::policy::Pattern;
use crate::policy::diagnostic::did_you_mean;
use crate::policy::matching::module_names;

/// Compiler families, as `compilers[].family` of the JSON document names them.
pub(crate) const FAMILIES: [&str; 13] = [
    "gcc", "clang", "rustc", "go", "icc", "armclang", "swift", "zig", "tcc", "gas", "nasm", "yasm", "unknown",
];

/// What `[instrumentation] forbid` may name.
pub(crate) const INSTRUMENTATION: [&str; 3] = ["sanitizers", "coverage", "profiling"];

/// Keys of `[hardening]`, and whether the value is a word (`relro`) or a boolean.
pub(crate) const HARDENING: [(&str, &[&str]); 9] = [
    ("pie", &[]),
    ("relro", &["none", "partial", "full"]),
    ("bind-now", &[]),
    ("nx-stack", &[]),
    ("stack-protector", &[]),
    ("fortify", &[]),
    ("cet", &[]),
    ("rpath", &[]),
    ("text-relocations", &[]),
];

/// Baselines named in suggestions.
pub(super) const BASELINES: [&str; 7] =
    ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a", "armv8.2-a", "armv9-a"];

/// Whether a word names a processor baseline: the x86-64 levels of the psABI, or an Arm architecture version.
pub(crate) fn is_baseline(word: &str) -> bool {
    let arm = |version: &str| {
        version
            .strip_suffix("-a")
            .and_then(|version| match version.split_once('.') {
                Some((major, minor)) => Some(major.parse::<u8>().is_ok() && minor.parse::<u8>().is_ok()),
                None => version.parse::<u8>().ok().map(|_| true),
            })
            .unwrap_or(false)
    };
    BASELINES.contains(&word) || word.strip_prefix("armv").is_some_and(arm)
}

impl Checker<'_> {
    /// A compiler family: one that is near a known one is a slip, any other may exist without being known here.
    pub(super) fn family(&mut self, name: &str, span: Span) {
        let lower = name.to_ascii_lowercase();
        if FAMILIES.contains(&lower.as_str()) {
            return;
        }
        let near = did_you_mean(name, FAMILIES).or(match lower.as_str() {
            "g++" | "gnu" | "gfortran" => Some("gcc"),
            "clang++" | "llvm" | "aocc" => Some("clang"),
            "icx" | "intel" => Some("icc"),
            "rust" => Some("rustc"),
            _ => None,
        });
        self.drafts.push(match near {
            Some(near) => Draft::error(span, format!("unknown compiler `{name}`"))
                .mark(format!("did you mean `{near}`?")),
            None => Draft::warning(span, format!("unknown compiler `{name}`: this entry may never match"))
                .help(format!("known compilers: {}", FAMILIES.join(", "))),
        });
    }

    /// A rule id.
    pub(super) fn rule(&mut self, id: &str, span: Span) -> bool {
        // A built-in policy goes with the program; no user could mend it.
        let builtin = self.sources.get(span.file).is_some_and(|source| source.label.starts_with("builtin:"));
        if builtin || self.known.rules.is_empty() || self.known.rules.contains(&id) {
            return true;
        }
        let draft = Draft::error(span, format!("unknown rule `{id}`"));
        let known = self.known.rules.to_vec();
        let mut draft = suggest(draft, id, &known, "known rules");
        if did_you_mean(id, known).is_none() {
            draft = draft.help("`flagaudit explain` lists the rules");
        }
        self.drafts.push(draft);
        false
    }

    /// The name of a module. Short names are those of nginx's own modules and must be known; modules of others are
    /// named by their full symbol or by a pattern, and an unknown one is only a warning: nobody knows them all.
    pub(super) fn module(&mut self, pattern: &Pattern, span: Span) {
        let known = self.modules();
        if known.is_empty() {
            return;
        }
        let matched = known.iter().any(|symbol| super::super::matching::module_matches(pattern, symbol));
        if matched {
            return;
        }
        let Some(name) = pattern.literal() else {
            let title = format!("no known module matches `{}`", pattern.text);
            self.drafts.push(Draft::warning(span, title));
            return;
        };
        let full = (name.starts_with("ngx_") || name.starts_with("ndk_")) && name.ends_with("_module");
        let near = nearest(name, known);
        let draft = if full {
            Draft::warning(span, format!("`{name}` is none of nginx's own modules"))
        } else {
            Draft::error(span, format!("unknown module `{name}`"))
        };
        self.drafts.push(match near {
            Some(near) => draft.mark(format!("did you mean `{near}`?")),
            None if full => draft,
            None => draft.help(
                "a module that is not nginx's own is named by its full symbol, such as `ngx_http_brotli_filter_module`, or by a glob",
            ),
        });
    }
}

/// The known module that is probably meant: one whose short name ends in `name` (`gzip_static` for `http_gzip_static`), or else
/// the nearest one, in the spelling nearest to what was written.
fn nearest(name: &str, known: &[String]) -> Option<String> {
    let spellings = || known.iter().flat_map(|symbol| module_names(symbol));
    let ending = format!("_{}", name.trim_end_matches("_module"));
    let ended =
        spellings().filter(|spelling| spelling.ends_with(&ending)).min_by_key(|spelling| spelling.len());
    ended.or_else(|| did_you_mean(name, spellings()).filter(|near| *near != name)).map(str::to_owned)
}
