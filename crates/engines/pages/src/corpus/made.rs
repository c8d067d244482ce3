//! The seed document's classes by its rules, each page another one.

use crate::PAGE_BYTES;

/// A stream of random words (SplitMix64, Steele and others 2014).
pub struct Words(u64);

impl Words {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            let drawn = self.next().to_le_bytes();
            word.copy_from_slice(&drawn[..word.len()]);
        }
    }
}

/// Printable characters of ASCII: the seed's text is a counter over them.
const PRINTABLE: usize = 95;

pub fn text(pages: usize, seed: u64) -> Vec<u8> {
    let mut words = Words::new(seed);
    let mut bytes = vec![0; pages * PAGE_BYTES];
    for (number, page) in bytes.chunks_exact_mut(PAGE_BYTES).enumerate() {
        let drawn = words.next();
        let phase = drawn as usize % PRINTABLE;
        for (at, byte) in page.iter_mut().enumerate() {
            *byte = b' ' + ((at + phase) % PRINTABLE) as u8;
        }
        // Phases alone would give 95 different pages.
        let name = format!("{number:016x}");
        let at = (drawn >> 32) as usize % (PAGE_BYTES - name.len());
        page[at..at + name.len()].copy_from_slice(name.as_bytes());
    }
    bytes
}

pub fn mixed(pages: usize, seed: u64) -> Vec<u8> {
    let mut words = Words::new(seed);
    let mut bytes = vec![0; pages * PAGE_BYTES];
    for page in bytes.chunks_exact_mut(PAGE_BYTES) {
        let start = words.next() as usize;
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
    Words::new(seed).fill(&mut bytes);
    bytes
}
