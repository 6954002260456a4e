//! The text by level: how much of it, and where.

use super::super::{CYAN, DIM, Options, labelled, paint};
use super::level_style;
use crate::compiler::Level;
use crate::facts::Facts;
use crate::wording::{grouped, plural, tenths};
use std::fmt::Write as _;

/// The text by level, as bars.
pub(in crate::report::text) fn text_map(out: &mut String, facts: &Facts, options: Options) {
    let text = facts.optimization.text;
    if facts.optimization.no_code {
        labelled(out, 0, "text", "none: there is nothing to judge", options);
    }
    if text.bytes == 0 {
        return;
    }
    let columns: u64 = if options.width < 90 { 8 } else { 16 };
    let mut label = "text";
    let mut row = |name: &str, bytes: u64, style: anstyle::Style, what: String| {
        if bytes == 0 {
            return;
        }
        let share = tenths(bytes, text.bytes);
        let cells = ((share * columns + 500) / 1000).clamp(1, columns);
        let bar = format!("{}{}", "█".repeat(cells as usize), "·".repeat((columns - cells) as usize));
        let _ = writeln!(
            out,
            "{}{:pad$}{} {} {:>3}.{} %  {:>11} bytes{what}",
            paint(CYAN, label),
            "",
            paint(style, &format!("{name:<9}")),
            paint(style, &bar),
            share / 10,
            share % 10,
            grouped(bytes),
            pad = 8 - label.len(),
        );
        label = "";
    };
    for share in &facts.optimization.by_level {
        let what = match (share.units, share.functions) {
            (0, 0) => String::new(),
            (0, functions) => format!("  {}", plural(functions as usize, "function")),
            (units, _) => format!("  {}", plural(units as usize, "unit")),
        };
        row(share.level.as_str(), share.text_bytes, level_style(share.level), what);
    }
    row("no level", facts.optimization.without_level(), DIM, "  assembler, toolchain, library".to_owned());
    row("runtime", text.runtime, DIM, "  start code, PLT".to_owned());
    if options.verbose {
        row("padding", text.padding, DIM, String::new());
    }
    where_which(out, facts, options);
}

/// One line from the first address to the last, a letter for the level of each slice; nothing where all are alike.
fn where_which(out: &mut String, facts: &Facts, options: Options) {
    let map = &facts.optimization.map;
    let known: Vec<Level> = map.iter().copied().flatten().collect();
    if known.iter().all(|level| Some(level) == known.first()) {
        return;
    }
    let mut line = String::new();
    for alike in map.chunk_by(|one, next| one == next) {
        let slice = match alike.first().copied().flatten() {
            Some(level) => paint(level_style(level), &letter(level).repeat(alike.len())),
            None => paint(DIM, &"·".repeat(alike.len())),
        };
        line.push_str(&slice);
    }
    let legend = if known.contains(&Level::O0) { "0: holds -O0 code" } else { "level by address" };
    labelled(out, 0, "map", &format!("{line} {}", paint(DIM, legend)), options);
}

/// A letter for a level.
fn letter(level: Level) -> &'static str {
    match level {
        Level::O0 => "0",
        Level::Og => "g",
        Level::O1 => "1",
        Level::Oz => "z",
        Level::Os => "s",
        Level::O2 => "2",
        Level::O3 => "3",
        Level::Ofast => "f",
        Level::Optimized => "+",
        Level::Unknown => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::stripped;

    fn shown(map: &[Option<Level>]) -> String {
        let mut facts = stripped(Level::O2);
        facts.optimization.map = map.to_vec();
        let mut out = String::new();
        where_which(&mut out, &facts, Options { quiet: false, verbose: false, width: 80 });
        anstream::adapter::strip_str(&out).to_string()
    }

    #[test]
    fn bars_are_as_long_as_each_other_at_any_width() {
        let mut facts = stripped(Level::O2);
        let share =
            |level, text_bytes| crate::facts::LevelShare { level, units: 0, functions: 9, text_bytes };
        facts.optimization.text.bytes = 1000;
        facts.optimization.by_level = vec![share(Level::O0, 70), share(Level::O2, 930)];
        for (width, cells) in [(80, 8), (100, 16)] {
            let mut out = String::new();
            text_map(&mut out, &facts, Options { quiet: false, verbose: false, width });
            let bars: Vec<usize> =
                out.lines().map(|line| line.chars().filter(|c| "█·".contains(*c)).count()).collect();
            assert!(bars.len() >= 2 && bars.iter().all(|bar| *bar == cells), "{width}: {out}");
        }
        let mut object = crate::rules::testing::with_units(Vec::new());
        object.optimization.text.bytes = 0;
        object.optimization.no_code = true;
        let mut out = String::new();
        text_map(&mut out, &object, Options { quiet: false, verbose: false, width: 80 });
        assert!(out.contains("none: there is nothing to judge"), "{out}");
    }

    #[test]
    fn the_map_shows_where_the_levels_differ() {
        let (o0, o2) = (Some(Level::O0), Some(Level::O2));
        assert_eq!(shown(&[o2, o2, o0, None, Some(Level::Unknown)]), "map     220·? 0: holds -O0 code\n");
        let all = [
            Level::Og,
            Level::O1,
            Level::Oz,
            Level::Os,
            Level::O2,
            Level::O3,
            Level::Ofast,
            Level::Optimized,
        ];
        assert_eq!(shown(&all.map(Some)), "map     g1zs23f+ level by address\n");
    }

    #[test]
    fn what_is_alike_needs_no_map() {
        assert_eq!(shown(&[Some(Level::O2), None, Some(Level::O2)]), "");
        assert_eq!(shown(&[Some(Level::O0); 48]), "");
        assert_eq!(shown(&[]), "");
    }
}
