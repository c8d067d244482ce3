//! The fast path for the usual one-shot transaction: reads and writes of whole rows, all of them in
//! this partition and free of other transactions' intents. Keys and values are read from the
//! message's bytes, and values are written to the answer's bytes, so that nothing is allocated. If
//! anything else comes up, the run is undone and left to `one_shot`, which knows all cases. Both
//! obey the rules of `access`.

use dyno_txn_api::limits::OPERATIONS_MAX;
use dyno_txn_api::{Result, TableId, Timestamp};

use super::Partition;
use super::access::{ChangeRef, KeyRef};
use super::participant::{Participant, encode_writes};
use super::prefetch::Use;
use crate::effects::{Effects, Position};
use crate::message::{Address, Head, MESSAGE_VERSION, Message};
use crate::placement::partition_of;
use crate::record::begin_commit;
use crate::store::Slot;
use crate::wire::{Reader, Wire, write_optional};

// Tags of messages and their parts, as docs/formats/txn-messages.md has them; the test below holds
// them to the encoder.
const ONE_SHOT: u8 = 1;
const DONE: u8 = 2;
const OPERATIONS: u8 = 0;
const ANSWER_VALUE: u8 = 0;
const ANSWER_DONE: u8 = 1;

/// A one-shot that this module may be able to run, with its operations still in bytes.
pub(super) struct Direct<'a> {
    ticket: u64,
    priority: u16,
    count: u32,
    operations: &'a [u8],
}

/// An operation that the fast path knows.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Get(KeyRef<'a>),
    Write(KeyRef<'a>, ChangeRef<'a>),
}

impl<'a> Direct<'a> {
    #[inline]
    fn parse(bytes: &'a [u8]) -> Result<Option<Self>> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(2)? != [MESSAGE_VERSION, ONE_SHOT] {
            return Ok(None);
        }
        let ticket = u64::read(&mut reader)?;
        if bool::read(&mut reader)? {
            // A client that chose the timestamp may send the same request again, which only
            // `one_shot` recognizes.
            return Ok(None);
        }
        let priority = u16::read(&mut reader)?;
        // The deadline. The run is over before any time passes, so it cannot be missed.
        u64::read(&mut reader)?;
        if reader.byte()? != OPERATIONS {
            return Ok(None);
        }
        let count = u32::read(&mut reader)?;
        Ok(Some(Self {
            ticket,
            priority,
            count,
            operations: reader.rest(),
        }))
    }

    /// Its operations in order. Ends with a `None` at the first one that is damaged or unknown
    /// here.
    pub fn steps(&self) -> impl Iterator<Item = Option<Step<'a>>> + use<'a> {
        let (mut reader, mut left) = (Reader::new(self.operations), self.count);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let step = step(&mut reader).ok().flatten();
            if step.is_none() {
                left = 0;
            }
            Some(step)
        })
    }

    /// Whether the message is nothing but steps that the fast path knows, and `right` accepts each
    /// of them.
    fn is_whole(&self, right: impl Fn(Step<'a>) -> bool) -> bool {
        let mut reader = Reader::new(self.operations);
        let mut known = (0..self.count).map(|_| step(&mut reader));
        self.count as usize <= OPERATIONS_MAX
            && known.all(|step| matches!(step, Ok(Some(step)) if right(step)))
            && reader.finish().is_ok()
    }
}

#[inline]
fn step<'a>(reader: &mut Reader<'a>) -> Result<Option<Step<'a>>> {
    let tag = reader.byte()?;
    if tag > 1 {
        return Ok(None);
    }
    let table = TableId::read(reader)?;
    let bytes = reader.counted()?;
    let key = KeyRef { table, bytes };
    if tag == 0 {
        return Ok(Some(Step::Get(key)));
    }
    let change = match reader.byte()? {
        0 => ChangeRef::Put(reader.counted()?),
        1 => ChangeRef::Insert(reader.counted()?),
        2 => ChangeRef::Delete,
        _ => return Ok(None),
    };
    Ok(Some(Step::Write(key, change)))
}

/// Whether [`Partition::handle_bytes`] can run this message without decoding it: a whole, undamaged
/// one-shot without a timestamp, of reads and writes of rows.
pub fn is_direct(bytes: &[u8]) -> bool {
    matches!(Direct::parse(bytes), Ok(Some(direct)) if direct.is_whole(|_| true))
}

