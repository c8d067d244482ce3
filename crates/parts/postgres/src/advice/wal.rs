//! Settings for durability, the write-ahead log and checkpoints, which is where the appends of a
//! log spend their time.

use super::{Advice, MIB, advice, at_restart, mib};
use crate::machine_size::MachineSize;

const LEAST_WAL: u64 = 512 * MIB;
const MOST_WAL: u64 = 32 << 10 << 20;
/// Bytes of write-ahead log to assume if the free space of the disk is unknown.
const USUAL_WAL: u64 = 2048 * MIB;
/// The first kernel whose syncfs reports write errors (syncfs(2)).
const SYNCFS_KERNEL: (u32, u32) = (5, 8);
/// No more than this is created ahead, because it takes about a second, and checkpoints recycle the
/// segments that come after.
const MOST_WAL_AHEAD: u64 = 512 * MIB;

pub(super) fn settings(size: &MachineSize, lz4: bool) -> Vec<Advice> {
    let mut all = commits(lz4);
    all.extend(checkpoints(size));
    all
}

fn commits(lz4: bool) -> Vec<Advice> {
    vec![
        advice(
            "fsync",
            "on",
            "an acknowledged record must survive a power cut",
        ),
        advice(
            "full_page_writes",
            "on",
            "a page that was half written at a power cut can be repaired by nothing else",
        ),
        advice(
            "synchronous_commit",
            "on",
            "a commit is acknowledged when it is on stable storage, and on the synchronous standbys where there are any",
        ),
        at_restart(
            "wal_level",
            "replica",
            "a standby can follow without a restart of this server",
        ),
        at_restart(
            "wal_buffers",
            "8MB",
            "batches of several appenders fit between two flushes, and all of it stays in the processor's cache, which 64MB would not",
        ),
        advice(
            "wal_compression",
            if lz4 { "lz4" } else { "pglz" },
            "page images after a checkpoint are the counter rows' and indexes', and compress well",
        ),
    ]
}

fn most_wal(size: &MachineSize) -> u64 {
    let tenth = size.disk_free_bytes.map(|bytes| bytes / 10);
    tenth.map_or(USUAL_WAL, |bytes| bytes.clamp(LEAST_WAL, MOST_WAL))
}

fn least_wal(size: &MachineSize) -> u64 {
    (most_wal(size) / 4).max(80 * MIB)
}

/// How many bytes of the write-ahead log are created with a new cluster: never more than
/// `min_wal_size` keeps anyway.
pub(crate) fn ahead_bytes(size: &MachineSize) -> u64 {
    least_wal(size).min(MOST_WAL_AHEAD)
}

fn checkpoints(size: &MachineSize) -> Vec<Advice> {
    let wal = most_wal(size);
    let mut all = vec![
        advice(
            "max_wal_size",
            mib(wal),
            "checkpoints come by time, not by volume: each makes the next write of every page dearer (a tenth of the free disk)",
        ),
        advice(
            "min_wal_size",
            mib(least_wal(size)),
            "segments are used again, which is cheaper than new ones",
        ),
        advice(
            "checkpoint_timeout",
            "15min",
            "fewer page images in the log; a recovery reads at most what was written in that time",
        ),
        advice(
            "checkpoint_completion_target",
            "0.9",
            "a checkpoint's writes are spread over the time until the next one, so that commits do not queue behind them",
        ),
        at_restart(
            "max_wal_senders",
            "10",
            "standbys, their copies and one to spare can connect without a restart",
        ),
        at_restart("max_replication_slots", "10", "a slot for each standby"),
        advice(
            "max_slot_wal_keep_size",
            mib(wal.max(1024 * MIB)),
            "a standby that is gone must not fill the disk; it is copied anew instead",
        ),
    ];
    if size.kernel.is_some_and(|kernel| kernel >= SYNCFS_KERNEL) {
        all.push(advice(
            "recovery_init_sync_method",
            "syncfs",
            "after a crash the files, thousands in a log of many ranges, are synced by one call instead of one each, which was most of the time of a recovery",
        ));
    }
    all
}
