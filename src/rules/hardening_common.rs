//! What the rules about hardening share: when they are asked for, and on what files they make sense.

use super::check::{Context, Draft, Outcome};
use super::levels;
use crate::evidence::Held;
use crate::facts::{Facts, Kind};
use crate::finding::PolicyPlace;

/// Where a rule is switched on: by its key under `[hardening]`, or by a severity under `[rules]`.
/// `off` is the value of the key that asks for nothing.
pub fn asked<'a>(context: &Context<'a>, rule: &str, key: &str, off: &str) -> Option<&'a PolicyPlace> {
    match context.policy.hardening.get(key) {
        Some(wanted) if wanted.value == off => None,
        Some(wanted) => Some(&wanted.at),
        None => context.switched_on(rule),
    }
}

/// The machine's short name, if the target is a linked file; the reason why not otherwise.
pub fn linked<'a>(context: &Context<'a>) -> Result<&'a str, String> {
    let Some(elf) = &context.facts.elf else {
        return Err("a printed text has no such property".to_owned());
    };
    match elf.kind {
        Kind::Executable | Kind::Pie | Kind::SharedObject => Ok(&elf.machine),
        Kind::Relocatable | Kind::Archive => Err("the file is not linked yet".to_owned()),
        Kind::Core => Err("a core dump is no program file".to_owned()),
        Kind::SeparateDebug => Err("a separate debug file tells nothing about linking".to_owned()),
    }
}

/// The outcome for a property that is wanted: missing is a violation, unknown is undetermined.
pub fn wanted<'a>(
    place: &PolicyPlace,
    key: &'static str,
    fact: &Held<bool>,
    wanted: bool,
    missing: &str,
    fix: &str,
) -> Outcome<'a> {
    match fact.value {
        Some(value) if value == wanted => Outcome::Checked(Vec::new()),
        Some(_) => {
            Outcome::Checked(vec![Draft::violation(key, missing).held(fact).policy(place).remedy(fix)])
        }
        None => Outcome::Checked(vec![unknown(place, key, fix)]),
    }
}

/// The question left open where nothing tells; `fix` is what to do if it is missing.
pub fn unknown<'a>(place: &PolicyPlace, key: &'static str, fix: &str) -> Draft<'a> {
    Draft::undetermined(key, format!("nothing in this file tells about {key}"))
        .policy(place)
        .remedy(format!("give debug information, if there is any; if it is missing, {fix}"))
}

/// Compilers whose code has neither a stack protector nor calls that `_FORTIFY_SOURCE` would replace: those of languages that
/// check bounds themselves or not at all, and assemblers. By how their names begin.
const OTHERS: [&str; 10] = [
    "rustc",
    "go",
    "ldc",
    "dmd",
    "swift",
    "Free Pascal",
    "The Glorious Glasgow Haskell",
    "gas",
    "nasm",
    "yasm",
];

fn is_other(compiler: &str) -> bool {
    OTHERS.iter().any(|other| {
        compiler.strip_prefix(other).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

/// What the languages of a file mean for what only C and its kin have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Languages {
    /// There is code that may have it.
    Concerned,
    /// None of the file's code does.
    Others,
    /// Another language is named, and nothing tells whether there is C beside it: start files name GCC in every program.
    PerhapsOthers,
}

impl Languages {
    /// For the stack protector, which the compilers of some other languages have, too.
    pub fn with_stack_protector(facts: &Facts) -> Self {
        Self::of(facts, |unit| unit.compiler.as_deref().is_some_and(is_other))
    }

    /// For `_FORTIFY_SOURCE`, a macro of C's headers.
    pub fn with_c_headers(facts: &Facts) -> Self {
        let c = |language: &str| {
            let name = language.trim_end_matches(|c: char| c.is_ascii_digit());
            matches!(name, "C" | "C++" | "Objective-C" | "Objective-C++")
        };
        Self::of(facts, |unit| match &unit.language {
            Some(language) => !c(language),
            None => unit.compiler.as_deref().is_some_and(is_other),
        })
    }

    fn of(facts: &Facts, other: impl Fn(&crate::facts::Unit) -> bool) -> Self {
        let units = levels::own_units(facts);
        if !units.is_empty() {
            return if units.iter().all(|unit| other(unit)) { Self::Others } else { Self::Concerned };
        }
        let mut compilers = facts.compilers.iter().map(|seen| match seen.family.as_str() {
            "unknown" => is_other(&seen.raw),
            family => is_other(family),
        });
        match (facts.compilers.is_empty(), compilers.clone().all(|other| other), compilers.any(|other| other))
        {
            (false, true, _) => Self::Others,
            (false, false, true) => Self::PerhapsOthers,
            _ => Self::Concerned,
        }
    }
}

/// Why a rule does not ask for what only C and its kin have.
pub const OTHER_LANGUAGES: &str = "the languages of this program do not use it";
