//! What clients, partitions and oracles say to each other.
//!
//! A message is a version byte, a byte for its kind, and its fields (FORMAT.md, "Messages of
//! transactions"). It travels as the body of a frame of `dyno-net`; between cores of one process it need
//! not be encoded.

use dyno_txn_api::{
    Answer, Change, Code, Committed, Error, Key, Operation, Request, Result, Stamp, Table,
    TableDef, TableId,
};

use crate::wire::{Reader, Wire, wire_enum, wire_struct};

/// The version of the messages that this program speaks.
pub const MESSAGE_VERSION: u8 = 1;

/// A partition's number, from 0; each core has one.
pub type PartitionId = u32;

/// Who says or hears something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A client's connection, numbered by whoever drives the partition; never used again for another.
    Client(u64),
    /// A partition.
    Partition(PartitionId),
    /// An oracle.
    Oracle(u32),
}

/// What every message of an interactive transaction says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its stamp: identity, snapshot and place in the order.
    pub stamp: Stamp,
    /// Where its fate is decided: the partition of the first key it wrote.
    pub holder: PartitionId,
    /// Who gives way.
    pub priority: u16,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Not decided yet.
    Open,
    /// All of it was done.
    Committed,
    /// Nothing of it was done.
    Aborted,
    /// Over for so long that it is not remembered.
    Forgotten,
}

/// One operation's answer, with what is needed to merge pages of several partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The answer.
    pub answer: Answer,
    /// For a page of an index: each row's place in its order. Else empty: the key is the place.
    pub places: Vec<Vec<u8>>,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    missing_docs,
    reason = "the fields' names say it, and the table in FORMAT.md"
)]
pub enum Message {
    /// Client to partition: a transaction in one request. Without a stamp it takes one there; then it
    /// must not be delivered twice.
    OneShot {
        ticket: u64,
        stamp: Option<Stamp>,
        priority: u16,
        deadline_ns: u64,
        request: Request,
    },
    /// Partition to client: what came of it.
    Done {
        ticket: u64,
        result: Result<Committed>,
    },
    /// Client (or partition, reads only) to partition: operations of one batch, in order.
    /// `after` counts the batches with writes that were sent there before: one that is lost, repeated or
    /// overtaken is found by it.
    Execute {
        head: Head,
        batch: u32,
        after: u32,
        deadline_ns: u64,
        operations: Vec<Operation>,
    },
    /// Back: answers in order, or the first error.
    Executed {
        stamp: Stamp,
        batch: u32,
        result: Result<Vec<Part>>,
    },
    /// Client to the record holder: commit; how many writes were sent to which partition.
    Commit {
        head: Head,
        writes: Vec<(PartitionId, u32)>,
    },
    /// Client to every partition it wrote to: give up.
    Abort { head: Head },
    /// Back after a commit (once it is durable), or when it was given up.
    Ended { stamp: Stamp, result: Result<()> },
    /// Client to the record holder: still alive.
    Heartbeat { stamp: Stamp },
    /// Client to the record holder: what became of it? A transaction that is not known is aborted.
    Ask { stamp: Stamp },
    /// Back.
    Told { stamp: Stamp, fate: Fate },
    /// Record holder to partition: writes of a one-shot; write them and vote.
    Prepare {
        head: Head,
        deadline_ns: u64,
        writes: Vec<(Key, Change)>,
    },
    /// Record holder to partition: so many writes were sent; vote once all are there and durable.
    Confirm { head: Head, writes: u32 },
    /// Back: they are, or why not.
    Vote { stamp: Stamp, result: Result<()> },
    /// Partition to record holder: this one is in the way of `by`. With `force` it is aborted where the
    /// conflict rule says so.
    Push {
        stamp: Stamp,
        by: Stamp,
        priority: u16,
        force: bool,
    },
    /// Back.
    Pushed { stamp: Stamp, by: Stamp, fate: Fate },
    /// Record holder to partition: it is decided.
    Finalize { stamp: Stamp, commit: bool },
    /// Back, once that is durable.
    Finalized { stamp: Stamp },
    /// Client to partition 0.
    CreateTable { ticket: u64, def: TableDef },
    /// Back, when all partitions have it.
    Created {
        ticket: u64,
        result: Result<TableId>,
    },
    /// Client to a partition.
    ListTables { ticket: u64 },
    /// Back.
    TableList { ticket: u64, tables: Vec<Table> },
    /// Partition 0 to the others.
    AddTable { table: Table },
    /// Back, once it is durable.
    TableAdded { id: TableId },
    /// To an oracle: so many stamps.
    TakeStamps { ticket: u64, count: u32 },
    /// Back: that many from `first` on.
    Stamps { ticket: u64, result: Result<Stamp> },
    /// Oracle to keepers (partitions): it will give no stamp above this bound; `epoch` must be the newest.
    KeepBound { epoch: u64, bound: Stamp },
    /// Back, once it is durable: the newest epoch seen, and the largest bound of all.
    BoundKept { epoch: u64, bound: Stamp },
}

wire_struct!(Head {
    stamp,
    holder,
    priority
});
wire_struct!(Part { answer, places });
wire_enum!(Fate { 0 Open {}, 1 Committed {}, 2 Aborted {}, 3 Forgotten {} });
wire_enum!(Message {
    1 OneShot { ticket, stamp, priority, deadline_ns, request },
    2 Done { ticket, result },
    3 Execute { head, batch, after, deadline_ns, operations },
    4 Executed { stamp, batch, result },
    5 Commit { head, writes },
    6 Abort { head },
    7 Ended { stamp, result },
    8 Heartbeat { stamp },
    9 Ask { stamp },
    10 Told { stamp, fate },
    11 Prepare { head, deadline_ns, writes },
    12 Confirm { head, writes },
    13 Vote { stamp, result },
    14 Push { stamp, by, priority, force },
    15 Pushed { stamp, by, fate },
    16 Finalize { stamp, commit },
    17 Finalized { stamp },
    18 CreateTable { ticket, def },
    19 Created { ticket, result },
    20 ListTables { ticket },
    21 TableList { ticket, tables },
    22 AddTable { table },
    23 TableAdded { id },
    24 TakeStamps { ticket, count },
    25 Stamps { ticket, result },
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
    pub fn to_interactive(&self) -> Option<Stamp> {
        match self {
            Message::Executed { stamp, .. }
            | Message::Ended { stamp, .. }
            | Message::Told { stamp, .. } => Some(*stamp),
            _ => None,
        }
    }

    /// Appends the message's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(MESSAGE_VERSION);
        self.put(out);
    }

    /// The message of these bytes, all of them. [`Code::Damaged`] for bytes that are none,
    /// [`Code::NewerVersion`] for those of a later program.
    pub fn decode(bytes: &[u8]) -> Result<Message> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if version != MESSAGE_VERSION {
            let text =
                format!("a message of version {version}: this program has {MESSAGE_VERSION}");
            return Err(Error::new(Code::NewerVersion, text));
        }
        let message = Message::take(&mut reader)?;
        reader.finish()?;
        Ok(message)
    }
}
