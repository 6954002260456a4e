//! Code was compiled by a compiler, or a version of one, that the policy does not allow.
//!
//! # What it checks
//!
//! The compiler of every unit that has code in the file against `compiler.allow`, a list of conditions such as
//! `"gcc >= 12"` of which one must hold. Without units, the compilers the file names elsewhere. Assemblers and the
//! toolchain's own start files are left out.
//!
//! ```text
//! error[disallowed-compiler]: 2 of 40 units were compiled by gcc 9.3.0 (policy: gcc >= 12, clang >= 16)
//! ```
//!
//! # Why it matters
//!
//! A release is tested with one compiler. Another one brings other defects and other defaults, and usually means that
//! the build ran on the wrong machine or took an old object from a cache.
//!
//! # How to fix
//!
//! Build with an allowed compiler, from clean, or add this one to the list.
//!
//! # Policy keys
//!
//! `compiler.allow`
//!
//! # Evidence
//!
//! Recorded: the producer of each unit. Declared: `.comment`, and the `built by` line of nginx.
//!
//! # Limits
//!
//! Versions of distributions are compared by their numbers alone. A stripped file may name the compiler of its start files
//! beside its own in `.comment`; a disallowed compiler beside an allowed one is therefore a note there.

use super::Rule;
use super::check::{Context, Draft, Kindness, Outcome, UnitHit, listed};
use super::levels;
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::declared;
use crate::policy::Policy;
use crate::wording::{grouped, plural};

/// The rule.
pub const RULE: Rule = Rule {
    id: "disallowed-compiler",
    severity: Severity::Error,
    keys: &["compiler.allow"],
    source: include_str!("disallowed_compiler.rs"),
    check,
};

/// Families that assemble and do not compile.
const ASSEMBLERS: [&str; 4] = ["gas", "nasm", "yasm", "as"];

/// The answer for one compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Allowed,
    Disallowed,
    Unknown,
}

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let policy = context.policy;
    let Some(first) = policy.compilers.first() else { return Outcome::NotAsked };
    if let Some(reason) = levels::nothing_to_judge(context.facts) {
        return Outcome::NotChecked(reason.to_owned());
    }
    let wanted = listed(policy.compilers.iter().map(|entry| entry.value.text.as_str()), 6);
    let units = levels::own_units(context.facts);
    let drafts =
        if units.is_empty() { from_file(context, &wanted) } else { from_units(context, &wanted, &units) };
    Outcome::Checked(drafts.into_iter().map(|draft| draft.policy(&first.at)).collect())
}

fn answer(policy: &Policy, family: &str, version: Option<&str>) -> Answer {
    if family.is_empty() || family == "unknown" {
        return Answer::Unknown;
    }
    let answers =
        policy.compilers.iter().map(|entry| entry.value.matches(&family.to_ascii_lowercase(), version));
    answers.fold(Answer::Disallowed, |known, answer| match (known, answer) {
        (Answer::Allowed, _) | (_, Some(true)) => Answer::Allowed,
        (Answer::Unknown, _) | (_, None) => Answer::Unknown,
        (Answer::Disallowed, Some(false)) => Answer::Disallowed,
    })
}

