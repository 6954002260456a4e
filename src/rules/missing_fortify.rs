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
//! musl has no such variants (fortify-headers put the checks in line), and a program may call nothing that can be checked:
//! both are undetermined, not violated. `partial` passes: not every call can be checked.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::hardening_common::{asked, linked, unknown};
use crate::compiler::Level;
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

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "fortify", "false") else { return Outcome::NotAsked };
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    let fortify = &context.facts.hardening.fortify;
    let drafts = match fortify.value.as_deref() {
        Some("yes" | "partial") => Vec::new(),
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
        _ => vec![unknown(place, "fortify", FIX)],
    };
    Outcome::Checked(drafts)
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
}
