//! Partitions, their logs and the network between them: everything happens in a random order that
//! the seed decides.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_sim::Random;
use dyno_txn_api::{Procedures, Timestamp};
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::oracle::Clock;
use dyno_txn_core::planted::Planted;
use dyno_txn_core::{Config, Effects, Partition, Timestamps};

/// What can happen to messages and partitions: one in so many, 0 for never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub lose: usize,
    pub repeat: usize,
    pub crash: usize,
}

/// The oracle of the process, and its time.
#[derive(Clone)]
pub struct Shared {
    pub clock: Arc<Clock>,
    pub now: Arc<AtomicU64>,
}

impl Shared {
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

impl Timestamps for Shared {
    fn next(&mut self) -> Option<Timestamp> {
        self.clock.issue(self.now())
    }

    fn plausible(&mut self, timestamp: Timestamp) -> bool {
        timestamp <= self.clock.last()
    }
}

struct Server {
    partition: Partition,
    /// Records that survive a crash, and those that may.
    durable: Vec<Vec<u8>>,
    pending: VecDeque<Vec<u8>>,
}

pub struct Cluster {
    pub random: Random,
    pub shared: Shared,
    pub faults: Faults,
    pub crashes: u32,
    servers: Vec<Server>,
    procedures: Procedures,
    planted: Planted,
    log: bool,
    flying: Vec<(Address, Address, Message)>,
    /// What came for clients.
    pub arrived: VecDeque<(u64, Address, Message)>,
}

impl Cluster {
    pub fn new(seed: u64, partitions: u32, log: bool, procedures: Procedures) -> Self {
        let shared = Shared {
            clock: Arc::new(Clock::new(0, u64::MAX)),
            now: Arc::new(AtomicU64::new(1_000_000_000)),
        };
        let mut cluster = Self {
            random: Random::new(seed),
            shared,
            faults: Faults::default(),
            crashes: 0,
            servers: Vec::new(),
            procedures,
            planted: Planted::none(),
            log,
            flying: Vec::new(),
            arrived: VecDeque::new(),
        };
        for id in 0..partitions {
            let partition = cluster.make(id, partitions);
            let (durable, pending) = (Vec::new(), VecDeque::new());
            cluster.servers.push(Server {
                partition,
                durable,
                pending,
            });
        }
        cluster
    }

