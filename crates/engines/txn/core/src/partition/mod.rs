//! One partition: a state machine that is given messages and time, and returns what to send and to
//! log.
//!
//! | file | what |
//! |---|---|
//! | `access`, `scan` | reads, writes and scans under the rules of timestamp ordering |
//! | `batch` | operations of an interactive transaction |
//! | `config` | settings, counters, and the source of timestamps |
//! | `direct` | fast path of most one-shots: from a message's bytes to an answer's |
//! | `one_shot`, `inline` | all other one-shots: procedures, fetching from other partitions |
//! | `waiting` | work that waits for another transaction's intent, and pushing |
//! | `holder` | the record holder: deciding, commit, abort |
//! | `participant` | a partition that votes: prepared, finalized |
//! | `tables` | creating tables; keeping bounds for the oracle |
//! | `prefetch` | prefetching the rows of several messages |
//! | `recovery` | recovery from checkpoint and log, and writing checkpoints |

mod access;
mod batch;
mod config;
mod direct;
mod holder;
mod inline;
mod one_shot;
mod participant;
mod prefetch;
mod recovery;
mod scan;
mod tables;
mod waiting;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use dyno_txn_api::{Code, Error, Procedures, Result, TableId, Timestamp};

use crate::effects::{Answer, Effects, PendingAnswers, Position};
use crate::message::{Address, Head, Message};
use crate::oracle::Bound;
use crate::outcomes::Outcomes;
use crate::reads::ReadCache;
use crate::schema::Schema;
use crate::store::{Slot, Store};

use batch::Batch;
use holder::TxnRecord;
use one_shot::{Fetch, OneShot};
use participant::Participant;
use tables::NewTable;
use waiting::Waiting;

pub use config::{Config, Counters, Timestamps};
pub use direct::is_direct;
pub use recovery::Checkpoint;

/// Old versions are collected at least every so many messages.
const FORGET_EVERY: u64 = 64;
/// Rows that a collection looks at, in addition to twice the rows left behind since the last one.
/// Looking at twice as many as were added keeps memory level, however much a message writes.
const FORGET_ROWS: usize = 256;
/// Rows left behind after which a collection does not wait for `FORGET_EVERY`.
const FORGET_AT: u64 = 128;

/// The state machine of one partition. See the crate's documentation for how to drive it.
pub struct Partition {
    config: Config,
    schema: Schema,
    procedures: Procedures,
    timestamps: Box<dyn Timestamps + Send>,
    store: Store,
    reads: ReadCache,
    participants: HashMap<Timestamp, Participant>,
    txn_records: HashMap<Timestamp, TxnRecord>,
    outcomes: Outcomes,
    waiting: HashMap<u64, Waiting>,
    next_work: u64,
    /// Waiting work whose intent is gone, oldest transaction first.
    ready: BTreeSet<(Timestamp, u64)>,
    /// Batches that queue up behind a waiting batch of their transaction.
    batch_queues: HashMap<Timestamp, VecDeque<Batch>>,
    /// Transactions whose waiting batch is done, so that the next queued one may run.
    queues_free: VecDeque<Timestamp>,
    /// Transactions one of whose batches waits.
    waiting_batches: HashSet<Timestamp>,
    fetching: HashMap<Timestamp, Fetch>,
    /// Unfinished one-shots whose timestamps were chosen by clients.
    active: HashSet<Timestamp>,
    new_tables: HashMap<TableId, NewTable>,
    /// What this partition keeps for the oracle.
    bound: Bound,
    timers: BTreeSet<(u64, Timer)>,
    /// Messages of this partition to itself.
    own: VecDeque<Message>,
    pending: PendingAnswers,
    out: Effects,
    now: u64,
    newest: Timestamp,
    /// Transactions below this timestamp may not read any more, so versions that only they see are
    /// dropped.
    horizon: Timestamp,
    /// Transactions at or below this timestamp may not write, because reads that forbid it were
    /// lost in a restart.
    floor: Timestamp,
    /// Rows made by the current write, which are removed if it fails.
    created: Vec<Slot>,
    /// A buffer for the rows that a one-shot writes, kept for the next one.
    slots: Vec<Slot>,
    /// A buffer for the value after an update.
    scratch: Vec<u8>,
    handled: u64,
    /// [`Store::left_behind`] at the last collection of old versions.
    forgotten_at: u64,
    counters: Counters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Work(u64),
    Fetch(Timestamp),
    TxnRecord(Timestamp),
    Participant(Timestamp),
    NewTable(TableId),
}

