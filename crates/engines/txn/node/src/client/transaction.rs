//! An interactive transaction: carries messages between its state machine, the [`Coordinator`], and
//! the engine.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dyno_txn_api::{
    Answer, Change, Code, Error, Key, Operation, Operations, Options, Result, Retry, TableId,
    Timestamp, Transaction,
};
use dyno_txn_core::message::Message;
use dyno_txn_core::{Coordinator, Event, Schema, Sends};

use super::node::Node;
use super::session::Session;
use crate::error::unavailable;

/// Batches of writes that may be under way before the next one waits for some of them.
const UNAWAITED_MAX: usize = 256;
/// Writes that are sent at once if each has a message of its own.
const SEPARATE_AT_ONCE: usize = 128;

pub(crate) struct NodeTransaction<'a> {
    node: &'a Node,
    /// `None` once the transaction is over.
    session: Option<Session>,
    coordinator: Coordinator,
    schema: Arc<Schema>,
    /// Whether each operation gets a message of its own.
    separate: bool,
    /// Those of the session that have been looked at.
    losses: u64,
    /// The ticket of the request for its timestamp, which goes out with its first operations.
    timestamp_ticket: Option<u64>,
    /// Answers that have arrived before the timestamp.
    early: Vec<Early>,
    /// Results of batches that have arrived and that an operation waits for.
    arrived: HashMap<u32, Result<Vec<Answer>>>,
    /// Batches of writes that nothing waits for yet.
    unawaited: HashSet<u32>,
    /// Their keys.
    unawaited_keys: HashSet<Key>,
    /// The first error of such a write. The next operation or the commit returns it.
    write_failed: Option<Error>,
    committing: bool,
    ended: Option<Result<()>>,
}

struct Early {
    from: u32,
    message: Message,
}

impl<'a> NodeTransaction<'a> {
    /// Begins a transaction. Its timestamp is requested with its first operations, which saves a
    /// round trip.
    pub fn begin(node: &'a Node, options: &Options) -> Result<Self> {
        let session = node.session()?;
        let (now, partitions) = (session.now(), node.welcome.partitions);
        Ok(Self {
            node,
            losses: session.losses,
            session: Some(session),
            coordinator: Coordinator::begin(now, 0, partitions, options),
            schema: node.schema(),
            separate: options.separate,
            timestamp_ticket: None,
            early: Vec::new(),
            arrived: HashMap::new(),
            unawaited: HashSet::new(),
            unawaited_keys: HashSet::new(),
            write_failed: None,
            committing: false,
            ended: None,
        })
    }

    fn session(&mut self) -> Result<&mut Session> {
        let over = || Error::new(Code::Finished, "the transaction is over");
        self.session.as_mut().ok_or_else(over)
    }

    /// Sends operations. Returns the numbers of their batches.
    fn send(&mut self, operations: Vec<Operation>) -> Result<Vec<u32>> {
        let first = self.timestamp_ticket.is_none();
        if !first {
            self.await_timestamp()?;
        }
        let unknown = |operation: &Operation| self.schema.table(operation.table()).is_err();
        if operations.iter().any(unknown) {
            self.schema = self.node.schema_for(&operations)?;
        }
        let batches = if self.separate {
            operations.into_iter().map(|one| vec![one]).collect()
        } else if operations.is_empty() {
            Vec::new()
        } else {
            vec![operations]
        };
        let (mut numbers, mut sends) = (Vec::with_capacity(batches.len()), Sends::new());
        let now = self.session()?.now();
        for batch in batches {
            let run = self.coordinator.run(now, &self.schema, batch, &mut sends);
            numbers.push(run?);
        }
        if first {
            self.request_timestamp(&mut sends)?;
        }
        self.deliver(sends)?;
        Ok(numbers)
    }

