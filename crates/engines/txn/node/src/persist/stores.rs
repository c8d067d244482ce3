//! A thread's connections to the processes that keep its logs ("stores").

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dyno_net::{FrameRef, Head, Port, SendError};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::{Answer, Ask, Log, Lsn, PersistError, RemoteLog, Reply, Request, append_head};

use super::RemoteLogs;
use super::reconnect::connect;
use crate::error::unavailable;
use crate::hello::{REFUSED, STORE_ASK, STORE_REPLY, decode_refusal};
use crate::options::OpenOptions;

/// How long a store may take to answer while this thread does nothing but wait for it.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// With more bytes than this unsent to a store, nothing more is handed over.
const UNSENT_MAX: usize = 2 << 20;
/// A store that owes an answer for this long is taken for gone.
const SILENCE_NS: u64 = 5_000_000_000;
/// How often a connection on which nothing is under way is probed. A ring in shared memory has no
/// event for the end of its other side, and shows it only to a thread that goes to sleep on it.
const PROBE_NS: u64 = 20_000_000;

/// What a store has of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplicaState {
    /// The store is not connected, or has not been asked to open the log.
    Away,
    /// The store has opened the log, and waits for a checkpoint.
    Opened,
    /// The store is being sent a checkpoint, and the log from its beginning on.
    Joining,
    /// The store has everything, and confirms what follows.
    Complete,
}

/// A log at a store, as this thread knows it.
#[derive(Debug, Clone, Copy)]
struct Replica {
    state: ReplicaState,
    /// Up to where the store was sent the log.
    sent: Lsn,
    /// Up to where the store has confirmed it.
    kept: Lsn,
    /// Requests about a checkpoint that the store has not confirmed.
    unconfirmed: u64,
}

struct StoreLink {
    name: String,
    port: Option<Port>,
    /// When the store last said something, or owed no answer.
    heard_at: u64,
    probed_at: u64,
    /// By the partition's slot.
    replicas: Vec<Replica>,
}

impl StoreLink {
    /// Returns false if the other end is gone.
    fn probe(&mut self, now: u64) -> bool {
        if now < self.probed_at + PROBE_NS {
            return true;
        }
        self.probed_at = now;
        let port = self.port.as_mut();
        port.is_none_or(|port| port.sleep(Duration::ZERO).is_ok())
    }

    fn owes_nothing(&self) -> bool {
        let is_settled =
            |replica: &Replica| replica.sent <= replica.kept && replica.unconfirmed == 0;
        self.port.is_none() || self.replicas.iter().all(is_settled)
    }
}

/// All stores of a thread.
pub(crate) struct Stores {
    remote: Arc<RemoteLogs>,
    links: Vec<StoreLink>,
    /// The numbers of the logs, by slot.
    logs: Vec<u64>,
    received: Vec<Received>,
    scratch: Vec<u8>,
}

/// A reply that came in a poll.
struct Received {
    slot: usize,
    reply: Reply,
}

/// A store that is gone, and why.
pub(crate) struct LostStore {
    pub store: usize,
    pub why: String,
}

