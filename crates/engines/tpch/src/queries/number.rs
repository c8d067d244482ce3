//! Rounds numbers as text, digit by digit, because a float would hide what decimals keep.

/// Rounds `text` to as many digits after the point as `like` has, half away from zero. `None` if
/// one of the two is not a plain number.
pub(super) fn rounded_like(text: &str, like: &str) -> Option<String> {
    let (_, _, wanted) = parts(like)?;
    let (negative, whole, fraction) = parts(text)?;
    let kept = &fraction[..fraction.len().min(wanted.len())];
    let mut digits = format!("{whole}{kept}").into_bytes();
    digits.resize(whole.len() + wanted.len(), b'0');
    if fraction.as_bytes().get(wanted.len()) >= Some(&b'5') {
        increment(&mut digits);
    }
    let point = digits.len() - wanted.len();
    let (whole, fraction) = digits.split_at(point);
    let whole = String::from_utf8_lossy(whole);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    // A small negative number may be rounded to zero, and the answers have no minus there.
    let zero = whole == "0" && fraction.iter().all(|&digit| digit == b'0');
    let mut out = String::new();
    if negative && !zero {
        out.push('-');
    }
    out.push_str(whole);
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(&String::from_utf8_lossy(fraction));
    }
    Some(out)
}

/// Splits a number into whether it has a minus, its digits before the point, and those after it.
fn parts(text: &str) -> Option<(bool, &str, &str)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    (!whole.is_empty() && plain(whole) && plain(fraction)).then_some((negative, whole, fraction))
}

fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    // All digits were nines.
    digits.insert(0, b'1');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_the_digits_of_the_other() {
        for (text, like, expected) in [
            ("16.380778626395543", "0.00", "16.38"),
            ("99.995", "1.00", "100.00"),
            ("-0.005", "1.00", "-0.01"),
            ("-0.004", "1.00", "0.00"),
            ("37734107", "1.00", "37734107.00"),
            ("37734107.00", "1", "37734107"),
            ("0.5", "3", "1"),
            ("007", "3", "7"),
        ] {
            assert_eq!(
                rounded_like(text, like).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_number_stays_text() {
        for (text, like) in [
            ("FRANCE", "1.00"),
            ("1.00", "FRANCE"),
            ("1e5", "1"),
            ("-", "1"),
            ("", "1"),
        ] {
            assert_eq!(rounded_like(text, like), None, "{text}");
        }
        assert_eq!(rounded_like("1995-01-01", "1995-01-01"), None);
    }
}
