//! Sizes, durations and shares as people write them, parsed here and nowhere else.

use std::time::Duration;

/// Bytes: `64KiB`, `1GB`, `4096`. Steps of 1024 have an `i`, steps of 1000 have none.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text, "64MiB")?;
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
                "`{unit}` is not a unit of size; use B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
            ));
        }
    };
    // The text may have a fraction, as in 1.5GiB, but the result is whole bytes.
    whole(number * factor)
        .filter(|bytes| *bytes <= 9e18)
        .map(|bytes| bytes as u64)
        .ok_or_else(|| format!("`{text}` is not a whole number of bytes below 9 EB"))
}

/// A number of things: `6000000`, `6_000_000`, `6M`, `6e6`.
pub fn count(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text, "6M")?;
    let factor = match (unit, unit.strip_prefix(['e', 'E'])) {
        ("", _) => 1.0,
        ("k", _) => 1e3,
        ("M", _) => 1e6,
        ("G", _) => 1e9,
        (_, Some(power)) if power.parse::<u8>().is_ok_and(|power| power <= 15) => {
            power.parse::<i32>().map_or(1.0, |power| 10f64.powi(power))
        }
        _ => return Err(format!("`{unit}` is not a factor; use k, M, G or e6")),
    };
    whole(number * factor)
        .filter(|count| *count <= 9e15)
        .map(|count| count as u64)
        .ok_or_else(|| format!("`{text}` is not a whole number below 9e15"))
}

/// The whole number that a product stands for, if it does. The text was rounded to a binary number
/// and the product was rounded again, so that 4.1 million becomes a little less than a whole
/// number. Both together change it by at most [`f64::EPSILON`] of itself.
fn whole(product: f64) -> Option<f64> {
    let whole = product.round();
    ((product - whole).abs() <= whole * f64::EPSILON).then_some(whole)
}

/// As [`count`], and at least one.
pub fn count_from_one(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("it must be at least 1".to_owned()),
        count => Ok(count),
    }
}

/// A number of threads, connections and the like: at least one.
pub fn one_or_more(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("`{text}` is not a whole number")),
    }
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
    let (number, unit) = split(text, "15m")?;
    let seconds = match unit {
        "us" | "µs" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3_600.0,
        "" => return Err(format!("`{text}` has no unit; write {text}s or {text}m")),
        _ => {
            return Err(format!(
                "`{unit}` is not a unit of time; use us, ms, s, m, h"
            ));
        }
    };
    Duration::try_from_secs_f64(seconds).map_err(|e| format!("`{text}`: {e}"))
}

/// As [`duration`], and longer than nothing.
pub fn time_above_zero(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("`{text}` is not a time; write 15m, for example")),
        time => Ok(time),
    }
}

/// A share of one: `3%` or `0.03`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text, "3%")?;
    let share = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(format!("`{text}` is not a share; write 3% or 0.03")),
    };
    if share > 1.0 {
        return Err(format!("`{text}` is more than all of it; write 3% or 0.03"));
    }
    Ok(share)
}

/// The number at the front and what follows it. `example` is what a message shows.
fn split<'a>(text: &'a str, example: &str) -> Result<(f64, &'a str), String> {
    let text = text.trim();
    // A minus sign gets an answer of its own. Without it `-5s` would be said not to begin with a
    // number.
    if text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "`{text}` is negative; write {example}, for example"
        ));
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let number = text[..end].replace('_', "");
    let number: f64 = number.parse().map_err(|_| {
        format!("`{text}` does not begin with a number; write {example}, for example")
    })?;
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
            ("4.1GB", 4_100_000_000),
            ("1.001GB", 1_001_000_000),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for (text, reason) in [
            ("1gb", "not a unit of size"),
            ("GB", "does not begin with a number"),
            ("1.5", "not a whole number"),
            ("1.5B", "not a whole number"),
            ("-1", "`-1` is negative; write 64MiB, for example"),
            ("99999999999TB", "below 9 EB"),
        ] {
            assert!(bytes(text).expect_err(text).contains(reason), "{text}");
        }
    }

    #[test]
    fn counts() {
        for (text, expected) in [
            ("6000000", 6_000_000),
            ("6_000_000", 6_000_000),
            ("6M", 6_000_000),
            ("6e6", 6_000_000),
            ("1.5e3", 1_500),
            ("4.1M", 4_100_000),
            ("0", 0),
        ] {
            assert_eq!(count(text), Ok(expected), "{text}");
        }
        for (text, reason) in [
            ("6e", "not a factor"),
            ("6e-1", "not a factor"),
            ("1e99", "not a factor"),
            ("1.5", "not a whole number"),
            ("0.0001k", "not a whole number"),
            ("many", "does not begin with a number; write 6M"),
            ("-5", "is negative"),
        ] {
            assert!(count(text).expect_err(text).contains(reason), "{text}");
        }
        assert_eq!(count_from_one("1"), Ok(1));
        assert!(
            count_from_one("0")
                .expect_err("none")
                .contains("at least 1")
        );
        assert_eq!(one_or_more("2"), Ok(2));
        assert!(one_or_more("0").expect_err("none").contains("at least 1"));
        assert!(one_or_more("two").expect_err("a word").contains("`two`"));
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
            ("5 days", "not a unit of time"),
            ("s", "number"),
            ("-5s", "`-5s` is negative; write 15m, for example"),
            ("NaNs", "write 15m, for example"),
        ] {
            assert!(duration(text).expect_err(text).contains(reason), "{text}");
        }
    }

    #[test]
    fn a_time_that_must_be_some_is_not_nothing() {
        assert_eq!(time_above_zero("1ms"), Ok(Duration::from_millis(1)));
        assert!(
            time_above_zero("0s")
                .expect_err("none")
                .contains("not a time")
        );
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
