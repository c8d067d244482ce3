//! The partitions of one worker thread, with their logs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_io::Meanwhile;
use dyno_net::Port;
use dyno_txn_api::{Error, Result};
use dyno_txn_core::message::{Address, PartitionId};
use dyno_txn_core::{Effects, Partition};

use super::checkpoint::{Checkpointing, StoreSlot};
use super::journal::Journal;
use super::layout::Layout;
use super::shared::Shared;
use crate::options::OpenOptions;
use crate::persist::Stores;
use crate::threads::Envelope;

/// Segments of a log at most.
const SEGMENTS_MOST: u64 = dyno_txn_log::Options::SEGMENTS_MOST as u64;
/// Requests of a front end up to which its thread sleeps in a write of the log. With few of them it
/// has little else to do, and if it spun it would take a core from the clients and from the thread
/// of the kernel that ends the write. docs/inside/txn.md has what was measured.
const FRONT_END_WAITS: usize = 16;

/// A partition with its log.
pub(crate) struct HostedPartition {
    pub partition: Partition,
    pub journal: Journal,
    pub checkpoint: Option<Checkpointing>,
}

impl HostedPartition {
    /// Whether a checkpoint under way is right only if nothing in the partition changes.
    fn needs_stall(&self) -> bool {
        let checkpoint = self.checkpoint.as_ref();
        checkpoint.is_some_and(Checkpointing::needs_stall)
    }
}

pub(crate) struct ShardState {
    /// The index of this worker thread.
    pub thread: usize,
    pub layout: Layout,
    pub options: OpenOptions,
    /// Nanoseconds of [`crate::time::Time`], read once in each pass.
    pub now: u64,
    /// The time of day that belongs to `now`; the partitions' timestamp sources read it.
    wall_ns: Arc<AtomicU64>,
    /// By slot, see [`Layout::slot`].
    pub hosted: Vec<HostedPartition>,
    /// What the partition that was called last wants done. Empty between calls.
    pub effects: Effects,
    /// Messages between partitions of this thread.
    pub local: VecDeque<Envelope>,
    /// The processes that keep the logs, for durability `remote-memory`.
    pub stores: Option<Stores>,
    /// When a record last became durable, or when no record waited for that.
    pub log_moved_at: u64,
    failure: Option<Error>,
}

impl ShardState {
    pub fn new(
        thread: usize,
        layout: Layout,
        options: OpenOptions,
        wall_ns: Arc<AtomicU64>,
        hosted: Vec<HostedPartition>,
        stores: Option<Stores>,
    ) -> Self {
        Self {
            thread,
            layout,
            options,
            now: 0,
            wall_ns,
            hosted,
            effects: Effects::default(),
            local: VecDeque::new(),
            stores,
            log_moved_at: 0,
            failure: None,
        }
    }

    pub fn update_clock(&mut self, shared: &Shared) {
        self.now = shared.time.now();
        self.wall_ns
            .store(shared.time.wall(self.now), Ordering::Relaxed);
    }

    pub fn wall(&self) -> u64 {
        self.wall_ns.load(Ordering::Relaxed)
    }

    /// The partition in a slot of this thread.
    pub fn partition_at(&self, slot: usize) -> PartitionId {
        self.layout.partition_at(self.thread, slot)
    }

    /// Whether the partition exists and belongs to this thread.
    pub fn hosts(&self, partition: PartitionId) -> bool {
        self.layout.is_here(partition) && self.layout.thread(partition) == self.thread
    }

