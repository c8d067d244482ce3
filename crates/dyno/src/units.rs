//! Sizes, durations and shares as people write them, parsed here and nowhere else.

use std::time::Duration;

/// Bytes: `64KiB`, `1GB`, `4096`. Steps of 1024 have an `i`, steps of 1000 have none.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor: f64 = match unit {
        "" | "B" => 1.0,
        "kB" | "KB" | "k" => 1e3,
        "MB" | "M" => 1e6,
        "GB" | "G" => 1e9,
        "TB" | "T" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        _ => {
            return Err(format!(
                "`{unit}` is no unit of size; use B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
            ));
        }
    };
    let bytes = number * factor;
    if bytes.fract() != 0.0 || bytes > 9e18 {
        return Err(format!("`{text}` is no whole number of bytes below 9 EB"));
    }
    Ok(bytes as u64)
}

/// A number of things: `6000000`, `6_000_000`, `6M`.
pub fn count(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return Err(format!("`{unit}` is no factor; use k, M or G")),
    };
    let count = number * factor;
    if count.fract() != 0.0 || count > 9e15 {
        return Err(format!("`{text}` is no whole number below 9e15"));
    }
    Ok(count as u64)
}

/// A parameter and its value: `sf=10`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_string(), value.to_string()))
        }
        _ => Err(format!(
            "`{text}` is not of the form NAME=VALUE, such as sf=10"
        )),
    }
}

/// A time: `30s`, `5m`, `250ms`, `1.5h`. A unit must be given, since seconds and milliseconds are
/// both what people mean.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "us" | "µs" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3_600.0,
        "" => return Err(format!("`{text}` has no unit; write {text}s or {text}m")),
        _ => return Err(format!("`{unit}` is no unit of time; use us, ms, s, m, h")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|e| format!("`{text}`: {e}"))
}

/// A share of one: `3%` or `0.03`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let share = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(format!("`{text}` is no share; write 3% or 0.03")),
    };
    if share > 1.0 {
        return Err(format!("`{text}` is more than all of it; write 3% or 0.03"));
    }
    Ok(share)
}

/// The number at the front and what follows it.
fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let number = text[..end].replace('_', "");
    let number: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` does not begin with a number"))?;
    Ok((number, text[end..].trim()))
}

/// A time for people: `45 s`, `12 min`, `1 h 20 min`.
pub fn show_seconds(seconds: f64) -> String {
    if seconds < 0.95 {
        return format!("{seconds:.1} s");
    }
    if seconds < 90.0 {
        return format!("{seconds:.0} s");
    }
    let minutes = (seconds / 60.0).round() as u64;
    if minutes < 90 {
        format!("{minutes} min")
    } else {
        format!("{} h {} min", minutes / 60, minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("64KiB", 65_536),
            ("1GB", 1_000_000_000),
            ("1.5 MiB", 1_572_864),
            ("4_096", 4_096),
            ("0", 0),
            ("2T", 2_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for (text, reason) in [
            ("1gb", "no unit of size"),
            ("GB", "does not begin with a number"),
            ("1.5", "no whole number"),
            ("-1", "does not begin with a number"),
            ("99999999999TB", "below 9 EB"),
        ] {
            assert!(bytes(text).expect_err(text).contains(reason), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, expected_ms) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("250ms", 250),
            ("1.5h", 5_400_000),
        ] {
            assert_eq!(
                duration(text),
                Ok(Duration::from_millis(expected_ms)),
                "{text}"
            );
        }
        for (text, reason) in [
            ("5", "has no unit"),
            ("5 days", "no unit of time"),
            ("s", "number"),
        ] {
            assert!(duration(text).expect_err(text).contains(reason), "{text}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!(share("3%"), Ok(0.03));
        assert_eq!(share("0.03"), Ok(0.03));
        assert!(share("3").expect_err("all of it").contains("write 3%"));
    }

    #[test]
    fn times_for_people() {
        for (seconds, shown) in [
            (0.3, "0.3 s"),
            (44.6, "45 s"),
            (720.0, "12 min"),
            (4_800.0, "80 min"),
            (7_500.0, "2 h 5 min"),
        ] {
            assert_eq!(show_seconds(seconds), shown);
        }
    }
}
