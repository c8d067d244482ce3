//! A fresh directory per invocation, gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// Removes its directory when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes `root/name`, which must not have survived from an earlier run: if it did, it is
    /// removed first, since a child is promised an empty directory.
    pub(crate) fn fresh(root: &Path, name: &str) -> Result<Scratch, Error> {
        let path = root.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|e| Error::io(&path, e))?;
        }
        fs::create_dir_all(&path).map_err(|e| Error::io(&path, e))?;
        Ok(Scratch { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and says so when that fails: a full disk spoils what follows.
    pub(crate) fn remove(self) -> Result<(), Error> {
        fs::remove_dir_all(&self.path).map_err(|e| Error::io(&self.path, e))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Only reached with the directory still there on an error path that is reported already.
        let _ = fs::remove_dir_all(&self.path);
    }
}
