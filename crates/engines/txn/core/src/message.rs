//! The messages between clients, partitions and oracles.
//!
//! A message is a version byte, a byte for its kind, and its fields (docs/formats/txn-messages.md).
//! It travels as the body of a frame of `dyno-net`; between cores of one process it need not be
//! encoded.

use dyno_txn_api::{
    Answer, Change, Code, Committed, Error, Key, Operation, Request, Result, Table, TableDef,
    TableId, Timestamp,
};

use crate::wire::{Reader, Txn, Wire, wire_enum, wire_struct};

/// The version of the messages that this program speaks.
pub const MESSAGE_VERSION: u8 = 1;

/// A partition's number, from 0. Each thread of an engine drives one partition.
pub type PartitionId = u32;

/// The sender or the receiver of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A client's connection. The driver of the partition numbers them, and never reuses a number.
    Client(u64),
    /// A partition.
    Partition(PartitionId),
    /// An oracle.
    Oracle(u32),
}

/// The transaction that a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its timestamp, which is its identity, its snapshot and its position in the serial order.
    pub timestamp: Timestamp,
    /// The partition that decides whether it commits: that of the first key it wrote.
    pub holder: PartitionId,
    /// The larger priority wins when two transactions push each other.
    pub priority: u16,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The transaction may still commit or abort.
    Open,
    /// It took effect.
    Committed,
    /// It had no effect.
    Aborted,
    /// It has been over for so long that its outcome is no longer remembered.
    Forgotten,
}

/// One operation's answer, with what is needed to merge pages of several partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct PartialAnswer {
    /// The answer.
    pub answer: Answer,
    /// For a page of an index: the index key of each row, by which rows are ordered. Empty for a
    /// page of a table, which is ordered by the rows' own keys.
    pub index_keys: Vec<Vec<u8>>,
}

/// One message. A comment that begins with "Back" describes the answer to the message above it.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    missing_docs,
    reason = "the fields' names say it, and the table in docs/formats/txn-messages.md"
)]
pub enum Message {
    /// Client to partition: a transaction in one request. Without a timestamp it is given one
    /// there, and must then not be delivered twice.
    OneShot {
        ticket: u64,
        timestamp: Option<Timestamp>,
        priority: u16,
        deadline_ns: u64,
        request: Request,
    },
    /// The answer to a one-shot transaction: what it returned, or why it did not commit.
    Done {
        ticket: u64,
        result: Result<Committed>,
    },
    /// Client to partition, or for reads partition to partition: the operations of one batch, in
    /// order. `after` counts the batches with writes that were sent there before, by which the
    /// partition recognizes batches that were lost, repeated or overtaken.
    Execute {
        head: Head,
        batch: u32,
        after: u32,
        deadline_ns: u64,
        operations: Vec<Operation>,
    },
    /// Back: answers in order, or the first error.
    Executed {
        timestamp: Timestamp,
        batch: u32,
        result: Result<Vec<PartialAnswer>>,
    },
    /// Client to the record holder: commit. `writes` says how many writes were sent to which
    /// partition.
    Commit {
        head: Head,
        writes: Vec<(PartitionId, u32)>,
    },
    /// Client to every partition that it wrote to: abort.
    Abort { head: Head },
    /// Back: the transaction is committed durably, or aborted.
    Ended {
        timestamp: Timestamp,
        result: Result<()>,
    },
    /// Client to the record holder: the client is alive.
    Heartbeat { timestamp: Timestamp },
    /// Client to the record holder: what is the fate of this transaction? One that is not known is
    /// aborted by this.
    Ask { timestamp: Timestamp },
    /// The answer to `Ask`: what became of the transaction.
    FateAnswer { timestamp: Timestamp, fate: Fate },
    /// Record holder to partition: apply these writes of a one-shot, and vote.
    Prepare {
        head: Head,
        deadline_ns: u64,
        writes: Vec<(Key, Change)>,
    },
    /// Record holder to partition: vote once this many writes have arrived and are durable.
    Confirm { head: Head, writes: u32 },
    /// Back: yes, or the reason why the transaction must not commit.
    Vote {
        timestamp: Timestamp,
        result: Result<()>,
    },
    /// Partition to record holder: transaction `timestamp` is in the way of `by`. With `force` it
    /// is aborted if `by` has precedence; otherwise this only asks for its fate.
    Push {
        timestamp: Timestamp,
        by: Timestamp,
        priority: u16,
        force: bool,
    },
    /// Back: the fate of the pushed transaction.
    Pushed {
        timestamp: Timestamp,
        by: Timestamp,
        fate: Fate,
    },
    /// Record holder to partition: the transaction is decided.
    Finalize { timestamp: Timestamp, commit: bool },
    /// Back: the partition has the decision durably.
    Finalized { timestamp: Timestamp },
    /// Client to partition 0: create a table.
    CreateTable { ticket: u64, def: TableDef },
    /// Back: all partitions have the table, or the reason why it was not created.
    Created {
        ticket: u64,
        result: Result<TableId>,
    },
    /// Client to partition: list the tables.
    ListTables { ticket: u64 },
    /// Back: the tables.
    TableList { ticket: u64, tables: Vec<Table> },
    /// Partition 0 to the others: add this table.
    AddTable { table: Table },
    /// Back: the partition has the table durably.
    TableAdded { id: TableId },
    /// To an oracle: issue this many timestamps.
    TakeTimestamps { ticket: u64, count: u32 },
    /// Back: the first of that many consecutive timestamps.
    Timestamps {
        ticket: u64,
        result: Result<Timestamp>,
    },
    /// Oracle to keepers (partitions): keep this bound, above which the oracle issues no timestamp.
    /// An epoch older than the newest one seen is refused.
    KeepBound { epoch: u64, bound: Timestamp },
    /// Back: the newest epoch and the largest bound that the keeper has, durably.
    BoundKept { epoch: u64, bound: Timestamp },
}

