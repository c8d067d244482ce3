//! The clock of the machine, which all processes of a check share.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now, in microseconds since 1970.
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 would make every time equal, which no rule reads as an error.
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}
