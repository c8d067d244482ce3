//! A file of the simulated disk.

use std::io;
use std::path::{Path, PathBuf};

use dyno_io::{ALIGNMENT_BYTES, Blocks, Caching, Device, IoError, Opening, Syncing};

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
    syncing: Syncing,
}

impl SimFile {
    pub(crate) fn new(disk: Disk, file: usize, path: &Path, opening: Opening) -> Self {
        let path = path.to_path_buf();
        Self {
            disk,
            file,
            path,
            caching: opening.caching,
            syncing: opening.syncing,
        }
    }

    /// Whether each write is stable when it ends.
    pub(crate) fn is_stable(&self) -> bool {
        self.syncing == Syncing::EachWrite
    }

    /// How seldom a queue's write ends.
    pub(crate) fn slow_one_in(&self) -> usize {
        match self.disk.state().faults.slow_one_in {
            0 => 3,
            looks => looks,
        }
    }

    /// Begins a write that is stable when it ends: not a step, but a crash may find it on the disk.
    pub(crate) fn begin(&self, offset_bytes: u64, block: &[u8]) -> Result<u64, IoError> {
        self.check(offset_bytes, block)?;
        let mut state = self.disk.state();
        let number = state.next_write;
        state.next_write += 1;
        // A write that a dead machine is given goes nowhere. It ends with an error, when it is
        // looked for.
        if state.is_down() {
            return Ok(number);
        }
        let offset = offset_bytes as usize;
        let seen = state.files[self.file].seen.len();
        let beyond = (offset + block.len()).saturating_sub(seen) as u64;
        // Room is looked at when the write begins, because bytes that are seen are counted as used
        // from then on.
        if beyond > state.room_bytes() {
            let source = io::Error::from_raw_os_error(libc::ENOSPC);
            return Err(IoError::system("write to", &self.path, source));
        }
        state.files[self.file].begin(number, offset, block.to_vec());
        Ok(number)
    }

    /// Ends such a write: a step.
    pub(crate) fn end(&self, number: u64) -> Result<usize, IoError> {
        let mut state = self.disk.state();
        let state = &mut *state;
        let stepped = state.step("write to", &self.path);
        if state.is_down() {
            return stepped.map(|()| 0);
        }
        if stepped.is_err() {
            state.files[self.file].fail(number, &mut state.random);
            return stepped.map(|()| 0);
        }
        let Some((offset, bytes)) = state.files[self.file].withdraw(number) else {
            return Ok(0);
        };
        let mut taken = bytes.len();
        if state.faults.short_writes && state.random.one_in(2) {
            taken = self.front(taken, &mut state.random);
        }
        match state.lie(offset) {
            None => state.files[self.file].settle(offset, &bytes[..taken]),
            Some(Some(elsewhere)) => state.files[self.file].settle(elsewhere, &bytes[..taken]),
            Some(None) => {}
        }
        Ok(taken)
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
        if self.is_stable() {
            return self.end(self.begin(offset_bytes, block)?);
        }
        self.check(offset_bytes, block)?;
        let mut state = self.disk.state();
        // The step itself may be the one at which the machine crashes. That write was going on and
        // may be on the disk, while one after the crash may not.
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
        // A refusal is an answer and not an error: callers go on without room that was taken ahead.
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

impl Blocks for SimFile {
    fn read_at(&self, offset_bytes: u64, block: &mut [u8]) -> Result<usize, IoError> {
        self.check(offset_bytes, block)?;
        let state = self.disk.state();
        if state.is_down() {
            let source = io::Error::other("the machine has crashed");
            return Err(IoError::system("read", &self.path, source));
        }
        let seen = &state.files[self.file].seen;
        let from = seen.get(offset_bytes as usize..).unwrap_or_default();
        let filled = from.len().min(block.len());
        block[..filled].copy_from_slice(&from[..filled]);
        Ok(filled)
    }

    fn len_bytes(&self) -> Result<u64, IoError> {
        Ok(self.disk.state().files[self.file].seen.len() as u64)
    }
}
