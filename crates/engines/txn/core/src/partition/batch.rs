//! Batches of operations of interactive transactions, and reads that other partitions fetch.

use std::collections::VecDeque;

use dyno_txn_api::{Answer, Code, Error, Operation, Result, Timestamp};

use super::access::Stop;
use super::participant::Participant;
use super::waiting::BlockedWork;
use super::{Partition, Position};
use crate::message::{Address, Fate, Head, Message, PartialAnswer};

/// Batches that may wait behind a waiting batch of their transaction.
const QUEUE_MAX: usize = 256;

/// A batch of operations. Operations that are done stay done if it has to wait for a later one.
#[derive(Debug)]
pub(super) struct Batch {
    pub from: Address,
    pub head: Head,
    pub batch: u32,
    /// Batches with writes that were sent here before.
    pub after: u32,
    pub until: u64,
    pub operations: Vec<Operation>,
    pub parts: Vec<PartialAnswer>,
    /// The record up to which the log must be durable before the answer may go out.
    pub seen: Position,
}

impl Batch {
    pub fn new(
        from: Address,
        head: Head,
        (batch, after): (u32, u32),
        until: u64,
        operations: Vec<Operation>,
    ) -> Self {
        let parts = Vec::with_capacity(operations.len().min(64));
        Self {
            from,
            head,
            batch,
            after,
            until,
            operations,
            parts,
            seen: 0,
        }
    }

    /// Whether writes would be missing if the batch failed now. Then the transaction can only be
    /// aborted.
    pub fn loses_writes(&self) -> bool {
        let left = self.operations.iter().skip(self.parts.len());
        left.into_iter().any(Operation::is_write)
    }
}

impl Partition {
    pub(super) fn execute(&mut self, batch: Batch) {
        if let Err(error) = self.check_head(batch.from, &batch.head) {
            return self.fail_batch(batch, error);
        }
        match self.batch_queues.get_mut(&batch.head.timestamp) {
            None => self.run_batch(batch),
            Some(queue) if queue.len() < QUEUE_MAX => queue.push_back(batch),
            Some(_) => {
                let text = format!("{QUEUE_MAX} batches of the transaction are waiting already");
                self.fail_batch(batch, Error::new(Code::Overloaded, text));
            }
        }
    }

    /// Runs the next queued batch of a transaction, once the one before it does not wait any more.
    pub(super) fn next_in_queue(&mut self, timestamp: Timestamp) {
        if self.waiting_batches.contains(&timestamp) {
            return;
        }
        match self
            .batch_queues
            .get_mut(&timestamp)
            .map(VecDeque::pop_front)
        {
            Some(Some(batch)) => {
                self.run_batch(batch);
                let waits = self.waiting_batches.contains(&timestamp);
                if !waits {
                    self.queues_free.push_back(timestamp);
                }
            }
            Some(None) => drop(self.batch_queues.remove(&timestamp)),
            None => {}
        }
    }

    /// Lets the queued batches of a transaction go on after a batch that waited was given up.
    pub(super) fn leave_queue(&mut self, timestamp: Timestamp) {
        if self.waiting_batches.remove(&timestamp) {
            self.queues_free.push_back(timestamp);
        }
    }

    /// Whether it is this batch's turn: all batches with writes that the client sent before it are
    /// done, and it is not. A repetition gets `false` and is dropped, because it was answered the
    /// first time.
    ///
    /// # Errors
    /// When a batch before it is missing. It was lost or is still on its way, and this one must not
    /// be applied without it.
    fn in_turn(&self, batch: &Batch, writes: bool) -> Result<bool> {
        let done = self
            .participants
            .get(&batch.head.timestamp)
            .map_or(0, |txn| txn.batches);
        if done > batch.after && writes {
            return Ok(false);
        }
        if done != batch.after {
            let text = format!(
                "transaction {}: {done} of its batches with writes are done, {} were sent before",
                batch.head.timestamp, batch.after
            );
            return Err(Error::new(Code::Conflict, text));
        }
        Ok(true)
    }

