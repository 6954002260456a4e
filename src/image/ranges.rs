//! Ranges of addresses: sorted and without overlap, joined, intersected, subtracted.

use std::borrow::Cow;
use std::ops::Range;

/// Sorts ranges and joins those that touch or overlap; empty ones are dropped.
pub fn merge(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|r| r.start < r.end);
    ranges.sort_by_key(|r| (r.start, r.end));
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Like [`merge`], without a copy where there is nothing to sort or join.
pub fn merged(ranges: &[Range<u64>]) -> Cow<'_, [Range<u64>]> {
    let apart = |pair: &[Range<u64>]| matches!(pair, [a, b] if a.end < b.start);
    if ranges.iter().all(|r| r.start < r.end) && ranges.windows(2).all(apart) {
        return Cow::Borrowed(ranges);
    }
    Cow::Owned(merge(ranges.to_vec()))
}

/// Bytes in sorted ranges without overlap.
pub fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|r| r.end - r.start).sum()
}

/// What of `a` lies in `b`; both sorted and without overlap.
pub fn intersect(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    let mut rest = b;
    for range in a {
        rest = &rest[rest.partition_point(|r| r.end <= range.start)..];
        for other in rest.iter().take_while(|r| r.start < range.end) {
            out.push(range.start.max(other.start)..range.end.min(other.end));
        }
    }
    out
}

/// Which of these ranges (sorted, without overlap) contains an address.
pub fn range_at(ranges: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let after = ranges.partition_point(|r| r.start <= address);
    ranges.get(after.checked_sub(1)?).filter(|r| address < r.end)
}

/// Tells for many addresses, of which most do not, whether they lie in some ranges.
#[derive(Debug)]
pub struct Sieve<'a> {
    ranges: &'a [Range<u64>],
    start: u64,
    /// A bit for each so many addresses: whether any range lies there.
    bits: Vec<u64>,
    shift: u32,
}

impl<'a> Sieve<'a> {
    /// Most words of bits. 16 KiB stay in a processor's first cache.
    const WORDS: u64 = 2048;

    /// Ranges that are sorted and without overlap.
    pub fn new(ranges: &'a [Range<u64>]) -> Self {
        let start = ranges.first().map_or(0, |range| range.start);
        let span = ranges.last().map_or(0, |range| range.end).saturating_sub(start);
        let shift = (0..64).find(|&shift| span >> shift < Self::WORDS * 64).unwrap_or(63);
        let mut bits = vec![0u64; (span >> shift) as usize / 64 + 1];
        for range in ranges.iter().filter(|range| range.start < range.end) {
            for bit in (range.start - start) >> shift..=(range.end - 1 - start) >> shift {
                if let Some(word) = bits.get_mut(bit as usize / 64) {
                    *word |= 1 << (bit % 64);
                }
            }
        }
        Self { ranges, start, bits, shift }
    }

    /// Whether one of the ranges contains the address.
    #[inline]
    pub fn contains(&self, address: u64) -> bool {
        let Some(at) = address.checked_sub(self.start) else { return false };
        let bit = at >> self.shift;
        let Some(word) = self.bits.get((bit / 64) as usize) else { return false };
        word >> (bit % 64) & 1 == 1 && range_at(self.ranges, address).is_some()
    }
}

/// What of `a` does not lie in `b`; both sorted and without overlap.
pub fn subtract(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    let mut rest = b;
    for range in a {
        rest = &rest[rest.partition_point(|r| r.end <= range.start)..];
        let mut at = range.start;
        for other in rest.iter().take_while(|r| r.start < range.end) {
            if other.start > at {
                out.push(at..other.start);
            }
            at = at.max(other.end);
        }
        if at < range.end {
            out.push(at..range.end);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn merging_joins_touching_ranges_and_drops_empty_ones() {
        assert_eq!(merge(vec![5..9, 0..3, 3..4, 7..12, 20..20]), vec![0..4, 5..12]);
    }

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0u64..200, 1u64..40).prop_map(|(s, n)| s..s + n), 0..12)
    }

    proptest! {
        #[test]
        fn what_is_in_and_what_is_not_make_the_whole(a in ranges(), b in ranges()) {
            prop_assert_eq!(merged(&a).into_owned(), merge(a.clone()));
            let (a, b) = (merge(a), merge(b));
            prop_assert!(matches!(merged(&a), Cow::Borrowed(_)));
            prop_assert_eq!(total(&intersect(&a, &b)) + total(&subtract(&a, &b)), total(&a));
        }

        #[test]
        fn a_sieve_holds_back_exactly_what_its_ranges_contain(
            a in ranges(),
            scale in prop::sample::select(vec![1u64, 4096, 1 << 20, 1 << 56]),
            asked in prop::collection::vec((0u64..256, -1i64..2), 64),
        ) {
            let a = merge(a.iter().map(|r| r.start.saturating_mul(scale)..r.end.saturating_mul(scale)).collect());
            let sieve = Sieve::new(&a);
            for (place, beside) in asked {
                let address = place.saturating_mul(scale).saturating_add_signed(beside);
                prop_assert_eq!(sieve.contains(address), a.iter().any(|range| range.contains(&address)));
            }
        }
    }
}
