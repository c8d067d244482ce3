//! Manifests, which list data files, and manifest lists, which list the manifests of a snapshot.

use std::path::Path;

use dyno_formats::parquet_read::FileStatistics;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::Result;
use crate::avro::{self, Records};
use crate::bounds;
use crate::column::Column;

const PARQUET: &str = "PARQUET";

/// What a manifest says of a data file.
const EXISTING: i32 = 0;
const ADDED: i32 = 1;
const DELETED: i32 = 2;

/// A data file of the current snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LiveFile {
    pub(crate) file: FileEntry,
    /// The version that added it, which is also its snapshot and its sequence number.
    pub(crate) added: i64,
}

/// The struct `manifest_entry` of the specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    status: i32,
    snapshot_id: Option<i64>,
    sequence_number: Option<i64>,
    file_sequence_number: Option<i64>,
    data_file: FileEntry,
}

/// The struct `data_file` of the specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    content: i32,
    pub(crate) file_path: String,
    file_format: String,
    partition: Unpartitioned,
    pub(crate) record_count: i64,
    pub(crate) file_size_in_bytes: i64,
    column_sizes: Option<Vec<KeyCount>>,
    value_counts: Option<Vec<KeyCount>>,
    null_value_counts: Option<Vec<KeyCount>>,
    lower_bounds: Option<Vec<KeyBound>>,
    upper_bounds: Option<Vec<KeyBound>>,
    sort_order_id: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Unpartitioned {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeyCount {
    key: i32,
    value: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeyBound {
    key: i32,
    value: ByteBuf,
}

/// The struct `manifest_file` of the specification: a manifest of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    pub(crate) manifest_path: String,
    manifest_length: i64,
    partition_spec_id: i32,
    content: i32,
    sequence_number: i64,
    min_sequence_number: i64,
    added_snapshot_id: i64,
    added_files_count: i32,
    existing_files_count: i32,
    deleted_files_count: i32,
    added_rows_count: i64,
    existing_rows_count: i64,
    deleted_rows_count: i64,
    partitions: Option<Vec<Summary>>,
    key_metadata: Option<ByteBuf>,
}

/// The bounds of a partition, of which an unpartitioned table has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Summary {
    contains_null: bool,
    contains_nan: Option<bool>,
    lower_bound: Option<ByteBuf>,
    upper_bound: Option<ByteBuf>,
}

/// What a manifest has to say: files that are new, that stay, and that are gone.
#[derive(Debug, Default)]
pub(crate) struct Changes<'a> {
    pub(crate) added: Vec<&'a FileEntry>,
    pub(crate) existing: Vec<&'a LiveFile>,
    pub(crate) deleted: Vec<&'a LiveFile>,
}

impl Changes<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.existing.is_empty() && self.deleted.is_empty()
    }
}

impl FileEntry {
    /// A data file, with what its footer says of the columns.
    pub(crate) fn new(
        location: String,
        rows: u64,
        bytes: u64,
        columns: &[Column],
        statistics: &FileStatistics,
    ) -> FileEntry {
        let mut entry = FileEntry {
            content: 0,
            file_path: location,
            file_format: PARQUET.to_owned(),
            partition: Unpartitioned {},
            record_count: rows as i64,
            file_size_in_bytes: bytes as i64,
            column_sizes: None,
            value_counts: None,
            null_value_counts: None,
            lower_bounds: None,
            upper_bounds: None,
            sort_order_id: Some(0),
        };
        for column in columns {
            let found = statistics
                .columns
                .iter()
                .find(|found| found.name == column.name);
            let Some(found) = found else { continue };
            let key = column.id;
            let count = |value: u64| KeyCount {
                key,
                value: value as i64,
            };
            entry
                .column_sizes
                .get_or_insert_default()
                .push(count(found.bytes));
            entry
                .value_counts
                .get_or_insert_default()
                .push(count(found.values));
            if let Some(nulls) = found.nulls {
                entry
                    .null_value_counts
                    .get_or_insert_default()
                    .push(count(nulls));
            }
            let Some((min, max)) = &found.bounds else {
                continue;
            };
            // A bound that cannot be converted is left out. Readers then open the file, while a
            // wrong bound would make them skip rows.
            let bounds =
                bounds::from_plain(column.kind, min).zip(bounds::from_plain(column.kind, max));
            if let Some((lower, upper)) = bounds {
                let bound = |bytes| KeyBound {
                    key,
                    value: ByteBuf::from(bytes),
                };
                entry
                    .lower_bounds
                    .get_or_insert_default()
                    .push(bound(lower));
                entry
                    .upper_bounds
                    .get_or_insert_default()
                    .push(bound(upper));
            }
        }
        entry
    }
}

