//! What another program has written, or a disk has damaged, is refused and stays as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_iceberg::{Catalogue, Kind};
use dyno_sim::{Disk, Faults};

use super::{TABLE, columns, commit, open, state};

/// A table of two commits.
fn made() -> Disk {
    let disk = Disk::new(0, Faults::default());
    let mut catalogue = open(&disk).unwrap();
    commit(&mut catalogue, &state(1, &["a"])).unwrap();
    commit(&mut catalogue, &state(2, &["a", "b"])).unwrap();
    disk
}

fn at(name: &str) -> PathBuf {
    Path::new(TABLE).join("metadata").join(name)
}

/// Checks that the table is refused for this reason, and that nothing in it has changed.
fn refused(disk: &Disk, reason: &str) {
    let before: Vec<_> = disk.names().iter().map(|name| disk.read(name)).collect();
    let error = open(disk).expect_err(reason).to_string();
    assert!(error.contains(reason), "{error}");
    let after: Vec<_> = disk.names().iter().map(|name| disk.read(name)).collect();
    assert!(before == after, "{reason}: something was changed");
}

/// The newest metadata with a text replaced by another.
fn edited(from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(made().read(&at("v2.metadata.json")).unwrap()).unwrap();
    assert!(text.contains(from), "{text}");
    text.replace(from, to).into_bytes()
}

#[test]
fn metadata_of_another_program_is_refused() {
    let disk = Disk::new(0, Faults::default());
    disk.write(
        &at("v1.metadata.json"),
        br#"{"format-version": 2, "properties": {}}"#,
    );
    disk.write(&at("version-hint.text"), b"1");
    refused(&disk, "another program wrote it");

    // The names that catalogues with a server give.
    let disk = Disk::new(0, Faults::default());
    disk.write(&at("00001-5f1b1d2e.metadata.json"), b"{}");
    refused(&disk, "another program manages this table");
}

#[test]
fn a_commit_of_another_program_on_top_of_ours_is_refused() {
    // Such a program counts versions as we do, and gives snapshots numbers of its own.
    let disk = made();
    let theirs = edited("\"last-sequence-number\": 2", "\"last-sequence-number\": 3");
    let theirs = String::from_utf8(theirs).unwrap();
    let theirs = theirs.replace(
        "\"current-snapshot-id\": 2",
        "\"current-snapshot-id\": 7713",
    );
    disk.write(&at("v3.metadata.json"), theirs.as_bytes());
    refused(&disk, "another program has committed to the table");

    // A change of properties alone makes a version without a snapshot.
    let disk = made();
    disk.write(
        &at("v3.metadata.json"),
        &disk.read(&at("v2.metadata.json")).unwrap(),
    );
    refused(&disk, "another program has committed to the table");
}

#[test]
fn a_newer_form_and_other_columns_are_refused() {
    let disk = made();
    disk.write(
        &at("v2.metadata.json"),
        &edited("\"dyno.catalogue\": \"1\"", "\"dyno.catalogue\": \"2\""),
    );
    refused(&disk, "this program knows 1");

    let mut columns = columns();
    columns[0].kind = Kind::Int;
    let error = Catalogue::open(Arc::new(made()), Path::new(TABLE), columns);
    assert!(
        error
            .expect_err("another type")
            .to_string()
            .contains("other columns")
    );
}

#[test]
fn damage_is_named_with_the_file_and_what_to_do() {
    for (name, bytes, reason) in [
        (
            "v2.metadata.json",
            &b"{\"format-ver"[..],
            "v2.metadata.json",
        ),
        ("version-hint.text", b"two", "\"two\" is not a version"),
        ("snap-2.avro", b"Obj\x01", "snap-2.avro"),
        ("manifest-1.avro", b"", "manifest-1.avro"),
    ] {
        let disk = made();
        disk.write(&at(name), bytes);
        refused(&disk, reason);
        refused(&disk, "remove the folder metadata");
    }
    let disk = Disk::new(0, Faults::default());
    disk.write(&at("version-hint.text"), b"3");
    refused(&disk, "it names a version that is missing");
}

#[test]
fn a_path_that_readers_would_take_for_an_address_is_refused() {
    for (table, reason) in [
        ("/data/50%", "a percent sign"),
        ("/data/a?b", "a question mark"),
        ("/data/#1", "a number sign"),
        ("data", "what is relative"),
    ] {
        let disk = Disk::new(0, Faults::default());
        let error = super::open_at(&disk, table).expect_err(table).to_string();
        assert!(error.contains(reason), "{error}");
    }
}
