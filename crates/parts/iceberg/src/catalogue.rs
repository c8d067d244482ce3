//! Brings the metadata up to date with the files that the owner of a table has committed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_formats::parquet_read::FileStatistics;
use dyno_io::{Existing, Storage};

use crate::column::Column;
use crate::history::{HINT, Newest, is_ours, list_name, manifest_name, metadata_name};
use crate::manifest::{self, Changes, FileEntry, LiveFile, ManifestFile};
use crate::metadata::{MetadataLog, Snapshot, TableMetadata};
use crate::{Error, Result, files};

/// The most snapshots that are kept, for readers that want an earlier state.
const SNAPSHOTS_MAX: usize = 100;
/// The most earlier versions of the metadata that are kept.
const VERSIONS_MAX: usize = 20;
/// With so many manifests the next commit writes one for all of them, because a reader opens each.
const MANIFESTS_MAX: usize = 100;
/// The key in a snapshot's summary that has the owner's number of the state.
const GENERATION: &str = "dyno.generation";
/// The key by which snapshots say who wrote them.
const ENGINE: &str = "engine-name";

/// The Iceberg metadata of one table. Only one program may have it open for commits; the owner of
/// the table sees to that.
#[derive(Debug)]
pub struct Catalogue {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    location: String,
    columns: Vec<Column>,
    newest: Option<Newest>,
    /// Whether a commit failed, so that what is on the disk must be read again.
    in_doubt: bool,
}

/// A state of the table that the owner has committed.
#[derive(Debug)]
pub struct Commit {
    /// The owner's number of the state. The snapshot keeps it.
    pub generation: u64,
    /// Milliseconds since 1970 of the commit.
    pub at_ms: i64,
    /// All data files of the table.
    pub files: Vec<DataFile>,
    /// What becomes of earlier snapshots.
    pub past: Past,
}

/// A data file of the table.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// The number of its rows, as its footer states it.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What becomes of earlier snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// They stay readable until a data file of theirs leaves the table.
    Kept,
    /// The table begins anew, with one snapshot, because files may have changed under their names.
    Forgotten,
}

impl Catalogue {
    /// Opens the metadata of the table in `directory`, an absolute path, whose files have these
    /// columns. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Location`]; [`Error::Foreign`] and [`Error::Damaged`] for what is there already.
    pub fn open(
        storage: Arc<dyn Storage>,
        directory: &Path,
        columns: Vec<Column>,
    ) -> Result<Catalogue> {
        let mut catalogue = Catalogue {
            storage,
            folder: directory.join("metadata"),
            location: location(directory)?,
            columns,
            newest: None,
            in_doubt: false,
        };
        catalogue.read()?;
        Ok(catalogue)
    }

    fn read(&mut self) -> Result<()> {
        self.newest = Newest::read(&*self.storage, &self.folder, &self.location, &self.columns)?;
        self.in_doubt = false;
        Ok(())
    }

    /// Writes a version whose current snapshot is this state, and returns whether it did: a state
    /// that is there already is not written again.
    ///
    /// `statistics` reads the footer of a data file that is new.
    ///
    /// # Errors
    /// [`Error::Io`], or that of `statistics`. Readers then see the version before, and the next
    /// commit writes what is missing.
    pub fn commit(
        &mut self,
        commit: &Commit,
        statistics: impl Fn(&Path) -> Result<FileStatistics>,
    ) -> Result<bool> {
        if self.in_doubt {
            self.read()?;
        }
        // Set before the first byte is written, because a failure halfway leaves files that
        // `newest` does not know. Only the directory then says which version readers see.
        self.in_doubt = true;
        let written = self.write(commit, &statistics)?;
        self.in_doubt = false;
        Ok(written)
    }

