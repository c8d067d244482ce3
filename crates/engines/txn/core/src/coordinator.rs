//! The client's side of an interactive transaction. It sends operations to the partitions that have
//! the rows, in parallel, commits by one message, and asks again when an answer does not come.

use std::collections::{BTreeMap, BTreeSet};

use dyno_txn_api::limits::OPERATIONS_MAX;
use dyno_txn_api::{Answer, Code, Error, Operation, Options, Result, Timestamp};

use crate::merge::{merge, single};
use crate::message::{Fate, Head, Message, PartialAnswer, PartitionId};
use crate::placement::{partition_of, partitions_of};
use crate::schema::Schema;

/// The interval at which the holder is asked about an unanswered commit, or is sent a heartbeat.
const ASK_NS: u64 = 100_000_000;

/// Messages, each with the partition that it goes to.
pub type Sends = Vec<(PartitionId, Message)>;

/// What the caller is told about its transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A batch was answered, or failed.
    Batch {
        /// Its number, as [`Coordinator::run`] gave it.
        number: u32,
        /// Answers in the order of its operations.
        result: Result<Vec<Answer>>,
    },
    /// The transaction is over. With [`dyno_txn_api::Retry::Unknown`] it may have been committed.
    Ended(Result<()>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The commit was sent, and its answer is awaited.
    Committing,
    Over,
}

/// A batch of operations that was sent.
#[derive(Debug)]
enum Batch {
    /// All of them went to one partition, as is usual: they are sent without a copy, and their
    /// answers are not merged.
    Whole {
        at: PartitionId,
        count: usize,
        writes: bool,
    },
    /// They went to several partitions.
    Spread(Spread),
}

#[derive(Debug)]
struct Spread {
    operations: Vec<Operation>,
    /// The operations, by index, that each partition has yet to answer.
    missing: BTreeMap<PartitionId, Vec<usize>>,
    parts: Vec<Vec<PartialAnswer>>,
}

/// An interactive transaction on the client's side, which needs no I/O of its own.
#[derive(Debug)]
pub struct Coordinator {
    timestamp: Timestamp,
    priority: u16,
    read_only: bool,
    partitions: u32,
    until: u64,
    holder: Option<PartitionId>,
    /// Writes sent to each partition.
    writes: BTreeMap<PartitionId, u32>,
    /// Batches with writes sent to each partition.
    sent: BTreeMap<PartitionId, u32>,
    batches: BTreeMap<u32, Batch>,
    next_batch: u32,
    failed: Option<Error>,
    state: State,
    /// When to ask or to send a heartbeat next.
    next_signal: u64,
}

impl Coordinator {
    /// Begins a transaction at a timestamp that the oracle issued for it. Timestamp 0 means that it
    /// is on its way, and [`Coordinator::timestamp_arrived`] is called when it has arrived.
    pub fn begin(now: u64, timestamp: Timestamp, partitions: u32, options: &Options) -> Self {
        let deadline_ns = u64::try_from(options.deadline.as_nanos()).unwrap_or(u64::MAX);
        Self {
            timestamp,
            priority: u16::from(options.priority),
            read_only: options.read_only,
            partitions,
            until: now.saturating_add(deadline_ns),
            holder: None,
            writes: BTreeMap::new(),
            sent: BTreeMap::new(),
            batches: BTreeMap::new(),
            next_batch: 0,
            failed: None,
            state: State::Open,
            next_signal: now.saturating_add(ASK_NS),
        }
    }

    /// Sets the timestamp of a transaction that was begun without one.
    pub fn timestamp_arrived(&mut self, timestamp: Timestamp) {
        self.timestamp = timestamp;
    }

    /// The transaction's timestamp, or 0 until it has arrived.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// When [`Coordinator::tick`] is due next.
    pub fn wake_at(&self) -> u64 {
        match self.state {
            State::Over => self.until,
            State::Open | State::Committing => self.next_signal.min(self.until),
        }
    }

    /// Sends a batch of operations, and returns the number that its [`Event::Batch`] will have.
    /// Several batches may be unanswered at once. Operations on one key keep their order, others
    /// may not.
    ///
    /// # Errors
    /// When the transaction is over, or the batch is not allowed. Then nothing was sent.
    pub fn run(
        &mut self,
        now: u64,
        schema: &Schema,
        operations: Vec<Operation>,
        sends: &mut Sends,
    ) -> Result<u32> {
        if self.state != State::Open {
            return Err(Error::new(Code::Finished, "the transaction is over"));
        }
        if operations.len() > OPERATIONS_MAX {
            let text = format!("{} operations: {OPERATIONS_MAX} at most", operations.len());
            return Err(Error::new(Code::TooLarge, text));
        }
        if self.read_only && operations.iter().any(Operation::is_write) {
            let text = "a write in a read-only transaction";
            return Err(Error::new(Code::ReadOnly, text));
        }
        let single = self.single_partition(schema, &operations)?;
        let number = self.next_batch;
        let batch = match single {
            Some(at) => {
                let count = operations.len();
                // The first partition that is written to decides, and stays the holder.
                let written = operations.iter().filter(|one| one.is_write()).count() as u32;
                if written > 0 {
                    self.holder.get_or_insert(at);
                    *self.writes.entry(at).or_default() += written;
                }
                sends.push((at, self.execute(now, at, operations)));
                let writes = written > 0;
                Batch::Whole { at, count, writes }
            }
            None => Batch::Spread(self.spread(now, schema, operations, sends)?),
        };
        self.next_batch += 1;
        self.batches.insert(number, batch);
        Ok(number)
    }