wire_struct!(Txn: Head {
    timestamp,
    holder,
    priority
});
wire_struct!(Txn: PartialAnswer { answer, index_keys });
wire_enum!(Txn: Fate { 0 Open, 1 Committed, 2 Aborted, 3 Forgotten });
wire_enum!(Txn: Message {
    1 OneShot { ticket, timestamp, priority, deadline_ns, request },
    2 Done { ticket, result },
    3 Execute { head, batch, after, deadline_ns, operations },
    4 Executed { timestamp, batch, result },
    5 Commit { head, writes },
    6 Abort { head },
    7 Ended { timestamp, result },
    8 Heartbeat { timestamp },
    9 Ask { timestamp },
    10 FateAnswer { timestamp, fate },
    11 Prepare { head, deadline_ns, writes },
    12 Confirm { head, writes },
    13 Vote { timestamp, result },
    14 Push { timestamp, by, priority, force },
    15 Pushed { timestamp, by, fate },
    16 Finalize { timestamp, commit },
    17 Finalized { timestamp },
    18 CreateTable { ticket, def },
    19 Created { ticket, result },
    20 ListTables { ticket },
    21 TableList { ticket, tables },
    22 AddTable { table },
    23 TableAdded { id },
    24 TakeTimestamps { ticket, count },
    25 Timestamps { ticket, result },
    26 KeepBound { epoch, bound },
    27 BoundKept { epoch, bound },
});

impl Message {
    /// Whether partitions (and oracles) alone may say it.
    pub fn is_between_partitions(&self) -> bool {
        use Message::*;
        matches!(
            self,
            Executed { .. }
                | Prepare { .. }
                | Confirm { .. }
                | Vote { .. }
                | Push { .. }
                | Pushed { .. }
                | Finalize { .. }
                | Finalized { .. }
                | AddTable { .. }
                | TableAdded { .. }
                | KeepBound { .. }
        )
    }

    /// Of an answer to an interactive transaction: which one.
    pub fn to_interactive(&self) -> Option<Timestamp> {
        match self {
            Message::Executed { timestamp, .. }
            | Message::Ended { timestamp, .. }
            | Message::FateAnswer { timestamp, .. } => Some(*timestamp),
            _ => None,
        }
    }

    /// Appends the message's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(MESSAGE_VERSION);
        self.write(out);
    }

    /// The message of these bytes, all of them. [`Code::Damaged`] for bytes that are not a message,
    /// [`Code::NewerVersion`] for those of a later program.
    pub fn decode(bytes: &[u8]) -> Result<Message> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if version != MESSAGE_VERSION {
            let text =
                format!("a message of version {version}: this program has {MESSAGE_VERSION}");
            return Err(Error::new(Code::NewerVersion, text));
        }
        let message = Message::read(&mut reader)?;
        reader.finish()?;
        Ok(message)
    }
}
