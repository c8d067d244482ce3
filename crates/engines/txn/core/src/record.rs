//! What a partition writes to its log and into its checkpoints: logical redo.
//!
//! A record is a version byte, a byte for its kind, and its fields
//! (docs/formats/txn-log-records.md). Length and checksum are the log's.

use dyno_txn_api::{Code, Error, Result, Table, TableId, Timestamp};

use crate::message::{Head, PartitionId};
use crate::wire::{Reader, Txn, Wire, wire_enum, wire_struct, write_list};

/// The version of the records that this program writes.
pub const RECORD_VERSION: u8 = 1;

/// A row's new value; entries of indexes are rows too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redo {
    /// Table or index.
    pub table: TableId,
    /// The encoded key of the row.
    pub key: Vec<u8>,
    /// The value, or none for a row that is deleted.
    pub value: Option<Vec<u8>>,
}

/// The newest committed version of a row, as a checkpoint has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowVersion {
    /// The timestamp of the transaction that wrote it.
    pub timestamp: Timestamp,
    /// The row as of then.
    pub row: Redo,
}

/// One record of the log or of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields' names say it, and the table in docs/formats/txn-log-records.md"
)]
pub enum Record {
    /// A transaction that wrote to this partition alone was committed.
    Commit {
        timestamp: Timestamp,
        writes: Vec<Redo>,
    },
    /// This partition voted to commit a transaction. The record holder decides, and
    /// [`Record::Finalized`] follows.
    Prepared { head: Head, writes: Vec<Redo> },
    /// This partition, as record holder, committed a transaction that others take part in.
    Decided {
        timestamp: Timestamp,
        participants: Vec<PartitionId>,
        writes: Vec<Redo>,
    },
    /// This partition learned the fate of a transaction it had voted for.
    Finalized { timestamp: Timestamp, commit: bool },
    /// All participants have finalized the transaction, so that the record holder may forget it.
    Ended { timestamp: Timestamp },
    /// A table was created.
    Schema { table: Table },
    /// The largest timestamp that the oracle of this epoch may issue, which this partition keeps
    /// for it.
    Bound { epoch: u64, bound: Timestamp },
    /// Rows of a checkpoint.
    Rows { rows: Vec<RowVersion> },
    /// Transactions up to this timestamp may have read rows here before a restart, which forgot
    /// those reads. So none of them may write here any more.
    Floor { timestamp: Timestamp },
}

wire_struct!(Txn: Redo { table, key, value });
wire_struct!(Txn: RowVersion { timestamp, row });
wire_enum!(Txn: Record {
    1 Commit { timestamp, writes },
    2 Prepared { head, writes },
    3 Decided { timestamp, participants, writes },
    4 Finalized { timestamp, commit },
    5 Ended { timestamp },
    6 Schema { table },
    7 Bound { epoch, bound },
    8 Rows { rows },
    9 Floor { timestamp },
});

impl Record {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(RECORD_VERSION);
        self.write(out);
    }

    /// Decodes one record.
    ///
    /// # Errors
    /// `NewerVersion` for a record of a later program, `Damaged` for bytes that are not one whole
    /// record.
    pub fn decode(bytes: &[u8]) -> Result<Record> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if version != RECORD_VERSION {
            let text =
                format!("a log record of version {version}: this program has {RECORD_VERSION}");
            return Err(Error::new(Code::NewerVersion, text));
        }
        let record = Record::read(&mut reader)?;
        reader.finish()?;
        Ok(record)
    }
}

// Commits and checkpoints are encoded from the rows where they lie, because a `Record` of them
// would need a copy of each key and value. The functions below write what such a record begins
// with; a list of `Redo` (of `RowVersion`, for rows) follows. The test holds them to the enum's
// encoding.

/// Begins a [`Record::Commit`].
pub(crate) fn begin_commit(timestamp: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(&[RECORD_VERSION, 1]);
    timestamp.write(out);
}

/// Begins a [`Record::Prepared`].
pub(crate) fn begin_prepared(head: &Head, out: &mut Vec<u8>) {
    out.extend_from_slice(&[RECORD_VERSION, 2]);
    head.write(out);
}

/// Begins a [`Record::Decided`].
pub(crate) fn begin_decided(timestamp: Timestamp, participants: &[PartitionId], out: &mut Vec<u8>) {
    out.extend_from_slice(&[RECORD_VERSION, 3]);
    timestamp.write(out);
    write_list(participants, out);
}

/// Begins a [`Record::Rows`].
pub(crate) fn begin_rows(out: &mut Vec<u8>) {
    out.extend_from_slice(&[RECORD_VERSION, 8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_begun_by_hand_has_the_bytes_of_the_enum() {
        let (timestamp, participants) = (7, vec![1, 3]);
        let head = Head {
            timestamp,
            holder: 2,
            priority: 5,
        };
        let row = Redo {
            table: TableId(4),
            key: b"key".to_vec(),
            value: Some(b"value".to_vec()),
        };
        let (writes, rows) = (vec![row.clone()], vec![RowVersion { timestamp, row }]);
        let mut begun = [const { Vec::new() }; 4];
        let [commit, prepared, decided, kept] = &mut begun;
        begin_commit(timestamp, commit);
        begin_prepared(&head, prepared);
        begin_decided(timestamp, &participants, decided);
        begin_rows(kept);
        for out in [commit, prepared, decided] {
            writes.write(out);
        }
        rows.write(kept);
        let encoded = [
            Record::Commit {
                timestamp,
                writes: writes.clone(),
            },
            Record::Prepared {
                head,
                writes: writes.clone(),
            },
            Record::Decided {
                timestamp,
                participants,
                writes,
            },
            Record::Rows { rows },
        ]
        .map(|record| {
            let mut out = Vec::new();
            record.encode(&mut out);
            out
        });
        assert_eq!(begun, encoded);
    }
}
