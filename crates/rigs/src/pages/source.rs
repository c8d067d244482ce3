//! The pages of an invocation: those of a corpus, and beyond them the same ones again with their
//! number written into them, so that no two are equal.

use dyno_pages::corpus::Corpus;
use dyno_pages::{PAGE_BYTES, Page};
use twox_hash::XxHash3_128;

/// Pages of a corpus, addressed by number; beyond its end they repeat with the number written in.
pub(super) struct Source {
    corpus: Corpus,
    count: u64,
    stamp: bool,
}

impl Source {
    /// Takes `count` pages from `corpus`. If `equal`, pages are meant to be equal (zeros) and get
    /// no number.
    pub fn new(corpus: Corpus, count: u64, equal: bool) -> Source {
        let stamp = !equal;
        Source {
            corpus,
            count,
            stamp,
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Writes the bytes of page `number` into `page`.
    pub fn fill(&self, number: u64, page: &mut Page) {
        let has = self.corpus.count() as u64;
        *page = *self.corpus.page((number % has) as usize);
        if self.stamp && number >= has {
            let at = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let at = at as usize % (PAGE_BYTES - 8);
            page[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
    }

    /// XXH3-128 of all pages in the order of their numbers.
    pub fn hash(&self) -> u128 {
        let mut page = [0; PAGE_BYTES];
        hash_of(self.count, |number| {
            self.fill(number, &mut page);
            page
        })
    }
}

/// XXH3-128 of the pages 0 to `count`, which `page` returns by number.
pub(super) fn hash_of(count: u64, mut page: impl FnMut(u64) -> Page) -> u128 {
    let mut hash = XxHash3_128::new();
    for number in 0..count {
        hash.write(&page(number));
    }
    hash.finish_128()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use dyno_pages::corpus::Class;

    use super::*;

    #[test]
    fn pages_beyond_the_corpus_are_distinct() {
        let corpus = Corpus::from_bytes(Class::Heap, vec![7; 3 * PAGE_BYTES]);
        let source = Source::new(corpus, 100, false);
        let mut page = [0; PAGE_BYTES];
        let pages: HashSet<Page> = (3..100)
            .map(|number| {
                source.fill(number, &mut page);
                page
            })
            .collect();
        assert_eq!(pages.len(), 97);
    }
}
