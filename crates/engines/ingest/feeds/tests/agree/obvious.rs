//! Numbers and days in the most obvious way.

/// A decimal number times 1000, rounded half away from zero: digits to 11 places before the point,
/// 9 behind.
pub fn thousandths(text: &str) -> Option<i64> {
    let (sign, rest) = match text.chars().next()? {
        '-' => (-1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = rest.split('.');
    let whole = parts.next()?;
    let fraction = parts.next();
    if parts.next().is_some() || !digits(whole, 11) || fraction.is_some_and(|f| !digits(f, 9)) {
        return None;
    }
    let mut all = whole.to_owned();
    all.push_str(&format!("{:0<9}", fraction.unwrap_or("")));
    let billionths: i128 = all.parse().ok()?;
    let (down, rest) = (billionths / 1_000_000, billionths % 1_000_000);
    let rounded = if rest * 2 >= 1_000_000 {
        down + 1
    } else {
        down
    };
    i64::try_from(sign * rounded).ok()
}

/// Between 1 and `most` digits.
pub fn digits(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && text.chars().all(|c| c.is_ascii_digit())
}

/// An integer within bounds, 18 digits at most.
pub fn integer(text: &str, least: i64, most: i64) -> Option<i64> {
    let number = text.strip_prefix('-').unwrap_or(text);
    if !digits(number, 18) {
        return None;
    }
    let value: i64 = text.parse().ok()?;
    (least <= value && value <= most).then_some(value)
}

/// Milliseconds from 1970 to a day, counted year by year.
pub fn day_ms(year: &str, month: &str, day: &str) -> Option<i64> {
    if !digits(year, 4) || !digits(month, 4) || !digits(day, 4) {
        return None;
    }
    let (year, month, day): (i64, usize, i64) =
        (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let leap = |year: i64| year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let lengths = |year: i64| {
        let february = if leap(year) { 29 } else { 28 };
        [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    };
    if !(1..=12).contains(&month) || day < 1 || day > lengths(year)[month - 1] {
        return None;
    }
    let days_of = |year: i64| if leap(year) { 366 } else { 365 };
    let years: i64 = if year >= 1970 {
        (1970..year).map(days_of).sum()
    } else {
        -(year..1970).map(days_of).sum::<i64>()
    };
    let months: i64 = lengths(year)[..month - 1].iter().sum();
    Some((years + months + day - 1) * 86_400_000)
}

/// The code of the band that holds a frequency; the table is the engine's own.
pub fn band(hz: i64) -> i32 {
    for &(low, high, code) in dyno_ingest::contract::bands() {
        if low as i64 <= hz && hz <= high as i64 {
            return code;
        }
    }
    0
}

/// Milliseconds since midnight.
pub fn clock_ms(hours: &str, minutes: &str, seconds: &str) -> Option<i64> {
    for text in [hours, minutes, seconds] {
        if text.len() != 2 || !digits(text, 2) {
            return None;
        }
    }
    let (hours, minutes, seconds): (i64, i64, i64) = (
        hours.parse().ok()?,
        minutes.parse().ok()?,
        seconds.parse().ok()?,
    );
    (hours < 24 && minutes < 60 && seconds < 60)
        .then_some((hours * 3600 + minutes * 60 + seconds) * 1000)
}
