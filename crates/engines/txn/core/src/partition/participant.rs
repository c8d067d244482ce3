//! A transaction's writes in this partition. They begin as intents. When the record holder asks,
//! they are made durable and voted for; when it has decided, they become versions or are dropped.

use dyno_txn_api::{Change, Code, Error, Key, Result, Timestamp};

use super::access::Stop;
use super::waiting::BlockedWork;
use super::{Partition, Position, Timer};
use crate::message::{Address, Fate, Head, Message};
use crate::planted::Bug;
use crate::record::{Record, begin_prepared};
use crate::store::{Slot, Store};
use crate::wire::{Wire, write_bytes, write_optional};

/// What this partition knows of a transaction that has written here.
#[derive(Debug)]
pub(super) struct Participant {
    pub head: Head,
    /// Rows with its intents, index entries included.
    pub slots: Vec<Slot>,
    /// Write operations done.
    pub writes: u32,
    /// Batches with writes done. The next one must say that as many came before it.
    pub batches: u32,
    /// Why a write failed. This partition then votes against the transaction, whatever else the
    /// client sends.
    pub failed: Option<Error>,
    /// Whether this partition voted for it. From then on only the record holder decides.
    pub prepared: bool,
    /// How many writes the client sent here, once the record holder has said so.
    pub announced: Option<u32>,
    /// The time of the last message for it, by the driver's clock.
    pub touched: u64,
}

impl Participant {
    pub fn new(head: Head) -> Self {
        Self {
            head,
            slots: Vec::new(),
            writes: 0,
            batches: 0,
            failed: None,
            prepared: false,
            announced: None,
            touched: 0,
        }
    }
}

/// Writes of a one-shot that its record holder sent here. After a wait some of them may be done
/// already.
#[derive(Debug)]
pub(super) struct Preparing {
    pub from: Address,
    pub head: Head,
    pub until: u64,
    pub writes: Vec<(Key, Change)>,
}

impl Partition {
    pub(super) fn prepare(
        &mut self,
        from: Address,
        head: Head,
        deadline_ns: u64,
        writes: Vec<(Key, Change)>,
    ) {
        let until = self.now.saturating_add(deadline_ns);
        if let Err(error) = self.check_head(from, &head) {
            return self.vote(head, Err(error));
        }
        self.run_prepare(Preparing {
            from,
            head,
            until,
            writes,
        });
    }

    pub(super) fn run_prepare(&mut self, preparing: Preparing) {
        let head = preparing.head;
        if let Some(txn) = self.participants.get(&head.timestamp)
            && txn.prepared
        {
            // The holder asks again, because the vote may have been lost.
            return self.send_after(self.pending.appended, preparing.from, vote_of(head, Ok(())));
        }
        let joined = self
            .check_horizon(head.timestamp)
            .and_then(|()| self.join(preparing.from, head));
        let mut txn = match joined {
            Ok(txn) => txn,
            Err(error) => return self.vote(head, Err(error)),
        };
        let mut blocked = None;
        // After a wait this runs again, and must not repeat the writes that are done.
        for (key, change) in preparing.writes.iter().skip(txn.writes as usize) {
            match self.write(&mut txn, key.into(), change.into()) {
                Ok(_) => txn.writes += 1,
                Err(Stop::Blocked(slot)) => {
                    blocked = Some(slot);
                    break;
                }
                Err(Stop::Failed(error)) => {
                    txn.failed = Some(error);
                    break;
                }
            }
        }
        txn.announced = Some(preparing.writes.len() as u32);
        self.part_with(txn);
        if let Some(slot) = blocked {
            self.wait(BlockedWork::Prepare(preparing), slot);
        }
    }

    /// The record holder asks for a vote, and says how many writes the client sent here. They may
    /// still be on their way, because messages overtake each other.
    pub(super) fn confirm(&mut self, from: Address, head: Head, writes: u32) {
        if let Err(error) = self.check_head(from, &head) {
            return self.vote(head, Err(error));
        }
        if let Some(txn) = self.participants.get_mut(&head.timestamp)
            && txn.prepared
        {
            return self.send_after(self.pending.appended, from, vote_of(head, Ok(())));
        }
        match self.join(from, head) {
            Ok(mut txn) => {
                txn.announced = Some(writes);
                self.part_with(txn);
            }
            Err(error) => self.vote(head, Err(error)),
        }
    }

    pub(super) fn vote_when_complete(&mut self, timestamp: Timestamp) {
        let Some(txn) = self.participants.get_mut(&timestamp) else {
            return;
        };
        let (Some(announced), false) = (txn.announced, txn.prepared) else {
            return;
        };
        let head = txn.head;
        if let Some(error) = txn.failed.clone() {
            // Voting against it ends it here: the intents can go before the holder has decided,
            // because it can only decide to abort.
            self.drop_participant(timestamp);
            let text = format!("a write of the transaction failed: {}", error.text());
            return self.vote(
                head,
                Err(Error::with_retry(error.kind(), error.retry(), text)),
            );
        }
        if txn.writes > announced {
            let text = format!(
                "{} writes arrived, but only {announced} were announced",
                txn.writes
            );
            self.drop_participant(timestamp);
            return self.vote(head, Err(Error::new(Code::WriteFailed, text)));
        }
        if txn.writes < announced {
            // The rest is on its way. If it was lost, the holder gives up at the deadline.
            return;
        }
        // Set before the record is durable, so that no further write is accepted; the vote itself
        // waits for the log.
        txn.prepared = true;
        if self.config.id == head.holder {
            // This partition is the record holder: its commit record will have the writes, so that
            // a record of the vote is not needed.
            return self.voted(Address::Partition(head.holder), timestamp, Ok(()));
        }
        let slots = std::mem::take(&mut txn.slots);
        let position = self.append(|store, out| {
            begin_prepared(&head, out);
            encode_writes(store, &slots, out);
        });
        if let Some(txn) = self.participants.get_mut(&timestamp) {
            txn.slots = slots;
        }
        let to = Address::Partition(head.holder);
        self.send_after(position, to, vote_of(head, Ok(())));
    }

