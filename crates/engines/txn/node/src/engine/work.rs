//! What a thread of the engine has: partitions with their logs, and where their messages go.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dyno_net::{Outbound, Port, PortId};
use dyno_txn_api::{Code, Error, Operation, Request, Result, Stamp};
use dyno_txn_core::Effects;
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::answers::Answers;
use super::checkpoint::Writing;
use super::core::{Hosted, keep_bound};
use super::elsewhere::{Elsewhere, takes_stamp};
use super::given::{Given, lacks_stamp};
use super::layout::Layout;
use super::shared::Shared;
use super::together::{Came, Together};
use crate::error::unavailable;
use crate::hello::ORACLE;
use crate::options::OpenOptions;
use crate::persist::{Stores, call_again};
use crate::threads::{Command, Envelope, PeerThread};

/// Segments of a log at most.
const SEGMENTS_MOST: u64 = dyno_txn_log::Options::SEGMENTS_MOST as u64;

/// Partitions and routes of one thread.
pub(crate) struct Work {
    pub index: usize,
    pub layout: Layout,
    pub shared: Arc<Shared>,
    pub hosted: Vec<Hosted>,
    pub peer_threads: Vec<PeerThread>,
    pub now: u64,
    pub wall_ns: Arc<AtomicU64>,
    pub welcomed: HashSet<PortId>,
    /// The one of them that spoke last: most often it speaks next.
    pub last_welcomed: Option<PortId>,
    /// Connections of other processes of the database.
    pub members: HashSet<PortId>,
    /// What this thread has to do with them.
    pub elsewhere: Option<Elsewhere>,
    pub moving: Vec<(PortId, usize)>,
    pub answers: Answers,
    /// Between partitions of this thread.
    pub own: VecDeque<(Address, PartitionId, Message)>,
    /// One-shots that clients have sent in this pass.
    pub together: Together,
    pub given: Given,
    /// What needs a stamp while none may be given.
    pub held: VecDeque<(Address, PartitionId, Message)>,
    pub effects: Effects,
    pub options: OpenOptions,
    /// The processes that keep the logs.
    pub stores: Option<Stores>,
    /// When something became durable, or nothing waited for it.
    pub log_moved_at: u64,
    pub failed: Option<Error>,
}

impl Work {
    pub fn look_at_the_clock(&mut self) {
        self.now = self.shared.time.now();
        self.wall_ns
            .store(self.shared.time.wall(self.now), Ordering::Relaxed);
    }

