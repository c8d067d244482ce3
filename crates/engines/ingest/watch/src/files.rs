//! Finds the files of a folder that are complete and have not been handled yet.
//!
//! A file counts as complete when its length, its times and its place on the disk were the same at
//! two looks that lie the settling time apart. That holds for all ways in which files come: one
//! that is renamed into the folder settles at once, one that is copied or downloaded into it
//! settles when its writer is done. Events of inotify would tell of a closed file sooner, but not
//! on network file systems, not of a file that its writer opens again, and not of what came while
//! it did not run. Clocks are not compared: a file server's may differ.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::WatchError;

/// Name endings that programs give to unfinished files.
const UNFINISHED: [&str; 9] = [
    ".partial",
    ".part",
    ".tmp",
    ".temp",
    ".crdownload",
    ".open",
    ".closing",
    ".lock",
    "~",
];

/// The properties that change when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    device: u64,
    inode: u64,
    modified_ns: (i64, i64),
    changed_ns: (i64, i64),
}

/// A file as the listings so far have shown it.
#[derive(Debug)]
struct ListedFile {
    stamp: Stamp,
    /// When a listing first showed this version.
    since: Instant,
    /// Whether this version of the file was loaded or refused.
    done: bool,
}

/// The files of one folder, as the last listing saw them.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    settle: Duration,
    listed: BTreeMap<PathBuf, ListedFile>,
    /// Why the last listing could not examine one of the entries.
    unreadable: Option<WatchError>,
}

impl Files {
    /// Watches `folder`; a file is complete once it has not changed for `settle`.
    pub fn new(folder: &Path, settle: Duration) -> Files {
        Files {
            folder: folder.to_owned(),
            settle,
            listed: BTreeMap::new(),
            unreadable: None,
        }
    }

    /// Lists the folder and returns the files that are complete and not handled yet, by name. Skips
    /// folders, hidden files, and files whose names mark them as unfinished.
    ///
    /// # Errors
    /// [`WatchError::Folder`] if the folder itself cannot be listed.
    pub fn look(&mut self, now: Instant) -> Result<Vec<PathBuf>, WatchError> {
        let failed = |e| WatchError::folder("list", &self.folder, e);
        let (mut there, mut unreadable) = (BTreeMap::new(), None);
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if !is_finished(&path) {
                continue;
            }
            match stamp(&path) {
                Ok(Some(stamp)) => {
                    there.insert(path, stamp);
                }
                Ok(None) => {}
                // For example a link that leads to itself, or to where we may not look. The other
                // files must not wait until it is repaired.
                Err(e) => unreadable = Some(WatchError::folder("look at", &path, e)),
            }
        }
        self.unreadable = unreadable;
        // A name that is gone is forgotten, so that a file that later gets it has to settle anew,
        // even if it looks like the old one.
        self.listed.retain(|path, _| there.contains_key(path));
        for (path, stamp) in there {
            // The settling time begins when we see the file and not when it was changed, because
            // the clock of a file server may differ from ours.
            let file = self.listed.entry(path).or_insert(ListedFile {
                stamp,
                since: now,
                done: false,
            });
            if file.stamp != stamp {
                *file = ListedFile {
                    stamp,
                    since: now,
                    done: false,
                };
            }
        }
        let settled =
            |file: &ListedFile| !file.done && now.duration_since(file.since) >= self.settle;
        let ready = self.listed.iter().filter(|(_, file)| settled(file));
        Ok(ready.map(|(path, _)| path.clone()).collect())
    }

    /// Marks a file as handled, in the version that the last listing saw.
    pub fn done(&mut self, path: &Path) {
        // If the file has changed since the listing, its next stamp differs from this one, and it
        // is loaded again.
        if let Some(file) = self.listed.get_mut(path) {
            file.done = true;
        }
    }

    /// Why the last listing could not examine one of the entries, once; `None` if it could examine
    /// all of them. Such entries are not among the files.
    pub fn take_unreadable(&mut self) -> Option<WatchError> {
        self.unreadable.take()
    }

    /// Whether the last listing saw a file of this name.
    pub fn has(&self, path: &Path) -> bool {
        self.listed.contains_key(path)
    }

    /// How many files have not been handled, complete or not.
    pub fn waiting(&self) -> usize {
        self.listed.values().filter(|file| !file.done).count()
    }
}

fn is_finished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !UNFINISHED.iter().any(|end| name.ends_with(end))
}

/// The properties of a file; `None` if it is gone or not a regular file.
fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        // The file was removed after its name was listed.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(meta.is_file().then(|| Stamp {
        bytes: meta.len(),
        device: meta.dev(),
        inode: meta.ino(),
        modified_ns: (meta.mtime(), meta.mtime_nsec()),
        changed_ns: (meta.ctime(), meta.ctime_nsec()),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const SETTLE: Duration = Duration::from_secs(2);

    #[test]
    fn a_file_is_ready_when_it_has_not_changed_for_the_settling_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let mut files = Files::new(folder.path(), SETTLE);
        let begun = Instant::now();
        let look = |files: &mut Files, s: u64| files.look(begun + Duration::from_secs(s));
        fs::write(&file, "1").unwrap();
        assert_eq!(look(&mut files, 0).unwrap(), [] as [PathBuf; 0]);
        fs::write(&file, "12").unwrap();
        // The file was seen long enough ago, but not in this version.
        assert_eq!(look(&mut files, 2).unwrap(), [] as [PathBuf; 0]);
        assert_eq!(look(&mut files, 4).unwrap(), std::slice::from_ref(&file));
        assert_eq!(files.waiting(), 1);
        files.done(&file);
        assert_eq!(look(&mut files, 9).unwrap(), [] as [PathBuf; 0]);
        assert_eq!(files.waiting(), 0);
        // Another file of the same length and time is renamed over it.
        let other = folder.path().join(".b");
        fs::write(&other, "21").unwrap();
        let times = fs::metadata(&file).unwrap().modified().unwrap();
        fs::File::options()
            .write(true)
            .open(&other)
            .unwrap()
            .set_modified(times)
            .unwrap();
        fs::rename(&other, &file).unwrap();
        assert_eq!(look(&mut files, 10).unwrap(), [] as [PathBuf; 0]);
        assert_eq!(look(&mut files, 12).unwrap(), std::slice::from_ref(&file));
        fs::remove_file(&file).unwrap();
        assert_eq!(look(&mut files, 13).unwrap(), [] as [PathBuf; 0]);
        assert!(!files.has(&file));
    }

    #[test]
    fn what_is_not_complete_by_its_name_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".hidden.csv", "a.csv.partial", "b.jsonl.open", "c.csv~"] {
            fs::write(folder.path().join(name), "1").unwrap();
        }
        fs::create_dir(folder.path().join("d.csv")).unwrap();
        let mut files = Files::new(folder.path(), Duration::ZERO);
        assert_eq!(files.look(Instant::now()).unwrap(), [] as [PathBuf; 0]);
        let missing = folder.path().join("missing");
        let error = Files::new(&missing, SETTLE).look(Instant::now());
        assert!(error.unwrap_err().to_string().contains("cannot list"));
    }
}
