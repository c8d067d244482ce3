//! Decimal digits to integers without a loop: eight digits in one 64-bit word.

/// Value of the digits `bytes[start..end]`, of which there must be 1 to 8, and whether they are
/// that. At least eight bytes must stand before `end`.
#[inline(always)]
pub(super) fn digits_8(bytes: &[u8], start: usize, end: usize) -> (u64, bool) {
    let len = end.wrapping_sub(start);
    (
        convert(load(bytes, end), len),
        (len.wrapping_sub(1) < 8) & all_digits(load(bytes, end), len),
    )
}

/// The same for 1 to 16 digits, with sixteen bytes before `end`.
#[inline(always)]
pub(super) fn digits_16(bytes: &[u8], start: usize, end: usize) -> (u64, bool) {
    let len = end.wrapping_sub(start);
    let low_len = len.min(8);
    let high_len = len.saturating_sub(8).min(8);
    let (low, high) = (load(bytes, end), load(bytes, end - 8));
    let value = convert(high, high_len) * 100_000_000 + convert(low, low_len);
    let ok = (len.wrapping_sub(1) < 16) & all_digits(low, low_len) & all_digits(high, high_len);
    (value, ok)
}

/// An optional minus sign and 1 to 8 digits.
#[inline(always)]
pub(super) fn signed_8(bytes: &[u8], start: usize, end: usize) -> (i64, bool) {
    let negative = bytes[start] == b'-';
    let (value, ok) = digits_8(bytes, start + usize::from(negative), end);
    (
        if negative {
            -(value as i64)
        } else {
            value as i64
        },
        ok,
    )
}

/// Megahertz with one to seven decimals as Hz, rounded half up. Declines anything else.
#[inline(always)]
pub(super) fn megahertz(bytes: &[u8], start: usize, end: usize) -> (u64, bool) {
    const DOTS: u64 = 0x2e2e_2e2e_2e2e_2e2e;
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    /// Tenths of a Hz that one unit of the last decimal is worth.
    const SCALE: [u64; 8] = [0, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let differs = load(bytes, end) ^ DOTS;
    let dots = differs.wrapping_sub(ONES) & !differs & HIGHS;
    // The exact test marks the lowest dot rightly; a second one makes the fraction no digits.
    let decimals = 7usize.wrapping_sub(dots.trailing_zeros() as usize / 8);
    let dot = end.wrapping_sub(decimals).wrapping_sub(1);
    if decimals.wrapping_sub(1) >= 7 || dot < start {
        return (0, false);
    }
    let (whole, whole_ok) = digits_8(bytes, start, dot);
    let (fraction, fraction_ok) = digits_8(bytes, dot + 1, end);
    let tenths = whole * 10_000_000 + fraction * SCALE[decimals];
    ((tenths + 5) / 10, whole_ok & fraction_ok)
}

/// The eight bytes before `end`, the last one highest.
#[inline(always)]
fn load(bytes: &[u8], end: usize) -> u64 {
    u64::from_le_bytes(bytes[end - 8..end].try_into().expect("eight bytes"))
}

/// Keeps the last `len` bytes and makes the others the digit 0.
#[inline(always)]
fn keep(word: u64, len: usize) -> u64 {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    // For 8 - len = 8 the double shift gives 0 where a single one would be undefined.
    let others = !((!0u64 << (4 * (8 - len.min(8)))) << (4 * (8 - len.min(8))));
    (word & !others) | (ZEROS & others)
}

#[inline(always)]
fn all_digits(word: u64, len: usize) -> bool {
    const HIGH_NIBBLES: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    let word = keep(word, len);
    let plus_six = word.wrapping_add(0x0606_0606_0606_0606);
    (word & HIGH_NIBBLES) | ((plus_six & HIGH_NIBBLES) >> 4) == 0x3333_3333_3333_3333
}

#[inline(always)]
fn convert(word: u64, len: usize) -> u64 {
    let word = keep(word, len) & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = word.wrapping_mul(2561) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(6_553_601) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(42_949_672_960_001) >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `text` behind enough other bytes, of which none may count.
    fn placed(text: &str) -> (Vec<u8>, usize, usize) {
        let mut bytes = b"77777777777777777777,".to_vec();
        let start = bytes.len();
        bytes.extend_from_slice(text.as_bytes());
        let end = bytes.len();
        bytes.extend_from_slice(b",99999999");
        (bytes, start, end)
    }

    proptest! {
        #[test]
        fn integers_agree_with_the_standard_library(text in "-?[0-9]{0,18}|[-+0-9./:a]{0,9}") {
            let (bytes, start, end) = placed(&text);
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let (value, ok) = digits_8(&bytes, start, end);
            prop_assert_eq!(ok, digits && text.len() <= 8);
            prop_assert!(!ok || value == text.parse::<u64>().unwrap());
            let (value, ok) = digits_16(&bytes, start, end);
            prop_assert_eq!(ok, digits && text.len() <= 16);
            prop_assert!(!ok || value == text.parse::<u64>().unwrap());
            let (value, ok) = signed_8(&bytes, start, end);
            let magnitude = text.strip_prefix('-').unwrap_or(&text);
            let digits = !magnitude.is_empty() && magnitude.bytes().all(|b| b.is_ascii_digit());
            prop_assert_eq!(ok, digits && magnitude.len() <= 8);
            prop_assert!(!ok || value == text.parse::<i64>().unwrap());
        }

        #[test]
        fn frequencies_are_exact(whole in 0u64..300_000, decimals in 1usize..=7, fraction in 0u64..10_000_000) {
            let fraction = fraction % 10u64.pow(decimals as u32);
            let text = format!("{whole}.{fraction:0decimals$}");
            let (bytes, start, end) = placed(&text);
            let tenths = whole * 10_000_000 + fraction * 10u64.pow(7 - decimals as u32);
            prop_assert_eq!(megahertz(&bytes, start, end), ((tenths + 5) / 10, true));
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
            let (bytes, start, end) = placed(text);
            assert!(!megahertz(&bytes, start, end).1, "{text}");
        }
        let (bytes, start, end) = placed("14.097037");
        assert_eq!(megahertz(&bytes, start, end), (14_097_037, true));
    }
}
