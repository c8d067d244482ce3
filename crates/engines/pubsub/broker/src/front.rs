//! What a connection's requests are turned into.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_net::{Closed, Connection, Frame, Outbox, Service};
use dyno_pubsub::record::Codec;
use dyno_pubsub::wire::{
    Commit, CreateTopic, Fetch, Heartbeat, Hello, JoinGroup, LeaveGroup, ListOffsets, Message,
    Metadata, NewProducer, Produce, SkipLost, Status, StatusIs, Verb, Welcome, WireError,
};
use dyno_pubsub::{Code, Error, Result};
use dyno_serve::Token;

use crate::batch::{Ack, Batch, check};
use crate::behind::{Behind, MOST_BYTES};
use crate::commits::Commits;
use crate::control::{Asked, Request};
use crate::counters::{Counters, add};
use crate::error::{bad, not_mine, stopping};
use crate::held::Held;
use crate::jobs::Jobs;
use crate::memory::Memory;
use crate::tail::Waiter;

/// The longest body of a request; a batch of the longest record and its neighbours.
pub const MOST_BODY_BYTES: usize = 12 << 20;
/// What a batch takes beside its body.
const BATCH_BYTES: usize = 256;
/// How often a reader that waits for memory looks whether its client is still there.
const ROOM_WAIT: Duration = Duration::from_secs(1);
/// The longest wait of a fetch.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// Everything that requests need.
pub struct Front {
    pub name: String,
    pub token: Option<Token>,
    pub held: Arc<Held>,
    pub memory: Memory,
    pub counters: Arc<Counters>,
    pub control: Arc<Jobs<Asked>>,
    pub commits: Arc<Jobs<Commits>>,
    pub behind: Arc<Jobs<Behind>>,
    pub stopping: AtomicBool,
}

/// What is remembered of a connection.
pub struct Session {
    outbox: Arc<Outbox>,
    /// Whether it has said who it is.
    welcome: bool,
}

impl Service for Front {
    type Session = Session;

    fn open(&self, connection: &Connection) -> Session {
        Session {
            outbox: Arc::clone(&connection.outbox),
            welcome: false,
        }
    }

    fn request(&self, session: &mut Session, frame: Frame) -> bool {
        let ack = Ack {
            outbox: Arc::clone(&session.outbox),
            request: frame.head.request,
        };
        let Some(verb) = Verb::from_number(frame.head.verb) else {
            ack.refused(&bad(format_args!("verb {} is unknown", frame.head.verb)));
            return true;
        };
        if !session.welcome {
            return match self.hello(&ack, verb, frame) {
                Ok(()) => {
                    session.welcome = true;
                    add(&self.counters.connections, 1);
                    true
                }
                Err(error) => {
                    ack.refused(&error);
                    false
                }
            };
        }
        if let Err(error) = self.answer(&ack, verb, frame) {
            ack.refused(&error);
        }
        true
    }

    fn close(&self, _: Session, why: Closed) {
        if matches!(why, Closed::Frame(_) | Closed::Stuck) {
            add(&self.counters.broken_connections, 1);
        }
    }
}

impl Front {
    fn hello(&self, ack: &Ack, verb: Verb, frame: Frame) -> Result<()> {
        if verb != Verb::Hello {
            return Err(Error::new(Code::Denied, "the first request is Hello"));
        }
        let hello: Hello = read(frame)?;
        if let Some(token) = &self.token
            && !token.is(hello.token.as_bytes())
        {
            return Err(Error::new(Code::Denied, "the token is not this broker's"));
        }
        ack.answer(&Welcome {
            broker: self.name.clone(),
            most_body_bytes: MOST_BODY_BYTES as u32,
        });
        Ok(())
    }

    fn answer(&self, ack: &Ack, verb: Verb, frame: Frame) -> Result<()> {
        let request = match verb {
            Verb::Produce => return self.produce(ack, read(frame)?),
            Verb::Fetch => return self.fetch(ack, &read(frame)?),
            Verb::Commit => return self.commit(ack, read(frame)?),
            Verb::Status => {
                let _: Status = read(frame)?;
                ack.answer(&self.status());
                return Ok(());
            }
            Verb::Metadata => Request::Metadata(read::<Metadata>(frame)?),
            Verb::NewProducer => Request::NewProducer(read::<NewProducer>(frame)?),
            Verb::CreateTopic => Request::CreateTopic(read::<CreateTopic>(frame)?),
            Verb::ListOffsets => Request::ListOffsets(read::<ListOffsets>(frame)?),
            Verb::JoinGroup => Request::JoinGroup(read::<JoinGroup>(frame)?),
            Verb::Heartbeat => Request::Heartbeat(read::<Heartbeat>(frame)?),
            Verb::LeaveGroup => Request::LeaveGroup(read::<LeaveGroup>(frame)?),
            Verb::SkipLost => Request::SkipLost(read::<SkipLost>(frame)?),
            Verb::ListTopics => Request::ListTopics(read(frame)?),
            Verb::AlterTopic => Request::AlterTopic(read(frame)?),
            Verb::DropTopic => Request::DropTopic(read(frame)?),
            Verb::DescribeGroups => Request::DescribeGroups(read(frame)?),
            Verb::Placement => Request::Placement(read(frame)?),
            Verb::ListQueues => Request::ListQueues(read(frame)?),
            Verb::ListKept => Request::ListKept(read(frame)?),
            Verb::ListGroups => Request::ListGroups(read(frame)?),
            Verb::ResetGroup => Request::ResetGroup(read(frame)?),
            Verb::DropGroup => Request::DropGroup(read(frame)?),
            Verb::Hello | Verb::Error => return Err(bad("this is no request for now")),
        };
        let asked = Asked {
            ack: ack.clone(),
            request,
        };
        self.control.push(asked).map_err(|_| self.too_much())
    }

