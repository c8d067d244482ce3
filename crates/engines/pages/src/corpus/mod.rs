//! Pages to measure with: classes made by rule (the seed document's `W1` to `W4`, of distinct
//! pages) and real ones taken from what this machine has.
//!
//! A class never repeats a page to reach a size: a machine that has less gives less, and
//! [`Corpus::count`] says how many there are. Pages that occur twice among real ones are left out
//! and counted, because codecs and branch predictors learn what they see again.

mod elf;
mod files;
mod heap;
pub(crate) mod made;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_128;

use crate::PAGE_BYTES;

pub use files::pages_of_files;

/// A kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// `W1`: zeros. The one class whose pages are all equal.
    Zeros,
    /// `W2`: the 95 printable characters of ASCII in order, again and again, each page from another
    /// place and with its number in it.
    Text,
    /// `W3`: the first half as a byte counter, the second half random, each page another.
    Mixed,
    /// `W4`: random bytes.
    Random,
    /// Machine code of shared libraries: the executable segments of ELF files.
    ElfText,
    /// Constants, tables and names of shared libraries: the other segments of ELF files.
    ElfData,
    /// Source text: headers and scripts that are installed here.
    Source,
    /// Documentation as installed here; compressed files among it are left out.
    Documents,
    /// The private writable memory of a live interpreter that holds modules, tables and text.
    Heap,
    /// Pages of PostgreSQL's tables and indexes.
    Postgres,
    /// Parquet files, cut into pages.
    Parquet,
}

impl Class {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Zeros,
        Self::Text,
        Self::Mixed,
        Self::Random,
        Self::ElfText,
        Self::ElfData,
        Self::Source,
        Self::Documents,
        Self::Heap,
        Self::Postgres,
        Self::Parquet,
    ];

    /// Its name in cases and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Text => "text",
            Self::Mixed => "mixed",
            Self::Random => "random",
            Self::ElfText => "elf-text",
            Self::ElfData => "elf-data",
            Self::Source => "source",
            Self::Documents => "documents",
            Self::Heap => "heap",
            Self::Postgres => "postgres",
            Self::Parquet => "parquet",
        }
    }

    /// Whether its pages come from this machine and not from a rule: their hash then differs from
    /// machine to machine.
    pub fn is_real(self) -> bool {
        self >= Self::ElfText
    }
}

/// Where real pages may come from.
#[derive(Debug, Clone)]
pub struct Places {
    /// Folders with shared libraries.
    pub libraries: Vec<PathBuf>,
    /// Folders with source text.
    pub sources: Vec<PathBuf>,
    /// Folders with documentation.
    pub documents: Vec<PathBuf>,
    /// Interpreters to try for a heap, first to last.
    pub interpreters: Vec<PathBuf>,
    /// Data directories of PostgreSQL.
    pub postgres: Vec<PathBuf>,
    /// Folders with Parquet files.
    pub parquet: Vec<PathBuf>,
}

impl Default for Places {
    fn default() -> Self {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        Self {
            libraries: paths(&[
                "/usr/lib/x86_64-linux-gnu",
                "/usr/lib/aarch64-linux-gnu",
                "/usr/lib64",
            ]),
            sources: paths(&[
                "/usr/include",
                "/usr/lib/python3",
                "/usr/lib/python3.11",
                "/usr/share/perl",
            ]),
            documents: paths(&[
                "/usr/share/doc",
                "/usr/share/common-licenses",
                "/usr/share/info",
            ]),
            interpreters: paths(&["/usr/bin/python3", "/usr/bin/perl"]),
            postgres: paths(&["/var/lib/postgresql"]),
            parquet: Vec::new(),
        }
    }
}

/// How many times as many pages as asked for are read at most, to find distinct ones.
const MOST_COPIES: usize = 6;

/// Why a class could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// Nothing on this machine gives such pages.
    #[error("{class}: no pages: {reason}")]
    Nothing {
        /// The class's name.
        class: &'static str,
        /// Where was looked.
        reason: String,
    },
    /// A file or a process could not be read.
    #[error("{what} {path}: {source}")]
    Read {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl CorpusError {
    fn read(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Read {
            what,
            path: path.to_path_buf(),
            source,
        }
    }
}

/// Pages of one class.
#[derive(Debug, Clone)]
pub struct Corpus {
    class: Class,
    bytes: Vec<u8>,
    left_out: usize,
}

/// What a report says about a corpus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Pages.
    pub count: usize,
    /// Pages left out because an equal one is there.
    pub left_out: usize,
    /// XXH3-128 over all pages in order.
    pub hash: u128,
    /// Mean over the pages of the entropy of their bytes, in bits a byte (0 to 8).
    pub entropy_bits: f64,
}

impl Corpus {
    /// Makes or takes up to `pages` pages of `class`.
    ///
    /// # Errors
    /// [`CorpusError::Nothing`] when this machine has none, else what failed.
    pub fn make(
        class: Class,
        pages: usize,
        seed: u64,
        places: &Places,
    ) -> Result<Self, CorpusError> {
        // Files repeat each other, so that more is read than is asked for.
        let read = pages.saturating_mul(MOST_COPIES);
        let bytes = match class {
            Class::Zeros => vec![0; pages * PAGE_BYTES],
            Class::Text => made::text(pages, seed),
            Class::Mixed => made::mixed(pages, seed),
            Class::Random => made::random(pages, seed),
            Class::ElfText => elf::segments(&places.libraries, read, elf::Segments::Code)?,
            Class::ElfData => elf::segments(&places.libraries, read, elf::Segments::Data)?,
            Class::Source => pages_of_files(&places.sources, read, files::is_source)?,
            Class::Documents => pages_of_files(&places.documents, read, files::is_document)?,
            Class::Heap => heap::dump(&places.interpreters, pages)?,
            Class::Postgres => pages_of_files(&places.postgres, read, files::is_postgres)?,
            Class::Parquet => pages_of_files(&places.parquet, read, files::is_parquet)?,
        };
        if bytes.is_empty() {
            return Err(CorpusError::Nothing {
                class: class.name(),
                reason: "nothing of the kind where it was looked for".into(),
            });
        }
        let mut corpus = Self {
            class,
            bytes,
            left_out: 0,
        };
        if class != Class::Zeros {
            corpus.leave_out_equal_pages(pages);
        }
        Ok(corpus)
    }

