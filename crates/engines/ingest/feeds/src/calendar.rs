//! Days of the Gregorian calendar, before 1970 too.

use std::fmt;

use crate::value::DAY_MS;

/// A day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

/// Whether the Gregorian calendar has this day.
pub fn is_day(year: u16, month: u16, day: u16) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

impl Day {
    /// The day of a date, which [`is_day`] must accept.
    pub fn new(year: u16, month: u16, day: u16) -> Day {
        // Years that begin in March have their odd day last (Hinnant, days_from_civil).
        let year = i64::from(year) - i64::from(month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
        Day(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
    }

    /// The UTC day that contains a moment.
    pub fn from_ms(moment_ms: i64) -> Day {
        Day(moment_ms.div_euclid(DAY_MS))
    }

    /// Milliseconds from 1970-01-01 to its midnight.
    pub fn start_ms(self) -> i64 {
        self.0 * DAY_MS
    }

    /// The day `days` later, or earlier if that is negative.
    pub fn plus(self, days: i64) -> Day {
        Day(self.0 + days)
    }

    /// Year, month (from 1) and day of the month.
    pub fn date(self) -> (i64, u8, u8) {
        // This is the inverse of `new`: days since 0000-03-01, so that the leap day is the last of
        // its year.
        let shifted = self.0 + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        (year, month as u8, day as u8)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_has_its_date_and_follows_the_one_before() {
        let mut expected = Day::new(1818, 1, 1);
        assert_eq!(Day::new(1970, 1, 1).start_ms(), 0);
        assert_eq!(Day::new(2000, 3, 1), Day::new(2000, 2, 29).plus(1));
        for year in 1818..2101 {
            for month in 1..=12 {
                for day in (1..=31).filter(|&day| is_day(year, month, day)) {
                    let found = Day::new(year, month, day);
                    assert_eq!(found, expected);
                    assert_eq!(found.date(), (i64::from(year), month as u8, day as u8));
                    expected = expected.plus(1);
                }
            }
        }
        assert_eq!(Day::from_ms(-1).to_string(), "1969-12-31");
    }
}
