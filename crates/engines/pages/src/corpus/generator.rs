//! The seed document's classes by its rules, with no two pages equal.

use dyno_random::Random;

use crate::PAGE_BYTES;

/// Printable characters of ASCII; the seed's text is a counter over them.
const PRINTABLE: usize = 95;

pub fn text(pages: usize, seed: u64) -> Vec<u8> {
    let mut words = Random::new(seed);
    let mut bytes = vec![0; pages * PAGE_BYTES];
    for (number, page) in bytes.chunks_exact_mut(PAGE_BYTES).enumerate() {
        let drawn = words.bits();
        let phase = drawn as usize % PRINTABLE;
        for (at, byte) in page.iter_mut().enumerate() {
            *byte = b' ' + ((at + phase) % PRINTABLE) as u8;
        }
        // Phases alone would give only 95 distinct pages.
        let name = format!("{number:016x}");
        let at = (drawn >> 32) as usize % (PAGE_BYTES - name.len());
        page[at..at + name.len()].copy_from_slice(name.as_bytes());
    }
    bytes
}

pub fn mixed(pages: usize, seed: u64) -> Vec<u8> {
    let mut words = Random::new(seed);
    let mut bytes = vec![0; pages * PAGE_BYTES];
    for page in bytes.chunks_exact_mut(PAGE_BYTES) {
        let start = words.bits() as usize;
        let (counter, drawn) = page.split_at_mut(PAGE_BYTES / 2);
        for (at, byte) in counter.iter_mut().enumerate() {
            *byte = start.wrapping_add(at) as u8;
        }
        words.fill(drawn);
    }
    bytes
}

pub fn random(pages: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; pages * PAGE_BYTES];
    Random::new(seed).fill(&mut bytes);
    bytes
}
