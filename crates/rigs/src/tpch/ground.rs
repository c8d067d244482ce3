//! Where a case's files are written: the scratch directory, memory, or nowhere.

use std::fs;
use std::path::{Path, PathBuf};

use dyno_tpch_files::Destination;

use crate::strays::is_gone;

/// The tmpfs that every Linux mounts.
const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "dynolab-";

/// A directory for files. One in memory is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Ground {
    folder: Option<PathBuf>,
    own: bool,
}

impl Ground {
    /// `disk` is the scratch directory, which its owner removes.
    pub(super) fn new(place: &str, scratch: &Path) -> Result<Ground, String> {
        match place {
            "disk" => Ok(Ground {
                folder: Some(scratch.to_path_buf()),
                own: false,
            }),
            "memory" => {
                remove_strays();
                let folder = Path::new(MEMORY).join(format!("{PREFIX}{}", std::process::id()));
                fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
                Ok(Ground {
                    folder: Some(folder),
                    own: true,
                })
            }
            "null" => Ok(Ground {
                folder: None,
                own: false,
            }),
            other => Err(format!("`{other}` is not one of disk, memory and null")),
        }
    }

    pub(super) fn place(&self) -> Destination {
        match &self.folder {
            Some(folder) => Destination::Folder(folder.clone()),
            None => Destination::Nowhere,
        }
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let (true, Some(folder)) = (self.own, &self.folder) {
            // The error is ignored: the next invocation removes what is left.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Removes directories of processes that were killed before they could do it.
pub(crate) fn remove_strays() {
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        if owner.is_some_and(is_gone) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
