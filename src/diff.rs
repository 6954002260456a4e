//! What changed between two builds, and whether for the worse.
//!
//! Two targets are compared fact by fact. What differs between any two builds of the same source (build-id, directories,
//! the order of things) is ignored and named as ignored; what cannot be compared, because one side does not hold it, is
//! named as not compared and is no change.

use crate::compiler::Level;
use crate::facts::{Facts, Origin, Status};
use crate::report::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod levels;
mod parts;

/// Whether a change is for the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The new build is worse in this.
    Worse,
    /// The new build is better in this.
    Better,
    /// Neither.
    Neutral,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What changed: `units`, `compiler`, `flag:-march=native`, `nginx.module:ngx_http_gzip_static_module`,
    /// `configure:--with-cc-opt`, `hardening.relro`, `library:libz.so.1`, `text.bytes`, …
    pub what: String,
    /// The old value; `null` where there was none.
    pub old: Value,
    /// The new value; `null` where there is none.
    pub new: Value,
    /// Whether it is for the worse.
    pub direction: Direction,
    /// How many of `of` are concerned, where things are counted (units).
    pub count: Option<u64>,
    /// Out of how many.
    pub of: Option<u64>,
    /// The first names of those concerned.
    pub names: Vec<String>,
    /// The change as a sentence; not part of the document.
    #[serde(skip)]
    pub sentence: String,
}

impl Change {
    fn new(what: impl Into<String>, old: Value, new: Value, direction: Direction, sentence: String) -> Self {
        Self { what: what.into(), old, new, direction, count: None, of: None, names: Vec::new(), sentence }
    }
}

/// One side, as far as it takes to recognise it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The target as named.
    pub path: String,
    /// Where its bytes came from, at the time it was audited.
    pub origin: Origin,
    /// Member of a package or image.
    pub member: Option<String>,
    /// Whether everything could be read.
    pub status: Status,
    /// Name of the program.
    pub product: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Build-id.
    pub build_id: Option<String>,
    /// The lowest known level of its own code.
    pub level: Level,
    /// Bytes of text.
    pub text_bytes: u64,
}

impl Side {
    fn of(facts: &Facts) -> Self {
        Self {
            path: facts.path.clone(),
            origin: facts.origin,
            member: facts.member.clone(),
            status: facts.status,
            product: facts.product.as_ref().map(|product| product.name.clone()),
            version: facts.product.as_ref().and_then(|product| product.version.clone()),
            build_id: facts.elf.as_ref().and_then(|elf| elf.build_id.clone()),
            level: facts.optimization.level,
            text_bytes: facts.optimization.text.bytes,
        }
    }

    /// The name under which the side is shown.
    pub fn name(&self) -> String {
        match &self.member {
            Some(member) => format!("{}!{member}", self.path),
            None => self.path.clone(),
        }
    }
}

/// The document of `diff`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// `flagaudit/diff/1`.
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The baseline.
    pub old: Side,
    /// The candidate.
    pub new: Side,
    /// Differences, worse ones first.
    pub changes: Vec<Change>,
    /// Nothing changed.
    pub same: bool,
    /// Something changed for the worse.
    pub regression: bool,
    /// What was compared and is equal, in words.
    pub equal: Vec<String>,
    /// What differs and does not count, in words.
    pub ignored: Vec<String>,
    /// What could not be compared, with the reason.
    pub not_compared: Vec<String>,
}

impl DiffReport {
    /// How many changes go in a direction.
    pub fn count(&self, direction: Direction) -> usize {
        self.changes.iter().filter(|change| change.direction == direction).count()
    }
}

/// What the comparisons add to.
#[derive(Debug, Default)]
struct Ledger {
    changes: Vec<Change>,
    equal: Vec<String>,
    ignored: Vec<String>,
    not_compared: Vec<String>,
}

impl Ledger {
    fn change(&mut self, what: &str, old: Value, new: Value, direction: Direction, sentence: String) {
        self.changes.push(Change::new(what, old, new, direction, sentence));
    }
}

