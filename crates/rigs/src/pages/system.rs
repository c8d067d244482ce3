//! Where pages are kept: our store in this process, or a file whose pages are written and read by
//! system calls.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use dyno_pages::{Handle, PAGE_BYTES, Page, Schedule, Settings, Store, Tiers};

use super::files;
use super::zram::Zram;
use super::{PagesError, bytes_of};

/// The system under test, which stores pages by number.
pub(super) enum PageSystem {
    /// Our page store, in this process.
    Store(Box<Store>),
    /// A device of the kernel.
    Zram(Zram),
    /// A file in a file system in memory, which compresses nothing.
    Memory(File),
}

/// What one thread needs to call a place.
pub(super) enum Worker<'a> {
    Handle(Box<Handle<'a>>),
    File(File),
}

impl PageSystem {
    /// Opens the system that a peer's name stands for, or our store, with room for `pages` pages.
    pub fn open(peer: Option<&str>, pages: u64, tiers: Tiers) -> Result<PageSystem, PagesError> {
        match peer {
            None => {
                // Room for all pages uncompressed, and one span for each slot size besides.
                let settings = Settings {
                    tiers,
                    ..Settings::new(pages, bytes_of(pages) + (32 << 20))
                };
                Ok(PageSystem::Store(Box::new(Store::create(settings)?)))
            }
            Some("tmpfs") => files::in_memory(bytes_of(pages)).map(PageSystem::Memory),
            Some(peer) => match peer.strip_prefix("zram-") {
                // Twice the size, so that the second half is never written.
                Some(algorithm) => Zram::new(algorithm, bytes_of(2 * pages)).map(PageSystem::Zram),
                None => Err(PagesError::Refused(format!(
                    "no system is called `{peer}` here"
                ))),
            },
        }
    }

    /// Our store with a memory limit of `limit_bytes`.
    pub fn limited(pages: u64, tiers: Tiers, limit_bytes: u64) -> Result<PageSystem, PagesError> {
        let settings = Settings {
            tiers,
            ..Settings::new(pages, limit_bytes)
        };
        Ok(PageSystem::Store(Box::new(Store::create(settings)?)))
    }

    pub fn worker(&self) -> Result<Worker<'_>, PagesError> {
        let again = |file: &File| {
            file.try_clone()
                .map_err(|e| PagesError::system("a descriptor", e))
        };
        Ok(match self {
            PageSystem::Store(store) => Worker::Handle(Box::new(store.handle()?)),
            PageSystem::Zram(zram) => Worker::File(zram.open()?),
            PageSystem::Memory(file) => Worker::File(again(file)?),
        })
    }

    /// Bytes of memory that it holds, with all its overhead.
    pub fn held_bytes(&self, pages: u64) -> Result<u64, PagesError> {
        match self {
            PageSystem::Store(store) => {
                let stats = store.stats()?;
                Ok(stats.resident_bytes + stats.beside_bytes)
            }
            PageSystem::Zram(zram) => zram.held_bytes(pages),
            PageSystem::Memory(file) => files::held_bytes(file),
        }
    }

    /// Like `held_bytes`, plus what the process allocated for it: the store's lists and a thread's
    /// working memory, unless the store counts them already.
    pub fn held_bytes_with(&self, pages: u64, process: u64) -> Result<u64, PagesError> {
        match self {
            PageSystem::Store(store) => {
                let stats = store.stats()?;
                Ok(stats.resident_bytes + stats.beside_bytes.max(process))
            }
            _ => self.held_bytes(pages),
        }
    }

    /// The first of the pages that are never written, where a read costs only the call itself.
    pub fn never_written(&self, pages: u64) -> Option<u64> {
        matches!(self, PageSystem::Zram(_)).then_some(pages)
    }

    /// Recompresses every page as if none had been touched for long. If the place has no such pass,
    /// returns why.
    pub fn pack(&self) -> Result<Option<&'static str>, PagesError> {
        match self {
            PageSystem::Store(store) => {
                store.age();
                let endless = Duration::from_secs(1 << 30);
                let mut recompressor = store.recompressor()?;
                recompressor.train(1)?;
                recompressor.pass(0, 1, endless, || Duration::ZERO)?;
                // As the background thread does when nothing is left to pack.
                recompressor.release();
                store.compact(usize::MAX)?;
                Ok(None)
            }
            PageSystem::Zram(zram) if zram.recompresses() => {
                zram.recompress()?;
                zram.compact()?;
                Ok(None)
            }
            PageSystem::Zram(_) => Ok(Some(
                "not packed again: this kernel's zram has no recompression (CONFIG_ZRAM_MULTI_COMP)",
            )),
            PageSystem::Memory(_) => Ok(Some("nothing is packed")),
        }
    }

    /// Compacts what it holds, as much as our background thread does in one pass.
    pub fn compact(&self) -> Result<(), PagesError> {
        match self {
            PageSystem::Store(store) => drop(store.compact(Schedule::default().compact_spans)?),
            PageSystem::Zram(zram) => zram.compact()?,
            PageSystem::Memory(_) => {}
        }
        Ok(())
    }
}

impl Worker<'_> {
    /// Writes `pages` at consecutive numbers that begin at `first`.
    pub fn write(&mut self, first: u64, pages: &[Page]) -> Result<(), PagesError> {
        match self {
            Worker::Handle(handle) => match pages {
                [page] => Ok(handle.write(first, page)?),
                _ => Ok(handle.write_many(first, pages)?),
            },
            Worker::File(file) => file
                .write_all_at(pages.as_flattened(), bytes_of(first))
                .map_err(|e| PagesError::system(format!("write of page {first}"), e)),
        }
    }

    /// Reads the pages with these numbers. Consecutive pages of a file are one system call.
    pub fn read(&mut self, wanted: &[u64], into: &mut [Page]) -> Result<(), PagesError> {
        match self {
            Worker::Handle(handle) => match (wanted, into) {
                ([page], [into]) => Ok(handle.read(*page, into)?),
                (wanted, into) => Ok(handle.read_many(wanted, into)?),
            },
            Worker::File(file) => {
                // Consecutive pages are one call, because direct I/O costs a trip through the block
                // layer for each; a store in this process has no such cost to share.
                let mut done = 0;
                for run in wanted.chunk_by(|a, b| a + 1 == *b) {
                    let place = &mut into[done..done + run.len()];
                    file.read_exact_at(place.as_flattened_mut(), bytes_of(run[0]))
                        .map_err(|e| PagesError::system(format!("read of page {}", run[0]), e))?;
                    done += run.len();
                }
                Ok(())
            }
        }
    }
}

/// Pages aligned as direct I/O requires. They are leaked, because the process runs one invocation
/// only.
pub(super) fn aligned(count: usize) -> &'static mut [Page] {
    let whole = Box::leak(vec![0u8; (count + 1) * PAGE_BYTES].into_boxed_slice());
    let skip = whole.as_ptr().align_offset(PAGE_BYTES);
    &mut whole[skip..].as_chunks_mut().0[..count]
}
