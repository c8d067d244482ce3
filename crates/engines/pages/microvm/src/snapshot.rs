//! A snapshot of a microVM's memory, packed once into a store that all its clones are served from.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use dyno_pages::{Handle, MOST_LIMIT_BYTES, PAGE_BYTES, Settings, Store, Tiers};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::PagerError;

const PAGE: u64 = PAGE_BYTES as u64;
/// Bytes that a thread packs at a time, and that are hashed together.
const PIECE_BYTES: usize = 1 << 20;
/// The largest snapshot: its pages have numbers of 32 bits in files of working sets.
const MOST_PAGES: u64 = u32::MAX as u64;
/// Version of [`Identity`] as a note beside the store.
const VERSION: u32 = 1;

/// What tells one snapshot from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the note that this is written as.
    #[serde(rename = "dyno-pages-snapshot")]
    version: u32,
    /// How many pages the snapshot has.
    pages: u64,
    /// Hash of all bytes, in hexadecimal digits.
    content: String,
    /// Numbers of the file's device and inode, and its time of change in nanoseconds.
    file: (u64, u64, i64),
}

/// A packed snapshot in memory, and what tells it from others.
#[derive(Debug)]
pub struct Snapshot {
    store: Store,
    identity: Identity,
}

impl Snapshot {
    /// Packs a file, with as many threads as there are processors.
    ///
    /// # Errors
    /// [`PagerError::Snapshot`] when the file cannot be read, is not of whole pages or changes
    /// meanwhile; [`PagerError::Store`] when the memory is refused.
    pub fn pack(path: &Path) -> Result<Self, PagerError> {
        let file = open(path)?;
        let before = look_at(&file, path)?;
        let pages = pages_of(&file, path)?;
        let store = Store::create(Settings {
            // Clones fault for as long as they live, so pages stay in the form that is the fastest
            // to read.
            tiers: Tiers::Lz4,
            share: true,
            ..Settings::new(pages, limit_bytes(pages))
        })?;
        let content = pack_pieces(&store, &file, path, pages)?;
        if look_at(&file, path)? != before || pages_of(&file, path)? != pages {
            return Err(PagerError::Snapshot {
                path: path.to_path_buf(),
                why: "it was changed while it was packed".to_owned(),
            });
        }
        let identity = Identity {
            version: VERSION,
            pages,
            content: format!("{content:032x}"),
            file: before,
        };
        Ok(Self { store, identity })
    }

    /// Opens what an earlier pager packed, from the memory and the note that a holder has.
    ///
    /// # Errors
    /// [`PagerError::Held`] when they are not a snapshot's; [`PagerError::Store`] when the memory
    /// is in use.
    pub fn reopen(memory: OwnedFd, note: &[u8]) -> Result<Self, PagerError> {
        let held = |why: String| PagerError::Held {
            name: "snapshot".to_owned(),
            why,
        };
        let identity: Identity =
            serde_json::from_slice(note).map_err(|error| held(error.to_string()))?;
        if identity.version != VERSION {
            let version = identity.version;
            return Err(held(format!(
                "it has version {version}, this program knows {VERSION}"
            )));
        }
        let settings = Settings {
            tiers: Tiers::Lz4,
            ..Settings::new(1, 1)
        };
        let (store, _) = Store::reopen(memory, settings)?;
        if store.pages() != identity.pages {
            let (has, says) = (store.pages(), identity.pages);
            return Err(held(format!("it has {has} pages, its note says {says}")));
        }
        Ok(Self { store, identity })
    }

    /// Whether the file at `path` is the one that was packed, and was not changed since.
    ///
    /// # Errors
    /// [`PagerError::Snapshot`] when the file cannot be opened.
    pub fn is_of(&self, path: &Path) -> Result<bool, PagerError> {
        let file = open(path)?;
        let pages = pages_of(&file, path)?;
        Ok(look_at(&file, path)? == self.identity.file && pages == self.identity.pages)
    }

    /// The store of its pages, numbered as in the file.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How many pages it has.
    pub fn pages(&self) -> u64 {
        self.identity.pages
    }

    /// How many bytes the file has.
    pub fn bytes(&self) -> u64 {
        self.pages() * PAGE
    }

    /// The hash of its bytes, in 32 hexadecimal digits.
    pub fn content(&self) -> &str {
        &self.identity.content
    }

    /// The memory, for a holder.
    pub fn memory_file(&self) -> BorrowedFd<'_> {
        self.store.memory_file()
    }

    /// What a holder has to note beside the memory.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn note(&self) -> Result<Vec<u8>, PagerError> {
        serde_json::to_vec(&self.identity).map_err(PagerError::system("write a note"))
    }
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> PagerError {
    move |error| PagerError::Snapshot {
        path: path.to_path_buf(),
        why: error.to_string(),
    }
}

fn open(path: &Path) -> Result<File, PagerError> {
    File::open(path).map_err(unreadable(path))
}

/// What tells the file from others, and from itself after a change.
fn look_at(file: &File, path: &Path) -> Result<(u64, u64, i64), PagerError> {
    let metadata = file.metadata().map_err(unreadable(path))?;
    let changed = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
    Ok((metadata.dev(), metadata.ino(), changed))
}

fn pages_of(file: &File, path: &Path) -> Result<u64, PagerError> {
    let metadata = file.metadata().map_err(unreadable(path))?;
    let wrong = |why: String| PagerError::Snapshot {
        path: path.to_path_buf(),
        why,
    };
    if !metadata.is_file() {
        return Err(wrong("it is not an ordinary file".to_owned()));
    }
    let bytes = metadata.len();
    if bytes == 0 || bytes % PAGE != 0 {
        let why = format!("it has {bytes} bytes, and a snapshot has whole pages of {PAGE}");
        return Err(wrong(why));
    }
    match bytes / PAGE {
        pages @ ..=MOST_PAGES => Ok(pages),
        pages => Err(wrong(format!(
            "it has {pages} pages, at most {MOST_PAGES} can be served"
        ))),
    }
}

