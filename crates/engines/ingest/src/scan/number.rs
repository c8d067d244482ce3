//! Converts decimal digits to integers without a loop or a branch: eight digits in one 64-bit word.
//!
//! A field arrives as the eight or sixteen bytes that end with it, the last byte highest, and its
//! length. Everything here is plain arithmetic on such words, so that the loops of [`super::fast`]
//! become vector code. Each result comes with whether the field was of the right form.

/// The last sixteen bytes up to a field's end, and the field's length.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field {
    /// The last eight bytes, the last one highest.
    pub(super) low: u64,
    /// The eight bytes before those.
    pub(super) high: u64,
    /// Length of the field in bytes.
    pub(super) len: u64,
}

/// The value of 1 to 8 digits.
#[inline(always)]
pub(super) fn digits_8(field: Field) -> (u64, bool) {
    let word = keep(field.low, field.len);
    (
        convert(word),
        // One comparison covers both ends, because a length of 0 wraps around to the largest
        // number.
        (field.len.wrapping_sub(1) < 8) & all_digits(word),
    )
}

/// The value of 1 to 16 digits.
#[inline(always)]
pub(super) fn digits_16(field: Field) -> (u64, bool) {
    let low = keep(field.low, field.len);
    let high = keep(field.high, field.len.saturating_sub(8));
    let value = convert(high)
        .wrapping_mul(100_000_000)
        .wrapping_add(convert(low));
    (
        value,
        (field.len.wrapping_sub(1) < 16) & all_digits(low) & all_digits(high),
    )
}

/// An optional minus sign and 1 to 7 digits.
#[inline(always)]
pub(super) fn signed_7(field: Field) -> (i64, bool) {
    let first = field.low >> (8 * 8u64.saturating_sub(field.len).min(7)) & 0xff;
    let negative = u64::from(first == u64::from(b'-'));
    let (value, ok) = digits_8(Field {
        len: field.len.wrapping_sub(negative),
        ..field
    });
    // If all bits of the sign are set, the xor and the subtraction negate the value; if none is,
    // they leave it alone.
    let sign = (negative as i64).wrapping_neg();
    (
        (value as i64 ^ sign).wrapping_sub(sign),
        ok & (field.len <= 8),
    )
}

