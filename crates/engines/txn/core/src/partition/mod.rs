//! One partition: a state machine that is handed messages and time, and says what to send and to log.
//!
//! | file | what |
//! |---|---|
//! | `access` | one read or write of one row under the rules of the order; `scan` beside it |
//! | `batch` | operations of an interactive transaction |
//! | `direct` | most transactions in one request: from a message's bytes to an answer's |
//! | `shot`, `inline` | all others, procedures, fetching from other partitions |
//! | `waiting` | work that waits for somebody's intent, and pushing |
//! | `holder` | as record holder: deciding, commit, abort |
//! | `participant` | as one that voted: prepared, finalized |
//! | `tables` | making tables; bounds kept for the oracle |
//! | `prefetch` | asking for the rows of several messages at once |
//! | `recovery` | from checkpoint and log back to a partition, and checkpoints |

mod access;
mod batch;
mod direct;
mod holder;
mod inline;
mod participant;
mod prefetch;
mod recovery;
mod scan;
mod shot;
mod tables;
mod waiting;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use dyno_txn_api::{Code, Error, Procedures, Result, Stamp, TableId};

use crate::effects::{Answer, Effects, Held, Position};
use crate::message::{Address, Head, Message, PartitionId};
use crate::outcomes::Outcomes;
use crate::planted::Planted;
use crate::reads::ReadCache;
use crate::schema::Schema;
use crate::store::{Slot, Store};

use batch::Batch;
use holder::Holding;
use participant::Participant;
use shot::{Fetch, Shot};
use tables::Making;
use waiting::Waiting;

pub use direct::is_direct;
pub use recovery::Checkpoint;

/// Messages after which old versions are looked for in any case, and how many rows then. A transaction that leaves many
/// behind pays for twice as many as soon as they are `FORGET_AT`: what is forgotten keeps up with what is written,
/// whatever a message writes, and memory stays level.
const FORGET_EVERY: u64 = 64;
const FORGET_ROWS: usize = 256;
const FORGET_AT: u64 = 128;

/// How a partition behaves. Times are nanoseconds of the driver's clock.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its number.
    pub id: PartitionId,
    /// How many there are.
    pub partitions: u32,
    /// Mixed into hashes, so that nobody can choose keys that collide.
    pub seed: u64,
    /// Whether records are written. Without, every answer is given at once and nothing survives.
    pub log: bool,
    /// Bytes of rows, versions and index from which on writes are refused.
    pub memory_bytes: u64,
    /// How far behind the newest stamp a transaction may read, in nanoseconds of stamps.
    pub retention_ns: u64,
    /// How long work waits for an older transaction before it pushes it.
    pub wait_ns: u64,
    /// How long an interactive transaction lives without a heartbeat or an operation.
    pub heartbeat_ns: u64,
    /// After how long an unanswered message between partitions is sent again.
    pub resend_ns: u64,
    /// Work that may wait at once; more is refused.
    pub waiting_max: usize,
    /// Bugs put in on purpose.
    pub planted: Planted,
}

impl Config {
    /// Partition `id` of `partitions`, with times for a network of one machine.
    pub fn new(id: PartitionId, partitions: u32) -> Self {
        Self {
            id,
            partitions,
            seed: 0x5eed,
            log: true,
            memory_bytes: 1 << 30,
            retention_ns: 5_000_000_000,
            wait_ns: 10_000_000,
            heartbeat_ns: 2_000_000_000,
            resend_ns: 200_000_000,
            waiting_max: 64 << 10,
            planted: Planted::none(),
        }
    }
}

/// Where a partition takes stamps for one-shots that come without one.
pub trait Stamps {
    /// A stamp above all that were ever given; none where no oracle is in this process.
    fn take(&mut self) -> Option<Stamp>;

    /// Whether an oracle may have given this stamp. One from the future would make the partition refuse
    /// all others, so what strangers send is asked about.
    fn plausible(&mut self, stamp: Stamp) -> bool;
}

/// What a partition counted since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Counters {
    pub committed_inline: u64,
    pub committed_across: u64,
    pub aborted: u64,
    pub conflicts: u64,
    pub waits: u64,
    pub pushes: u64,
    pub reruns: u64,
    pub scanned: u64,
}

