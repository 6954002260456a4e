//! The file is not marked for control-flow protection by the processor.
//!
//! # What it checks
//!
//! On x86, that the file is marked for indirect branch tracking (IBT) and the shadow stack (SHSTK); on `aarch64`, for branch
//! target identification (BTI).
//!
//! ```text
//! error[missing-cet]: the file is not marked for IBT and SHSTK
//! ```
//!
//! # Why it matters
//!
//! The kernel and the loader enforce the protection only in files that carry the mark. One object without it takes the mark
//! from the whole file.
//!
//! # How to fix
//!
//! Compile everything with `-fcf-protection` (`aarch64`: `-mbranch-protection=standard`), assembler files included;
//! `-Wl,-z,cet-report=error` or `-Wl,-z,force-bti` name the object that lacks it.
//!
//! # Policy keys
//!
//! `hardening.cet`, or a severity under `rules.missing-cet`
//!
//! # Evidence
//!
//! Structural: the properties in `.note.gnu.property`.
//!
//! # Limits
//!
//! The mark says what the file as a whole is ready for. A unit compiled with the option in a file without the mark is the
//! usual case where the start files of the C library lack it, as on Debian 12.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::hardening_common::{asked, linked, unknown};
use crate::evidence::Held;
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-cet",
    severity: Severity::Error,
    keys: &["hardening.cet"],
    source: include_str!("missing_cet.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "cet", "false") else { return Outcome::NotAsked };
    let machine = match linked(context) {
        Ok(machine) => machine,
        Err(reason) => return Outcome::NotChecked(reason),
    };
    let hardening = &context.facts.hardening;
    let (marks, fix): (Vec<(&str, &Held<bool>)>, &str) = match machine {
        "x86-64" | "x86_64" | "i386" | "x86" => (
            vec![("IBT", &hardening.ibt), ("SHSTK", &hardening.shstk)],
            "compile everything with -fcf-protection; -Wl,-z,cet-report=error names the object that lacks it",
        ),
        "aarch64" => (
            vec![("BTI", &hardening.bti)],
            "compile everything with -mbranch-protection=standard; -Wl,-z,force-bti names the object that lacks it",
        ),
        other => return Outcome::NotChecked(format!("{other} has no such marks")),
    };
    let missing: Vec<&str> =
        marks.iter().filter(|(_, mark)| mark.value == Some(false)).map(|(name, _)| *name).collect();
    let drafts = if let Some((_, first)) = marks.iter().find(|(_, mark)| mark.value == Some(false)) {
        vec![
            Draft::violation("cet", format!("the file is not marked for {}", missing.join(" and ")))
                .held(first)
                .policy(place)
                .remedy(fix),
        ]
    } else if marks.iter().any(|(_, mark)| mark.value.is_none()) {
        vec![unknown(place, "cet", fix)]
    } else {
        Vec::new()
    };
    Outcome::Checked(drafts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::{Source, Strength};
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        let wanted = hardened("cet", "true");
        let held = |value| Held::new(value, Strength::Structural, Source::GnuProperty);
        let mut facts = nginx(1, Level::O2);
        assert_eq!(only(&facts, &wanted, RULE.id).status, FindingStatus::Undetermined);
        facts.hardening.ibt = held(true);
        facts.hardening.shstk = held(false);
        assert_eq!(only(&facts, &wanted, RULE.id).message, "the file is not marked for SHSTK");
        facts.hardening.shstk = held(true);
        assert_passed(&facts, &wanted, RULE.id);
        assert_silent(&facts, &policy(), RULE.id);
        facts.elf.as_mut().unwrap().machine = "aarch64".into();
        facts.hardening.bti = held(false);
        assert_eq!(only(&facts, &wanted, RULE.id).message, "the file is not marked for BTI");
        facts.elf.as_mut().unwrap().machine = "riscv64".into();
        assert_not_checked(&facts, &wanted, RULE.id);
    }
}