    /// Keeps the first error of a pass. The pass goes on to its end, so that answers which are
    /// already true still go out, and fails there.
    pub fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    pub fn take_failure(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Whether a log has no segment left. Only a checkpoint frees one, so until then no partition
    /// of this thread is given anything that could append a record. Nor is it while that checkpoint
    /// copies rows, even if the log finds room meanwhile.
    pub fn is_stalled(&self) -> bool {
        self.hosted
            .iter()
            .any(|hosted| hosted.journal.is_full() || hosted.needs_stall())
    }

    /// Whether records wait in memory because a log cannot take them yet.
    pub fn is_behind(&self) -> bool {
        self.hosted.iter().any(|hosted| hosted.journal.is_behind())
    }

    pub fn waits_for_log(&self) -> bool {
        self.hosted
            .iter()
            .any(|hosted| hosted.journal.is_busy() || hosted.checkpoint.is_some())
    }

    /// Nanoseconds until the next timer of a partition; `u64::MAX` if no timer is set.
    pub fn until_timer_ns(&self) -> u64 {
        let wakes = self
            .hosted
            .iter()
            .filter_map(|hosted| hosted.partition.wake_at());
        wakes
            .min()
            .map_or(u64::MAX, |at| at.saturating_sub(self.now))
    }

    /// Has the partition handle a message. What follows from it is in `effects`.
    pub fn handle(&mut self, envelope: Envelope) {
        let Envelope { from, to, message } = envelope;
        let partition = &mut self.hosted[self.layout.slot(to)].partition;
        partition.handle(self.now, from, message, &mut self.effects);
    }

    /// The same, for a one-shot transaction that stays encoded.
    pub fn handle_bytes(&mut self, from: Address, to: PartitionId, bytes: &[u8]) {
        let partition = &mut self.hosted[self.layout.slot(to)].partition;
        if let Err(error) = partition.handle_bytes(self.now, from, bytes, &mut self.effects) {
            self.fail(error);
        }
    }

    /// Appends the records in `effects` to the partition's log.
    pub fn append_records(&mut self, of: PartitionId) {
        if self.effects.records.is_empty() {
            return;
        }
        let journal = &mut self.hosted[self.layout.slot(of)].journal;
        if let Err(error) = journal.append(&self.effects.records) {
            self.fail(error);
        }
        self.effects.records.clear();
    }

    /// Starts writes of one log. Returns whether records have become durable, which the partition
    /// has then been told. `of_front_end` are the requests of the thread's front end that wait.
    pub fn step_journal(&mut self, slot: usize, of_front_end: usize) -> Result<bool> {
        // While no more records wait than the front end has requests, they are those of its
        // requests, and no other client needs this thread. Several partitions write side by side.
        let is_alone = self.hosted.len() == 1;
        let records = self.hosted[slot].journal.records_waiting();
        let few_wait = of_front_end <= FRONT_END_WAITS && records <= of_front_end as u64;
        let meanwhile = if is_alone && few_wait {
            Meanwhile::Sleeps
        } else {
            Meanwhile::GoesOn
        };
        // What was held until a record is durable may change rows once it is released.
        let holds_back = self.hosted[slot].needs_stall();
        let HostedPartition {
            partition, journal, ..
        } = &mut self.hosted[slot];
        let Some(position) = journal.step(holds_back, meanwhile)? else {
            return Ok(false);
        };
        partition.durable(self.now, position, &mut self.effects);
        Ok(true)
    }

    /// Does a bounded piece of each checkpoint under way, and begins one where the log has grown.
    pub fn step_checkpoints(&mut self, shared: &Shared) -> Result<bool> {
        let mut busy = false;
        for slot in 0..self.hosted.len() {
            let id = self.partition_at(slot);
            let HostedPartition {
                partition,
                journal,
                checkpoint,
            } = &mut self.hosted[slot];
            let Some(running) = checkpoint else {
                let grown = journal.since_checkpoint_bytes()
                    >= checkpoint_after(&self.options, partition.memory_bytes());
                let wanted = |stores: &Stores| stores.wants_checkpoint(slot);
                let due = grown || journal.is_full() || self.stores.as_ref().is_some_and(wanted);
                if due && shared.may_checkpoint() {
                    let stores = self.stores.as_mut();
                    let stores = stores.map(|stores| StoreSlot { stores, slot });
                    *checkpoint = Checkpointing::begin(partition, journal, stores)?;
                }
                continue;
            };
            busy = true;
            let stores = self.stores.as_mut();
            let stores = stores.map(|stores| StoreSlot { stores, slot });
            if running.step(partition, journal, stores)
                && let Some(ended) = checkpoint.take()
            {
                let result = ended.finish();
                let figures = &shared.figures[self.layout.index_in_process(id)];
                figures.checkpoint_ended(result.is_ok());
                // A failed checkpoint loses nothing: the previous one and the whole log behind it
                // are still there, and the next one is begun when this pass comes round again.
                if let Err(error) = result {
                    let text = format!("a checkpoint of partition {id}: {error}");
                    shared.lifecycle.note(text);
                }
            }
        }
        Ok(busy)
    }

    pub fn publish(&self, shared: &Shared) {
        for (slot, hosted) in self.hosted.iter().enumerate() {
            let at = self.layout.index_in_process(self.partition_at(slot));
            shared.figures[at].publish(&hosted.partition, &hosted.journal);
        }
    }

    /// Goes on with a store that was away and is connected again.
    pub fn attach_store(&mut self, store: usize, port: Port) {
        if let Some(stores) = &mut self.stores {
            stores.attach(store, port);
        }
    }

    /// Closes all logs. A checkpoint that is under way is given up: its rows are in the log too.
    pub fn close(&mut self) -> Result<()> {
        for hosted in self.hosted.drain(..) {
            if let Some(checkpoint) = hosted.checkpoint {
                drop(checkpoint.finish());
            }
            hosted.journal.close()?;
        }
        Ok(())
    }
}

/// Bytes of log after which a partition with so many bytes of rows is checkpointed. A checkpoint
/// costs as much as there are rows, so with a fixed distance each transaction would pay more for it
/// as the database grows; with half of the rows' size it pays the same. A restart then reads at
/// most half as much log as rows. The log must have room for that distance twice, because it goes
/// on growing while the checkpoint is written.
fn checkpoint_after(options: &OpenOptions, rows_bytes: u64) -> u64 {
    let room = options.segment_bytes * SEGMENTS_MOST / 2;
    options.checkpoint_bytes.max((rows_bytes / 2).min(room))
}
