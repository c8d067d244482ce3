//! The log kept in the memory of other processes: the sender's state machine and the store. Both do
//! no I/O; who runs them carries [`Request`]s and [`Answer`]s.
//!
//! A log has one writer, the one that opened it with the highest epoch: a store refuses the others
//! ([`PersistError::Fenced`]). Bytes are the frames of records, one after the other, with positions
//! that count them. A record is durable when `needed` stores have it; [`recovered_end`] says which
//! store a new writer must read so that nothing durable is missed.

mod sender;
mod store;
mod wire;

pub use sender::{Outgoing, RemoteLog, RemoteOptions};
pub use store::PersistStore;
pub use wire::{Ask, Reply, WireError, append_head};

use crate::position::Lsn;

/// What a writer asks a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Become the writer of `log`; lower epochs are refused from now on.
    Open {
        /// The log's number.
        log: u64,
        /// The writer's.
        epoch: u64,
    },
    /// Keep `bytes` at `at`. What is there already is not kept twice.
    Append {
        /// The log's number.
        log: u64,
        /// The writer's.
        epoch: u64,
        /// Where the bytes belong.
        at: Lsn,
        /// Frames of records, or parts of them.
        bytes: Vec<u8>,
    },
    /// Forget everything from `end` on, and take what is left as this epoch's.
    Cut {
        /// The log's number.
        log: u64,
        /// The writer's.
        epoch: u64,
        /// The new end.
        end: Lsn,
    },
    /// Forget everything, and begin again at `at`. The log counts as not written at all until a
    /// checkpoint is installed, so that it is not taken for whole before it is.
    Reset {
        /// The log's number.
        log: u64,
        /// The writer's.
        epoch: u64,
        /// The new beginning and end.
        at: Lsn,
    },
    /// Keep a chunk of checkpoint `number`, aside.
    Chunk {
        /// The log's number.
        log: u64,
        /// The writer's.
        epoch: u64,
        /// The checkpoint's; a new one drops an unfinished one.
        number: u64,
        /// The chunk.
        bytes: Vec<u8>,
    },
    /// Make checkpoint `number` current and forget the bytes before `first_needed`.
    Install {
        /// The log's number.
        log: u64,
        /// The writer's.
        epoch: u64,
        /// The checkpoint's.
        number: u64,
        /// How many chunks it has.
        chunks: u64,
        /// Where recovery goes on after it.
        first_needed: Lsn,
    },
}

/// What a reader asks a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Bytes of the log from `from` on.
    Bytes {
        /// Where to begin.
        from: Lsn,
        /// How many at most.
        most_bytes: usize,
    },
    /// A chunk of the current checkpoint.
    Chunk {
        /// Its number, from 0.
        index: usize,
    },
}

/// What a store answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The writer's epoch is taken.
    Opened {
        /// The epoch whose writer last cut, installed or appended: of two stores the one with the
        /// higher one is right. 0: nothing is kept that counts.
        written_epoch: u64,
        /// Where recovery goes on after the checkpoint.
        first_needed: Lsn,
        /// Chunks of the checkpoint.
        chunks: u64,
        /// The end of what is kept.
        end: Lsn,
    },
    /// The log is kept up to here.
    Kept {
        /// The end of what is kept.
        end: Lsn,
    },
    /// The checkpoint, or its chunk, is kept.
    Done,
}

/// Why a store refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// A later writer has the log: stop.
    #[error("log {log} belongs to a writer of epoch {epoch}")]
    Fenced {
        /// Which.
        log: u64,
        /// The later writer's.
        epoch: u64,
    },
    /// Bytes before these are missing: send from `end` on.
    #[error("log {log} is kept up to {end} only")]
    Gap {
        /// Which.
        log: u64,
        /// The end of what is kept.
        end: Lsn,
    },
    /// The store is full: commit a checkpoint.
    #[error("the store holds {used_bytes} bytes of at most {most_bytes}")]
    Full {
        /// What it holds.
        used_bytes: u64,
        /// Its bound.
        most_bytes: u64,
    },
    /// Such a log was not opened here, or the store has as many as it may.
    #[error("the store has no log {log}")]
    Unknown {
        /// Which.
        log: u64,
    },
    /// What was asked for is not kept: positions before the checkpoint, a checkpoint that is not
    /// whole.
    #[error("log {log}: {what}")]
    NotKept {
        /// Which.
        log: u64,
        /// What was asked for.
        what: String,
    },
}

/// From the answers of all stores to [`Request::Open`] (written epoch and end; `None` for one that
/// did not answer), the index of the one to read: the longest of the highest written epoch. The
/// others are to be brought to its state by `Reset` and `Append`, and it by `Cut`, before anything
/// new is appended. `None` when too few answered to be sure that one of them has all that is
/// durable.
pub fn recovered_end(answers: &[Option<(u64, Lsn)>], needed: usize) -> Option<usize> {
    let answered = answers.iter().flatten().count();
    if answered + needed <= answers.len() {
        return None;
    }
    let known = answers.iter().enumerate();
    known
        .filter_map(|(index, answer)| answer.map(|answer| (answer, index)))
        .max()
        .map(|(_, index)| index)
}
