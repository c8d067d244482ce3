//! The disk: files, names, and the faults that were ordered.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_io::{
    Access, Blocks, Caching, Claim, Existing, FileSystem, IoError, Opening, Queue, Storage, Syncing,
};
use parking_lot::{Mutex, MutexGuard};

use crate::crash::{Change, Content, NameChange};
use crate::file::SimFile;
use crate::queue::SimQueue;
use dyno_random::Random;

/// How long an injected error lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// One step fails with EIO.
    Once {
        /// Number of the step, from 0.
        step: u64,
    },
    /// That step fails with EIO, and all after it.
    From {
        /// Number of the first step that fails, from 0.
        step: u64,
    },
}

/// What goes wrong. The default is nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Writes take a part of what they are given, sometimes nothing.
    pub short_writes: bool,
    /// Bytes that all files together may have; writes then take what fits, and fail with ENOSPC.
    pub space_bytes: Option<u64>,
    /// An error of the disk. A failing write may have written a part.
    pub failure: Option<Failure>,
    /// The machine crashes during this step; nothing works from then on.
    pub crash_step: Option<u64>,
    /// A write that is confirmed and is not where it should be. Only files opened with
    /// [`dyno_io::Syncing::EachWrite`] have these.
    pub lie: Option<Lie>,
    /// A queue's write ends at one look in so many; 0 stands for 3.
    pub slow_one_in: usize,
}

/// A disk that confirms what it did not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The write of this step is nowhere.
    Lost {
        /// Number of the step, from 0.
        step: u64,
    },
    /// The write of this step is one block further on.
    Misdirected {
        /// Number of the step, from 0.
        step: u64,
    },
}

/// A simulated disk; clones share it. Steps are counted from 0: creating, writing, taking room,
/// changing a length, syncing, renaming, removing.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug)]
pub(crate) struct State {
    pub faults: Faults,
    pub random: Random,
    pub files: Vec<Content>,
    pub names: BTreeMap<PathBuf, usize>,
    stable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
    steps: u64,
    crashed: bool,
    pub next_write: u64,
}

impl Disk {
    /// An empty disk, whose random faults come from `seed`.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(State {
            faults,
            random: Random::new(seed),
            files: Vec::new(),
            names: BTreeMap::new(),
            stable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            steps: 0,
            crashed: false,
            next_write: 0,
        })))
    }

    /// Puts a file there that is stable already. This is not a step.
    pub fn write(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let file = state.files.len();
        state.files.push(Content {
            seen: bytes.to_vec(),
            stable: bytes.to_vec(),
            ..Content::default()
        });
        state.names.insert(path.to_path_buf(), file);
        state.stable_names.insert(path.to_path_buf(), file);
    }

    /// Creates a file, or empties an old one.
    ///
    /// # Errors
    /// An injected fault.
    pub fn create(&self, path: &Path, caching: Caching) -> Result<SimFile, IoError> {
        let mut state = self.state();
        state.step("create", path)?;
        let file = match state.names.get(path) {
            Some(&file) => {
                // An old file keeps its number, so that handles that are open on it see the cut, as
                // they do on a real file system.
                state.files[file].change(Change::Length(0));
                file
            }
            None => {
                let file = state.files.len();
                state.files.push(Content::default());
                let path = path.to_path_buf();
                state.change_name(NameChange::Create { path, file });
                file
            }
        };
        drop(state);
        let opening = Opening {
            access: Access::Create,
            caching,
            syncing: Syncing::AtSync,
        };
        Ok(SimFile::new(self.clone(), file, path, opening))
    }

    /// Opens a file that is there, or creates one.
    ///
    /// # Errors
    /// "No such file", and an injected fault where it is created.
    pub fn open_file(&self, path: &Path, opening: Opening) -> Result<SimFile, IoError> {
        if opening.access == Access::Create {
            self.create(path, opening.caching)?;
        }
        let state = self.state();
        let Some(&file) = state.names.get(path) else {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            return Err(IoError::system("open", path, source));
        };
        drop(state);
        Ok(SimFile::new(self.clone(), file, path, opening))
    }

    /// Flips the bits of `mask` in one stable byte, as a rotting disk does. False when there is no
    /// such byte. This is not a step.
    pub fn damage(&self, path: &Path, offset_bytes: usize, mask: u8) -> bool {
        let mut state = self.state();
        let Some(&file) = state.names.get(path) else {
            return false;
        };
        let content = &mut state.files[file];
        let mut there = false;
        for bytes in [&mut content.seen, &mut content.stable] {
            if let Some(byte) = bytes.get_mut(offset_bytes) {
                *byte ^= mask;
                there = true;
            }
        }
        there
    }

    /// Replaces the faults from now on. Steps go on counting.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// The disk that the next process finds when this one is killed and the machine goes on: what
    /// was written is seen, but not stable; of the writes in flight some are.
    pub fn after_kill(&self, seed: u64) -> Self {
        let state = self.state();
        // The seeds of a kill and of a crash are turned apart, so that one number in a test does
        // not lose the same things in both.
        let mut random = Random::new(seed ^ 0x1656_67b1_9e37_79f9);
        let survive = |content: &Content| {
            let mut content = content.clone();
            content.settle_in_flight(&mut random);
            content
        };
        let files = state.files.iter().map(survive).collect();
        Self(Arc::new(Mutex::new(State {
            faults: Faults::default(),
            files,
            stable_names: state.stable_names.clone(),
            names: state.names.clone(),
            unsynced_names: state.unsynced_names.clone(),
            steps: 0,
            crashed: false,
            next_write: 0,
            random,
        })))
    }

    /// What a reader finds under a name.
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let file = *state.names.get(path)?;
        Some(state.files[file].seen.clone())
    }

    /// All names that users see, in order of the paths.
    pub fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// How many steps were taken so far, failed ones included.
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// The disk that is found after a crash at this moment, or at the crash that was ordered. It
    /// has no faults. Different seeds lose different things.
    pub fn after_crash(&self, seed: u64) -> Self {
        let state = self.state();
        let mut random = Random::new(seed ^ 0xc2b2_ae3d_27d4_eb4f);
        let mut names = state.stable_names.clone();
        // Changes of names survive each on its own, so one that depends on a lost one may survive
        // as well. That is weaker than what ext4 and XFS promise.
        for change in &state.unsynced_names {
            if random.one_in(2) {
                change.apply(&mut names);
            }
        }
        let survive = |content: &Content| {
            let mut content = content.clone();
            content.lose(&mut random);
            content.seen = content.stable.clone();
            content
        };
        let files = state.files.iter().map(survive).collect();
        Self(Arc::new(Mutex::new(State {
            faults: Faults::default(),
            files,
            stable_names: names.clone(),
            names,
            unsynced_names: Vec::new(),
            steps: 0,
            crashed: false,
            next_write: 0,
            random,
        })))
    }

    /// Locks the state. A test that panicked with the lock held shows its own panic, because this
    /// lock knows no poison.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    /// Counts a step and says whether it fails.
    pub fn step(&mut self, action: &'static str, path: &Path) -> Result<(), IoError> {
        let step = self.steps;
        self.steps += 1;
        // A crash comes before the fault of the same step: what a dead machine would have answered
        // is not seen.
        self.crashed |= self.faults.crash_step == Some(step);
        let failing = match self.faults.failure {
            Some(Failure::Once { step: at }) => step == at,
            Some(Failure::From { step: from }) => step >= from,
            None => false,
        };
        if self.crashed {
            let source = io::Error::other("the machine has crashed");
            return Err(IoError::system(action, path, source));
        }
        if failing {
            let source = io::Error::from_raw_os_error(libc::EIO);
            return Err(IoError::system(action, path, source));
        }
        Ok(())
    }

    /// Whether the step just taken is a lie, and where its bytes go if anywhere.
    pub fn lie(&self, offset: usize) -> Option<Option<usize>> {
        // The step of this write was counted just before.
        let now = self.steps.checked_sub(1)?;
        match self.faults.lie? {
            Lie::Lost { step } => (step == now).then_some(None),
            Lie::Misdirected { step } => {
                (step == now).then_some(Some(offset + dyno_io::ALIGNMENT_BYTES))
            }
        }
    }

    /// Whether the machine has crashed.
    pub fn is_down(&self) -> bool {
        self.crashed
    }

    /// Bytes that may still be written; without a limit the most there can be.
    pub fn room_bytes(&self) -> u64 {
        let Some(space_bytes) = self.faults.space_bytes else {
            return u64::MAX;
        };
        let used = self.names.values().map(|&file| self.files[file].seen.len());
        space_bytes.saturating_sub(used.sum::<usize>() as u64)
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }
}

