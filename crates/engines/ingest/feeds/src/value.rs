//! Numbers and times as feeds write them, exactly or not at all.

use crate::calendar::{Day, is_day};

/// Milliseconds of a day; Unix time has no leap seconds.
pub const DAY_MS: i64 = 86_400_000;

/// Foreign text for a message: its beginning, in quotes and escaped.
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// A decimal integer, with a minus sign where the type has negative numbers.
pub fn integer<T: TryFrom<i64>>(text: &str, name: &str) -> Result<T, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // Eighteen digits always fit into 64 bits. They are checked here because the parser would also
    // accept a plus sign.
    let fits = (1..=18).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse::<i64>().ok())
        .flatten()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            let kind = std::any::type_name::<T>();
            format!("{name} {} is not an integer of type {kind}", shown(text))
        })
}

/// A decimal number times a thousand, rounded half away from zero.
pub fn thousandths(text: &str, name: &str) -> Result<i64, String> {
    let refused = || format!("{name} {} is not a number", shown(text));
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    // The number stays an integer all the way, because a binary fraction would round some values
    // wrongly.
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let sizes = (1..=11).contains(&whole.len()) && (1..=9).contains(&fraction.len());
    if !sizes || !plain(whole) || !plain(fraction) {
        return Err(refused());
    }
    let number = |part: &str| part.parse::<i64>().map_err(|_| refused());
    // At most 11 digits before the point and 9 behind it keep every product below 2^63.
    let billionths = number(fraction)? * 10i64.pow(9 - fraction.len() as u32);
    let value = number(whole)? * 1000 + (billionths + 500_000) / 1_000_000;
    Ok(if negative { -value } else { value })
}

/// The fields of a line of CSV some of which are in quotes (RFC 4180).
pub fn quoted_fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let mut field = String::new();
        let Some(mut inside) = rest.strip_prefix('"') else {
            match rest.split_once(',') {
                Some((field, behind)) => {
                    fields.push(field.to_owned());
                    rest = behind;
                    continue;
                }
                None => {
                    fields.push(rest.to_owned());
                    return Ok(fields);
                }
            }
        };
        loop {
            let (text, behind) = inside.split_once('"').ok_or_else(|| {
                format!("the quote of field {} is never closed", fields.len() + 1)
            })?;
            field.push_str(text);
            inside = behind;
            match behind.strip_prefix('"') {
                Some(behind) => {
                    field.push('"');
                    inside = behind;
                }
                None => break,
            }
        }
        fields.push(field);
        match inside.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if inside.is_empty() => return Ok(fields),
            None => {
                return Err(format!("text follows the quote of field {}", fields.len()));
            }
        }
    }
}

/// Year, month and day as 4, 2 and 2 digits with `separator` between them.
pub fn day(text: &str, separator: u8) -> Option<Day> {
    let bytes = text.as_bytes();
    // Both separators are ASCII, so the slices below begin and end at characters.
    if bytes.len() != 10 || bytes[4] != separator || bytes[7] != separator {
        return None;
    }
    day_of(&text[..4], &text[5..7], &text[8..])
}

/// A day of its three numbers.
pub fn day_of(year: &str, month: &str, day: &str) -> Option<Day> {
    let digits = |text: &str| {
        let plain = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    is_day(year, month, day).then(|| Day::new(year, month, day))
}

/// Milliseconds since midnight of `HH:MM:SS`.
pub fn clock(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 8 || bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let two = |at: usize| {
        let pair = &bytes[at..at + 2];
        let plain = pair.iter().all(u8::is_ascii_digit);
        plain.then(|| i64::from(pair[0] - b'0') * 10 + i64::from(pair[1] - b'0'))
    };
    let (hours, minutes, seconds) = (two(0)?, two(3)?, two(6)?);
    (hours < 24 && minutes < 60 && seconds < 60)
        .then_some(((hours * 60 + minutes) * 60 + seconds) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(integer::<i16>("-233", "SNR"), Ok(-233));
        assert!(integer::<u16>("-1", "speed").is_err());
        assert!(integer::<i64>("9999999999999999999", "n").is_err());
        assert!(integer::<i64>("+1", "n").is_err());
        assert!(integer::<i64>("", "n").is_err());
        for (text, value) in [
            ("14025.1", 14_025_100),
            ("7", 7000),
            ("0.0005", 1),
            ("-1.0", -1000),
            ("-0.0015", -2),
            ("000132.7", 132_700),
            ("1840.123456789", 1_840_123),
        ] {
            assert_eq!(thousandths(text, "n"), Ok(value), "{text}");
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "1e3",
            "1 ",
            "1.0000000000",
            "123456789012",
        ] {
            assert!(thousandths(text, "n").is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(clock("23:59:59"), Some(DAY_MS - 1000));
        assert_eq!(clock("24:00:00"), None);
        assert_eq!(clock("1:00:00"), None);
        assert_eq!(day("1970-01-02", b'-').map(Day::start_ms), Some(DAY_MS));
        assert_eq!(day("2023-02-29", b'-'), None);
        assert_eq!(day("2023-1-29", b'-'), None);
    }
}
