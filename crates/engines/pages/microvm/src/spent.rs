//! Which pages of a virtual machine no longer come from the snapshot, in a file in memory that
//! outlives the pager.
//!
//! A page comes from the snapshot once. After that a fault means that the machine has given the
//! page up (its balloon was inflated), and then it reads as zeros. The same goes for a page that it
//! gave up before the first touch. A pager that is started again must know both, or it would bring
//! back contents that are gone; so a holder has the file. It is written after the page was put in
//! place: a pager that dies in between leaves a page that is there and not marked, and no fault
//! asks for that.
//!
//! It is mapped and not written by system calls, because a mark goes with every fault. Has
//! `unsafe`: the mapping.

use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::PagerError;

const WORD_BITS: u64 = u64::BITS as u64;

/// One bit for each page of the snapshot.
#[derive(Debug)]
pub struct Spent {
    words: NonNull<AtomicU64>,
    count: usize,
    file: Arc<File>,
}

// SAFETY: the mapping has no owner thread, and is reached as atomics alone.
unsafe impl Send for Spent {}

impl Spent {
    /// Makes the file for so many pages, with none of them marked.
    pub fn create(pages: u64) -> Result<Self, PagerError> {
        let what = "make a file in memory";
        let file = memfd_create("dyno-microvm", MemfdFlags::CLOEXEC)
            .map(File::from)
            .map_err(PagerError::system(what))?;
        let count = pages.div_ceil(WORD_BITS) as usize;
        file.set_len(count as u64 * 8)
            .map_err(PagerError::system(what))?;
        Self::map(file, count)
    }

    /// What an earlier pager marked.
    pub fn reopen(file: OwnedFd, pages: u64) -> Result<Self, PagerError> {
        let file = File::from(file);
        let count = pages.div_ceil(WORD_BITS) as usize;
        let metadata = file.metadata();
        let bytes = metadata
            .map_err(PagerError::system("look at the marks of pages"))?
            .len();
        // A touch behind the end of a shorter file would kill this process with SIGBUS.
        if bytes != count as u64 * 8 {
            return Err(PagerError::Held {
                name: "marks of pages".to_owned(),
                why: format!("{bytes} bytes for {pages} pages"),
            });
        }
        Self::map(file, count)
    }

    fn map(file: File, count: usize) -> Result<Self, PagerError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever the system likes, of a file that is as long and that
        // nothing makes shorter.
        let words = unsafe {
            mmap(
                std::ptr::null_mut(),
                count * 8,
                protection,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let words = words.map_err(PagerError::system("map a file in memory"))?;
        let words = NonNull::new(words.cast());
        Ok(Self {
            words: words.ok_or(PagerError::system("map a file in memory")(
                std::io::Error::other("the system put it at address 0"),
            ))?,
            count,
            file: Arc::new(file),
        })
    }

    /// The file, for a holder.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped by `map` for as long as `self` lives, aligned to a page.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }

    pub fn contains(&self, page: u64) -> bool {
        let word = self.words()[(page / WORD_BITS) as usize].load(Relaxed);
        u64::from_le(word) >> (page % WORD_BITS) & 1 != 0
    }

    /// Marks these pages. A process that is killed right after it has marked them.
    pub fn insert(&self, pages: Range<u64>) {
        let mut page = pages.start;
        while page < pages.end {
            let low = page % WORD_BITS;
            let count = (WORD_BITS - low).min(pages.end - page);
            let mask = u64::MAX >> (WORD_BITS - count) << low;
            self.words()[(page / WORD_BITS) as usize].fetch_or(mask.to_le(), Relaxed);
            page += count;
        }
    }
}

impl Drop for Spent {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`; references into it do not outlive `self`. An error would mean
        // that it is not mapped, and there is nothing to do about that.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), self.count * 8) };
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
            let spent = Spent::create(PAGES).expect("memory");
            let mut model = BTreeSet::new();
            for (start, len) in runs {
                let run = start..(start + len).min(PAGES);
                spent.insert(run.clone());
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
