//! The log in real files: locks, full disks, backups, formats, and processes that are killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use dyno_io::{HostFiles, Meanwhile, Storage};
use dyno_sim::{Disk, Faults};
use dyno_txn_log::{FileLog, LogError, Lsn, Options, Recovered, Recovery, fresh_identity, restore};

const OPTIONS: Options = Options {
    identity: 11,
    segment_bytes: 256 << 10,
    segments: 2,
    segments_most: 8,
    buffer_bytes: 16 << 10,
    depth: 2,
};

fn open(directory: &Path) -> Result<Recovery, LogError> {
    Recovery::open(Arc::new(HostFiles), directory, OPTIONS)
}

fn number(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(8 + number as usize % 300, 3);
    bytes
}

/// Records from `from` on, all of them durable at the end.
fn fill(log: &mut FileLog, from: u64, count: u64) -> Lsn {
    for next in from..from + count {
        while let Err(error) = log.append(&number(next)) {
            assert!(error.is_passing(), "{error}");
            log.submit(Meanwhile::GoesOn).expect("a good disk");
            log.poll().expect("a good disk");
        }
    }
    log.flush().expect("a good disk")
}

/// Reads a log whose checkpoint, if any, is the number of records that it stands for.
fn read(directory: &Path) -> Result<(u64, Recovered), LogError> {
    let mut recovery = open(directory)?;
    let mut next = match recovery.next_chunk()? {
        Some(chunk) => u64::from_le_bytes(chunk.try_into().expect("eight bytes")),
        None => 0,
    };
    while let Some(record) = recovery.next_record()? {
        assert_eq!(record.bytes, number(next));
        next += 1;
    }
    Ok((next, recovery.verify()?))
}

#[test]
fn a_directory_has_one_writer() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, _) = open(directory.path())
        .expect("free")
        .finish()
        .expect("room");
    let refused = open(directory.path()).expect_err("in use");
    assert!(matches!(refused, LogError::InUse { .. }), "{refused}");
    drop(log);
    open(directory.path()).expect("free again");
}

#[test]
fn a_small_group_waits_for_the_write_in_flight_and_a_block_does_not() {
    let disk = Disk::new(1, Faults::default());
    let recovery = Recovery::open(Arc::new(disk), Path::new("/log"), OPTIONS);
    let (mut log, _) = recovery.expect("free").finish().expect("room");
    let append = |log: &mut FileLog, bytes: usize| {
        log.append(&vec![7; bytes]).expect("room");
        log.submit(Meanwhile::GoesOn).expect("a good disk")
    };
    assert!(append(&mut log, 10));
    assert!(
        !append(&mut log, 10),
        "it waits for others to share its block"
    );
    assert!(append(&mut log, 4096), "the block is full");
    assert!(!append(&mut log, 10), "two writes are in flight already");
    let end = log.end();
    while log.in_flight() > 0 {
        log.wait().expect("a good disk");
    }
    assert!(append(&mut log, 10), "none is in flight");
    assert!(log.flush().expect("a good disk") > end);
}

/// The thread slept until the write had ended, so the next look finds it. Reopened, every record is
/// there, whichever way it was written.
#[test]
fn what_a_thread_writes_itself_is_durable_at_the_next_look() {
    let directory = tempfile::tempdir().expect("a directory");
    let recovery = open(directory.path()).expect("free");
    let (mut log, _) = recovery.finish().expect("room");
    for next in 0..200 {
        log.append(&number(next)).expect("room");
        if next % 3 == 0 {
            log.submit(Meanwhile::GoesOn).expect("a good disk");
            log.append(&vec![0; 4096]).expect("room");
        }
        let is_first = log.in_flight() == 0;
        let is_written = log.submit(Meanwhile::Sleeps).expect("a good disk");
        let durable = log.poll().expect("a good disk");
        // An earlier write may still be in flight, and nothing after it counts until it has ended.
        if is_written && is_first {
            assert_eq!(durable, log.end());
        }
        let end = log.flush().expect("a good disk");
        assert_eq!(end, log.end());
    }
    drop(log);
    let mut recovery = open(directory.path()).expect("free");
    let mut next = 0;
    while let Some(record) = recovery.next_record().expect("sound") {
        if record.bytes.len() != 4096 {
            assert_eq!(record.bytes, number(next));
            next += 1;
        }
    }
    assert_eq!(next, 200);
}

#[test]
fn segments_without_their_manifest_are_not_taken_for_an_empty_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut log, _) = open(directory.path())
        .expect("free")
        .finish()
        .expect("room");
    fill(&mut log, 0, 10);
    drop(log);
    std::fs::remove_file(directory.path().join("manifest")).expect("a manifest");
    let refused = open(directory.path()).expect_err("no manifest");
    assert!(matches!(refused, LogError::NoManifest { .. }), "{refused}");
}