impl Stores {
    /// Connects to all stores, for the logs of these partitions.
    pub fn connect(
        remote: &Arc<RemoteLogs>,
        options: &OpenOptions,
        partitions: &[u32],
    ) -> Result<Self> {
        let replica = Replica {
            state: ReplicaState::Away,
            sent: Lsn(0),
            kept: Lsn(0),
            unconfirmed: 0,
        };
        let link = |address: &String| {
            Ok(StoreLink {
                name: format!("persist process {address}"),
                port: Some(connect(address, options)?),
                heard_at: u64::MAX,
                probed_at: 0,
                replicas: vec![replica; partitions.len()],
            })
        };
        let log = |&partition: &u32| remote.state.log_number(partition);
        Ok(Self {
            remote: remote.clone(),
            links: remote.addresses.iter().map(link).collect::<Result<_>>()?,
            logs: partitions.iter().map(log).collect(),
            received: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// How many there are, connected or not.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    pub fn name(&self, store: usize) -> &str {
        &self.links[store].name
    }

    /// The error for a reply that does not fit the request.
    pub fn unexpected_reply(&self, store: usize) -> Error {
        let text = format!("{}: it answered something else", self.name(store));
        Error::new(Code::Damaged, text)
    }

    /// Sends a request to one store and blocks until its answer is there, as recovery does. A
    /// refusal is an error.
    pub fn request(&mut self, store: usize, slot: usize, ask: &Ask) -> Result<Reply> {
        let link = &mut self.links[store];
        let name = &link.name;
        let gone = || unavailable(format!("{name}: the connection has ended"));
        let port = link.port.as_mut().ok_or_else(gone)?;
        self.scratch.clear();
        ask.encode(&mut self.scratch);
        port.send(head(slot), &[&self.scratch])
            .map_err(|_| gone())?;
        let mut reply = None;
        let spin = Duration::from_micros(50);
        let waited = port.wait(spin, ANSWER_WAIT, |frame, _| {
            reply = Some(decode(frame));
            ControlFlow::Continue(())
        });
        match (reply, waited) {
            (Some(Ok(Reply::Refused(error))), _) => Err(unavailable(format!("{name}: {error}"))),
            (Some(Ok(reply)), _) => {
                if matches!(ask, Ask::Write(Request::Open { .. })) {
                    link.replicas[slot].state = ReplicaState::Opened;
                }
                Ok(reply)
            }
            (Some(Err(error)), _) => Err(error),
            (None, Err(_)) => Err(gone()),
            (None, Ok(_)) => Err(unavailable(format!(
                "{name}: no answer within {ANSWER_WAIT:?}"
            ))),
        }
    }

    /// Notes that a store has a log completely, up to `end`.
    pub fn mark_complete(&mut self, store: usize, slot: usize, end: Lsn) {
        let replica = &mut self.links[store].replicas[slot];
        (replica.state, replica.kept) = (ReplicaState::Complete, end);
        replica.sent = replica.sent.max(end);
        self.remote.replica_completed();
    }

    /// Goes on with a store that was away and is connected again: all logs are opened there. Each
    /// of them then waits for a checkpoint, whatever the store still has of it.
    pub fn attach(&mut self, store: usize, port: Port) {
        let link = &mut self.links[store];
        (link.port, link.heard_at) = (Some(port), u64::MAX);
        let epoch = self.remote.state.epoch;
        for slot in 0..self.logs.len() {
            let log = self.logs[slot];
            self.send(store, slot, &Ask::Write(Request::Open { log, epoch }));
        }
    }

    fn send(&mut self, store: usize, slot: usize, ask: &Ask) {
        self.scratch.clear();
        ask.encode(&mut self.scratch);
        if let Some(port) = &mut self.links[store].port {
            // A full outbox was looked for before. If the connection has ended, the next poll says
            // so, and everything is sent again to the store when it is back.
            let _ = port.send(head(slot), &[&self.scratch]);
        }
    }

    /// Sends what the logs have, and handles what stores have said. Returns the stores that have
    /// gone since the last call.
    pub fn step<'a>(
        &mut self,
        now: u64,
        logs: impl Iterator<Item = &'a mut Log>,
    ) -> Result<Vec<LostStore>> {
        let mut logs: Vec<&mut RemoteLog> = logs
            .filter_map(|log| match log {
                Log::Remote(log) => Some(&mut **log),
                Log::Files(_) | Log::Memory(_) => None,
            })
            .collect();
        let mut lost = Vec::new();
        for store in 0..self.links.len() {
            let mut ended = None;
            if !self.send_and_poll(store, &mut logs)? || !self.links[store].probe(now) {
                ended = Some("the connection has ended".to_owned());
            }
            // What came before the end of a connection counts: each confirmation that is used is a
            // commit which need not wait until the store is back.
            for Received { slot, reply } in std::mem::take(&mut self.received) {
                if let Some(log) = logs.get_mut(slot) {
                    let full = self.on_reply(store, slot, reply, log)?;
                    ended = ended.or(full);
                }
                self.links[store].heard_at = now;
            }
            // A process that is stopped, or a network that drops everything, ends no connection.
            // Without this bound commits would wait for it until TCP gives up.
            let link = &mut self.links[store];
            if link.owes_nothing() {
                link.heard_at = now;
            } else if now.saturating_sub(link.heard_at) > SILENCE_NS {
                ended = Some("it does not answer".to_owned());
            }
            if let Some(why) = ended {
                let why = format!("{}: {why}", link.name);
                lost.push(LostStore { store, why });
            }
        }
        for LostStore { store, .. } in &lost {
            self.disconnect(*store, &mut logs);
        }
        Ok(lost)
    }

    fn disconnect(&mut self, store: usize, logs: &mut [&mut RemoteLog]) {
        self.links[store].port = None;
        for (slot, log) in logs.iter_mut().enumerate() {
            log.disconnected(store);
            let replica = &mut self.links[store].replicas[slot];
            // Only a complete replica was counted. One that was joining counts as lacking already.
            if replica.state == ReplicaState::Complete {
                self.remote.replica_lost();
            }
            (replica.state, replica.unconfirmed) = (ReplicaState::Away, 0);
            replica.sent = replica.kept;
        }
    }

    /// Returns false if the connection has ended.
    fn send_and_poll(&mut self, store: usize, logs: &mut [&mut RemoteLog]) -> Result<bool> {
        let link = &mut self.links[store];
        let Some(port) = &mut link.port else {
            return Ok(true);
        };
        for (slot, log) in logs.iter_mut().enumerate() {
            while port.waiting_bytes() < UNSENT_MAX
                && let Some(outgoing) = log.outgoing(store)
            {
                let (number, epoch) = (self.logs[slot], self.remote.state.epoch);
                let front = append_head(number, epoch, outgoing.at);
                link.replicas[slot].sent = Lsn(outgoing.at.0 + outgoing.bytes.len() as u64);
                match port.send(head(slot), &[&front, outgoing.bytes]) {
                    Ok(()) => {}
                    // The log believes that these bytes were sent. They were not, so this
                    // connection cannot go on; the next one begins with a checkpoint.
                    Err(SendError::Full { .. } | SendError::Ended) => return Ok(false),
                    Err(SendError::Frame(error)) => return Err(unavailable(error)),
                }
            }
        }
        let (received, mut failed) = (&mut self.received, None);
        let polled = port.poll(|frame, _| match decode(frame) {
            Ok(reply) => {
                let slot = frame.head.request as usize;
                received.push(Received { slot, reply });
                ControlFlow::Continue(())
            }
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        match failed {
            Some(error) => Err(unavailable(format!("{}: {}", link.name, error.text()))),
            None => Ok(polled.is_ok()),
        }
    }

    /// Handles a reply. Returns why the store cannot go on with this log, if it cannot; an error
    /// ends the engine, because another writer has the log or the store does not keep to the
    /// protocol.
    fn on_reply(
        &mut self,
        store: usize,
        slot: usize,
        reply: Reply,
        log: &mut RemoteLog,
    ) -> Result<Option<String>> {
        let link = &mut self.links[store];
        let replica = &mut link.replicas[slot];
        match reply {
            Reply::Answer(Answer::Kept { end }) => {
                replica.kept = end;
                log.acknowledged(store, end);
            }
            Reply::Answer(Answer::Done) => {
                replica.unconfirmed = replica.unconfirmed.saturating_sub(1);
            }
            Reply::Answer(Answer::Opened { .. }) => replica.state = ReplicaState::Opened,
            // The store has this very epoch's log still: the connection had ended, not the process.
            // It refuses to open an epoch twice, but the writer that it knows is this one.
            Reply::Refused(PersistError::Fenced { epoch, .. })
                if epoch == self.remote.state.epoch && replica.state == ReplicaState::Away =>
            {
                replica.state = ReplicaState::Opened;
            }
            // The store is disconnected and comes back: it then gets a checkpoint in place of all
            // that it holds, and that is all it may need.
            Reply::Refused(error @ PersistError::Full { .. }) => {
                return Ok(Some(error.to_string()));
            }
            Reply::Refused(error) => {
                return Err(unavailable(format!("{}: {error}", link.name)));
            }
            Reply::Bytes(_) => return Err(self.unexpected_reply(store)),
        }
        Ok(None)
    }

    /// Whether a store waits for a checkpoint of this log.
    pub fn wants_checkpoint(&self, slot: usize) -> bool {
        let is_opened = |link: &StoreLink| link.replicas[slot].state == ReplicaState::Opened;
        self.links.iter().any(is_opened)
    }

    /// Lets stores that wait for a checkpoint join with the one that begins now: they get the log
    /// from this position on. One that connects later waits for the next checkpoint, because it has
    /// missed chunks of this one.
    pub fn begin_checkpoint(&mut self, slot: usize, log: &mut RemoteLog) {
        for store in 0..self.links.len() {
            let replica = &mut self.links[store].replicas[slot];
            replica.unconfirmed = 0;
            if replica.state == ReplicaState::Opened {
                let at = log.join(store);
                (replica.state, replica.kept, replica.sent) = (ReplicaState::Joining, Lsn(0), at);
                let (log, epoch) = (self.logs[slot], self.remote.state.epoch);
                self.send(store, slot, &Ask::Write(Request::Reset { log, epoch, at }));
            }
        }
    }

    /// Whether all stores take more now.
    pub fn has_room(&self) -> bool {
        let is_full = |port: &Port| port.waiting_bytes() >= UNSENT_MAX;
        let ports = self.links.iter().filter_map(|link| link.port.as_ref());
        !ports.into_iter().any(is_full)
    }

    /// Sends a part of a checkpoint, or its end, to all stores that take part in it.
    pub fn send_checkpoint(&mut self, slot: usize, part: CheckpointPart) {
        let (log, epoch) = (self.logs[slot], self.remote.state.epoch);
        let ask = Ask::Write(match part {
            CheckpointPart::Chunk { number, bytes } => Request::Chunk {
                log,
                epoch,
                number,
                bytes,
            },
            CheckpointPart::End {
                number,
                chunks,
                first_needed,
            } => Request::Install {
                log,
                epoch,
                number,
                chunks,
                first_needed,
            },
        });
        for store in 0..self.links.len() {
            let replica = &mut self.links[store].replicas[slot];
            if takes_part(replica) {
                replica.unconfirmed += 1;
                self.send(store, slot, &ask);
            }
        }
    }

    /// Whether the stores that take part in the checkpoint have the log up to `end`.
    pub fn have_up_to(&self, slot: usize, end: Lsn) -> bool {
        self.participants(slot).all(|replica| replica.kept >= end)
    }

    /// Whether they have confirmed all parts of the checkpoint.
    pub fn have_confirmed(&self, slot: usize) -> bool {
        let mut participants = self.participants(slot);
        participants.all(|replica| replica.unconfirmed == 0)
    }

    fn participants(&self, slot: usize) -> impl Iterator<Item = &Replica> {
        let replicas = self.links.iter().map(move |link| &link.replicas[slot]);
        replicas.filter(|replica| takes_part(replica))
    }

    /// Ends a checkpoint that all participants have: those that joined with it have the log
    /// completely.
    pub fn end_checkpoint(&mut self, slot: usize, log: &mut RemoteLog) {
        for store in 0..self.links.len() {
            let replica = self.links[store].replicas[slot];
            if replica.state == ReplicaState::Joining {
                log.joined(store, replica.kept);
                self.mark_complete(store, slot, replica.kept);
            }
        }
    }
}

fn takes_part(replica: &Replica) -> bool {
    matches!(
        replica.state,
        ReplicaState::Joining | ReplicaState::Complete
    )
}

/// What is sent of a checkpoint. Its number tells its chunks from those of one that was given up.
pub(crate) enum CheckpointPart {
    Chunk {
        number: u64,
        bytes: Vec<u8>,
    },
    End {
        number: u64,
        chunks: u64,
        /// Recovery reads the log from here.
        first_needed: Lsn,
    },
}

fn head(slot: usize) -> Head {
    Head {
        verb: STORE_ASK,
        flags: 0,
        request: slot as u32,
    }
}

fn decode(frame: FrameRef<'_>) -> Result<Reply> {
    match frame.head.verb {
        STORE_REPLY => Reply::decode(frame.body).map_err(|error| Error::new(Code::Damaged, error)),
        REFUSED => Err(decode_refusal(frame.body)),
        verb => Err(Error::new(
            Code::Damaged,
            format!("verb {verb} instead of a reply"),
        )),
    }
}
