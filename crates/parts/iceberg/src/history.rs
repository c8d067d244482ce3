//! What a directory has of a table: the newest version, the manifests of each snapshot that it
//! keeps, and the data files of the current one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use dyno_io::Storage;

use crate::column::Column;
use crate::manifest::{LiveFile, ManifestFile, decode_list};
use crate::metadata::TableMetadata;
use crate::{Error, Result, files};

/// The name of the file with the number of the newest version.
pub(crate) const HINT: &str = "version-hint.text";
const SUFFIX: &str = ".metadata.json";

/// The newest version of a table.
#[derive(Debug, Clone)]
pub(crate) struct Newest {
    pub(crate) metadata: TableMetadata,
    /// The version that the hint names; `None` without a hint.
    pub(crate) hint: Option<i64>,
    /// The manifests of each snapshot, by its number.
    pub(crate) lists: BTreeMap<i64, Vec<ManifestFile>>,
    /// The data files of the current snapshot, by their location.
    pub(crate) live: BTreeMap<String, LiveFile>,
}

/// The name of a version's metadata.
pub(crate) fn metadata_name(version: i64) -> String {
    format!("v{version}{SUFFIX}")
}

/// The name of the manifest list that a version adds.
pub(crate) fn list_name(version: i64) -> String {
    format!("snap-{version}.avro")
}

/// The name of the manifest that a version adds.
pub(crate) fn manifest_name(version: i64) -> String {
    format!("manifest-{version}.avro")
}

/// Whether a name is one of those above, so that the file may be removed.
pub(crate) fn is_ours(name: &str) -> bool {
    let number = |prefix: &str, suffix: &str| {
        let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        digits.parse::<i64>().ok()
    };
    number("v", SUFFIX).is_some()
        || number("snap-", ".avro").is_some()
        || number("manifest-", ".avro").is_some()
}

impl Newest {
    /// Reads the newest version in the folder `metadata`; `None` if the folder has no version.
    ///
    /// # Errors
    /// [`Error::Foreign`] if another program has written there, [`Error::Damaged`].
    pub(crate) fn read(
        storage: &dyn Storage,
        folder: &Path,
        location: &str,
        columns: &[Column],
    ) -> Result<Option<Newest>> {
        let names = match storage.list(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            names => names?,
        };
        let mut newest = 0;
        for name in names {
            let Some(stem) = name.strip_suffix(SUFFIX) else {
                continue;
            };
            let version = stem
                .strip_prefix('v')
                .and_then(|digits| digits.parse().ok());
            let version: i64 = version.ok_or_else(|| Error::Foreign {
                path: folder.join(&name),
                reason: "another program manages this table, as the name says".to_owned(),
            })?;
            newest = newest.max(version);
        }
        let hint = hint(storage, folder)?;
        if newest == 0 {
            // Manifests without metadata are what a crash left before there was a first version.
            return match hint {
                None => Ok(None),
                Some(_) => Err(Error::Damaged {
                    path: folder.join(HINT),
                    reason: "it names a version that is missing".to_owned(),
                }),
            };
        }
        // A version is complete when it has its name, and the hint is written last. So the newest
        // version counts, whatever the hint says.
        let path = folder.join(metadata_name(newest));
        let bytes = existing(storage, &path)?;
        let metadata = TableMetadata::read(&bytes, newest, columns, &path)?;
        let mut found = Newest {
            metadata,
            hint,
            lists: BTreeMap::new(),
            live: BTreeMap::new(),
        };
        // A table that was moved refers to files at its old location, which are not looked for.
        if found.metadata.location == location {
            found.read_snapshots(storage, folder)?;
        }
        Ok(Some(found))
    }

    fn read_snapshots(&mut self, storage: &dyn Storage, folder: &Path) -> Result<()> {
        for snapshot in &self.metadata.snapshots {
            let path = folder.join(last_part(&snapshot.manifest_list));
            let list = decode_list(&existing(storage, &path)?, &path)?;
            self.lists.insert(snapshot.snapshot_id, list);
        }
        let current = self.lists.get(&self.metadata.current_snapshot_id);
        for manifest in current.into_iter().flatten() {
            let path = folder.join(last_part(&manifest.manifest_path));
            for live in manifest.live(&existing(storage, &path)?, &path)? {
                self.live.insert(live.file.file_path.clone(), live);
            }
        }
        Ok(())
    }

    /// The names of all files that this version refers to, and of its own.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let log = self.metadata.metadata_log.iter();
        let snapshots = self.metadata.snapshots.iter();
        let manifests = self.lists.values().flatten();
        let mut names: BTreeSet<String> = log
            .map(|entry| last_part(&entry.metadata_file))
            .chain(snapshots.map(|snapshot| last_part(&snapshot.manifest_list)))
            .chain(manifests.map(|manifest| last_part(&manifest.manifest_path)))
            .map(str::to_owned)
            .collect();
        names.insert(metadata_name(self.metadata.last_sequence_number));
        names
    }
}

fn hint(storage: &dyn Storage, folder: &Path) -> Result<Option<i64>> {
    let path = folder.join(HINT);
    let Some(bytes) = files::read(storage, &path)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let version = text.trim().parse();
    version.map(Some).map_err(|_| Error::Damaged {
        path,
        reason: format!("{:?} is not a version", text.trim()),
    })
}

fn existing(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>> {
    files::read(storage, path)?.ok_or_else(|| Error::Damaged {
        path: path.to_owned(),
        reason: "it is missing".to_owned(),
    })
}

/// The name of a file, from its location.
fn last_part(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or(location)
}
