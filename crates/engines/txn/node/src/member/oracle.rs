//! The process of role `oracle`: one thread that issues timestamps and tells all processes where
//! the others are. It stores nothing: the partitions keep what it promises, and processes introduce
//! themselves again when it is started again.

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

use super::cluster_map::{PARTITIONS_MAX, PROCESSES_MAX, THREADS_MAX};
use super::{ClusterMap, Process};
use crate::error::{bad_argument, from_net, unavailable};
use crate::greet::{check_token, end_on_error};
use crate::hello::{
    HELLO, Hello, MAP, MAP_ASK, MEMBER_HELLO, MEMBER_WELCOME, MESSAGE, MemberHello, ORACLE,
    PEER_MESSAGE, WELCOME, Welcome, decode_peer_message, encode_peer_message,
};
use crate::options::{Durability, OpenOptions};
use crate::standalone::{Purpose, StandaloneService};
use crate::time::Time;

/// How often timers are looked at if nothing else happens.
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct Counts {
    requests: Arc<AtomicU64>,
    timestamps: Arc<AtomicU64>,
    /// 1 while it issues timestamps, 0 while another oracle does.
    serves: Arc<AtomicU64>,
}

const PURPOSE: Purpose = Purpose {
    role: "oracle",
    activity: "issues timestamps",
};

/// Starts an oracle.
pub(crate) fn start(
    options: &OpenOptions,
    token: Option<Token>,
    listener: Listener,
) -> Result<StandaloneService> {
    let counts = Counts::default();
    let figures = vec![
        ("oracle_requests", counts.requests.clone()),
        ("oracle_stamps", counts.timestamps.clone()),
        ("oracle_serves", counts.serves.clone()),
    ];
    let oracle = OracleHandler {
        token,
        time: Time::start(),
        counts,
        database: None,
        clients: HashSet::new(),
        workers: HashMap::new(),
        sends: Vec::new(),
        unsent: Vec::new(),
    };
    StandaloneService::start(PURPOSE, options, listener, figures, |reactor, stop| {
        serve(reactor, oracle, stop)
    })
}

fn serve(mut reactor: Reactor, mut oracle: OracleHandler, stop: &AtomicBool) -> Result<()> {
    let mut ticked = 0;
    while !stop.load(Ordering::Acquire) {
        let frames = reactor.poll(&mut oracle).map_err(from_net)?;
        let now = oracle.time.now();
        if now >= ticked + TICK.as_nanos() as u64 {
            ticked = now;
            oracle.tick(now);
        }
        oracle.encode_sends();
        for Unsent { port, head, body } in std::mem::take(&mut oracle.unsent) {
            if let Err(SendError::Full { .. }) = reactor.send(port, head, &[&body]) {
                // The other end does not read. Nothing is kept for it: it connects again, and then
                // gets the newest map and asks again for what it missed.
                reactor.close(port);
                oracle.disconnect(port);
            }
        }
        reactor.idle(frames > 0, TICK).map_err(from_net)?;
    }
    Ok(())
}

/// A database, as its processes describe it.
struct Database {
    map: ClusterMap,
    /// The directory of each process; 0 until it has joined.
    identities: Vec<u64>,
    /// The connection of each thread of each process.
    ports: Vec<Vec<Option<PortId>>>,
    candidate: Candidate,
}

/// A thread of a process.
#[derive(Debug, Clone, Copy)]
struct WorkerId {
    process: usize,
    thread: usize,
}

struct Unsent {
    port: PortId,
    head: Head,
    body: Vec<u8>,
}

struct OracleHandler {
    token: Option<Token>,
    time: Time,
    counts: Counts,
    /// `None` until the first process has joined.
    database: Option<Database>,
    clients: HashSet<PortId>,
    /// The thread at the other end of a connection.
    workers: HashMap<PortId, WorkerId>,
    /// What the protocol wants sent, before it is encoded.
    sends: Vec<(Address, Message)>,
    unsent: Vec<Unsent>,
}

impl Handler for OracleHandler {
    fn frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> ControlFlow<()> {
        let handled = self.on_frame(port, frame, out);
        end_on_error(handled, frame.head.request, out)
    }

    fn is_admitted(&self, port: PortId) -> bool {
        self.workers.contains_key(&port) || self.clients.contains(&port)
    }

    fn close(&mut self, port: PortId, _why: Closed) {
        self.disconnect(port);
    }
}

impl OracleHandler {
    /// An error ends the connection.
    fn on_frame(&mut self, port: PortId, frame: FrameRef<'_>, out: &mut Outbound) -> Result<()> {
        let answer = |out: &mut Outbound, verb: u8, body: &[u8]| {
            let head = Head { verb, ..frame.head };
            out.send(head, &[body]).map_err(unavailable)
        };
        let worker = self.workers.get(&port).copied();
        let is_known = worker.is_some() || self.clients.contains(&port);
        match frame.head.verb {
            MEMBER_HELLO => {
                let hello = MemberHello::decode(frame.body)?;
                check_token(self.token.as_ref(), &hello.token)?;
                self.join(port, hello)?;
                answer(out, MEMBER_WELCOME, &[1])
            }
            HELLO => {
                let hello = Hello::decode(frame.body)?;
                check_token(self.token.as_ref(), &hello.token)?;
                let database = self.database.as_ref();
                let partitions = database.map(|database| database.map.partitions);
                let welcome = Welcome {
                    cores: 1,
                    partitions: partitions
                        .ok_or_else(|| unavailable("no process with partitions has joined yet"))?,
                    durability: Durability::Memory,
                };
                self.clients.insert(port);
                answer(out, WELCOME, &welcome.encode())
            }
            MAP_ASK if is_known => {
                let map = self.database.as_ref().map(|database| database.map.encode());
                answer(out, MAP, &map.unwrap_or_default())
            }
            MESSAGE if is_known && frame.head.request == ORACLE => {
                let message = Message::decode(frame.body)?;
                if let Message::TakeTimestamps { count, .. } = &message {
                    self.counts.requests.fetch_add(1, Ordering::Relaxed);
                    let count = u64::from(*count);
                    self.counts.timestamps.fetch_add(count, Ordering::Relaxed);
                    self.on_message(Address::Client(port.number()), message);
                }
                Ok(())
            }
            PEER_MESSAGE => {
                // A bound counts when most partitions have confirmed it. A process that confirmed
                // for partitions of others could make a bound count that a restart knows nothing
                // of, and timestamps below it would be issued twice.
                let (from, message) = decode_peer_message(frame.body)?;
                match (worker, from) {
                    (Some(worker), Address::Partition(id)) if self.is_of(worker.process, id) => {
                        self.on_message(from, message);
                        Ok(())
                    }
                    _ => Err(bad_argument(
                        "this connection does not speak for that partition",
                    )),
                }
            }
            _ => Err(Error::new(
                Code::NotSupported,
                "this process issues timestamps (role `oracle`): the first frame must be a hello, \
                 and it has no rows",
            )),
        }
    }

