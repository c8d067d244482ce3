//! The usual one-shot without a detour: reads and writes of whole rows, all of them here, none of them in
//! anybody's way. Its keys and values are taken from where its message lies, and what it reads goes to where the
//! answer's bytes lie, so nothing is allocated. Whatever else comes, or comes of it, is undone and left to `shot`,
//! which knows all cases; both obey the same rules of `access`.

use dyno_txn_api::limits::OPERATIONS_MAX;
use dyno_txn_api::{Result, Stamp, TableId};

use super::Partition;
use super::access::{ChangeRef, KeyRef};
use super::participant::{Participant, encode_writes};
use crate::effects::{Effects, Position};
use crate::message::{Address, Head, MESSAGE_VERSION, Message};
use crate::placement::partition_of;
use crate::record::RECORD_VERSION;
use crate::store::Slot;
use crate::wire::{Reader, Wire, put_optional};

// Tags of messages and their parts, as FORMAT.md has them; the test below holds them to the encoder.
const ONE_SHOT: u8 = 1;
const DONE: u8 = 2;
const OPERATIONS: u8 = 0;
const ANSWER_VALUE: u8 = 0;
const ANSWER_DONE: u8 = 1;

/// A message that this module can try.
pub(super) struct Direct<'a> {
    ticket: u64,
    priority: u16,
    count: u32,
    operations: &'a [u8],
}

/// An operation that it knows.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Get(KeyRef<'a>),
    Write(KeyRef<'a>, ChangeRef<'a>),
}

impl<'a> Direct<'a> {
    #[inline]
    fn take(bytes: &'a [u8]) -> Result<Option<Self>> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(2)? != [MESSAGE_VERSION, ONE_SHOT] {
            return Ok(None);
        }
        let ticket = u64::take(&mut reader)?;
        if bool::take(&mut reader)? {
            // One that brings its stamp may have come before.
            return Ok(None);
        }
        let priority = u16::take(&mut reader)?;
        // When it is over: it ends before it could be.
        u64::take(&mut reader)?;
        if reader.byte()? != OPERATIONS {
            return Ok(None);
        }
        let count = u32::take(&mut reader)?;
        Ok(Some(Self {
            ticket,
            priority,
            count,
            operations: reader.rest(),
        }))
    }

    /// Its operations in order; none for one that is damaged or not known here, behind which there are no more.
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

    /// Whether these steps are all of it, and each one is `right`.
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
    let table = TableId::take(reader)?;
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

/// Whether these are the bytes of a message that [`Partition::handle_bytes`] takes without decoding it: a one-shot
/// without a stamp, of reads and writes of rows. They are whole then.
pub fn is_direct(bytes: &[u8]) -> bool {
    matches!(Direct::take(bytes), Ok(Some(direct)) if direct.is_whole(|_| true))
}

/// The keys of such a message, and whether their values are read.
pub(super) fn keys_of(bytes: &[u8]) -> impl Iterator<Item = (KeyRef<'_>, bool)> {
    let direct = Direct::take(bytes).ok().flatten();
    let steps = direct.into_iter().flat_map(|direct| direct.steps());
    steps.map_while(|step| {
        step.map(|step| match step {
            Step::Get(key) => (key, true),
            Step::Write(key, _) => (key, false),
        })
    })
}

impl Partition {
    /// Takes a message in that is still in bytes. What it wants is the same as after [`Partition::handle`], but
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
        let done = match self.run_direct(from, bytes) {
            true => Ok(()),
            false => Message::decode(bytes).map(|message| self.dispatch(from, message)),
        };
        self.leave(effects);
        done
    }

    /// Whether it was done. If not, nothing was.
    fn run_direct(&mut self, from: Address, bytes: &[u8]) -> bool {
        let (Address::Client(client), Ok(Some(direct))) = (from, Direct::take(bytes)) else {
            return false;
        };
        if !direct.is_whole(|step| self.is_here(step)) {
            return false;
        }
        let Some(stamp) = self.stamps.take() else {
            return false;
        };
        self.newest = self.newest.max(stamp);
        let head = Head {
            stamp,
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

    /// Whether a row is of this partition, and of a table that there is.
    fn is_here(&self, step: Step<'_>) -> bool {
        let (Step::Get(key) | Step::Write(key, _)) = step;
        self.schema
            .table(key.table)
            .is_ok_and(|def| partition_of(def, self.config.partitions, key.bytes) == self.config.id)
    }

    /// Makes the answer while it runs. Up to where the log must be durable before it may be told; none when
    /// something was in the way.
    fn run_steps(&mut self, txn: &mut Participant, direct: &Direct<'_>) -> Option<Position> {
        self.check_writer(&txn.head).ok()?;
        let out = self.out.answers.open();
        out.extend_from_slice(&[MESSAGE_VERSION, DONE]);
        direct.ticket.put(out);
        true.put(out);
        Some(txn.head.stamp).put(out);
        direct.count.put(out);
        let mut seen = 0;
        for step in direct.steps() {
            seen = seen.max(match step? {
                Step::Get(key) => {
                    let (value, seen) = self.get(&txn.head, key).ok()?;
                    let out = self.out.answers.open();
                    out.push(ANSWER_VALUE);
                    put_optional(self.store.value(value), out);
                    seen
                }
                Step::Write(key, change) => {
                    let seen = self.write(txn, key, change).ok()?;
                    self.out.answers.open().push(ANSWER_DONE);
                    seen
                }
            });
        }
        // What a procedure returns: nothing.
        0u32.put(self.out.answers.open());
        Some(seen)
    }

    fn commit_direct(&mut self, txn: &Participant, seen: Position, client: u64) {
        let (stamp, mut position) = (txn.head.stamp, seen);
        if !txn.slots.is_empty() {
            position = self.append_commit(stamp, &txn.slots);
        }
        self.counters.committed_inline += 1;
        if position > self.held.durable {
            self.held
                .hold_bytes(position, client, self.out.answers.made());
            self.out.answers.cancel();
        } else {
            self.out.answers.end(client, self.config.id);
        }
    }

    /// Logs a commit of what was written here alone, and makes it seen.
    pub(super) fn append_commit(&mut self, stamp: Stamp, slots: &[Slot]) -> Position {
        let position = self.append(|store, out| {
            out.extend_from_slice(&[RECORD_VERSION, 1]);
            stamp.put(out);
            encode_writes(store, slots, out);
        });
        self.committed(position, stamp);
        self.settle(slots, true);
        position
    }
}
