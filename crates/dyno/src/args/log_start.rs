//! Parses where the reading of a log begins. It is not in `units`, because that module knows no
//! engine.

use dyno_pubsub::Start;

/// Where reading a log begins: `earliest`, `latest`, an offset, a time as in RFC 3339, or `time:N`
/// with microseconds since 1970, as the SQL functions take it and the hints of their errors say.
pub fn start(text: &str) -> Result<Start, String> {
    let is_offset = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text {
        "earliest" => Ok(Start::Earliest),
        "latest" => Ok(Start::Latest),
        _ if is_offset => text
            .parse()
            .map(Start::Offset)
            .map_err(|e| format!("`{text}` is not an offset: {e}")),
        _ => time_us(text).map(Start::TimeUs).ok_or_else(|| {
            format!(
                "`{text}` is not one of earliest, latest, an offset such as 1000, a time such as \
                 2026-11-20T08:00:00Z, and time:N in microseconds since 1970"
            )
        }),
    }
}

/// Microseconds since 1970 of a time as in RFC 3339, of which finer fractions are cut off, or of
/// `time:N`.
fn time_us(text: &str) -> Option<i64> {
    if let Some(us) = text.strip_prefix("time:") {
        return us.parse().ok();
    }
    let time = text.parse::<jiff::Timestamp>().ok()?;
    Some(time.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts() {
        for (text, expected) in [
            ("earliest", Start::Earliest),
            ("latest", Start::Latest),
            ("1000", Start::Offset(1000)),
            ("1970-01-01T00:00:00Z", Start::TimeUs(0)),
            (
                "2000-02-29 12:30:00.25Z",
                Start::TimeUs(951_827_400_250_000),
            ),
            (
                "2026-11-20T08:00:00+01:30",
                Start::TimeUs(1_795_156_200_000_000),
            ),
            (
                "2026-11-20t06:30:00.0000019z",
                Start::TimeUs(1_795_156_200_000_001),
            ),
            (
                "time:1795156200000001",
                Start::TimeUs(1_795_156_200_000_001),
            ),
            ("time:0", Start::TimeUs(0)),
        ] {
            assert_eq!(start(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "first",
            "-1",
            "99999999999999999999",
            "2026-11-20",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-20T08:00:00",
            "2026-11-20T08:00:00.Z",
            "2026-11-20T24:00:00Z",
            "2026-11-2\u{e9}T08:00:00Z",
            "time:",
            "time:now",
            "time:99999999999999999999",
        ] {
            assert!(start(text).is_err(), "{text}");
        }
    }
}
