//! Turns the requests of connections into work for the broker's threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyno_net::{Charge, Closed, Connection, Frame, Outbox, ServeCounts, Service};
use dyno_pubsub::record::Codec;
use dyno_pubsub::wire::{
    Commit, CreateTopic, DeleteRecords, Fetch, Heartbeat, Hello, JoinGroup, LeaveGroup,
    ListOffsets, Message, Metadata, NewProducer, Produce, SkipLost, Status, StatusIs, Verb,
    Welcome, WireError,
};
use dyno_pubsub::{Code, Error, Result, TopicPartition};
use dyno_serve::Token;

use crate::backlog::{Backlog, Reading};
use crate::batch::{Ack, Batch, check};
use crate::behind::{Behind, MOST_BYTES};
use crate::commits::Commits;
use crate::control::{PendingRequest, Request, Requests};
use crate::counters::{Counters, add};
use crate::error::{bad, not_mine, stopping};
use crate::fair::Fair;
use crate::hosted::HostedPartitions;
use crate::memory::Memory;
use crate::tail::Waiter;

/// The longest body of a request; a batch of the longest record and its neighbours.
pub const MOST_BODY_BYTES: usize = 12 << 20;
/// The bytes that a batch takes beside its body.
const BATCH_BYTES: usize = 256;
/// The longest body of a Hello: the longest token, the longest name, and their lengths fit.
pub const MOST_HELLO_BYTES: usize = 72 << 10;
/// The longest wait of a fetch.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// What requests need of the broker; all connections share it.
pub struct Front {
    pub name: String,
    pub token: Option<Token>,
    pub hosted: Arc<HostedPartitions>,
    pub memory: Memory,
    pub counters: Arc<Counters>,
    /// What the servers of all listeners count.
    pub served: Arc<ServeCounts>,
    pub control: Arc<Requests>,
    pub commits: Arc<Fair<Commits>>,
    pub behind: Arc<Backlog>,
    pub stopping: AtomicBool,
}

/// The state of one connection.
pub struct Session {
    connection: u64,
    outbox: Arc<Outbox>,
    reading: Arc<Reading>,
    /// Whether it has said a good Hello.
    welcome: bool,
}

impl Service for Front {
    type Session = Session;

    fn open(&self, connection: &Connection) -> Session {
        Session {
            connection: connection.id,
            outbox: Arc::clone(&connection.outbox),
            reading: self.behind.reading(connection.id),
            welcome: false,
        }
    }

    fn request(&self, session: &mut Session, frame: Frame, charge: Option<Charge>) -> bool {
        let ack = Ack {
            outbox: Arc::clone(&session.outbox),
            request: frame.head.request,
        };
        let number = frame.head.verb;
        let verb = Verb::from_number(number);
        if !session.welcome {
            // Anything but a good Hello ends the connection. Otherwise a client without the token
            // could keep one for long.
            let welcome = self.hello(&ack, verb, frame);
            session.welcome = welcome.is_ok();
            match welcome {
                Ok(()) => add(&self.counters.connections, 1),
                Err(error) => ack.refused(&error),
            }
            return session.welcome;
        }
        let Some(verb) = verb else {
            ack.refused(&bad(format_args!("verb {number} is unknown")));
            return true;
        };
        if let Err(error) = self.answer(session, &ack, verb, frame, charge) {
            ack.refused(&error);
        }
        true
    }

    fn is_admitted(&self, session: &Session) -> bool {
        session.welcome
    }

    fn close(&self, _: Session, why: Closed) {
        if matches!(why, Closed::Frame(_) | Closed::Stuck | Closed::Slow) {
            add(&self.counters.broken_connections, 1);
        }
    }
}

