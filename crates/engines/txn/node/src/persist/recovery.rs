//! Restores a partition from what the stores have.

use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::Partition;
use dyno_txn_log::{Answer, Ask, Lsn, Read, RemoteLog, RemoteOptions, Reply, Request};

use super::State;
use super::stores::Stores;
use crate::error::{bad_argument, from_log, unavailable};
use crate::pieces::Joiner;

/// Bytes that one request reads. Every record is shorter, so each reply has at least one whole
/// record unless the log ends in the middle of it.
const READ_BYTES: usize = 8 << 20;
/// The most that one message to a store carries.
const MESSAGE_BYTES: usize = 1 << 20;
/// Bytes that may wait for stores before the log takes no more.
const WINDOW_BYTES: usize = 64 << 20;

/// What a store has of a log, as it said when the log was opened. The order of the fields decides
/// which store is best: a newer writer counts for more than a longer log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StoredLog {
    written_epoch: u64,
    end: Lsn,
    first_needed: Lsn,
    chunks: u64,
}

/// Opens a partition's log at all stores, and restores the partition from the store that has most.
/// Returns the log to continue. Stores that have exactly the same go on at once; the others get a
/// checkpoint later.
///
/// Opening fences: each store refuses writers of earlier starts from then on. So an engine that was
/// taken for dead and lives can have nothing confirmed any more, and what is read here is final.
pub(crate) fn recover(
    stores: &mut Stores,
    state: &State,
    (slot, partition_id): (usize, u32),
    partition: &mut Partition,
) -> Result<RemoteLog> {
    let (log, epoch) = (state.log_number(partition_id), state.epoch);
    let logs: Vec<StoredLog> = (0..stores.len())
        .map(|store| {
            open(
                stores,
                store,
                slot,
                &Ask::Write(Request::Open { log, epoch }),
            )
        })
        .collect::<Result<_>>()?;
    let best = (0..logs.len()).max_by_key(|&store| logs[store]);
    let best = best.ok_or_else(|| {
        bad_argument("durability `remote-memory` needs a process that holds the log")
    })?;
    let from = logs[best];
    // A store may have lost its memory, or may have been away when this log was last written. The
    // newest start that answered anything is on this process's disk, so a log of an earlier one is
    // known to lack commits that clients were promised, and must not be taken for the whole.
    if from.written_epoch < state.active {
        let text = format!(
            "none of the persist processes has the log of partition {partition_id} as it was last \
             written: the newest that one has is of start {}, answers were given in start {}. \
             What their memory held is lost, unless another process has it",
            from.written_epoch, state.active
        );
        return Err(unavailable(text));
    }
    let options = RemoteOptions {
        log,
        epoch,
        stores: logs.len(),
        needed: logs.len(),
        window_bytes: WINDOW_BYTES,
        message_bytes: MESSAGE_BYTES,
    };
    if from.written_epoch == 0 {
        return RemoteLog::new(options, Lsn(0)).map_err(from_log);
    }
    let source = Source {
        store: best,
        slot,
        log,
    };
    let end = read_all(stores, source, from, partition)?;
    let mut remote = RemoteLog::new(options, end).map_err(from_log)?;
    // The bytes behind the last whole record are cut off, so that new records follow it directly.
    for store in (0..logs.len()).filter(|&store| logs[store] == from) {
        let cut = Ask::Write(Request::Cut { log, epoch, end });
        match stores.request(store, slot, &cut)? {
            Reply::Answer(Answer::Kept { end: kept }) if kept == end => {
                remote.connected(store, end);
                stores.mark_complete(store, slot, end);
            }
            _ => return Err(stores.unexpected_reply(store)),
        }
    }
    Ok(remote)
}

fn open(stores: &mut Stores, store: usize, slot: usize, ask: &Ask) -> Result<StoredLog> {
    match stores.request(store, slot, ask)? {
        Reply::Answer(Answer::Opened {
            written_epoch,
            first_needed,
            chunks,
            end,
        }) => Ok(StoredLog {
            written_epoch,
            end,
            first_needed,
            chunks,
        }),
        _ => Err(stores.unexpected_reply(store)),
    }
}

/// Where a log is read from.
#[derive(Clone, Copy)]
struct Source {
    store: usize,
    slot: usize,
    log: u64,
}

/// Applies the checkpoint and the log behind it. Returns where the last whole record ends.
fn read_all(
    stores: &mut Stores,
    Source { store, slot, log }: Source,
    stored: StoredLog,
    partition: &mut Partition,
) -> Result<Lsn> {
    let read = |stores: &mut Stores, what: Read| match stores.request(
        store,
        slot,
        &Ask::Read(log, what),
    )? {
        Reply::Bytes(bytes) => Ok(bytes),
        _ => Err(stores.unexpected_reply(store)),
    };
    let mut joiner = Joiner::default();
    for index in 0..stored.chunks as usize {
        let chunk = read(stores, Read::Chunk { index })?;
        if let Some(record) = joiner.push(&chunk)? {
            partition.restore(record)?;
        }
    }
    let (mut joiner, mut at) = (Joiner::default(), stored.first_needed);
    while at < stored.end {
        let most_bytes = READ_BYTES;
        let bytes = read(
            stores,
            Read::Bytes {
                from: at,
                most_bytes,
            },
        )?;
        let records = RemoteLog::records(log, at, &bytes).map_err(|position| {
            let text = format!(
                "{}: the log's bytes at {position} are not what was sent",
                stores.name(store)
            );
            Error::new(Code::Damaged, text)
        })?;
        // What is left is the beginning of a record. Its commit was not answered, because that
        // takes the confirmation of all stores, and not even this one has the whole record.
        let Some(&(next, _)) = records.last() else {
            break;
        };
        for (_, record) in records {
            if let Some(record) = joiner.push(record)? {
                partition.restore(record)?;
            }
        }
        at = next;
    }
    Ok(at)
}
