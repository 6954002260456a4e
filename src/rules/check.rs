//! What a rule is given and what it gives back: the facts and policy of one target, and drafts of findings.

use crate::compiler::Level;
use crate::evidence::{Held, Source, Strength};
use crate::facts::{Facts, Kind, Origin, Unit};
use crate::finding::{Location, PolicyPlace, RangeRef, Severity, normalise_unit};
use crate::policy::{At, Pattern, Policy, Setting, matching};
use jiff::civil::Date;
use std::cell::RefCell;

/// What a rule sees.
#[derive(Debug)]
pub struct Context<'a> {
    /// Everything held about the target.
    pub facts: &'a Facts,
    /// The policy for this target.
    pub policy: &'a Policy,
    /// The day waivers are judged on.
    pub today: Date,
    used: RefCell<Vec<PolicyPlace>>,
}

/// What became of a rule on one target.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The policy does not ask for this.
    NotAsked,
    /// The policy asks, but there is nothing here to check it on; the reason in one clause.
    NotChecked(String),
    /// Checked. Without a draft that counts, the rule has passed.
    Checked(Vec<Draft<'a>>),
}

/// A unit concerned by a finding.
#[derive(Debug, Clone, Copy)]
pub struct UnitHit<'a> {
    /// The unit.
    pub unit: &'a Unit,
    /// Its level.
    pub level: Level,
}

impl<'a> From<&'a Unit> for UnitHit<'a> {
    fn from(unit: &'a Unit) -> Self {
        Self { unit, level: unit.level }
    }
}

impl UnitHit<'_> {
    /// Name that does not depend on where the build was done.
    pub fn normalised(&self) -> String {
        normalise_unit(&self.unit.name, self.unit.comp_dir.as_deref(), self.unit.member.as_deref())
    }
}

/// Makes the sentence of a finding from the units that remain.
pub type MessageOf<'a> = Box<dyn Fn(&[UnitHit<'a>]) -> String + 'a>;

/// The sentence of a finding. One about units is made anew when a waiver takes some of them away.
pub enum Message<'a> {
    /// Does not depend on the units.
    Fixed(String),
    /// Made from the units that remain.
    Units(MessageOf<'a>),
}

impl std::fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(text) => f.debug_tuple("Fixed").field(text).finish(),
            Self::Units(_) => f.write_str("Units(..)"),
        }
    }
}

/// Whether a draft is a broken policy, a question left open, or only worth saying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kindness {
    /// The policy is broken.
    Violation,
    /// The evidence does not suffice to say.
    Undetermined,
    /// Nothing is wrong; something was left unchecked and is worth saying.
    Remark,
}

/// A finding in the making. Made only by [`Draft::violation`], [`Draft::undetermined`] and [`Draft::remark`], each of which
/// demands the key and the message; severity, waivers and fingerprint are added when the rule has returned.
#[derive(Debug)]
pub struct Draft<'a> {
    pub(super) kind: Kindness,
    pub(super) key: String,
    pub(super) message: Message<'a>,
    pub(super) severity: Option<Severity>,
    pub(super) ceiling: Option<Severity>,
    pub(super) remedy: Option<String>,
    pub(super) strength: Strength,
    pub(super) sources: Vec<Source>,
    pub(super) units: Vec<UnitHit<'a>>,
    pub(super) ranges: Vec<RangeRef>,
    pub(super) besides_units: bool,
    pub(super) functions: Vec<String>,
    pub(super) module: Option<String>,
    pub(super) upstream: Option<String>,
    pub(super) policy: Option<PolicyPlace>,
    pub(super) location: Option<Location>,
    pub(super) known: Vec<String>,
    pub(super) cost: Option<String>,
}

impl<'a> Draft<'a> {
    fn new(kind: Kindness, key: impl Into<String>, message: Message<'a>) -> Self {
        Self {
            kind,
            key: key.into(),
            message,
            severity: None,
            ceiling: None,
            remedy: None,
            strength: Strength::None,
            sources: Vec::new(),
            units: Vec::new(),
            ranges: Vec::new(),
            besides_units: false,
            functions: Vec::new(),
            module: None,
            upstream: None,
            policy: None,
            location: None,
            known: Vec::new(),
            cost: None,
        }
    }

