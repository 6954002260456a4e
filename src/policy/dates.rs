//! Days. The day waivers are judged on is the one thing in a run that a clock decides.

use super::Waiver;
use jiff::civil::Date;

/// Days before its last one on which a waiver is announced to run out.
pub const NOTICE_DAYS: i32 = 14;

/// Today in UTC.
pub fn today() -> Date {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// Reads `YYYY-MM-DD` and nothing else; jiff alone would also take date-times. `None`: no such day, or another form.
pub fn parse_date(text: &str) -> Option<Date> {
    let shape =
        |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    if text.len() != 10 || !text.bytes().enumerate().all(shape) {
        return None;
    }
    text.parse().ok()
}

/// How a waiver stands on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaiverState {
    /// It holds.
    Valid,
    /// It holds and runs out in that many days (0: today is the last one).
    Ending(i32),
    /// Its last day was that many days ago: the finding is back.
    Expired(i32),
}

impl Waiver {
    /// How it stands on `day`. Without `expires` it holds for ever.
    pub fn state(&self, day: Date) -> WaiverState {
        let Some(expires) = &self.expires else { return WaiverState::Valid };
        let left = day.until(expires.value).map_or(0, |span| span.get_days());
        match left {
            left if left < 0 => WaiverState::Expired(left.saturating_neg()),
            left if left <= NOTICE_DAYS => WaiverState::Ending(left),
            _ => WaiverState::Valid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Known, load};

    #[test]
    fn only_whole_days_are_dates() {
        assert!(parse_date("2027-03-31").is_some());
        for text in ["2027-02-30", "2027-3-31", "2027-03-31T00:00", "20270331", "today", "+027-03-31"] {
            assert!(parse_date(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_waiver_holds_on_its_last_day_and_not_on_the_next() {
        let text = "[[waiver]]\nrule = \"unoptimized-code\"\nreason = \"r\"\nexpires = 2027-03-31\n";
        let policy = load::load_str("p.toml", text, None, &Known::nothing()).unwrap();
        let waiver = &policy.base().waivers[0];
        let state = |day: &str| waiver.state(parse_date(day).unwrap());
        assert_eq!(state("2026-03-31"), WaiverState::Valid);
        assert_eq!(state("2027-03-16"), WaiverState::Valid);
        assert_eq!(state("2027-03-17"), WaiverState::Ending(14));
        assert_eq!(state("2027-03-31"), WaiverState::Ending(0));
        assert_eq!(state("2027-04-01"), WaiverState::Expired(1));
        assert_eq!(state("2028-03-31"), WaiverState::Expired(366));
    }
}
