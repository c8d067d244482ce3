//! The directory of a process's scratch files, which goes when the process ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;

use anyhow::Context;

/// Begins the names of the directories; the id of their process follows.
const PREFIX: &str = "scratch-";
/// A file in each directory that its process holds locked. The kernel releases the lock when the
/// process dies, however that happens.
const LOCK: &str = "owner.lock";

/// A directory that is removed when this is dropped.
pub struct ScratchDir {
    path: PathBuf,
    _lock: File,
}

impl ScratchDir {
    /// Makes the directory of this process below `parent`, and removes those of processes that were
    /// killed before they could do it: they may hold gigabytes.
    ///
    /// # Errors
    /// If it cannot be made, or is there already.
    pub fn new(parent: &Path) -> anyhow::Result<ScratchDir> {
        remove_abandoned(parent);
        let id = process::id();
        let path = parent.join(format!("{PREFIX}{id}"));
        // The directory gets its name when its lock is taken already. Another process that looks
        // for abandoned ones would otherwise remove it in between.
        let unlocked = parent.join(format!(".{PREFIX}{id}"));
        let make = || {
            fs::create_dir_all(&unlocked)?;
            let lock = File::create(unlocked.join(LOCK))?;
            lock.lock()?;
            fs::rename(&unlocked, &path)?;
            Ok::<File, std::io::Error>(lock)
        };
        let lock = make().with_context(|| format!("cannot make {}", path.display()))?;
        Ok(ScratchDir { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // What stays may be that of an invocation that failed and has said why. The next process
        // tries again.
        let _ = remove(&self.path);
    }
}

/// A process id would not tell which directories these are: where homes are shared, it may be one
/// of another machine.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_scratch = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let lock = File::open(entry.path().join(LOCK));
        if let (true, Ok(lock)) = (is_scratch, lock)
            && lock.try_lock().is_ok()
            && let Err(error) = remove(&entry.path())
        {
            let path = entry.path();
            eprintln!(
                "{}, which a killed process left, stays: {error}",
                path.display()
            );
        }
    }
}

/// Removes a directory, its lock last: without the lock, what cannot be removed now would not be
/// found again.
fn remove(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).expect("a directory").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect()
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not() {
        let parent = tempfile::tempdir().expect("a directory");
        let abandoned = parent.path().join("scratch-1");
        fs::create_dir_all(abandoned.join("load")).expect("made");
        File::create(abandoned.join(LOCK)).expect("made");
        let used = parent.path().join("scratch-2");
        fs::create_dir(&used).expect("made");
        let lock = File::create(used.join(LOCK)).expect("made");
        lock.lock().expect("locked");
        let data = parent.path().join("data");
        fs::create_dir(&data).expect("made");
        File::create(data.join(LOCK)).expect("made");

        let own = ScratchDir::new(parent.path()).expect("made");
        assert!(own.path().is_dir() && used.is_dir() && data.is_dir());
        assert!(!abandoned.exists());
        drop(own);
        assert_eq!(names(parent.path()).len(), 2, "{:?}", names(parent.path()));
        drop(lock);
        drop(ScratchDir::new(parent.path()));
        assert_eq!(names(parent.path()), ["data"]);
    }

    #[test]
    fn two_of_one_process_at_once_are_refused() {
        let parent = tempfile::tempdir().expect("a directory");
        let first = ScratchDir::new(parent.path()).expect("made");
        let second = ScratchDir::new(parent.path()).map(|second| second.path().to_owned());
        let error = second.expect_err("it is there").to_string();
        assert!(
            error.contains(&first.path().display().to_string()),
            "{error}"
        );
    }
}
