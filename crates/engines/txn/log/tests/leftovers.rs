//! What a crash leaves behind a gap is not the log's, whatever is written into the gap later.

use std::path::Path;
use std::sync::Arc;

use dyno_io::Meanwhile;
use dyno_sim::{Disk, Faults};
use dyno_txn_log::{FileLog, Options, Recovery};

const DIRECTORY: &str = "/log";
const OPTIONS: Options = Options {
    identity: 7,
    segment_bytes: 64 << 10,
    segments: 2,
    segments_most: 6,
    buffer_bytes: 8 << 10,
    depth: 2,
};

/// Opens the log and returns its records.
fn open(disk: &Disk) -> (FileLog, Vec<Vec<u8>>) {
    let recovery = Recovery::open(Arc::new(disk.clone()), Path::new(DIRECTORY), OPTIONS);
    let mut recovery = recovery.expect("a log");
    let mut records = Vec::new();
    while let Some(record) = recovery.next_record().expect("no damage") {
        records.push(record.bytes.to_vec());
    }
    (recovery.finish().expect("room").0, records)
}

/// Whether a group begins in the block with this number of some segment.
fn has_group(disk: &Disk, block: usize) -> bool {
    disk.names().iter().any(|name| {
        let bytes = disk.read(name).unwrap_or_default();
        bytes.get(block * 4096..block * 4096 + 4) == Some(b"DyGr")
    })
}

/// A disk on which the second of two writes under way survived a crash, and the first did not.
fn with_a_gap() -> Disk {
    // The second fills a block, or it would wait for the first.
    let (first, second) = (vec![1; 3_000], vec![2; 5_000]);
    for seed in 0..1_000 {
        let disk = Disk::new(seed, Faults::default());
        let (mut log, _) = open(&disk);
        log.append(&first).expect("room");
        log.submit(Meanwhile::GoesOn).expect("a good disk");
        log.append(&second).expect("room");
        log.submit(Meanwhile::GoesOn).expect("a good disk");
        assert_eq!(log.in_flight(), 2);
        let after = disk.after_crash(seed);
        if !has_group(&after, 1) && has_group(&after, 2) {
            return after;
        }
    }
    panic!("no crash left a gap");
}

#[test]
fn a_group_behind_a_gap_does_not_follow_what_fills_the_gap() {
    let disk = with_a_gap();
    let (mut log, records) = open(&disk);
    assert!(
        records.is_empty(),
        "the first write is missing, so there is no second"
    );
    let new = vec![3; 3_000];
    log.append(&new).expect("room");
    log.flush().expect("a good disk");
    drop(log);
    assert!(has_group(&disk, 1) && has_group(&disk, 2));
    assert_eq!(open(&disk).1, std::slice::from_ref(&new));
    // Nor in the life after, which appends elsewhere.
    let (mut log, _) = open(&disk);
    let last = vec![4; 10];
    log.append(&last).expect("room");
    log.flush().expect("a good disk");
    drop(log);
    assert_eq!(open(&disk).1, [new, last]);
}

#[test]
fn records_of_an_earlier_use_of_a_segment_are_gone() {
    let disk = Disk::new(4, Faults::default());
    let (mut log, _) = open(&disk);
    // Twice through all segments; each time all is forgotten but the last few records.
    for round in 0..40u8 {
        for _ in 0..10 {
            log.append(&[round; 2_000]).expect("room");
            log.flush().expect("a good disk");
        }
        let durable = log.durable();
        let checkpoint = log.checkpointer().begin().expect("room");
        checkpoint.commit(durable).expect("durable");
    }
    assert!(log.end().0 > 10 * (64 << 10));
    log.append(b"the only one").expect("room");
    log.flush().expect("a good disk");
    drop(log);
    assert_eq!(open(&disk).1, [b"the only one".to_vec()]);
}
