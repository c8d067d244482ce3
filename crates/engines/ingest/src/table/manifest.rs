//! The manifest: the archives in the table and their files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Position, span, sync_directory};
use crate::{Error, Result};

/// The newest version that this program reads and writes; a newer one is refused by name.
pub const MANIFEST_VERSION: u32 = 3;
/// The version of a table with only WSPR, so that programs which know no other feed can still read
/// it.
const WSPR_ONLY_VERSION: u32 = 1;
/// The version of a table with other feeds.
const FEEDS_VERSION: u32 = 2;
/// The version of a table with a catalogue, which a program that does not know it would let fall
/// behind.
const CATALOGUE_VERSION: u32 = 3;

/// The feed of archives that do not name one.
pub const WSPR: &str = "wspr";

const MAGIC: &str = "dyno-spots-table";
const FILE_NAME: &str = "manifest.json";

/// One committed snapshot of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    magic: String,
    version: u32,
    /// Increases by one with every commit.
    pub generation: u64,
    /// The catalogue that describes the table to other programs, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Catalog>,
    /// The ledger: maps an archive's identity (`wspr/2023-01`) to what the table has of it.
    pub archives: BTreeMap<String, Archive>,
}

/// A form in which a table is described to other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Catalog {
    /// Iceberg metadata in the table's folder `metadata`. The data files have the types of Iceberg.
    Iceberg,
}

/// What the table has of one archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    /// The feed whose columns its files have; absent for [`WSPR`], as in version 1.
    #[serde(default = "wspr", skip_serializing_if = "is_wspr")]
    pub feed: String,
    /// The file it was read from.
    pub source: SourceIdentity,
    /// Its data files; none if the archive has no good row.
    pub files: Vec<DataFile>,
    /// Good rows, which are in the data files.
    pub rows: u64,
    /// Rows that are in quarantine.
    pub bad_rows: u64,
    /// Quarantine file relative to the table, if there are bad rows.
    pub quarantine: Option<String>,
    /// The generation that committed it.
    pub generation: u64,
    /// Unix seconds of the commit.
    pub loaded_at_s: u64,
}

/// Decides whether a file has been loaded already: its length and the hash of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceIdentity {
    /// The path as it was given.
    pub path: String,
    /// Length of the file as stored (compressed) in bytes.
    pub bytes: u64,
    /// XXH3-128 of those bytes, 32 hex digits.
    pub hash: String,
}

/// One Parquet file of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Path relative to the table.
    pub path: String,
    /// Rows in this file.
    pub rows: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Earliest timestamp in Unix seconds; both are 0 if no row has one.
    pub time_min_s: i64,
    /// Latest timestamp in Unix seconds.
    pub time_max_s: i64,
}

/// A data file that differs from what the manifest says. Loading the archive again repairs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The archive whose rows the file has.
    pub archive: String,
    /// The file that the archive was loaded from.
    pub source: String,
    /// Path of the data file, relative to the table.
    pub file: String,
    /// How the file differs.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "archive {}: {} {}", self.archive, self.file, self.reason)
    }
}

impl Archive {
    /// Its data files that are missing from `table` or have another length.
    pub(super) fn damage(&self, identity: &str, table: &Path) -> Vec<Damage> {
        // The length is all that is compared: reading the contents would make each load read the
        // table first.
        let wrong = |file: &DataFile| match fs::metadata(table.join(&file.path)) {
            Ok(metadata) if metadata.len() == file.bytes => None,
            Ok(metadata) => Some(format!(
                "has {} bytes and should have {}",
                metadata.len(),
                file.bytes
            )),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some("is missing".to_owned()),
            Err(e) => Some(format!("cannot be read: {e}")),
        };
        let damaged = self.files.iter().filter_map(|file| {
            Some(Damage {
                archive: identity.to_owned(),
                source: self.source.path.clone(),
                file: file.path.clone(),
                reason: wrong(file)?,
            })
        });
        damaged.collect()
    }
}

fn wspr() -> String {
    WSPR.to_owned()
}

fn is_wspr(feed: &str) -> bool {
    feed == WSPR
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest {
            magic: MAGIC.to_owned(),
            version: WSPR_ONLY_VERSION,
            generation: 0,
            catalog: None,
            archives: BTreeMap::new(),
        }
    }
}

