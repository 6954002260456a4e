//! Where in the text which level lies.

use crate::compiler::Level;
use std::ops::Range;

/// Slices of the map: what one line of a terminal of 80 columns holds beside its label and its legend.
pub const SLICES: usize = 48;

/// Least bytes of a slice: about a function (273 bytes in optimized server code). Of less there is nothing to locate.
const LEAST: u64 = 256;

/// The level of each of [`SLICES`] equal slices between the first and the last described address, in order of address.
/// A slice that holds any `-O0` code is `O0`; otherwise it has the level of most of its bytes; `None` where there is no
/// code of the program's own. Empty where there is no code, or too little to have places.
pub(super) fn slices<'r>(spans: impl Iterator<Item = (&'r Range<u64>, Level)> + Clone) -> Vec<Option<Level>> {
    let some = || spans.clone().map(|(range, _)| range).filter(|range| !range.is_empty());
    let (Some(first), Some(last)) = (some().map(|r| r.start).min(), some().map(|r| r.end).max()) else {
        return Vec::new();
    };
    if last - first < LEAST * SLICES as u64 {
        return Vec::new();
    }
    let size = (last - first).div_ceil(SLICES as u64);
    // Bytes by level; there are ten.
    let mut slices: Vec<Vec<(Level, u64)>> = vec![Vec::new(); SLICES];
    for (range, level) in spans {
        let mut at = range.start;
        while at < range.end {
            let index = (at - first) / size;
            let end = first.saturating_add((index + 1).saturating_mul(size)).min(range.end);
            let Some(slice) = slices.get_mut(index as usize) else { break };
            match slice.iter_mut().find(|(seen, _)| *seen == level) {
                Some((_, bytes)) => *bytes += end - at,
                None => slice.push((level, end - at)),
            }
            at = end;
        }
    }
    slices
        .iter()
        .map(|slice| {
            let worst = slice.iter().find(|(level, _)| *level == Level::O0);
            worst.or_else(|| slice.iter().max_by_key(|(_, bytes)| bytes)).map(|(level, _)| *level)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_unoptimized_code_shows_and_the_rest_goes_by_its_bytes() {
        let slice = |number: u64| 0x1000 + number * 1000;
        let spans = [
            (slice(0)..slice(4) + 800, Level::O2),
            (slice(4) + 800..slice(9) + 600, Level::O3),
            (slice(1)..slice(1) + 1, Level::O0),
            (slice(10)..slice(10) + 3, Level::Os),
            (slice(48) - 1..slice(48), Level::Unknown),
        ];
        let map = slices(spans.iter().map(|(range, level)| (range, *level)));
        let letters: String =
            map.iter().map(|level| level.map_or("-", |level| &level.as_str()[1..2])).collect();
        assert_eq!(letters, format!("20222{}s{}n", "3".repeat(5), "-".repeat(36)));
    }

    #[test]
    fn nothing_and_next_to_nothing_make_no_map() {
        assert!(slices(std::iter::empty()).is_empty());
        let small = 0..48 * LEAST - 1;
        assert!(slices([(&small, Level::O2)].into_iter()).is_empty());
        // Addresses at the end of the range of numbers.
        let last = u64::MAX - 48 * LEAST..u64::MAX;
        assert_eq!(slices([(&last, Level::O2)].into_iter()), [Some(Level::O2); SLICES]);
    }
}
