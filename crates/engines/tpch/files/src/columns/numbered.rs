//! Prints names that are a prefix and a number, such as `Customer#000000001`.

/// The least digits of a number by the specification. Larger numbers take more.
const DIGITS: usize = 9;

/// Appends the name of a number and returns where it ends.
pub(super) fn append(prefix: &str, number: i64, bytes: &mut Vec<u8>) -> u32 {
    bytes.extend_from_slice(prefix.as_bytes());
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    bytes.extend_from_slice(&digits[at.min(digits.len() - DIGITS)..]);
    bytes.len() as u32
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_have_nine_digits_or_more() {
        let name = |number| {
            let mut bytes = Vec::new();
            let end = super::append("Clerk#", number, &mut bytes);
            assert_eq!(end as usize, bytes.len());
            String::from_utf8(bytes).expect("ASCII")
        };
        assert_eq!(name(1), "Clerk#000000001");
        assert_eq!(name(123_456_789), "Clerk#123456789");
        assert_eq!(name(1_500_000_000), "Clerk#1500000000");
    }
}