impl FileSystem for Disk {
    fn claim(&self, _path: &Path) -> Result<Claim, IoError> {
        Ok(Claim::uncontested())
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        Ok(self.state().names.contains_key(path))
    }

    fn rename(&self, from: &Path, to: &Path, existing: Existing) -> Result<(), IoError> {
        const ACTION: &str = "give its final name to";
        let mut state = self.state();
        state.step(ACTION, to)?;
        let Some(&file) = state.names.get(from) else {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            return Err(IoError::system(ACTION, to, source));
        };
        let (from, to) = (from.to_path_buf(), to.to_path_buf());
        // The check and the rename are one step, as with RENAME_NOREPLACE: no other writer comes
        // between them.
        if existing == Existing::Refuse && state.names.contains_key(&to) {
            return Err(IoError::Exists { path: to });
        }
        state.change_name(NameChange::Rename { from, to, file });
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), IoError> {
        let mut state = self.state();
        state.step("remove", path)?;
        if !state.names.contains_key(path) {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            return Err(IoError::system("remove", path, source));
        }
        let path = path.to_path_buf();
        state.change_name(NameChange::Remove { path });
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), IoError> {
        let mut state = self.state();
        state.step("sync the directory", directory)?;
        for change in std::mem::take(&mut state.unsynced_names) {
            if change.path().parent() == Some(directory) {
                change.apply(&mut state.stable_names);
            } else {
                state.unsynced_names.push(change);
            }
        }
        Ok(())
    }
}

impl Storage for Disk {
    /// Directories are there by themselves.
    fn make_directory(&self, _directory: &Path) -> Result<(), IoError> {
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, IoError> {
        let inside = |path: &PathBuf| {
            let name = path.file_name()?.to_str()?;
            (path.parent() == Some(directory)).then(|| name.to_owned())
        };
        Ok(self.state().names.keys().filter_map(inside).collect())
    }

    fn open(&self, path: &Path, opening: Opening) -> Result<Box<dyn Blocks>, IoError> {
        Ok(Box::new(self.open_file(path, opening)?))
    }

    fn queue(
        &self,
        path: &Path,
        opening: Opening,
        depth: usize,
    ) -> Result<Box<dyn Queue>, IoError> {
        let file = self.open_file(path, opening)?;
        let seed = self.state().random.bits();
        Ok(Box::new(SimQueue::new(file, depth, seed)))
    }

    fn room_bytes(&self, _directory: &Path) -> Result<u64, IoError> {
        Ok(self.state().room_bytes())
    }
}
