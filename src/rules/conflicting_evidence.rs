//! Two pieces of evidence about the same fact disagree.
//!
//! # What it checks
//!
//! Every fact about which claims disagree, such as a level that the configure arguments declare and another one that
//! the code shows. Where `unoptimized-code` already reports the optimization, the disagreement is told there and not again.
//!
//! ```text
//! warning[conflicting-evidence]: the evidence about product.version disagrees: 1.22.1 (declared, build-string), 1.24.0 (structural, module-table)
//! ```
//!
//! # Why it matters
//!
//! Evidence that disagrees means that something is not what it says: an object from a cache that was compiled with other
//! options, a version text that was edited, a build whose flags did not arrive. If a level that meets the policy hides a
//! lower one on ground that is at least as firm (recorded, or shown by the code as a whole), that is an error.
//!
//! # How to fix
//!
//! Rebuild from clean without a compiler cache, and look at the claims with `inspect -v`. Trust what the compiler recorded
//! over what the build system declares.
//!
//! # Policy keys
//!
//! `rules.conflicting-evidence`.
//!
//! # Evidence
//!
//! All claims are kept; the finding quotes each with its strength and source.
//!
//! # Limits
//!
//! Claims about different parts of a file are no conflict: a mixed build is reported by `unoptimized-code`.

use super::check::{Context, Draft, Outcome};
use super::{Rule, unoptimized_code};
use crate::compiler::{Level, Satisfies};
use crate::evidence::{Claim, Source, Strength};
use crate::facts::Conflict;
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "conflicting-evidence",
    severity: Severity::Warning,
    keys: &[],
    source: include_str!("conflicting_evidence.rs"),
    check,
};

/// Claims quoted in the message.
const QUOTED: usize = 4;

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let conflicts = &context.facts.conflicts;
    let about_level = |conflict: &Conflict| conflict.fact.starts_with("optimization");
    let told = conflicts.iter().any(about_level) && unoptimized_code::fires(context);
    let drafts = conflicts
        .iter()
        .filter(|conflict| !(told && about_level(conflict)))
        .map(|it| draft(context, it))
        .collect();
    Outcome::Checked(drafts)
}

fn draft<'a>(context: &Context<'a>, conflict: &Conflict) -> Draft<'a> {
    let mut said: Vec<String> = Vec::new();
    for claim in &conflict.claims {
        let text = format!("{} ({}, {})", value(claim), claim.strength.as_str(), claim.source.as_str());
        if !said.contains(&text) {
            said.push(text);
        }
    }
    let message =
        format!("the evidence about {} disagrees: {}", conflict.fact, super::check::listed(&said, QUOTED));
    let strength = conflict.claims.iter().map(|claim| claim.strength).max().unwrap_or_default();
    let mut sources = Vec::new();
    for claim in &conflict.claims {
        if !sources.contains(&claim.source) {
            sources.push(claim.source);
        }
    }
    let known = conflict
        .claims
        .iter()
        .filter_map(|claim| claim.quote.as_ref().map(|quote| format!("{}: {quote}", claim.strength.as_str())))
        .collect();
    let about_level = conflict.fact.starts_with("optimization");
    let remedy = if about_level && conflict.claims.iter().any(is_unoptimized_code) {
        "rebuild from clean without a compiler cache; if that changes nothing, look for `#pragma GCC optimize` or a flag that \
         switches the optimizer's passes off: what the code shows is what runs"
    } else if about_level {
        "rebuild from clean without a compiler cache; the compiler's own record outranks a declaration"
    } else {
        "a text in the file was edited, or is of another build: what the file's own structure shows is what runs"
    };
    let draft = Draft::violation(conflict.fact.clone(), message)
        .evidence(strength, &sources)
        .known(known)
        .remedy(remedy);
    if hides_lower(context, conflict) { draft.severity(Severity::Error) } else { draft }
}

fn value(claim: &Claim) -> String {
    claim.value.as_str().map_or_else(|| claim.value.to_string(), str::to_owned)
}