impl Partition {
    /// An empty partition. To recover one, call [`Partition::restore`] for each record and then
    /// [`Partition::finish_recovery`].
    pub fn new(
        config: Config,
        procedures: Procedures,
        timestamps: Box<dyn Timestamps + Send>,
    ) -> Self {
        Self {
            store: Store::new(config.seed),
            pending: PendingAnswers::new(config.seed),
            config,
            schema: Schema::default(),
            procedures,
            timestamps,
            reads: ReadCache::new(),
            participants: HashMap::new(),
            txn_records: HashMap::new(),
            outcomes: Outcomes::default(),
            waiting: HashMap::new(),
            next_work: 0,
            ready: BTreeSet::new(),
            batch_queues: HashMap::new(),
            queues_free: VecDeque::new(),
            waiting_batches: HashSet::new(),
            fetching: HashMap::new(),
            active: HashSet::new(),
            new_tables: HashMap::new(),
            bound: Bound::default(),
            timers: BTreeSet::new(),
            own: VecDeque::new(),
            out: Effects::default(),
            now: 0,
            newest: 0,
            horizon: 0,
            floor: 0,
            created: Vec::new(),
            slots: Vec::new(),
            scratch: Vec::new(),
            handled: 0,
            forgotten_at: 0,
            counters: Counters::default(),
        }
    }

    /// Handles a message. `now` is monotonic.
    pub fn handle(&mut self, now: u64, from: Address, message: Message, effects: &mut Effects) {
        self.enter(now, effects);
        self.dispatch(from, message);
        self.leave(effects);
    }

    /// Notes that the log is durable up to this record, and sends the answers that waited for it.
    pub fn durable(&mut self, now: u64, position: Position, effects: &mut Effects) {
        self.enter(now, effects);
        self.pending.release(position);
        while let Some(answer) = self.pending.next() {
            match answer {
                Answer::Message(to, message) => self.send(to, message),
                Answer::Bytes(client, bytes) => {
                    self.out.answers.open().extend_from_slice(&bytes);
                    self.out.answers.end(client, self.config.id);
                    self.pending.give_back(bytes);
                }
            }
        }
        self.leave(effects);
    }

    /// Runs the timers that are due. To be called when [`Partition::wake_at`] has passed.
    pub fn tick(&mut self, now: u64, effects: &mut Effects) {
        self.enter(now, effects);
        while let Some(&(at, timer)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            match timer {
                Timer::Work(id) => self.work_is_late(id),
                Timer::Fetch(timestamp) => self.fetch_is_late(timestamp),
                Timer::TxnRecord(timestamp) => self.txn_record_is_late(timestamp),
                Timer::Participant(timestamp) => self.participant_is_late(timestamp),
                Timer::NewTable(id) => self.new_table_is_late(id),
            }
        }
        self.forget(FORGET_ROWS * 8);
        self.leave(effects);
    }

