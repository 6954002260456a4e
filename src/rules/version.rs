//! Holding a version against the conditions of a policy.

use crate::policy::{Comparison, VersionRequirement};
use std::cmp::Ordering;

/// The numbers of a version: `12.2.0` is 12, 2, 0. `None` if the text does not begin with a number. What follows the
/// numbers (`-rc2`, ` 20210110`) does not enter.
pub fn numbers(version: &str) -> Option<Vec<u64>> {
    let mut out = Vec::new();
    for part in version.trim_start_matches('v').split('.') {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse() else { break };
        out.push(number);
        if digits.len() != part.len() {
            break;
        }
    }
    if out.is_empty() { None } else { Some(out) }
}

/// Whether a version meets all comparisons of a requirement.
pub fn meets(requirement: &VersionRequirement, version: &[u64]) -> bool {
    requirement.comparisons.iter().all(|(comparison, wanted)| holds(*comparison, version, wanted))
}

fn holds(comparison: Comparison, version: &[u64], wanted: &[u64]) -> bool {
    let order = compare(version, wanted);
    match comparison {
        Comparison::Equal => same(version, wanted, wanted.len()),
        Comparison::NotEqual => !same(version, wanted, wanted.len()),
        Comparison::AtLeast => order != Ordering::Less,
        Comparison::Above => order == Ordering::Greater,
        Comparison::AtMost => order != Ordering::Greater,
        Comparison::Below => order == Ordering::Less,
        Comparison::Compatible => {
            order != Ordering::Less && same(version, wanted, wanted.len().saturating_sub(1).max(1))
        }
    }
}

/// Missing parts count as 0.
fn compare(one: &[u64], other: &[u64]) -> Ordering {
    (0..one.len().max(other.len()))
        .map(|place| part(one, place).cmp(&part(other, place)))
        .find(|order| *order != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// Whether the first `parts` parts are the same.
fn same(one: &[u64], other: &[u64], parts: usize) -> bool {
    (0..parts).all(|place| part(one, place) == part(other, place))
}

fn part(version: &[u64], place: usize) -> u64 {
    version.get(place).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_versions() {
        assert_eq!(numbers("12.2.0"), Some(vec![12, 2, 0]));
        assert_eq!(numbers("10.2.1 20210110"), Some(vec![10, 2, 1]));
        assert_eq!(numbers("3.2.0-rc2"), Some(vec![3, 2, 0]));
        assert_eq!(numbers("unknown"), None);
        assert_eq!(numbers(""), None);
        assert_eq!(numbers("99999999999999999999.1"), None);
    }

    #[test]
    fn comparisons() {
        use Comparison::*;
        for (comparison, wanted, yes, no) in [
            (AtLeast, vec![12], "12.0.0", "11.4"),
            (Above, vec![12, 1], "12.1.1", "12.1.0"),
            (AtMost, vec![12], "12.0", "12.0.1"),
            (Below, vec![2], "1.9", "2.0"),
            (Equal, vec![1, 30], "1.30.4", "1.31.0"),
            (NotEqual, vec![1, 30], "1.31.0", "1.30.4"),
            (Compatible, vec![1, 30, 1], "1.30.7", "1.30.0"),
            (Compatible, vec![1, 30, 1], "1.30.1", "1.31.1"),
            (Compatible, vec![1, 30], "1.31", "2.30"),
            (Compatible, vec![1], "1.31", "2.0"),
        ] {
            let requirement = VersionRequirement {
                text: String::new(),
                name: String::new(),
                comparisons: vec![(comparison, wanted)],
            };
            assert!(meets(&requirement, &numbers(yes).unwrap()), "{comparison:?} {yes}");
            assert!(!meets(&requirement, &numbers(no).unwrap()), "{comparison:?} {no}");
        }
    }
}