    pub(super) fn run_batch(&mut self, mut batch: Batch) {
        if let Err(error) = self.check_horizon(batch.head.timestamp) {
            return self.fail_batch(batch, error);
        }
        let writes = batch.operations.iter().any(Operation::is_write);
        match self.in_turn(&batch, writes) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.fail_batch(batch, error),
        }
        let left = &batch.operations[batch.parts.len()..];
        let mut txn = if writes && left.iter().any(Operation::is_write) {
            match self.join(batch.from, batch.head) {
                Ok(txn) => Some(txn),
                Err(error) => return self.fail_batch(batch, error),
            }
        } else {
            None
        };
        let stop = loop {
            let Some(operation) = batch.operations.get(batch.parts.len()) else {
                break None;
            };
            match self.execute_one(batch.head, txn.as_mut(), operation) {
                Ok((part, seen)) => {
                    batch.seen = batch.seen.max(seen);
                    batch.parts.push(part);
                }
                Err(stop) => break Some(stop),
            }
        };
        // The transaction must not commit without these writes, even if the client asks for it.
        if let (Some(Stop::Failed(error)), Some(txn)) = (&stop, &mut txn)
            && batch.loses_writes()
        {
            txn.failed.get_or_insert_with(|| error.clone());
        }
        if stop.is_none() && writes {
            // After a wait only reads may be left. Then the batch has not joined again, and its
            // participant is in the map.
            match (&mut txn, self.participants.get_mut(&batch.head.timestamp)) {
                (Some(txn), _) | (None, Some(txn)) => txn.batches += 1,
                (None, None) => {}
            }
        }
        if let Some(txn) = txn {
            self.part_with(txn);
        }
        match stop {
            None => {
                let (timestamp, number) = (batch.head.timestamp, batch.batch);
                let result = Ok(batch.parts);
                let message = Message::Executed {
                    timestamp,
                    batch: number,
                    result,
                };
                self.send_after(batch.seen, batch.from, message);
            }
            Some(Stop::Blocked(slot)) => {
                // Later batches of the transaction queue up from now on, because its operations on
                // one key must keep their order.
                let timestamp = batch.head.timestamp;
                self.batch_queues.entry(timestamp).or_default();
                self.waiting_batches.insert(timestamp);
                self.wait(BlockedWork::Batch(batch), slot);
            }
            Some(Stop::Failed(error)) => self.fail_batch(batch, error),
        }
    }

    fn execute_one(
        &mut self,
        head: Head,
        txn: Option<&mut Participant>,
        operation: &Operation,
    ) -> Result<(PartialAnswer, Position), Stop> {
        let plain = |answer| PartialAnswer {
            answer,
            index_keys: Vec::new(),
        };
        match (operation, txn) {
            (Operation::Get(key), _) => {
                self.schema.table(key.table)?;
                let (value, seen) = self.get(&head, key.into())?;
                let value = self.store.value(value);
                Ok((plain(Answer::Value(value.map(Vec::from))), seen))
            }
            (Operation::Scan(scan), _) => self.scan(&head, scan),
            (Operation::Write(key, change), Some(txn)) => {
                let seen = self.write(txn, key.into(), change.into())?;
                txn.writes += 1;
                Ok((plain(Answer::Done), seen))
            }
            (Operation::Write(..), None) => {
                Err(Error::new(Code::BadArgument, "a write among reads").into())
            }
        }
    }

    pub(super) fn fail_batch(&mut self, batch: Batch, error: Error) {
        let (timestamp, number) = (batch.head.timestamp, batch.batch);
        let result = Err(error);
        // The failure may reveal a commit that is not durable yet, so the answer waits for all of
        // them.
        let message = Message::Executed {
            timestamp,
            batch: number,
            result,
        };
        self.send_after(self.pending.appended, batch.from, message);
    }

    /// Takes the participant out of the map, or makes one, for a write. [`Partition::part_with`]
    /// puts it back.
    ///
    /// # Errors
    /// When the transaction is over, has voted, or is older than the last restart.
    pub(super) fn join(&mut self, from: Address, head: Head) -> Result<Participant> {
        self.check_writer(&head)?;
        let participant = match self.participants.remove(&head.timestamp) {
            Some(participant) => participant,
            None => {
                // A write that comes after the end would leave an intent that is never decided.
                // With an open record here the transaction is not over, whatever older outcomes
                // were forgotten.
                let over = match self.outcomes.get(head.timestamp) {
                    _ if self.txn_records.contains_key(&head.timestamp) => None,
                    None => None,
                    Some(Fate::Aborted) => Some((Code::Aborted, "it was aborted")),
                    Some(Fate::Forgotten) => Some((Code::TooOld, "it is too old to write")),
                    Some(_) => Some((Code::Finished, "it is over")),
                };
                if let Some((code, what)) = over {
                    let text = format!("transaction {}: {what}", head.timestamp);
                    return Err(Error::new(code, text));
                }
                self.watch_participant(head.timestamp);
                Participant::new(head)
            }
        };
        if participant.prepared {
            let text = format!("transaction {}: a write after its commit", head.timestamp);
            self.participants.insert(head.timestamp, participant);
            return Err(Error::new(Code::Finished, text));
        }
        self.open_txn_record(from, head);
        Ok(participant)
    }

    /// Puts the participant back, and votes if all announced writes are there.
    pub(super) fn part_with(&mut self, mut txn: Participant) {
        let timestamp = txn.head.timestamp;
        txn.touched = self.now;
        self.participants.insert(timestamp, txn);
        self.vote_when_complete(timestamp);
    }
}
