//! An interactive transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dyno_txn_api::{
    Answer, Change, Code, Error, Key, Operation, Operations, Options, Result, Stamp, TableId,
    Transaction,
};
use dyno_txn_core::message::Message;
use dyno_txn_core::{Coordinator, Event, Schema, Sends};

use super::node::{Node, until};
use super::session::Session;
use crate::error::unavailable;
use crate::hello::ORACLE;

/// Writes that may be under way without anybody waiting for them.
const WRITES_UNDER_WAY: usize = 256;

pub(crate) struct NodeTransaction<'a> {
    node: &'a Node,
    /// There until the transaction is over.
    session: Option<Session>,
    coordinator: Coordinator,
    schema: Arc<Schema>,
    separate: bool,
    losses: u64,
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
    /// Takes a stamp, and begins.
    pub fn begin(node: &'a Node, options: &Options) -> Result<Self> {
        let mut session = node.session()?;
        let ticket = session.ticket();
        session.send(ORACLE, &Message::TakeStamps { ticket, count: 1 })?;
        let until = until(session.now(), options);
        let stamp = wait_for_stamp(&mut session, ticket, until)?;
        let (now, partitions) = (session.now(), node.welcome.partitions);
        Ok(Self {
            node,
            losses: session.losses,
            session: Some(session),
            coordinator: Coordinator::begin(now, stamp, partitions, options),
            schema: node.schema(),
            separate: options.separate,
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
    fn send(&mut self, operations: &[Operation]) -> Result<Vec<u32>> {
        let unknown = |operation: &Operation| self.schema.table(table_of(operation)).is_err();
        if operations.iter().any(unknown) {
            self.schema = self.node.schema_for(operations)?;
        }
        let size = match self.separate {
            true => 1,
            false => operations.len().max(1),
        };
        let (mut numbers, mut sends) = (Vec::new(), Sends::new());
        let now = self.session()?.now();
        for part in operations.chunks(size) {
            let run = self
                .coordinator
                .run(now, &self.schema, part.to_vec(), &mut sends);
            numbers.push(run?);
        }
        self.deliver(sends)?;
        Ok(numbers)
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
        let (mut sends, stamp) = (Sends::new(), self.coordinator.stamp());
        let session = self.session()?;
        session.wait(until)?;
        let mut got = Vec::new();
        while let Some((from, message)) = session.next() {
            if stamp_of(&message) == Some(stamp) {
                got.push((from, message));
            }
        }
        let (now, losses) = (session.now(), session.losses);
        for (from, message) in got {
            let event = self.coordinator.handle(from, message, &mut sends);
            self.happened(event);
        }
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
        let meets = |operation: &Operation| match operation {
            Operation::Get(key) | Operation::Write(key, _) => self.behind_keys.contains(key),
            Operation::Scan(_) => true,
        };
        if !self.behind.is_empty() && operations.iter().any(meets) {
            self.catch_up(0)?;
        }
        let mut answers = Vec::with_capacity(operations.len());
        for number in self.send(operations)? {
            answers.extend(self.wait_for(number)?);
        }
        Ok(answers)
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
        let operation = Operation::Write(Key::new(table, key), change);
        let Operation::Write(key, Change::Put(_) | Change::Delete) = &operation else {
            return self.run(std::slice::from_ref(&operation)).map(drop);
        };
        let most = match self.behind_keys.contains(key) {
            true => 0,
            false => WRITES_UNDER_WAY,
        };
        self.catch_up(most)?;
        let key = key.clone();
        let numbers = self.send(std::slice::from_ref(&operation))?;
        self.behind.extend(numbers);
        self.behind_keys.insert(key);
        // It goes out with what is waited for next, the commit at the latest: one call of the system less.
        Ok(())
    }
}

impl Transaction for NodeTransaction<'_> {
    fn commit(mut self: Box<Self>) -> Result<Option<Stamp>> {
        if let Some(error) = self.write_failed.take() {
            // The session may not be there any more; the engine then gives the transaction up by itself.
            let _ = self.give_up();
            return Err(error);
        }
        if let Some(Err(error)) = self.ended.clone() {
            self.finish();
            return Err(error);
        }
        let mut sends = Sends::new();
        let now = self.session()?.now();
        let event = self.coordinator.commit(now, &mut sends);
        self.committing = true;
        self.happened(event);
        if let Err(error) = self.deliver(sends) {
            // Perhaps it was sent, perhaps not: the record holder is asked.
            if error.kind() != Code::Unavailable {
                return Err(error);
            }
        }
        let ended = loop {
            match self.ended.take() {
                Some(ended) => break ended,
                None => self.drive()?,
            }
        };
        self.finish();
        // A write that failed says more than that the commit was refused for it.
        match (ended, self.write_failed.take()) {
            (Ok(()), _) => Ok(Some(self.coordinator.stamp())),
            (Err(error), Some(write)) if error.retry() != dyno_txn_api::Retry::Unknown => {
                Err(write)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        self.give_up()
    }

    fn stamp(&self) -> Option<Stamp> {
        Some(self.coordinator.stamp())
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

fn table_of(operation: &Operation) -> TableId {
    match operation {
        Operation::Get(key) | Operation::Write(key, _) => key.table,
        Operation::Scan(scan) => scan.table,
    }
}

fn stamp_of(message: &Message) -> Option<Stamp> {
    match message {
        Message::Executed { stamp, .. }
        | Message::Ended { stamp, .. }
        | Message::Told { stamp, .. } => Some(*stamp),
        _ => None,
    }
}

fn wait_for_stamp(session: &mut Session, ticket: u64, until: u64) -> Result<Stamp> {
    let losses = session.losses;
    loop {
        if !session.wait(until)? {
            return Err(Error::new(
                Code::Deadline,
                "the oracle gave no stamp in time",
            ));
        }
        while let Some((_, message)) = session.next() {
            if let Message::Stamps { ticket: of, result } = message
                && of == ticket
            {
                return result;
            }
        }
        if session.losses > losses {
            let refusal = session.refusal();
            return Err(refusal.unwrap_or_else(|| unavailable("the connection has ended")));
        }
    }
}
