//! The map of the text: a squarified treemap (Bruls, Huizing, van Wijk, 2000). The area of a cell is its bytes; cells of
//! one folder lie together, so that a subtree built without optimization is one patch.

/// Width of the picture in its own units.
pub(super) const WIDTH: f64 = 10_000.0;
/// Height of the picture in its own units.
pub(super) const HEIGHT: f64 = 3_600.0;

/// Something to be drawn.
pub(super) struct Item<'a> {
    /// Cells of one group lie together.
    pub(super) group: &'a str,
    /// Bytes; nothing is drawn for none.
    pub(super) bytes: u64,
}

/// A rectangle, in whole units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// Where everything lies.
pub(super) struct Layout<'a> {
    /// Place in the given list, and rectangle; biggest groups first.
    pub(super) cells: Vec<(usize, Rect)>,
    /// Names and outlines of the groups.
    pub(super) groups: Vec<(&'a str, Rect)>,
}

/// Lays the items out.
pub(super) fn layout<'a>(items: &[Item<'a>]) -> Layout<'a> {
    let mut groups: std::collections::BTreeMap<&'a str, Vec<usize>> = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.bytes > 0) {
        groups.entry(item.group).or_default().push(index);
    }
    let bytes = |index: &usize| items.get(*index).map_or(0.0, |item| item.bytes as f64);
    let mut sized: Vec<(f64, &'a str, Vec<usize>)> = groups
        .into_iter()
        .map(|(name, mut members)| {
            members.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)).then(a.cmp(b)));
            (members.iter().map(bytes).sum(), name, members)
        })
        .collect();
    sized.sort_by(|a, b| b.0.total_cmp(&a.0));
    let outer = squarify(&sized.iter().map(|group| group.0).collect::<Vec<_>>(), Area::whole());
    let mut out = Layout { cells: Vec::new(), groups: Vec::new() };
    for ((_, name, members), area) in sized.iter().zip(outer) {
        out.groups.push((name, area.rect()));
        let inner = squarify(&members.iter().map(bytes).collect::<Vec<_>>(), area);
        out.cells.extend(members.iter().copied().zip(inner.iter().map(Area::rect)));
    }
    out
}

#[derive(Debug, Clone, Copy)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn whole() -> Self {
        Self { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT }
    }

    /// Edges are rounded, not sizes: neighbours share them, and no gap or overlap comes from rounding.
    fn rect(&self) -> Rect {
        let edge = |at: f64, most: f64| at.round().clamp(0.0, most) as u32;
        let (left, top) = (edge(self.x, WIDTH), edge(self.y, HEIGHT));
        Rect {
            x: left,
            y: top,
            width: edge(self.x + self.width, WIDTH).saturating_sub(left),
            height: edge(self.y + self.height, HEIGHT).saturating_sub(top),
        }
    }
}

/// Areas for the sizes, which are positive and descending, filling `area`.
fn squarify(sizes: &[f64], mut area: Area) -> Vec<Area> {
    let total: f64 = sizes.iter().sum();
    let mut out = Vec::with_capacity(sizes.len());
    if total <= 0.0 {
        return out;
    }
    let scale = area.width * area.height / total;
    let mut rest = sizes;
    while !rest.is_empty() {
        let side = area.width.min(area.height).max(f64::MIN_POSITIVE);
        // A row takes sizes for as long as its worst cell becomes more square.
        let (mut count, mut sum, mut worst) = (0, 0.0, f64::INFINITY);
        for size in rest {
            let grown = sum + size * scale;
            let first = rest.first().map_or(0.0, |first| first * scale);
            let ratio = |cell: f64| {
                let thick = grown / side;
                let long = cell / thick.max(f64::MIN_POSITIVE);
                (long / thick).max(thick / long.max(f64::MIN_POSITIVE))
            };
            let next = ratio(first).max(ratio(size * scale));
            if count > 0 && next > worst {
                break;
            }
            (count, sum, worst) = (count + 1, grown, next);
        }
        let (row, after) = rest.split_at(count);
        let thick = sum / side;
        let mut at = 0.0;
        for size in row {
            let long = if sum > 0.0 { size * scale / sum * side } else { 0.0 };
            out.push(if area.width >= area.height {
                Area { x: area.x, y: area.y + at, width: thick, height: long }
            } else {
                Area { x: area.x + at, y: area.y, width: long, height: thick }
            });
            at += long;
        }
        if area.width >= area.height {
            area.x += thick;
            area.width = (area.width - thick).max(0.0);
        } else {
            area.y += thick;
            area.height = (area.height - thick).max(0.0);
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(rect: &Rect) -> f64 {
        f64::from(rect.width) * f64::from(rect.height)
    }

    #[test]
    fn cells_fill_the_picture_by_their_bytes_and_do_not_overlap() {
        let sizes: Vec<u64> = (1..200u64).map(|i| i * i % 977 + 50).collect();
        let names: Vec<String> = sizes.iter().map(|size| format!("g{}", size % 7)).collect();
        let items: Vec<Item<'_>> =
            sizes.iter().zip(&names).map(|(bytes, group)| Item { group, bytes: *bytes }).collect();
        let layout = layout(&items);
        assert_eq!(layout.cells.len(), sizes.len());
        let total: f64 = layout.cells.iter().map(|(_, rect)| area(rect)).sum();
        assert!((total - WIDTH * HEIGHT).abs() < 1.0, "{total}");
        let whole: u64 = sizes.iter().sum();
        for (index, rect) in &layout.cells {
            let wanted = sizes[*index] as f64 / whole as f64 * WIDTH * HEIGHT;
            assert!((area(rect) - wanted).abs() < wanted * 0.05 + 500.0, "{rect:?} for {wanted}");
        }
        for (i, (_, a)) in layout.cells.iter().enumerate() {
            for (_, b) in layout.cells.iter().skip(i + 1) {
                let apart = a.x + a.width <= b.x
                    || b.x + b.width <= a.x
                    || a.y + a.height <= b.y
                    || b.y + b.height <= a.y;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn nothing_and_absurd_sizes_are_no_trouble() {
        assert!(layout(&[]).cells.is_empty());
        assert!(layout(&[Item { group: "", bytes: 0 }]).cells.is_empty());
        let huge = [u64::MAX, 1, u64::MAX].map(|bytes| Item { group: "a", bytes });
        assert_eq!(layout(&huge).cells.len(), 3);
    }
}
