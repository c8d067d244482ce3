//! The time of a run. It is handed in, so that a test can run a suite of hours at once.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where the runner gets its time from.
pub trait Clock {
    /// Seconds since the run began.
    fn elapsed_s(&self) -> f64;
    /// Now as UTC, RFC 3339 with seconds.
    fn utc(&self) -> String;
}

/// The machine's clocks: the monotonic one for distances, the one of the calendar for records.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn elapsed_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn utc(&self) -> String {
        let since_epoch_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            // A clock before 1970 is wrong in any case, and no reason to lose a measurement.
            .map_or(0, |d| d.as_secs());
        rfc3339(since_epoch_s)
    }
}

/// Formats seconds since 1970 as `2026-11-20T12:34:56Z`.
///
/// Days to a civil date by counting 400-year eras from March, so that leap days come last
/// (H. Hinnant, "chrono-compatible low-level date algorithms").
pub fn rfc3339(since_epoch_s: u64) -> String {
    let (days, second_of_day) = (since_epoch_s / 86_400, since_epoch_s % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (
        second_of_day / 3_600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    );
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn known_instants() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_219_199), "2026-11-20T23:59:59Z");
        assert_eq!(rfc3339(4_102_444_800), "2100-01-01T00:00:00Z");
    }
}
