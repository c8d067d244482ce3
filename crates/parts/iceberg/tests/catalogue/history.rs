//! Snapshots: which there are, what they say, and how long they stay.

use dyno_iceberg::{Commit, DataFile, Past};
use dyno_sim::{Disk, Faults};

use super::{TABLE, commit, locations, open, open_at, reader, state};

#[test]
fn each_commit_is_a_snapshot_and_earlier_ones_stay_while_their_files_do() {
    let disk = Disk::new(0, Faults::default());
    let mut catalogue = open(&disk).unwrap();
    assert!(commit(&mut catalogue, &state(1, &["a"])).unwrap());
    assert!(commit(&mut catalogue, &state(2, &["a", "b"])).unwrap());
    assert!(
        !commit(&mut catalogue, &state(2, &["a", "b"])).unwrap(),
        "it is there already"
    );

    let metadata = reader::metadata(&disk, TABLE).unwrap();
    assert_eq!(reader::files_of(&disk, &metadata, 1), locations(&["a"]));
    assert_eq!(
        reader::files_of(&disk, &metadata, 2),
        locations(&["a", "b"])
    );
    let summary = &metadata["snapshots"][1]["summary"];
    for (key, value) in [
        ("operation", "append"),
        ("added-data-files", "1"),
        ("added-records", "10"),
        ("total-data-files", "2"),
        ("total-records", "20"),
        ("total-files-size", "2000"),
        ("dyno.generation", "2"),
    ] {
        assert_eq!(summary[key], value, "{key} of {summary}");
    }
    assert_eq!(metadata["snapshots"][1]["parent-snapshot-id"], 1);
    assert_eq!(metadata["last-sequence-number"], 2);

    // The owner removes the file that left the table, so snapshots with it must go.
    assert!(commit(&mut catalogue, &state(3, &["a", "c"])).unwrap());
    let metadata = reader::metadata(&disk, TABLE).unwrap();
    assert_eq!(metadata["snapshots"].as_array().unwrap().len(), 1);
    let summary = &metadata["snapshots"][0]["summary"];
    assert_eq!(
        (&summary["operation"], &summary["deleted-records"]),
        (&"overwrite".into(), &"10".into())
    );
    assert_eq!(reader::files(&disk, TABLE), Some(locations(&["a", "c"])));

    assert!(commit(&mut catalogue, &state(4, &["a"])).unwrap());
    let metadata = reader::metadata(&disk, TABLE).unwrap();
    assert_eq!(metadata["snapshots"][0]["summary"]["operation"], "delete");
}

#[test]
fn a_program_that_opens_the_table_goes_on_where_the_last_one_ended() {
    let disk = Disk::new(0, Faults::default());
    commit(&mut open(&disk).unwrap(), &state(1, &["a"])).unwrap();
    commit(&mut open(&disk).unwrap(), &state(2, &["a", "b"])).unwrap();
    let uuid = reader::metadata(&disk, TABLE).unwrap()["table-uuid"].clone();
    commit(&mut open(&disk).unwrap(), &state(3, &["b"])).unwrap();
    assert_eq!(reader::files(&disk, TABLE), Some(locations(&["b"])));
    assert_eq!(reader::metadata(&disk, TABLE).unwrap()["table-uuid"], uuid);
}

#[test]
fn a_table_of_many_commits_keeps_a_bounded_number_of_files() {
    let disk = Disk::new(0, Faults::default());
    let mut catalogue = open(&disk).unwrap();
    let names: Vec<String> = (0..260).map(|number| format!("{number:03}")).collect();
    for count in 1..=names.len() {
        let files: Vec<&str> = names[..count].iter().map(String::as_str).collect();
        commit(&mut catalogue, &state(count as u64, &files)).unwrap();
    }
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(reader::files(&disk, TABLE), Some(locations(&files)));
    let metadata = reader::metadata(&disk, TABLE).unwrap();
    let snapshots = metadata["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.len(), 100);
    // The oldest that is kept is whole, although its manifests are from before a merge.
    let oldest = snapshots[0]["snapshot-id"].as_i64().unwrap();
    assert_eq!(
        reader::files_of(&disk, &metadata, oldest).len() as i64,
        oldest
    );
    let names = disk.names();
    let of = |end: &str| {
        names
            .iter()
            .filter(|name| name.to_str().unwrap().ends_with(end))
            .count()
    };
    assert!(
        of(".metadata.json") <= 23,
        "{} versions",
        of(".metadata.json")
    );
    assert!(of(".avro") <= 310, "{} manifests and lists", of(".avro"));
}

#[test]
fn a_table_that_was_moved_is_described_anew_by_the_next_commit() {
    let disk = Disk::new(0, Faults::default());
    commit(&mut open(&disk).unwrap(), &state(1, &["a"])).unwrap();
    let moved = Disk::new(0, Faults::default());
    for path in disk.names() {
        let below = path.strip_prefix(TABLE).unwrap();
        moved.write(
            &std::path::Path::new("/other").join(below),
            &disk.read(&path).unwrap(),
        );
    }
    let file = DataFile {
        path: "/other/data/a".into(),
        rows: 10,
        bytes: 1000,
    };
    // The very same state, so that only the location has changed.
    let state = Commit {
        files: vec![file],
        ..state(1, &[])
    };
    assert!(commit(&mut open_at(&moved, "/other").unwrap(), &state).unwrap());
    let files = reader::files(&moved, "/other").unwrap();
    assert_eq!(files, ["file:///other/data/a"]);
    let metadata = reader::metadata(&moved, "/other").unwrap();
    assert_eq!(metadata["location"], "file:///other");
    assert_eq!(metadata["snapshots"].as_array().unwrap().len(), 1);
}

#[test]
fn files_that_changed_under_their_names_begin_a_new_history() {
    let disk = Disk::new(0, Faults::default());
    let mut catalogue = open(&disk).unwrap();
    commit(&mut catalogue, &state(0, &["a"])).unwrap();
    let again = Commit {
        past: Past::Forgotten,
        ..state(0, &["a"])
    };
    assert!(commit(&mut catalogue, &again).unwrap());
    let metadata = reader::metadata(&disk, TABLE).unwrap();
    let snapshots = metadata["snapshots"].as_array().unwrap();
    assert_eq!(
        (snapshots.len(), &snapshots[0]["snapshot-id"]),
        (1, &2.into())
    );
    assert_eq!(snapshots[0].get("parent-snapshot-id"), None);
    assert_eq!(reader::files(&disk, TABLE), Some(locations(&["a"])));
}