    /// Requests the timestamp. If the thread that issues it also runs the first operations, they
    /// follow at once with timestamp 0, and the thread fills it in. Otherwise this waits for the
    /// timestamp and puts it into them, because another thread or process does not know which one
    /// was issued.
    fn request_timestamp(&mut self, first: &mut Sends) -> Result<()> {
        let session = self.session()?;
        let ticket = session.ticket();
        let is_filled_in = session.request_timestamp(ticket, first.iter().map(|(to, _)| *to))?;
        self.timestamp_ticket = Some(ticket);
        if is_filled_in {
            return Ok(());
        }
        let timestamp = self.await_timestamp()?;
        for (_, message) in first {
            if let Message::Execute { head, .. } = message {
                head.timestamp = timestamp;
            }
        }
        Ok(())
    }

    /// The timestamp. Requests it if that has not been done, and waits for it.
    fn await_timestamp(&mut self) -> Result<Timestamp> {
        if self.timestamp_ticket.is_none() {
            self.request_timestamp(&mut Sends::new())?;
        }
        loop {
            match (self.coordinator.timestamp(), &self.ended) {
                (0, Some(Err(error))) => return Err(error.clone()),
                (0, _) => self.drive()?,
                (timestamp, _) => return Ok(timestamp),
            }
        }
    }

    fn on_message(&mut self, from: u32, message: Message, sends: &mut Sends) {
        match message {
            Message::Timestamps { ticket, result } if self.timestamp_ticket == Some(ticket) => {
                match result {
                    Ok(timestamp) => {
                        self.coordinator.timestamp_arrived(timestamp);
                        for Early { from, message } in std::mem::take(&mut self.early) {
                            self.on_message(from, message, sends);
                        }
                    }
                    Err(error) => {
                        self.ended.get_or_insert(Err(error));
                    }
                }
            }
            message => match (message.to_interactive(), self.coordinator.timestamp()) {
                // Without the timestamp it cannot be told whether an answer is for this
                // transaction, or is a late one for the transaction that used the session before.
                (Some(_), 0) => self.early.push(Early { from, message }),
                (Some(to), timestamp) if to == timestamp => {
                    let event = self.coordinator.handle(from, message, sends);
                    self.on_event(event);
                }
                _ => {}
            },
        }
    }

    fn deliver(&mut self, sends: Sends) -> Result<()> {
        for (to, message) in sends {
            self.session()?.send(to, &message)?;
        }
        Ok(())
    }