/// Whether a level that meets the minimum stands against one that does not and is at least as firm: a declaration or a
/// record against what all the code shows, or two records against each other.
fn hides_lower(context: &Context<'_>, conflict: &Conflict) -> bool {
    let Some(minimum) = &context.policy.optimization.minimum else { return false };
    let firmest = |wanted: Satisfies| {
        let meets = |claim: &&Claim| claim.level().satisfies(minimum.value) == wanted;
        conflict.claims.iter().filter(meets).map(rank).max()
    };
    firmest(Satisfies::Yes).is_some_and(|good| firmest(Satisfies::No).is_some_and(|bad| bad >= good))
}

/// Whether the code itself was seen to be unoptimized. Against a record that is claimed only where nearly all of a sample
/// is shaped so, which no optimized build was seen to be.
fn is_unoptimized_code(claim: &Claim) -> bool {
    claim.source == Source::CodeShape && claim.level() == Level::O0
}

/// How much a claim weighs here: code that was read outweighs a declaration, and unoptimized code a record of something else.
fn rank(claim: &Claim) -> u8 {
    match claim.strength {
        _ if is_unoptimized_code(claim) => 4,
        Strength::None => 0,
        Strength::Declared => 1,
        Strength::Inferred => 2,
        Strength::Structural => 3,
        Strength::Recorded => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::Source;
    use crate::rules::testing::*;

    const ID: &str = "conflicting-evidence";

    fn conflict(level: Level) -> crate::facts::Facts {
        let mut facts = nginx(2, level);
        facts.conflicts = vec![Conflict {
            fact: "optimization.level".into(),
            claims: vec![
                claim("O2", Strength::Declared, Source::ConfigureArguments, "--with-cc-opt=-O2"),
                claim("O0", Strength::Inferred, Source::CodeShape, "900 of 900 functions"),
            ],
        }];
        facts
    }

    #[test]
    fn a_declared_level_that_hides_a_lower_one_is_an_error() {
        let found = only(&conflict(Level::O2), &policy(), ID);
        assert_eq!(found.severity, Severity::Error);
        assert_eq!(
            found.message,
            "the evidence about optimization.level disagrees: O2 (declared, configure-arguments), O0 (inferred, code-shape)"
        );
    }

    #[test]
    fn other_conflicts_are_warnings() {
        let mut facts = conflict(Level::O2);
        facts.conflicts[0].fact = "product.version".into();
        facts.conflicts[0].claims[1].value = "1.24.0".into();
        assert_eq!(only(&facts, &policy(), ID).severity, Severity::Warning);
    }

    #[test]
    fn two_records_are_an_error_and_so_is_unoptimized_code_against_a_record() {
        let mut facts = conflict(Level::O2);
        facts.conflicts[0].claims = vec![
            claim("O2", Strength::Recorded, Source::DwarfProducer, "-O2"),
            claim("O0", Strength::Recorded, Source::GccCommandLine, "-O0"),
        ];
        assert_eq!(only(&facts, &policy(), ID).severity, Severity::Error);
        facts.conflicts[0].claims[1].strength = Strength::Inferred;
        assert_eq!(only(&facts, &policy(), ID).severity, Severity::Warning);
        facts.conflicts[0].claims[1].source = Source::CodeShape;
        let found = only(&facts, &policy(), ID);
        assert_eq!(found.severity, Severity::Error, "what the code shows is what runs");
        assert!(found.remedy.as_ref().unwrap().contains("#pragma GCC optimize"), "{:?}", found.remedy);
    }

    #[test]
    fn what_unoptimized_code_tells_is_not_told_again() {
        let facts = conflict(Level::O0);
        assert!(of(&facts, &policy(), ID).is_empty());
        assert_eq!(of(&facts, &policy(), "unoptimized-code").len(), 1);
    }

    #[test]
    fn agreement_passes() {
        assert_passed(&nginx(2, Level::O2), &policy(), ID);
    }
}
