//! The file `vN.metadata.json`: what a table is in one version.

use std::collections::BTreeMap;
use std::path::Path;

use dyno_random::Random;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::{Error, Result};

/// The property that only tables of this program have. Its value is the version of their form.
pub(crate) const OURS: &str = "dyno.catalogue";
const FORM: &str = "1";
/// The version of the Iceberg specification.
const FORMAT_VERSION: u32 = 2;
/// Partition fields are numbered behind this.
const LAST_PARTITION_ID: u32 = 999;

/// A table in one version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TableMetadata {
    format_version: u32,
    pub(crate) table_uuid: String,
    pub(crate) location: String,
    pub(crate) last_sequence_number: i64,
    pub(crate) last_updated_ms: i64,
    last_column_id: i32,
    pub(crate) schemas: Vec<Schema>,
    current_schema_id: u32,
    partition_specs: Vec<Numbered>,
    default_spec_id: u32,
    last_partition_id: u32,
    sort_orders: Vec<SortOrder>,
    default_sort_order_id: u32,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) current_snapshot_id: i64,
    pub(crate) refs: BTreeMap<String, Reference>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) snapshot_log: Vec<SnapshotLog>,
    pub(crate) metadata_log: Vec<MetadataLog>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Schema {
    r#type: String,
    schema_id: u32,
    pub(crate) fields: Vec<Column>,
}

/// The only partition spec, which has no fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Numbered {
    spec_id: u32,
    fields: Vec<()>,
}

/// The only sort order, which says that rows are not sorted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SortOrder {
    order_id: u32,
    fields: Vec<()>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Reference {
    snapshot_id: i64,
    r#type: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Snapshot {
    pub(crate) snapshot_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_snapshot_id: Option<i64>,
    pub(crate) sequence_number: i64,
    pub(crate) timestamp_ms: i64,
    pub(crate) manifest_list: String,
    pub(crate) summary: BTreeMap<String, String>,
    pub(crate) schema_id: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SnapshotLog {
    pub(crate) timestamp_ms: i64,
    pub(crate) snapshot_id: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MetadataLog {
    pub(crate) timestamp_ms: i64,
    pub(crate) metadata_file: String,
}

impl Schema {
    pub(crate) fn new(columns: &[Column]) -> Schema {
        Schema {
            r#type: "struct".to_owned(),
            schema_id: 0,
            fields: columns.to_vec(),
        }
    }

    pub(crate) fn to_text(&self, path: &Path) -> Result<String> {
        serde_json::to_string(self).map_err(|e| damaged(path, e))
    }
}

impl TableMetadata {
    /// A table without a snapshot, which is never written like this.
    pub(crate) fn new(location: &str, columns: &[Column], at_ms: i64) -> TableMetadata {
        TableMetadata {
            format_version: FORMAT_VERSION,
            table_uuid: uuid(location, at_ms),
            location: location.to_owned(),
            last_sequence_number: 0,
            last_updated_ms: at_ms,
            last_column_id: columns.iter().map(|column| column.id).max().unwrap_or(0),
            schemas: vec![Schema::new(columns)],
            current_schema_id: 0,
            partition_specs: vec![Numbered {
                spec_id: 0,
                fields: Vec::new(),
            }],
            default_spec_id: 0,
            last_partition_id: LAST_PARTITION_ID,
            sort_orders: vec![SortOrder {
                order_id: 0,
                fields: Vec::new(),
            }],
            default_sort_order_id: 0,
            properties: BTreeMap::from([(OURS.to_owned(), FORM.to_owned())]),
            current_snapshot_id: 0,
            refs: BTreeMap::new(),
            snapshots: Vec::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
        }
    }

    /// Makes `snapshot` the current one.
    pub(crate) fn add(&mut self, snapshot: Snapshot) {
        let snapshot_id = snapshot.snapshot_id;
        self.last_sequence_number = snapshot.sequence_number;
        self.last_updated_ms = snapshot.timestamp_ms;
        self.current_snapshot_id = snapshot_id;
        let main = Reference {
            snapshot_id,
            r#type: "branch".to_owned(),
        };
        self.refs.insert("main".to_owned(), main);
        self.snapshot_log.push(SnapshotLog {
            timestamp_ms: snapshot.timestamp_ms,
            snapshot_id,
        });
        self.snapshots.push(snapshot);
    }

    pub(crate) fn current(&self) -> Option<&Snapshot> {
        let current = |snapshot: &&Snapshot| snapshot.snapshot_id == self.current_snapshot_id;
        self.snapshots.iter().find(current)
    }

    pub(crate) fn to_bytes(&self, path: &Path) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(|e| damaged(path, e))
    }

    /// Reads the metadata of version `version`, which must be ours and of these columns.
    pub(crate) fn read(
        bytes: &[u8],
        version: i64,
        columns: &[Column],
        path: &Path,
    ) -> Result<TableMetadata> {
        let foreign = |reason: String| Error::Foreign {
            path: path.to_owned(),
            reason,
        };
        // The property is checked before the form, because metadata of another program may lack
        // what ours has, and is not damaged for that.
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|e| damaged(path, e))?;
        match value["properties"][OURS].as_str() {
            Some(FORM) => {}
            Some(form) => {
                return Err(foreign(format!(
                    "its property {OURS} is {form}, this program knows {FORM}"
                )));
            }
            None => {
                return Err(foreign(format!(
                    "it lacks the property {OURS}, so another program wrote it"
                )));
            }
        }
        // Ours are equal. A commit of another program gives the snapshot a number of its own, and a
        // change of properties makes a version without a sequence number.
        let numbers = ["last-sequence-number", "current-snapshot-id"];
        if numbers
            .iter()
            .any(|&key| value[key].as_i64() != Some(version))
        {
            return Err(foreign(format!(
                "version {version} has other numbers than ours have, so another program has \
                 committed to the table"
            )));
        }
        let read: TableMetadata = serde_json::from_value(value).map_err(|e| damaged(path, e))?;
        if read.schemas != [Schema::new(columns)] {
            return Err(foreign("it is a table of other columns".to_owned()));
        }
        Ok(read)
    }
}

fn damaged(path: &Path, error: serde_json::Error) -> Error {
    Error::Damaged {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// An identity for a new table. Two tables differ in their location or in when they were made.
fn uuid(location: &str, at_ms: i64) -> String {
    let mut random = Random::fork(at_ms as u64, location);
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    // A random UUID says so in these bits (RFC 9562, version 4).
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let [a, b, c, d, e] = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    format!("{a}-{b}-{c}-{d}-{e}")
}
