//! Lists the text files of a ZIP archive.

use std::fs::File;
use std::path::{Path, PathBuf};

use zip::{CompressionMethod, ZipArchive};

use crate::{Error, Result};

/// The position of one entry, so that it can be inflated without the ZIP reader.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Names of archive and entry, for messages.
    pub(super) name: PathBuf,
    /// Offset of its compressed bytes in the archive.
    pub(super) start: u64,
    /// Number of its compressed bytes.
    pub(super) compressed_bytes: u64,
    /// CRC-32 of its uncompressed text.
    pub(super) crc: u32,
    /// Whether it is deflated; if not, it is stored.
    pub(super) deflated: bool,
}

/// Lists the entries of the archive at `path`, in the archive's order.
pub(super) fn list(path: &Path, file: &File) -> Result<Vec<Entry>> {
    let refused = |reason: String| Error::Refused {
        path: path.to_owned(),
        reason,
    };
    let mut archive =
        ZipArchive::new(file).map_err(|e| refused(format!("not a usable ZIP: {e}")))?;
    let mut entries = Vec::new();
    for i in 0..archive.len() {
        let entry = archive
            .by_index_raw(i)
            .map_err(|e| refused(format!("entry {i}: {e}")))?;
        if entry.is_dir() {
            continue;
        }
        let name = entry
            .name()
            .map_err(|e| refused(format!("entry {i}: {e}")))?
            .into_owned();
        if entry.encrypted() {
            return Err(refused(format!("entry {name} is encrypted")));
        }
        // The text is inflated by our own decoder, which knows these two. The crate only reads the
        // directory.
        let deflated = match entry.compression() {
            CompressionMethod::STORE => false,
            CompressionMethod::DEFLATE => true,
            other => return Err(refused(format!("entry {name} is compressed with {other}"))),
        };
        entries.push(Entry {
            start: entry
                .data_start()
                .ok_or_else(|| refused(format!("entry {name} does not say where it is")))?,
            name: path.join(name),
            compressed_bytes: entry.compressed_size(),
            crc: entry.crc32(),
            deflated,
        });
    }
    if entries.is_empty() {
        return Err(refused("the ZIP has no file in it".to_owned()));
    }
    Ok(entries)
}