    /// The partition that has the rows of all these operations, if there is one that has.
    fn single_partition(
        &self,
        schema: &Schema,
        operations: &[Operation],
    ) -> Result<Option<PartitionId>> {
        let mut single = None;
        for operation in operations {
            let at = match operation {
                Operation::Get(key) | Operation::Write(key, _) => {
                    partition_of(schema.table(key.table)?, self.partitions, &key.bytes)
                }
                Operation::Scan(_) => match self.partitions_of(schema, operation)?[..] {
                    [at] => at,
                    _ => return Ok(None),
                },
            };
            if single.replace(at).is_some_and(|before| before != at) {
                return Ok(None);
            }
        }
        Ok(single)
    }

    /// Sends each partition the operations on its rows.
    fn spread(
        &mut self,
        now: u64,
        schema: &Schema,
        operations: Vec<Operation>,
        sends: &mut Sends,
    ) -> Result<Spread> {
        let mut missing: BTreeMap<PartitionId, Vec<usize>> = BTreeMap::new();
        for (at, operation) in operations.iter().enumerate() {
            for partition in self.partitions_of(schema, operation)? {
                missing.entry(partition).or_default().push(at);
            }
        }
        for operation in operations.iter().filter(|operation| operation.is_write()) {
            for partition in self.partitions_of(schema, operation)? {
                self.holder.get_or_insert(partition);
                *self.writes.entry(partition).or_default() += 1;
            }
        }
        for (&partition, which) in &missing {
            let own = which.iter().map(|&at| operations[at].clone()).collect();
            sends.push((partition, self.execute(now, partition, own)));
        }
        let parts = operations.iter().map(|_| Vec::new()).collect();
        Ok(Spread {
            operations,
            missing,
            parts,
        })
    }

    /// The message that sends a partition its share of the next batch.
    fn execute(&mut self, now: u64, to: PartitionId, operations: Vec<Operation>) -> Message {
        let sent = self.sent.entry(to).or_default();
        let after = *sent;
        *sent += u32::from(operations.iter().any(Operation::is_write));
        Message::Execute {
            head: self.head(),
            batch: self.next_batch,
            after,
            deadline_ns: self.until.saturating_sub(now),
            operations,
        }
    }

    fn partitions_of(&self, schema: &Schema, operation: &Operation) -> Result<Vec<PartitionId>> {
        Ok(match operation {
            Operation::Get(key) | Operation::Write(key, _) => {
                let def = schema.table(key.table)?;
                vec![partition_of(def, self.partitions, &key.bytes)]
            }
            Operation::Scan(scan) => {
                partitions_of(schema.table(scan.table)?, self.partitions, scan)
            }
        })
    }

    fn head(&self) -> Head {
        let (timestamp, priority) = (self.timestamp, self.priority);
        Head {
            timestamp,
            holder: self.holder.unwrap_or(0),
            priority,
        }
    }

    /// Asks to commit. The result comes as an [`Event::Ended`], which is returned here if it is
    /// known at once.
    pub fn commit(&mut self, now: u64, sends: &mut Sends) -> Option<Event> {
        if self.state != State::Open {
            return None;
        }
        if let Some(error) = &self.failed {
            // A batch with writes failed. The holder would refuse the commit anyway, after a round
            // trip.
            let text = format!("an operation of the transaction failed: {}", error.text());
            let error = Error::new(Code::WriteFailed, text);
            self.rollback(sends);
            return Some(Event::Ended(Err(error)));
        }
        let Some(holder) = self.holder else {
            // Nothing was written, so there is nothing to decide: all reads are of one timestamp.
            self.state = State::Over;
            return Some(Event::Ended(Ok(())));
        };
        self.state = State::Committing;
        self.next_signal = now.saturating_add(ASK_NS);
        sends.push((holder, self.commit_message()));
        None
    }

    fn commit_message(&self) -> Message {
        let writes = self
            .writes
            .iter()
            .map(|(&partition, &count)| (partition, count));
        let (head, writes) = (self.head(), writes.collect());
        Message::Commit { head, writes }
    }

    /// Aborts the transaction. The partitions are told, but not waited for.
    pub fn rollback(&mut self, sends: &mut Sends) {
        if self.state == State::Over {
            return;
        }
        self.state = State::Over;
        for &partition in self.writes.keys() {
            sends.push((partition, Message::Abort { head: self.head() }));
        }
    }