#[test]
fn a_full_disk_is_named_with_its_room_and_a_checkpoint_makes_the_log_go_on() {
    let small = Faults {
        space_bytes: Some(300 << 10),
        ..Faults::default()
    };
    let options = Options {
        segment_bytes: 64 << 10,
        buffer_bytes: 8 << 10,
        ..OPTIONS
    };
    let tight = Disk::new(
        1,
        Faults {
            space_bytes: Some(100 << 10),
            ..small
        },
    );
    let open = |disk: &Disk| Recovery::open(Arc::new(disk.clone()), Path::new("/log"), options);
    let refused = open(&tight).expect("empty").finish().expect_err("no room");
    assert!(
        matches!(refused, LogError::NoRoom { needed_bytes: 65_536, free_bytes, .. } if free_bytes < 65_536),
        "{refused}"
    );
    let disk = Disk::new(1, small);
    let (mut log, _) = open(&disk).expect("empty").finish().expect("room for two");
    let full = loop {
        match log.append(&[1; 1_000]) {
            Ok(_) => {}
            Err(LogError::Busy { .. }) => {
                log.submit(Meanwhile::GoesOn).expect("a good disk");
                log.poll().expect("a good disk");
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(full, LogError::Full { .. }), "{full}");
    assert!(full.to_string().contains("are free"), "{full}");
    let durable = log.flush().expect("the records so far are not touched");
    let checkpoint = log.checkpointer().begin().expect("room");
    checkpoint.commit(durable).expect("room");
    log.append(&[1; 1_000]).expect("a segment is free");
}

#[test]
fn a_backup_of_a_running_log_is_restored_elsewhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    let (mut log, _) = open(&place("log")).expect("free").finish().expect("room");
    let durable = fill(&mut log, 0, 3_000);
    let mut writer = log.checkpointer().begin().expect("room");
    writer.chunk(&3_000u64.to_le_bytes()).expect("room");
    writer.commit(durable).expect("durable");
    fill(&mut log, 3_000, 2_000);
    let copier = log.checkpointer();
    let target = place("backup");
    let copy = std::thread::spawn(move || copier.backup(&target));
    let mut next = 5_000;
    while !copy.is_finished() || next == 5_000 {
        fill(&mut log, next, 20);
        next += 20;
        if log.end().0 - durable.0 > 3 * (256 << 10) {
            let durable = log.flush().expect("a good disk");
            let mut writer = log.checkpointer().begin().expect("room");
            writer.chunk(&next.to_le_bytes()).expect("room");
            writer.commit(durable).expect("durable");
        }
    }
    copy.join().expect("no panic").expect("a backup");
    drop(log);
    let (records, _) = read(&place("backup")).expect("whole");
    assert!((5_000..=next).contains(&records), "{records}");
    let storage: Arc<dyn Storage> = Arc::new(HostFiles);
    restore(&storage, &place("backup"), &place("new")).expect("whole");
    assert_eq!(read(&place("new")).expect("whole").0, records);
    let again = restore(&storage, &place("backup"), &place("new")).expect_err("occupied");
    assert!(matches!(again, LogError::Occupied { .. }), "{again}");
    let (mut log, _) = open(&place("new")).expect("free").finish().expect("room");
    fill(&mut log, records, 2_000);
    drop(log);
    assert_eq!(read(&place("new")).expect("whole").0, records + 2_000);
}

#[test]
fn a_backup_has_no_checkpoint_that_was_committed_after_its_cut() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    let (mut log, _) = open(&place("log")).expect("free").finish().expect("room");
    fill(&mut log, 0, 1_000);
    let mut writer = log.checkpointer().begin().expect("room");
    let from = log.flush().expect("a good disk");
    fill(&mut log, 1_000, 10);
    let cut = log.checkpointer().cut();
    fill(&mut log, 1_010, 1_000);
    // A checkpoint has its rows as they stand when their turn comes: these are from behind the cut.
    writer.chunk(&2_010u64.to_le_bytes()).expect("room");
    log.flush().expect("a good disk");
    writer.commit(from).expect("durable");
    cut.backup(&place("backup")).expect("a backup");
    let (records, found) = read(&place("backup")).expect("whole");
    assert_eq!((records, found.chunks), (1_010, 0));
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    let (mut log, _) = open(&place("log")).expect("free").finish().expect("room");
    fill(&mut log, 0, 500);
    log.checkpointer()
        .backup(&place("backup"))
        .expect("a backup");
    let path = place("backup").join("segment-000000");
    let mut bytes = std::fs::read(&path).expect("a segment");
    bytes[9_000] ^= 1;
    std::fs::write(&path, bytes).expect("room");
    let storage: Arc<dyn Storage> = Arc::new(HostFiles);
    let refused = restore(&storage, &place("backup"), &place("new")).expect_err("damaged");
    assert!(
        matches!(&refused, LogError::Damaged { path: named, .. } if *named == path),
        "{refused}"
    );
}

