//! The binary carries instrumentation that is meant for tests.
//!
//! # What it checks
//!
//! What `instrumentation.forbid` names: `sanitizers`, `coverage`, `profiling`.
//!
//! ```text
//! error[instrumented-build]: built with sanitizers: address, undefined
//! ```
//!
//! # Why it matters
//!
//! Sanitizers make a program several times slower and hold back memory on purpose; coverage counts at every branch and writes
//! files at exit; `-pg` calls a function at every entry of another.
//!
//! # How to fix
//!
//! Rebuild from clean without `-fsanitize=…`, `--coverage` or `-pg`.
//!
//! # Policy keys
//!
//! `instrumentation.forbid`
//!
//! # Evidence
//!
//! Structural: imports and symbols of the run-time libraries, names of count files in the data (they survive stripping).
//! Recorded: the options of every unit. Inferred: clang's traps in the code.
//!
//! # Limits
//!
//! A sanitizer without a run-time library (`-fsanitize-trap`) leaves its options behind, and of clang from version 12 on traps
//! that name the check, which are seen where code is read: not in object files and archives. Those of GCC say nothing. Where
//! nothing tells, a warning says so.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use crate::evidence::Held;
use crate::facts::Kind;
use crate::finding::Severity;
use crate::policy::At;

/// The rule.
pub const RULE: Rule = Rule {
    id: "instrumented-build",
    severity: Severity::Error,
    keys: &["instrumentation.forbid"],
    source: include_str!("instrumented_build.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let entries = &context.policy.instrumentation_forbid;
    if entries.is_empty() {
        return Outcome::NotAsked;
    }
    let found = &context.facts.instrumentation;
    let absent = context.facts.elf.as_ref().is_none_or(|elf| elf.kind == Kind::SeparateDebug);
    let reason = super::levels::nothing_to_judge(context.facts);
    let reason = if absent { Some("the code is not in this file") } else { reason };
    if let Some(reason) = reason
        && found.sanitizers.value.is_none()
        && found.coverage.value.is_none()
        && found.profiling.value.is_none()
    {
        return Outcome::NotChecked(reason.to_owned());
    }
    let mut drafts = Vec::new();
    for entry in entries {
        match entry.value.as_str() {
            "sanitizers" => {
                let names = found.sanitizers.value.as_deref().map(|names| names.join(", "));
                let there = found.sanitizers.value.as_ref().map(|names| !names.is_empty());
                let what = format!("sanitizers: {}", names.unwrap_or_default());
                drafts.extend(draft(entry, &found.sanitizers, there, &what, "-fsanitize"));
            }
            "coverage" => {
                drafts.extend(draft(entry, &found.coverage, found.coverage.value, "coverage", "--coverage"));
            }
            "profiling" => {
                drafts.extend(draft(entry, &found.profiling, found.profiling.value, "profiling", "-pg"));
            }
            _ => {}
        }
    }
    Outcome::Checked(drafts)
}

fn draft<'a, T>(
    entry: &At<String>,
    fact: &Held<T>,
    there: Option<bool>,
    what: &str,
    flag: &str,
) -> Option<Draft<'a>> {
    let key = entry.value.as_str();
    match there {
        Some(false) => None,
        // Which sanitizers they are is a part of what a baseline accepts.
        Some(true) => Some(
            Draft::violation(what, format!("built with {what}"))
                .held(fact)
                .policy(&entry.at)
                .remedy(format!("rebuild from clean without {flag}")),
        ),
        // Instrumentation leaves traces; that there are none to look for is worth a warning, not a stop.
        None => Some(
            Draft::undetermined(
                key,
                match &fact.seen {
                    Some(seen) => format!("whether this was built with {key} cannot be told: {seen}"),
                    None => format!("nothing tells whether this was built with {key}"),
                },
            )
            .policy(&entry.at)
            .at_most(Severity::Warning),
        ),
    }
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
        let mut wanted = policy();
        let mut facts = nginx(1, Level::O2);
        assert_silent(&facts, &wanted, RULE.id);
        wanted.instrumentation_forbid =
            ["sanitizers", "coverage", "profiling"].map(|word| at(word.into(), 25)).to_vec();
        let found = of(&facts, &wanted, RULE.id);
        assert_eq!(found.len(), 3);
        assert!(
            found
                .iter()
                .all(|one| one.status == FindingStatus::Undetermined && one.severity == Severity::Warning)
        );

        facts.elf.as_mut().unwrap().kind = Kind::SeparateDebug;
        assert_not_checked(&facts, &wanted, RULE.id);
        let mut object = with_units(Vec::new());
        object.elf.as_mut().unwrap().kind = Kind::Relocatable;
        object.optimization.no_code = true;
        assert_not_checked(&object, &wanted, RULE.id);
        facts.elf.as_mut().unwrap().kind = Kind::Pie;

        let instrumentation = &mut facts.instrumentation;
        instrumentation.sanitizers =
            Held::new(vec!["address".into(), "undefined".into()], Strength::Structural, Source::Imports);
        instrumentation.coverage = Held::new(true, Strength::Structural, Source::Symbols);
        instrumentation.profiling = Held::new(false, Strength::Structural, Source::Imports);
        let found = of(&facts, &wanted, RULE.id);
        assert_eq!(
            found.iter().map(|one| one.message.as_str()).collect::<Vec<_>>(),
            ["built with sanitizers: address, undefined", "built with coverage",]
        );
        facts.instrumentation.sanitizers.value = Some(Vec::new());
        facts.instrumentation.coverage.value = Some(false);
        assert_passed(&facts, &wanted, RULE.id);
    }
}