    fn write(
        &mut self,
        commit: &Commit,
        statistics: &dyn Fn(&Path) -> Result<FileStatistics>,
    ) -> Result<bool> {
        let mut wanted = BTreeMap::new();
        for file in &commit.files {
            wanted.insert(location(&file.path)?, file);
        }
        if let Some(newest) = &mut self.newest
            && newest.is_state(commit, &wanted, &self.location)
        {
            // A crash between the two renames left the version without its hint.
            let version = newest.metadata.last_sequence_number;
            if newest.hint != Some(version) {
                write_hint(&*self.storage, &self.folder, version)?;
                newest.hint = Some(version);
            }
            return Ok(false);
        }
        let before = self.base(commit);
        let next = self.next(&before, commit, &wanted, statistics)?;
        self.publish(&next)?;
        // Readers that opened the version before may still go from its metadata to its manifests,
        // so its files stay until the next commit.
        let mut keep = next.names();
        keep.extend(self.newest.iter().flat_map(Newest::names));
        self.clean(&keep);
        self.newest = Some(next);
        Ok(true)
    }

    /// The version that the next one is made from, without what does not count any more.
    fn base(&self, commit: &Commit) -> Newest {
        let mut base = self.newest.clone().unwrap_or_else(|| Newest {
            metadata: TableMetadata::new(&self.location, &self.columns, commit.at_ms),
            hint: None,
            lists: BTreeMap::new(),
            live: BTreeMap::new(),
        });
        // Snapshots of a table that was moved refer to files where it was before.
        let is_moved = base.metadata.location != self.location;
        if is_moved || commit.past == Past::Forgotten {
            base.live.clear();
            base.forget_snapshots();
            base.metadata.current_snapshot_id = 0;
            base.metadata.metadata_log.clear();
            base.metadata.location.clone_from(&self.location);
        }
        base
    }

    /// Writes the manifest and the manifest list of the next version, and returns that version.
    fn next(
        &self,
        before: &Newest,
        commit: &Commit,
        wanted: &BTreeMap<String, &DataFile>,
        statistics: &dyn Fn(&Path) -> Result<FileStatistics>,
    ) -> Result<Newest> {
        let mut next = before.clone();
        let version = before.metadata.last_sequence_number + 1;
        let gone =
            |(at, live): &(&String, &LiveFile)| !wanted.get(*at).is_some_and(|file| live.is(file));
        let deleted = before.live.iter().filter(gone);
        let deleted: Vec<&LiveFile> = deleted.map(|(_, live)| live).collect();
        for live in &deleted {
            next.live.remove(&live.file.file_path);
        }
        let added = self.added(&next, wanted, statistics)?;
        let parent = (before.metadata.current_snapshot_id != 0)
            .then_some(before.metadata.current_snapshot_id);
        let manifests = self.write_manifests(&next, version, parent, &added, &deleted)?;
        // The owner removes files that have left the table, and with them the earlier snapshots.
        if !deleted.is_empty() {
            next.forget_snapshots();
        }
        next.lists.insert(version, manifests);
        if parent.is_some() {
            next.metadata.metadata_log.push(MetadataLog {
                timestamp_ms: before.metadata.last_updated_ms,
                metadata_file: self.at(&metadata_name(version - 1)),
            });
        }
        next.metadata.add(Snapshot {
            snapshot_id: version,
            parent_snapshot_id: parent,
            sequence_number: version,
            // Clocks step back, and readers want versions in the order of their times.
            timestamp_ms: commit.at_ms.max(before.metadata.last_updated_ms),
            manifest_list: self.at(&list_name(version)),
            summary: summary(commit, &added, &deleted),
            schema_id: 0,
        });
        next.live.extend(added.into_iter().map(|file| {
            let at = file.file_path.clone();
            (
                at,
                LiveFile {
                    file,
                    added: version,
                },
            )
        }));
        next.limit();
        Ok(next)
    }

    /// The wanted files that `next` lacks, with the statistics of their footers.
    fn added(
        &self,
        next: &Newest,
        wanted: &BTreeMap<String, &DataFile>,
        statistics: &dyn Fn(&Path) -> Result<FileStatistics>,
    ) -> Result<Vec<FileEntry>> {
        let absent = wanted.iter().filter(|(at, _)| !next.live.contains_key(*at));
        let entry = |(at, file): (&String, &&DataFile)| {
            let statistics = statistics(&file.path)?;
            let (rows, bytes) = (file.rows, file.bytes);
            Ok(FileEntry::new(
                at.clone(),
                rows,
                bytes,
                &self.columns,
                &statistics,
            ))
        };
        absent.map(entry).collect()
    }

