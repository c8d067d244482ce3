//! Pages whose content follows from a seed, so that a reader can tell what it should be.

use dyno_codec::lz4::Page;

use crate::PAGE_BYTES;

/// A page of one of six natures: zeros, a short pattern, a long one, text, half noise, noise.
pub fn page_of(seed: u64) -> Page {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut page = [0; PAGE_BYTES];
    let noisy = match seed % 6 {
        0 => return page,
        1 => return [(seed >> 3) as u8; PAGE_BYTES],
        2 => {
            let word = next().to_le_bytes();
            page.as_chunks_mut().0.fill(word);
            return page;
        }
        3 => 0,
        4 => PAGE_BYTES / 2,
        _ => PAGE_BYTES,
    };
    let words = [
        &b"page "[..],
        b"store ",
        b"slot ",
        b"entry ",
        b"span ",
        b"class ",
    ];
    let mut at = 0;
    while at < PAGE_BYTES {
        let word = words[next() as usize % words.len()];
        let take = word.len().min(PAGE_BYTES - at);
        page[at..at + take].copy_from_slice(&word[..take]);
        at += take;
    }
    for byte in &mut page[..noisy] {
        *byte = next() as u8;
    }
    page[PAGE_BYTES - 8..].copy_from_slice(&seed.to_le_bytes());
    page
}

/// A page that no codec packs into much less than `noise` bytes, at most a page, or needs much more
/// for.
pub fn page_of_length(seed: u64, noise: usize) -> Page {
    let mut page = [0; PAGE_BYTES];
    // Every sixth seed, with remainder 5, makes a page that is noise all over.
    let seed = seed % (u64::MAX / 6) * 6 + 5;
    page[..noise].copy_from_slice(&page_of(seed)[..noise]);
    page
}