/// The state machine of one partition. See the crate's documentation for how to drive it.
pub struct Partition {
    config: Config,
    schema: Schema,
    procedures: Procedures,
    stamps: Box<dyn Stamps + Send>,
    store: Store,
    reads: ReadCache,
    participants: HashMap<Stamp, Participant>,
    holdings: HashMap<Stamp, Holding>,
    outcomes: Outcomes,
    waiting: HashMap<u64, Waiting>,
    next_work: u64,
    /// Work whose intent is gone, oldest transaction first.
    ready: BTreeSet<(Stamp, u64)>,
    /// Batches of transactions one of whose batches waits: they go on in their order.
    lanes: HashMap<Stamp, VecDeque<Batch>>,
    /// Transactions whose waiting batch is through.
    lanes_free: VecDeque<Stamp>,
    /// Transactions one of whose batches waits.
    waiting_batches: HashSet<Stamp>,
    fetching: HashMap<Stamp, Fetch>,
    /// One-shots under way whose stamps came from clients.
    active: HashSet<Stamp>,
    making: HashMap<TableId, Making>,
    bound: (u64, Stamp),
    timers: BTreeSet<(u64, Timer)>,
    /// Messages to itself.
    own: VecDeque<Message>,
    held: Held,
    out: Effects,
    now: u64,
    /// The newest stamp seen; the horizon below which versions are forgotten; the stamp at or below
    /// which nobody may write, since what was read before a restart is not known.
    newest: Stamp,
    horizon: Stamp,
    floor: Stamp,
    /// Rows that the write under way has made.
    created: Vec<Slot>,
    /// For the rows that the next one-shot writes.
    slots: Vec<Slot>,
    /// Where the value after an update is made.
    scratch: Vec<u8>,
    handled: u64,
    /// How much the store had left behind when old versions were looked for last.
    forgotten_at: u64,
    counters: Counters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Work(u64),
    Fetch(Stamp),
    Holding(Stamp),
    Participant(Stamp),
    Making(TableId),
}

