//! Pages that repeat one word from beginning to end.

use crate::lz4::{PAGE_BYTES, Page};

const WORD_BYTES: usize = 8;

/// The eight bytes that `page` repeats, if it does. Ordinary data are recognised after the first
/// few bytes.
pub fn word_of(page: &Page) -> Option<u64> {
    // A page repeats a word if it equals itself shifted by a word. The library's comparison is
    // vectorised and ends at the first difference.
    let same = page[..PAGE_BYTES - WORD_BYTES] == page[WORD_BYTES..];
    let word = page.first_chunk().copied().map(u64::from_le_bytes);
    if same { word } else { None }
}

/// Fills `page` with copies of `word`, lowest byte first.
pub fn fill(page: &mut Page, word: u64) {
    for place in page.as_chunks_mut().0 {
        *place = word.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_repeats_a_word_or_one_byte_of_it_is_different() {
        let mut page = [0; PAGE_BYTES];
        for word in [0, u64::MAX, 0x0102_0304_0506_0708] {
            fill(&mut page, word);
            assert_eq!(word_of(&page), Some(word));
            for at in [0, 7, 8, 2048, PAGE_BYTES - 1] {
                page[at] ^= 1;
                assert_eq!(word_of(&page), None, "byte {at}");
                page[at] ^= 1;
            }
        }
    }
}
