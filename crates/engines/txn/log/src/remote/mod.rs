//! A log in the memory of other processes: the state machines of the sender and of the store.
//! Neither does I/O; the caller carries [`Request`]s and [`Answer`]s between them.
//!
//! A log has one writer, the one that opened it with the highest epoch. A store refuses all others
//! ([`PersistError::Fenced`]). The bytes are frames of records, one after the other, and positions
//! count them. A record is durable when `needed` stores have it. [`recovered_end`] says which store
//! a new writer must read so that it misses nothing durable.

mod sender;
mod store;
mod wire;

pub use sender::{Outgoing, RemoteLog, RemoteOptions};
pub use store::PersistStore;
pub use wire::{Ask, Reply, WireError, append_head};

use crate::position::Lsn;

/// A request of a writer to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Become the writer of `log`. The store refuses lower and equal epochs from then on.
    Open {
        /// The number of the log to open.
        log: u64,
        /// The epoch of the new writer.
        epoch: u64,
    },
    /// Keep `bytes` at `at`. Bytes that the store has already are skipped, so a repetition is
    /// harmless.
    Append {
        /// The number of the log to append to.
        log: u64,
        /// The epoch of the writer that sends this.
        epoch: u64,
        /// The position of the first byte.
        at: Lsn,
        /// Frames of records, or parts of them.
        bytes: Vec<u8>,
    },
    /// Drop everything from `end` on, and count the rest as written in this epoch.
    Cut {
        /// The number of the log to cut.
        log: u64,
        /// The epoch of the writer that sends this.
        epoch: u64,
        /// The new end of the log.
        end: Lsn,
    },
    /// Drop everything, and begin again at `at`. The log counts as not written at all until a
    /// checkpoint is installed, so that no recovery takes the beginning for the whole.
    Reset {
        /// The number of the log to empty.
        log: u64,
        /// The epoch of the writer that sends this.
        epoch: u64,
        /// The new beginning and end.
        at: Lsn,
    },
    /// Keep a chunk of checkpoint `number` aside, without using it.
    Chunk {
        /// The number of the log that is checkpointed.
        log: u64,
        /// The epoch of the writer that sends this.
        epoch: u64,
        /// The number of the checkpoint. A new number drops an unfinished one.
        number: u64,
        /// The bytes of the chunk, which follows the ones sent before.
        bytes: Vec<u8>,
    },
    /// Make checkpoint `number` current, and drop the log before `first_needed`.
    Install {
        /// The number of the log that is checkpointed.
        log: u64,
        /// The epoch of the writer that sends this.
        epoch: u64,
        /// The number of the checkpoint to install.
        number: u64,
        /// The number of its chunks, so that one that was lost is noticed.
        chunks: u64,
        /// The position at which recovery continues after the checkpoint.
        first_needed: Lsn,
    },
}

/// A request of a reader to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Read bytes of the log from `from` on.
    Bytes {
        /// The position of the first byte.
        from: Lsn,
        /// The most bytes that the reply may have.
        most_bytes: usize,
    },
    /// Read a chunk of the current checkpoint.
    Chunk {
        /// The number of the chunk, from 0.
        index: usize,
    },
}

/// The reply of a store to a [`Request`] that it has carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The store refuses older writers from now on.
    Opened {
        /// The epoch of the writer that last cut, appended to or installed a checkpoint of the log.
        /// Of two stores the one with the higher epoch is right. 0 means that the store has nothing
        /// that counts.
        written_epoch: u64,
        /// The position at which recovery continues after the checkpoint.
        first_needed: Lsn,
        /// Chunks of the current checkpoint.
        chunks: u64,
        /// The end of the bytes in the store.
        end: Lsn,
    },
    /// The store has the log up to this position.
    Kept {
        /// The end of the bytes in the store.
        end: Lsn,
    },
    /// The store has the chunk, or has installed the checkpoint.
    Done,
}

/// The reason for which a store refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// A later writer has the log, so this one must stop.
    #[error("log {log} belongs to a writer of epoch {epoch}")]
    Fenced {
        /// The number of the log.
        log: u64,
        /// The epoch of the later writer.
        epoch: u64,
    },
    /// Bytes before these are missing. The writer has to send from `end` on.
    #[error("log {log} is kept up to {end} only")]
    Gap {
        /// The number of the log.
        log: u64,
        /// The end of the bytes in the store.
        end: Lsn,
    },
    /// The store is full, until a checkpoint lets it drop a part of a log.
    #[error("the store holds {used_bytes} bytes of at most {most_bytes}")]
    Full {
        /// Bytes of all logs and checkpoints in it.
        used_bytes: u64,
        /// The bound that it was started with.
        most_bytes: u64,
    },
    /// The log was not opened in this store, or the store has as many logs as it may have.
    #[error("the store has no log {log}")]
    Unknown {
        /// The number of the log.
        log: u64,
    },
    /// The store does not have what was requested: positions before the checkpoint, or a checkpoint
    /// that is not whole.
    #[error("log {log}: {what}")]
    NotKept {
        /// The number of the log.
        log: u64,
        /// A description of what was requested.
        what: String,
    },
}

/// Chooses the store to read from, given the answers of all stores to [`Request::Open`]: the
/// written epoch and the end, or `None` for a store that did not answer. It is the one with the
/// longest log of the highest epoch. The writer then brings the other stores to its state with
/// `Reset` and `Append`, and it with `Cut`, before it appends anything new. Returns `None` if too
/// few stores answered to be sure that one of them has all that is durable.
pub fn recovered_end(answers: &[Option<(u64, Lsn)>], needed: usize) -> Option<usize> {
    let answered = answers.iter().flatten().count();
    // Any `needed` stores may be the ones that have a record. They overlap with the stores that
    // answered only if together they are more than all.
    if answered + needed <= answers.len() {
        return None;
    }
    let known = answers.iter().enumerate();
    known
        .filter_map(|(index, answer)| answer.map(|answer| (answer, index)))
        .max()
        .map(|(_, index)| index)
}