    /// The policy is broken. `key` tells findings of the same rule apart over runs.
    pub fn violation(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kindness::Violation, key, Message::Fixed(message.into()))
    }

    /// The evidence does not suffice to say.
    pub fn undetermined(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kindness::Undetermined, key, Message::Fixed(message.into()))
    }

    /// Nothing is wrong, but something is worth saying: always a note that does not count.
    pub fn remark(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kindness::Remark, key, Message::Fixed(message.into())).at_most(Severity::Note)
    }

    /// A draft about units, whose message is made from those that no waiver takes away.
    /// Strength and sources are those of the units; they are listed worst level first, then biggest first.
    pub fn about_units(
        kind: Kindness,
        key: impl Into<String>,
        mut units: Vec<UnitHit<'a>>,
        message: impl Fn(&[UnitHit<'a>]) -> String + 'a,
    ) -> Self {
        units.sort_by(|a, b| {
            (a.level, std::cmp::Reverse(a.unit.text_bytes), &a.unit.name).cmp(&(
                b.level,
                std::cmp::Reverse(b.unit.text_bytes),
                &b.unit.name,
            ))
        });
        let mut draft = Self::new(kind, key, Message::Units(Box::new(message)));
        // A statement about many units is as firm as the weakest of them.
        draft.strength = units.iter().map(|hit| hit.unit.strength).min().unwrap_or_default();
        for source in units.iter().flat_map(|hit| &hit.unit.sources) {
            if !draft.sources.contains(source) {
                draft.sources.push(*source);
            }
        }
        draft.units = units;
        draft
    }

    /// How to fix it.
    #[must_use]
    pub fn remedy(mut self, text: impl Into<String>) -> Self {
        self.remedy = Some(text.into());
        self
    }

    /// How firmly the evidence stands, and whose it is.
    #[must_use]
    pub fn evidence(mut self, strength: Strength, sources: &[Source]) -> Self {
        self.strength = strength;
        self.sources = sources.to_vec();
        self
    }

    /// Strength and sources of a held fact, and what was seen of it.
    #[must_use]
    pub fn held<T>(mut self, fact: &Held<T>) -> Self {
        self.known.extend(fact.seen.as_ref().map(|seen| format!("{}: {seen}", fact.strength.as_str())));
        self.evidence(fact.strength, &fact.sources)
    }

    /// The policy value that judged.
    #[must_use]
    pub fn policy(mut self, place: &PolicyPlace) -> Self {
        self.policy = Some(place.clone());
        self
    }

    /// Severity that another policy key than `[rules]` gives; `[rules]` still prevails.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// No more than this, whatever `[rules]` says.
    #[must_use]
    pub fn at_most(mut self, severity: Severity) -> Self {
        self.ceiling = Some(severity);
        self
    }

    /// Address ranges concerned, with the names of the functions they begin with.
    #[must_use]
    pub fn ranges(mut self, ranges: Vec<RangeRef>, functions: Vec<String>) -> Self {
        self.besides_units |= !ranges.is_empty();
        self.ranges = ranges;
        self.functions = functions;
        self
    }

    /// The draft speaks of something besides its units (code no unit describes): it stays when waivers cover all of them.
    #[must_use]
    pub fn besides_units(mut self, more: bool) -> Self {
        self.besides_units |= more;
        self
    }

    /// The module concerned (what a waiver's `module` is held against).
    #[must_use]
    pub fn module(mut self, name: impl Into<String>) -> Self {
        self.module = Some(name.into());
        self
    }

    /// The place in a configuration (what a waiver's `file` is held against).
    #[must_use]
    pub fn location(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// The upstream of a configuration (what a waiver's `upstream` is held against).
    #[must_use]
    pub fn upstream(mut self, name: impl Into<String>) -> Self {
        self.upstream = Some(name.into());
        self
    }

    /// How it is known, line by line.
    #[must_use]
    pub fn known(mut self, lines: Vec<String>) -> Self {
        self.known = lines;
        self
    }

    /// What it costs.
    #[must_use]
    pub fn cost(mut self, text: impl Into<String>) -> Self {
        self.cost = Some(text.into());
        self
    }
}

impl<'a> Context<'a> {
    /// A context for one target.
    pub fn new(facts: &'a Facts, policy: &'a Policy, today: Date) -> Self {
        Self { facts, policy, today, used: RefCell::new(Vec::new()) }
    }

    /// Remember that a policy entry matched something.
    pub fn mark_used(&self, place: &PolicyPlace) {
        let mut used = self.used.borrow_mut();
        if !used.contains(place) {
            used.push(place.clone());
        }
    }

    /// Whether a policy entry has matched something so far.
    pub fn is_used(&self, place: &PolicyPlace) -> bool {
        self.used.borrow().contains(place)
    }

    /// The policy entries that matched something.
    pub fn into_used(self) -> Vec<PolicyPlace> {
        self.used.into_inner()
    }

    /// What `[rules]` says about a rule, if it names it.
    pub fn setting(&self, rule: &str) -> Option<Setting> {
        self.policy.rules.get(rule).map(|at| at.value)
    }

    /// Whether `[rules]` names a rule with a severity: the switch of rules that have no key of their own.
    pub fn switched_on(&self, rule: &str) -> Option<&'a PolicyPlace> {
        let at = self.policy.rules.get(rule)?;
        matches!(at.value, Setting::Report(_)).then_some(&at.at)
    }

    /// The policy entry of a list that matches a unit's name, or `comp_dir/name`; it is marked as used.
    pub fn unit_matches(&self, patterns: &[At<Pattern>], unit: &Unit) -> bool {
        let mut hit = false;
        for pattern in patterns.iter().filter(|pattern| unit_matches(&pattern.value, unit)) {
            self.mark_used(&pattern.at);
            hit = true;
        }
        hit
    }

    /// The name the product goes by, for fingerprints: soname, else the base name of the file. A process or a stream has
    /// no name of its own that stays the same over runs; there the product's name is taken.
    pub fn product_name(&self) -> String {
        let facts = self.facts;
        if let Some(soname) = facts.elf.as_ref().and_then(|elf| elf.soname.as_deref()) {
            return soname.to_owned();
        }
        if matches!(facts.origin, Origin::Process | Origin::Stdin) {
            let command =
                facts.process.as_ref().and_then(|process| process.command.split_whitespace().next());
            let name = facts.product.as_ref().map(|product| product.name.as_str()).or(command);
            return base_name(name.unwrap_or("stdin")).trim_end_matches(':').to_owned();
        }
        base_name(facts.member.as_deref().unwrap_or(&facts.path)).to_owned()
    }

    /// Whether the target is an nginx-family server (and not one of its dynamic modules).
    pub fn nginx_server(&self) -> Result<&'a crate::facts::Nginx, String> {
        let Some(nginx) = &self.facts.nginx else {
            return Err("the target is not of the nginx family".to_owned());
        };
        if self.facts.elf.as_ref().is_some_and(|elf| elf.kind == Kind::SharedObject) {
            return Err("the target is a dynamic module, not the server".to_owned());
        }
        Ok(nginx)
    }
}

/// Whether a pattern matches a unit: its name or `comp_dir/name`, the name without the directory of the build, or the
/// member of the archive it lies in.
pub fn unit_matches(pattern: &Pattern, unit: &Unit) -> bool {
    matching::unit_matches(pattern, &unit.name, unit.comp_dir.as_deref())
        || pattern.matches(&normalise_unit(&unit.name, unit.comp_dir.as_deref(), None))
        || unit.member.as_deref().is_some_and(|member| matching::path_matches(pattern, member))
}

/// The last component of a path.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// At most `most` names in a row, and how many more there are.
pub fn listed<I: IntoIterator<Item = S>, S: AsRef<str>>(names: I, most: usize) -> String {
    let names: Vec<S> = names.into_iter().collect();
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let rest = names.len().saturating_sub(shown.len());
    let text = shown.join(", ");
    if rest > 0 { format!("{text} and {rest} more") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(["a", "b", "c"], 2), "a, b and 1 more");
    }
}
