//! The directory of a log, and the state that its writer, checkpoints and backups share.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_io::{Claim, IoError, Storage};
use parking_lot::{Mutex, MutexGuard};

use crate::error::LogError;
use crate::manifest::{CHECKPOINT_PREFIX, Manifest, segment_bytes_work};
use crate::position::{BLOCK_BYTES, Layout, Lsn};

const LOCK: &str = "lock";

/// A random number for [`Options::identity`]. The standard library seeds its hashers from the
/// system's randomness, so two logs do not get the same number.
pub fn fresh_identity() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Settings of a log in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The identity of a new log, different for every log ever made: see
    /// [`crate::fresh_identity`]. An existing log keeps its own.
    pub identity: u64,
    /// Length of a new log's segments, from 64 KiB to 1 GiB. An existing log keeps its own.
    pub segment_bytes: u64,
    /// Segments made before the log is first used.
    pub segments: usize,
    /// The most segments that the log may have. After that, a checkpoint must free some.
    pub segments_most: usize,
    /// Length of a buffer, which bounds a write and a record. An existing log whose segments are
    /// too short for it gets shorter buffers.
    pub buffer_bytes: usize,
    /// Groups in flight at once. With 1, what is appended meanwhile shares the next write.
    pub depth: usize,
}

impl Options {
    /// The default of [`Options::segments_most`].
    pub const SEGMENTS_MOST: usize = 64;
}

impl Default for Options {
    /// Segments of 64 MiB, 3 to 64 of them; buffers of 1 MiB, 2 writes at once.
    fn default() -> Self {
        Self {
            identity: 0,
            segment_bytes: 64 << 20,
            segments: 3,
            segments_most: Self::SEGMENTS_MOST,
            buffer_bytes: 1 << 20,
            depth: 2,
        }
    }
}

impl Options {
    /// The settings for an existing log, with buffers that fit into its segments.
    pub(crate) fn fitted(self, segment_bytes: u64) -> Self {
        let each = segment_bytes / (self.depth as u64).saturating_add(1);
        let each = usize::try_from(each).unwrap_or(usize::MAX) / BLOCK_BYTES * BLOCK_BYTES;
        Self {
            buffer_bytes: self.buffer_bytes.min(each),
            ..self
        }
    }

    pub(crate) fn check(&self, segment_bytes: u64) -> Result<(), LogError> {
        let what = if !segment_bytes_work(segment_bytes) {
            format!("segments of {segment_bytes} bytes: take whole blocks, 64 KiB to 1 GiB")
        } else if self.segments < 2 || self.segments_most < self.segments {
            "at least two segments, and at most as many as the most".to_owned()
        } else if self.buffer_bytes < BLOCK_BYTES
            || !self.buffer_bytes.is_multiple_of(BLOCK_BYTES)
            || !(1..=64).contains(&self.depth)
        {
            "buffers are whole blocks of 4096 bytes, and 1 to 64 writes are under way".to_owned()
        } else if (self.buffer_bytes * (self.depth + 1)) as u64 > segment_bytes {
            // What is in flight when a crash comes is then in the last two segments, and recovery
            // syncs only those.
            "all buffers together are longer than a segment".to_owned()
        } else {
            return Ok(());
        };
        Err(LogError::Settings { what })
    }
}

#[derive(Debug)]
pub(crate) struct HomeState {
    pub manifest: Manifest,
    /// The first position that each reader needs, with the number of its [`Pin`].
    pub pins: Vec<(u64, Lsn)>,
    pub next_pin: u64,
    pub checkpoint_under_way: bool,
    /// The number of the next checkpoint to begin. No number is used twice, not even after a commit
    /// that failed, because the manifest on the disk may name that file.
    pub next_checkpoint: u64,
}

/// A log's directory, which one process at a time may have.
#[derive(Debug)]
pub(crate) struct Home {
    pub storage: Arc<dyn Storage>,
    pub directory: PathBuf,
    state: Mutex<HomeState>,
    /// Nothing before this position is needed. It is the lowest of the manifest's `first_needed`
    /// and the pins, kept apart so that the writer reads it without the lock.
    keep_from: AtomicU64,
    durable: AtomicU64,
    _claim: Claim,
}

