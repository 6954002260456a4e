//! A flag that the policy requires was not given to the compiler.
//!
//! # What it checks
//!
//! That the recorded options of every unit that has code in the file hold each entry of `flags.require`. Entries are
//! globs or `/regular expressions/`, compared as described for `forbidden-flag`. A flag that a later one takes back
//! (`-fno-…`) is missing.
//!
//! ```text
//! error[missing-flag]: -fstack-protector-strong was not given to 3 of 40 units
//! ```
//!
//! # Why it matters
//!
//! One unit without the flag is enough to lose what it is there for, and it is the vendored or generated one that nobody
//! looks at.
//!
//! # How to fix
//!
//! Add the flag where all units get it (`CFLAGS`, `--with-cc-opt`), and look at how the units named are compiled: they often
//! have a build system of their own. Rebuild from clean.
//!
//! # Policy keys
//!
//! `flags.require`
//!
//! # Evidence
//!
//! Options recorded in debug information or `.GCC.command.line`.
//!
//! # Limits
//!
//! A flag that compilers never record (`-D`, `-W…` and others with GCC), or of which no record is left, is undetermined:
//! neither passed nor violated. Assembler units have no flags to require.

use super::check::{Context, Draft, Kindness, Outcome, UnitHit};
use super::flags_common::{self, Says};
use super::{Rule, forbidden_flag};
use crate::finding::Severity;
use crate::policy::Pattern;
use crate::wording::{grouped, plural};

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-flag",
    severity: Severity::Error,
    keys: &["flags.require"],
    source: include_str!("missing_flag.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let policy: &'a crate::policy::Policy = context.policy;
    let entries = &policy.flags.require;
    let Some(first) = entries.first() else { return Outcome::NotAsked };
    if let Some(reason) = super::levels::nothing_to_judge(context.facts) {
        return Outcome::NotChecked(reason.to_owned());
    }
    let units = flags_common::units(context);
    let mut drafts = Vec::new();
    let mut open: Vec<&'a Pattern> = Vec::new();
    let mut silent: Vec<UnitHit<'a>> = Vec::new();
    for entry in entries {
        let mut missing = Vec::new();
        let mut unsaid = Vec::new();
        for unit in &units {
            match unit.says(&entry.value) {
                Says::Given => {}
                Says::NotGiven => missing.push(UnitHit::from(unit.unit)),
                Says::Nothing => unsaid.push(UnitHit::from(unit.unit)),
            }
        }
        if !missing.is_empty() {
            let (text, total) = (entry.value.text.clone(), units.len() as u64);
            let draft =
                Draft::about_units(Kindness::Violation, format!("flag:{text}"), missing, move |hits| {
                    format!(
                        "{text} was not given to {} of {}",
                        grouped(hits.len() as u64),
                        plural(total, "unit")
                    )
                });
            drafts.push(draft.policy(&entry.at).remedy(format!(
                "give {} to all units (CFLAGS; for nginx --with-cc-opt) and rebuild from clean",
                entry.value.text
            )));
        }
        if unsaid.is_empty() && !units.is_empty() {
            continue;
        }
        if let Some(why) = flags_common::never_recorded(&entry.value) {
            drafts.push(
                Draft::undetermined(
                    format!("unrecordable:{}", entry.value.text),
                    format!("whether {} was given cannot be told: {why}", entry.value.text),
                )
                .policy(&entry.at),
            );
            continue;
        }
        open.push(&entry.value);
        for hit in unsaid {
            if !silent.iter().any(|known| std::ptr::eq(known.unit, hit.unit)) {
                silent.push(hit);
            }
        }
    }
    if !open.is_empty() {
        drafts.push(forbidden_flag::undetermined(context, open, silent, units.len()).policy(&first.at));
    }
    Outcome::Checked(drafts)
}

#[cfg(test)]
mod tests {
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;

    const ID: &str = "missing-flag";

    fn requires(flag: &str) -> Policy {
        let mut wanted = policy();
        wanted.flags.require = vec![glob(flag, 21)];
        wanted
    }

    #[test]
    fn a_unit_without_the_flag_is_named() {
        let mut facts = nginx(3, Level::O2);
        for unit in facts.units.as_mut().unwrap().iter_mut().take(2) {
            std::sync::Arc::make_mut(&mut unit.flags).push("-fstack-protector-strong".into());
        }
        let found = only(&facts, &requires("-fstack-protector-strong"), ID);
        assert_eq!(found.message, "-fstack-protector-strong was not given to 1 of 3 units");
        assert_eq!(found.units[0].name, "src/core/unit002.c");
        assert_eq!(found.policy.unwrap().line, 21);
    }

    #[test]
    fn all_units_with_the_flag_pass() {
        assert_passed(&nginx(3, Level::O2), &requires("-g"), ID);
        assert_passed(&nginx(3, Level::O2), &requires("/^-march=x86-64(-v2)?$/"), ID);
        assert_silent(&nginx(3, Level::O2), &policy(), ID);
    }

    #[test]
    fn units_without_a_record_are_a_question_beside_the_violation() {
        let facts = with_units(vec![unit("a.c", Level::O2), silent_unit("b.c")]);
        let found = of(&facts, &requires("-fPIE"), ID);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].status, FindingStatus::Violation);
        assert_eq!(found[1].status, FindingStatus::Undetermined);
        assert_eq!(found[1].units_total, 1);
    }

    #[test]
    fn a_flag_that_is_never_recorded_is_undetermined() {
        let found = only(&nginx(1, Level::O2), &requires("-Wall"), ID);
        assert_eq!(found.status, FindingStatus::Undetermined);
    }
}
