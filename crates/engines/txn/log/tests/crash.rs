//! Whatever happens to machine, process and disk: what was called durable is read back, in order,
//! and nothing else but perhaps what was appended right behind it.

mod load;

use std::path::Path;
use std::sync::Arc;

use dyno_sim::{Disk, Failure, Faults, Random};
use dyno_txn_log::{LogError, Recovery};
use load::{DIRECTORY, LogModel, OPTIONS, recover, work};

const STEPS: usize = 260;

/// One life of a log on `disk`, from recovery on. What it knows is in `model` also after an error.
fn live(disk: &Disk, model: &mut LogModel, seed: u64, what: &str) -> bool {
    let Ok((mut log, _, found)) = recover(disk, model, what) else {
        return false;
    };
    *model = found;
    work(&mut log, model, &mut Random::new(seed), STEPS).is_ok()
}

fn steps_without_faults(seed: u64) -> u64 {
    let disk = Disk::new(seed, Faults::default());
    assert!(live(&disk, &mut LogModel::default(), seed, "no faults"));
    disk.steps()
}

#[test]
fn a_crash_at_any_step_loses_nothing_durable() {
    let mut torn = 0;
    for step in 0..steps_without_faults(1) {
        let faults = Faults {
            crash_step: Some(step),
            ..Faults::default()
        };
        let disk = Disk::new(1, faults);
        let mut model = LogModel::default();
        // Making a segment ahead may meet the crash without the log's noticing.
        live(&disk, &mut model, 1, "before the crash");
        assert!(disk.steps() > step);
        for seed in 0..4 {
            let after = disk.after_crash(seed);
            let what = format!("crash at {step}, seed {seed}");
            let recovered = recover(&after, &model, &what);
            let (_, report, _) = recovered.unwrap_or_else(|e| panic!("{what}: {e}"));
            torn += u32::from(report.torn.is_some());
        }
    }
    assert!(torn > 10, "{torn} torn ends: the crashes miss the writes");
}

/// The next file is still being made when the last segment is full to its last byte.
#[test]
fn a_log_that_ended_with_its_last_segment_opens_again() {
    let disk = Disk::new(4, Faults::default());
    let open = |disk: &Disk| {
        let disk = Arc::new(disk.clone());
        Recovery::open(disk, Path::new(DIRECTORY), OPTIONS)?.finish()
    };
    let (mut log, _) = open(&disk).expect("a new log");
    // There is no room for a third one.
    disk.set_faults(Faults {
        space_bytes: Some(2 * OPTIONS.segment_bytes + 8192),
        ..Faults::default()
    });
    let most = log.most_record_bytes();
    for _ in 0..2 {
        for len in [most, most, most, most, most, most, most, most - 4096] {
            log.append(&vec![7; len]).expect("room");
            log.flush().expect("it is written");
        }
    }
    assert_eq!(log.end().0, 2 * OPTIONS.segment_bytes);
    let full = log.append(b"more").expect_err("nowhere to go on");
    assert!(matches!(full, LogError::Full { .. }), "{full}");
    for after in [disk.after_kill(1), disk.after_crash(1)] {
        let (mut log, found) = open(&after).expect("there is room now");
        assert_eq!(found.records, 16);
        log.append(b"more").expect("room");
        log.flush().expect("it is written");
    }
}

#[test]
fn many_lives_with_crashes_kills_and_short_writes() {
    let mut segments_used_again = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut disk = Disk::new(seed, Faults::default());
        let mut model = LogModel::default();
        for round in 0..8 {
            let what = format!("seed {seed}, round {round}");
            disk.set_faults(Faults {
                short_writes: random.one_in(3),
                crash_step: Some(disk.steps() + random.below(500) as u64),
                slow_one_in: 1 + random.below(6),
                ..Faults::default()
            });
            live(&disk, &mut model, random.bits(), &what);
            disk = if random.one_in(3) {
                disk.after_kill(random.bits())
            } else {
                disk.after_crash(random.bits())
            };
        }
        let last = recover(&disk, &model, &format!("seed {seed}, the end"));
        let (log, ..) = last.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let files = disk.names().len() as u64;
        segments_used_again += u32::from(log.end().0 > (files + 2) * (64 << 10));
    }
    assert!(segments_used_again > 10, "{segments_used_again}");
}

#[test]
fn what_a_recovery_returned_survives_the_next_crash_of_the_machine() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let disk = Disk::new(seed, Faults::default());
        let mut model = LogModel::default();
        live(&disk, &mut model, seed, "the first life");
        let killed = disk.after_kill(random.bits());
        let (log, _, found) = recover(&killed, &model, "after the kill").expect("a log");
        drop(log);
        let crashed = killed.after_crash(random.bits());
        recover(&crashed, &found, &format!("seed {seed}")).expect("the same log");
    }
}

#[test]
fn after_an_error_of_the_disk_nothing_more_is_called_durable() {
    for step in 0..steps_without_faults(2) {
        for failure in [Failure::Once { step }, Failure::From { step }] {
            let faults = Faults {
                failure: Some(failure),
                ..Faults::default()
            };
            let disk = Disk::new(2, faults);
            let mut model = LogModel::default();
            live(&disk, &mut model, 2, "before the error");
            let what = format!("{failure:?}");
            for after in [disk.after_kill(step), disk.after_crash(step)] {
                let recovered = recover(&after, &model, &what);
                recovered.unwrap_or_else(|e| panic!("{what}: {e}"));
            }
        }
    }
}

#[test]
fn a_poisoned_log_takes_and_confirms_nothing() {
    let disk = Disk::new(3, Faults::default());
    let (mut log, ..) = recover(&disk, &LogModel::default(), "new").expect("a log");
    let end = log.append(b"one").expect("room");
    disk.set_faults(Faults {
        failure: Some(Failure::Once { step: disk.steps() }),
        ..Faults::default()
    });
    let first = log.flush().expect_err("the write fails");
    // The disk is well again, but what is on it is unknown.
    for _ in 0..10 {
        assert_eq!(
            log.poll().expect_err("poisoned").to_string(),
            first.to_string()
        );
        log.append(b"two").expect_err("poisoned");
        log.flush().expect_err("poisoned");
        assert!(log.durable() < end);
    }
}
