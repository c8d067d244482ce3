//! Which pages of a virtual machine no longer come from the snapshot, in a file in memory that
//! outlives the pager.
//!
//! A page comes from the snapshot once. After that a fault means that the machine has given the
//! page up (its balloon was inflated), and then it reads as zeros. The same goes for a page that it
//! gave up before the first touch. A pager that is started again must know both, or it would bring
//! back contents that are gone; so a holder has the file. It is written after the page was put in
//! place: a pager that dies in between leaves a page that is there and not marked, and no fault
//! asks for that.

use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::PagerError;

const WORD_BITS: u64 = u64::BITS as u64;

/// One bit for each page of the snapshot.
#[derive(Debug)]
pub struct Spent {
    words: Vec<u64>,
    file: Arc<File>,
}

impl Spent {
    /// Makes the file for so many pages, with none of them marked.
    pub fn create(pages: u64) -> Result<Self, PagerError> {
        let what = "make a file in memory";
        let file = memfd_create("dyno-microvm", MemfdFlags::CLOEXEC)
            .map(File::from)
            .map_err(PagerError::system(what))?;
        let words = vec![0; pages.div_ceil(WORD_BITS) as usize];
        file.set_len(words.len() as u64 * 8)
            .map_err(PagerError::system(what))?;
        Ok(Self {
            words,
            file: Arc::new(file),
        })
    }

    /// What an earlier pager marked.
    pub fn reopen(file: OwnedFd, pages: u64) -> Result<Self, PagerError> {
        let file = File::from(file);
        let mut bytes = vec![0; pages.div_ceil(WORD_BITS) as usize * 8];
        file.read_exact_at(&mut bytes, 0)
            .map_err(PagerError::system("read which pages were served"))?;
        let (words, _) = bytes.as_chunks();
        Ok(Self {
            words: words.iter().copied().map(u64::from_le_bytes).collect(),
            file: Arc::new(file),
        })
    }

    /// The file, for a holder.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub fn contains(&self, page: u64) -> bool {
        let word = self.words[(page / WORD_BITS) as usize];
        word >> (page % WORD_BITS) & 1 != 0
    }

    /// Marks these pages, here and in the file.
    pub fn insert(&mut self, pages: Range<u64>) -> Result<(), PagerError> {
        if pages.is_empty() {
            return Ok(());
        }
        let first = (pages.start / WORD_BITS) as usize;
        let last = ((pages.end - 1) / WORD_BITS) as usize;
        for (at, word) in (first..).zip(&mut self.words[first..=last]) {
            let from = at as u64 * WORD_BITS;
            let low = pages.start.max(from) - from;
            let high = pages.end.min(from + WORD_BITS) - from;
            *word |= u64::MAX >> (WORD_BITS - (high - low)) << low;
        }
        let words = self.words[first..=last].iter();
        let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        self.file
            .write_all_at(&bytes, first as u64 * 8)
            .map_err(PagerError::system("note which pages were served"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const PAGES: u64 = 300;

    proptest! {
        #[test]
        fn it_has_what_was_marked_also_when_it_is_opened_again(
            runs in proptest::collection::vec((0..PAGES, 0..150u64), 0..8),
        ) {
            let mut spent = Spent::create(PAGES).expect("memory");
            let mut model = BTreeSet::new();
            for (start, len) in runs {
                let run = start..(start + len).min(PAGES);
                spent.insert(run.clone()).expect("memory");
                model.extend(run);
            }
            let file = OwnedFd::from(spent.file().try_clone().expect("a descriptor"));
            let again = Spent::reopen(file, PAGES).expect("memory");
            for page in 0..PAGES {
                prop_assert_eq!(spent.contains(page), model.contains(&page));
                prop_assert_eq!(again.contains(page), model.contains(&page));
            }
        }
    }

    #[test]
    fn a_file_of_another_length_is_refused() {
        let spent = Spent::create(64).expect("memory");
        let file = OwnedFd::from(spent.file().try_clone().expect("a descriptor"));
        assert!(Spent::reopen(file, 65).is_err());
    }
}