impl Partition {
    /// An empty partition. To go on from a log: [`Partition::restore`] for each record, then
    /// [`Partition::finish_recovery`].
    pub fn new(config: Config, procedures: Procedures, stamps: Box<dyn Stamps + Send>) -> Self {
        Self {
            store: Store::new(config.seed),
            held: Held::new(config.seed),
            config,
            schema: Schema::default(),
            procedures,
            stamps,
            reads: ReadCache::new(),
            participants: HashMap::new(),
            holdings: HashMap::new(),
            outcomes: Outcomes::default(),
            waiting: HashMap::new(),
            next_work: 0,
            ready: BTreeSet::new(),
            lanes: HashMap::new(),
            lanes_free: VecDeque::new(),
            waiting_batches: HashSet::new(),
            fetching: HashMap::new(),
            active: HashSet::new(),
            making: HashMap::new(),
            bound: (0, 0),
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

    /// Takes a message in. `now` never goes back.
    pub fn handle(&mut self, now: u64, from: Address, message: Message, effects: &mut Effects) {
        self.enter(now, effects);
        self.dispatch(from, message);
        self.leave(effects);
    }

    /// The log is durable up to this record: answers that waited for it go out.
    pub fn durable(&mut self, now: u64, position: Position, effects: &mut Effects) {
        self.enter(now, effects);
        self.held.release(position);
        while let Some(answer) = self.held.next() {
            match answer {
                Answer::Message(to, message) => self.send(to, message),
                Answer::Bytes(client, bytes) => {
                    self.out.answers.open().extend_from_slice(&bytes);
                    self.out.answers.end(client, self.config.id);
                    self.held.give_back(bytes);
                }
            }
        }
        self.leave(effects);
    }

    /// Does what is due. Call it when [`Partition::wake_at`] has passed.
    pub fn tick(&mut self, now: u64, effects: &mut Effects) {
        self.enter(now, effects);
        while let Some(&(at, timer)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            match timer {
                Timer::Work(id) => self.work_is_late(id),
                Timer::Fetch(stamp) => self.fetch_is_late(stamp),
                Timer::Holding(stamp) => self.holding_is_late(stamp),
                Timer::Participant(stamp) => self.participant_is_late(stamp),
                Timer::Making(id) => self.making_is_late(id),
            }
        }
        self.forget(FORGET_ROWS * 8);
        self.leave(effects);
    }

    /// When [`Partition::tick`] has something to do.
    pub fn wake_at(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The tables.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes counted against [`Config::memory_bytes`].
    pub fn memory_bytes(&self) -> u64 {
        self.store.bytes()
    }

    /// The newest stamp that this partition has seen or stored: after recovery, an oracle must begin
    /// above the largest of all partitions and of the bounds they kept.
    pub fn newest_stamp(&self) -> Stamp {
        self.newest.max(self.bound.1)
    }

    /// The number of the last record that was handed out.
    pub fn appended(&self) -> Position {
        self.held.appended
    }

    fn enter(&mut self, now: u64, effects: &mut Effects) {
        self.now = self.now.max(now);
        std::mem::swap(&mut self.out, effects);
    }

    fn leave(&mut self, effects: &mut Effects) {
        loop {
            if let Some(message) = self.own.pop_front() {
                self.dispatch(Address::Partition(self.config.id), message);
            } else if let Some(stamp) = self.lanes_free.pop_front() {
                self.next_in_lane(stamp);
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
            // A client that speaks for a partition is confused or hostile: it is not heard.
            if !matches!(from, Address::Client(_)) {
                self.dispatch_between(from, message);
            }
            return;
        }
        match message {
            Message::OneShot {
                ticket,
                stamp,
                priority,
                deadline_ns,
                request,
            } => {
                let until = self.now.saturating_add(deadline_ns);
                let shot = Shot::new(from, ticket, stamp, priority, until, request);
                self.start_shot(shot);
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
            Message::Abort { head } => self.abort_asked(head),
            Message::Heartbeat { stamp } => self.heartbeat(stamp),
            Message::Ask { stamp } => self.asked(from, stamp),
            Message::CreateTable { ticket, def } => self.create_table(from, ticket, def),
            Message::ListTables { ticket } => {
                let tables = self.schema.list();
                self.send(from, Message::TableList { ticket, tables });
            }
            // The rest is for clients and oracles, or was dealt with above.
            _ => {}
        }
    }

    fn dispatch_between(&mut self, from: Address, message: Message) {
        match message {
            Message::Executed {
                stamp,
                batch,
                result,
            } => self.fetched(from, stamp, batch, result),
            Message::Prepare {
                head,
                deadline_ns,
                writes,
            } => {
                self.prepare(from, head, deadline_ns, writes);
            }
            Message::Confirm { head, writes } => self.confirm(from, head, writes),
            Message::Vote { stamp, result } => self.voted(from, stamp, result),
            Message::Push {
                stamp,
                by,
                priority,
                force,
            } => {
                self.pushed_here(from, stamp, by, priority, force);
            }
            Message::Pushed { stamp, by, fate } => self.pushed(stamp, by, fate),
            Message::Finalize { stamp, commit } => self.finalize(from, stamp, commit),
            Message::Finalized { stamp } => self.finalized(from, stamp),
            Message::AddTable { table } => self.add_table(from, table),
            Message::TableAdded { id } => self.table_added(from, id),
            Message::KeepBound { epoch, bound } => self.keep_bound(from, epoch, bound),
            _ => {}
        }
    }

    fn send(&mut self, to: Address, message: Message) {
        match to == Address::Partition(self.config.id) {
            true => self.own.push_back(message),
            false => self.out.sends.push((to, message)),
        }
    }

    /// Sends once the log is durable up to a record.
    fn send_after(&mut self, position: Position, to: Address, message: Message) {
        match position > self.held.durable {
            true => self.held.hold(position, to, message),
            false => self.send(to, message),
        }
    }

    /// Appends a record, and returns its number: 0, which is always durable, when nothing is logged.
    fn append(&mut self, write: impl FnOnce(&Store, &mut Vec<u8>)) -> Position {
        if !self.config.log {
            return 0;
        }
        let store = &self.store;
        self.out.records.push(|bytes| write(store, bytes));
        self.held.appended += 1;
        self.held.appended
    }

    fn at(&mut self, time: u64, timer: Timer) {
        self.timers.insert((time, timer));
    }

    /// A stamp from outside is looked at before anything is done with it.
    fn check_stamp(&mut self, from: Address, stamp: Stamp) -> Result<()> {
        if matches!(from, Address::Client(_)) && !self.stamps.plausible(stamp) {
            let text = format!("stamp {stamp}: no oracle has given it yet");
            return Err(Error::new(Code::BadArgument, text));
        }
        if stamp == 0 {
            return Err(Error::new(Code::BadArgument, "stamp 0: stamps begin at 1"));
        }
        self.newest = self.newest.max(stamp);
        self.check_horizon(stamp)
    }

    /// Whether all versions that a transaction may see are still there, and all reads known that it may not write
    /// below. Work that waited asks again, because the horizon may have passed it meanwhile.
    fn check_horizon(&self, stamp: Stamp) -> Result<()> {
        if stamp < self.horizon {
            let text = "the snapshot is older than what is kept: begin again";
            return Err(Error::new(Code::TooOld, text));
        }
        Ok(())
    }

    /// The same for a transaction's head.
    fn check_head(&mut self, from: Address, head: &Head) -> Result<()> {
        if head.holder >= self.config.partitions {
            let text = format!("record holder {}: there is no such partition", head.holder);
            return Err(Error::new(Code::BadArgument, text));
        }
        self.check_stamp(from, head.stamp)
    }

    /// Moves the horizon and forgets what nobody can read any more. Under memory pressure the past is
    /// kept a tenth as long.
    fn forget(&mut self, rows: usize) {
        let retention = match self.store.bytes() > self.config.memory_bytes / 4 * 3 {
            true => self.config.retention_ns / 10,
            false => self.config.retention_ns,
        };
        self.horizon = self.horizon.max(self.newest.saturating_sub(retention));
        self.forgotten_at = self.store.left_behind();
        // Who finds that a deleted row is gone is not told to wait for the log, so it stays until the log has it.
        let durable = self.held.oldest_commit().saturating_sub(1);
        let reads = &mut self.reads;
        self.store
            .forget_before(self.horizon.min(durable), rows, |hash, read| {
                reads.absent(hash, read);
            });
    }

    /// Whether a transaction may write here at all.
    fn check_writer(&self, head: &Head) -> Result<()> {
        if head.stamp <= self.floor {
            let text = "the partition was restarted since the transaction began: begin again";
            return Err(Error::new(Code::TooOld, text));
        }
        Ok(())
    }
}
