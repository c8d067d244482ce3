//! The snapshot, and the order in which its pages are touched.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use dyno_pages::PAGE_BYTES;
use dyno_pages::corpus::{Class, Corpus, Places};

use crate::Result;

/// Makes the snapshot file, and returns how many pages it has.
pub fn make_snapshot(path: &Path, mib: usize) -> Result<usize> {
    let pages = mib * 256;
    let real = pages * 57 / 100;
    let classes = [
        (Class::ElfText, 30),
        (Class::ElfData, 20),
        (Class::Heap, 30),
        (Class::Source, 10),
        (Class::Documents, 10),
    ];
    let mut kinds = Vec::new();
    for (class, percent) in classes {
        let corpus = Corpus::make(class, real * percent / 100, 1, &Places::default())?;
        kinds.push(corpus);
    }
    let mut file = std::io::BufWriter::new(File::create(path)?);
    let mut at = vec![0; kinds.len()];
    let mut number = 0;
    // Runs of one kind, as memory has them; where a kind is used up, its pages come again.
    let mut draws = Draws(7);
    while number < pages {
        let run = (1 + draws.below(64)).min(pages - number);
        match draws.below(100) {
            0..33 => file.write_all(&vec![0; run * PAGE_BYTES])?,
            share => {
                let kind = share % kinds.len();
                let repeat = draws.below(100) < 15;
                for _ in 0..run {
                    let corpus = &kinds[kind];
                    let page = match repeat {
                        true => draws.below(corpus.count()),
                        false => at[kind] % corpus.count(),
                    };
                    at[kind] += usize::from(!repeat);
                    file.write_all(corpus.page(page))?;
                }
            }
        }
        number += run;
    }
    file.into_inner()?.sync_all()?;
    Ok(pages)
}

pub struct Draws(u64);

impl Draws {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Distinct pages in random order, the same for the same seed.
pub fn shuffled(pages: usize, count: usize, seed: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..pages as u64).collect();
    let mut draws = Draws(seed | 1);
    for at in 0..count {
        let other = at + draws.below(pages - at);
        all.swap(at, other);
    }
    all.truncate(count);
    all
}