/// Encodes the manifest that version `version` writes.
pub(crate) fn encode(
    changes: &Changes<'_>,
    version: i64,
    columns: &[Column],
    path: &Path,
) -> Result<Vec<u8>> {
    // Numbers of new files are left out: a reader takes those of the manifest list for them.
    let added = changes.added.iter().map(|&file| Entry {
        status: ADDED,
        snapshot_id: Some(version),
        sequence_number: None,
        file_sequence_number: None,
        data_file: file.clone(),
    });
    let before = |status: i32, snapshot: i64, live: &LiveFile| Entry {
        status,
        snapshot_id: Some(snapshot),
        sequence_number: Some(live.added),
        file_sequence_number: Some(live.added),
        data_file: live.file.clone(),
    };
    let existing = changes
        .existing
        .iter()
        .map(|live| before(EXISTING, live.added, live));
    // The snapshot of a deleted file is the one that deletes it.
    let deleted = changes
        .deleted
        .iter()
        .map(|live| before(DELETED, version, live));
    let schema = crate::metadata::Schema::new(columns).to_text(path)?;
    let pairs = [
        ("schema", schema),
        ("schema-id", "0".to_owned()),
        ("partition-spec", "[]".to_owned()),
        ("partition-spec-id", "0".to_owned()),
        ("format-version", "2".to_owned()),
        ("content", "data".to_owned()),
    ];
    avro::encode(
        Records::Manifest,
        &pairs,
        added.chain(existing).chain(deleted),
        path,
    )
}

impl ManifestFile {
    /// The manifest that version `version` writes, as its list describes it.
    pub(crate) fn new(
        location: String,
        bytes: usize,
        version: i64,
        changes: &Changes<'_>,
    ) -> ManifestFile {
        let rows =
            |files: &mut dyn Iterator<Item = &FileEntry>| files.map(|f| f.record_count).sum();
        let existing = changes.existing.iter().map(|live| live.added);
        let deleted = changes.deleted.iter().map(|live| live.added);
        ManifestFile {
            manifest_path: location,
            manifest_length: bytes as i64,
            partition_spec_id: 0,
            content: 0,
            sequence_number: version,
            min_sequence_number: existing.chain(deleted).min().unwrap_or(version),
            added_snapshot_id: version,
            added_files_count: changes.added.len() as i32,
            existing_files_count: changes.existing.len() as i32,
            deleted_files_count: changes.deleted.len() as i32,
            added_rows_count: rows(&mut changes.added.iter().copied()),
            existing_rows_count: rows(&mut changes.existing.iter().map(|live| &live.file)),
            deleted_rows_count: rows(&mut changes.deleted.iter().map(|live| &live.file)),
            partitions: Some(Vec::new()),
            key_metadata: None,
        }
    }

    /// The data files of the manifest that are in the snapshot, from its bytes.
    pub(crate) fn live(&self, bytes: &[u8], path: &Path) -> Result<Vec<LiveFile>> {
        let entries: Vec<Entry> = avro::decode(bytes, path)?;
        let live = entries.into_iter().filter(|entry| entry.status != DELETED);
        Ok(live
            .map(|entry| LiveFile {
                added: entry.sequence_number.unwrap_or(self.sequence_number),
                file: entry.data_file,
            })
            .collect())
    }
}

/// Encodes the manifest list of the snapshot that version `version` adds.
pub(crate) fn encode_list(
    manifests: &[ManifestFile],
    version: i64,
    parent: Option<i64>,
    path: &Path,
) -> Result<Vec<u8>> {
    let parent = parent.map_or_else(|| "null".to_owned(), |parent| parent.to_string());
    let pairs = [
        ("snapshot-id", version.to_string()),
        ("parent-snapshot-id", parent),
        ("sequence-number", version.to_string()),
        ("format-version", "2".to_owned()),
    ];
    avro::encode(Records::ManifestList, &pairs, manifests, path)
}

/// Decodes a manifest list.
pub(crate) fn decode_list(bytes: &[u8], path: &Path) -> Result<Vec<ManifestFile>> {
    avro::decode(bytes, path)
}
