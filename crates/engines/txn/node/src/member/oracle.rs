//! The process of role `oracle`: one thread that gives stamps, and tells everybody where everybody is. It has no
//! disk: what it promises is kept by the partitions, and processes say again who they are when it is started again.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dyno_net::{Closed, FrameRef, Handler, Head, Listener, Outbound, PortId, Reactor, SendError};
use dyno_serve::Token;
use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::{Address, Message, PartitionId};
use dyno_txn_core::oracle::Candidate;

use super::{Map, Part};
use crate::error::{bad_argument, from_net, unavailable};
use crate::hello::{
    BETWEEN, HELLO, Hello, MAP, MAP_ASK, MEMBER_HELLO, MEMBER_WELCOME, MESSAGE, MemberHello,
    ORACLE, REFUSED, WELCOME, Welcome, encode_between, encode_refusal, read_between,
};
use crate::lone::{Lone, Task};
use crate::options::{Durability, OpenOptions};
use crate::time::Time;

/// How often it looks at the clock without anything else to do.
const LOOK: Duration = Duration::from_millis(20);
/// Processes of a database, and threads of one, at most.
const PARTS_MAX: u32 = 1024;
const THREADS_MAX: u32 = 1024;

/// What it counts.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    stamps: AtomicU64,
    serves: AtomicU64,
}

const TASK: Task = Task {
    role: "oracle",
    does: "gives stamps",
};

/// Starts an oracle.
pub(crate) fn start(
    options: &OpenOptions,
    token: Option<Token>,
    listener: Listener,
) -> Result<Lone> {
    let counts = Arc::new(Counts::default());
    let desk = Desk {
        token,
        time: Time::start(),
        counts: counts.clone(),
        database: None,
        clients: HashSet::new(),
        ports: HashMap::new(),
        sends: Vec::new(),
        unsent: Vec::new(),
    };
    let figures = move || {
        let Counts {
            requests,
            stamps,
            serves,
        } = &*counts;
        [
            ("oracle_requests", requests.load(Ordering::Relaxed)),
            ("oracle_stamps", stamps.load(Ordering::Relaxed)),
            ("oracle_serves", serves.load(Ordering::Relaxed)),
        ]
    };
    Lone::start(TASK, options, listener, figures, |reactor, stop| {
        serve(reactor, desk, stop)
    })
}

fn serve(mut reactor: Reactor, mut desk: Desk, stop: &AtomicBool) -> Result<()> {
    let mut ticked = 0;
    while !stop.load(Ordering::Acquire) {
        let frames = reactor.poll(&mut desk).map_err(from_net)?;
        let now = desk.time.now();
        if now >= ticked + LOOK.as_nanos() as u64 {
            ticked = now;
            desk.tick(now);
        }
        desk.post();
        for (port, head, body) in std::mem::take(&mut desk.unsent) {
            if let Err(SendError::Full { .. }) = reactor.send(port, head, &[&body]) {
                // It does not read: it calls again, and hears what it missed.
                reactor.close(port);
                desk.gone(port);
            }
        }
        reactor.idle(frames > 0, LOOK).map_err(from_net)?;
    }
    Ok(())
}

/// A database, as its processes describe it.
struct Database {
    map: Map,
    identities: Vec<u64>,
    /// The connection of each thread of each process.
    ports: Vec<Vec<Option<PortId>>>,
    candidate: Candidate,
}

struct Desk {
    token: Option<Token>,
    time: Time,
    counts: Arc<Counts>,
    database: Option<Database>,
    clients: HashSet<PortId>,
    /// Which thread of which process is at the other end.
    ports: HashMap<PortId, (usize, usize)>,
    sends: Vec<(Address, Message)>,
    unsent: Vec<(PortId, Head, Vec<u8>)>,
}

impl Handler for Desk {
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        match self.take(port, frame, out) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                let head = Head {
                    verb: REFUSED,
                    flags: 0,
                    request: frame.head.request,
                };
                // Who cannot be told why sees that the connection ends.
                let _ = out.send(head, &[&encode_refusal(&error)]);
                ControlFlow::Break(())
            }
        }
    }

    fn is_admitted(&self, port: PortId) -> bool {
        self.ports.contains_key(&port) || self.clients.contains(&port)
    }

    fn close(&mut self, port: PortId, _why: Closed) {
        self.gone(port);
    }
}

impl Desk {
    /// An error ends the connection.
    fn take(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        let answer = |out: &mut Outbound, verb: u8, body: &[u8]| {
            let head = Head { verb, ..frame.head };
            out.send(head, &[body]).map_err(unavailable)
        };
        let member = self.ports.get(&port).copied();
        let known = member.is_some() || self.clients.contains(&port);
        match frame.head.verb {
            MEMBER_HELLO => {
                let hello = MemberHello::decode(frame.body)?;
                self.check(&hello.token)?;
                self.joins(port, hello)?;
                answer(out, MEMBER_WELCOME, &[1])
            }
            HELLO => {
                self.check(&Hello::decode(frame.body)?.token)?;
                let database = self.database.as_ref();
                let partitions = database.map(|database| database.map.partitions);
                let welcome = Welcome {
                    cores: 1,
                    partitions: partitions
                        .ok_or_else(|| unavailable("no process with partitions has come yet"))?,
                    durability: Durability::Memory,
                };
                self.clients.insert(port);
                answer(out, WELCOME, &welcome.encode())
            }
            MAP_ASK if known => {
                let map = self.database.as_ref().map(|database| database.map.encode());
                answer(out, MAP, &map.unwrap_or_default())
            }
            MESSAGE if known && frame.head.request == ORACLE => {
                let message = Message::decode(frame.body)?;
                if let Message::TakeStamps { count, .. } = &message {
                    self.counts.requests.fetch_add(1, Ordering::Relaxed);
                    let count = u64::from(*count);
                    self.counts.stamps.fetch_add(count, Ordering::Relaxed);
                    self.hear(Address::Client(port.number()), message);
                }
                Ok(())
            }
            BETWEEN => {
                let (from, message) = read_between(frame.body)?;
                match (member, from) {
                    (Some((part, _)), Address::Partition(id)) if self.is_of(part, id) => {
                        self.hear(from, message);
                        Ok(())
                    }
                    _ => Err(bad_argument(
                        "this connection does not speak for that partition",
                    )),
                }
            }
            _ => Err(Error::new(
                Code::NotSupported,
                "this process gives stamps (role `oracle`): its first frame is a hello, and it has no rows",
            )),
        }
    }

