//! Strings of the population (clauses 4.3.2 and 4.3.3): names, addresses, and text that sometimes
//! contains ORIGINAL.

use crate::random::Random;

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The last name of a number from 0 to 999: one syllable for each digit (clause 4.3.2.3).
pub fn last_name(number: u32) -> String {
    let digit = |place: u32| SYLLABLES[(number / place % 10) as usize];
    [digit(100), digit(10), digit(1)].concat()
}

/// Letters and digits, between `low` and `high` of them.
pub fn letters(random: &mut Random, low: u32, high: u32) -> String {
    let length = random.within(low, high);
    (0..length)
        .map(|_| LETTERS[random.within(0, LETTERS.len() as u32 - 1) as usize] as char)
        .collect()
}

/// Digits, between `low` and `high` of them.
pub fn digits(random: &mut Random, low: u32, high: u32) -> String {
    let length = random.within(low, high);
    (0..length)
        .map(|_| char::from(b'0' + random.within(0, 9) as u8))
        .collect()
}

/// A zip code: four digits and 11111 (clause 4.3.2.7).
pub fn zip(random: &mut Random) -> String {
    digits(random, 4, 4) + "11111"
}

/// 26 to 50 letters, of which one text in ten contains ORIGINAL (clause 4.3.3.1).
pub fn data(random: &mut Random) -> String {
    let mut text = letters(random, 26, 50);
    if random.percent(10) {
        // The text has at least 26 letters, so there always is room for the word.
        let at = random.within(0, text.len() as u32 - 8) as usize;
        text.replace_range(at..at + 8, "ORIGINAL");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn one_text_in_ten_is_original() {
        let mut random = Random::new(3);
        let original = (0..10_000)
            .map(|_| data(&mut random))
            .inspect(|text| assert!((26..=50).contains(&text.len())))
            .filter(|text| text.contains("ORIGINAL"))
            .count();
        assert!((900..1_100).contains(&original), "{original}");
    }
}
