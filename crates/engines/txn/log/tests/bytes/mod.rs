//! Arbitrary bytes as the files of a log: recovery says what is wrong or reads records, and never
//! panics, takes much memory, or hands out a log that cannot be read again.

use std::path::Path;
use std::sync::Arc;

use dyno_sim::{Disk, Faults};
use dyno_txn_log::{Options, Recovery};

const OPTIONS: Options = Options {
    identity: 11,
    segment_bytes: 64 << 10,
    segments: 2,
    segments_most: 4,
    buffer_bytes: 4 << 10,
    depth: 1,
};

/// Puts `files` onto a disk and recovers it, twice.
pub fn check(files: &[(&str, &[u8])]) {
    let disk = Disk::new(1, Faults::default());
    for (name, bytes) in files {
        disk.write(&Path::new("/log").join(name), bytes);
    }
    let open = || Recovery::open(Arc::new(disk.clone()), Path::new("/log"), OPTIONS);
    let Ok(mut recovery) = open() else {
        return;
    };
    let mut records = 0;
    loop {
        match recovery.next_record() {
            Ok(Some(_)) => records += 1,
            Ok(None) => break,
            Err(_) => return,
        }
    }
    let Ok((log, found)) = recovery.finish() else {
        return;
    };
    assert_eq!(found.records, records);
    drop(log);
    let again = open().and_then(Recovery::verify);
    let again = again.expect("a log that was handed out is read again");
    assert_eq!(again.records, records);
}
