//! Months in UTC, without a clock.

use jiff::civil::{Date, Time};
use jiff::tz::Offset;

/// A month of the common calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    /// 2008 (the archive's first) or later.
    pub year: u16,
    /// 1 (January) to 12 (December).
    pub month: u8,
}

/// The archive's first month.
const FIRST: Month = Month {
    year: 2008,
    month: 3,
};

impl Month {
    /// Months since the archive began; `None` before that, for a month outside 1 to 12, and for
    /// years that a 32-bit time does not reach.
    pub fn since_first(self) -> Option<u32> {
        if !(1..=12).contains(&self.month) || self < FIRST || self.year > 2100 {
            return None;
        }
        Some(self.ordinal() - FIRST.ordinal())
    }

    /// The month `count` months later.
    pub fn plus(self, count: u32) -> Month {
        let ordinal = self.ordinal() + count;
        Month {
            year: (ordinal / 12) as u16,
            month: (ordinal % 12) as u8 + 1,
        }
    }

    /// Unix seconds of the month's first moment.
    ///
    /// # Panics
    /// For a month that [`Month::since_first`] refuses, here and in [`Month::length_s`].
    pub fn start_s(self) -> u32 {
        let midnight = self.first_day().to_datetime(Time::midnight());
        let moment = Offset::UTC.to_timestamp(midnight);
        // `since_first` has refused the months whose seconds do not fit.
        moment.map_or(0, |moment| moment.as_second() as u32)
    }

    /// Length in seconds; Unix time does not count leap seconds.
    pub fn length_s(self) -> u32 {
        self.days() * 86_400
    }

    fn ordinal(self) -> u32 {
        u32::from(self.year) * 12 + u32::from(self.month) - 1
    }

    fn days(self) -> u32 {
        self.first_day().days_in_month() as u32
    }

    fn first_day(self) -> Date {
        Date::constant(self.year as i16, self.month as i8, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_meet_known_moments() {
        let at = |year, month| Month { year, month };
        assert_eq!(at(2023, 1).start_s(), 1_672_531_200);
        assert_eq!(at(2024, 2).length_s(), 29 * 86_400);
        assert_eq!(at(2023, 12).plus(1), at(2024, 1));
        assert_eq!(at(2024, 3).start_s() - at(2024, 2).start_s(), 29 * 86_400);
        assert_eq!(at(2008, 3).since_first(), Some(0));
        assert_eq!(at(2023, 1).since_first(), Some(178));
        assert_eq!(at(2008, 2).since_first(), None);
        assert_eq!(at(2023, 13).since_first(), None);
    }
}
