//! Damage in the middle of a log is found and named; it is never taken for the end.

mod load;

use std::path::{Path, PathBuf};

use dyno_sim::{Disk, Faults, Lie, Random};
use dyno_txn_log::{LogError, Lsn};
use load::{LogModel, OPTIONS, checkpoint, record, recover, work};

/// A log of a few segments with a checkpoint; closed or just left.
fn log(closed: bool) -> (Disk, LogModel) {
    let disk = Disk::new(5, Faults::default());
    let (mut log, _, mut model) = recover(&disk, &LogModel::default(), "new").expect("a log");
    for number in 0..250 {
        model.ends.push(append(&mut log, number));
        if number % 7 == 0 {
            log.flush().expect("a good disk");
        }
        if number == 90 {
            checkpoint(&mut log, &mut model).expect("a good disk");
        }
    }
    let durable = log.flush().expect("a good disk");
    model.durable = model.appended();
    assert!(durable >= *model.ends.last().expect("records"));
    if closed {
        log.close().expect("a good disk");
    }
    (disk, model)
}

fn append(log: &mut dyno_txn_log::FileLog, number: u64) -> Lsn {
    loop {
        match log.append(&record(number)) {
            Ok(end) => return end,
            Err(e) if e.is_passing() => log.poll().expect("a good disk"),
            Err(e) => panic!("{e}"),
        };
    }
}

/// Flips a bit at `offset` of a file and recovers: the position that the error names, or the number
/// of records.
fn judge(disk: &Disk, model: &LogModel, path: &Path, offset: usize) -> Result<u64, (PathBuf, u64)> {
    let bad = disk.after_crash(0);
    assert!(bad.damage(path, offset, 0x10), "there is such a byte");
    let lenient = LogModel {
        durable: 0,
        ..model.clone()
    };
    match recover(&bad, &lenient, "damaged") {
        Ok((_, _, found)) => Ok(found.appended()),
        Err(LogError::Damaged {
            path, offset_bytes, ..
        }) => Err((path, offset_bytes)),
        Err(error) => panic!("{error}"),
    }
}

fn segments(disk: &Disk) -> Vec<PathBuf> {
    let all = disk.names();
    let is_segment = |path: &PathBuf| path.to_string_lossy().contains("segment-");
    all.into_iter().filter(is_segment).collect()
}

#[test]
fn in_a_closed_log_every_damaged_byte_is_named_or_harmless() {
    let (disk, model) = log(true);
    let mut random = Random::new(9);
    let (mut found, mut harmless) = (0, 0);
    for path in segments(&disk) {
        for _ in 0..400 {
            let offset = random.below(OPTIONS.segment_bytes as usize);
            match judge(&disk, &model, &path, offset) {
                Ok(records) => {
                    // What nothing was written to, or is not needed any more.
                    assert_eq!(records, model.appended(), "{} at {offset}", path.display());
                    harmless += 1;
                }
                Err((named, at)) => {
                    assert_eq!(named, path);
                    assert!(
                        at <= offset as u64 && offset as u64 - at < 8 << 10,
                        "{at} {offset}"
                    );
                    found += 1;
                }
            }
        }
    }
    assert!(
        found > 300 && harmless > 100,
        "{found} found, {harmless} harmless"
    );
}

#[test]
fn every_byte_of_a_record_of_the_middle_is_named_by_its_record() {
    let (disk, model) = log(false);
    let index = model.ends.len() - 60;
    let (before, end) = (model.ends[index - 1], model.ends[index]);
    let len = record(model.forgotten + index as u64).len() as u64;
    let at = end.0 - len - 8;
    assert!(at >= before.0);
    let segment_of = |at: u64| at / OPTIONS.segment_bytes;
    let held = |path: &&PathBuf| {
        let bytes = disk.read(path).expect("a file");
        let stated = u64::from_le_bytes(bytes[32..40].try_into().expect("eight"));
        stated == segment_of(at)
    };
    let paths = segments(&disk);
    let path = paths.iter().find(held).expect("the segment of the record");
    for place in at..end.0 {
        let offset = place % OPTIONS.segment_bytes;
        let named = judge(&disk, &model, path, offset as usize);
        let (file, position) = named.expect_err("damage");
        assert_eq!(&file, path);
        // A wrong length shows at this record or behind it, in the same group.
        assert!(
            position == at % OPTIONS.segment_bytes,
            "{place}: {position}"
        );
    }
}

#[test]
fn damage_of_the_last_write_of_a_log_that_was_not_closed_looks_like_a_torn_write() {
    let (disk, model) = log(false);
    let end = model.ends.last().expect("records").0;
    let paths = segments(&disk);
    let shorter = paths.iter().any(|path| {
        let offset = (end - 1) % OPTIONS.segment_bytes;
        matches!(judge(&disk, &model, path, offset as usize), Ok(n) if n < model.appended())
    });
    assert!(shorter, "the last write is not vouched for");
    let (closed, model) = log(true);
    let named = segments(&closed).iter().any(|path| {
        let offset = (end - 1) % OPTIONS.segment_bytes;
        judge(&closed, &model, path, offset as usize).is_err()
    });
    assert!(named, "closing vouches for it");
}

#[test]
fn checkpoint_and_manifest_damage_is_named() {
    let (disk, model) = log(true);
    for name in ["manifest", "checkpoint-000001"] {
        let path = PathBuf::from(load::DIRECTORY).join(name);
        let len = disk.read(&path).expect("a file").len();
        for offset in (0..len).step_by(37) {
            let bad = disk.after_crash(0);
            assert!(bad.damage(&path, offset, 1));
            match recover(&bad, &model, "damaged") {
                Err(LogError::Damaged { path: named, .. }) => assert_eq!(named, path),
                // The version is damaged.
                Err(LogError::NewerVersion { path: named, .. }) => assert_eq!(named, path),
                other => panic!("{name} at {offset}: {:?}", other.map(|found| found.1)),
            }
        }
    }
}

#[test]
fn a_lost_segment_is_missed() {
    let (disk, model) = log(true);
    let mut missed = 0;
    for path in segments(&disk) {
        let bad = disk.after_crash(0);
        dyno_io::FileSystem::remove(&bad, &path).expect("a good disk");
        match recover(&bad, &model, "removed") {
            Ok((_, _, found)) => assert_eq!(found.appended(), model.appended()),
            Err(LogError::Damaged { .. }) => missed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(missed >= 2);
}

#[test]
fn a_disk_that_confirms_what_it_did_not_do_is_caught() {
    let run = |lie: Option<Lie>| {
        let disk = Disk::new(6, Faults::default());
        let (mut log, _, mut model) = recover(&disk, &LogModel::default(), "new").expect("a log");
        let before = disk.steps();
        disk.set_faults(Faults {
            lie,
            ..Faults::default()
        });
        work(&mut log, &mut model, &mut Random::new(6), 160).expect("no error");
        log.close().expect("no error");
        (disk, model, before)
    };
    let (honest, _, before) = run(None);
    let mut caught = 0;
    for step in before..honest.steps() {
        for lie in [Lie::Lost { step }, Lie::Misdirected { step }] {
            let (disk, model, _) = run(Some(lie));
            match recover(&disk.after_crash(1), &model, &format!("{lie:?}")) {
                Ok(_) => {}
                Err(LogError::Damaged { .. }) => caught += 1,
                Err(error) => panic!("{lie:?}: {error}"),
            }
        }
    }
    assert!(caught > 20, "{caught}");
}