    /// Waits until something has arrived, and handles it.
    ///
    /// If a connection has been lost, what was under way on it may have been carried out or not.
    /// Before the commit the transaction is given up, which is always safe: no participant has been
    /// told to commit. After the commit was sent it must not be given up, because it may have been
    /// decided. The coordinator then goes on asking the record holder until the deadline.
    fn drive(&mut self) -> Result<()> {
        let until = self.coordinator.wake_at();
        let mut sends = Sends::new();
        self.session()?.wait(until)?;
        while let Some((from, message)) = self.session()?.next() {
            self.on_message(from, message, &mut sends);
        }
        let session = self.session()?;
        let (now, losses) = (session.now(), session.losses);
        if now >= self.coordinator.wake_at() && self.ended.is_none() {
            let event = self.coordinator.tick(now, &mut sends);
            self.on_event(event);
        }
        if losses != self.losses {
            self.losses = losses;
            if !self.committing {
                self.on_connection_lost(&mut sends);
            }
        }
        match self.deliver(sends) {
            // The engine cannot be reached now. The coordinator repeats its question in time.
            Err(_) if self.committing => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                Ok(())
            }
            delivered => delivered,
        }
    }

    fn on_connection_lost(&mut self, sends: &mut Sends) {
        let refusal = self.session.as_mut().and_then(Session::refusal);
        let ended = || unavailable("the connection ended, and the transaction with it");
        self.ended.get_or_insert(Err(refusal.unwrap_or_else(ended)));
        self.coordinator.rollback(sends);
    }

    fn on_event(&mut self, event: Option<Event>) {
        match event {
            None => {}
            Some(Event::Ended(result)) => {
                self.ended.get_or_insert(result);
            }
            Some(Event::Batch { number, result }) => {
                if self.unawaited.remove(&number) {
                    if let Err(error) = result {
                        self.write_failed.get_or_insert(error);
                    }
                    if self.unawaited.is_empty() {
                        self.unawaited_keys.clear();
                    }
                } else {
                    self.arrived.insert(number, result);
                }
            }
        }
    }

    /// Waits for the result of a batch, or for the end of the transaction without it.
    fn await_batch(&mut self, number: u32) -> Result<Vec<Answer>> {
        loop {
            if let Some(result) = self.arrived.remove(&number) {
                return result;
            }
            match &self.ended {
                Some(Err(error)) => return Err(error.clone()),
                Some(Ok(())) => return Err(Error::new(Code::Finished, "the transaction is over")),
                None => self.drive()?,
            }
        }
    }

    /// Waits until at most `most` batches of writes are under way. Returns the error of one that
    /// failed.
    fn await_writes(&mut self, most: usize) -> Result<()> {
        while self.unawaited.len() > most && self.ended.is_none() {
            self.drive()?;
        }
        match (&self.write_failed, &self.ended) {
            (Some(error), _) | (None, Some(Err(error))) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Waits for the writes that are under way if these operations may depend on them. Messages to
    /// different partitions keep no order between them, and a read must see the transaction's own
    /// writes.
    fn await_conflicting(&mut self, operations: &[Operation]) -> Result<()> {
        let may_depend = |operation: &Operation| match operation {
            Operation::Get(key) | Operation::Write(key, _) => self.unawaited_keys.contains(key),
            Operation::Scan(_) => true,
        };
        if !self.unawaited.is_empty() && operations.iter().any(may_depend) {
            self.await_writes(0)
        } else {
            Ok(())
        }
    }

    /// Sends writes without waiting for them. They go out with the next operation that is waited
    /// for, the commit at the latest. That saves a system call, and the rows stay undecided only
    /// for as long as the engine needs for them, and not for a round trip to the client as well.
    fn write_behind(&mut self, writes: Vec<Operation>) -> Result<()> {
        let batches = if self.separate { writes.len() } else { 1 };
        self.await_conflicting(&writes)?;
        self.await_writes(UNAWAITED_MAX.saturating_sub(batches))?;
        let keys = writes.iter().filter_map(|operation| match operation {
            Operation::Write(key, _) => Some(key.clone()),
            Operation::Get(_) | Operation::Scan(_) => None,
        });
        let keys: Vec<Key> = keys.collect();
        let numbers = self.send(writes)?;
        self.unawaited.extend(numbers);
        self.unawaited_keys.extend(keys);
        Ok(())
    }

    /// Sends the commit, and with it everything that is not sent yet.
    fn begin_commit(&mut self) -> Result<()> {
        if let Some(error) = self.write_failed.take() {
            // If that cannot be sent, the engine gives the transaction up when its heartbeats stop.
            let _ = self.abandon();
            return Err(error);
        }
        if let Some(Err(error)) = self.ended.clone() {
            self.finish();
            return Err(error);
        }
        // The timestamp is the name of the transaction: without it the record holder could not be
        // asked what became of the commit.
        self.await_timestamp()?;
        let mut sends = Sends::new();
        let now = self.session()?.now();
        let event = self.coordinator.commit(now, &mut sends);
        self.committing = true;
        self.on_event(event);
        match self.deliver(sends) {
            // Part of it may have been sent. The record holder decides, so it is asked.
            Err(error) if error.kind() == Code::Unavailable => Ok(()),
            delivered => delivered,
        }
    }

    /// Waits for the outcome of the commit.
    fn end(&mut self) -> Result<()> {
        let ended = loop {
            match &self.ended {
                Some(ended) => break ended.clone(),
                None => self.drive()?,
            }
        };
        // The error of a write is the reason for which the commit was refused. It is not shown if
        // the outcome is unknown: it would tell the caller that a retry is safe.
        match (ended, self.write_failed.take()) {
            (Err(error), Some(write)) if error.retry() != Retry::Unknown => Err(write),
            (ended, _) => ended,
        }
    }

    /// The answers to operations that were committed with their transaction. If one of them does
    /// not arrive, its error must not let the caller repeat the transaction, which has been
    /// committed.
    fn answers_of_committed(&mut self, numbers: Vec<u32>, losses: u64) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for number in numbers {
            let result = loop {
                if let Some(result) = self.arrived.remove(&number) {
                    break result;
                }
                let until = self.coordinator.deadline();
                if self.losses != losses || self.session()?.now() >= until {
                    break Err(unavailable("its answer did not arrive"));
                }
                self.drive()?;
            };
            match result {
                Ok(more) => answers.extend(more),
                Err(error) => {
                    let text = format!("committed, but a read that went with it failed: {error}");
                    return Err(Error::with_retry(error.kind(), Retry::Unknown, text));
                }
            }
        }
        Ok(answers)
    }

    fn finish(&mut self) {
        if let Some(session) = self.session.take() {
            self.node.return_session(session);
        }
    }

    /// Rolls back, without waiting for the engine to confirm it.
    fn abandon(&mut self) -> Result<()> {
        let mut sends = Sends::new();
        self.coordinator.rollback(&mut sends);
        let done = self.deliver(sends).and_then(|()| self.session()?.flush());
        self.finish();
        done
    }
}

