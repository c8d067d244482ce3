//! Where a case's files are written: the scratch directory, memory, or nowhere.

use std::fs;
use std::path::{Path, PathBuf};

use dyno_tpch_files::Destination;

use crate::strays::memory_scratch;

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
                let folder = memory_scratch();
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
            // The error is ignored: the next run removes what is left.
            let _ = fs::remove_dir_all(folder);
        }
    }
}
