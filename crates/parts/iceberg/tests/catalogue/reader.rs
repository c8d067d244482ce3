//! A reader of Iceberg tables that goes from the hint to the data files, as foreign ones do, by
//! names and field numbers of the specification and without our structs.

use std::path::Path;

use apache_avro::Reader;
use apache_avro::types::Value;
use dyno_sim::Disk;
use serde_json::Value as Json;

/// The metadata that the hint names; `None` without a hint.
pub fn metadata(disk: &Disk, table: &str) -> Option<Json> {
    let folder = Path::new(table).join("metadata");
    let hint = disk.read(&folder.join("version-hint.text"))?;
    let version: u64 = String::from_utf8(hint).unwrap().parse().unwrap();
    let name = format!("v{version}.metadata.json");
    let bytes = disk
        .read(&folder.join(name))
        .expect("the hint names a version that is there");
    Some(serde_json::from_slice(&bytes).unwrap())
}

/// The locations of the data files in the current snapshot.
pub fn files(disk: &Disk, table: &str) -> Option<Vec<String>> {
    let metadata = metadata(disk, table)?;
    let current = metadata["current-snapshot-id"].as_i64().unwrap();
    Some(files_of(disk, &metadata, current))
}

/// The locations of the data files in a snapshot.
pub fn files_of(disk: &Disk, metadata: &Json, snapshot: i64) -> Vec<String> {
    let snapshots = metadata["snapshots"].as_array().unwrap();
    let is_it = |found: &&Json| found["snapshot-id"].as_i64() == Some(snapshot);
    let snapshot = snapshots
        .iter()
        .find(is_it)
        .expect("a snapshot that is kept");
    let mut files = Vec::new();
    for manifest in records(disk, snapshot["manifest-list"].as_str().unwrap()) {
        let manifest_bytes = long(&manifest, "manifest_length");
        let path = text(&manifest, "manifest_path");
        assert_eq!(bytes(disk, &path).len() as i64, manifest_bytes);
        let mut counts = [0, 0, 0];
        for entry in records(disk, &path) {
            let status = long(&entry, "status");
            counts[status as usize] += 1;
            let file = field(&entry, "data_file").clone();
            if status != 2 {
                files.push(text(&file, "file_path"));
            }
            // Only entries that are new may leave their numbers to the list.
            let is_numbered = !matches!(field(&entry, "sequence_number"), Value::Null);
            assert_eq!(is_numbered, status != 1);
        }
        let stated = ["existing", "added", "deleted"]
            .map(|what| long(&manifest, &format!("{what}_files_count")));
        assert_eq!(counts, stated, "{path}");
    }
    files.sort();
    files
}

fn bytes(disk: &Disk, location: &str) -> Vec<u8> {
    let path = location
        .strip_prefix("file://")
        .expect("an absolute location");
    disk.read(Path::new(path))
        .unwrap_or_else(|| panic!("{location} is missing"))
}

fn records(disk: &Disk, location: &str) -> Vec<Value> {
    let bytes = bytes(disk, location);
    Reader::new(&bytes[..])
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn field<'a>(record: &'a Value, name: &str) -> &'a Value {
    let Value::Record(fields) = record else {
        panic!("not a record: {record:?}");
    };
    let (_, value) = fields.iter().find(|(found, _)| found == name).unwrap();
    match value {
        Value::Union(_, value) => value,
        value => value,
    }
}

fn long(record: &Value, name: &str) -> i64 {
    match field(record, name) {
        Value::Long(value) => *value,
        Value::Int(value) => i64::from(*value),
        other => panic!("{name} is {other:?}"),
    }
}

fn text(record: &Value, name: &str) -> String {
    match field(record, name) {
        Value::String(value) => value.clone(),
        other => panic!("{name} is {other:?}"),
    }
}