    fn vote(&mut self, head: Head, result: Result<()>) {
        let to = Address::Partition(head.holder);
        self.send_after(self.pending.appended, to, vote_of(head, result));
    }

    /// Does what the record holder has decided.
    pub(super) fn finalize(&mut self, from: Address, timestamp: Timestamp, commit: bool) {
        let known = self.participants.get(&timestamp);
        // Only what was voted for can be committed. Writes that were not came late or twice, and
        // are dropped.
        let commit = commit && known.is_some_and(|txn| txn.prepared);
        self.conclude(timestamp, commit);
        // After this answer the holder may forget the transaction, so the answer waits until the
        // record of it is durable: a restart would otherwise ask a holder that no longer knows, and
        // take its commit for an abort.
        self.send_after(
            self.pending.appended,
            from,
            Message::Finalized { timestamp },
        );
    }

    /// Acts on the fate of a transaction, however it became known here.
    pub(super) fn learned(&mut self, timestamp: Timestamp, fate: Fate) {
        let Some(txn) = self.participants.get(&timestamp) else {
            return;
        };
        match fate {
            Fate::Open => {}
            Fate::Committed => {
                let prepared = txn.prepared;
                self.conclude(timestamp, prepared);
            }
            // `Forgotten` cannot mean committed, because a holder forgets a commit only after every
            // participant has finalized it, and this one has not.
            Fate::Aborted | Fate::Forgotten => self.conclude(timestamp, false),
        }
    }

    fn conclude(&mut self, timestamp: Timestamp, commit: bool) {
        let Some(txn) = self.participants.remove(&timestamp) else {
            return;
        };
        if txn.prepared && txn.head.holder != self.config.id {
            self.append(|_, out| Record::Finalized { timestamp, commit }.encode(out));
        }
        self.settle(&txn.slots, commit);
    }

    /// Turns intents into versions, or drops them, and wakes the work that waited for them.
    pub(super) fn settle(&mut self, slots: &[Slot], commit: bool) {
        let lost = self.config.planted.has(Bug::Finalize) && commit && slots.len() > 1;
        let kept = slots.len() - usize::from(lost);
        for (at, &slot) in slots.iter().enumerate() {
            let waiters = if commit && at < kept {
                self.store.keep_intent(slot)
            } else {
                self.store.drop_intent(slot)
            };
            self.wake(waiters);
        }
    }

    pub(super) fn drop_participant(&mut self, timestamp: Timestamp) {
        if let Some(txn) = self.participants.remove(&timestamp) {
            self.settle(&txn.slots, false);
        }
    }

    pub(super) fn watch_participant(&mut self, timestamp: Timestamp) {
        let at = self.now.saturating_add(self.config.resend_ns);
        self.at(at, Timer::Participant(timestamp));
    }

    /// Asks the record holder about a transaction that was silent for a while. Its client may have
    /// died, or the holder's decision may have been lost.
    pub(super) fn participant_is_late(&mut self, timestamp: Timestamp) {
        let Some(txn) = self.participants.get(&timestamp) else {
            return;
        };
        let due = txn.touched.saturating_add(self.config.resend_ns);
        let head = txn.head;
        if due > self.now {
            return self.at(due, Timer::Participant(timestamp));
        }
        let to = Address::Partition(head.holder);
        let push = Message::Push {
            timestamp,
            by: timestamp,
            priority: 0,
            force: false,
        };
        self.send(to, push);
        self.watch_participant(timestamp);
    }
}

pub(super) fn vote_of(head: Head, result: Result<()>) -> Message {
    let timestamp = head.timestamp;
    Message::Vote { timestamp, result }
}

/// Encodes the intents of these rows as a list of [`crate::record::Redo`], without a copy of each.
pub(super) fn encode_writes(store: &Store, slots: &[Slot], out: &mut Vec<u8>) {
    (slots.len() as u32).write(out);
    for &slot in slots {
        let row = store.row(slot);
        row.table.write(out);
        write_bytes(store.key(slot), out);
        let intent = store.intent(slot);
        let value = intent.and_then(|intent| store.value(intent.value));
        write_optional(value, out);
    }
}

impl Partition {
    /// Has readers of the commit's rows wait until its record is durable.
    pub(super) fn committed(&mut self, position: Position, timestamp: Timestamp) {
        if position > self.pending.durable {
            self.pending.committed(timestamp);
        }
    }
}