impl Operations for NodeTransaction<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        self.await_conflicting(operations)?;
        let mut answers = Vec::with_capacity(operations.len());
        for number in self.send(operations.to_vec())? {
            answers.extend(self.await_batch(number)?);
        }
        Ok(answers)
    }

    /// Sends the commit together with the operations, which saves a round trip, if no partition can
    /// decide on the commit before it has carried out its own reads: nothing was written earlier,
    /// and here all reads come before the writes. Otherwise a read might fail after the commit.
    fn run_last(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        let writes = operations.iter().any(Operation::is_write);
        let in_order = operations.is_sorted_by_key(Operation::is_write);
        if !writes || !in_order || self.coordinator.has_written() {
            return self.run(operations);
        }
        let losses = self.losses;
        let numbers = self.send(operations.to_vec())?;
        self.begin_commit()?;
        self.end()?;
        self.answers_of_committed(numbers, losses)
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        if let Ok(table) = self.schema.named(name) {
            return Ok(table);
        }
        self.schema = self.node.refresh_schema()?;
        self.schema.named(name)
    }

    /// Puts and deletes are not waited for, because they succeed whatever the row holds. The commit
    /// counts them: if one was lost on its way, it is refused.
    fn write(&mut self, table: TableId, key: &[u8], change: Change) -> Result<()> {
        let waits = !matches!(change, Change::Put(_) | Change::Delete);
        let operation = Operation::Write(Key::new(table, key), change);
        if waits {
            self.run(std::slice::from_ref(&operation)).map(drop)
        } else {
            self.write_behind(vec![operation])
        }
    }

    fn write_many(&mut self, writes: Vec<(Key, Change)>) -> Result<()> {
        let at_once = if self.separate {
            SEPARATE_AT_ONCE
        } else {
            writes.len()
        };
        let mut writes = writes.into_iter();
        while writes.len() > 0 {
            let next = writes.by_ref().take(at_once);
            let next = next.map(|(key, change)| Operation::Write(key, change));
            self.write_behind(next.collect())?;
        }
        Ok(())
    }
}

impl Transaction for NodeTransaction<'_> {
    fn commit(mut self: Box<Self>) -> Result<Option<Timestamp>> {
        if !self.committing {
            self.begin_commit()?;
        }
        let ended = self.end();
        self.finish();
        ended.map(|()| Some(self.coordinator.timestamp()))
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        if self.committing && self.ended == Some(Ok(())) {
            self.finish();
            let text = "it was committed with its last operations: it is too late to roll back";
            return Err(Error::new(Code::Finished, text));
        }
        self.abandon()
    }

    fn timestamp(&self) -> Option<Timestamp> {
        Some(self.coordinator.timestamp()).filter(|timestamp| *timestamp > 0)
    }
}

impl Drop for NodeTransaction<'_> {
    fn drop(&mut self) {
        if self.session.is_some() {
            // If the rollback cannot be sent, the engine gives the transaction up when its
            // heartbeats stop.
            let _ = self.abandon();
        }
    }
}
