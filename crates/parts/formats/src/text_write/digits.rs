//! Computes the decimal digits of numbers below 10^8, eight at a time in one register.

/// The first number that has more than eight digits.
pub(super) const EIGHT_DIGITS: u64 = 100_000_000;
/// The character `0` in each byte, which turns digits into text.
pub(super) const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight digits of a number as bytes of 0 to 9, the first one in the lowest byte.
#[inline(always)]
pub(super) fn eight(number: u32) -> u64 {
    debug_assert!(u64::from(number) < EIGHT_DIGITS);
    // Fours of digits, then pairs, then single ones, in lanes that divide at the same time: a
    // division by 100 is a multiplication by 10486 / 2^20 below 10000, one by 10 is by 103 / 2^10
    // below 100.
    let number = u64::from(number);
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - 10 * tens) << 8)
}

/// How many bits leading zeros take in [`eight`] digits, where the last `kept` digits never count
/// as leading.
#[inline(always)]
pub(super) fn leading_zero_bits(digits: u64, kept: u32) -> u32 {
    (digits | 1 << (8 * (8 - kept))).trailing_zeros() & !7
}

#[cfg(test)]
mod tests {
    use super::{EIGHT_DIGITS, ZEROS, eight, leading_zero_bits};

    #[test]
    fn digits_are_those_that_the_library_prints() {
        let mut number = 0;
        while number < EIGHT_DIGITS {
            let digits = eight(number as u32);
            let text = (digits | ZEROS).to_le_bytes();
            assert_eq!(text, format!("{number:08}").as_bytes());
            let zeros = leading_zero_bits(digits, 1) / 8;
            assert_eq!(text[zeros as usize..], *format!("{number}").as_bytes());
            number += if number < 20_000 { 1 } else { 7_919 };
        }
    }
}
