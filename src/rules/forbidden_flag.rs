//! A flag that the policy forbids was given to the compiler.
//!
//! # What it checks
//!
//! The recorded options of every unit that has code in the file, against each entry of `flags.forbid`. Entries are globs
//! or `/regular expressions/`, spelt as on a command line; they are compared in the form in which compilers record
//! them: `--coverage` is recorded as `-fprofile-arcs -ftest-coverage`, `-pg` as `-p`, `-march=native` as what it expands
//! to. A flag that a later one takes back (`-fno-…`) is not in force. A level (`-O0`) is compared as a level, so that a
//! command line without any `-O` is `-O0`.
//!
//! ```text
//! error[forbidden-flag]: -fsanitize=* was given to 2 of 40 units
//! ```
//!
//! # Why it matters
//!
//! Some flags must not reach a release: they bind it to one processor, slow it down, or change what the code means.
//!
//! # How to fix
//!
//! Take the flag out of `CFLAGS`, `--with-cc-opt` or the build system's option, and rebuild from clean.
//!
//! # Policy keys
//!
//! `flags.forbid`
//!
//! # Evidence
//!
//! Options recorded in debug information or `.GCC.command.line`. For sanitizers, coverage and profiling, what they leave
//! in the file itself also serves where no options are recorded.
//!
//! # Limits
//!
//! A flag that compilers never record (`-D`, `-W…` and others with GCC), or of which no record is left, is undetermined:
//! neither passed nor violated.

use super::Rule;
use super::check::{Context, Draft, Kindness, Outcome, UnitHit};
use super::flags_common::{self, Says};
use crate::evidence::Strength;
use crate::finding::Severity;
use crate::policy::Pattern;
use crate::wording::{grouped, plural};
use std::collections::BTreeSet;

/// The rule.
pub const RULE: Rule = Rule {
    id: "forbidden-flag",
    severity: Severity::Error,
    keys: &["flags.forbid"],
    source: include_str!("forbidden_flag.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let policy: &'a crate::policy::Policy = context.policy;
    let entries = &policy.flags.forbid;
    let Some(first) = entries.first() else { return Outcome::NotAsked };
    let units = flags_common::units(context);
    let mut drafts = Vec::new();
    let mut open: Vec<&'a Pattern> = Vec::new();
    let mut silent: Vec<UnitHit<'a>> = Vec::new();
    for entry in entries {
        let mut given = Vec::new();
        let mut unsaid = Vec::new();
        for unit in &units {
            match unit.says(&entry.value) {
                Says::Given => given.push(UnitHit::from(unit.unit)),
                Says::NotGiven => {}
                Says::Nothing => unsaid.push(UnitHit::from(unit.unit)),
            }
        }
        if !given.is_empty() {
            let (text, total) = (entry.value.text.clone(), units.len() as u64);
            let flags: BTreeSet<&str> = given.iter().flat_map(|hit| given_flags(hit, &entry.value)).collect();
            // Which flags they are is a part of what a baseline accepts, where a pattern matches several.
            let which = flags.iter().filter(|flag| **flag != text).copied().collect::<Vec<_>>().join(" ");
            let key = if which.is_empty() { format!("flag:{text}") } else { format!("flag:{text}:{which}") };
            let known = flags.iter().take(MOST_QUOTED).filter_map(|flag| quote(&given, flag)).collect();
            let draft = Draft::about_units(Kindness::Violation, key, given, move |hits| {
                format!("{text} was given to {} of {}", grouped(hits.len() as u64), plural(total, "unit"))
            });
            drafts.push(draft.policy(&entry.at).known(known).remedy(format!(
                "take {} out of the compiler's options and rebuild from clean",
                entry.value.text
            )));
            continue;
        }
        if unsaid.is_empty() && !units.is_empty() {
            continue;
        }
        match (flags_common::trace(context.facts, &entry.value), flags_common::never_recorded(&entry.value)) {
            (Some(false), _) => {}
            (Some(true), _) => drafts.push(
                Draft::violation(
                    format!("flag:{}", entry.value.text),
                    format!("{} left its trace in the file", entry.value.text),
                )
                .evidence(Strength::Structural, &[])
                .policy(&entry.at)
                .remedy(format!(
                    "take {} out of the compiler's options and rebuild from clean",
                    entry.value.text
                )),
            ),
            (None, Some(why)) => drafts.push(
                Draft::undetermined(
                    format!("unrecordable:{}", entry.value.text),
                    format!("whether {} was given cannot be told: {why}", entry.value.text),
                )
                .policy(&entry.at),
            ),
            (None, None) => {
                open.push(&entry.value);
                for hit in unsaid {
                    if !silent.iter().any(|known| std::ptr::eq(known.unit, hit.unit)) {
                        silent.push(hit);
                    }
                }
            }
        }
    }
    if !open.is_empty() {
        drafts.push(undetermined(context, open, silent, units.len()).policy(&first.at));
    }
    Outcome::Checked(drafts)
}

/// Flags quoted, of those that a pattern matches.
const MOST_QUOTED: usize = 3;

fn given_flags<'u>(hit: &UnitHit<'u>, pattern: &Pattern) -> impl Iterator<Item = &'u str> {
    hit.unit.flags.iter().map(String::as_str).filter(|flag| pattern.matches(flag))
}

