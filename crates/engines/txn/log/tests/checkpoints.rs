//! Checkpoints on a disk that fails while one becomes current.

use std::path::Path;
use std::sync::Arc;

use dyno_sim::{Disk, Failure, Faults};
use dyno_txn_log::{FileLog, LogError, Options, Recovery};

const OPTIONS: Options = Options {
    identity: 7,
    segment_bytes: 64 << 10,
    segments: 2,
    segments_most: 6,
    buffer_bytes: 8 << 10,
    depth: 2,
};

fn open(disk: &Disk) -> Result<Recovery, LogError> {
    Recovery::open(Arc::new(disk.clone()), Path::new("/log"), OPTIONS)
}

/// A log with a record and a checkpoint after it. The commit may fail, also after the rename that
/// makes the checkpoint current.
fn with_a_checkpoint(disk: &Disk) -> Result<FileLog, LogError> {
    let (mut log, _) = open(disk)?.finish()?;
    log.append(b"a record")?;
    let durable = log.flush()?;
    let mut writer = log.checkpointer().begin()?;
    writer.chunk(b"first")?;
    let _ = writer.commit(durable);
    Ok(log)
}

#[test]
fn the_next_checkpoint_leaves_one_alone_that_may_be_current() {
    let calm = Disk::new(1, Faults::default());
    with_a_checkpoint(&calm).expect("a good disk");
    let mut tried = 0;
    for step in 0..calm.steps() {
        let failure = Some(Failure::Once { step });
        let faults = Faults {
            failure,
            ..Faults::default()
        };
        let disk = Disk::new(1, faults);
        let Ok(log) = with_a_checkpoint(&disk) else {
            continue;
        };
        let mut next = log.checkpointer().begin().expect("the fault is over");
        next.chunk(b"second").expect("the fault is over");
        tried += 1;
        for seed in 0..16 {
            let at = format!("step {step}, seed {seed}");
            let mut recovery = open(&disk.after_crash(seed)).expect(&at);
            let chunk = recovery.next_chunk().expect(&at);
            assert!(chunk.is_none_or(|chunk| chunk == b"first"), "{at}");
        }
    }
    assert!(tried > 0, "no fault hit a commit");
}