impl Manifest {
    /// Reads the committed manifest of `table`; `None` if nothing was ever committed there.
    ///
    /// # Errors
    /// [`Error::Manifest`] when it is not ours, torn or of a newer version.
    pub fn read(table: &Path) -> Result<Option<Manifest>> {
        let path = table.join(FILE_NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", &path, e)),
        };
        let wrong = |reason: String| Error::Manifest {
            path: path.clone(),
            reason,
        };
        // The version is checked first, so that a newer form is refused by its version and not by
        // the first field that it changed.
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if value.get("magic").and_then(|m| m.as_str()) != Some(MAGIC) {
            return Err(wrong(format!(
                "it lacks \"magic\": \"{MAGIC}\", so it is not a spots table"
            )));
        }
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(1..=3) => {}
            Some(v) => {
                return Err(wrong(format!(
                    "it has version {v}, this program reads versions 1 to {MANIFEST_VERSION}"
                )));
            }
            None => return Err(wrong("it has no version".to_owned())),
        }
        serde_json::from_value(value)
            .map(Some)
            .map_err(|e| wrong(e.to_string()))
    }

    /// Replaces what the table has of one archive.
    pub(super) fn insert(&mut self, identity: String, archive: Archive) {
        self.archives.insert(identity, archive);
        self.set_version();
    }

    /// Gives the table a catalogue.
    pub(super) fn set_catalog(&mut self, catalog: Catalog) {
        self.catalog = Some(catalog);
        self.set_version();
    }

    /// States the oldest version that has all that is in the manifest.
    fn set_version(&mut self) {
        let others = self.archives.values().any(|a| a.feed != WSPR);
        self.version = match (self.catalog, others) {
            (Some(_), _) => CATALOGUE_VERSION,
            (None, true) => FEEDS_VERSION,
            (None, false) => WSPR_ONLY_VERSION,
        };
    }

    /// Replaces the committed manifest. After a crash either the old or the new one is there.
    pub(super) fn commit(&self, table: &Path) -> Result<()> {
        // The temporary name is fixed because only the one writer commits. It overwrites what a
        // killed one left.
        let next = table.join("manifest.json.next");
        let path = table.join(FILE_NAME);
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| Error::Manifest {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        text.push(b'\n');
        let mut file = File::create(&next).map_err(|e| Error::io("create", &next, e))?;
        file.write_all(&text)
            .map_err(|e| Error::io("write", &next, e))?;
        // The contents become durable before the name does. Otherwise a power cut could leave an
        // empty file under the final name, and the table would be lost.
        file.sync_all().map_err(|e| Error::io("sync", &next, e))?;
        fs::rename(&next, &path).map_err(|e| Error::io("rename", &next, e))?;
        // The commit is reported only when the rename itself would survive a power cut.
        sync_directory(table)
    }

    /// The position of each stream whose spans are archives of the table, by stream name.
    pub fn positions(&self) -> BTreeMap<String, Position> {
        span::positions(&self.archives)
    }

    /// The data files that differ from what this manifest says. A file's length reveals removal and
    /// truncation; its contents are not read.
    pub fn damage(&self, table: &Path) -> Vec<Damage> {
        let archives = self.archives.iter();
        archives
            .flat_map(|(identity, archive)| archive.damage(identity, table))
            .collect()
    }

    /// Good rows of all archives.
    pub fn rows(&self) -> u64 {
        self.archives.values().map(|a| a.rows).sum()
    }

    /// Bad rows of all archives, which are in quarantine.
    pub fn bad_rows(&self) -> u64 {
        self.archives.values().map(|a| a.bad_rows).sum()
    }

    /// Bytes of all data files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|f| f.bytes).sum()
    }

    /// All data files, archive by archive.
    pub fn files(&self) -> impl Iterator<Item = &DataFile> {
        self.archives.values().flat_map(|a| &a.files)
    }

    /// The data files of one feed.
    pub fn files_of(&self, feed: &str) -> impl Iterator<Item = &DataFile> {
        self.archives
            .values()
            .filter(move |a| a.feed == feed)
            .flat_map(|a| &a.files)
    }

    /// Whether `path`, relative to the table, belongs to this snapshot.
    pub(super) fn names(&self, path: &str) -> bool {
        self.archives.values().any(|a| {
            a.quarantine.as_deref() == Some(path) || a.files.iter().any(|f| f.path == path)
        })
    }
}