/// Megahertz with one to seven decimals as Hz, rounded half up. Declines anything else.
#[inline(always)]
pub(super) fn megahertz(field: Field) -> (u64, bool) {
    const DOTS: u64 = 0x2e2e_2e2e_2e2e_2e2e;
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    /// Tenths of a Hz that one unit of the last decimal is worth.
    const SCALE: [u64; 8] = [0, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let differs = field.low ^ DOTS;
    let dots = differs.wrapping_sub(ONES) & !differs & HIGHS;
    // The test marks the lowest dot rightly; a second one makes the fraction no digits. Without a
    // dot the lowest byte is taken, whose rest is then no digits either.
    let decimals = 7 - (u64::from(dots.trailing_zeros()).min(63) / 8);
    let fraction = keep(field.low, decimals);
    // The eight bytes that end before the dot; two shifts, because one by 64 is undefined.
    let behind = 8 * decimals;
    let whole = (field.low << behind << 8) | (field.high >> (56 - behind));
    let whole_len = field.len.wrapping_sub(decimals + 1);
    let whole_word = keep(whole, whole_len);
    let tenths = convert(whole_word)
        .wrapping_mul(10_000_000)
        .wrapping_add(convert(fraction).wrapping_mul(SCALE[decimals as usize & 7]));
    let ok = (dots != 0)
        & (decimals != 0)
        & (whole_len.wrapping_sub(1) < 8)
        & all_digits(whole_word)
        & all_digits(fraction);
    (tenths.wrapping_add(5) / 10, ok)
}

/// Keeps the last `len` bytes and sets the others to the digit 0.
#[inline(always)]
fn keep(word: u64, len: u64) -> u64 {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let unused = 8 - len.min(8);
    // For eight unused bytes the double shift gives 0 where a single one would be undefined.
    let others = !((!0u64 << (4 * unused)) << (4 * unused));
    (word & !others) | (ZEROS & others)
}

#[inline(always)]
fn all_digits(word: u64) -> bool {
    const HIGH_NIBBLES: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    // A digit is 0x30 to 0x39. Its high half is 3, and is still 3 after 6 is added, unlike that of
    // 0x3a to 0x3f. Only a byte that fails by itself carries into its neighbour.
    let plus_six = word.wrapping_add(0x0606_0606_0606_0606);
    (word & HIGH_NIBBLES) | ((plus_six & HIGH_NIBBLES) >> 4) == 0x3333_3333_3333_3333
}

#[inline(always)]
fn convert(word: u64) -> u64 {
    let word = word & 0x0f0f_0f0f_0f0f_0f0f;
    // Each step multiplies the left one of two neighbours by 10, 100 or 10,000 and adds the right
    // one: digits become pairs, pairs fours, and fours the whole number.
    let pairs = word.wrapping_mul(2561) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(6_553_601) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(42_949_672_960_001) >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `text` after enough other bytes, none of which may count.
    fn placed(text: &str) -> Field {
        let mut bytes = b"77777777777777777777,".to_vec();
        bytes.extend_from_slice(text.as_bytes());
        let word = |end: usize| u64::from_le_bytes(bytes[end - 8..end].try_into().unwrap());
        let end = bytes.len();
        Field {
            low: word(end),
            high: word(end - 8),
            len: text.len() as u64,
        }
    }

    proptest! {
        #[test]
        fn integers_agree_with_the_standard_library(text in "-?[0-9]{0,18}|[-+0-9./:a]{0,9}") {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let (value, ok) = digits_8(placed(&text));
            prop_assert_eq!(ok, digits && text.len() <= 8);
            prop_assert!(!ok || value == text.parse::<u64>().unwrap());
            let (value, ok) = digits_16(placed(&text));
            prop_assert_eq!(ok, digits && text.len() <= 16);
            prop_assert!(!ok || value == text.parse::<u64>().unwrap());
            let (value, ok) = signed_7(placed(&text));
            let magnitude = text.strip_prefix('-').unwrap_or(&text);
            let digits = !magnitude.is_empty() && magnitude.bytes().all(|b| b.is_ascii_digit());
            prop_assert_eq!(ok, digits && text.len() <= 8);
            prop_assert!(!ok || value == text.parse::<i64>().unwrap());
        }

        #[test]
        fn frequencies_are_exact(whole in 0u64..300_000, decimals in 1usize..=7, fraction in 0u64..10_000_000) {
            let fraction = fraction % 10u64.pow(decimals as u32);
            let text = format!("{whole}.{fraction:0decimals$}");
            let tenths = whole * 10_000_000 + fraction * 10u64.pow(7 - decimals as u32);
            prop_assert_eq!(megahertz(placed(&text)), ((tenths + 5) / 10, true));
        }

        #[test]
        fn other_frequencies_are_declined(text in "[-+0-9.e,]{0,17}") {
            let right = text.split_once('.').is_some_and(|(whole, fraction)| {
                let digits = |part: &str, most| {
                    (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
                };
                digits(whole, 8) && digits(fraction, 7)
            });
            prop_assert_eq!(megahertz(placed(&text)).1, right, "{}", text);
        }
    }

    #[test]
    fn frequencies_of_another_form_are_declined() {
        for text in [
            "",
            ".",
            "14",
            "14.",
            ".5",
            "1.2.3",
            "14.0970371234",
            "1e6.5",
            "-1.5",
            "14,0.1",
        ] {
            assert!(!megahertz(placed(text)).1, "{text}");
        }
        assert_eq!(megahertz(placed("14.097037")), (14_097_037, true));
    }
}