    fn is_of(&self, process: usize, partition: PartitionId) -> bool {
        let map = self.database.as_ref().map(|database| &database.map);
        map.is_some_and(|map| {
            partition < map.partitions && partition as usize % map.processes.len() == process
        })
    }

    /// A thread of a process introduces itself. The first one to come decides the form of the
    /// database, and a later one of another form is refused.
    fn join(&mut self, port: PortId, hello: MemberHello) -> Result<()> {
        // Everything is bounded before memory is allocated by it.
        let is_sound = (1..=PROCESSES_MAX).contains(&hello.of)
            && hello.part < hello.of
            && (1..=THREADS_MAX).contains(&hello.threads)
            && hello.thread < hello.threads
            && (hello.of..=PARTITIONS_MAX).contains(&hello.partitions);
        if !is_sound {
            return Err(bad_argument(
                "the process describes itself by numbers that cannot be",
            ));
        }
        let database = self.database.get_or_insert_with(|| {
            let salt = dyno_txn_log::fresh_identity() as u32;
            Database {
                map: ClusterMap::unknown(hello.partitions, hello.of),
                identities: vec![0; hello.of as usize],
                ports: vec![Vec::new(); hello.of as usize],
                candidate: Candidate::new(0..hello.partitions, salt),
            }
        });
        let process = hello.part as usize;
        let is_same = database.map.partitions == hello.partitions
            && database.map.processes.len() == hello.of as usize;
        if !is_same {
            return Err(bad_argument(format!(
                "part {} of {} with {} partitions in all: this oracle's database has {} parts and \
                 {} partitions",
                hello.part,
                hello.of,
                hello.partitions,
                database.map.processes.len(),
                database.map.partitions
            )));
        }
        // Another directory as the same part has not the rows that the first one answered for. If
        // it joined, clients would read an emptier database without noticing.
        let identity = &mut database.identities[process];
        if *identity != 0 && *identity != hello.identity {
            return Err(bad_argument(format!(
                "part {process}: another directory has joined as this part since this oracle was \
                 started, and its rows are not here. Start that directory, or stop all processes \
                 and oracles and start all anew"
            )));
        }
        *identity = hello.identity;
        let (address, threads) = (hello.address, hello.threads);
        let thread = hello.thread as usize;
        // A process that was started again may have fewer threads than before.
        database.ports[process].resize(threads as usize, None);
        database.ports[process][thread] = Some(port);
        database.map.processes[process] = Process { address, threads };
        self.workers.insert(port, WorkerId { process, thread });
        self.send_map();
        Ok(())
    }

    /// Sends the map to all threads of all processes.
    fn send_map(&mut self) {
        let Some(database) = &self.database else {
            return;
        };
        let map = database.map.encode();
        let head = Head {
            verb: MAP,
            flags: 0,
            request: 0,
        };
        let ports = database.ports.iter().flatten().flatten();
        self.unsent.extend(ports.map(|&port| Unsent {
            port,
            head,
            body: map.clone(),
        }));
    }

    fn disconnect(&mut self, port: PortId) {
        self.clients.remove(&port);
        let (Some(WorkerId { process, thread }), Some(database)) =
            (self.workers.remove(&port), &mut self.database)
        else {
            return;
        };
        // Only if no newer connection of that thread has taken its place.
        if let Some(current) = database.ports[process].get_mut(thread) {
            current.take_if(|current| *current == port);
        }
    }

    fn on_message(&mut self, from: Address, message: Message) {
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

    /// Makes frames of what the protocol wants sent. A message for a partition whose process is
    /// away is dropped; the protocol repeats it.
    fn encode_sends(&mut self) {
        for (to, message) in std::mem::take(&mut self.sends) {
            let mut body = Vec::new();
            let (port, verb, request) = match to {
                Address::Client(number) => {
                    message.encode(&mut body);
                    (Some(PortId::numbered(number)), MESSAGE, ORACLE)
                }
                Address::Partition(id) => {
                    encode_peer_message(Address::Oracle(0), &message, &mut body);
                    (self.port_for(id), PEER_MESSAGE, id)
                }
                Address::Oracle(_) => continue,
            };
            let head = Head {
                verb,
                flags: 0,
                request,
            };
            self.unsent
                .extend(port.map(|port| Unsent { port, head, body }));
        }
    }

    fn port_for(&self, partition: PartitionId) -> Option<PortId> {
        let database = self.database.as_ref()?;
        let (process, thread) = database.map.home(partition)?;
        database.ports[process].get(thread).copied().flatten()
    }
}