/// A flag as the first unit that has it records it.
fn quote(hits: &[UnitHit<'_>], flag: &str) -> Option<String> {
    let hit = hits.iter().find(|hit| hit.unit.flags.iter().any(|known| known == flag))?;
    Some(format!("recorded: \"{flag}\" in {}", hit.unit.name))
}

/// One finding for all flags that units without recorded options leave open.
pub(super) fn undetermined<'a>(
    context: &Context<'a>,
    open: Vec<&'a Pattern>,
    silent: Vec<UnitHit<'a>>,
    total: usize,
) -> Draft<'a> {
    let facts = context.facts;
    let draft = Draft::about_units(Kindness::Undetermined, "unrecorded", silent, move |hits| {
        format!(
            "{} cannot be checked: {}",
            flags_common::names(&open),
            flags_common::unrecorded(hits, total, facts)
        )
    });
    draft.evidence(Strength::None, &[]).remedy(super::levels::reveal_options(facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::{Held, Source};
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;

    const ID: &str = "forbidden-flag";

    fn forbids(flags: &[&str]) -> Policy {
        let mut wanted = policy();
        wanted.flags.forbid = flags.iter().map(|flag| glob(flag, 20)).collect();
        wanted
    }

    #[test]
    fn a_forbidden_flag_is_found_in_the_units_that_have_it() {
        let mut facts = nginx(4, Level::O2);
        std::sync::Arc::make_mut(&mut facts.units.as_mut().unwrap()[1].flags)
            .push("-fsanitize=address".into());
        let found = only(&facts, &forbids(&["-fsanitize=*"]), ID);
        assert_eq!(found.message, "-fsanitize=* was given to 1 of 4 units");
        assert_eq!((found.severity, found.status), (Severity::Error, FindingStatus::Violation));
        assert_eq!(found.units[0].name, "src/core/unit001.c");
    }

    #[test]
    fn its_absence_from_recorded_options_passes() {
        assert_passed(
            &nginx(4, Level::O2),
            &forbids(&["-fsanitize=*", "-march=native", "-pg", "--coverage"]),
            ID,
        );
        assert_silent(&nginx(4, Level::O2), &policy(), ID);
    }

    #[test]
    fn what_is_not_recorded_is_undetermined_once() {
        let facts = with_units(vec![unit("a.c", Level::O2), silent_unit("b.c")]);
        let found = only(&facts, &forbids(&["-fsanitize=*", "-march=native"]), ID);
        assert_eq!(found.status, FindingStatus::Undetermined);
        assert_eq!(
            found.message,
            "-fsanitize=*, -march=native cannot be checked: 1 of 2 units records no options"
        );
        let found = only(&stripped(Level::O2), &forbids(&["-ffast-math"]), ID);
        assert_eq!(found.message, "-ffast-math cannot be checked: no unit records its options");
    }

    #[test]
    fn a_trace_in_the_file_serves_where_no_record_is_left() {
        let mut facts = stripped(Level::O2);
        facts.instrumentation.sanitizers = Held::new(Vec::new(), Strength::Structural, Source::Imports);
        assert_passed(&facts, &forbids(&["-fsanitize=address"]), ID);
        // What only traps needs no run-time library and leaves no trace.
        for left_open in ["-fsanitize=*", "-fsanitize=undefined"] {
            assert_eq!(only(&facts, &forbids(&[left_open]), ID).status, FindingStatus::Undetermined);
        }
        facts.instrumentation.sanitizers =
            Held::new(vec!["address".into()], Strength::Structural, Source::Imports);
        assert_eq!(only(&facts, &forbids(&["-fsanitize=*"]), ID).status, FindingStatus::Violation);
        assert_passed(&facts, &forbids(&["-fsanitize=thread"]), ID);
    }

    #[test]
    fn a_flag_that_is_never_recorded_is_never_passed() {
        let found = only(&nginx(2, Level::O2), &forbids(&["-DDEBUG"]), ID);
        assert_eq!(found.status, FindingStatus::Undetermined);
        assert!(found.message.contains("cannot be told"));
    }
}
