//! No function guards its stack frame.
//!
//! # What it checks
//!
//! That the stack protector is used somewhere in a linked file, or that every unit was compiled with it.
//!
//! ```text
//! error[missing-stack-protector]: no function guards its stack frame
//! ```
//!
//! # Why it matters
//!
//! The guard ends the program when a buffer on the stack overruns, before the function returns to an address of the
//! attacker's choosing.
//!
//! # How to fix
//!
//! Compile with `-fstack-protector-strong`.
//!
//! # Policy keys
//!
//! `hardening.stack-protector`, or a severity under `rules.missing-stack-protector`
//!
//! # Evidence
//!
//! Structural: a reference to `__stack_chk_fail` or the guard. Recorded: the options of every unit.
//!
//! # Limits
//!
//! A program none of whose functions has a buffer needs no guard and shows none: where the options are recorded, they
//! decide. Where they are not, a program of fewer than 100 functions without a guard is undetermined, and a warning at most.
//! Rust, Go, D (but for GCC's), Swift, Pascal, Haskell and assembly do not use it, and programs written in them alone are not
//! checked.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::hardening_common::{Languages, OTHER_LANGUAGES, asked, linked, wanted};
use super::levels;
use crate::facts::Unit;
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-stack-protector",
    severity: Severity::Error,
    keys: &["hardening.stack-protector"],
    source: include_str!("missing_stack_protector.rs"),
    check,
};

const FIX: &str = "compile with -fstack-protector-strong";
const FIX_UNKNOWN: &str =
    "give debug information, if there is any; if it is missing, compile with -fstack-protector-strong";

/// So many functions without a single guard were compiled without. Measured on 290 files of Debian 12: the largest one
/// built with the option and without a guard has 64 functions.
const ENOUGH: u64 = 100;

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "stack-protector", "false") else { return Outcome::NotAsked };
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    let units = levels::own_units(context.facts);
    let held = &context.facts.hardening.canary;
    let languages = Languages::with_stack_protector(context.facts);
    if held.value != Some(true) && languages == Languages::Others {
        return Outcome::NotChecked(OTHER_LANGUAGES.to_owned());
    }
    if !units.is_empty() && units.iter().all(|unit| protector(&unit.flags) == Some(true)) {
        return Outcome::Checked(Vec::new());
    }
    if held.value.is_none() {
        let fix = if units.is_empty() { FIX_UNKNOWN } else { FIX };
        return Outcome::Checked(vec![of_unknown(&units, languages).policy(place).remedy(fix)]);
    }
    let functions = context.facts.functions.count;
    if units.is_empty() && held.value == Some(false) && (1..ENOUGH).contains(&functions) {
        let message = format!("no function guards its stack frame, and none of {functions} may need it");
        let draft =
            Draft::undetermined("stack-protector", message).held(held).policy(place).remedy(FIX_UNKNOWN);
        return Outcome::Checked(vec![draft.at_most(Severity::Warning)]);
    }
    wanted(
        place,
        "stack-protector",
        &context.facts.hardening.canary,
        true,
        "no function guards its stack frame",
        FIX,
    )
}

/// What is said where the file itself tells nothing: a static C library brings the guard whatever the program does.
fn of_unknown<'a>(units: &[&Unit], languages: Languages) -> Draft<'a> {
    let without: Vec<Option<bool>> = units.iter().map(|unit| protector(&unit.flags)).collect();
    if !units.is_empty() && without.iter().all(|word| *word == Some(false)) {
        return Draft::violation("stack-protector", "every unit was compiled without the stack protector");
    }
    let recorded = !units.is_empty() && units.iter().all(|unit| unit.flags_recorded);
    if recorded && without.iter().all(|word| *word != Some(true)) {
        // A compiler may have been built to switch it on by itself, of which it writes nothing.
        return Draft::undetermined("stack-protector", "no unit records -fstack-protector");
    }
    if languages == Languages::PerhapsOthers {
        let message = "nothing tells whether there is code of C, which alone would guard its stack frames";
        return Draft::undetermined("stack-protector", message).at_most(Severity::Warning);
    }
    Draft::undetermined("stack-protector", "nothing in this file tells about stack-protector")
}