    /// A corpus of pages that the caller has.
    pub fn of_bytes(class: Class, mut bytes: Vec<u8>) -> Self {
        bytes.truncate(bytes.len() / PAGE_BYTES * PAGE_BYTES);
        Self {
            class,
            bytes,
            left_out: 0,
        }
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Pages in it.
    pub fn count(&self) -> usize {
        self.bytes.len() / PAGE_BYTES
    }

    /// Page `at`, counted from 0.
    pub fn page(&self, at: usize) -> &[u8; PAGE_BYTES] {
        &self.pages()[at]
    }

    /// All pages.
    pub fn pages(&self) -> &[[u8; PAGE_BYTES]] {
        self.bytes.as_chunks().0
    }

    /// What a report says about it.
    pub fn facts(&self) -> Facts {
        let sum: f64 = self.pages().iter().map(entropy_bits).sum();
        Facts {
            count: self.count(),
            left_out: self.left_out,
            hash: XxHash3_128::oneshot(&self.bytes),
            entropy_bits: sum / self.count().max(1) as f64,
        }
    }

    /// Keeps the first `most` distinct pages.
    fn leave_out_equal_pages(&mut self, most: usize) {
        let mut seen = HashSet::new();
        let (mut kept, mut looked_at) = (0, 0);
        for at in 0..self.count() {
            if kept == most {
                break;
            }
            looked_at += 1;
            let from = at * PAGE_BYTES;
            let hash = XxHash3_128::oneshot(&self.bytes[from..from + PAGE_BYTES]);
            if seen.insert(hash) {
                self.bytes
                    .copy_within(from..from + PAGE_BYTES, kept * PAGE_BYTES);
                kept += 1;
            }
        }
        self.left_out = looked_at - kept;
        self.bytes.truncate(kept * PAGE_BYTES);
    }
}

/// Entropy of a page's bytes, in bits a byte (Shannon 1948), 0 for an even page and 8 at most.
pub fn entropy_bits(page: &[u8; PAGE_BYTES]) -> f64 {
    let mut counts = [0u32; 256];
    for &byte in page {
        counts[usize::from(byte)] += 1;
    }
    let total = PAGE_BYTES as f64;
    let share = |count: u32| f64::from(count) / total;
    counts
        .iter()
        .filter(|&&c| c > 0)
        // Of shares below 1 the logarithm is negative; said this way round, an even page has no
        // "-0".
        .map(|&c| share(c) * share(c).recip().log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: usize = 300;

    fn made(class: Class) -> Corpus {
        Corpus::make(class, SOME, 7, &Places::default()).expect("made by rule")
    }

    #[test]
    fn made_classes_are_distinct_pages_and_the_same_for_the_same_seed() {
        for class in [Class::Text, Class::Mixed, Class::Random] {
            let corpus = made(class);
            assert_eq!(
                (corpus.count(), corpus.left_out),
                (SOME, 0),
                "{}",
                class.name()
            );
            assert_eq!(corpus.facts().hash, made(class).facts().hash);
            let other = Corpus::make(class, SOME, 8, &Places::default()).expect("made by rule");
            assert_ne!(corpus.facts().hash, other.facts().hash);
        }
    }

    #[test]
    fn entropy_is_that_of_the_definition() {
        assert_eq!(entropy_bits(&[9; PAGE_BYTES]), 0.0);
        let even: [u8; PAGE_BYTES] = std::array::from_fn(|i| i as u8);
        assert!((entropy_bits(&even) - 8.0).abs() < 1e-9);
        assert!(made(Class::Random).facts().entropy_bits > 7.9);
        let mixed = made(Class::Mixed).facts().entropy_bits;
        assert!((7.9..=8.0).contains(&mixed), "{mixed}");
    }

    #[test]
    fn real_classes_come_from_this_machine_and_equal_pages_are_left_out() {
        for class in [
            Class::ElfText,
            Class::ElfData,
            Class::Source,
            Class::Documents,
            Class::Heap,
        ] {
            match Corpus::make(class, SOME, 0, &Places::default()) {
                Ok(corpus) => {
                    let distinct: HashSet<&[u8]> = corpus.pages().iter().map(|p| &p[..]).collect();
                    assert_eq!(distinct.len(), corpus.count(), "{}", class.name());
                    assert!(corpus.count() > 0 && corpus.count() <= SOME);
                }
                Err(why) => println!("skipped: corpus {}: {why}", class.name()),
            }
        }
    }

    #[test]
    fn a_machine_without_pages_of_a_class_is_told_so() {
        let nowhere = Places {
            postgres: vec![PathBuf::from("/nonexistent")],
            ..Places::default()
        };
        let error = Corpus::make(Class::Postgres, SOME, 0, &nowhere).expect_err("no such folder");
        assert!(
            matches!(
                error,
                CorpusError::Nothing {
                    class: "postgres",
                    ..
                }
            ),
            "{error}"
        );
    }
}
