//! What a partition writes to its log and into its checkpoints: logical redo.
//!
//! A record is a version byte, a byte for its kind, and its fields (FORMAT.md, "Log records of
//! transactions"). Length and checksum are the log's.

use dyno_txn_api::{Code, Error, Result, Stamp, Table, TableId};

use crate::message::{Head, PartitionId};
use crate::wire::{Reader, Wire, wire_enum, wire_struct};

/// The version of the records that this program writes.
pub const RECORD_VERSION: u8 = 1;

/// A row's new value; entries of indexes are rows too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redo {
    /// Table or index.
    pub table: TableId,
    /// The key.
    pub key: Vec<u8>,
    /// The value, or none for a row that is deleted.
    pub value: Option<Vec<u8>>,
}

/// A row of a checkpoint: its newest committed version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// When it was written.
    pub stamp: Stamp,
    /// What.
    pub row: Redo,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields' names say it, and the table in FORMAT.md"
)]
pub enum Record {
    /// A transaction that wrote to this partition alone was committed.
    Commit { stamp: Stamp, writes: Vec<Redo> },
    /// This partition voted for a transaction; its fate is decided at the record holder.
    Prepared { head: Head, writes: Vec<Redo> },
    /// This partition, as record holder, committed a transaction that others take part in.
    Decided {
        stamp: Stamp,
        participants: Vec<PartitionId>,
        writes: Vec<Redo>,
    },
    /// This partition learned the fate of a transaction it had voted for.
    Finalized { stamp: Stamp, commit: bool },
    /// All participants know: the record holder may forget it.
    Ended { stamp: Stamp },
    /// A table was made.
    Schema { table: Table },
    /// The oracle's bound, kept for it.
    Bound { epoch: u64, bound: Stamp },
    /// Rows of a checkpoint.
    Rows { rows: Vec<Kept> },
    /// Transactions up to here may have read here: none of them may write here any more.
    Floor { stamp: Stamp },
}

wire_struct!(Redo { table, key, value });
wire_struct!(Kept { stamp, row });
wire_enum!(Record {
    1 Commit { stamp, writes },
    2 Prepared { head, writes },
    3 Decided { stamp, participants, writes },
    4 Finalized { stamp, commit },
    5 Ended { stamp },
    6 Schema { table },
    7 Bound { epoch, bound },
    8 Rows { rows },
    9 Floor { stamp },
});

impl Record {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(RECORD_VERSION);
        self.put(out);
    }

    /// The record of these bytes, all of them.
    pub fn decode(bytes: &[u8]) -> Result<Record> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if version != RECORD_VERSION {
            let text =
                format!("a log record of version {version}: this program has {RECORD_VERSION}");
            return Err(Error::new(Code::NewerVersion, text));
        }
        let record = Record::take(&mut reader)?;
        reader.finish()?;
        Ok(record)
    }
}
