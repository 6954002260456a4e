//! Numbers as people read them, the same in every message and report.

/// Digits in groups of three: `1,022,361`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 unit`, `1,234 units`.
pub fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `part` of `whole` in tenths of a per cent, rounded down, so that 1,000 means all of it.
pub fn tenths(part: u64, whole: u64) -> u64 {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    u64::try_from(tenths).unwrap_or(u64::MAX)
}

/// `part` of `whole` in per cent with one decimal and without the sign, so that 100.0 means all of it and 0.0 none.
pub fn percent(part: u64, whole: u64) -> String {
    match tenths(part, whole) {
        0 if part > 0 => "under 0.1".to_owned(),
        tenths => format!("{}.{}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(1_022_361), "1,022,361");
        assert_eq!(grouped(999), "999");
        assert_eq!(plural(1_u64, "unit"), "1 unit");
        assert_eq!(plural(1234_usize, "unit"), "1,234 units");
        assert_eq!(percent(1, 1_000_000), "under 0.1");
        assert_eq!(percent(1, 8), "12.5");
        assert_eq!(percent(9_999, 10_000), "99.9");
        assert_eq!(percent(0, 0), "0.0");
    }
}
