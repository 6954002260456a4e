//! The program was built with its own debug code or with assertions.
//!
//! # What it checks
//!
//! nginx: `--with-debug`. Other programs: what they call a debug build, and whether assertions are compiled in.
//!
//! ```text
//! note[debug-build]: built with --with-debug (usual for distributions)
//! ```
//!
//! # Why it matters
//!
//! Debug code runs at every step of a request, and assertions end the program where a release would go on. That is separate
//! from the optimization level: an nginx configured with `--with-debug` and -O2 is optimized.
//!
//! # How to fix
//!
//! Configure without `--with-debug` (nginx), `--enable-cassert` (PostgreSQL) or the like; compile with `-DNDEBUG` where the
//! program asks for it.
//!
//! # Policy keys
//!
//! `rules.debug-build`
//!
//! # Evidence
//!
//! Structural: texts that only one of the two builds holds, references to assertion handlers. Declared: configure arguments.
//!
//! # Limits
//!
//! Distributions ship nginx with `--with-debug`, which costs little while debug logging is off; so this is a note unless the
//! policy says otherwise. Debug information (`-g`) is no debug build.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "debug-build",
    severity: Severity::Note,
    keys: &[],
    source: include_str!("debug_build.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let facts = context.facts;
    let instrumentation = &facts.instrumentation;
    // The nginx family says it with its own option; its fact and the general one are the same.
    let nginx = facts.nginx.as_ref().map(|nginx| &nginx.debug).filter(|debug| debug.value.is_some());
    let debug = nginx.unwrap_or(&instrumentation.debug_build);
    if debug.value.is_none() && instrumentation.assertions.value.is_none() {
        return match context.switched_on(RULE.id) {
            Some(_) => Outcome::NotChecked("nothing tells whether this is a debug build".to_owned()),
            None => Outcome::NotAsked,
        };
    }
    let place = context.switched_on(RULE.id);
    let mut drafts = Vec::new();
    if debug.value == Some(true) {
        let (message, fix) = if nginx.is_some() {
            (
                "built with --with-debug (usual for distributions)",
                "configure without --with-debug; make clean; rebuild",
            )
        } else {
            ("this is a debug build of the program", "build the program's release variant")
        };
        drafts.push(Draft::violation("debug", message).held(debug).remedy(fix));
    }
    if instrumentation.assertions.value == Some(true) {
        drafts.push(
            Draft::violation("assertions", "assertions are compiled in")
                .held(&instrumentation.assertions)
                .remedy("build without assertions (-DNDEBUG, or the program's own option)"),
        );
    }
    if let Some(place) = place {
        drafts = drafts.into_iter().map(|draft| draft.policy(place)).collect();
    }
    Outcome::Checked(drafts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::{Held, Source, Strength};
    use crate::policy::Setting;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_is_not_checked() {
        let mut facts = nginx(1, Level::O2);
        assert_silent(&facts, &policy(), RULE.id);
        let mut wanted = policy();
        wanted.rules.insert(RULE.id.into(), at(Setting::Report(Severity::Note), 90));
        assert_not_checked(&facts, &wanted, RULE.id);
        facts.nginx.as_mut().unwrap().debug = Held::new(false, Strength::Structural, Source::BuildString);
        assert_passed(&facts, &policy(), RULE.id);
        facts.nginx.as_mut().unwrap().debug.value = Some(true);
        facts.instrumentation.debug_build = Held::new(true, Strength::Structural, Source::BuildString);
        let found = only(&facts, &policy(), RULE.id);
        assert_eq!(
            (found.severity, found.message.as_str()),
            (Severity::Note, "built with --with-debug (usual for distributions)")
        );
        let mut strict = policy();
        strict.rules.insert(RULE.id.into(), at(Setting::Report(Severity::Error), 90));
        assert_eq!(only(&facts, &strict, RULE.id).severity, Severity::Error);
        facts.instrumentation.assertions = Held::new(true, Strength::Structural, Source::Imports);
        assert_eq!(of(&facts, &policy(), RULE.id).len(), 2);
        strict.rules.insert(RULE.id.into(), at(Setting::Ignore, 90));
        assert_silent(&facts, &strict, RULE.id);
    }
}
