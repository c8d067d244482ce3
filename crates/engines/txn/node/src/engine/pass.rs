//! One pass of a worker thread: it borrows the thread's partitions, clients and peers, and carries
//! messages between them.

use std::time::Duration;

use dyno_net::{Outbound, PortId};
use dyno_txn_api::{Result, Timestamp};
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::batch::Incoming;
use super::clients::Clients;
use super::peers::Peers;
use super::shard::ShardState;
use super::shared::Shared;
use crate::error::unavailable;
use crate::persist::{LostStore, reconnect};
use crate::threads::{Command, Envelope, PeerThread};

pub(crate) struct Pass<'a> {
    pub shared: &'a Shared,
    /// All worker threads of the process, this one included.
    pub peer_threads: &'a [PeerThread],
    pub shard: &'a mut ShardState,
    pub clients: &'a mut Clients,
    pub peers: &'a mut Peers,
}

/// The connection whose frame is being handled: answers to it go straight into its outbox.
pub(crate) struct Direct<'a> {
    pub port: PortId,
    pub out: &'a mut Outbound,
}

impl Pass<'_> {
    /// The same pass, lent to a handler.
    pub fn reborrow(&mut self) -> Pass<'_> {
        Pass {
            shared: self.shared,
            peer_threads: self.peer_threads,
            shard: self.shard,
            clients: self.clients,
            peers: self.peers,
        }
    }

    /// The last step of recovery. `floor` is above every timestamp that was issued before the
    /// restart.
    pub fn finish_recovery(&mut self, floor: Timestamp) -> Result<()> {
        for slot in 0..self.shard.hosted.len() {
            let now = self.shard.now;
            let partition = &mut self.shard.hosted[slot].partition;
            partition.finish_recovery(now, floor, &mut self.shard.effects)?;
            self.dispatch(self.shard.partition_at(slot), None);
        }
        self.shard.take_failure()
    }

    /// Forgets a connection that has ended or goes to another thread.
    pub fn disconnect(&mut self, port: PortId) -> Result<()> {
        self.clients.forget(port);
        self.peers.members.remove(&port);
        self.link_ended(port)
    }

    pub fn link_ended(&mut self, port: PortId) -> Result<()> {
        match &mut self.peers.cluster {
            Some(cluster) => cluster.disconnected(self.shard.now, port),
            None => Ok(()),
        }
    }

    /// Whether clients are read from. They are not while their requests could only pile up in
    /// memory: unread requests fill the sockets, and so make the clients wait.
    pub fn takes_requests(&self) -> bool {
        self.clients.awaiting_timestamp.is_empty() && !self.shard.is_behind()
    }

    /// How long nothing is due. A timestamp may become available without any event on this thread,
    /// so while one is missing the thread looks again soon.
    pub fn until_timer(&self) -> Duration {
        let waits_for_timestamp =
            !self.clients.awaiting_timestamp.is_empty() || self.peers.waits_for_timestamps();
        if waits_for_timestamp {
            Duration::from_millis(1)
        } else {
            Duration::from_nanos(self.shard.until_timer_ns())
        }
    }

    /// Delivers a message to a partition of this thread.
    pub fn deliver(&mut self, envelope: Envelope) {
        // A partition that has not finished recovery may not answer anybody but oracles. Those must
        // be answered, because most partitions have to confirm a bound before an oracle can issue
        // the timestamp that recovery waits for. Other messages are dropped; their senders repeat
        // them.
        let is_bound = matches!(envelope.message, Message::KeepBound { .. });
        if self.peers.is_recovering() && !is_bound {
            return;
        }
        let to = envelope.to;
        self.shard.handle(envelope);
        self.dispatch(to, None);
    }

    /// Delivers what partitions of this thread have sent each other, until they have nothing more
    /// to say. It is a queue and not a recursion, so a long conversation between two of them needs
    /// no stack.
    pub fn deliver_local(&mut self) {
        while let Some(envelope) = self.shard.local.pop_front() {
            self.deliver(envelope);
        }
    }

    /// Handles the one-shot transactions of the batch.
    pub fn handle_batch(&mut self) {
        // Taken out while it runs, because `dispatch` borrows all of `self`. It does not add to it.
        let mut batch = std::mem::take(&mut self.clients.batch);
        batch.prefetch(self.shard);
        let (list, bytes) = batch.drain();
        for incoming in list {
            let to = incoming.to();
            match incoming {
                Incoming::Decoded(envelope) => self.shard.handle(envelope),
                Incoming::Encoded { from, to, range } => {
                    self.shard.handle_bytes(from, to, &bytes[range]);
                }
            }
            self.dispatch(to, None);
        }
        batch.clear();
        self.clients.batch = batch;
    }

    /// Carries out what a partition wants done: its records go to its log, its messages on their
    /// way.
    ///
    /// Records first, because the partition has numbered them already and counts on that order. The
    /// messages do not wait for them: a message that must not be seen before a record is durable is
    /// still inside the partition, which releases it in `durable`.
    pub fn dispatch(&mut self, of: PartitionId, mut direct: Option<Direct<'_>>) {
        self.shard.append_records(of);
        if self.shard.effects.sends.is_empty() {
            return;
        }
        // Put back at the end, so that its memory is used again.
        let mut sends = std::mem::take(&mut self.shard.effects.sends);
        for (to, message) in sends.drain(..) {
            match (to, &mut direct) {
                (Address::Client(id), Some(Direct { port, out })) if port.number() == id => {
                    self.clients.answers.send_now(*port, of, &message, out);
                }
                (Address::Client(id), _) => {
                    let port = PortId::numbered(id);
                    self.clients.answers.queue(port, of, &message);
                }
                (Address::Partition(to), _) => self.send_to_partition(Envelope {
                    from: Address::Partition(of),
                    to,
                    message,
                }),
                (Address::Oracle(number), _) => self.send_to_oracle(number as usize, of, message),
            }
        }
        self.shard.effects.sends = sends;
    }

    fn send_to_oracle(&mut self, oracle: usize, from: PartitionId, message: Message) {
        match (&self.peers.cluster, message) {
            (Some(cluster), message) => {
                let answers = &mut self.clients.answers;
                cluster.answer_oracle(oracle, from, &message, answers);
            }
            (None, Message::BoundKept { bound, .. }) => self.shared.oracle.bound_kept(bound),
            (None, _) => {}
        }
    }

    fn send_to_partition(&mut self, envelope: Envelope) {
        let layout = self.shard.layout;
        let to = envelope.to;
        if to >= layout.partitions {
            return;
        }
        if !layout.is_here(to) {
            if let Some(cluster) = &mut self.peers.cluster
                && let Err(error) = cluster.send(envelope, &mut self.clients.answers)
            {
                self.shard.fail(error);
            }
            return;
        }
        match layout.thread(to) {
            own if own == self.shard.thread => self.shard.local.push_back(envelope),
            other => {
                // A full queue drops it, which the protocol tolerates like any lost message.
                self.peer_threads[other].send(Command::Deliver(envelope));
            }
        }
    }

    /// Asks partition 0 to make a further bound durable, if the oracle of this process will need it
    /// soon.
    pub fn ask_for_bound(&mut self) {
        if self.peers.cluster.is_some() {
            return;
        }
        let (now, wall) = (self.shard.now, self.shard.wall());
        if let Some(bound) = self.shared.oracle.bound_to_request(now, wall) {
            self.send_to_partition(Envelope {
                from: Address::Oracle(0),
                to: 0,
                message: Message::KeepBound { epoch: 1, bound },
            });
        }
    }

    /// Calls partitions whose timers are due.
    pub fn tick(&mut self) -> bool {
        let mut busy = false;
        if self.peers.is_recovering() {
            return false;
        }
        for slot in 0..self.shard.hosted.len() {
            let now = self.shard.now;
            let partition = &mut self.shard.hosted[slot].partition;
            if partition.wake_at().is_some_and(|at| at <= now) {
                partition.tick(now, &mut self.shard.effects);
                self.dispatch(self.shard.partition_at(slot), None);
                busy = true;
            }
        }
        busy
    }

    /// Starts writes of all logs, and tells partitions what has become durable.
    pub fn step_logs(&mut self) -> Result<bool> {
        self.step_stores()?;
        let mut busy = false;
        let front_end = self.clients.front_end.as_ref();
        let of_front_end = front_end.map_or(0, |front_end| front_end.pipeline.outstanding());
        for slot in 0..self.shard.hosted.len() {
            if self.shard.step_journal(slot, of_front_end)? {
                self.dispatch(self.shard.partition_at(slot), None);
                busy = true;
            }
        }
        // The age of this moment tells a worker that spins for its log when to sleep instead.
        if busy
            || !self
                .shard
                .hosted
                .iter()
                .any(|hosted| hosted.journal.is_busy())
        {
            self.shard.log_moved_at = self.shard.now;
        }
        Ok(busy)
    }

    fn step_stores(&mut self) -> Result<()> {
        let Some(stores) = &mut self.shard.stores else {
            return Ok(());
        };
        let logs = self.shard.hosted.iter_mut();
        let logs = logs.filter_map(|hosted| hosted.journal.log_mut());
        for LostStore { store, why } in stores.step(self.shard.now, logs)? {
            let lifecycle = &self.shared.lifecycle;
            lifecycle.note(format!("writes are refused: {why}"));
            // The engine stays up: reads go on, and what waits for the log is answered when the
            // store is back and has been given all that it missed.
            let thread = &self.peer_threads[self.shard.thread];
            reconnect(store, &self.shard.options, lifecycle, thread)?;
        }
        Ok(())
    }

    pub fn step_peers(&mut self) -> bool {
        match &mut self.peers.cluster {
            Some(cluster) => cluster.step(self.shard.now, &mut self.clients.answers),
            None => false,
        }
    }

    /// Fails if a store is away, so that an engine which stops does not wait for it for ever.
    pub fn check_stores(&self) -> Result<()> {
        match &self.shared.remote {
            Some(remote) if !remote.is_complete() => Err(unavailable(
                "stopped while a process that keeps the log was away: what was not answered may be \
                 lost",
            )),
            _ => Ok(()),
        }
    }
}
