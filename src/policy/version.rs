//! Conditions on versions: `gcc >= 12, < 14`, `~1.30.1`, `= 1.22.1`, a plain name or a plain version.

use super::{Comparison, VersionRequirement};
use std::cmp::Ordering;

/// Comparison signs, longest first so that `>=` is not read as `>`.
const SIGNS: [(&str, Comparison); 8] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    (">", Comparison::Above),
    ("<", Comparison::Below),
    ("=", Comparison::Equal),
    ("~", Comparison::Compatible),
];

impl VersionRequirement {
    /// Reads a requirement. The error is one sentence that says what is wrong and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err("it is empty; write for example `>= 1.22.1`".to_owned());
        }
        let name_len = if trimmed.starts_with(|c: char| c.is_ascii_alphabetic()) {
            trimmed
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '-')))
                .unwrap_or(trimmed.len())
        } else {
            0
        };
        let (name, rest) = trimmed.split_at(name_len);
        let rest = rest.trim();
        let mut comparisons = Vec::new();
        if !rest.is_empty() {
            for part in rest.split(',') {
                comparisons.push(comparison(part.trim())?);
            }
        }
        Ok(Self { text: text.to_owned(), name: name.to_owned(), comparisons })
    }

    /// Whether a compiler or product of that name and version meets it. An empty requirement name stands for any
    /// name. `None`: the name fits and the version, which decides, is not known.
    pub fn matches(&self, name: &str, version: Option<&str>) -> Option<bool> {
        if !self.name.is_empty() && !self.name.eq_ignore_ascii_case(name) {
            return Some(false);
        }
        if self.comparisons.is_empty() {
            return Some(true);
        }
        let actual = leading_numbers(version?)?;
        Some(self.comparisons.iter().all(|(comparison, wanted)| holds(*comparison, &actual, wanted)))
    }
}

fn comparison(part: &str) -> Result<(Comparison, Vec<u64>), String> {
    let (sign, number) = SIGNS
        .iter()
        .find_map(|(sign, comparison)| Some((*comparison, part.strip_prefix(sign)?.trim())))
        .unwrap_or((Comparison::Equal, part));
    if number.is_empty() {
        return Err(format!("`{part}` lacks a version number; write for example `>= 12`"));
    }
    let parts: Result<Vec<u64>, _> = number.split('.').map(str::parse).collect();
    match parts {
        Ok(parts) if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => Ok((sign, parts)),
        _ if number.starts_with(['^', '>', '<', '=', '!', '~']) => {
            Err(format!("`{part}` has an unknown comparison; use =, !=, >=, >, <=, < or ~"))
        }
        _ if number.contains([' ', '|']) => {
            Err(format!("`{part}` is not one comparison; put a comma between those that must all hold"))
        }
        _ => Err(format!("`{number}` is not a version; write numbers with dots, such as `1.22.1`")),
    }
}

/// The numbers a version starts with: `[1, 31, 4]` of `1.31.4-dev`, `[1, 24]` of `go1.24`. `None` if there are none.
pub fn leading_numbers(version: &str) -> Option<Vec<u64>> {
    let from = version.find(|c: char| c.is_ascii_digit())?;
    let numbers = version.get(from..)?;
    let to = numbers.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(numbers.len());
    let parts: Vec<u64> = numbers.get(..to)?.split('.').map_while(|part| part.parse().ok()).take(8).collect();
    (!parts.is_empty()).then_some(parts)
}

/// Compares as many parts as the requirement writes; parts the version lacks count as 0. So `<= 12` holds for
/// 12.2.0 and `> 12` does not.
fn holds(comparison: Comparison, actual: &[u64], wanted: &[u64]) -> bool {
    let padded = (0..wanted.len()).map(|index| actual.get(index).copied().unwrap_or(0));
    let order = padded.clone().cmp(wanted.iter().copied());
    match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::AtLeast => order != Ordering::Less,
        Comparison::Above => order == Ordering::Greater,
        Comparison::AtMost => order != Ordering::Greater,
        Comparison::Below => order == Ordering::Less,
        Comparison::Compatible => {
            // `~1` means "some 1.x": with one part alone, that part is the one that must be the same.
            let same = wanted.len().saturating_sub(1).max(1);
            order != Ordering::Less && padded.take(same).eq(wanted.iter().copied().take(same))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meets(requirement: &str, name: &str, version: &str) -> Option<bool> {
        VersionRequirement::parse(requirement).unwrap().matches(name, Some(version))
    }

    #[test]
    fn requirements_of_the_contract() {
        for (requirement, name, version, expected) in [
            ("gcc >= 12", "gcc", "12.2.0", true),
            ("gcc >= 12", "gcc", "11.5.0", false),
            ("gcc >= 12", "clang", "16.0.6", false),
            ("gcc >= 12, < 14", "gcc", "13.3.0", true),
            ("gcc >= 12, < 14", "gcc", "14.0.1", false),
            ("gcc", "gcc", "4.8.5", true),
            ("~1.30.1", "nginx", "1.30.9", true),
            ("~1.30.1", "nginx", "1.30.0", false),
            ("~1.30.1", "nginx", "1.31.1", false),
            ("~1", "nginx", "2.0", false),
            (">= 1.31.2", "nginx", "1.31.4-dev", true),
            ("= 1.22.1", "nginx", "1.22.1", true),
            ("1.22.1", "nginx", "1.22.1", true),
            ("1.22", "nginx", "1.22.1", true),
            ("1.22.1", "nginx", "1.22", false),
            ("= 1.22.0", "nginx", "1.22", true),
            ("<= 12", "gcc", "12.2.0", true),
            ("> 12", "gcc", "12.2.0", false),
            ("!= 1.25", "nginx", "1.25.3", false),
            ("go >= 1.24", "go", "go1.24.4", true),
        ] {
            assert_eq!(
                meets(requirement, name, version),
                Some(expected),
                "{requirement} on {name} {version}"
            );
        }
    }

    #[test]
    fn unknown_versions_are_not_guessed() {
        let requirement = VersionRequirement::parse("gcc >= 12").unwrap();
        assert_eq!(requirement.matches("gcc", None), None);
        assert_eq!(requirement.matches("gcc", Some("(unknown)")), None);
        assert_eq!(requirement.matches("clang", None), Some(false));
        assert_eq!(VersionRequirement::parse("gcc").unwrap().matches("gcc", None), Some(true));
        assert_eq!(requirement.matches("gcc", Some("99999999999999999999")), None);
    }

    #[test]
    fn errors_say_what_to_write() {
        for (text, word) in [
            ("", "empty"),
            ("gcc >=", "lacks a version number"),
            ("gcc => 12", "unknown comparison"),
            (">= 12 < 14", "comma"),
            ("12.x", "is not a version"),
            ("^1.2", "unknown comparison"),
            ("gcc 12,", "lacks a version number"),
        ] {
            let error = VersionRequirement::parse(text).unwrap_err();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }
}