    fn produce(&self, ack: &Ack, ask: Produce) -> Result<()> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        let key = (ask.topic_id, ask.partition);
        let partition = self.held.get(key).ok_or_else(|| not_mine(key))?;
        if ask.producer_id <= 0 || ask.first_sequence < 0 {
            return Err(bad("a producer has an id above 0 and sequences from 0"));
        }
        let body = ask.body.bytes();
        if dyno_checksum::crc32c(&body) != ask.crc {
            return Err(Error::new(Code::Damaged, "the body's checksum is wrong"));
        }
        let codec = Codec::of_flags(i16::from(ask.codec))?;
        check(codec, body.clone(), ask.count)?;
        let charge = loop {
            // While there is no room nothing more is read from this client.
            let bytes = body.len() + BATCH_BYTES;
            if let Some(charge) = self.memory.queued.wait_for(bytes, ROOM_WAIT) {
                break charge;
            }
            if self.stopping.load(Ordering::Acquire) || ack.outbox.is_closed() {
                return Err(stopping());
            }
        };
        partition.submit(Batch {
            producer_id: ask.producer_id,
            first_sequence: ask.first_sequence,
            count: ask.count,
            codec,
            body,
            ack: ack.clone(),
            _charge: charge,
        });
        Ok(())
    }

    fn fetch(&self, ack: &Ack, ask: &Fetch) -> Result<()> {
        let key = (ask.topic_id, ask.partition);
        let partition = self.held.get(key).ok_or_else(|| not_mine(key))?;
        add(&self.counters.fetches, 1);
        let tails = &self.memory.tails;
        if tails.used_bytes() > tails.limit_bytes() / 3 * 4 {
            return Err(Error::new(
                Code::Overloaded,
                "slow consumers hold on to too much",
            ));
        }
        let wait = Duration::from_millis(u64::from(ask.wait_ms)).min(MOST_WAIT);
        let waiter = Waiter {
            ack: ack.clone(),
            offset: ask.offset,
            most_bytes: (ask.most_bytes as usize).min(MOST_BYTES),
            least_bytes: ask.least_bytes as usize,
            until: Instant::now() + wait,
        };
        let Some(waiter) = partition.fetch(waiter) else {
            return Ok(());
        };
        add(&self.counters.fetches_behind, 1);
        let job = Behind { partition, waiter };
        self.behind.push(job).map_err(|_| self.too_much())
    }

    fn commit(&self, ack: &Ack, request: Commit) -> Result<()> {
        if request.cursors.iter().any(|cursor| cursor.claimed_to != -1) {
            let asked = Asked {
                ack: ack.clone(),
                request: Request::Commit(request),
            };
            return self.control.push(asked).map_err(|_| self.too_much());
        }
        let commit = Commits {
            ack: ack.clone(),
            request,
        };
        self.commits.push(commit).map_err(|_| self.too_much())
    }

    fn too_much(&self) -> Error {
        if self.stopping.load(Ordering::Acquire) {
            return stopping();
        }
        Error::new(Code::Overloaded, "too many requests wait for the database")
    }

    /// The counters, and what is held now.
    pub fn status(&self) -> StatusIs {
        let mut counters = self.counters.all();
        let mut now = |name: &str, value: usize| {
            counters.push(dyno_pubsub::wire::Counter {
                name: name.to_owned(),
                value: value as u64,
            });
        };
        now("partitions", self.held.len());
        now("memory_bytes", self.memory.used_bytes());
        now("queued_bytes", self.memory.queued.used_bytes());
        now("tail_bytes", self.memory.tails.used_bytes());
        now("behind_bytes", self.memory.behind.used_bytes());
        StatusIs { counters }
    }
}

fn read<M: Message>(frame: Frame) -> Result<M> {
    M::decode(frame.body).map_err(|error: WireError| bad(error))
}