    /// Writes the manifest of a version, if it has something to say, and the list of all manifests
    /// of its snapshot, which it returns. `next` has the files that stay.
    fn write_manifests(
        &self,
        next: &Newest,
        version: i64,
        parent: Option<i64>,
        added: &[FileEntry],
        deleted: &[&LiveFile],
    ) -> Result<Vec<ManifestFile>> {
        self.storage.make_directory(&self.folder)?;
        let before = parent.and_then(|parent| next.lists.get(&parent));
        let mut manifests = before.cloned().unwrap_or_default();
        let mut changes = Changes {
            added: added.iter().collect(),
            ..Changes::default()
        };
        if !deleted.is_empty() || manifests.len() >= MANIFESTS_MAX {
            // A file that has left stays live for readers while any manifest of the snapshot lists
            // it as live, so one manifest takes the place of all others.
            manifests.clear();
            changes.existing = next.live.values().collect();
            changes.deleted = deleted.to_vec();
        }
        if !changes.is_empty() {
            let name = manifest_name(version);
            let path = self.folder.join(&name);
            let bytes = manifest::encode(&changes, version, &self.columns, &path)?;
            files::write(&*self.storage, &path, &bytes)?;
            let at = self.at(&name);
            manifests.push(ManifestFile::new(at, bytes.len(), version, &changes));
        }
        let path = self.folder.join(list_name(version));
        let bytes = manifest::encode_list(&manifests, version, parent, &path)?;
        files::write(&*self.storage, &path, &bytes)?;
        Ok(manifests)
    }

    /// Gives a version its name and lets the hint point to it.
    fn publish(&self, next: &Newest) -> Result<()> {
        let storage = &*self.storage;
        let version = next.metadata.last_sequence_number;
        let path = self.folder.join(metadata_name(version));
        let bytes = next.metadata.to_bytes(&path)?;
        // The names of the manifests are durable before a version refers to them.
        storage.sync_directory(&self.folder)?;
        files::write_aside(storage, &path, &bytes, Existing::Refuse)?;
        // The name of the folder itself, if this is the first version.
        if let Some(above) = self.folder.parent() {
            storage.sync_directory(above)?;
        }
        write_hint(storage, &self.folder, version)
    }

    /// Removes files of earlier versions that nothing refers to any more.
    fn clean(&self, keep: &BTreeSet<String>) {
        // Files that stay cost space and are met again by the next commit. The version is there
        // already, so a failure here must not look as if it were not.
        let Ok(names) = self.storage.list(&self.folder) else {
            return;
        };
        for name in names
            .iter()
            .filter(|name| is_ours(name) && !keep.contains(*name))
        {
            let _ = self.storage.remove(&self.folder.join(name));
        }
    }

    /// The location of a file of the metadata.
    fn at(&self, name: &str) -> String {
        format!("{}/metadata/{name}", self.location)
    }
}

impl Newest {
    /// Whether the current snapshot is this state.
    fn is_state(
        &self,
        commit: &Commit,
        wanted: &BTreeMap<String, &DataFile>,
        location: &str,
    ) -> bool {
        let generation = self
            .metadata
            .current()
            .and_then(|now| now.summary.get(GENERATION));
        commit.past == Past::Kept
            && self.metadata.location == location
            && generation == Some(&commit.generation.to_string())
            && self.live.len() == wanted.len()
            && self
                .live
                .iter()
                .all(|(at, live)| wanted.get(at).is_some_and(|file| live.is(file)))
    }

    fn forget_snapshots(&mut self) {
        self.metadata.snapshots.clear();
        self.metadata.snapshot_log.clear();
        self.metadata.refs.clear();
        self.lists.clear();
    }

