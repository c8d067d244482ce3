//! Batches of operations of interactive transactions, and reads that other partitions fetch.

use dyno_txn_api::{Answer, Code, Error, Operation, Result};

use super::access::Stop;
use super::participant::Participant;
use super::waiting::Work;
use super::{Partition, Position};
use crate::message::{Address, Fate, Head, Message, Part};

/// A batch under way: what is done of it stays done when it has to wait.
#[derive(Debug)]
pub(super) struct Batch {
    pub from: Address,
    pub head: Head,
    pub batch: u32,
    pub until: u64,
    pub operations: Vec<Operation>,
    pub parts: Vec<Part>,
    /// Up to where the log must be durable before the answer may go out.
    pub seen: Position,
}

impl Partition {
    pub(super) fn execute(
        &mut self,
        from: Address,
        head: Head,
        batch: u32,
        deadline_ns: u64,
        operations: Vec<Operation>,
    ) {
        let until = self.now.saturating_add(deadline_ns);
        let parts = Vec::with_capacity(operations.len().min(64));
        let batch = Batch {
            from,
            head,
            batch,
            until,
            operations,
            parts,
            seen: 0,
        };
        match self.check_head(from, &head) {
            Ok(()) => self.run_batch(batch),
            Err(error) => self.fail_batch(batch, error),
        }
    }

    pub(super) fn run_batch(&mut self, mut batch: Batch) {
        let left = &batch.operations[batch.parts.len()..];
        let mut txn = match left.iter().any(Operation::is_write) {
            false => None,
            true => match self.join(batch.from, batch.head) {
                Ok(txn) => Some(txn),
                Err(error) => return self.fail_batch(batch, error),
            },
        };
        let stop = loop {
            let Some(operation) = batch.operations.get(batch.parts.len()) else {
                break None;
            };
            match self.one(batch.head, txn.as_mut(), operation) {
                Ok((part, seen)) => {
                    batch.seen = batch.seen.max(seen);
                    batch.parts.push(part);
                }
                Err(stop) => break Some(stop),
            }
        };
        if let (Some(Stop::Failed(error)), Some(txn)) = (&stop, &mut txn)
            && batch.operations[batch.parts.len()].is_write()
        {
            txn.failed.get_or_insert_with(|| error.clone());
        }
        if let Some(txn) = txn {
            self.part_with(txn);
        }
        match stop {
            None => {
                let (stamp, number) = (batch.head.stamp, batch.batch);
                let result = Ok(batch.parts);
                let message = Message::Executed {
                    stamp,
                    batch: number,
                    result,
                };
                self.send_after(batch.seen, batch.from, message);
            }
            Some(Stop::Blocked(slot)) => self.wait(Work::Batch(batch), slot),
            Some(Stop::Failed(error)) => self.fail_batch(batch, error),
        }
    }

    fn one(
        &mut self,
        head: Head,
        txn: Option<&mut Participant>,
        operation: &Operation,
    ) -> Result<(Part, Position), Stop> {
        let plain = |answer| Part {
            answer,
            places: Vec::new(),
        };
        match (operation, txn) {
            (Operation::Get(key), _) => {
                self.schema.table(key.table)?;
                let (value, seen) = self.get(&head, key)?;
                Ok((plain(Answer::Value(value.map(Vec::from))), seen))
            }
            (Operation::Scan(scan), _) => self.scan(&head, scan),
            (Operation::Write(key, change), Some(txn)) => {
                let seen = self.write(txn, key, change)?;
                txn.writes += 1;
                Ok((plain(Answer::Done), seen))
            }
            (Operation::Write(..), None) => {
                Err(Error::new(Code::BadArgument, "a write among reads").into())
            }
        }
    }

    pub(super) fn fail_batch(&mut self, batch: Batch, error: Error) {
        let (stamp, number) = (batch.head.stamp, batch.batch);
        let result = Err(error);
        // What failed may depend on a commit that is not durable yet: the answer waits for all.
        let message = Message::Executed {
            stamp,
            batch: number,
            result,
        };
        self.send_after(self.held.appended, batch.from, message);
    }

    /// The transaction's part here, taken out while something is done with it.
    pub(super) fn join(&mut self, from: Address, head: Head) -> Result<Participant> {
        self.check_writer(&head)?;
        let participant = match self.participants.remove(&head.stamp) {
            Some(participant) => participant,
            None => {
                let over = match self.outcomes.get(head.stamp) {
                    _ if self.holdings.contains_key(&head.stamp) => None,
                    None => None,
                    Some(Fate::Aborted) => Some((Code::Aborted, "it was aborted")),
                    Some(Fate::Forgotten) => Some((Code::TooOld, "it is too old to write")),
                    Some(_) => Some((Code::Finished, "it is over")),
                };
                if let Some((code, what)) = over {
                    let text = format!("transaction {}: {what}", head.stamp);
                    return Err(Error::new(code, text));
                }
                self.watch_participant(head.stamp);
                Participant::new(head)
            }
        };
        if participant.prepared {
            let text = format!("transaction {}: a write after its commit", head.stamp);
            self.participants.insert(head.stamp, participant);
            return Err(Error::new(Code::Finished, text));
        }
        self.open_holding(from, head);
        Ok(participant)
    }

    /// Puts the part back, and votes when all writes that were announced are there.
    pub(super) fn part_with(&mut self, mut txn: Participant) {
        let stamp = txn.head.stamp;
        txn.touched = self.now;
        self.participants.insert(stamp, txn);
        self.vote_when_complete(stamp);
    }
}