/// The keys of such a message, each with what is done with its row.
pub(super) fn keys_of(bytes: &[u8]) -> impl Iterator<Item = (KeyRef<'_>, Use)> {
    let direct = Direct::parse(bytes).ok().flatten();
    let steps = direct.into_iter().flat_map(|direct| direct.steps());
    steps.map_while(|step| {
        step.map(|step| match step {
            Step::Get(key) => (key, Use::Read),
            Step::Write(key, change) => (key, change.to_use()),
        })
    })
}

impl Partition {
    /// Handles an encoded message. The effects are those of [`Partition::handle`], except that
    /// answers may be in [`Effects::answers`] instead.
    ///
    /// # Errors
    /// Those of [`Message::decode`]; then nothing was done.
    pub fn handle_bytes(
        &mut self,
        now: u64,
        from: Address,
        bytes: &[u8],
        effects: &mut Effects,
    ) -> Result<()> {
        self.enter(now, effects);
        let done = if self.run_direct(from, bytes) {
            Ok(())
        } else {
            Message::decode(bytes).map(|message| self.dispatch(from, message))
        };
        self.leave(effects);
        done
    }

    /// Runs the message if it is one for the fast path. If this returns false, nothing has changed.
    fn run_direct(&mut self, from: Address, bytes: &[u8]) -> bool {
        let (Address::Client(client), Ok(Some(direct))) = (from, Direct::parse(bytes)) else {
            return false;
        };
        if !direct.is_whole(|step| self.is_here(step)) {
            return false;
        }
        // From here on the timestamp is spent, even if the fast path gives up: `one_shot` draws a
        // new one, which is above it.
        let Some(timestamp) = self.timestamps.next() else {
            return false;
        };
        self.newest = self.newest.max(timestamp);
        let head = Head {
            timestamp,
            holder: self.config.id,
            priority: direct.priority,
        };
        let mut txn = Participant::new(head);
        txn.slots = std::mem::take(&mut self.slots);
        let ran = self.run_steps(&mut txn, &direct);
        match ran {
            Some(seen) => self.commit_direct(&txn, seen, client),
            None => {
                self.settle(&txn.slots, false);
                self.out.answers.cancel();
            }
        }
        txn.slots.clear();
        self.slots = txn.slots;
        ran.is_some()
    }

    /// Whether the row's table exists and this partition owns the row.
    fn is_here(&self, step: Step<'_>) -> bool {
        let (Step::Get(key) | Step::Write(key, _)) = step;
        self.schema
            .table(key.table)
            .is_ok_and(|def| partition_of(def, self.config.partitions, key.bytes) == self.config.id)
    }

    /// Runs the operations and encodes the answer on the way. Returns the record up to which the
    /// log must be durable before the answer may go out, or none if an operation could not be done:
    /// then the caller undoes the writes and the half-made answer.
    fn run_steps(&mut self, txn: &mut Participant, direct: &Direct<'_>) -> Option<Position> {
        self.check_writer(&txn.head).ok()?;
        let out = self.out.answers.open();
        out.extend_from_slice(&[MESSAGE_VERSION, DONE]);
        direct.ticket.write(out);
        true.write(out);
        Some(txn.head.timestamp).write(out);
        direct.count.write(out);
        let mut seen = 0;
        for step in direct.steps() {
            seen = seen.max(match step? {
                Step::Get(key) => {
                    let (value, seen) = self.get(&txn.head, key).ok()?;
                    let out = self.out.answers.open();
                    out.push(ANSWER_VALUE);
                    write_optional(self.store.value(value), out);
                    seen
                }
                Step::Write(key, change) => {
                    let seen = self.write(txn, key, change).ok()?;
                    self.out.answers.open().push(ANSWER_DONE);
                    seen
                }
            });
        }
        // Operations return nothing but their answers; only a procedure has a value of its own
        // here.
        0u32.write(self.out.answers.open());
        Some(seen)
    }

    fn commit_direct(&mut self, txn: &Participant, seen: Position, client: u64) {
        let (timestamp, mut position) = (txn.head.timestamp, seen);
        if !txn.slots.is_empty() {
            position = self.append_commit(timestamp, &txn.slots);
        }
        self.counters.committed_inline += 1;
        if position > self.pending.durable {
            self.pending
                .hold_bytes(position, client, self.out.answers.made());
            self.out.answers.cancel();
        } else {
            self.out.answers.end(client, self.config.id);
        }
    }

    /// Logs the commit of a transaction that wrote to this partition alone, and makes its writes
    /// visible.
    pub(super) fn append_commit(&mut self, timestamp: Timestamp, slots: &[Slot]) -> Position {
        let position = self.append(|store, out| {
            begin_commit(timestamp, out);
            encode_writes(store, slots, out);
        });
        self.committed(position, timestamp);
        self.settle(slots, true);
        position
    }
}