    #[cfg_attr(
        not(feature = "planted-bugs"),
        expect(dead_code, reason = "only with bugs")
    )]
    pub fn plant(&mut self, planted: Planted) {
        self.planted = planted;
        let partitions = self.servers.len() as u32;
        for id in 0..partitions {
            self.servers[id as usize].partition = self.make(id, partitions);
        }
    }

    fn make(&self, id: u32, partitions: u32) -> Partition {
        let mut config = Config::new(id, partitions);
        config.log = self.log;
        config.planted = self.planted;
        Partition::new(
            config,
            self.procedures.clone(),
            Box::new(self.shared.clone()),
        )
    }

    /// Whether clients may not learn how a transaction ended.
    pub fn faulty(&self) -> bool {
        self.faults.lose > 0 || self.faults.crash > 0
    }

    pub fn partitions(&self) -> u32 {
        self.servers.len() as u32
    }

    pub fn server(&self, id: u32) -> &Partition {
        &self.servers[id as usize].partition
    }

    pub fn send(&mut self, from: Address, to: Address, message: Message) {
        self.flying.push((from, to, message));
    }

    /// One thing happens. False when nothing is under way.
    pub fn step(&mut self) -> bool {
        let pass = if self.flying.is_empty() {
            2_000_000
        } else {
            self.random.below(20_000) as u64
        };
        self.shared.now.fetch_add(pass, Ordering::Relaxed);
        if self.faults.crash > 0 && self.random.one_in(self.faults.crash) {
            let id = self.random.below(self.servers.len());
            self.crash(id as u32);
            return true;
        }
        let id = self.random.below(self.servers.len());
        if !self.servers[id].pending.is_empty() && self.random.one_in(3) {
            self.sync(id as u32);
        }
        self.tick(id as u32);
        let idle = self.flying.is_empty();
        self.deliver_one();
        !idle || self.servers.iter().any(|server| !server.pending.is_empty())
    }

    fn deliver_one(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let at = self.random.below(self.flying.len());
        let (from, to, message) = self.flying.swap_remove(at);
        let once = matches!(
            &message,
            Message::OneShot {
                timestamp: None,
                ..
            }
        );
        if self.faults.lose > 0 && self.random.one_in(self.faults.lose) {
            return;
        }
        if self.faults.repeat > 0 && !once && self.random.one_in(self.faults.repeat) {
            self.flying.push((from, to, message.clone()));
        }
        // Every message goes over the wire and back.
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let message = Message::decode(&bytes).expect("what was encoded decodes");
        let in_bytes = self.random.one_in(2);
        match to {
            Address::Partition(id) => self.with(id, |server, now, effects| {
                if in_bytes {
                    let taken = server.partition.handle_bytes(now, from, &bytes, effects);
                    taken.expect("what was encoded decodes");
                } else {
                    server.partition.handle(now, from, message, effects);
                }
            }),
            Address::Client(id) => self.arrived.push_back((id, from, message)),
            Address::Oracle(_) => {}
        }
    }

    fn with(&mut self, id: u32, call: impl FnOnce(&mut Server, u64, &mut Effects)) {
        let now = self.shared.now();
        let server = &mut self.servers[id as usize];
        let mut effects = Effects::default();
        call(server, now, &mut effects);
        server
            .pending
            .extend(effects.records.iter().map(<[u8]>::to_vec));
        for (to, message) in effects.sends {
            self.flying.push((Address::Partition(id), to, message));
        }
        for (client, from, bytes) in effects.answers.iter() {
            let message = Message::decode(bytes).expect("an answer is a message");
            self.flying
                .push((Address::Partition(from), Address::Client(client), message));
        }
    }

    fn tick(&mut self, id: u32) {
        let now = self.shared.now();
        if self.server(id).wake_at().is_some_and(|at| at <= now) {
            self.with(id, |server, now, effects| {
                server.partition.tick(now, effects)
            });
        }
    }

    /// Some of the records become durable.
    fn sync(&mut self, id: u32) {
        let server = &mut self.servers[id as usize];
        let count = 1 + self.random.below(server.pending.len());
        server.durable.extend(server.pending.drain(..count));
        let position = server.durable.len() as u64;
        self.with(id, |server, now, effects| {
            server.partition.durable(now, position, effects)
        });
    }

    /// The partition loses all but its log, a part of what was being written included, and begins
    /// anew; what was on its way to it is lost.
    pub fn crash(&mut self, id: u32) {
        if !self.log {
            return;
        }
        self.crashes += 1;
        self.flying
            .retain(|(_, to, _)| *to != Address::Partition(id));
        let mut partition = self.make(id, self.partitions());
        let random = &mut self.random;
        let server = &mut self.servers[id as usize];
        let survive = random.below(server.pending.len() + 1);
        server.durable.extend(server.pending.drain(..survive));
        server.pending.clear();
        if random.one_in(3) {
            Self::checkpoint(server, &mut partition);
        } else {
            for record in &server.durable {
                partition
                    .restore(record)
                    .expect("a record that was written");
            }
        }
        partition.start_at(server.durable.len() as u64);
        server.partition = partition;
        let floor = self
            .shared
            .clock
            .issue(self.shared.now())
            .expect("no bound");
        self.with(id, |server, now, effects| {
            let done = server.partition.finish_recovery(now, floor, effects);
            done.expect("the floor is above all");
        });
    }

    /// Restores through a checkpoint of what the log gives, as if it had been taken at its end.
    fn checkpoint(server: &Server, partition: &mut Partition) {
        let mut before = Partition::new(
            Config::new(u32::MAX, 1),
            Procedures::new(),
            Box::new(Shared {
                clock: Arc::new(Clock::new(0, 0)),
                now: Arc::new(AtomicU64::new(0)),
            }),
        );
        // Record holder and participants are told apart by the partition's number: the log is read
        // by one that is none of them, which keeps both.
        for record in &server.durable {
            before.restore(record).expect("a record that was written");
        }
        let mut records = Vec::new();
        let mut write = |record: &[u8]| records.push(record.to_vec());
        let mut at = before.begin_checkpoint(&mut write);
        while before.go_on_checkpoint(&mut at, &mut write) {}
        for record in records {
            partition
                .restore(&record)
                .expect("a record of the checkpoint");
        }
    }

    /// Until nothing is under way, without faults.
    pub fn settle(&mut self) {
        self.faults = Faults::default();
        for _ in 0..20_000 {
            self.step();
        }
    }
}
