//! What a finished file is, beside the file: a job that begins again keeps what it finished.
//!
//! `DIR/.dyno-tpch/lineitem.3.parquet.json` is written before `DIR/lineitem/lineitem.3.parquet`
//! gets its name. A file whose length its receipt knows, from the same settings, is finished; any
//! other file under such a name belongs to another job.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;

const MAGIC: &str = "dyno-tpch-receipt";
const VERSION: u32 = 1;
/// Beside the files, where a pattern such as `DIR/*.parquet` does not find it.
pub(crate) const FOLDER: &str = ".dyno-tpch";

/// All that decides the bytes of a file, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    magic: String,
    version: u32,
    /// As the file's plan words them.
    pub(crate) settings: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// What stands under a final name.
#[derive(Debug, PartialEq)]
pub(crate) enum Standing {
    /// Nothing.
    Free,
    /// The file that is wanted.
    Finished(Receipt),
    /// Another one, and why it is another.
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

    /// Writes it, on stable storage before the file it speaks of appears.
    pub(crate) fn write(&self, root: &Path, file: &Path) -> Result<(), Error> {
        let path = path(root, file);
        let failed = |source: io::Error| Error::Write {
            path: path.clone(),
            source,
        };
        let folder = root.join(FOLDER);
        fs::create_dir_all(&folder).map_err(failed)?;
        let text = serde_json::to_vec(self).map_err(|e| failed(e.into()))?;
        let aside = path.with_extension("partial");
        fs::write(&aside, text).map_err(failed)?;
        let opened = fs::File::open(&aside).map_err(failed)?;
        opened.sync_data().map_err(failed)?;
        fs::rename(&aside, &path).map_err(failed)
    }
}

/// Looks at what is there for a file.
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
