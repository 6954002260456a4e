//! Code has to be changed when it is loaded.
//!
//! # What it checks
//!
//! That the dynamic section holds neither `DT_TEXTREL` nor the flag `DF_TEXTREL`.
//!
//! ```text
//! error[text-relocation]: the code has text relocations
//! ```
//!
//! # Why it matters
//!
//! The loader has to make code writable for them; memory is no longer shared between processes, and systems that enforce
//! W^X refuse the file.
//!
//! # How to fix
//!
//! Compile everything that goes into the file with `-fPIC` (or `-fPIE`), assembler files included; `-Wl,-z,text` turns it into
//! an error at link time.
//!
//! # Policy keys
//!
//! `hardening.text-relocations = false`, or a severity under `rules.text-relocation`
//!
//! # Evidence
//!
//! Structural: the dynamic section.
//!
//! # Limits
//!
//! A static program has none by nature.

use super::Rule;
use super::check::{Context, Outcome};
use super::hardening_common::{asked, linked, wanted};
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "text-relocation",
    severity: Severity::Error,
    keys: &["hardening.text-relocations"],
    source: include_str!("text_relocation.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "text-relocations", "true") else { return Outcome::NotAsked };
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    wanted(
        place,
        "text-relocations",
        &context.facts.hardening.textrel,
        false,
        "the code has text relocations",
        "compile everything with -fPIC or -fPIE; -Wl,-z,text finds them at link time",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        hardening_cases(
            RULE.id,
            "text-relocations",
            "false",
            |facts, value| facts.hardening.textrel = value,
            true,
        );
        let allowed = hardened("text-relocations", "true");
        assert_silent(&nginx(1, crate::compiler::Level::O2), &allowed, RULE.id);
    }
}