fn from_units<'a>(context: &Context<'a>, wanted: &str, units: &[&'a crate::facts::Unit]) -> Vec<Draft<'a>> {
    let mut bad: Vec<(String, Vec<UnitHit<'a>>)> = Vec::new();
    let mut unknown = Vec::new();
    for unit in units {
        let name = unit.compiler.as_deref().unwrap_or_default();
        let (family, version) =
            name.split_once(' ').map_or((name, None), |(family, version)| (family, Some(version)));
        if ASSEMBLERS.contains(&family) {
            continue;
        }
        match answer(context.policy, family, version) {
            Answer::Allowed => {}
            Answer::Unknown => unknown.push(UnitHit::from(*unit)),
            Answer::Disallowed => match bad.iter_mut().find(|(known, _)| known == name) {
                Some((_, hits)) => hits.push(UnitHit::from(*unit)),
                None => bad.push((name.to_owned(), vec![UnitHit::from(*unit)])),
            },
        }
    }
    let total = units.len() as u64;
    let mut drafts: Vec<Draft<'a>> = bad
        .into_iter()
        .map(|(name, hits)| {
            let wanted = wanted.to_owned();
            let key = format!("compiler:{name}");
            Draft::about_units(Kindness::Violation, key, hits, move |hits| {
                format!(
                    "{} of {} {} compiled by {name} (policy: {wanted})",
                    grouped(hits.len() as u64),
                    plural(total, "unit"),
                    if hits.len() == 1 { "was" } else { "were" }
                )
            })
            .evidence(Strength::Recorded, &[Source::DwarfProducer])
            .remedy("build these units from clean with an allowed compiler")
        })
        .collect();
    if !unknown.is_empty() {
        let wanted = wanted.to_owned();
        drafts.push(
            Draft::about_units(Kindness::Undetermined, "unknown", unknown, move |hits| {
                format!(
                    "nothing tells the compiler of {} of {} (policy: {wanted})",
                    grouped(hits.len() as u64),
                    plural(total, "unit")
                )
            })
            .evidence(Strength::None, &[]),
        );
    }
    drafts
}

/// What the file names outside of units. nginx names the compiler of its own code. `.comment` also holds that of the start
/// files, so that beside an allowed compiler a disallowed one proves nothing.
fn from_file<'a>(context: &Context<'a>, wanted: &str) -> Vec<Draft<'a>> {
    let facts = context.facts;
    let line =
        facts.nginx.as_ref().and_then(|nginx| nginx.compiler_line.as_deref()).and_then(declared::compiler);
    let seen: Vec<(&str, Option<&str>)> = match line {
        Some(own) => vec![own],
        None => facts
            .compilers
            .iter()
            .map(|seen| (seen.family.as_str(), seen.version.as_deref()))
            .filter(|(family, _)| !ASSEMBLERS.contains(family))
            .collect(),
    };
    let source = if line.is_some() { Source::BuildString } else { Source::Comment };
    let seen: Vec<(String, Answer)> = seen
        .into_iter()
        .map(|(family, version)| {
            let name = version.map_or_else(|| family.to_owned(), |version| format!("{family} {version}"));
            (name, answer(context.policy, family, version))
        })
        .collect();
    let is = |wanted: Answer| move |(_, answer): &&(String, Answer)| *answer == wanted;
    let bad = listed(seen.iter().filter(is(Answer::Disallowed)).map(|(name, _)| name), 4);
    let allowed = seen.iter().any(|(_, answer)| *answer == Answer::Allowed);
    let draft = match (bad.is_empty(), allowed) {
        (true, true) => return Vec::new(),
        (true, false) => {
            let message = format!("nothing tells the compiler (policy: {wanted})");
            return vec![
                Draft::undetermined("unknown", message)
                    .remedy(levels::reveal(facts)),
            ];
        }
        (false, false) => {
            Draft::violation(format!("compiler:{bad}"), format!("the file names {bad} as its compiler (policy: {wanted})"))
        }
        (false, true) => Draft::undetermined(
            format!("compiler:{bad}"),
            format!("the file also names {bad}, which may be the compiler of its start files alone (policy: {wanted})"),
        )
        .at_most(Severity::Note),
    };
    vec![draft.evidence(Strength::Declared, &[source]).remedy("build from clean with an allowed compiler")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::policy::{Comparison, VersionRequirement};
    use crate::rules::testing::*;

    const ID: &str = "disallowed-compiler";

    fn allows(gcc: u64) -> Policy {
        let mut wanted = policy();
        let entry = |name: &str, least: u64| VersionRequirement {
            text: format!("{name} >= {least}"),
            name: name.into(),
            comparisons: vec![(Comparison::AtLeast, vec![least])],
        };
        wanted.compilers = vec![at(entry("gcc", gcc), 30), at(entry("clang", 16), 30)];
        wanted
    }

    #[test]
    fn an_old_compiler_is_found_in_its_units() {
        let mut facts = nginx(3, Level::O2);
        facts.units.as_mut().unwrap()[0].compiler = Some("gcc 9.3.0".into());
        let found = only(&facts, &allows(12), ID);
        assert_eq!(found.message, "1 of 3 units was compiled by gcc 9.3.0 (policy: gcc >= 12, clang >= 16)");
    }

    #[test]
    fn allowed_compilers_pass() {
        assert_passed(&nginx(3, Level::O2), &allows(12), ID);
        assert_silent(&nginx(3, Level::O2), &policy(), ID);
    }

    #[test]
    fn another_family_is_disallowed_and_an_unknown_one_undetermined() {
        let mut facts = nginx(2, Level::O2);
        facts.units.as_mut().unwrap()[0].compiler = Some("tcc".into());
        facts.units.as_mut().unwrap()[1].compiler = None;
        let found = of(&facts, &allows(12), ID);
        assert_eq!(
            found.iter().map(|one| one.status).collect::<Vec<_>>(),
            [FindingStatus::Violation, FindingStatus::Undetermined]
        );
    }

    #[test]
    fn a_stripped_file_is_judged_by_what_it_names() {
        let mut facts = stripped(Level::O2);
        assert_passed(&facts, &allows(12), ID);
        let found = only(&facts, &allows(13), ID);
        assert_eq!((found.strength, found.status), (Strength::Declared, FindingStatus::Violation));
        assert_eq!(found.sources, [Source::BuildString], "nginx names its compiler");

        facts.nginx.as_mut().unwrap().compiler_line = None;
        assert_eq!(only(&facts, &allows(13), ID).sources, [Source::Comment]);
        let mut clang = facts.compilers[0].clone();
        clang.family = "clang".into();
        clang.version = Some("16.0.6".into());
        facts.compilers.push(clang);
        let found = only(&facts, &allows(13), ID);
        assert_eq!((found.severity, found.status), (Severity::Note, FindingStatus::Undetermined));
        facts.compilers.clear();
        assert_eq!(only(&facts, &allows(12), ID).severity, Severity::Error);
    }
}
