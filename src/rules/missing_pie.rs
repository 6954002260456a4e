//! A program is linked to a fixed address.
//!
//! # What it checks
//!
//! That a program is a position-independent executable. Shared objects always are and are not looked at.
//!
//! ```text
//! error[missing-pie]: the program is not position independent
//! ```
//!
//! # Why it matters
//!
//! Without it, the program's own code and data lie at the same addresses in every process, and address randomisation does
//! not protect them.
//!
//! # How to fix
//!
//! Compile with `-fPIE` and link with `-pie`; for nginx, `--with-cc-opt=-fPIE --with-ld-opt=-pie`.
//!
//! # Policy keys
//!
//! `hardening.pie`, or a severity under `rules.missing-pie`
//!
//! # Evidence
//!
//! Structural: the type in the ELF header, and the dynamic section that tells a program from a shared object.
//!
//! # Limits
//!
//! Static programs need `-static-pie`. Go and Rust have their own options.

use super::Rule;
use super::check::{Context, Outcome};
use super::hardening_common::{asked, linked, wanted};
use crate::facts::Kind;
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-pie",
    severity: Severity::Error,
    keys: &["hardening.pie"],
    source: include_str!("missing_pie.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "pie", "false") else { return Outcome::NotAsked };
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    if context.facts.elf.as_ref().is_some_and(|elf| elf.kind == Kind::SharedObject) {
        return Outcome::NotChecked("a shared object is position independent by nature".to_owned());
    }
    wanted(
        place,
        "pie",
        &context.facts.hardening.pie,
        true,
        "the program is not position independent",
        "compile with -fPIE and link with -pie",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        hardening_cases(RULE.id, "pie", "true", |facts, value| facts.hardening.pie = value, false);
        let mut facts = nginx(1, crate::compiler::Level::O2);
        facts.elf.as_mut().unwrap().kind = Kind::SharedObject;
        assert_not_checked(&facts, &hardened("pie", "true"), RULE.id);
    }
}