    /// Forgets the oldest snapshots and versions beyond those that are kept.
    fn limit(&mut self) {
        let metadata = &mut self.metadata;
        let beyond = metadata.snapshots.len().saturating_sub(SNAPSHOTS_MAX);
        for snapshot in metadata.snapshots.drain(..beyond) {
            self.lists.remove(&snapshot.snapshot_id);
        }
        let beyond = metadata.snapshot_log.len().saturating_sub(SNAPSHOTS_MAX);
        metadata.snapshot_log.drain(..beyond);
        let beyond = metadata.metadata_log.len().saturating_sub(VERSIONS_MAX);
        metadata.metadata_log.drain(..beyond);
    }
}

impl LiveFile {
    /// Whether it is this file; a file never changes under its name without changing its size,
    /// unless the owner says so.
    fn is(&self, file: &DataFile) -> bool {
        self.file.record_count == file.rows as i64
            && self.file.file_size_in_bytes == file.bytes as i64
    }
}

fn write_hint(storage: &dyn Storage, folder: &Path, version: i64) -> Result<()> {
    // The version has its name for good before the hint speaks of it.
    storage.sync_directory(folder)?;
    let path = folder.join(HINT);
    files::write_aside(
        storage,
        &path,
        version.to_string().as_bytes(),
        Existing::Replace,
    )?;
    storage.sync_directory(folder)?;
    Ok(())
}

/// The location of an absolute path, as Iceberg wants it. Readers differ in whether they decode
/// escapes, so nothing is escaped, and what would be taken for part of an address is refused.
fn location(path: &Path) -> Result<String> {
    let refused = |reason| Error::Location {
        path: path.to_owned(),
        reason,
    };
    let text = path.to_str().ok_or_else(|| refused("what is not UTF-8"))?;
    for (character, reason) in [
        ('?', "a question mark"),
        ('#', "a number sign"),
        ('%', "a percent sign"),
    ] {
        if text.contains(character) {
            return Err(refused(reason));
        }
    }
    if !path.is_absolute() {
        return Err(refused("what is relative"));
    }
    Ok(format!("file://{text}"))
}

fn summary(
    commit: &Commit,
    added: &[FileEntry],
    deleted: &[&LiveFile],
) -> BTreeMap<String, String> {
    let operation = match (added.is_empty(), deleted.is_empty()) {
        (_, true) => "append",
        (true, false) => "delete",
        (false, false) => "overwrite",
    };
    let rows =
        |files: &mut dyn Iterator<Item = &FileEntry>| files.map(|f| f.record_count).sum::<i64>();
    let bytes = |files: &mut dyn Iterator<Item = &FileEntry>| {
        files.map(|f| f.file_size_in_bytes).sum::<i64>()
    };
    let gone = || deleted.iter().map(|live| &live.file);
    let mut summary = BTreeMap::new();
    let mut say = |key: &str, value: String| summary.insert(key.to_owned(), value);
    say("operation", operation.to_owned());
    say(ENGINE, "dyno".to_owned());
    say("engine-version", env!("CARGO_PKG_VERSION").to_owned());
    say(GENERATION, commit.generation.to_string());
    say(
        "changed-partition-count",
        i32::from(!(added.is_empty() && deleted.is_empty())).to_string(),
    );
    if !added.is_empty() {
        say("added-data-files", added.len().to_string());
        say("added-records", rows(&mut added.iter()).to_string());
        say("added-files-size", bytes(&mut added.iter()).to_string());
    }
    if !deleted.is_empty() {
        say("deleted-data-files", deleted.len().to_string());
        say("deleted-records", rows(&mut gone()).to_string());
        say("removed-files-size", bytes(&mut gone()).to_string());
    }
    let total = |of: fn(&DataFile) -> u64| commit.files.iter().map(of).sum::<u64>().to_string();
    say("total-data-files", commit.files.len().to_string());
    say("total-records", total(|file| file.rows));
    say("total-files-size", total(|file| file.bytes));
    // Zero in every snapshot of ours, and written all the same, as the Java library writes them.
    for none in [
        "total-delete-files",
        "total-position-deletes",
        "total-equality-deletes",
    ] {
        say(none, "0".to_owned());
    }
    summary
}
