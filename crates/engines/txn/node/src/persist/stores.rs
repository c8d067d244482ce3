//! A thread's connections to the processes that keep its logs.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use dyno_net::{FrameRef, Head, Port, SendError};
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_log::{Answer, Ask, Log, Lsn, PersistError, RemoteLog, Reply, Request, append_head};

use super::Remote;
use super::reconnect::call;
use crate::error::unavailable;
use crate::hello::{KEEP_ASK, KEEP_REPLY, REFUSED, decode_refusal};
use crate::options::OpenOptions;

/// How long a store may take to answer while nothing else is done.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// With more than this unsent to a store nothing more is handed over.
const UNSENT_MAX: usize = 2 << 20;
/// A store that says nothing for so long although it should is taken for gone.
const SILENCE_NS: u64 = 5_000_000_000;
/// How often it is looked whether one is gone that has nothing to say: a ring shows it to who sleeps alone.
const LOOK_NS: u64 = 20_000_000;

/// What a store has of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is not there, or has not been asked.
    Away,
    /// It waits for a checkpoint.
    Opened,
    /// It gets one, and what follows.
    Joining,
    Whole,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    standing: Standing,
    /// Up to where it was sent the bytes, and up to where it has said that it has them.
    sent: Lsn,
    kept: Lsn,
    /// Parts of a checkpoint that it has not confirmed.
    unconfirmed: u64,
}

struct Link {
    name: String,
    port: Option<Port>,
    /// When it last said something, or had nothing to say.
    heard_at: u64,
    looked_at: u64,
    /// By the partition's place in its thread.
    logs: Vec<Held>,
}

impl Link {
    /// False: the other end is gone.
    fn look(&mut self, now: u64) -> bool {
        if now < self.looked_at + LOOK_NS {
            return true;
        }
        self.looked_at = now;
        let port = self.port.as_mut();
        port.is_none_or(|port| port.sleep(Duration::ZERO).is_ok())
    }

    fn owes_nothing(&self) -> bool {
        let settled = |held: &Held| held.sent <= held.kept && held.unconfirmed == 0;
        self.port.is_none() || self.logs.iter().all(settled)
    }
}

/// All of them.
pub(crate) struct Stores {
    remote: Arc<Remote>,
    links: Vec<Link>,
    /// Log numbers by place.
    numbers: Vec<u64>,
    came: Vec<(u32, Reply)>,
    scratch: Vec<u8>,
}

impl Stores {
    /// Connects to all, for these partitions.
    pub fn connect(remote: &Arc<Remote>, options: &OpenOptions, ids: &[u32]) -> Result<Self> {
        let held = Held {
            standing: Standing::Away,
            sent: Lsn(0),
            kept: Lsn(0),
            unconfirmed: 0,
        };
        let link = |address: &String| {
            Ok(Link {
                name: format!("persist process {address}"),
                port: Some(call(address, options)?),
                heard_at: u64::MAX,
                looked_at: 0,
                logs: vec![held; ids.len()],
            })
        };
        Ok(Self {
            remote: remote.clone(),
            links: remote.addresses.iter().map(link).collect::<Result<_>>()?,
            numbers: ids.iter().map(|&id| remote.state.log_of(id)).collect(),
            came: Vec::new(),
            scratch: Vec::new(),
        })
    }

    pub fn len(&self) -> usize {
        self.links.len()
    }

    pub fn name(&self, store: usize) -> &str {
        &self.links[store].name
    }

    pub fn nonsense(&self, store: usize) -> Error {
        let text = format!("{}: an answer to something else", self.name(store));
        Error::new(Code::Damaged, text)
    }

