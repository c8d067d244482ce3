//! A table with Iceberg metadata: each committed load is a snapshot, a load that was killed between
//! its commit and the metadata is mended by the next one, and what cannot be described is refused.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;
mod table_of;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dyno_ingest::generate::Generator;
use dyno_ingest::load::{Options, Outcome};
use dyno_ingest::table::{Catalog, Manifest, TableWriter};
use oracle::checksum;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use table_of::{child, file, generate, lenient, load_file, load_files, rows_by_archive};

#[test]
fn child_that_is_killed() {
    child::load_if_child();
}

/// Archives of `months`, with `rows` in all.
fn months(rows: u64, folder: &Path) -> Vec<PathBuf> {
    let generator = Generator {
        rows,
        months: 3,
        ..Generator::default()
    };
    generate(&generator, folder)
}

fn catalogued(table: &Path) {
    let mut writer = TableWriter::open(table).unwrap();
    writer.set_catalog(Catalog::Iceberg).unwrap();
}

/// The metadata that the hint names.
fn metadata(table: &Path) -> Value {
    let folder = table.join("metadata");
    let version = fs::read_to_string(folder.join("version-hint.text")).unwrap();
    let bytes = fs::read(folder.join(format!("v{version}.metadata.json"))).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The summary of the current snapshot.
fn summary(table: &Path) -> Value {
    let metadata = metadata(table);
    let snapshots = metadata["snapshots"].as_array().unwrap();
    let current = |s: &&Value| s["snapshot-id"] == metadata["current-snapshot-id"];
    snapshots.iter().find(current).unwrap()["summary"].clone()
}

/// Checks that the current snapshot is the manifest's state.
fn check_up_to_date(table: &Path) {
    let (manifest, summary) = (Manifest::read(table).unwrap().unwrap(), summary(table));
    assert_eq!(summary["dyno.generation"], manifest.generation.to_string());
    assert_eq!(summary["total-records"], manifest.rows().to_string());
    assert_eq!(summary["total-files-size"], manifest.bytes().to_string());
    assert_eq!(
        summary["total-data-files"],
        manifest.files().count().to_string()
    );
}

#[test]
fn each_load_is_a_snapshot_and_the_rows_are_those_of_a_plain_table() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, table) = (folder.path().join("plain"), folder.path().join("table"));
    let before = months(3_000, &folder.path().join("before"));
    let now = months(6_000, &folder.path().join("now"));
    catalogued(&table);
    for (loads, archive) in before.iter().enumerate() {
        load_file(archive, &table, &lenient());
        check_up_to_date(&table);
        let snapshots = metadata(&table)["snapshots"].as_array().unwrap().len();
        assert_eq!(snapshots, loads + 1);
    }
    assert_eq!(summary(&table)["operation"], "append");
    // The month has grown, so its file takes the place of another.
    load_file(&now[0], &table, &lenient());
    check_up_to_date(&table);
    assert_eq!(summary(&table)["operation"], "overwrite");
    assert_eq!(metadata(&table)["snapshots"].as_array().unwrap().len(), 1);

    load_files(
        &[now[0].clone(), before[1].clone(), before[2].clone()],
        &plain,
        &lenient(),
    );
    let sums = |table: &Path| -> Vec<String> {
        rows_by_archive(table)
            .values()
            .map(|rows| checksum(rows))
            .collect()
    };
    assert_eq!(sums(&table), sums(&plain));
}

#[test]
fn the_columns_of_the_files_have_numbers_and_types_of_iceberg() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    catalogued(&table);
    load_file(&months(300, folder.path())[0], &table, &lenient());
    let manifest = Manifest::read(&table).unwrap().unwrap();
    let path = table.join(&manifest.files().next().unwrap().path);
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let stated = &metadata(&table)["schemas"][0]["fields"];
    assert_eq!(stated.as_array().unwrap().len(), columns.len());
    for (column, stated) in columns.iter().zip(stated.as_array().unwrap()) {
        let basic = column.self_type().get_basic_info();
        assert_eq!(
            (&stated["name"], &stated["id"]),
            (&column.name().into(), &basic.id().into())
        );
        let stored = format!("{} {}", column.physical_type(), column.converted_type());
        let wanted = match stated["type"].as_str().unwrap() {
            "int" => "INT32 INT_32",
            "long" => "INT64 INT_64",
            "timestamptz" => "INT64 TIMESTAMP_MICROS",
            "string" => "BYTE_ARRAY UTF8",
            other => panic!("{} is {other}", column.name()),
        };
        assert_eq!(stored, wanted, "{}", column.name());
    }
}

