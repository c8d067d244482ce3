//! What one worker thread has to do with the other processes of the database: messages for their
//! partitions, timestamps from oracles, and the map of which process hosts
//! which partitions.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use dyno_net::PortId;
use dyno_txn_api::{Code, Error, Result, Timestamp};
use dyno_txn_core::message::{Address, Message, PartitionId};

use super::answers::Answers;
use crate::error::bad_argument;
use crate::hello::ORACLE;
use crate::member::{ClusterMap, Links, TimestampRequests, Waiter};
use crate::threads::{Envelope, PeerId};

pub(crate) struct Peers {
    /// Connections that other processes have opened to this thread.
    pub members: HashSet<PortId>,
    /// `None` if the database is in one process.
    pub cluster: Option<Cluster>,
}

impl Peers {
    /// Whether the partitions have read their logs but may not answer yet, because no oracle has
    /// issued the timestamp that this thread begins above.
    pub fn is_recovering(&self) -> bool {
        self.cluster
            .as_ref()
            .is_some_and(|cluster| cluster.recovering)
    }

    pub fn waits_for_timestamps(&self) -> bool {
        let cluster = self.cluster.as_ref();
        cluster.is_some_and(|cluster| cluster.timestamps.is_waiting())
    }

    /// The peer at the other end of a connection, if this thread opened it.
    pub fn peer(&self, port: PortId) -> Option<PeerId> {
        self.cluster.as_ref()?.links.peer(port)
    }
}

/// The other processes, as one thread knows them.
pub(crate) struct Cluster {
    links: Links,
    timestamps: TimestampRequests,
    recovering: bool,
}

/// Whether a client's message needs a timestamp of an oracle.
pub(crate) fn needs_oracle(to: PartitionId, message: &Message) -> bool {
    match message {
        Message::OneShot {
            timestamp: None, ..
        } => true,
        Message::TakeTimestamps { .. } => to == ORACLE,
        _ => false,
    }
}

impl Cluster {
    pub fn new(links: Links) -> Self {
        Self {
            timestamps: TimestampRequests::new(links.member.oracles.len()),
            links,
            recovering: true,
        }
    }

    /// Connects to all oracles, and asks for the timestamp that recovery ends with.
    pub fn start(&mut self, now: u64) -> Result<()> {
        for oracle in 0..self.links.member.oracles.len() {
            self.links.connect(PeerId::Oracle(oracle))?;
        }
        self.timestamps.add(now, Waiter::Recovery);
        Ok(())
    }

    pub fn learn(&self, map: ClusterMap) {
        self.links.member.learn(map);
    }

    pub fn end_recovery(&mut self) {
        self.recovering = false;
        self.links.member.begun.store(true, Ordering::Release);
    }

    /// Has a client's message wait for its timestamp.
    pub fn want_timestamp(&mut self, now: u64, envelope: Envelope, answers: &mut Answers) {
        if let Message::TakeTimestamps { ticket, count } = envelope.message
            && count != 1
        {
            let error = bad_argument("timestamps are issued to clients one at a time");
            let refusal = Message::Timestamps {
                ticket,
                result: Err(error),
            };
            return answer(envelope.from, ORACLE, &refusal, answers);
        }
        let rejected = self.timestamps.add(now, Waiter::Message(envelope));
        if let Some(Waiter::Message(envelope)) = rejected {
            let text = "too many requests wait for timestamps of the oracle";
            refuse(envelope, Error::new(Code::Overloaded, text), answers);
        }
    }

    /// Sends what the oracle is to be asked now, and refuses messages that have waited too long.
    /// Returns whether there was something to do.
    pub fn step(&mut self, now: u64, answers: &mut Answers) -> bool {
        if !self.timestamps.is_waiting() {
            return false;
        }
        let outgoing = self.timestamps.outgoing(now);
        let busy = outgoing.is_some();
        if let Some((oracle, request)) = outgoing {
            match self.links.port(PeerId::Oracle(oracle)) {
                Some(port) => answers.queue(port, ORACLE, &request),
                None => self.timestamps.oracle_failed(now),
            }
        }
        for (envelope, error) in self.timestamps.expire(now) {
            refuse(envelope, error, answers);
        }
        busy
    }

    /// Those whose timestamp an oracle has sent.
    pub fn timestamps_arrived(
        &mut self,
        now: u64,
        oracle: usize,
        ticket: u64,
        result: Result<Timestamp>,
    ) -> Vec<(Waiter, Timestamp)> {
        self.timestamps.on_answer(now, oracle, ticket, result)
    }

    /// Goes on with a connection that was made for this thread: what waited for it is sent first.
    pub fn connected(&mut self, peer: PeerId, port: PortId, answers: &mut Answers) {
        self.links.opened(peer, port);
        for waiting in self.links.take_buffered(peer) {
            answers.queue_encoded(port, waiting.to, &waiting.body);
        }
    }

    /// Forgets a connection that has ended. One to an oracle is made again at once, because all
    /// clients depend on it; one to a worker when there is something to send.
    pub fn disconnected(&mut self, now: u64, port: PortId) -> Result<()> {
        if let Some(peer @ PeerId::Oracle(oracle)) = self.links.closed(port) {
            self.timestamps.oracle_disconnected(now, oracle);
            self.links.connect(peer)?;
        }
        Ok(())
    }

    /// Sends a message to a partition of another process, or keeps it until there is a connection.
    /// It is dropped while no oracle has said where the partition is: its transaction then waits
    /// until its deadline, as for any message that the network loses.
    pub fn send(&mut self, envelope: Envelope, answers: &mut Answers) -> Result<()> {
        let Envelope { from, to, message } = envelope;
        let Some((process, thread)) = self.links.member.map().home(to) else {
            return Ok(());
        };
        let peer = PeerId::Worker { process, thread };
        match self.links.port(peer) {
            Some(port) => {
                answers.queue_for_process(port, from, to, &message);
                Ok(())
            }
            None => {
                self.links.buffer(peer, from, to, &message);
                self.links.connect(peer)
            }
        }
    }

    /// Sends a partition's answer to an oracle. It is dropped without a connection: the oracle asks
    /// again.
    pub fn answer_oracle(
        &self,
        oracle: usize,
        from: PartitionId,
        message: &Message,
        answers: &mut Answers,
    ) {
        if let Some(port) = self.links.port(PeerId::Oracle(oracle)) {
            let from = Address::Partition(from);
            answers.queue_for_process(port, from, ORACLE, message);
        }
    }
}

fn refuse(envelope: Envelope, error: Error, answers: &mut Answers) {
    let Envelope { from, to, message } = envelope;
    match message {
        Message::OneShot { ticket, .. } => {
            let result = Err(error);
            answer(from, to, &Message::Done { ticket, result }, answers);
        }
        Message::TakeTimestamps { ticket, .. } => {
            let result = Err(error);
            answer(
                from,
                ORACLE,
                &Message::Timestamps { ticket, result },
                answers,
            );
        }
        _ => {}
    }
}

pub(crate) fn answer(to: Address, from: PartitionId, message: &Message, answers: &mut Answers) {
    if let Address::Client(number) = to {
        answers.queue(PortId::numbered(number), from, message);
    }
}