    /// When [`Partition::tick`] is due next, if ever.
    pub fn wake_at(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The tables.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The counts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The bytes that count against [`Config::memory_bytes`].
    pub fn memory_bytes(&self) -> u64 {
        self.store.bytes()
    }

    /// The newest timestamp that this partition has seen or kept as a bound. After recovery an
    /// oracle must begin above the largest of all partitions.
    pub fn newest_timestamp(&self) -> Timestamp {
        self.newest.max(self.bound.timestamp)
    }

    /// The number of the last record that was handed out.
    pub fn appended(&self) -> Position {
        self.pending.appended
    }

    fn enter(&mut self, now: u64, effects: &mut Effects) {
        self.now = self.now.max(now);
        std::mem::swap(&mut self.out, effects);
    }

    fn leave(&mut self, effects: &mut Effects) {
        loop {
            if let Some(message) = self.own.pop_front() {
                self.dispatch(Address::Partition(self.config.id), message);
            } else if let Some(timestamp) = self.queues_free.pop_front() {
                self.next_in_queue(timestamp);
            } else if let Some((_, id)) = self.ready.pop_first() {
                self.resume(id);
            } else {
                break;
            }
        }
        self.handled += 1;
        let left = self.store.left_behind() - self.forgotten_at;
        if left >= FORGET_AT || self.handled.is_multiple_of(FORGET_EVERY) {
            self.forget(FORGET_ROWS + 2 * left as usize);
        }
        std::mem::swap(&mut self.out, effects);
    }

    fn dispatch(&mut self, from: Address, message: Message) {
        if message.is_between_partitions() {
            // A client that sends such a message is broken or hostile, and is ignored.
            if !matches!(from, Address::Client(_)) {
                self.dispatch_between(from, message);
            }
            return;
        }
        match message {
            Message::OneShot {
                ticket,
                timestamp,
                priority,
                deadline_ns,
                request,
            } => {
                let until = self.now.saturating_add(deadline_ns);
                let one_shot = OneShot::new(from, ticket, timestamp, priority, until, request);
                self.start_one_shot(one_shot);
            }
            Message::Execute {
                head,
                batch,
                after,
                deadline_ns,
                operations,
            } => {
                let until = self.now.saturating_add(deadline_ns);
                self.execute(Batch::new(from, head, (batch, after), until, operations));
            }
            Message::Commit { head, writes } => self.commit(from, head, writes),
            Message::Abort { head } => self.client_aborts(head),
            Message::Heartbeat { timestamp } => self.heartbeat(timestamp),
            Message::Ask { timestamp } => self.asked(from, timestamp),
            Message::CreateTable { ticket, def } => self.create_table(from, ticket, def),
            Message::ListTables { ticket } => {
                // A crash could give the number of a table that is not durable to another one.
                let tables = self.schema.list();
                let list = Message::TableList { ticket, tables };
                self.send_after(self.pending.appended, from, list);
            }
            // The rest is for clients and oracles, or was handled above.
            _ => {}
        }
    }

    fn dispatch_between(&mut self, from: Address, message: Message) {
        match message {
            Message::Executed {
                timestamp,
                batch,
                result,
            } => self.fetched(from, timestamp, batch, result),
            Message::Prepare {
                head,
                deadline_ns,
                writes,
            } => {
                self.prepare(from, head, deadline_ns, writes);
            }
            Message::Confirm { head, writes } => self.confirm(from, head, writes),
            Message::Vote { timestamp, result } => self.voted(from, timestamp, result),
            Message::Push {
                timestamp,
                by,
                priority,
                force,
            } => {
                self.pushed_here(from, timestamp, by, priority, force);
            }
            Message::Pushed {
                timestamp,
                by,
                fate,
            } => self.pushed(timestamp, by, fate),
            Message::Finalize { timestamp, commit } => self.finalize(from, timestamp, commit),
            Message::Finalized { timestamp } => self.finalized(from, timestamp),
            Message::AddTable { table } => self.add_table(from, table),
            Message::TableAdded { id } => self.table_added(from, id),
            Message::KeepBound { epoch, bound } => self.keep_bound(from, epoch, bound),
            _ => {}
        }
    }

    fn send(&mut self, to: Address, message: Message) {
        if to == Address::Partition(self.config.id) {
            self.own.push_back(message)
        } else {
            self.out.sends.push((to, message))
        }
    }

    /// Sends a message once the log is durable up to a record.
    fn send_after(&mut self, position: Position, to: Address, message: Message) {
        if position > self.pending.durable {
            self.pending.hold(position, to, message)
        } else {
            self.send(to, message)
        }
    }

    /// Appends a record, and returns its number: 0, which is always durable, when nothing is
    /// logged.
    fn append(&mut self, write: impl FnOnce(&Store, &mut Vec<u8>)) -> Position {
        if !self.config.log {
            return 0;
        }
        let store = &self.store;
        self.out.records.push(|bytes| write(store, bytes));
        self.pending.appended += 1;
        self.pending.appended
    }

    fn at(&mut self, time: u64, timer: Timer) {
        self.timers.insert((time, timer));
    }

    /// Checks a timestamp from outside before it is used.
    fn check_timestamp(&mut self, from: Address, timestamp: Timestamp) -> Result<()> {
        if matches!(from, Address::Client(_)) && !self.timestamps.plausible(timestamp) {
            let text = format!("timestamp {timestamp} was not issued by an oracle");
            return Err(Error::new(Code::BadArgument, text));
        }
        if timestamp == 0 {
            return Err(Error::new(
                Code::BadArgument,
                "timestamp 0 is not valid: timestamps begin at 1",
            ));
        }
        self.newest = self.newest.max(timestamp);
        self.check_horizon(timestamp)
    }

    /// Refuses a transaction below the horizon, because versions that it must see, or reads that it
    /// must not write below, may be gone. Work that waited is checked again, because the horizon
    /// may have passed it meanwhile.
    fn check_horizon(&self, timestamp: Timestamp) -> Result<()> {
        if timestamp < self.horizon {
            let text = "the snapshot is older than the versions that are kept: begin again";
            return Err(Error::new(Code::TooOld, text));
        }
        Ok(())
    }

    /// Checks the head of a transaction from outside.
    fn check_head(&mut self, from: Address, head: &Head) -> Result<()> {
        if head.holder >= self.config.partitions {
            let text = format!(
                "record holder {}: the partition does not exist",
                head.holder
            );
            return Err(Error::new(Code::BadArgument, text));
        }
        self.check_timestamp(from, head.timestamp)
    }

    /// Moves the horizon, and drops versions that no transaction can read any more. Under memory
    /// pressure old versions are kept a tenth as long.
    fn forget(&mut self, rows: usize) {
        let retention = if self.store.bytes() > self.config.memory_bytes / 4 * 3 {
            self.config.retention_ns / 10
        } else {
            self.config.retention_ns
        };
        self.horizon = self.horizon.max(self.newest.saturating_sub(retention));
        self.forgotten_at = self.store.left_behind();
        // A transaction that finds no row does not wait for the log, so a deleted row stays until
        // the log has the deletion.
        let durable = self.pending.oldest_commit().saturating_sub(1);
        let reads = &mut self.reads;
        self.store
            .forget_before(self.horizon.min(durable), rows, |hash, read| {
                reads.absent(hash, read);
            });
    }

    /// Refuses writes of transactions that began before the last restart.
    fn check_writer(&self, head: &Head) -> Result<()> {
        if head.timestamp <= self.floor {
            let text = "the partition was restarted since the transaction began: begin again";
            return Err(Error::new(Code::TooOld, text));
        }
        Ok(())
    }
}
