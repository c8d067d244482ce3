//! Backups. A backup is a directory that is itself a log, and ends at what was durable when the
//! backup began.

use std::path::Path;
use std::sync::Arc;

use dyno_io::{Access, AlignedBuffer, Storage, Syncing, write_whole};

use crate::checkpoint::Checkpointer;
use crate::error::LogError;
use crate::home::{Options, Pin, claim};
use crate::manifest::{Manifest, cached, open_direct, read_into};
use crate::position::{BLOCK_BYTES, Layout, Lsn};
use crate::recovery::{Recovered, Recovery};
use crate::segment::{self, Slot};

/// Bytes that one read and one write copy.
const PIECE_BYTES: usize = 4 << 20;

/// What a backup copies: the checkpoint and the durable part of the log as they were at one moment.
/// The log keeps both until this is dropped. Cuts of several logs that are made while none of them
/// moves are of the same moment.
#[derive(Debug)]
pub struct Cut {
    pin: Pin,
    end: Lsn,
}

impl Checkpointer {
    /// Notes what a backup of this moment consists of.
    pub fn cut(&self) -> Cut {
        // The pin comes first. The checkpoint that it names was committed when the log was durable
        // behind the last row in it, so the end that is read after it lies behind all of its rows.
        // A checkpoint that is committed later can hold changes from behind the end.
        let pin = self.home().pin();
        let end = self.durable();
        Cut { pin, end }
    }

    /// Copies the checkpoint and the log, up to what is durable now, into the new directory
    /// `target`, and reads the copy back. The log continues meanwhile, but its segments are not
    /// recycled until the copy is complete. The copy can be opened like any log.
    ///
    /// # Errors
    /// As [`Cut::backup`].
    pub fn backup(&self, target: &Path) -> Result<Recovered, LogError> {
        self.cut().backup(target)
    }
}

impl Cut {
    /// Copies what it consists of into the new directory `target`, and reads the copy back. The
    /// copy can be opened like any log.
    ///
    /// # Errors
    /// [`LogError::Occupied`], [`LogError::Damaged`] if the copy reads back differently, and I/O
    /// errors. The files that were copied so far then stay, without a manifest.
    pub fn backup(&self, target: &Path) -> Result<Recovered, LogError> {
        let Pin { home, manifest, .. } = &self.pin;
        copy(&home.storage, &home.directory, manifest, self.end, target)
    }
}

/// Checks the backup in `from`, copies it to `target`, and reads the copy back.
///
/// # Errors
/// [`LogError::Occupied`], [`LogError::Damaged`], [`LogError::NoManifest`], and I/O errors.
pub fn restore(
    storage: &Arc<dyn Storage>,
    from: &Path,
    target: &Path,
) -> Result<Recovered, LogError> {
    // `Recovery::open` would make a new log in a directory without one.
    if Manifest::load(&**storage, from)?.is_none() {
        return Err(LogError::no_manifest(&**storage, from)?);
    }
    let mut recovery = Recovery::open(Arc::clone(storage), from, Options::small())?;
    let end = recovery.drain()?;
    let manifest = *recovery.manifest();
    copy(storage, from, &manifest, end, target)
}

fn copy(
    storage: &Arc<dyn Storage>,
    from: &Path,
    manifest: &Manifest,
    end: Lsn,
    target: &Path,
) -> Result<Recovered, LogError> {
    let held = claim(&**storage, target)?;
    let names = storage.list(target)?;
    if names.iter().any(|name| name != "lock") {
        return Err(LogError::Occupied {
            directory: target.to_path_buf(),
        });
    }
    if manifest.checkpoint != 0 {
        let path = |directory| Manifest::checkpoint_path(directory, manifest.checkpoint);
        let bytes = manifest.checkpoint_bytes;
        copy_file(&**storage, &path(from), &path(target), bytes)?;
    }
    let files = copy_segments(&**storage, from, manifest, end, target)?;
    let copied = Manifest {
        proven: end.max(manifest.epoch_start),
        files,
        ..*manifest
    };
    // The manifest is written last, and only after the names of the other files are stable. A copy
    // that was interrupted has no manifest, so it cannot be opened as if it were whole.
    storage.sync_directory(target)?;
    copied.store(&**storage, target)?;
    // The recovery below claims the directory itself.
    drop(held);
    let mut recovery = Recovery::open(Arc::clone(storage), target, Options::small())?;
    let found = recovery.drain()?;
    let layout = Layout {
        segment_bytes: manifest.segment_bytes,
    };
    // The reader names the end of a segment either way: after its last group, or after the header
    // of the next segment.
    if layout.past_header(found) != layout.past_header(end) {
        let what = format!("the copy ends at {found}, not at {end}");
        return Err(LogError::damaged(target, 0, what));
    }
    recovery.verify()
}

/// Copies the segments from the first that recovery needs to the one of `end`, and numbers the
/// files from 0. Returns how many files it made.
fn copy_segments(
    storage: &dyn Storage,
    from: &Path,
    manifest: &Manifest,
    end: Lsn,
    target: &Path,
) -> Result<u64, LogError> {
    let layout = Layout {
        segment_bytes: manifest.segment_bytes,
    };
    let slots = segment::slots(storage, from, manifest.identity)?;
    let first = layout.index(manifest.first_needed);
    let mut number = 0;
    for index in first..=layout.index(end) {
        let used = (end.0 - layout.start(index).0).min(layout.segment_bytes);
        // A segment with nothing but a header is left out: recovery of the copy makes it again.
        if used <= BLOCK_BYTES as u64 {
            continue;
        }
        let holders = slots.iter().filter(|slot| slot.index() == Some(index));
        let Some(slot) = holders.max_by_key(|slot| slot.header.map(|h| h.life.epoch)) else {
            let what = format!("segment {index} is missing");
            return Err(LogError::damaged(from, 0, what));
        };
        let path = Slot::path_of(target, number);
        number += 1;
        copy_file(storage, &slot.path, &path, used)?;
        let file = storage.open(&path, cached(Access::Update))?;
        // The rest of the file reads as zeros. Its room is allocated only when the copy is written
        // to.
        file.set_len(layout.segment_bytes)?;
        file.sync()?;
    }
    Ok(number)
}

/// Copies the first `bytes` of a file.
fn copy_file(storage: &dyn Storage, from: &Path, to: &Path, bytes: u64) -> Result<(), LogError> {
    let source = open_direct(storage, from, Access::Read, Syncing::AtSync)?;
    let copy = storage.open(to, cached(Access::Create))?;
    let mut buffer = AlignedBuffer::zeroed(PIECE_BYTES);
    let mut at = 0;
    while at < bytes {
        let filled = read_into(&*source, at, &mut buffer)?;
        let most = filled.min(usize::try_from(bytes - at).unwrap_or(usize::MAX));
        if most == 0 {
            return Err(LogError::damaged(from, at, "the file is too short"));
        }
        write_whole(&*copy, at, &buffer[..most])?;
        at += most as u64;
    }
    Ok(copy.sync()?)
}

impl Options {
    /// Settings for reading only, with the smallest buffers.
    fn small() -> Self {
        Self {
            buffer_bytes: BLOCK_BYTES,
            depth: 1,
            ..Self::default()
        }
    }
}