/// The version that this program writes, as a manifest of its own has it.
fn present_version() -> u32 {
    let directory = tempfile::tempdir().expect("a directory");
    open(directory.path())
        .expect("free")
        .finish()
        .expect("room");
    let manifest = std::fs::read(directory.path().join("manifest")).expect("a manifest");
    u32::from_le_bytes(manifest[8..12].try_into().expect("four bytes"))
}

fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixture-v{version}"))
}

/// A copy of the fixture that may be written to.
fn copy_of_fixture(version: u32) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for entry in std::fs::read_dir(fixture(version)).expect("the fixture") {
        let entry = entry.expect("the fixture");
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("room");
    }
    copy
}

/// A new version without a fixture fails here, and so does one that forgets how to read an old one.
#[test]
fn every_version_up_to_the_present_one_is_read() {
    for version in 1..=present_version() {
        let copy = copy_of_fixture(version);
        let (records, found) = read(copy.path()).expect("a version of ours");
        assert_eq!((records, found.chunks, found.records), (60, 1, 40));
        let (mut log, _) = open(copy.path())
            .expect("a version of ours")
            .finish()
            .expect("room");
        fill(&mut log, 60, 5);
        drop(log);
        assert_eq!(read(copy.path()).expect("a version of ours").0, 65);
    }
}

#[test]
fn a_newer_version_of_any_file_is_refused_by_name() {
    for name in ["manifest", "checkpoint-000001", "segment-000000"] {
        let copy = copy_of_fixture(present_version());
        let path = copy.path().join(name);
        let mut bytes = std::fs::read(&path).expect("a file");
        bytes[8..12].copy_from_slice(&(present_version() + 1).to_le_bytes());
        std::fs::write(&path, bytes).expect("room");
        match open(copy.path()) {
            Err(LogError::NewerVersion { path: named, .. }) => assert_eq!(named, path),
            other => panic!("{name}: {:?}", other.map(|_| ())),
        }
    }
}

#[test]
#[ignore = "makes the fixture of the format's version; only for a new one"]
fn make_fixture() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut log, _) = open(directory.path())
        .expect("free")
        .finish()
        .expect("room");
    let durable = fill(&mut log, 0, 20);
    let mut writer = log.checkpointer().begin().expect("room");
    writer.chunk(&20u64.to_le_bytes()).expect("room");
    writer.commit(durable).expect("durable");
    fill(&mut log, 20, 40);
    let end = log.close().expect("a good disk").0 as usize;
    std::fs::create_dir_all(fixture(present_version())).expect("room");
    for name in ["manifest", "checkpoint-000001", "segment-000000"] {
        let bytes = std::fs::read(directory.path().join(name)).expect("a file");
        // What is cut off reads as zeros.
        let kept = bytes.len().min(end);
        std::fs::write(fixture(present_version()).join(name), &bytes[..kept]).expect("room");
    }
}

#[test]
#[ignore = "the child of the test below"]
fn child_that_appends() {
    let directory = std::env::var("DYNO_TXN_LOG_TEST").expect("a directory");
    let (known, _) = read(Path::new(&directory)).expect("whole");
    let (mut log, _) = open(Path::new(&directory))
        .expect("free")
        .finish()
        .expect("room");
    println!("durable {known}");
    let mut waiting = std::collections::VecDeque::new();
    for next in known.. {
        while let Err(error) = log.append(&number(next)) {
            assert!(error.is_passing(), "{error}");
            log.submit(Meanwhile::GoesOn).expect("a good disk");
            log.poll().expect("a good disk");
        }
        waiting.push_back((next + 1, log.end()));
        log.submit(Meanwhile::GoesOn).expect("a good disk");
        let durable = log.poll().expect("a good disk");
        let mut confirmed = None;
        while let Some((records, _)) = waiting.pop_front_if(|(_, end)| *end <= durable) {
            confirmed = Some(records);
        }
        if let Some(records) = confirmed {
            println!("durable {records}");
        }
        if next % 2_000 == 1_999 {
            let durable = log.flush().expect("a good disk");
            let mut writer = log.checkpointer().begin().expect("room");
            writer.chunk(&(next + 1).to_le_bytes()).expect("room");
            writer.commit(durable).expect("durable");
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_called_durable() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut confirmed = 0u64;
    for round in 0..6u64 {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "child_that_appends", "--ignored", "--nocapture"])
            .env("DYNO_TXN_LOG_TEST", directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut heard = 0;
        for line in lines.map_while(Result::ok) {
            let Some(records) = line.strip_prefix("durable ") else {
                continue;
            };
            confirmed = records.parse().expect("a number");
            heard += 1;
            // What it says between the last line and the kill is still in the pipe, and counts.
            if heard == 30 + 37 * round {
                child.kill().expect("it lives");
            }
        }
        child.wait().expect("it ended");
        let (records, _) = read(directory.path()).expect("whole");
        assert!(
            records >= confirmed,
            "round {round}: {records} of {confirmed}"
        );
    }
    assert!(confirmed > 0);
}

#[test]
fn fresh_identities_differ() {
    assert_ne!(fresh_identity(), fresh_identity());
}