    fn check(&self, shown: &[u8]) -> Result<()> {
        match &self.token {
            Some(token) if !token.is(shown) => {
                Err(Error::new(Code::Denied, "the token is not this server's"))
            }
            _ => Ok(()),
        }
    }

    fn is_of(&self, part: usize, partition: PartitionId) -> bool {
        let map = self.database.as_ref().map(|database| &database.map);
        map.is_some_and(|map| {
            partition < map.partitions && partition as usize % map.parts.len() == part
        })
    }

    /// A thread of a process says who it is.
    fn joins(&mut self, port: PortId, hello: MemberHello) -> Result<()> {
        let sound = (1..=PARTS_MAX).contains(&hello.of)
            && hello.part < hello.of
            && (1..=THREADS_MAX).contains(&hello.threads)
            && hello.thread < hello.threads
            && (hello.of..=65_536).contains(&hello.partitions);
        if !sound {
            return Err(bad_argument(
                "a process that describes itself in a way that makes no sense",
            ));
        }
        let database = self.database.get_or_insert_with(|| {
            let salt = dyno_txn_log::fresh_identity() as u32;
            Database {
                map: Map::unknown(hello.partitions, hello.of),
                identities: vec![0; hello.of as usize],
                ports: vec![Vec::new(); hello.of as usize],
                candidate: Candidate::new(0..hello.partitions, salt),
            }
        });
        let part = hello.part as usize;
        let same = database.map.partitions == hello.partitions
            && database.map.parts.len() == hello.of as usize;
        if !same {
            return Err(bad_argument(format!(
                "part {} of {} with {} partitions in all: this oracle's database has {} parts and {} partitions",
                hello.part,
                hello.of,
                hello.partitions,
                database.map.parts.len(),
                database.map.partitions
            )));
        }
        let identity = &mut database.identities[part];
        if *identity != 0 && *identity != hello.identity {
            return Err(bad_argument(format!(
                "part {part}: another directory has joined as this part since this oracle was started, and its rows are \
                 not here. Start that directory, or stop all processes and oracles and start all anew"
            )));
        }
        *identity = hello.identity;
        let (address, threads) = (hello.address, hello.threads);
        database.ports[part].resize(threads as usize, None);
        database.ports[part][hello.thread as usize] = Some(port);
        database.map.parts[part] = Part { address, threads };
        self.ports.insert(port, (part, hello.thread as usize));
        self.tell_map();
        Ok(())
    }

    /// Tells everybody where everybody is.
    fn tell_map(&mut self) {
        let Some(database) = &self.database else {
            return;
        };
        let (map, head) = (
            database.map.encode(),
            Head {
                verb: MAP,
                flags: 0,
                request: 0,
            },
        );
        let ports = database.ports.iter().flatten().flatten();
        self.unsent
            .extend(ports.map(|&port| (port, head, map.clone())));
    }

    fn gone(&mut self, port: PortId) {
        self.clients.remove(&port);
        let (Some((part, thread)), Some(database)) = (self.ports.remove(&port), &mut self.database)
        else {
            return;
        };
        if let Some(place) = database.ports[part].get_mut(thread) {
            place.take_if(|other| *other == port);
        }
    }

    fn hear(&mut self, from: Address, message: Message) {
        let now = self.time.now();
        let wall = self.time.wall(now);
        if let Some(database) = &mut self.database {
            let candidate = &mut database.candidate;
            candidate.handle(now, wall, from, message, &mut self.sends);
        }
    }

    fn tick(&mut self, now: u64) {
        let wall = self.time.wall(now);
        if let Some(database) = &mut self.database {
            database.candidate.tick(now, wall, &mut self.sends);
            let serves = u64::from(database.candidate.serves());
            self.counts.serves.store(serves, Ordering::Relaxed);
        }
    }

    /// Makes frames of what the oracle wants said.
    fn post(&mut self) {
        for (to, message) in std::mem::take(&mut self.sends) {
            let mut body = Vec::new();
            let (port, verb, request) = match to {
                Address::Client(number) => {
                    message.encode(&mut body);
                    (Some(PortId::numbered(number)), MESSAGE, ORACLE)
                }
                Address::Partition(id) => {
                    encode_between(Address::Oracle(0), &message, &mut body);
                    (self.port_of(id), BETWEEN, id)
                }
                Address::Oracle(_) => continue,
            };
            let head = Head {
                verb,
                flags: 0,
                request,
            };
            self.unsent.extend(port.map(|port| (port, head, body)));
        }
    }

    fn port_of(&self, partition: PartitionId) -> Option<PortId> {
        let database = self.database.as_ref()?;
        let (part, thread) = database.map.home(partition)?;
        database.ports[part].get(thread).copied().flatten()
    }
}
