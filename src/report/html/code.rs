//! The part of a section about machine code: map, levels, units.

use super::map::{HEIGHT, WIDTH};
use super::rows::{self, Rest, Row};
use crate::facts::Facts;
use crate::report::escape::html as text;
use crate::wording::{grouped, percent, plural};

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Rows that stand in the page for readers without scripts.
const STANDING: usize = 50;
/// Cells from which on lines between them are thin.
const FINE: usize = 2_000;

/// Width of a letter in a folder's name, in units of the picture.
const LETTER: u32 = 115;

/// Patterns that tell -O0 and unknown code apart without colour. Once a page: other pictures refer to them.
pub(super) const PATTERNS: &str = "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" focusable=\"false\"><defs>\
<pattern id=\"stripes\" width=\"60\" height=\"60\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<path class=\"stripe\" d=\"M0 0V60\"/></pattern>\
<pattern id=\"dots\" width=\"90\" height=\"90\" patternUnits=\"userSpaceOnUse\"><circle class=\"dots\" cx=\"45\" cy=\"45\" r=\"12\"/>\
</pattern></defs></svg>\n";

/// The map, with its words for those who do not see it.
pub(super) fn picture(
    out: &mut String,
    rows: &[Row],
    rest: &[Rest],
    layout: &super::map::Layout<'_>,
    index: usize,
    facts: &Facts,
) {
    if layout.cells.is_empty() {
        return;
    }
    // All cells of one colour are one path: ten elements draw thirty thousand units.
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    let mut shares: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, rect) in &layout.cells {
        let (fill, bytes) = match rows.get(*at) {
            Some(row) => (row.fill, row.bytes),
            None => rest.get(*at - rows.len()).map_or(("none", 0), |rest| (rest.fill, rest.bytes)),
        };
        let share = shares.entry(fill).or_default();
        *share = share.saturating_add(bytes);
        if rect.width > 0 && rect.height > 0 {
            let _ = write!(
                paths.entry(fill).or_default(),
                "M{} {}h{}v{}h-{}z",
                rect.x,
                rect.y,
                rect.width,
                rect.height,
                rect.width
            );
        }
    }
    let total: u64 = shares.values().fold(0, |sum, share| sum.saturating_add(*share));
    let order = order();
    let words: Vec<String> = order
        .iter()
        .filter_map(|fill| {
            shares.get(fill).map(|share| format!("{} {} %", label(fill), percent(*share, total)))
        })
        .collect();
    let what = rows::what(facts).title().to_lowercase();
    let _ = writeln!(
        out,
        "<h3>Map of the machine code</h3>\n<figure>\n<figcaption class=\"dim\">{} bytes; every cell is one of the {what}, \
         its area its bytes, neighbours by folder or module. Arrow keys move, Home goes to the lowest level, Enter looks the \
         cell up in the table.</figcaption>",
        grouped(total)
    );
    let fine = if layout.cells.len() > FINE { " fine" } else { "" };
    let _ = writeln!(
        out,
        "<div class=\"map{fine}\" id=\"map-{index}\" tabindex=\"0\" role=\"group\" aria-label=\"Map of the machine code: {}\">",
        words.join(", ")
    );
    let _ = write!(out, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\" focusable=\"false\">");
    for fill in &order {
        if let Some(path) = paths.get(fill) {
            let _ = write!(out, "<path class=\"cells f-{fill}\" d=\"{path}\"/>");
            if let Some(pattern) = pattern(fill) {
                let _ = write!(out, "<path fill=\"url(#{pattern})\" d=\"{path}\"/>");
            }
        }
    }
    if layout.groups.len() > 1 {
        out.push_str("<path class=\"group\" d=\"");
        for (_, group) in &layout.groups {
            let _ =
                write!(out, "M{} {}h{}v{}h-{}z", group.x, group.y, group.width, group.height, group.width);
        }
        out.push_str("\"/>");
        for (name, group) in &layout.groups {
            label_group(out, name, *group);
        }
    }
    out.push_str("<rect class=\"cursor\" width=\"0\" height=\"0\" visibility=\"hidden\"/></svg>\n</div>\n");
    out.push_str("<p class=\"said\" role=\"status\"></p>\n<ul class=\"legend\">\n");
    for fill in &order {
        if let Some(share) = shares.get(fill) {
            out.push_str("<li>");
            chip(out, fill);
            let _ = writeln!(out, "{} {} %</li>", label(fill), percent(*share, total));
        }
    }
    out.push_str("</ul>\n</figure>\n");
}

/// The folder's name in its corner, where there is room for it.
fn label_group(out: &mut String, name: &str, group: super::map::Rect) {
    let room = group.width.saturating_sub(160) / LETTER;
    if group.height < 400 || room < 4 || name.is_empty() || name.starts_with('\0') {
        return;
    }
    // The end of a path says more than its beginning.
    let length = name.chars().count();
    let name: String = match length.checked_sub(room as usize) {
        Some(over) if over > 0 => std::iter::once('…').chain(name.chars().skip(over + 1)).collect(),
        _ => name.to_owned(),
    };
    let _ = write!(
        out,
        "<text class=\"folder\" paint-order=\"stroke\" x=\"{}\" y=\"{}\">{}</text>",
        group.x + 90,
        group.y + 230,
        text(&name)
    );
}