/// Whether the last word about the protector switches it on for functions that need it, or off. `None`: there is none.
fn protector(flags: &[String]) -> Option<bool> {
    let last = flags
        .iter()
        .rfind(|flag| flag.starts_with("-fstack-protector") || *flag == "-fno-stack-protector")?;
    Some(last.starts_with("-fstack-protector") && last != "-fstack-protector-explicit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::{Held, Source, Strength};
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        hardening_cases(
            RULE.id,
            "stack-protector",
            "true",
            |facts, value| facts.hardening.canary = value,
            false,
        );
    }

    #[test]
    fn recorded_options_decide_where_no_function_needs_a_guard() {
        let mut facts = nginx(2, Level::O2);
        facts.hardening.canary = Held::new(false, Strength::Structural, Source::Imports);
        for unit in facts.units.as_mut().unwrap() {
            std::sync::Arc::make_mut(&mut unit.flags).push("-fstack-protector-strong".into());
        }
        assert_passed(&facts, &hardened("stack-protector", "true"), RULE.id);
        std::sync::Arc::make_mut(&mut facts.units.as_mut().unwrap()[0].flags)
            .push("-fno-stack-protector".into());
        assert_eq!(of(&facts, &hardened("stack-protector", "true"), RULE.id).len(), 1);
    }

    #[test]
    fn a_few_functions_may_need_no_guard() {
        let mut facts = nginx(1, Level::O2);
        facts.units = Some(Vec::new());
        facts.hardening.canary = Held::new(false, Strength::Structural, Source::Imports);
        facts.functions.count = 64;
        let found = only(&facts, &hardened("stack-protector", "true"), RULE.id);
        assert_eq!((found.status, found.severity), (FindingStatus::Undetermined, Severity::Warning));
        facts.functions.count = 100;
        let found = only(&facts, &hardened("stack-protector", "true"), RULE.id);
        assert_eq!((found.status, found.severity), (FindingStatus::Violation, Severity::Error));
    }

    #[test]
    fn rust_alone_is_not_checked() {
        let mut facts = nginx(1, Level::Optimized);
        let wanted = hardened("stack-protector", "true");
        for compiler in ["rustc 1.95.0", "go 1.22", "ldc 1.30.0", "Free Pascal 3.2.2 2023/03/30"] {
            facts.units.as_mut().unwrap()[0].compiler = Some(compiler.into());
            assert_not_checked(&facts, &wanted, RULE.id);
        }
        for compiler in ["gcc 12.2.0", "golf 1"] {
            facts.units.as_mut().unwrap()[0].compiler = Some(compiler.into());
            assert_eq!(only(&facts, &wanted, RULE.id).severity, Severity::Error);
        }
        facts.units = Some(Vec::new());
        facts.compilers = vec![seen("gcc"), seen("rustc")];
        let found = only(&facts, &wanted, RULE.id);
        assert_eq!((found.status, found.severity), (FindingStatus::Undetermined, Severity::Warning));
        facts.compilers = vec![seen("nasm")];
        assert_not_checked(&facts, &wanted, RULE.id);
    }

    #[test]
    fn of_a_static_program_the_recorded_options_tell() {
        let mut facts = nginx(2, Level::O2);
        let wanted = hardened("stack-protector", "true");
        let found = only(&facts, &wanted, RULE.id);
        assert_eq!(found.status, FindingStatus::Undetermined);
        assert_eq!(found.message, "no unit records -fstack-protector");
        for unit in facts.units.as_mut().unwrap() {
            std::sync::Arc::make_mut(&mut unit.flags).push("-fno-stack-protector".into());
        }
        assert_eq!(only(&facts, &wanted, RULE.id).status, FindingStatus::Violation);
    }
}
