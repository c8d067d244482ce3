//! An interactive transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dyno_txn_api::{
    Answer, Change, Code, Error, Key, Operation, Operations, Options, Result, Retry, Stamp,
    TableId, Transaction,
};
use dyno_txn_core::message::Message;
use dyno_txn_core::{Coordinator, Event, Schema, Sends};

use super::node::Node;
use super::session::Session;
use crate::error::unavailable;

/// Writes that may be under way without anybody waiting for them.
const WRITES_UNDER_WAY: usize = 256;
/// Of them, those that are sent at once when each has a message of its own.
const WRITES_TOGETHER: usize = 128;

pub(crate) struct NodeTransaction<'a> {
    node: &'a Node,
    /// There until the transaction is over.
    session: Option<Session>,
    coordinator: Coordinator,
    schema: Arc<Schema>,
    separate: bool,
    losses: u64,
    /// The number of the question for its stamp, which goes out with its first operations.
    asked: Option<u64>,
    /// Answers that have come before it.
    early: Vec<(u32, Message)>,
    /// Batches that are waited for, when they have come.
    come: HashMap<u32, Result<Vec<Answer>>>,
    /// Batches of writes that nobody waits for yet, and their keys.
    behind: HashSet<u32>,
    behind_keys: HashSet<Key>,
    write_failed: Option<Error>,
    committing: bool,
    ended: Option<Result<()>>,
}

