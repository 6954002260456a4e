//! Calls to the C library are not checked (`_FORTIFY_SOURCE`).
//!
//! # What it checks
//!
//! That a linked file uses the checking variants of C library functions.
//!
//! ```text
//! error[missing-fortify]: no fortified call (-D_FORTIFY_SOURCE has no effect at -O0)
//! ```
//!
//! # Why it matters
//!
//! `_FORTIFY_SOURCE` replaces calls like `memcpy` by variants that know the size of the destination and end the program
//! rather than overrun it.
//!
//! # How to fix
//!
//! Compile with `-O2 -D_FORTIFY_SOURCE=2` (or 3). At -O0 the macro has no effect at all.
//!
//! # Policy keys
//!
//! `hardening.fortify`, or a severity under `rules.missing-fortify`
//!
//! # Evidence
//!
//! Structural: imports such as `__memcpy_chk`. Recorded: what glibc's headers made of the macro, with `-g3`.
//!
//! # Limits
//!
//! musl has no such variants (fortify-headers put the checks in line), a program may call nothing that can be checked, and a
//! static one holds the C library's own: these are undetermined, not violated. `partial` passes: not every call can be
//! checked. The macro is one of C's headers: programs of other languages alone are not checked.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::hardening_common::{Languages, OTHER_LANGUAGES, asked, linked};
use crate::compiler::Level;
use crate::facts::Facts;
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-fortify",
    severity: Severity::Error,
    keys: &["hardening.fortify"],
    source: include_str!("missing_fortify.rs"),
    check,
};

const FIX: &str = "compile with -O2 -D_FORTIFY_SOURCE=2";
const FIX_UNKNOWN: &str = "if it is missing, compile with -O2 -D_FORTIFY_SOURCE=2; the macro is recorded in debug information made with -g3";

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "fortify", "false") else { return Outcome::NotAsked };
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    let fortify = &context.facts.hardening.fortify;
    let known = matches!(fortify.value.as_deref(), Some("yes" | "partial"));
    let languages = Languages::with_c_headers(context.facts);
    if !known && languages == Languages::Others {
        return Outcome::NotChecked(OTHER_LANGUAGES.to_owned());
    }
    let drafts = match fortify.value.as_deref() {
        _ if known => Vec::new(),
        Some("no") => {
            let unoptimized = context.facts.optimization.level == Level::O0;
            let why = if unoptimized { " (-D_FORTIFY_SOURCE has no effect at -O0)" } else { "" };
            vec![
                Draft::violation("fortify", format!("no fortified call{why}"))
                    .held(fortify)
                    .policy(place)
                    .remedy(FIX),
            ]
        }
        _ => {
            let draft = Draft::undetermined("fortify", why(context.facts, languages))
                .policy(place)
                .remedy(FIX_UNKNOWN);
            vec![if languages == Languages::PerhapsOthers { draft.at_most(Severity::Warning) } else { draft }]
        }
    };
    Outcome::Checked(drafts)
}

/// Why nothing tells.
fn why(facts: &Facts, languages: Languages) -> &'static str {
    let elf = facts.elf.as_ref();
    if languages == Languages::PerhapsOthers {
        "nothing tells whether there is code of C, which alone could be fortified"
    } else if elf.is_some_and(|elf| elf.packed) {
        "the file is packed: nothing tells about fortified calls"
    } else if elf.is_some_and(|elf| elf.is_static) {
        "the C library in a static program brings checked functions of its own: nothing tells about fortified calls"
    } else {
        "no function that it imports tells about fortified calls"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Held, Source, Strength};
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        let wanted = hardened("fortify", "true");
        let mut facts = nginx(1, Level::O0);
        for (value, status) in [("unknown", FindingStatus::Undetermined), ("no", FindingStatus::Violation)] {
            facts.hardening.fortify = Held::new(value.into(), Strength::Structural, Source::Imports);
            assert_eq!(only(&facts, &wanted, RULE.id).status, status);
        }
        assert!(only(&facts, &wanted, RULE.id).message.contains("no effect at -O0"));
        for value in ["yes", "partial"] {
            facts.hardening.fortify = Held::new(value.into(), Strength::Structural, Source::Imports);
            assert_passed(&facts, &wanted, RULE.id);
        }
        assert_silent(&facts, &policy(), RULE.id);
    }

    #[test]
    fn other_languages_than_c_have_no_such_macro() {
        let wanted = hardened("fortify", "true");
        let mut facts = nginx(1, Level::O2);
        facts.hardening.fortify = Held { value: Some("unknown".into()), ..Held::unknown() };
        for language in ["Ada", "Fortran", "Rust", "Crystal", "D"] {
            facts.units.as_mut().unwrap()[0].language = Some(language.into());
            assert_not_checked(&facts, &wanted, RULE.id);
        }
        for language in ["C", "C17", "C++", "Objective-C"] {
            facts.units.as_mut().unwrap()[0].language = Some(language.into());
            assert_eq!(only(&facts, &wanted, RULE.id).status, FindingStatus::Undetermined);
        }
        // Stripped: start files name GCC in a program of Rust, too.
        facts.units = Some(Vec::new());
        facts.compilers = vec![seen("gcc"), seen("rustc")];
        let found = only(&facts, &wanted, RULE.id);
        assert_eq!((found.status, found.severity), (FindingStatus::Undetermined, Severity::Warning));
        facts.compilers = vec![seen("rustc")];
        assert_not_checked(&facts, &wanted, RULE.id);
    }

    #[test]
    fn what_is_not_known_says_why() {
        let mut facts = nginx(1, Level::O2);
        facts.hardening.fortify = Held { value: Some("unknown".into()), ..Held::unknown() };
        let wanted = hardened("fortify", "true");
        assert_eq!(
            only(&facts, &wanted, RULE.id).message,
            "no function that it imports tells about fortified calls"
        );
        facts.elf.as_mut().unwrap().is_static = true;
        assert!(only(&facts, &wanted, RULE.id).message.contains("static program"));
    }
}