    /// Handles an answer of a partition.
    pub fn handle(
        &mut self,
        from: PartitionId,
        message: Message,
        sends: &mut Sends,
    ) -> Option<Event> {
        match message {
            Message::Executed { batch, result, .. } => self.executed(from, batch, result),
            Message::Ended { result, .. } if self.state == State::Committing => {
                self.state = State::Over;
                Some(Event::Ended(result))
            }
            Message::FateAnswer { fate, .. } if self.state == State::Committing => {
                let result = match fate {
                    // The request to commit was lost, or is not decided yet. Repeating it is
                    // harmless.
                    Fate::Open => {
                        sends.push((from, self.commit_message()));
                        return None;
                    }
                    Fate::Committed => Ok(()),
                    Fate::Aborted => Err(Error::new(Code::Aborted, "the transaction was aborted")),
                    Fate::Forgotten => Err(self.unknown("the engine no longer knows")),
                };
                self.state = State::Over;
                Some(Event::Ended(result))
            }
            _ => None,
        }
    }

    fn executed(
        &mut self,
        from: PartitionId,
        number: u32,
        result: Result<Vec<PartialAnswer>>,
    ) -> Option<Event> {
        let result = match self.batches.get_mut(&number)? {
            Batch::Whole { at, .. } if *at != from => return None,
            Batch::Whole { count, .. } => result.and_then(|parts| {
                expect(*count, &parts)?;
                Ok(parts.into_iter().map(single).collect())
            }),
            Batch::Spread(batch) => batch.answered(from, result)?,
        };
        let writes = match self.batches.remove(&number)? {
            Batch::Whole { writes, .. } => writes,
            Batch::Spread(batch) => batch.operations.iter().any(Operation::is_write),
        };
        if let Err(error) = &result
            && writes
        {
            self.failed.get_or_insert(error.clone());
        }
        Some(Event::Batch { number, result })
    }

    /// Does what is due: sends a heartbeat, asks about a lost answer, or ends the transaction at
    /// its deadline.
    pub fn tick(&mut self, now: u64, sends: &mut Sends) -> Option<Event> {
        if self.state == State::Over {
            return None;
        }
        if now >= self.until {
            // A transaction that asked to commit may have committed, so its outcome is unknown and
            // it must not be rolled back. Any other is aborted.
            let committing = self.state == State::Committing;
            let error = if committing {
                self.unknown("its deadline passed before the commit was answered")
            } else {
                Error::new(Code::Deadline, "the transaction's deadline has passed")
            };
            if committing {
                self.state = State::Over
            } else {
                self.rollback(sends)
            }
            return Some(Event::Ended(Err(error)));
        }
        if now >= self.next_signal {
            self.next_signal = now.saturating_add(ASK_NS);
            let timestamp = self.timestamp;
            match (self.state, self.holder) {
                (State::Committing, Some(holder)) => {
                    sends.push((holder, Message::Ask { timestamp }))
                }
                (_, Some(holder)) => sends.push((holder, Message::Heartbeat { timestamp })),
                (_, None) => {}
            }
        }
        None
    }

    /// Whether the transaction has sent a write.
    pub fn has_written(&self) -> bool {
        self.holder.is_some()
    }

    /// When the transaction ends at the latest, by the caller's clock.
    pub fn deadline(&self) -> u64 {
        self.until
    }

    /// The partitions that have not answered all operations sent to them.
    pub fn waits_for(&self) -> BTreeSet<PartitionId> {
        let missing = self.batches.values().flat_map(|batch| match batch {
            Batch::Whole { at, .. } => vec![*at],
            Batch::Spread(batch) => batch.missing.keys().copied().collect(),
        });
        missing.collect()
    }

    fn unknown(&self, why: &str) -> Error {
        let text = format!("transaction {}: {why}", self.timestamp);
        Error::new(Code::OutcomeUnknown, text)
    }
}

impl Spread {
    /// Handles the answer of one partition. Returns the answers of the batch once all partitions
    /// have answered.
    fn answered(
        &mut self,
        from: PartitionId,
        result: Result<Vec<PartialAnswer>>,
    ) -> Option<Result<Vec<Answer>>> {
        let which = self.missing.remove(&from)?;
        let parts = match result.and_then(|parts| expect(which.len(), &parts).map(|()| parts)) {
            Ok(parts) => parts,
            Err(error) => return Some(Err(error)),
        };
        for (at, part) in which.into_iter().zip(parts) {
            self.parts[at].push(part);
        }
        if !self.missing.is_empty() {
            return None;
        }
        let each = self.operations.iter().zip(self.parts.drain(..));
        Some(
            each.map(|(operation, parts)| answer(operation, parts))
                .collect(),
        )
    }
}

fn expect(count: usize, parts: &[PartialAnswer]) -> Result<()> {
    if parts.len() == count {
        return Ok(());
    }
    let text = format!("{} answers to {count} operations", parts.len());
    Err(Error::new(Code::Damaged, text))
}

fn answer(operation: &Operation, mut parts: Vec<PartialAnswer>) -> Result<Answer> {
    match (operation, parts.len()) {
        (Operation::Scan(scan), 2..) => merge(scan, parts).map(Answer::Page),
        (_, 1) => Ok(single(parts.remove(0))),
        (_, count) => {
            let text = format!("{count} answers to one operation");
            Err(Error::new(Code::Damaged, text))
        }
    }
}