/// Makes the directory if it does not exist, and locks it for this process.
pub(crate) fn claim(storage: &dyn Storage, directory: &Path) -> Result<Claim, LogError> {
    storage.make_directory(directory)?;
    match storage.claim(&directory.join(LOCK)) {
        Err(IoError::Busy { .. }) => Err(LogError::InUse {
            directory: directory.to_path_buf(),
        }),
        claim => Ok(claim?),
    }
}

impl Home {
    pub fn new(
        storage: Arc<dyn Storage>,
        directory: &Path,
        claim: Claim,
        manifest: Manifest,
    ) -> Self {
        Self {
            storage,
            directory: directory.to_path_buf(),
            keep_from: AtomicU64::new(manifest.first_needed.0),
            durable: AtomicU64::new(manifest.epoch_start.0),
            state: Mutex::new(HomeState {
                manifest,
                pins: Vec::new(),
                next_pin: 0,
                checkpoint_under_way: false,
                next_checkpoint: manifest.checkpoint.saturating_add(1),
            }),
            _claim: claim,
        }
    }

    /// Locks the state. The lock is not poisoned by a panic, which is safe here because the
    /// manifest is replaced by one assignment and so is never half changed.
    pub fn state(&self) -> MutexGuard<'_, HomeState> {
        self.state.lock()
    }

    pub fn layout(&self) -> Layout {
        Layout {
            segment_bytes: self.state().manifest.segment_bytes,
        }
    }

    pub fn keep_from(&self) -> Lsn {
        Lsn(self.keep_from.load(Ordering::Acquire))
    }

    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    pub fn set_durable(&self, durable: Lsn) {
        self.durable.store(durable.0, Ordering::Release);
    }

    /// Changes the manifest, on the disk first. After an error the manifest in memory is the old
    /// one, while the one on the disk may be either. The old one keeps more segments, so both are
    /// safe.
    pub fn change(&self, change: impl FnOnce(&mut Manifest)) -> Result<Manifest, LogError> {
        // The lock is held during the write: two threads that change different fields would else
        // each write back the other's old value.
        let mut state = self.state();
        let mut manifest = state.manifest;
        change(&mut manifest);
        manifest.store(&*self.storage, &self.directory)?;
        state.manifest = manifest;
        self.keep(&state);
        Ok(manifest)
    }

    /// Keeps everything that recovery needs now until the pin is dropped.
    pub fn pin(self: &Arc<Self>) -> Pin {
        let mut state = self.state();
        let number = state.next_pin;
        let first_needed = state.manifest.first_needed;
        state.next_pin += 1;
        state.pins.push((number, first_needed));
        Pin {
            home: Arc::clone(self),
            number,
            manifest: state.manifest,
        }
    }

    /// Recomputes `keep_from`. It is called with the state locked, so that two calls cannot store
    /// their results in the wrong order.
    fn keep(&self, state: &HomeState) {
        let needed = state.manifest.first_needed;
        let pinned = state.pins.iter().map(|pin| pin.1).min();
        let keep_from = pinned.map_or(needed, |pinned| pinned.min(needed));
        self.keep_from.store(keep_from.0, Ordering::Release);
    }

    /// Removes checkpoints that are not current, unless one may be being read or written. What is
    /// left then goes with the next checkpoint or recovery.
    pub fn remove_old_checkpoints(&self) -> Result<(), LogError> {
        let state = self.state();
        if !state.pins.is_empty() || state.checkpoint_under_way {
            return Ok(());
        }
        let current = Manifest::checkpoint_path(&self.directory, state.manifest.checkpoint);
        for name in self.storage.list(&self.directory)? {
            let path = self.directory.join(&name);
            if name.starts_with(CHECKPOINT_PREFIX) && path != current {
                self.storage.remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Keeps the segments and the checkpoint of the moment at which it was made until it is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    pub home: Arc<Home>,
    number: u64,
    pub manifest: Manifest,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.home.state();
        state.pins.retain(|pin| pin.0 != self.number);
        self.home.keep(&state);
    }
}
