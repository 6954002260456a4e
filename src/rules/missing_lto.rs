//! The program was not optimized at link time.
//!
//! # What it checks
//!
//! Whether the code went through the link-time optimizer.
//!
//! ```text
//! warning[missing-lto]: built without link-time optimization
//! ```
//!
//! # Why it matters
//!
//! A release that is meant to be link-time optimized loses it silently when one option does not reach the linker.
//!
//! # How to fix
//!
//! Compile and link with `-flto` and the same -O.
//!
//! # Policy keys
//!
//! `rules.missing-lto`: a severity switches the rule on
//!
//! # Evidence
//!
//! Recorded: GCC's link-time units; the options of clang's units. An object compiled for link-time optimization and linked
//! without it has only the option, which is no proof.
//!
//! # Limits
//!
//! clang without recorded options leaves no mark, and a stripped file neither: undetermined.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-lto",
    severity: Severity::Warning,
    keys: &["rules.missing-lto"],
    source: include_str!("missing_lto.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = context.switched_on(RULE.id) else { return Outcome::NotAsked };
    let lto = &context.facts.lto;
    let drafts = match lto.value.as_deref() {
        None | Some("unknown") => vec![
            Draft::undetermined("lto", "nothing tells whether this was optimized at link time")
                .remedy(super::levels::reveal(context.facts)),
        ],
        Some("none") => vec![
            Draft::violation("lto", "built without link-time optimization")
                .held(lto)
                .remedy("compile and link with -flto and the same -O"),
        ],
        Some(_) => Vec::new(),
    };
    Outcome::Checked(drafts.into_iter().map(|draft| draft.policy(place)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::policy::Setting;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        let mut facts = nginx(1, Level::O2);
        assert_silent(&facts, &policy(), RULE.id);
        let mut wanted = policy();
        wanted.rules.insert(RULE.id.into(), at(Setting::Report(Severity::Warning), 90));
        assert_eq!(only(&facts, &wanted, RULE.id).status, FindingStatus::Violation);
        facts.lto.value = Some("gcc".into());
        assert_passed(&facts, &wanted, RULE.id);
        facts.lto.value = None;
        assert_eq!(only(&facts, &wanted, RULE.id).status, FindingStatus::Undetermined);
    }
}
