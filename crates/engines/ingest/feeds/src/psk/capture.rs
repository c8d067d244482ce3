//! A line of a collector's hourly file: a message as it came, or what happened to the connection.
//!
//! ```text
//! {"rx":"2026-01-31T12:00:00.123Z","topic":"pskr/filter/v2/20m/FT8/...","raw":"{\"sq\":1,...}"}
//! {"rx":"2026-01-31T12:00:01.000Z","event":"disconnected","detail":"the broker closed it"}
//! ```

use serde::{Deserialize, Serialize};

use crate::calendar::Day;
use crate::value::{clock, day};

/// A line of the file. Either `raw`, `raw_hex` or `event` is present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// When it was received, `YYYY-MM-DDTHH:MM:SS.mmmZ`.
    pub rx: String,
    /// The topic of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The message, if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The message in hexadecimal digits, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_hex: Option<String>,
    /// What happened: `connected`, `disconnected`, `sequence`, `started`, `stopped`, `torn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// More about the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The text of a moment, in milliseconds since 1970, as captures have it.
pub fn stamp(moment_ms: i64) -> String {
    let day = Day::from_ms(moment_ms);
    let of_day = moment_ms - day.start_ms();
    let (seconds, ms) = (of_day / 1000, of_day % 1000);
    format!(
        "{day}T{:02}:{:02}:{:02}.{ms:03}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The moment of such a text.
pub fn moment_ms(stamp: &str) -> Option<i64> {
    let (date, time) = stamp.split_once('T')?;
    let (time, fraction) = time.split_at_checked(8)?;
    let ms = fraction.strip_prefix('.')?.strip_suffix('Z')?;
    // Parsing alone would accept a sign.
    let plain = ms.len() == 3 && ms.bytes().all(|b| b.is_ascii_digit());
    let ms: i64 = plain.then(|| ms.parse().ok()).flatten()?;
    Some(day(date, b'-')?.start_ms() + clock(time)? + ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_moments() {
        for moment in [0, 1_786_545_015_473, 951_782_399_999] {
            assert_eq!(moment_ms(&stamp(moment)), Some(moment));
        }
        assert_eq!(stamp(1_786_545_015_473), "2026-08-12T14:30:15.473Z");
        for text in [
            "",
            "2026-08-12T14:30:15Z",
            "2026-08-12 14:30:15.473Z",
            "2026-08-12T14:30:15.47Z",
        ] {
            assert_eq!(moment_ms(text), None, "{text}");
        }
    }
}