    /// Asks one and waits for its answer; a refusal is an error.
    pub fn ask(&mut self, store: usize, place: usize, ask: &Ask) -> Result<Reply> {
        let link = &mut self.links[store];
        let name = &link.name;
        let gone = || unavailable(format!("{name}: the connection has ended"));
        let port = link.port.as_mut().ok_or_else(gone)?;
        self.scratch.clear();
        ask.encode(&mut self.scratch);
        port.send(head(place), &[&self.scratch])
            .map_err(|_| gone())?;
        let mut reply = None;
        let spin = Duration::from_micros(50);
        let waited = port.wait(spin, ANSWER_WAIT, |frame, _| {
            reply = Some(read(frame));
            ControlFlow::Continue(())
        });
        match (reply, waited) {
            (Some(Ok(Reply::Refused(error))), _) => Err(unavailable(format!("{name}: {error}"))),
            (Some(Ok(reply)), _) => {
                if matches!(ask, Ask::Write(Request::Open { .. })) {
                    link.logs[place].standing = Standing::Opened;
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

    /// A store has a log whole, up to here.
    pub fn is_whole(&mut self, store: usize, place: usize, end: Lsn) {
        let held = &mut self.links[store].logs[place];
        (held.standing, held.kept) = (Standing::Whole, end);
        held.sent = held.sent.max(end);
        self.remote.gained();
    }

    /// A store that was away is connected again: its logs are opened.
    pub fn attach(&mut self, store: usize, port: Port) {
        let link = &mut self.links[store];
        (link.port, link.heard_at) = (Some(port), u64::MAX);
        let epoch = self.remote.state.epoch;
        for place in 0..self.numbers.len() {
            let log = self.numbers[place];
            self.tell(store, place, &Ask::Write(Request::Open { log, epoch }));
        }
    }

    fn tell(&mut self, store: usize, place: usize, ask: &Ask) {
        self.scratch.clear();
        ask.encode(&mut self.scratch);
        if let Some(port) = &mut self.links[store].port {
            // A full outbox was looked for; an end shows when it is polled.
            let _ = port.send(head(place), &[&self.scratch]);
        }
    }

    /// Sends what logs have, and takes in what stores say. The stores that have gone since the last call, and
    /// why.
    pub fn step<'a>(
        &mut self,
        now: u64,
        logs: impl Iterator<Item = &'a mut Log>,
    ) -> Result<Vec<(usize, String)>> {
        let mut logs: Vec<&mut RemoteLog> = logs
            .filter_map(|log| match log {
                Log::Remote(log) => Some(&mut **log),
                Log::Files(_) | Log::Memory(_) => None,
            })
            .collect();
        let mut gone = Vec::new();
        for store in 0..self.links.len() {
            let mut ended = None;
            if !self.send_and_poll(store, &mut logs)? || !self.links[store].look(now) {
                ended = Some("the connection has ended".to_owned());
            }
            for (place, reply) in std::mem::take(&mut self.came) {
                if let Some(log) = logs.get_mut(place as usize) {
                    let full = self.heard(store, place as usize, reply, log)?;
                    ended = ended.or(full);
                }
                self.links[store].heard_at = now;
            }
            let link = &mut self.links[store];
            if link.owes_nothing() {
                link.heard_at = now;
            } else if now.saturating_sub(link.heard_at) > SILENCE_NS {
                ended = Some("it does not answer".to_owned());
            }
            if let Some(why) = ended {
                gone.push((store, format!("{}: {why}", link.name)));
            }
        }
        for &(store, _) in &gone {
            self.links[store].port = None;
            for (place, log) in logs.iter_mut().enumerate() {
                log.disconnected(store);
                let held = &mut self.links[store].logs[place];
                if held.standing == Standing::Whole {
                    self.remote.lost();
                }
                (held.standing, held.unconfirmed) = (Standing::Away, 0);
                held.sent = held.kept;
            }
        }
        Ok(gone)
    }

    /// False: the connection has ended.
    fn send_and_poll(&mut self, store: usize, logs: &mut [&mut RemoteLog]) -> Result<bool> {
        let link = &mut self.links[store];
        let Some(port) = &mut link.port else {
            return Ok(true);
        };
        for (place, log) in logs.iter_mut().enumerate() {
            while port.waiting_bytes() < UNSENT_MAX
                && let Some(outgoing) = log.outgoing(store)
            {
                let (number, epoch) = (self.numbers[place], self.remote.state.epoch);
                let front = append_head(number, epoch, outgoing.at);
                link.logs[place].sent = Lsn(outgoing.at.0 + outgoing.bytes.len() as u64);
                match port.send(head(place), &[&front, outgoing.bytes]) {
                    Ok(()) => {}
                    Err(SendError::Full { .. } | SendError::Ended) => return Ok(false),
                    Err(SendError::Frame(error)) => return Err(unavailable(error)),
                }
            }
        }
        let (came, mut failed) = (&mut self.came, None);
        let polled = port.poll(|frame, _| match read(frame) {
            Ok(reply) => {
                came.push((frame.head.request, reply));
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

    /// Why the store cannot go on with this log, if so.
    fn heard(
        &mut self,
        store: usize,
        place: usize,
        reply: Reply,
        log: &mut RemoteLog,
    ) -> Result<Option<String>> {
        let link = &mut self.links[store];
        let held = &mut link.logs[place];
        match reply {
            Reply::Answer(Answer::Kept { end }) => {
                held.kept = end;
                log.acknowledged(store, end);
            }
            Reply::Answer(Answer::Done) => {
                held.unconfirmed = held.unconfirmed.saturating_sub(1);
            }
            Reply::Answer(Answer::Opened { .. }) => held.standing = Standing::Opened,
            // It has this very log still: this end of the connection had ended, not the process.
            Reply::Refused(PersistError::Fenced { epoch, .. })
                if epoch == self.remote.state.epoch && held.standing == Standing::Away =>
            {
                held.standing = Standing::Opened;
            }
            // It gets a checkpoint in place of all that it has, which is all that it may need.
            Reply::Refused(error @ PersistError::Full { .. }) => {
                return Ok(Some(error.to_string()));
            }
            Reply::Refused(error) => {
                return Err(unavailable(format!("{}: {error}", link.name)));
            }
            Reply::Bytes(_) => return Err(self.nonsense(store)),
        }
        Ok(None)
    }

    /// Whether a store waits for a checkpoint of this log.
    pub fn wants_checkpoint(&self, place: usize) -> bool {
        let opened = |link: &Link| link.logs[place].standing == Standing::Opened;
        self.links.iter().any(opened)
    }

    /// A checkpoint begins: stores that wait for one get all that follows from here on.
    pub fn begin_checkpoint(&mut self, place: usize, log: &mut RemoteLog) {
        for store in 0..self.links.len() {
            let held = &mut self.links[store].logs[place];
            held.unconfirmed = 0;
            if held.standing == Standing::Opened {
                let at = log.join(store);
                (held.standing, held.kept, held.sent) = (Standing::Joining, Lsn(0), at);
                let (log, epoch) = (self.numbers[place], self.remote.state.epoch);
                self.tell(store, place, &Ask::Write(Request::Reset { log, epoch, at }));
            }
        }
    }

    /// Whether all stores take more now.
    pub fn has_room(&self) -> bool {
        let full = |port: &Port| port.waiting_bytes() >= UNSENT_MAX;
        !self
            .links
            .iter()
            .filter_map(|link| link.port.as_ref())
            .any(full)
    }

    /// A part of a checkpoint, or its end, to all stores that take part.
    pub fn send_checkpoint(&mut self, place: usize, part: CheckpointPart) {
        let (log, epoch) = (self.numbers[place], self.remote.state.epoch);
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
            let held = &mut self.links[store].logs[place];
            if matches!(held.standing, Standing::Joining | Standing::Whole) {
                held.unconfirmed += 1;
                self.tell(store, place, &ask);
            }
        }
    }

    /// Whether the stores that take part have all bytes of the log up to here.
    pub fn have(&self, place: usize, end: Lsn) -> bool {
        self.taking_part(place).all(|held| held.kept >= end)
    }

    /// Whether they have confirmed all parts of the checkpoint.
    pub fn confirmed(&self, place: usize) -> bool {
        self.taking_part(place).all(|held| held.unconfirmed == 0)
    }

    fn taking_part(&self, place: usize) -> impl Iterator<Item = &Held> {
        let held = self.links.iter().map(move |link| &link.logs[place]);
        held.filter(|held| matches!(held.standing, Standing::Joining | Standing::Whole))
    }

    /// The checkpoint is everywhere: who joined with it has the log whole.
    pub fn end_checkpoint(&mut self, place: usize, log: &mut RemoteLog) {
        for store in 0..self.links.len() {
            let held = self.links[store].logs[place];
            if held.standing == Standing::Joining {
                log.joined(store, held.kept);
                self.is_whole(store, place, held.kept);
            }
        }
    }
}

/// What is sent of a checkpoint.
pub(crate) enum CheckpointPart {
    Chunk {
        number: u64,
        bytes: Vec<u8>,
    },
    End {
        number: u64,
        chunks: u64,
        first_needed: Lsn,
    },
}

fn head(place: usize) -> Head {
    Head {
        verb: KEEP_ASK,
        flags: 0,
        request: place as u32,
    }
}

fn read(frame: FrameRef<'_>) -> Result<Reply> {
    match frame.head.verb {
        KEEP_REPLY => Reply::decode(frame.body).map_err(|error| Error::new(Code::Damaged, error)),
        REFUSED => Err(decode_refusal(frame.body)),
        verb => Err(Error::new(
            Code::Damaged,
            format!("verb {verb} instead of a reply"),
        )),
    }
}
