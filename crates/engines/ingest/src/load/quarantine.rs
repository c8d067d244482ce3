//! Writes the file of bad rows.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::scan::BadRow;
use crate::table::sync_directory;
use crate::{Error, Result};

/// Writes one JSON object per line: `source`, `line`, `reason`, and the raw bytes as `raw`, or as
/// `raw_hex` if they are not UTF-8. If [`BadRow::kept`] cuts them, `cut` says so. The file is
/// created with its first row.
pub struct Quarantine {
    path: PathBuf,
    source: String,
    out: Option<BufWriter<File>>,
    rows: u64,
    failure: Option<std::io::Error>,
}

impl Quarantine {
    /// A quarantine for rows of `source`, whose file will be at `path`.
    pub fn new(path: PathBuf, source: &Path) -> Self {
        Quarantine {
            path,
            source: source.display().to_string(),
            out: None,
            rows: 0,
            failure: None,
        }
    }

    /// The number of rows added so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds one row. An error in writing it is returned by [`Self::finish`].
    pub fn add(&mut self, row: &BadRow<'_>) {
        self.rows += 1;
        // After a failure the archive will not be committed, so later rows are only counted.
        if self.failure.is_none()
            && let Err(e) = self.write(row)
        {
            self.failure = Some(e);
        }
    }

    fn write(&mut self, row: &BadRow<'_>) -> std::io::Result<()> {
        let out = match &mut self.out {
            Some(out) => out,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        let mut object = json!({ "source": self.source, "line": row.line, "reason": row.reason });
        let (raw, cut) = row.kept();
        if cut {
            object["cut"] = true.into();
        }
        match std::str::from_utf8(raw) {
            Ok(text) => object["raw"] = text.into(),
            Err(_) => {
                object["raw_hex"] = raw
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
                    .into();
            }
        }
        serde_json::to_writer(&mut *out, &object)?;
        out.write_all(b"\n")
    }

    /// Makes the file durable. Returns whether there is one.
    ///
    /// # Errors
    /// [`Error::Io`], also for what went wrong while rows were added.
    pub fn finish(&mut self) -> Result<bool> {
        let failed = |e| Error::io("write", &self.path, e);
        if let Some(e) = self.failure.take() {
            return Err(failed(e));
        }
        let Some(out) = self.out.take() else {
            return Ok(false);
        };
        let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all()
            .map_err(|e| Error::io("sync", &self.path, e))?;
        Ok(true)
    }

    /// Renames the file so that it outlives the failed load.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep_as(&self, path: &Path) -> Result<()> {
        // The name has no generation, so this replaces the rejected rows of an earlier attempt.
        fs::rename(&self.path, path).map_err(|e| Error::io("rename", &self.path, e))?;
        path.parent().map_or(Ok(()), sync_directory)
    }
}