/// Compares two audited targets. Sides that failed have no facts to compare: the caller has to look at their status.
pub fn compare(old: &Facts, new: &Facts) -> DiffReport {
    let mut ledger = Ledger::default();
    levels::compare(old, new, &mut ledger);
    parts::compare(old, new, &mut ledger);
    for (word, facts) in [("old", old), ("new", new)] {
        if facts.status == Status::Partial {
            ledger.not_compared.push(format!("the {word} side could not be read in full"));
        }
    }
    // The sort is stable: within a direction the order is that of the comparisons, the most telling first.
    ledger.changes.sort_by_key(|change| change.direction);
    DiffReport {
        schema: "flagaudit/diff/1".to_owned(),
        tool: Tool::this(),
        old: Side::of(old),
        new: Side::of(new),
        same: ledger.changes.is_empty(),
        regression: ledger.changes.iter().any(|change| change.direction == Direction::Worse),
        changes: ledger.changes,
        equal: ledger.equal,
        ignored: ledger.ignored,
        not_compared: ledger.not_compared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{module, nginx};

    #[test]
    fn units_without_code_are_not_counted() {
        let (old, mut new) = (nginx(5, Level::O2), nginx(5, Level::O0));
        let unused = new.units.as_mut().and_then(|units| units.last_mut()).unwrap();
        unused.text_bytes = 0;
        let report = compare(&old, &new);
        assert_eq!(report.changes[0].sentence, "4 of 4 units went from -O2 to -O0");
        assert!(report.changes.iter().all(|change| !change.what.starts_with("units.")), "{report:?}");
        // Where no unit has a place, all count.
        for unit in new.units.iter_mut().flatten() {
            unit.text_bytes = 0;
        }
        assert_eq!(compare(&old, &new).changes[0].sentence, "5 of 5 units went from -O2 to -O0");
    }

    #[test]
    fn a_part_that_fell_is_named_and_the_whole_is_not() {
        let options = crate::report::text::Options { quiet: false, verbose: false, width: 200 };
        let text = |old: &Facts, new: &Facts| crate::report::text::diff(&compare(old, new), options);
        let (old, mut new) = (nginx(9, Level::O2), nginx(9, Level::O2));
        let name = new.units.as_ref().unwrap()[3].name.clone();
        new.units.as_mut().unwrap()[3].level = Level::O0;
        let one = text(&old, &new);
        assert!(one.contains("where") && one.contains(&name), "{one}");
        for unit in new.units.iter_mut().flatten().skip(1) {
            unit.level = Level::O0;
        }
        let eight = text(&old, &new);
        assert!(eight.contains("and 2 more (-v shows more)"), "{eight}");
        assert!(!text(&old, &nginx(9, Level::O0)).contains("where"), "all of them need no names");

        // A stripped file names the range, and the module it belongs to.
        let stripped = |o0: u64| {
            let mut facts = nginx(9, Level::O2);
            facts.units = None;
            let share =
                |level, functions| crate::facts::LevelShare { level, units: 0, functions, text_bytes: 0 };
            facts.optimization.by_level = vec![share(Level::O0, o0), share(Level::O2, 1700 - o0)];
            facts
        };
        let mut new = stripped(99);
        new.functions.runs = vec![crate::facts::FunctionRun {
            start: 0x74735,
            end: 0x817d4,
            name: None,
            unit: None,
            module: Some("ngx_http_upstream_module".into()),
            level: Level::O0,
            functions: 99,
        }];
        let text = text(&stripped(0), &new);
        assert!(text.contains("ngx_http_upstream_module 0x74735-0x817d4 (99 functions)"), "{text}");
    }

    #[test]
    fn lists_are_apart_by_commas() {
        let old = nginx(1, Level::O2);
        let mut new = old.clone();
        let mut other = new.compilers[0].clone();
        (other.family, other.version) = ("clang".to_owned(), Some("14.0.6".to_owned()));
        new.compilers.push(other);
        let report = compare(&old, &new);
        let compilers = report.changes.iter().find(|change| change.what == "compiler").unwrap();
        assert_eq!(compilers.sentence, "compiler: gcc 12.2.0 → clang 14.0.6, gcc 12.2.0");
    }

    #[test]
    fn many_modules_are_one_line_of_the_text() {
        let mut old = nginx(1, Level::O2);
        let new = nginx(1, Level::O2);
        let names: Vec<String> = (0..30).map(|n| format!("ngx_http_m{n:02}_module")).collect();
        let modules = old.nginx.as_mut().unwrap().modules.as_mut().unwrap();
        modules.extend(names.iter().map(|name| module(name)));
        let report = compare(&old, &new);
        assert_eq!(report.count(Direction::Worse), 30);
        let options = crate::report::text::Options { quiet: false, verbose: false, width: 80 };
        let text = crate::report::text::diff(&report, options);
        assert!(text.contains("30 modules removed: http_m00, http_m01"), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("18") && !text.contains("http_m12"), "{text}");
        let all =
            crate::report::text::diff(&report, crate::report::text::Options { verbose: true, ..options });
        assert!(all.contains("module ngx_http_m29_module removed"), "{all}");
    }

    #[test]
    fn levels_that_were_not_compared_are_not_the_same() {
        let old = nginx(3, Level::O2);
        let mut new = old.clone();
        new.units = None;
        new.optimization.by_level.clear();
        let report = compare(&old, &new);
        assert_eq!((old.optimization.level, new.optimization.level), (Level::O2, Level::O2));
        assert!(report.equal.contains(&"lowest level".to_owned()), "{report:?}");
        assert!(!report.equal.contains(&"levels".to_owned()), "{report:?}");
    }
}
