//! The code needs a newer processor than the policy allows.
//!
//! # What it checks
//!
//! The processor that the recorded options let the compiler use, against `cpu.baseline`: the levels `x86-64` to `x86-64-v4`, or
//! an Arm version such as `armv8.2-a`.
//!
//! ```text
//! error[nonportable-cpu]: the code needs x86-64-v4 (policy: x86-64-v2)
//!   known   recorded: -march=znver4 -mavx512f
//! ```
//!
//! # Why it matters
//!
//! On an older processor the program ends with an illegal instruction, often only in the one function that was vectorised.
//! `-march=native` makes a build depend on the machine it was built on.
//!
//! # How to fix
//!
//! Compile with `-march=x86-64-v2` (or the baseline wanted). `-mtune` chooses no instructions and is harmless.
//!
//! # Policy keys
//!
//! `cpu.baseline`
//!
//! # Evidence
//!
//! Recorded: options in debug information. `-march=native` is recorded as what it expanded to.
//!
//! # Limits
//!
//! Assembler code and functions with a `target` attribute choose instructions without any option; many of them ask the
//! processor first.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::levels;
use crate::compiler::{cpu_need, recorded_form::is_native};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "nonportable-cpu",
    severity: Severity::Error,
    keys: &["cpu.baseline"],
    source: include_str!("nonportable_cpu.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(wanted) = &context.policy.cpu_baseline else { return Outcome::NotAsked };
    let Some(limit) = rank(&wanted.value) else {
        return Outcome::NotChecked(format!("{} is no known baseline", wanted.value));
    };
    let machine = context.facts.elf.as_ref().map(|elf| elf.machine.as_str());
    if machine.is_some_and(|machine| is_arm(machine) != limit.arm || !is_judged(machine)) {
        return Outcome::NotChecked(format!("{} is for another machine", wanted.value));
    }
    let cpu = &context.facts.cpu;
    let recorded = cpu_need(&cpu.flags).baseline;
    let need = cpu.baseline.value.as_deref().or(recorded);
    let native = levels::own_units(context.facts).iter().any(|unit| is_native(&unit.flags));
    // What some units ask for, or the loader, is a lower bound: it can break the policy, and cannot meet it.
    let whole = cpu.baseline.value.is_some() && cpu.baseline.sources != [Source::GnuProperty];
    let meets = |rank: &Rank| rank.arm == limit.arm && rank.level <= limit.level;
    let need = need.and_then(|name| rank(name).map(|rank| (name, rank)));
    let Some(need) = need.filter(|(_, rank)| whole || !meets(rank)) else {
        let draft = Draft::undetermined(
            "cpu",
            format!("nothing tells what processor the code needs (policy: {})", wanted.value),
        )
        .policy(&wanted.at)
        .remedy(levels::reveal_options(context.facts));
        return Outcome::Checked(vec![draft]);
    };
    let (name, rank) = need;
    if meets(&rank) {
        return Outcome::Checked(Vec::new());
    }
    let how = if native { ", compiled for the machine it was built on" } else { "" };
    let mut known = Vec::new();
    if !cpu.flags.is_empty() {
        known.push(format!("recorded: {}", super::check::listed(&cpu.flags, 8).replace(", ", " ")));
    }
    let draft = Draft::violation(
        format!("cpu:{name}"),
        format!("the code needs {name}{how} (policy: {})", wanted.value),
    )
    .policy(&wanted.at)
    .known(known)
    .remedy(format!("compile with -march={}", wanted.value));
    let draft = if cpu.baseline.value.is_some() {
        draft.held(&cpu.baseline)
    } else {
        draft.evidence(Strength::Recorded, &[Source::DwarfProducer])
    };
    Outcome::Checked(vec![draft])
}

/// A baseline in the order of its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rank {
    arm: bool,
    level: u32,
}

/// `x86-64-v3` is the third of x86; `armv9.0-a` holds everything of `armv8.5-a`.
fn rank(name: &str) -> Option<Rank> {
    if let Some(rest) = name.strip_prefix("x86-64") {
        let level = match rest {
            "" | "-v1" => 1,
            "-v2" => 2,
            "-v3" => 3,
            "-v4" => 4,
            _ => return None,
        };
        return Some(Rank { arm: false, level });
    }
    let version = name.strip_prefix("armv")?.split(['-', '+']).next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let level = major.checked_mul(100)?.checked_add(minor)?;
    let level = if major == 9 { 805_u32.checked_add(minor)? } else { level };
    Some(Rank { arm: true, level })
}

fn is_arm(machine: &str) -> bool {
    machine.starts_with("arm") || machine == "aarch64"
}

fn is_judged(machine: &str) -> bool {
    is_arm(machine) || matches!(machine, "x86-64" | "x86_64")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::Held;
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;

    fn baseline(name: &str) -> Policy {
        let mut wanted = policy();
        wanted.cpu_baseline = Some(at(name.into(), 35));
        wanted
    }

    #[test]
    fn fires_passes_and_leaves_open() {
        let mut facts = nginx(1, Level::O2);
        assert_silent(&facts, &policy(), RULE.id);
        assert_eq!(only(&facts, &baseline("x86-64-v2"), RULE.id).status, FindingStatus::Undetermined);
        facts.cpu.baseline = Held::new("x86-64-v4".into(), Strength::Recorded, Source::DwarfProducer);
        facts.cpu.flags = vec!["-march=znver4".into(), "-mavx512f".into()];
        let found = only(&facts, &baseline("x86-64-v2"), RULE.id);
        assert_eq!(found.message, "the code needs x86-64-v4 (policy: x86-64-v2)");
        assert_eq!(found.known, ["recorded: -march=znver4 -mavx512f"]);
        assert_passed(&facts, &baseline("x86-64-v4"), RULE.id);
        facts.cpu.baseline = Held::new("x86-64-v3".into(), Strength::Structural, Source::GnuProperty);
        assert_eq!(only(&facts, &baseline("x86-64-v2"), RULE.id).status, FindingStatus::Violation);
        let open = only(&facts, &baseline("x86-64-v4"), RULE.id);
        assert_eq!(open.status, FindingStatus::Undetermined, "what the loader asks for is the least");
        facts.cpu.baseline = Held::unknown();
        assert_eq!(
            only(&facts, &baseline("x86-64-v2"), RULE.id).message,
            "the code needs x86-64-v4 (policy: x86-64-v2)"
        );
        assert_not_checked(&facts, &baseline("armv8-a"), RULE.id);
    }

    #[test]
    fn baselines_have_an_order() {
        assert!(rank("armv8.2-a").unwrap().level < rank("armv8.4-a+crypto").unwrap().level);
        assert_eq!(rank("armv9-a"), rank("armv8.5-a"));
        assert_eq!(rank("x86-64-v5"), None);
        assert_eq!(rank("znver4"), None);
    }
}