/// Colours in the order of levels, text without a level last.
fn order() -> Vec<&'static str> {
    use crate::compiler::Level;
    let levels = Level::NAMED.into_iter().chain([Level::Optimized, Level::Unknown]);
    levels.map(Level::as_str).chain(["none"]).collect()
}

fn label(fill: &str) -> &str {
    if fill == "none" { "without a level" } else { fill }
}

fn pattern(fill: &str) -> Option<&'static str> {
    match fill {
        "O0" => Some("stripes"),
        "unknown" => Some("dots"),
        _ => None,
    }
}

fn chip(out: &mut String, fill: &str) {
    let _ = write!(
        out,
        "<svg class=\"chip\" viewBox=\"0 0 100 100\" aria-hidden=\"true\"><rect class=\"f-{fill}\" width=\"100\" height=\"100\"/>"
    );
    if let Some(pattern) = pattern(fill) {
        let _ = write!(out, "<rect fill=\"url(#{pattern})\" width=\"100\" height=\"100\"/>");
    }
    out.push_str("</svg>");
}

/// The table of levels, and the account of the text.
pub(super) fn levels(out: &mut String, facts: &Facts) {
    let all = facts.optimization.text.bytes;
    if facts.optimization.by_level.is_empty() {
        return;
    }
    out.push_str("<h3>Levels</h3>\n<div class=\"scroll\">\n<table>\n<thead><tr><th scope=\"col\">Level</th>");
    out.push_str("<th scope=\"col\" class=\"n\">Bytes</th><th scope=\"col\" class=\"n\">Of the text</th>");
    out.push_str("<th scope=\"col\" class=\"n\">Units</th><th scope=\"col\" class=\"n\">Functions</th>");
    out.push_str("<td></td></tr></thead>\n<tbody>\n");
    for share in &facts.optimization.by_level {
        let level = share.level.as_str();
        let wide =
            if all == 0 { 0 } else { (u128::from(share.text_bytes) * 1000 / u128::from(all)).min(1000) };
        let _ = write!(out, "<tr><th scope=\"row\" class=\"keep l-{level}\">");
        chip(out, level);
        let _ = writeln!(
            out,
            "{level}</th><td class=\"n\">{}</td><td class=\"n\">{} %</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td><svg class=\"bar\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect class=\"f-{level}\" width=\"{wide}\" height=\"20\"/></svg></td></tr>",
            grouped(share.text_bytes),
            percent(share.text_bytes, all),
            grouped(share.units),
            grouped(share.functions)
        );
    }
    let text = facts.optimization.text;
    let _ = writeln!(
        out,
        "</tbody>\n</table>\n</div>\n<p class=\"dim\">Text: {} bytes. Known by record {}, by structure {}, by declaration {}, \
         by inference {}; unknown {}; toolchain {}, padding {}.</p>",
        grouped(text.bytes),
        grouped(text.recorded),
        grouped(text.structural),
        grouped(text.declared),
        grouped(text.inferred),
        grouped(text.unknown),
        grouped(text.runtime),
        grouped(text.padding)
    );
}

/// The table of units, or of runs of functions where there are none.
pub(super) fn table(out: &mut String, facts: &Facts, rows: &[Row], index: usize) {
    if rows.is_empty() {
        return;
    }
    let title = rows::what(facts).title();
    let _ = writeln!(out, "<h3>{title}</h3>\n<div id=\"units-{index}\">");
    let _ = writeln!(
        out,
        "<div class=\"controls\" hidden>\n<label>Search names, compilers, remarks<br><input type=\"search\"></label>\n\
         <label>Level<br><select><option value=\"\">all</option>"
    );
    let mut last = None;
    let mut present: Vec<_> = rows.iter().map(|row| row.level).collect();
    present.sort_unstable();
    for level in present {
        if last != Some(level) {
            let _ = writeln!(out, "<option>{level}</option>");
            last = Some(level);
        }
    }
    out.push_str("</select></label>\n</div>\n<p role=\"status\" class=\"dim\">");
    if rows.len() > STANDING {
        let _ = write!(out, "the first {STANDING} of {}", grouped(rows.len() as u64));
    }
    let _ = writeln!(
        out,
        "</p>\n<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n<table>\n<thead><tr>\
         <th scope=\"col\">Name</th><th scope=\"col\">Level</th><th scope=\"col\" class=\"n\">Bytes</th>\
         <th scope=\"col\">Kind</th><th scope=\"col\">Compiler</th><th scope=\"col\">Evidence</th>\
         <th scope=\"col\">Remark</th></tr></thead>\n<tbody>"
    );
    for row in rows.iter().take(STANDING) {
        let level = row.level;
        let _ = write!(
            out,
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"l-{level}\">",
            text(&row.name)
        );
        chip(out, row.fill);
        let _ = writeln!(
            out,
            "{level}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            grouped(row.bytes),
            row.kind,
            text(&row.compiler),
            row.strength,
            text(&row.remark)
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n<div class=\"controls pages\" hidden>\n<button type=\"button\">Previous</button>\n");
    out.push_str("<button type=\"button\">Next</button>\n</div>\n</div>\n");
    let listed = rows.len() as u64;
    if facts.unit_count > listed && rows::what(facts) == rows::What::Units {
        let more = plural((facts.unit_count - listed) as usize, "more unit");
        let _ = writeln!(out, "<p>{more} not listed here; the JSON report has them all.</p>");
    }
}