#[test]
fn a_load_that_ended_between_its_commit_and_the_metadata_is_mended_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let (table, kept) = (folder.path().join("table"), folder.path().join("kept"));
    let before = months(3_000, &folder.path().join("before"));
    let now = months(6_000, &folder.path().join("now"));
    catalogued(&table);
    load_files(&before, &table, &lenient());
    let behind = |wanted: &str| {
        fs::rename(table.join("metadata"), &kept).unwrap();
        fs::create_dir(table.join("metadata")).unwrap();
        for entry in fs::read_dir(&kept).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(
                &path,
                table.join("metadata").join(path.file_name().unwrap()),
            )
            .unwrap();
        }
        load_file(&now[1], &table, &lenient());
        assert_eq!(summary(&table)["operation"], wanted);
        // What a load leaves that is killed right behind its commit: the manifest and no snapshot.
        fs::remove_dir_all(table.join("metadata")).unwrap();
        fs::rename(&kept, table.join("metadata")).unwrap();
    };
    behind("overwrite");
    assert_ne!(
        summary(&table)["total-records"],
        Manifest::read(&table).unwrap().unwrap().rows().to_string()
    );
    // Files of the snapshot that readers still see are not removed before it is replaced.
    let report = load_file(&now[1], &table, &lenient());
    assert!(
        matches!(report.outcome, Outcome::AlreadyThere { .. }),
        "{:?}",
        report.outcome
    );
    check_up_to_date(&table);
    let named: BTreeSet<String> = table_of::files_in(&table)
        .into_keys()
        .filter(|p| p.starts_with("data/"))
        .collect();
    let manifest = Manifest::read(&table).unwrap().unwrap();
    assert_eq!(named, manifest.files().map(|f| f.path.clone()).collect());
}

#[test]
fn a_load_killed_at_any_moment_leaves_metadata_whose_files_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let before = months(3_000, &folder.path().join("before"));
    let now = months(24_000, &folder.path().join("now"));
    let options = Options {
        workers: 2,
        ..lenient()
    };
    let (mut killed, mut share) = (0, 0.02);
    let mut duration = Duration::from_secs(1);
    for round in 0..12 {
        let table = folder.path().join(format!("table-{round}"));
        catalogued(&table);
        load_files(&before[..2], &table, &options);
        let begun = Instant::now();
        let mut load = child::command("child_that_is_killed", &now, &table, &options)
            .spawn()
            .unwrap();
        if round > 0 {
            std::thread::sleep(duration.mul_f64(share));
            match load.try_wait().unwrap() {
                None => killed += 1,
                // The first load took longer than the others do, on a machine that was busy then.
                Some(_) => duration /= 2,
            }
            load.kill().unwrap();
            share = (share + 0.618) % 1.0;
        }
        load.wait().unwrap();
        if round == 0 {
            duration = begun.elapsed();
        }
        // A reader finds every file of the snapshot with its length, even before the next load.
        let records: u64 = summary(&table)["total-records"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!(records >= 2_000, "{records} records");
        let list = metadata(&table)["snapshots"].as_array().unwrap().len();
        assert!(list >= 1);
        load_files(&now, &table, &options);
        check_up_to_date(&table);
    }
    assert!(killed >= 3, "only {killed} of 11 loads were killed");
}

#[test]
fn metadata_of_another_program_stops_a_load_before_it_changes_anything() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let archives = months(600, &folder.path().join("archives"));
    catalogued(&table);
    load_file(&archives[0], &table, &lenient());
    let theirs = r#"{"format-version": 2, "properties": {"owner": "another"}}"#;
    file(
        &table.join("metadata"),
        "v2.metadata.json",
        theirs.as_bytes(),
    );
    let before = table_of::files_in(&table);
    let foreign = fs::read(table.join("metadata/v2.metadata.json")).unwrap();
    let inputs = vec![dyno_ingest::load::Input::File(archives[1].clone())];
    let refused = dyno_ingest::load::load(inputs, &table, &lenient(), &Default::default());
    let said = refused.expect_err("it is not ours").to_string();
    assert!(said.contains("another program wrote it"), "{said}");
    assert!(table_of::files_in(&table) == before);
    assert_eq!(
        fs::read(table.join("metadata/v2.metadata.json")).unwrap(),
        foreign
    );
}

#[test]
fn a_table_that_has_archives_gets_no_catalogue_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    load_file(&months(300, folder.path())[0], &table, &lenient());
    let refused = TableWriter::open(&table)
        .unwrap()
        .set_catalog(Catalog::Iceberg);
    let said = refused.expect_err("its files have other types").to_string();
    assert!(said.contains("load them into a new table"), "{said}");
    assert!(!table.join("metadata").exists());
}

/// Ids are numbers of 64 bits without a sign, which Iceberg does not have.
#[test]
fn an_id_that_a_long_cannot_hold_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let text = |id: u64| {
        format!("{id},1672531200,K1ABC,FN42,-21,14.097037,W1XYZ,EM12,37,0,2345,67,14,2.6.1,0\n")
    };
    catalogued(&table);
    let good = file(folder.path(), "good.csv", text(i64::MAX as u64).as_bytes());
    assert_eq!(
        table_of::loaded_rows(&load_file(&good, &table, &lenient())),
        1
    );
    let beyond = file(folder.path(), "beyond.csv", text(1 << 63).as_bytes());
    let Outcome::Failed(error) = load_file(&beyond, &table, &lenient()).outcome else {
        panic!("it was loaded");
    };
    let said = error.to_string();
    assert!(
        said.contains("column id: its type cannot hold 9223372036854775808"),
        "{said}"
    );
    check_up_to_date(&table);
}
