//! The binary is not one of the builds that the policy approves.
//!
//! # What it checks
//!
//! The build-id against `build.allow`, a list of build-ids in hexadecimal. A listed one of at least 16 digits may be the
//! beginning of the whole.
//!
//! ```text
//! error[unapproved-build]: build-id 7f96c30d… is not approved
//! ```
//!
//! # Why it matters
//!
//! Where each release is approved by its build-id, anything else on a machine was built or replaced by someone else.
//!
//! # How to fix
//!
//! Install an approved build, or approve this one.
//!
//! # Policy keys
//!
//! `build.allow`
//!
//! # Evidence
//!
//! Structural: the note `NT_GNU_BUILD_ID`.
//!
//! # Limits
//!
//! A build-id is no signature: who can change the file can change it too. A file without one cannot be approved.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "unapproved-build",
    severity: Severity::Error,
    keys: &["build.allow"],
    source: include_str!("unapproved_build.rs"),
    check,
};

/// Shortest beginning that stands for the whole: 64 bits.
const SHORTEST: usize = 16;

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let entries = &context.policy.builds;
    let Some(first) = entries.first() else { return Outcome::NotAsked };
    let Some(elf) = &context.facts.elf else {
        return Outcome::Checked(vec![
            Draft::undetermined("no-file", "a printed text has no build-id")
                .policy(&first.at)
                .remedy("give the binary itself"),
        ]);
    };
    let draft = match &elf.build_id {
        None => {
            Draft::violation("no-build-id", "the file has no build-id, and so cannot be an approved build")
                .remedy("link with --build-id")
        }
        Some(id) => {
            let approved = entries.iter().any(|entry| {
                let listed = entry.value.trim_end_matches('…').to_ascii_lowercase();
                let whole = id.to_ascii_lowercase();
                listed == whole || (listed.len() >= SHORTEST && whole.starts_with(&listed))
            });
            if approved {
                return Outcome::Checked(Vec::new());
            }
            // The build-id is not part of the key: fingerprints do not depend on it.
            Draft::violation("build-id", format!("build-id {id} is not approved"))
                .remedy("install an approved build, or add this build-id to build.allow")
        }
    };
    Outcome::Checked(vec![draft.evidence(Strength::Structural, &[Source::Elf]).policy(&first.at)])
}

#[cfg(test)]
mod tests {
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    const ID: &str = "unapproved-build";

    #[test]
    fn fires_passes_and_leaves_open() {
        let mut facts = nginx(1, Level::O2);
        let mut wanted = policy();
        assert_silent(&facts, &wanted, ID);
        wanted.builds = vec![at("7F96C30D".into(), 80)];
        assert_passed(&facts, &wanted, ID);
        wanted.builds = vec![at("7f96".into(), 80)];
        assert_eq!(only(&facts, &wanted, ID).message, "build-id 7f96c30d is not approved");
        facts.elf.as_mut().unwrap().build_id = Some("0123456789abcdef0123".into());
        wanted.builds = vec![at("0123456789abcdef…".into(), 80)];
        assert_passed(&facts, &wanted, ID);
        facts.elf.as_mut().unwrap().build_id = None;
        assert!(only(&facts, &wanted, ID).message.contains("no build-id"));
        facts.elf = None;
        assert_eq!(only(&facts, &wanted, ID).status, FindingStatus::Undetermined);
    }
}
