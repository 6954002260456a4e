//! The tables of the dynamic linker stay writable.
//!
//! # What it checks
//!
//! That the relocated data of a dynamically linked file becomes read-only: `hardening.relro` asks for `full` or `partial`, and
//! `hardening.bind-now` for all symbols to be bound at start.
//!
//! ```text
//! error[partial-relro]: RELRO is partial (policy: full)
//! ```
//!
//! # Why it matters
//!
//! With lazy binding, the table of function addresses stays writable for the life of the process, and a single stray write to
//! it diverts the program.
//!
//! # How to fix
//!
//! Link with `-Wl,-z,relro,-z,now`; for nginx, `--with-ld-opt='-Wl,-z,relro -Wl,-z,now'`.
//!
//! # Policy keys
//!
//! `hardening.relro`, `hardening.bind-now`, or a severity under `rules.partial-relro` (asks for `full`)
//!
//! # Evidence
//!
//! Structural: `PT_GNU_RELRO`, the flags of the dynamic section, and whether the slots of functions lie in the pages that are
//! protected.
//!
//! # Limits
//!
//! Full RELRO costs start-up time in programs with very many symbols.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::hardening_common::{asked, linked, unknown};
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "partial-relro",
    severity: Severity::Error,
    keys: &["hardening.relro", "hardening.bind-now"],
    source: include_str!("partial_relro.rs"),
    check,
};

const FIX: &str = "link with -Wl,-z,relro,-z,now";
const FIX_BOUND: &str = "link anew with -Wl,-z,relro,-z,now: a flag set afterwards moves no table; if it was linked so, the \
                         linker leaves the table outside (GNU ld up to 2.40 on RISC-V): take another";

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let relro = asked(context, RULE.id, "relro", "none");
    let bind_now = context.policy.hardening.get("bind-now").filter(|wanted| wanted.value != "false");
    if relro.is_none() && bind_now.is_none() {
        return Outcome::NotAsked;
    }
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    let hardening = &context.facts.hardening;
    let mut drafts = Vec::new();
    let wanted = context.policy.hardening.get("relro").map_or("full", |wanted| wanted.value.as_str());
    if let Some(place) = relro {
        match hardening.relro.value.as_deref() {
            None | Some("unknown") => drafts.push(unknown(place, "relro", FIX)),
            Some(value) if rank(value) < rank(wanted) => {
                // The flags are there; where the linker put the table is what is missing.
                let bound = value == "partial" && hardening.bind_now.value == Some(true);
                let why =
                    if bound { ": the table of functions lies outside the protected range" } else { "" };
                // Who accepts that it is partial has not accepted that there is none.
                let key = if value == "none" { "relro:none" } else { "relro" };
                drafts.push(
                    Draft::violation(key, format!("RELRO is {value} (policy: {wanted}){why}"))
                        .held(&hardening.relro)
                        .policy(place)
                        .remedy(if bound { FIX_BOUND } else { FIX }),
                );
            }
            Some(_) => {}
        }
    }
    // Full RELRO that is missing and symbols bound late are one fact.
    if let Some(wanted) = bind_now
        && drafts.is_empty()
    {
        match hardening.bind_now.value {
            Some(true) => {}
            Some(false) => drafts.push(
                Draft::violation("bind-now", "symbols are bound when first used, not at start")
                    .held(&hardening.bind_now)
                    .policy(&wanted.at)
                    .remedy(FIX),
            ),
            None => drafts.push(unknown(&wanted.at, "bind-now", FIX)),
        }
    }
    Outcome::Checked(drafts)
}

fn rank(value: &str) -> u8 {
    match value {
        "full" => 2,
        "partial" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::{Held, Source, Strength};
    use crate::facts::Facts;
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    fn relro(value: &str, now: bool) -> Facts {
        let mut facts = nginx(1, Level::O2);
        facts.hardening.relro = Held::new(value.into(), Strength::Structural, Source::Elf);
        facts.hardening.bind_now = Held::new(now, Strength::Structural, Source::Elf);
        facts
    }

    #[test]
    fn fires_passes_and_leaves_open() {
        let full = hardened("relro", "full");
        assert_eq!(only(&relro("partial", false), &full, RULE.id).message, "RELRO is partial (policy: full)");
        assert_passed(&relro("full", true), &full, RULE.id);
        assert_passed(&relro("partial", false), &hardened("relro", "partial"), RULE.id);
        assert_eq!(only(&nginx(1, Level::O2), &full, RULE.id).status, FindingStatus::Undetermined);
        assert_silent(&relro("none", false), &policy(), RULE.id);
        assert_silent(&relro("none", false), &hardened("relro", "none"), RULE.id);
        let found = only(&relro("partial", true), &full, RULE.id);
        assert!(
            found.message.ends_with("the table of functions lies outside the protected range"),
            "{found:?}"
        );
    }

    #[test]
    fn late_binding_is_one_fact_with_partial_relro() {
        let mut wanted = hardened("relro", "full");
        wanted.hardening.insert("bind-now".into(), at("true".into(), 91));
        assert_eq!(of(&relro("partial", false), &wanted, RULE.id).len(), 1);
        let late = hardened("bind-now", "true");
        assert!(only(&relro("full", false), &late, RULE.id).message.contains("when first used"));
        assert_passed(&relro("none", true), &late, RULE.id);
    }
}