impl Front {
    fn hello(&self, ack: &Ack, verb: Option<Verb>, frame: Frame) -> Result<()> {
        if verb != Some(Verb::Hello) {
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

    fn answer(
        &self,
        session: &Session,
        ack: &Ack,
        verb: Verb,
        frame: Frame,
        charge: Option<Charge>,
    ) -> Result<()> {
        let request = match verb {
            Verb::Produce => return self.produce(ack, read(frame)?, charge),
            Verb::Fetch => return self.fetch(session, ack, &read(frame)?),
            Verb::Commit => return self.commit(session, ack, read(frame)?, charge),
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
            Verb::DeleteRecords => {
                let ask: DeleteRecords = read(frame)?;
                let key = TopicPartition {
                    topic_id: ask.topic_id,
                    partition: ask.partition,
                };
                let partition = self.hosted.get(key).ok_or_else(|| not_mine(key))?;
                Request::DeleteRecords(ask, partition)
            }
            Verb::DescribeGroups => Request::DescribeGroups(read(frame)?),
            Verb::Placement => Request::Placement(read(frame)?),
            Verb::ListQueues => Request::ListQueues(read(frame)?),
            Verb::ListKept => Request::ListKept(read(frame)?),
            Verb::ListGroups => Request::ListGroups(read(frame)?),
            Verb::ResetGroup => Request::ResetGroup(read(frame)?),
            Verb::DropGroup => Request::DropGroup(read(frame)?),
            Verb::Hello | Verb::Error => return Err(bad("this is not a request for now")),
        };
        let pending = PendingRequest {
            ack: ack.clone(),
            request,
            charge,
        };
        self.control.push(session.connection, pending)
    }

    fn produce(&self, ack: &Ack, ask: Produce, charge: Option<Charge>) -> Result<()> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        let key = TopicPartition {
            topic_id: ask.topic_id,
            partition: ask.partition,
        };
        let partition = self.hosted.get(key).ok_or_else(|| not_mine(key))?;
        if ask.producer_id <= 0 || ask.first_sequence < 0 {
            return Err(bad("a producer has an id above 0 and sequences from 0"));
        }
        // The appender computes with the sequence of the last record.
        let after_last = ask.first_sequence.checked_add(i64::from(ask.count));
        if after_last.is_none() {
            return Err(bad("a sequence is at most 2^63 - 1"));
        }
        let body = ask.body.bytes();
        if dyno_checksum::crc32c(&body) != ask.crc {
            return Err(Error::new(Code::Damaged, "the body's checksum is wrong"));
        }
        let codec = Codec::from_flags(i16::from(ask.codec))?;
        check(codec, body.clone(), ask.count)?;
        // A long frame was charged before it was read, with more than its body. For a short one
        // there may be no room; then nothing more is read from this client until there is.
        let goes_on = || !self.stopping.load(Ordering::Acquire) && !ack.outbox.is_closed();
        let bytes = body.len() + BATCH_BYTES;
        let charge = charge
            .or_else(|| self.memory.queued.wait_while(bytes, goes_on))
            .ok_or_else(stopping)?;
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

    fn fetch(&self, session: &Session, ack: &Ack, ask: &Fetch) -> Result<()> {
        let key = TopicPartition {
            topic_id: ask.topic_id,
            partition: ask.partition,
        };
        let partition = self.hosted.get(key).ok_or_else(|| not_mine(key))?;
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
            reading: Arc::clone(&session.reading),
            offset: ask.offset,
            most_bytes: (ask.most_bytes as usize).min(MOST_BYTES),
            least_bytes: ask.least_bytes as usize,
            until: Instant::now() + wait,
        };
        let Some(waiter) = partition.fetch(waiter) else {
            return Ok(());
        };
        add(&self.counters.fetches_behind, 1);
        let job = Behind::new(partition, waiter);
        self.behind.push(job).map_err(|_| self.too_much())
    }

    fn commit(
        &self,
        session: &Session,
        ack: &Ack,
        request: Commit,
        charge: Option<Charge>,
    ) -> Result<()> {
        if request.cursors.iter().any(|cursor| cursor.claimed_to != -1) {
            let pending = PendingRequest {
                ack: ack.clone(),
                request: Request::Commit(request),
                charge,
            };
            return self.control.push(session.connection, pending);
        }
        let commit = Commits {
            ack: ack.clone(),
            request,
            _charge: charge,
        };
        let still = || !ack.outbox.is_closed();
        let pushed = self.commits.push(session.connection, commit, still);
        pushed.map_err(|_| stopping())
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
        now("partitions", self.hosted.len());
        now("memory_bytes", self.memory.used_bytes());
        now("queued_bytes", self.memory.queued.used_bytes());
        now("tail_bytes", self.memory.tails.used_bytes());
        now("behind_bytes", self.memory.behind.used_bytes());
        let served = |name: &str, counter: &AtomicU64, now: &mut dyn FnMut(&str, usize)| {
            now(name, counter.load(Ordering::Relaxed) as usize);
        };
        served("open_connections", &self.served.open, &mut now);
        served("unadmitted_connections", &self.served.unadmitted, &mut now);
        served("refused_connections", &self.served.refused, &mut now);
        served("displaced_connections", &self.served.displaced, &mut now);
        served("late_connections", &self.served.late, &mut now);
        served("slow_connections", &self.served.slow, &mut now);
        StatusIs { counters }
    }
}

fn read<M: Message>(frame: Frame) -> Result<M> {
    M::decode(frame.body).map_err(|error: WireError| bad(error))
}
