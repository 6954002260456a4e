//! Where in the text which level lies.

use crate::compiler::Level;
use std::ops::Range;

/// Slices of the map: what one line of a terminal of 80 columns holds beside its label and its legend.
pub const SLICES: usize = 48;

/// The level of each of [`SLICES`] equal slices between the first and the last described address, in order of address.
/// A slice that holds any `-O0` code is `O0`; otherwise it has the level of most of its bytes; `None` where there is no
/// code of the program's own. Empty where there is no code, or less than a byte for each slice.
pub(super) fn slices<'r>(spans: impl Iterator<Item = (&'r Range<u64>, Level)> + Clone) -> Vec<Option<Level>> {
    let some = || spans.clone().map(|(range, _)| range).filter(|range| !range.is_empty());
    let (Some(first), Some(last)) = (some().map(|r| r.start).min(), some().map(|r| r.end).max()) else {
        return Vec::new();
    };
    if last - first < SLICES as u64 {
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
        let spans = [
            (0x1000..0x1000 + 480, Level::O2),
            (0x1000 + 480..0x1000 + 960, Level::O3),
            (0x1000 + 100..0x1000 + 101, Level::O0),
            (0x1000 + 1000..0x1000 + 1003, Level::Os),
            (0x1000 + 4799..0x1000 + 4800, Level::Unknown),
        ];
        let map = slices(spans.iter().map(|(range, level)| (range, *level)));
        assert_eq!(map.len(), SLICES);
        assert_eq!(
            map[..11],
            [
                Some(Level::O2),
                Some(Level::O0),
                Some(Level::O2),
                Some(Level::O2),
                Some(Level::O2),
                Some(Level::O3),
                Some(Level::O3),
                Some(Level::O3),
                Some(Level::O3),
                Some(Level::O3),
                Some(Level::Os)
            ]
        );
        assert!(map[11..47].iter().all(Option::is_none));
        assert_eq!(map[47], Some(Level::Unknown));
    }

    #[test]
    fn nothing_and_next_to_nothing_make_no_map() {
        assert!(slices(std::iter::empty()).is_empty());
        let small = 0..47u64;
        assert!(slices([(&small, Level::O2)].into_iter()).is_empty());
        // Addresses at the end of the range of numbers.
        let last = u64::MAX - 100..u64::MAX;
        assert_eq!(slices([(&last, Level::O2)].into_iter()).len(), SLICES);
    }
}
