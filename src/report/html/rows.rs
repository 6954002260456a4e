//! Rows of the table of units, cells of the map, and both as data for the script.

use super::map::{self, Item, Layout};
use crate::compiler::Level;
use crate::evidence::Strength;
use crate::facts::{Facts, FunctionRun, FunctionSeen, Unit, UnitKind};
use crate::reconcile::is_judged;
use crate::report::escape::terminal;
use crate::report::shared::clip;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Characters of a name.
const NAME_CHARS: usize = 300;

/// A unit, or a run of functions that no unit describes.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) level: Level,
    pub(super) bytes: u64,
    pub(super) kind: &'static str,
    pub(super) compiler: String,
    pub(super) strength: &'static str,
    pub(super) remark: String,
    /// The level's colour, or none where a level does not apply.
    pub(super) fill: &'static str,
    group: String,
}

/// Text that no row stands for.
pub(super) struct Rest {
    pub(super) name: &'static str,
    /// The level, where one holds.
    pub(super) level: &'static str,
    pub(super) bytes: u64,
    pub(super) fill: &'static str,
}

/// The rows of a target, lowest level first and biggest first within a level, and the rest of its text.
pub(super) fn rows(facts: &Facts, most: usize) -> (Vec<Row>, Vec<Rest>) {
    let mut rows: Vec<Row> = facts.units.iter().flatten().map(of_unit).collect();
    match what(facts) {
        What::Functions => rows.extend(facts.functions.list.iter().flatten().map(of_function)),
        What::Runs => rows.extend(facts.functions.runs.iter().map(of_run)),
        // Runs that a unit describes are in the unit's own row.
        What::Units => {
            rows.extend(facts.functions.runs.iter().filter(|run| run.unit.is_none()).map(of_run));
        }
    }
    rows.sort_by(|a, b| {
        (a.fill == "none").cmp(&(b.fill == "none")).then(a.level.cmp(&b.level)).then(b.bytes.cmp(&a.bytes))
    });
    let mut listed: BTreeMap<Level, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.fill != "none") {
        let sum = listed.entry(row.level).or_default();
        *sum = sum.saturating_add(row.bytes);
    }
    let cut: u64 = rows.iter().skip(most).fold(0u64, |sum, row| sum.saturating_add(row.bytes));
    rows.truncate(most);
    let text = facts.optimization.text;
    // Functions of the start code may be among the rows, or such as have no level of their own in code of a known level;
    // nothing is drawn twice.
    let drawn = rows.iter().map(|row| row.bytes).fold(cut, u64::saturating_add);
    let mut left = text.bytes.saturating_sub(drawn);
    let mut of_left = |bytes: u64| {
        let bytes = bytes.min(left);
        left -= bytes;
        bytes
    };
    // What the account knows of a level and no row shows is drawn in that level's colour.
    let mut rest: Vec<Rest> = facts
        .optimization
        .by_level
        .iter()
        .map(|share| Rest {
            name: "code of this level that is not listed",
            level: share.level.as_str(),
            bytes: of_left(
                share.text_bytes.saturating_sub(listed.get(&share.level).copied().unwrap_or_default()),
            ),
            fill: share.level.as_str(),
        })
        .collect();
    let plain = |name, bytes, fill| Rest { name, level: "", bytes, fill };
    let of_toolchain = facts.units.iter().flatten().filter(|unit| in_runtime(unit));
    let listed_runtime = of_toolchain.fold(0u64, |sum, unit| sum.saturating_add(unit.text_bytes));
    rest.push(plain("units not listed here", cut, "none"));
    for (name, bytes) in [
        ("toolchain start code, stubs and thunks", text.runtime.saturating_sub(listed_runtime)),
        ("padding", text.padding),
        ("code without a level of its own", u64::MAX),
    ] {
        rest.push(plain(name, of_left(bytes), "none"));
    }
    (rows, rest.into_iter().filter(|rest| rest.bytes > 0).collect())
}

/// Whether the account of the text has a unit among the toolchain's own code.
fn in_runtime(unit: &Unit) -> bool {
    unit.kind == UnitKind::Toolchain && unit.strength == Strength::None
}

/// What the rows of a target are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Compilation units, and runs of functions that none describes.
    Units,
    /// Single functions, where there are no units and the functions are known.
    Functions,
    /// Runs of functions.
    Runs,
}

impl What {
    /// The word for a heading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Units => "Units",
            Self::Functions => "Functions",
            Self::Runs => "Runs of functions",
        }
    }
}

/// What the rows of the target are.
pub(super) fn what(facts: &Facts) -> What {
    if facts.units.as_ref().is_some_and(|units| !units.is_empty()) {
        What::Units
    } else if facts.functions.list.as_ref().is_some_and(|list| !list.is_empty()) {
        What::Functions
    } else {
        What::Runs
    }
}

fn of_unit(unit: &Unit) -> Row {
    let kind = match unit.kind {
        UnitKind::Source => "source",
        UnitKind::Assembly => "assembly",
        UnitKind::LtoPartition => "lto-partition",
        UnitKind::Toolchain => "toolchain",
        UnitKind::Library => "library",
        UnitKind::Skeleton => "skeleton",
    };
    let name = match &unit.member {
        Some(member) => format!("{member}: {}", unit.name),
        None => unit.name.clone(),
    };
    let folder = unit.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut remark = Vec::new();
    if !unit.overridden.is_empty() {
        remark.push(format!("{} overridden", unit.overridden.join(", ")));
    }
    remark.extend(unit.note.clone());
    let judged = is_judged(unit);
    Row {
        name: shown(&name),
        level: unit.level,
        bytes: unit.text_bytes,
        kind,
        compiler: shown(unit.compiler.as_deref().unwrap_or_default()),
        strength: unit.strength.as_str(),
        remark: shown(&remark.join("; ")),
        fill: if judged { unit.level.as_str() } else { "none" },
        group: folder.to_owned(),
    }
}