impl<'a> NodeTransaction<'a> {
    /// Begins. Its stamp is taken with its first operations, which is a message there and back less.
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
            asked: None,
            early: Vec::new(),
            come: HashMap::new(),
            behind: HashSet::new(),
            behind_keys: HashSet::new(),
            write_failed: None,
            committing: false,
            ended: None,
        })
    }

    fn session(&mut self) -> Result<&mut Session> {
        let over = || Error::new(Code::Finished, "the transaction is over");
        self.session.as_mut().ok_or_else(over)
    }

    /// Begins operations; the numbers of their batches.
    fn send(&mut self, operations: Vec<Operation>) -> Result<Vec<u32>> {
        let first = self.asked.is_none();
        if !first {
            self.known_stamp()?;
        }
        let unknown = |operation: &Operation| self.schema.table(operation.table()).is_err();
        if operations.iter().any(unknown) {
            self.schema = self.node.schema_for(&operations)?;
        }
        let batches = match self.separate {
            true => operations.into_iter().map(|one| vec![one]).collect(),
            false if operations.is_empty() => Vec::new(),
            false => vec![operations],
        };
        let (mut numbers, mut sends) = (Vec::with_capacity(batches.len()), Sends::new());
        let now = self.session()?.now();
        for batch in batches {
            let run = self.coordinator.run(now, &self.schema, batch, &mut sends);
            numbers.push(run?);
        }
        if first {
            self.ask_for_stamp(&mut sends)?;
        }
        self.deliver(sends)?;
        Ok(numbers)
    }

    /// Asks for the stamp. The first operations go out behind that, before its number is here, where the thread
    /// that gives it is the one that runs them; else they wait.
    fn ask_for_stamp(&mut self, first: &mut Sends) -> Result<()> {
        let session = self.session()?;
        let ticket = session.ticket();
        let together = session.ask_before(ticket, first.iter().map(|(to, _)| *to))?;
        self.asked = Some(ticket);
        if together {
            return Ok(());
        }
        let stamp = self.known_stamp()?;
        for (_, message) in first {
            if let Message::Execute { head, .. } = message {
                head.stamp = stamp;
            }
        }
        Ok(())
    }

    /// The stamp, waited for when it is not here.
    fn known_stamp(&mut self) -> Result<Stamp> {
        if self.asked.is_none() {
            self.ask_for_stamp(&mut Sends::new())?;
        }
        loop {
            match (self.coordinator.stamp(), &self.ended) {
                (0, Some(Err(error))) => return Err(error.clone()),
                (0, _) => self.drive()?,
                (stamp, _) => return Ok(stamp),
            }
        }
    }

    fn take_in(&mut self, from: u32, message: Message, sends: &mut Sends) {
        match message {
            Message::Stamps { ticket, result } if self.asked == Some(ticket) => match result {
                Ok(stamp) => {
                    self.coordinator.stamped(stamp);
                    for (from, message) in std::mem::take(&mut self.early) {
                        self.take_in(from, message, sends);
                    }
                }
                Err(error) => {
                    self.ended.get_or_insert(Err(error));
                }
            },
            message => match (message.to_interactive(), self.coordinator.stamp()) {
                (Some(_), 0) => self.early.push((from, message)),
                (Some(to), stamp) if to == stamp => {
                    let event = self.coordinator.handle(from, message, sends);
                    self.happened(event);
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

    /// Waits until something has come, and takes it in.
    fn drive(&mut self) -> Result<()> {
        let until = self.coordinator.wake_at();
        let mut sends = Sends::new();
        self.session()?.wait(until)?;
        while let Some((from, message)) = self.session()?.next() {
            self.take_in(from, message, &mut sends);
        }
        let session = self.session()?;
        let (now, losses) = (session.now(), session.losses);
        if now >= self.coordinator.wake_at() && self.ended.is_none() {
            let event = self.coordinator.tick(now, &mut sends);
            self.happened(event);
        }
        if losses != self.losses {
            self.losses = losses;
            if !self.committing {
                self.lost(&mut sends);
            }
        }
        match self.deliver(sends) {
            // What became of a commit is asked again and again until the deadline.
            Err(_) if self.committing => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                Ok(())
            }
            delivered => delivered,
        }
    }

    /// What was under way on a connection that has ended may have been done or not: it is all given up.
    fn lost(&mut self, sends: &mut Sends) {
        let refusal = self.session.as_mut().and_then(Session::refusal);
        let ended = || unavailable("the connection ended, and the transaction with it");
        self.ended.get_or_insert(Err(refusal.unwrap_or_else(ended)));
        self.coordinator.rollback(sends);
    }

    fn happened(&mut self, event: Option<Event>) {
        match event {
            None => {}
            Some(Event::Ended(result)) => {
                self.ended.get_or_insert(result);
            }
            Some(Event::Batch { number, result }) => match self.behind.remove(&number) {
                true => {
                    if let Err(error) = result {
                        self.write_failed.get_or_insert(error);
                    }
                    if self.behind.is_empty() {
                        self.behind_keys.clear();
                    }
                }
                false => {
                    self.come.insert(number, result);
                }
            },
        }
    }

    /// Drives until a batch has come, or the transaction has ended without it.
    fn wait_for(&mut self, number: u32) -> Result<Vec<Answer>> {
        loop {
            if let Some(result) = self.come.remove(&number) {
                return result;
            }
            match &self.ended {
                Some(Err(error)) => return Err(error.clone()),
                Some(Ok(())) => return Err(Error::new(Code::Finished, "the transaction is over")),
                None => self.drive()?,
            }
        }
    }

    /// Waits until at most so many writes are under way.
    fn catch_up(&mut self, most: usize) -> Result<()> {
        while self.behind.len() > most && self.ended.is_none() {
            self.drive()?;
        }
        match (&self.write_failed, &self.ended) {
            (Some(error), _) | (None, Some(Err(error))) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Waits for what is under way where these operations are behind it.
    fn come_before(&mut self, operations: &[Operation]) -> Result<()> {
        let meets = |operation: &Operation| match operation {
            Operation::Get(key) | Operation::Write(key, _) => self.behind_keys.contains(key),
            Operation::Scan(_) => true,
        };
        match !self.behind.is_empty() && operations.iter().any(meets) {
            true => self.catch_up(0),
            false => Ok(()),
        }
    }

    /// Sends writes that nobody waits for. They go out with what is waited for next, the commit at the
    /// latest: that is a call of the system less, and the rows are undecided for as long as the engine needs
    /// for them, and not for a message to the client and back.
    fn write_behind(&mut self, writes: Vec<Operation>) -> Result<()> {
        let batches = if self.separate { writes.len() } else { 1 };
        self.come_before(&writes)?;
        self.catch_up(WRITES_UNDER_WAY.saturating_sub(batches))?;
        let keys = writes.iter().filter_map(|operation| match operation {
            Operation::Write(key, _) => Some(key.clone()),
            Operation::Get(_) | Operation::Scan(_) => None,
        });
        let keys: Vec<Key> = keys.collect();
        let numbers = self.send(writes)?;
        self.behind.extend(numbers);
        self.behind_keys.extend(keys);
        Ok(())
    }

    /// Sends the commit, together with what is not yet sent.
    fn begin_commit(&mut self) -> Result<()> {
        if let Some(error) = self.write_failed.take() {
            // The session may not be there any more; the engine then gives the transaction up by itself.
            let _ = self.give_up();
            return Err(error);
        }
        if let Some(Err(error)) = self.ended.clone() {
            self.finish();
            return Err(error);
        }
        // Without its number nobody could be asked what became of the commit.
        self.known_stamp()?;
        let mut sends = Sends::new();
        let now = self.session()?.now();
        let event = self.coordinator.commit(now, &mut sends);
        self.committing = true;
        self.happened(event);
        match self.deliver(sends) {
            // Perhaps it was sent, perhaps not: the record holder is asked.
            Err(error) if error.kind() == Code::Unavailable => Ok(()),
            delivered => delivered,
        }
    }

    /// Waits for what became of the commit.
    fn end(&mut self) -> Result<()> {
        let ended = loop {
            match &self.ended {
                Some(ended) => break ended.clone(),
                None => self.drive()?,
            }
        };
        // A write that failed says more than that the commit was refused for it.
        match (ended, self.write_failed.take()) {
            (Err(error), Some(write)) if error.retry() != Retry::Unknown => Err(write),
            (ended, _) => ended,
        }
    }

    /// What was read by operations that are committed: whatever goes wrong with that, they are not to be
    /// done again.
    fn answers_of_committed(&mut self, numbers: Vec<u32>, losses: u64) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for number in numbers {
            let result = loop {
                if let Some(result) = self.come.remove(&number) {
                    break result;
                }
                let until = self.coordinator.deadline();
                if self.losses != losses || self.session()?.now() >= until {
                    break Err(unavailable("its answer did not come"));
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
            self.node.give_back(session);
        }
    }

    fn give_up(&mut self) -> Result<()> {
        let mut sends = Sends::new();
        self.coordinator.rollback(&mut sends);
        let done = self.deliver(sends).and_then(|()| self.session()?.flush());
        self.finish();
        done
    }
}

impl Operations for NodeTransaction<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        self.come_before(operations)?;
        let mut answers = Vec::with_capacity(operations.len());
        for number in self.send(operations.to_vec())? {
            answers.extend(self.wait_for(number)?);
        }
        Ok(answers)
    }

    /// With the commit behind them where no partition can have decided on it before it has read: what is
    /// read goes before what is written, and nothing was written earlier.
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
        self.schema = self.node.learn()?;
        self.schema.named(name)
    }

    /// Values that need nothing to be there are sent and not waited for: the commit counts them.
    fn write(&mut self, table: TableId, key: &[u8], change: Change) -> Result<()> {
        let waits = !matches!(change, Change::Put(_) | Change::Delete);
        let operation = Operation::Write(Key::new(table, key), change);
        match waits {
            true => self.run(std::slice::from_ref(&operation)).map(drop),
            false => self.write_behind(vec![operation]),
        }
    }

    fn write_many(&mut self, writes: Vec<(Key, Change)>) -> Result<()> {
        let together = match self.separate {
            true => WRITES_TOGETHER,
            false => writes.len(),
        };
        let mut writes = writes.into_iter();
        while writes.len() > 0 {
            let next = writes.by_ref().take(together);
            let next = next.map(|(key, change)| Operation::Write(key, change));
            self.write_behind(next.collect())?;
        }
        Ok(())
    }
}

impl Transaction for NodeTransaction<'_> {
    fn commit(mut self: Box<Self>) -> Result<Option<Stamp>> {
        if !self.committing {
            self.begin_commit()?;
        }
        let ended = self.end();
        self.finish();
        ended.map(|()| Some(self.coordinator.stamp()))
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        if self.committing && self.ended == Some(Ok(())) {
            self.finish();
            let text = "it was committed with its last operations: it is too late to roll back";
            return Err(Error::new(Code::Finished, text));
        }
        self.give_up()
    }

    fn stamp(&self) -> Option<Stamp> {
        Some(self.coordinator.stamp()).filter(|stamp| *stamp > 0)
    }
}

impl Drop for NodeTransaction<'_> {
    fn drop(&mut self) {
        if self.session.is_some() {
            // Whoever drops it does not ask how; the engine forgets it after its heartbeat either way.
            let _ = self.give_up();
        }
    }
}
