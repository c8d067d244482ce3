//! From what stores have back to a partition.

use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::Partition;
use dyno_txn_log::{Answer, Ask, Lsn, Read, RemoteLog, RemoteOptions, Reply, Request};

use super::State;
use super::stores::Stores;
use crate::error::{bad_argument, from_log, unavailable};
use crate::pieces::Joiner;

/// What is read at once; records are shorter.
const READ_BYTES: usize = 8 << 20;
/// The most that one message to a store carries.
const MESSAGE_BYTES: usize = 1 << 20;
/// What may wait for stores before nothing more is taken.
const WINDOW_BYTES: usize = 64 << 20;

/// What a store said when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    written_epoch: u64,
    end: Lsn,
    first_needed: Lsn,
    chunks: u64,
}

/// Opens a partition's log at all stores, applies what the best one has to the partition, and gives the log to go on
/// with. Stores that have just the same go on at once; the others get a checkpoint later.
pub(crate) fn recover(
    stores: &mut Stores,
    state: &State,
    (place, id): (usize, u32),
    partition: &mut Partition,
) -> Result<RemoteLog> {
    let (log, epoch) = (state.log_of(id), state.epoch);
    let mut found = Vec::new();
    for store in 0..stores.len() {
        let open = Ask::Write(Request::Open { log, epoch });
        let Reply::Answer(Answer::Opened {
            written_epoch,
            first_needed,
            chunks,
            end,
        }) = stores.ask(store, place, &open)?
        else {
            return Err(stores.nonsense(store));
        };
        found.push(Found {
            written_epoch,
            end,
            first_needed,
            chunks,
        });
    }
    let best = (0..found.len()).max_by_key(|&store| found[store]);
    let best = best.ok_or_else(|| {
        bad_argument("durability `remote-memory` needs a process that holds the log")
    })?;
    let from = found[best];
    if from.written_epoch < state.active {
        let text = format!(
            "none of the persist processes has the log of partition {id} as it was last written: the newest that one \
             has is of start {}, answers were given in start {}. What their memory held is lost, unless \
             another process has it",
            from.written_epoch, state.active
        );
        return Err(unavailable(text));
    }
    let options = RemoteOptions {
        log,
        epoch,
        stores: found.len(),
        needed: found.len(),
        window_bytes: WINDOW_BYTES,
        message_bytes: MESSAGE_BYTES,
    };
    if from.written_epoch == 0 {
        return RemoteLog::new(options, Lsn(0)).map_err(from_log);
    }
    let end = read_all(stores, (best, place, log), from, partition)?;
    let mut remote = RemoteLog::new(options, end).map_err(from_log)?;
    for store in (0..found.len()).filter(|&store| found[store] == from) {
        let cut = Ask::Write(Request::Cut { log, epoch, end });
        match stores.ask(store, place, &cut)? {
            Reply::Answer(Answer::Kept { end: kept }) if kept == end => {
                remote.connected(store, end);
                stores.is_whole(store, place, end);
            }
            _ => return Err(stores.nonsense(store)),
        }
    }
    Ok(remote)
}

/// Applies checkpoint and log. Where the last whole record ends.
fn read_all(
    stores: &mut Stores,
    (store, place, log): (usize, usize, u64),
    found: Found,
    partition: &mut Partition,
) -> Result<Lsn> {
    let read =
        |stores: &mut Stores, what: Read| match stores.ask(store, place, &Ask::Read(log, what))? {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => Err(stores.nonsense(store)),
        };
    let mut joiner = Joiner::default();
    for index in 0..found.chunks as usize {
        let chunk = read(stores, Read::Chunk { index })?;
        if let Some(record) = joiner.take(&chunk)? {
            partition.restore(record)?;
        }
    }
    let (mut joiner, mut at) = (Joiner::default(), found.first_needed);
    while at < found.end {
        let most_bytes = READ_BYTES;
        let bytes = read(
            stores,
            Read::Bytes {
                from: at,
                most_bytes,
            },
        )?;
        let records = RemoteLog::records(log, at, &bytes).map_err(|place| {
            let text = format!(
                "{}: the log's bytes at {place} are not what was sent",
                stores.name(store)
            );
            Error::new(Code::Damaged, text)
        })?;
        // What is left is the beginning of a record whose end was never sent.
        let Some(&(next, _)) = records.last() else {
            break;
        };
        for (_, record) in records {
            if let Some(record) = joiner.take(record)? {
                partition.restore(record)?;
            }
        }
        at = next;
    }
    Ok(at)
}
