//! All claims about the level, and those that disagree.

use super::code::State;
use super::{Whole, Witnessed, is_judged, is_live, is_vouched_for, reason};
use crate::compiler::Level;
use crate::evidence::{Claim, Scope, Source, Strength};
use crate::facts::{Conflict, Unit, UnitKind};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) fn all(seen: &Witnessed) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut groups: BTreeMap<(Level, Strength, Vec<Source>), (u64, &Unit)> = BTreeMap::new();
    for unit in seen.units.iter().filter(|u| is_judged(u) && u.level != Level::Unknown) {
        groups.entry((unit.level, unit.strength, unit.sources.clone())).or_insert((0, unit)).0 += 1;
    }
    for ((level, strength, sources), (count, unit)) in groups {
        let Some(source) = sources.first() else { continue };
        claims.push(Claim {
            fact: "optimization.level".to_owned(),
            value: json!(level),
            strength,
            source: *source,
            scope: Scope::Unit,
            at: None,
            quote: Some(format!("{count} units, such as {}: {}", unit.name, reason::options_of(unit))),
        });
    }
    claims.extend(seen.declared.clone());
    claims.extend(seen.claims.iter().cloned());
    if !seen.code.sentence.is_empty() {
        let level = match seen.code.whole {
            Whole::O0 | Whole::Mixed => Level::O0,
            Whole::Optimized => Level::Optimized,
            Whole::Unknown => Level::Unknown,
        };
        claims.push(Claim {
            fact: "optimization.level".to_owned(),
            value: json!(level),
            strength: if level == Level::Unknown { Strength::None } else { Strength::Inferred },
            source: Source::CodeShape,
            scope: if seen.code.whole == Whole::Mixed { Scope::Ranges } else { Scope::File },
            at: None,
            quote: Some(seen.code.sentence.clone()),
        });
    }
    claims
}

pub(super) fn conflicts(seen: &Witnessed, declared: Level) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    let own: Vec<&Unit> = seen
        .units
        .iter()
        .filter(|u| u.kind == UnitKind::Source && u.strength == Strength::Recorded && is_live(u, seen))
        .collect();
    // What the structure shows (clang's marks of calls) speaks as firmly against the code.
    let firm: Vec<&Unit> = seen
        .units
        .iter()
        .filter(|u| is_vouched_for(u) && is_live(u, seen))
        .chain(own.iter().copied().filter(|u| !is_vouched_for(u)))
        .collect();
    let mut add = |claims: Vec<Claim>| {
        conflicts.push(Conflict { fact: "optimization.level".to_owned(), claims });
    };
    let recorded = |units: &[&Unit], level: Level| Claim {
        fact: "optimization.level".to_owned(),
        value: json!(level),
        strength: units.first().map_or(Strength::Recorded, |unit| unit.strength),
        source: units.first().and_then(|unit| unit.sources.first().copied()).unwrap_or(Source::DwarfProducer),
        scope: Scope::Unit,
        at: None,
        quote: Some(reason::name_units(units)),
    };
    if let Some(claim) = seen.declared.as_ref().filter(|_| declared != Level::Unknown) {
        let lower: Vec<&Unit> = own.iter().copied().filter(|u| u.level < declared).collect();
        if let Some(worst) = lower.iter().map(|u| u.level).min() {
            add(vec![claim.clone(), recorded(&lower, worst)]);
        } else if !own.is_empty() && own.iter().all(|u| u.level > declared && u.level < Level::Optimized) {
            let least = own.iter().map(|u| u.level).min().unwrap_or_default();
            add(vec![claim.clone(), recorded(&own, least)]);
        }
        if own.is_empty() && declared > Level::O0 && matches!(seen.code.whole, Whole::O0 | Whole::Mixed) {
            add(vec![claim.clone(), code_claim(seen, Level::O0)]);
        }
        if own.is_empty() && declared == Level::O0 && seen.code.whole == Whole::Optimized {
            add(vec![claim.clone(), code_claim(seen, Level::Optimized)]);
        }
    }
    if seen.code.cross_check_only
        && seen.code.whole == Whole::O0
        && !firm.is_empty()
        && firm.iter().all(|u| u.level > Level::O0)
    {
        let least = firm.iter().map(|u| u.level).min().unwrap_or_default();
        add(vec![recorded(&firm, least), code_claim(seen, Level::O0)]);
    }
    // Without units, what a compiler recorded beside them is held against the code that it speaks of.
    // That which is seen of some functions alone denies nothing that is said of others.
    if firm.is_empty() && !seen.code.cross_check_only && !seen.code.only_functions {
        let against = |claim: &&Claim| {
            claim.strength == Strength::Recorded && claim.level() > Level::O0 && seen.denied_by_code(claim)
        };
        for claim in seen.claims.iter().filter(against) {
            add(vec![claim.clone(), code_claim(seen, Level::O0)]);
        }
    }
    // Recorded command lines that cannot be attributed must at least name levels that some unit has.
    for claim in seen.claims.iter().filter(|c| c.strength == Strength::Recorded) {
        let level = claim.level();
        // What is said of a unit was held against that unit already.
        if claim.scope == Scope::Unit || claim.scope == Scope::Ranges && !seen.notes_meet_units(level) {
            continue;
        }
        // `optimized` is any level but -O0.
        let same = |unit: &&Unit| match (unit.level, level) {
            (Level::Optimized, other) | (other, Level::Optimized) => other != Level::O0,
            (one, other) => one == other,
        };
        if level != Level::Unknown && !own.is_empty() && !own.iter().any(same) {
            let least = own.iter().map(|u| u.level).min().unwrap_or_default();
            add(vec![claim.clone(), recorded(&own, least)]);
        }
    }
    conflicts
}

/// Unoptimized functions that prove more than a chance resemblance, as many as make a run.
const CONTRADICTING: usize = 5;

impl Witnessed {
    /// Whether the code that a recorded level above `-O0` speaks of is seen to be unoptimized.
    fn denied_by_code(&self, claim: &Claim) -> bool {
        let unoptimized = matches!(self.code.whole, Whole::O0 | Whole::Mixed);
        match claim.scope {
            Scope::Ranges => {
                let level = claim.level();
                let here = |range: &Range<u64>| {
                    let at = self.recorded_ranges.partition_point(|(r, _)| r.end <= range.start);
                    let found = self.recorded_ranges.get(at);
                    found.is_some_and(|(r, l)| *l == level && r.start <= range.start)
                };
                let unoptimized = self.code.functions.iter().filter(|(_, state)| *state == State::O0);
                unoptimized.filter(|(range, _)| here(range)).take(CONTRADICTING).count() == CONTRADICTING
            }
            Scope::File => unoptimized,
            // One line may be that of one object among many.
            Scope::Some => self.lines_cover && unoptimized,
            Scope::Unit => false,
        }
    }
}

fn code_claim(seen: &Witnessed, level: Level) -> Claim {
    Claim {
        fact: "optimization.level".to_owned(),
        value: json!(level),
        strength: Strength::Inferred,
        source: Source::CodeShape,
        scope: Scope::File,
        at: None,
        quote: Some(seen.code.sentence.clone()),
    }
}
