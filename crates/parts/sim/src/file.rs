//! A file of the simulated disk.

use std::io;
use std::path::{Path, PathBuf};

use dyno_io::{ALIGNMENT_BYTES, Caching, Device, IoError};

use crate::crash::Change;
use crate::disk::Disk;

/// The unit in which a direct write may be short.
const SECTOR_BYTES: usize = 512;

/// Room that may be taken ahead at once: the disk lies in memory.
const MOST_AHEAD_BYTES: usize = 128 << 10;

/// A file open for writing; it stays open under any name, and without one.
#[derive(Debug)]
pub struct SimFile {
    disk: Disk,
    file: usize,
    path: PathBuf,
    caching: Caching,
}

impl SimFile {
    pub(crate) fn new(disk: Disk, file: usize, path: &Path, caching: Caching) -> Self {
        let path = path.to_path_buf();
        Self {
            disk,
            file,
            path,
            caching,
        }
    }

    fn check(&self, offset_bytes: u64, block: &[u8]) -> Result<(), IoError> {
        let aligned = offset_bytes.is_multiple_of(ALIGNMENT_BYTES as u64)
            && block.len().is_multiple_of(ALIGNMENT_BYTES)
            && (block.as_ptr() as usize).is_multiple_of(ALIGNMENT_BYTES);
        if self.caching == Caching::Cached || aligned {
            return Ok(());
        }
        Err(IoError::Unaligned {
            path: self.path.clone(),
            offset_bytes,
            len_bytes: block.len(),
            alignment_bytes: ALIGNMENT_BYTES,
        })
    }

    /// A random front of `len` bytes, in whole sectors for a direct file.
    fn front(&self, len: usize, random: &mut crate::Random) -> usize {
        let some = random.below(len + 1);
        match self.caching {
            Caching::Cached => some,
            Caching::Direct => some - some % SECTOR_BYTES,
        }
    }
}

impl Device for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn caching(&self) -> Caching {
        self.caching
    }

    fn write_some_at(&self, offset_bytes: u64, block: &[u8]) -> Result<usize, IoError> {
        self.check(offset_bytes, block)?;
        let mut state = self.disk.state();
        let was_down = state.is_down();
        let stepped = state.step("write to", &self.path);
        if was_down {
            return stepped.map(|()| 0);
        }
        let offset = offset_bytes as usize;
        let seen = state.files[self.file].seen.len();
        let most = seen.saturating_add(usize::try_from(state.room_bytes()).unwrap_or(usize::MAX));
        // Room is given in whole blocks, as file systems do.
        let most = most - most % ALIGNMENT_BYTES;
        let mut taken = block.len().min(most.saturating_sub(offset));
        if taken == 0 && !block.is_empty() && stepped.is_ok() {
            let source = io::Error::from_raw_os_error(libc::ENOSPC);
            return Err(IoError::system("write to", &self.path, source));
        }
        // The write that fails, or meets the crash, may have reached the disk in part.
        if stepped.is_err() || (state.faults.short_writes && state.random.one_in(2)) {
            taken = self.front(taken, &mut state.random);
        }
        let bytes = block[..taken].to_vec();
        state.files[self.file].change(Change::Write { offset, bytes });
        stepped.map(|()| taken)
    }

    fn allocate(&self, len_bytes: u64) -> Result<bool, IoError> {
        let mut state = self.disk.state();
        state.step("take room for", &self.path)?;
        let seen = state.files[self.file].seen.len();
        let len = len_bytes as usize;
        if len > seen + MOST_AHEAD_BYTES || len.saturating_sub(seen) as u64 > state.room_bytes() {
            return Ok(false);
        }
        if len > seen {
            state.files[self.file].change(Change::Length(len));
        }
        Ok(true)
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), IoError> {
        let mut state = self.disk.state();
        state.step("cut", &self.path)?;
        state.files[self.file].change(Change::Length(len_bytes as usize));
        Ok(())
    }

    fn sync(&self) -> Result<(), IoError> {
        let mut state = self.disk.state();
        let stepped = state.step("sync", &self.path);
        let down = state.is_down();
        let state = &mut *state;
        let content = &mut state.files[self.file];
        match &stepped {
            Ok(()) => content.sync(),
            // What a crash loses is decided once, after it.
            Err(_) if down => {}
            Err(_) => content.lose(&mut state.random),
        }
        stepped
    }
}