    /// The last step of recovery, when all partitions have read their logs.
    pub fn finish_recovery(&mut self, floor: Stamp) -> Result<()> {
        for place in 0..self.hosted.len() {
            let partition = &mut self.hosted[place].partition;
            partition.finish_recovery(self.now, floor, &mut self.effects)?;
            self.dispatch(self.number(place), None);
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    pub fn wall(&self) -> u64 {
        self.wall_ns.load(Ordering::Relaxed)
    }

    /// A connection is gone.
    pub fn unwelcome(&mut self, port: PortId) -> Result<()> {
        self.welcomed.remove(&port);
        self.members.remove(&port);
        self.given.forget(port);
        self.last_welcomed = None;
        self.link_ended(port)
    }

    /// Whether a partition of this number is one of this thread.
    pub fn hosts(&self, partition: PartitionId) -> bool {
        self.layout.is_here(partition) && self.layout.thread(partition) == self.index
    }

    /// Whether nothing may happen until a checkpoint has made room in a log.
    pub fn is_still(&self) -> bool {
        self.hosted.iter().any(|hosted| hosted.journal.is_full())
    }

    /// Whether clients are listened to.
    pub fn takes_more(&self) -> bool {
        self.held.is_empty() && !self.hosted.iter().any(|hosted| hosted.journal.is_behind())
    }

    pub fn waits_for_the_log(&self) -> bool {
        self.hosted
            .iter()
            .any(|hosted| hosted.journal.is_busy() || hosted.checkpoint.is_some())
    }

    /// How long nothing is due.
    pub fn until_timer(&self) -> Duration {
        let wakes = self
            .hosted
            .iter()
            .filter_map(|hosted| hosted.partition.wake_at());
        let next = wakes
            .min()
            .map_or(u64::MAX, |at| at.saturating_sub(self.now));
        match self.held.is_empty() && !self.waits_for_stamps() {
            true => Duration::from_nanos(next),
            false => Duration::from_millis(1),
        }
    }

    /// A client's message, with the place for answers to this very client.
    pub fn hear_client(
        &mut self,
        port: PortId,
        to: PartitionId,
        mut message: Message,
        out: &mut Outbound,
    ) {
        let from = Address::Client(port.number());
        if matches!(message, Message::TakeStamps { .. }) {
            self.given.forget(port);
        } else if lacks_stamp(&message) {
            if !self.held.is_empty() {
                return self.held.push_back((from, to, message));
            }
            self.given.fill_in(port, &mut message);
        }
        if let Some(refusal) = self.refuse(&message) {
            return self.answers.now(port, to, &refusal, out);
        }
        if self.elsewhere.is_some() && takes_stamp(to, &message) {
            return self.want_stamp(from, to, message);
        }
        if to == ORACLE {
            return self.give_stamps(port, message, out);
        }
        if needs_stamp(&message) && !self.shared.oracle.is_ready(self.wall()) {
            return self.held.push_back((from, to, message));
        }
        if !matches!(message, Message::OneShot { .. }) {
            // Few come at once, and somebody waits for each: its answer goes out at once.
            self.hand_in(from, to, message);
            return self.dispatch(to, Some((port, out)));
        }
        self.add_together(from, to, Came::Message(message));
    }

    /// While a process that keeps the log is away nothing becomes durable: what would wait for that is refused,
    /// and so are reads when there are no stamps any more.
    fn refuse(&self, message: &Message) -> Option<Message> {
        let remote = self.shared.remote.as_ref()?;
        if remote.is_whole() {
            return None;
        }
        let note = self.shared.lifecycle.last_note().unwrap_or_default();
        let text = format!("a process that keeps the log is away or gets it anew: {note}");
        let error = unavailable(text);
        let stamps = self.elsewhere.is_some() || self.shared.oracle.is_ready(self.wall());
        refusal_of(message, stamps, error)
    }

    fn give_stamps(&mut self, port: PortId, message: Message, out: &mut Outbound) {
        let Message::TakeStamps { ticket, count } = message else {
            return;
        };
        if count == 1 && !self.shared.oracle.is_ready(self.wall()) {
            let from = Address::Client(port.number());
            return self
                .held
                .push_back((from, ORACLE, Message::TakeStamps { ticket, count }));
        }
        let answer = self.stamps(port, ticket, count);
        self.answers.now(port, ORACLE, &answer, out);
    }

    fn stamps(&mut self, port: PortId, ticket: u64, count: u32) -> Message {
        let result = match count {
            1 => self.shared.oracle.clock.take(self.wall()).ok_or_else(|| {
                Error::new(Code::Unavailable, "no stamp can be given now: begin again")
            }),
            _ => Err(Error::new(
                Code::NotSupported,
                "this oracle gives one stamp at a time",
            )),
        };
        if let Ok(stamp) = result {
            self.given.note(port, stamp);
        }
        Message::Stamps { ticket, result }
    }

    /// Takes up what needed a stamp, once there are some.
    pub fn retry_held(&mut self) -> Result<bool> {
        if self.held.is_empty() {
            return Ok(false);
        }
        self.ask_for_bound();
        if !self.shared.oracle.is_ready(self.wall()) {
            return Ok(false);
        }
        while let Some((from, to, mut message)) = self.held.pop_front() {
            match (to, &from, &message) {
                (ORACLE, Address::Client(port), &Message::TakeStamps { ticket, count }) => {
                    let port = PortId::numbered(*port);
                    let answer = self.stamps(port, ticket, count);
                    self.answers.later(port, ORACLE, &answer);
                }
                (_, Address::Client(port), _) if lacks_stamp(&message) => {
                    self.given.fill_in(PortId::numbered(*port), &mut message);
                    self.deliver(from, to, message);
                }
                _ => self.deliver(from, to, message),
            }
        }
        Ok(true)
    }

    /// Asks partition 0 for a further bound, if it is time to.
    pub fn ask_for_bound(&mut self) {
        if self.elsewhere.is_some() {
            return;
        }
        if let Some(bound) = self.shared.oracle.wants(self.now, self.wall()) {
            let (from, message) = keep_bound(bound);
            self.send_to_partition(from, 0, message);
        }
    }

    /// A message for a partition of this thread.
    pub fn deliver(&mut self, from: Address, to: PartitionId, message: Message) {
        // Only oracles are heard meanwhile: they need most partitions to go on.
        if self.is_recovering() && !matches!(message, Message::KeepBound { .. }) {
            return;
        }
        self.hand_in(from, to, message);
        self.dispatch(to, None);
    }

    pub fn hand_in(&mut self, from: Address, to: PartitionId, message: Message) {
        let place = self.layout.place(to);
        let partition = &mut self.hosted[place].partition;
        partition.handle(self.now, from, message, &mut self.effects);
    }

    pub fn deliver_own(&mut self) -> Result<()> {
        while let Some((from, to, message)) = self.own.pop_front() {
            self.deliver(from, to, message);
        }
        Ok(())
    }

    /// What a partition wants done: records to its log first, then messages.
    pub fn dispatch(&mut self, of: PartitionId, mut direct: Option<(PortId, &mut Outbound)>) {
        if !self.effects.records.is_empty() {
            let journal = &mut self.hosted[self.layout.place(of)].journal;
            if let Err(error) = journal.append(&self.effects.records) {
                self.failed.get_or_insert(error);
            }
            self.effects.records.clear();
        }
        if self.effects.sends.is_empty() {
            return;
        }
        let mut sends = std::mem::take(&mut self.effects.sends);
        for (to, message) in sends.drain(..) {
            match (to, &mut direct) {
                (Address::Client(id), Some((port, out))) if port.number() == id => {
                    self.answers.now(*port, of, &message, out);
                }
                (Address::Client(id), _) => {
                    self.answers.later(PortId::numbered(id), of, &message);
                }
                (Address::Partition(to), _) => {
                    self.send_to_partition(Address::Partition(of), to, message);
                }
                (Address::Oracle(number), _) if self.elsewhere.is_some() => {
                    self.answer_oracle(number as usize, of, &message);
                }
                (Address::Oracle(_), _) => {
                    if let Message::BoundKept { bound, .. } = message {
                        self.shared.oracle.kept(bound);
                    }
                }
            }
        }
        self.effects.sends = sends;
    }

    fn send_to_partition(&mut self, from: Address, to: PartitionId, message: Message) {
        if to >= self.layout.partitions {
            return;
        }
        if !self.layout.is_here(to) {
            return self.send_elsewhere(from, to, &message);
        }
        match self.layout.thread(to) {
            own if own == self.index => self.own.push_back((from, to, message)),
            other => {
                self.peer_threads[other].send(Command::Deliver(Envelope { from, to, message }));
            }
        }
    }

    /// Does what is due in time.
    pub fn tick(&mut self) -> Result<bool> {
        let mut busy = false;
        if self.is_recovering() {
            return Ok(false);
        }
        for place in 0..self.hosted.len() {
            let partition = &mut self.hosted[place].partition;
            if partition.wake_at().is_some_and(|at| at <= self.now) {
                partition.tick(self.now, &mut self.effects);
                self.dispatch(self.number(place), None);
                busy = true;
            }
        }
        Ok(busy)
    }

    pub fn number(&self, place: usize) -> PartitionId {
        self.layout.number(self.index, place)
    }

    /// Starts writes, and says to partitions what has become durable.
    pub fn step_logs(&mut self) -> Result<bool> {
        let mut busy = false;
        if let Some(stores) = &mut self.stores {
            let logs = self.hosted.iter_mut();
            let logs = logs.filter_map(|hosted| hosted.journal.log_mut());
            for (store, why) in stores.step(self.now, logs)? {
                self.shared
                    .lifecycle
                    .note(format!("writes are refused: {why}"));
                let thread = &self.peer_threads[self.index];
                call_again(store, &self.options, &self.shared.lifecycle, thread)?;
            }
        }
        for place in 0..self.hosted.len() {
            let Hosted {
                partition, journal, ..
            } = &mut self.hosted[place];
            if let Some(position) = journal.step()? {
                partition.durable(self.now, position, &mut self.effects);
                self.dispatch(self.number(place), None);
                busy = true;
            }
        }
        if busy || !self.hosted.iter().any(|hosted| hosted.journal.is_busy()) {
            self.log_moved_at = self.now;
        }
        Ok(busy)
    }

    /// A bounded piece of each checkpoint under way; new ones where the log has grown.
    pub fn step_checkpoints(&mut self) -> Result<bool> {
        let mut busy = false;
        for place in 0..self.hosted.len() {
            let id = self.number(place);
            let number = self.layout.local(id);
            let Hosted {
                partition,
                journal,
                checkpoint,
            } = &mut self.hosted[place];
            let Some(writing) = checkpoint else {
                let grown = journal.since_checkpoint_bytes()
                    >= checkpoint_after(&self.options, partition.memory_bytes());
                let wanted = |stores: &Stores| stores.wants_checkpoint(place);
                let due = grown || journal.is_full() || self.stores.as_ref().is_some_and(wanted);
                if due && self.shared.may_checkpoint() {
                    let stores = self.stores.as_mut().map(|stores| (stores, place));
                    *checkpoint = Writing::begin(partition, journal, stores)?;
                }
                continue;
            };
            busy = true;
            let stores = self.stores.as_mut().map(|stores| (stores, place));
            if writing.step(partition, journal, stores)
                && let Some(writing) = checkpoint.take()
            {
                let result = writing.finish();
                self.shared.figures[number].checkpoint(result.is_ok());
                // The log goes on without it, as long as it has segments.
                if let Err(error) = result {
                    self.shared
                        .lifecycle
                        .note(format!("a checkpoint of partition {id}: {error}"));
                }
            }
        }
        Ok(busy)
    }

    /// Brings the figures up to date.
    pub fn publish(&self) {
        for (place, hosted) in self.hosted.iter().enumerate() {
            let figures = &self.shared.figures[self.layout.local(self.number(place))];
            figures.publish(&hosted.partition, &hosted.journal);
        }
    }

    /// A store that was away is connected again.
    pub fn attach_store(&mut self, store: usize, port: Port) {
        if let Some(stores) = &mut self.stores {
            stores.attach(store, port);
        }
    }

    /// An error when what waits for stores would wait for long.
    pub fn check_stores(&self) -> Result<()> {
        match &self.shared.remote {
            Some(remote) if !remote.is_whole() => Err(unavailable(
                "stopped while a process that keeps the log was away: what was not answered may be lost",
            )),
            _ => Ok(()),
        }
    }

    /// Ends all logs in peace.
    pub fn close(&mut self) -> Result<()> {
        for hosted in self.hosted.drain(..) {
            if let Some(writing) = hosted.checkpoint {
                // It is given up: the log has all that it was to hold.
                drop(writing.finish());
            }
            hosted.journal.close()?;
        }
        Ok(())
    }
}

fn needs_stamp(message: &Message) -> bool {
    matches!(message, Message::OneShot { stamp: None, .. })
}

/// The answer to what cannot be done while nothing becomes durable. A commit is none of it: it may have been
/// decided before.
fn refusal_of(message: &Message, stamps: bool, error: Error) -> Option<Message> {
    let writes = |operations: &[Operation]| operations.iter().any(Operation::is_write);
    match message {
        Message::OneShot {
            ticket, request, ..
        } => {
            let reads = match request {
                Request::Operations(operations) => !writes(operations),
                Request::Call { .. } => false,
            };
            let (ticket, result) = (*ticket, Err(error));
            (!reads || !stamps).then_some(Message::Done { ticket, result })
        }
        Message::Execute {
            head,
            batch,
            operations,
            ..
        } if writes(operations) => Some(Message::Executed {
            stamp: head.stamp,
            batch: *batch,
            result: Err(error),
        }),
        Message::CreateTable { ticket, .. } => Some(Message::Created {
            ticket: *ticket,
            result: Err(error),
        }),
        Message::TakeStamps { ticket, .. } if !stamps => Some(Message::Stamps {
            ticket: *ticket,
            result: Err(error),
        }),
        _ => None,
    }
}

/// Bytes of log after which a partition with so many bytes of rows is written down whole. A checkpoint costs as much as
/// there are rows, so with a fixed distance each transaction would pay more for it as the database grows; with half of
/// the rows' size it pays the same. A restart then reads at most half as much log as rows, and the log must have room for
/// it, with as much again for what comes while the checkpoint is written.
fn checkpoint_after(options: &OpenOptions, rows_bytes: u64) -> u64 {
    let room = options.segment_bytes * SEGMENTS_MOST / 2;
    options.checkpoint_bytes.max((rows_bytes / 2).min(room))
}
