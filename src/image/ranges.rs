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
    }
}