fn of_run(run: &FunctionRun) -> Row {
    let range = format!("{:#x}-{:#x}", run.start, run.end);
    Row {
        name: run.name.as_deref().map_or_else(|| range.clone(), |name| format!("{} {range}", shown(name))),
        level: run.level,
        bytes: run.end.saturating_sub(run.start),
        kind: "code",
        compiler: String::new(),
        strength: "inferred",
        remark: shown(&match &run.module {
            Some(module) => format!("{} functions, {module}", run.functions),
            None => format!("{} functions", run.functions),
        }),
        fill: run.level.as_str(),
        group: run.module.clone().unwrap_or_default(),
    }
}

fn of_function(function: &FunctionSeen) -> Row {
    let range = format!("{:#x}-{:#x}", function.start, function.end);
    Row {
        name: function.name.as_deref().map_or_else(|| range.clone(), shown),
        level: function.level,
        bytes: function.end.saturating_sub(function.start),
        kind: "function",
        compiler: String::new(),
        strength: "inferred",
        remark: if function.name.is_some() { range } else { String::new() },
        fill: function.level.as_str(),
        group: String::new(),
    }
}

fn shown(text: &str) -> String {
    terminal(&clip(text, NAME_CHARS))
}

/// The layout of rows and rest; places past the rows are places in the rest.
pub(super) fn layout<'a>(rows: &'a [Row], rest: &[Rest]) -> Layout<'a> {
    let mut items: Vec<Item<'_>> =
        rows.iter().map(|row| Item { group: &row.group, bytes: row.bytes }).collect();
    items.extend(rest.iter().map(|rest| Item { group: "\u{0}rest", bytes: rest.bytes }));
    map::layout(&items)
}

/// The document's data: words that repeat stand in one list.
#[derive(Serialize)]
pub(super) struct Data {
    levels: Vec<&'static str>,
    words: Vec<String>,
    targets: Vec<TargetData>,
    #[serde(skip)]
    places: HashMap<String, usize>,
}

#[derive(Serialize)]
struct TargetData {
    rows: Vec<(String, usize, u64, usize, usize, usize, String)>,
    /// Colours of rows whose level does not apply, by row.
    fills: BTreeMap<usize, &'static str>,
    rest: Vec<(String, u64)>,
    cells: Vec<(u32, u32, u32, u32, i64)>,
    worst: usize,
}

impl Data {
    pub(super) fn new() -> Self {
        let levels =
            Level::NAMED.into_iter().chain([Level::Optimized, Level::Unknown]).map(Level::as_str).collect();
        Self { levels, words: Vec::new(), targets: Vec::new(), places: HashMap::new() }
    }

    fn word(&mut self, word: &str) -> usize {
        if let Some(place) = self.places.get(word) {
            return *place;
        }
        let place = self.words.len();
        self.words.push(word.to_owned());
        self.places.insert(word.to_owned(), place);
        place
    }

    /// Adds a target; its place is that of its section in the page.
    pub(super) fn add(&mut self, rows: &[Row], rest: &[Rest], layout: &Layout<'_>) {
        let packed = rows
            .iter()
            .map(|row| {
                let level = self.word(row.level.as_str());
                let kind = self.word(row.kind);
                let compiler = self.word(&row.compiler);
                let strength = self.word(row.strength);
                (row.name.clone(), level, row.bytes, kind, compiler, strength, row.remark.clone())
            })
            .collect();
        let cells: Vec<(u32, u32, u32, u32, i64)> = layout
            .cells
            .iter()
            .map(|(index, rect)| {
                let index = i64::try_from(*index).unwrap_or(i64::MAX);
                let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                let row = if index < count { index } else { -1 - (index - count) };
                (rect.x, rect.y, rect.width, rect.height, row)
            })
            .collect();
        // Rows come lowest level first.
        let worst = cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.4 >= 0)
            .min_by_key(|(_, cell)| cell.4)
            .map_or(0, |(place, _)| place);
        self.targets.push(TargetData {
            rows: packed,
            fills: rows
                .iter()
                .enumerate()
                .filter(|(_, row)| row.fill != row.level.as_str())
                .map(|(place, row)| (place, row.fill))
                .collect(),
            rest: rest
                .iter()
                .map(|rest| {
                    let level =
                        if rest.level.is_empty() { String::new() } else { format!(": {}", rest.level) };
                    (format!("{}{level}", rest.name), rest.bytes)
                })
                .collect(),
            cells,
            worst,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_sum_to_the_text() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
        for name in [
            "dwarf/gcc12-lto-mixed",
            "dwarf/gcc12-O2",
            "dwarf/gcc12-fat.o",
            "elf/musl-static",
            "elf/gcc12-O0",
            "shape/dark-around-O2",
            "shape/gcc-mixed",
            "cases/mixed-dwarf",
        ] {
            let subject = crate::target::Subject::new(root.join(name), crate::facts::Origin::File);
            let facts = crate::audit::audit(&subject, &crate::audit::Options::default());
            for most in [1, 100] {
                let (rows, rest) = rows(&facts, most);
                let sum =
                    rows.iter().map(|row| row.bytes).chain(rest.iter().map(|rest| rest.bytes)).sum::<u64>();
                assert_eq!(sum, facts.optimization.text.bytes, "{name}, {most} rows");
            }
        }
    }
}
