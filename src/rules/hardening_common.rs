//! What the rules about hardening share: when they are asked for, and on what files they make sense.

use super::check::{Context, Draft, Outcome};
use crate::evidence::Held;
use crate::facts::Kind;
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