/// A limit under which incompressible pages fit too: a store refuses writes from 94% of it, less
/// 256 KiB, on.
fn limit_bytes(pages: u64) -> u64 {
    let bytes = pages * PAGE;
    (bytes + bytes / 12 + (4 << 20)).min(MOST_LIMIT_BYTES)
}

/// Packs the file piece by piece, and returns the hash of the pieces' hashes.
fn pack_pieces(store: &Store, file: &File, path: &Path, pages: u64) -> Result<u128, PagerError> {
    let bytes = pages * PAGE;
    let pieces = bytes.div_ceil(PIECE_BYTES as u64);
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    let next = AtomicU64::new(0);
    let work = || -> Result<Vec<(u64, u128)>, PagerError> {
        let mut handle = store.handle()?;
        let mut buffer = vec![0; PIECE_BYTES];
        let mut hashes = Vec::new();
        loop {
            let piece = next.fetch_add(1, Relaxed);
            if piece >= pieces {
                return Ok(hashes);
            }
            let at = piece * PIECE_BYTES as u64;
            let len = (bytes - at).min(PIECE_BYTES as u64) as usize;
            let read = &mut buffer[..len];
            file.read_exact_at(read, at).map_err(unreadable(path))?;
            hashes.push((piece, XxHash3_128::oneshot(read)));
            write_pages(&mut handle, at / PAGE, read)?;
        }
    };
    let done: Result<Vec<_>, _> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(pieces))
            .map(|_| scope.spawn(work))
            .collect();
        let ended = workers.into_iter().map(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    });
    let mut hashes: Vec<(u64, u128)> = done?.into_iter().flatten().collect();
    hashes.sort_unstable_by_key(|&(piece, _)| piece);
    let all: Vec<u8> = hashes
        .iter()
        .flat_map(|(_, hash)| hash.to_le_bytes())
        .collect();
    Ok(XxHash3_128::oneshot(&all))
}

fn write_pages(handle: &mut Handle<'_>, first: u64, bytes: &[u8]) -> Result<(), PagerError> {
    let (pages, _) = bytes.as_chunks();
    Ok(handle.write_many(first, pages)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &Path) -> String {
        Snapshot::pack(path)
            .expect_err("not a snapshot")
            .to_string()
    }

    #[test]
    fn pages_come_back_and_equal_ones_are_stored_once() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("memory");
        let mut bytes = vec![0; 600 * PAGE_BYTES];
        for (number, page) in bytes.chunks_mut(PAGE_BYTES).enumerate() {
            // A third are zeros, a third are equal, and a third differ.
            match number % 3 {
                0 => {}
                1 => page.copy_from_slice(&dyno_pages::check::page_of(5)),
                _ => page.copy_from_slice(&dyno_pages::check::page_of(5 + 6 * number as u64)),
            }
        }
        std::fs::write(&path, &bytes).expect("space");
        let snapshot = Snapshot::pack(&path).expect("a snapshot");
        let content = snapshot.content().to_owned();
        assert_eq!(content.len(), 32);
        let stats = snapshot.store().stats().expect("figures");
        assert!(
            stats.shared >= 199 && stats.repeated.pages >= 200,
            "{stats:?}"
        );
        assert!(snapshot.is_of(&path).expect("a file"));
        let note = snapshot.note().expect("a note");
        let memory = snapshot
            .memory_file()
            .try_clone_to_owned()
            .expect("a descriptor");
        drop(snapshot);
        let snapshot = Snapshot::reopen(memory, &note).expect("held");
        let mut handle = snapshot.store().handle().expect("memory");
        let mut page = [0; PAGE_BYTES];
        for (number, expected) in bytes.chunks(PAGE_BYTES).enumerate() {
            handle.read(number as u64, &mut page).expect("whole");
            assert!(page == *expected, "page {number}");
        }
        bytes[77] ^= 1;
        std::fs::write(&path, &bytes).expect("space");
        assert!(!snapshot.is_of(&path).expect("a file"));
        let other = Snapshot::pack(&path).expect("a snapshot");
        assert_ne!(other.content(), content);
    }

    #[test]
    fn a_file_that_is_not_of_pages_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("memory");
        assert!(said(&path).contains("No such file"), "{}", said(&path));
        assert!(said(folder.path()).contains("not an ordinary file"));
        for bytes in [0, 1, 4095, 4097] {
            std::fs::write(&path, vec![1; bytes]).expect("space");
            let expected = format!("it has {bytes} bytes, and a snapshot has whole pages of 4096");
            assert!(said(&path).contains(&expected), "{}", said(&path));
        }
    }

    #[test]
    fn a_note_of_a_later_version_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("memory");
        std::fs::write(&path, [1; PAGE_BYTES]).expect("space");
        let snapshot = Snapshot::pack(&path).expect("a snapshot");
        let note = String::from_utf8(snapshot.note().expect("a note")).expect("text");
        let later = note.replace("\"dyno-pages-snapshot\":1", "\"dyno-pages-snapshot\":2");
        let memory = snapshot
            .memory_file()
            .try_clone_to_owned()
            .expect("a descriptor");
        let refused = Snapshot::reopen(memory, later.as_bytes()).expect_err("later");
        assert!(refused.to_string().contains("version 2"), "{refused}");
    }
}
