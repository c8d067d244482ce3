//! Receipts of finished files, by which a job that begins again keeps what it has finished.
//!
//! `DIR/.dyno-tpch/lineitem.3.parquet.json` is written before `DIR/lineitem/lineitem.3.parquet`
//! gets its name. A file is finished if it has the length of its receipt and the same settings. Any
//! other file with such a name belongs to another job.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dyno_io::{Access, Caching, Existing, Opening, Storage, Syncing, write_whole};
use serde::{Deserialize, Serialize};

use crate::error::Error;

const MAGIC: &str = "dyno-tpch-receipt";
const VERSION: u32 = 1;
/// The folder of receipts, where a pattern such as `DIR/*.parquet` does not find them.
pub(crate) const FOLDER: &str = ".dyno-tpch";

/// The settings on which the bytes of a file depend, and its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    magic: String,
    version: u32,
    /// The settings in the words of the file's plan.
    pub(crate) settings: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// What is there under a final name.
#[derive(Debug, PartialEq)]
pub(crate) enum Standing {
    /// There is no file.
    Free,
    /// The file that is wanted, with its receipt.
    Finished(Receipt),
    /// Another file, with the reason why it is not the one wanted.
    Foreign(String),
}

impl Receipt {
    pub(crate) fn new(settings: String, rows: u64, bytes: u64) -> Receipt {
        Receipt {
            magic: MAGIC.to_owned(),
            version: VERSION,
            settings,
            rows,
            bytes,
        }
    }

    /// Writes the receipt. When this returns, it is on stable storage under its name.
    pub(crate) fn write(
        &self,
        storage: &dyn Storage,
        root: &Path,
        file: &Path,
    ) -> Result<(), Error> {
        let path = path(root, file);
        let folder = root.join(FOLDER);
        storage.make_directory(&folder)?;
        let text = serde_json::to_vec(self).map_err(|e| Error::Write {
            path: path.clone(),
            source: e.into(),
        })?;
        let aside = path.with_extension("partial");
        let opening = Opening {
            access: Access::Create,
            caching: Caching::Cached,
            syncing: Syncing::AtSync,
        };
        let written = storage.open(&aside, opening)?;
        write_whole(&*written, 0, &text)?;
        written.sync()?;
        // Half a receipt must never have its name, because it would make a finished file a foreign
        // one.
        storage.rename(&aside, &path, Existing::Replace)?;
        // Without these a crash may keep the file, whose own folder is synced when it gets its
        // name, and lose the receipt. Another run of the job would then refuse the file as one that
        // it did not write.
        storage.sync_directory(&folder)?;
        let root_is_named = !root.as_os_str().is_empty();
        storage
            .sync_directory(if root_is_named { root } else { Path::new(".") })
            .map_err(Error::from)
    }
}

/// Finds out what is there under a file's final name.
pub(crate) fn standing(root: &Path, file: &Path, settings: &str) -> Result<Standing, Error> {
    let failed = |path: &Path, source: io::Error| Error::Write {
        path: path.to_path_buf(),
        source,
    };
    let length = match fs::metadata(file) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Standing::Free),
        Err(e) => return Err(failed(file, e)),
    };
    let path = path(root, file);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(Standing::Foreign("it has no receipt".to_owned()));
        }
        Err(e) => return Err(failed(&path, e)),
    };
    let receipt: Receipt = match serde_json::from_slice(&text) {
        Ok(receipt) => receipt,
        Err(e) => {
            return Ok(Standing::Foreign(format!(
                "its receipt {} cannot be read: {e}",
                path.display()
            )));
        }
    };
    Ok(if receipt.magic != MAGIC {
        Standing::Foreign(format!("{} is not a receipt", path.display()))
    } else if receipt.version != VERSION {
        Standing::Foreign(format!(
            "its receipt has version {}, this program knows {VERSION}",
            receipt.version
        ))
    } else if receipt.bytes != length {
        Standing::Foreign(format!(
            "it has {length} bytes, its receipt says {}",
            receipt.bytes
        ))
    } else if receipt.settings != settings {
        Standing::Foreign(format!("it was made with {}", receipt.settings))
    } else {
        Standing::Finished(receipt)
    })
}

fn path(root: &Path, file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    root.join(FOLDER).join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_sim::{Disk, Faults};

    #[test]
    fn a_receipt_that_was_written_is_there_after_a_crash() {
        let (root, file) = (Path::new("/out"), Path::new("/out/nation/nation.1.csv"));
        for seed in 0..20 {
            let disk = Disk::new(seed, Faults::default());
            let receipt = Receipt::new("--sf 1".to_owned(), 25, 2_224);
            receipt.write(&disk, root, file).expect("no faults");
            let found = disk.after_crash(seed).read(&path(root, file));
            let found = found.expect("it is there after a crash");
            let found: Receipt = serde_json::from_slice(&found).expect("it is whole");
            assert_eq!(found, receipt);
        }
    }
}
