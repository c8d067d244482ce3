//! The simulated world of a run, and the dispatch of its events to nodes.

use std::collections::HashSet;

use dyno_sim::{Cut, Event, NodeId, Random, Settings, World};
use dyno_txn_api::{Procedures, TableId};
use dyno_txn_core::message::{Address, Message, PartitionId};
use dyno_txn_core::placement::partition_of;
use dyno_txn_core::{Schema, Timestamps};

use super::Options;
use super::chosen::Chosen;
use super::client::{BATCHERS, Client};
use super::core::{Core, Wants};
use super::oracles::{Elsewhere, Local, Oracles};
use super::session::Session;
use crate::history::{History, Key};
use crate::verdict::Rule;
use crate::workload::{self, Tables};

pub(super) const MS: u64 = 1_000_000;
/// The address of the client that creates the tables.
pub(super) const MAKER: u64 = BATCHERS - 1;
/// How often oracles do their periodic work.
pub(super) const LOOK_NS: u64 = 60 * MS;
/// The longest time for which an oracle is cut off.
const CUT_OFF_NS: u64 = 5_000 * MS;
/// A message in flight.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    from: Address,
    to: Address,
    message: Message,
}

/// What a timer was set for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timer {
    Wake {
        core: usize,
    },
    Look {
        core: usize,
    },
    Checkpoint {
        core: usize,
    },
    Recover {
        core: usize,
    },
    Oracle {
        number: usize,
    },
    /// The oracle within the server wants its bound stored.
    Keep,
    Failover,
    Heal {
        node: NodeId,
    },
    Start {
        node: NodeId,
    },
    Timestamps {
        client: usize,
        request: u64,
    },
    Session {
        session: usize,
        turn: u64,
    },
    Next {
        session: usize,
    },
}

pub(super) struct Cluster {
    pub chosen: Chosen,
    pub world: World<Envelope, Timer>,
    pub cores: Vec<Core>,
    pub clients: Vec<Client>,
    pub sessions: Vec<Session>,
    pub tables: Tables,
    pub schema: Schema,
    pub history: History,
    pub oracles: Oracles,
    pub local: Local,
    /// How much faster each node's clock runs than the world's, in parts per million.
    rates: Vec<i64>,
    pub random: Random,
    next_id: u64,
    pub storming: bool,
    /// One-shots without a timestamp that have arrived. A connection delivers none of them twice,
    /// while the simulated network may.
    arrived: HashSet<(Address, u64)>,
    /// Breaches that the history does not show, as sentences.
    pub broken: Vec<(Rule, String)>,
    pub lying_disks: bool,
}

impl Cluster {
    pub fn new(chosen: Chosen, options: &Options) -> Self {
        let mut settings = Settings::calm(chosen.seed);
        settings.link = chosen.calm_link();
        settings.clock = chosen.clock;
        settings.late_messages = chosen.late_messages;
        settings.lines = options.lines;
        let mut world = World::new(settings);
        let mut random = Random::fork(chosen.seed, "cluster");
        let local = Local::new();
        let mut cores = Vec::new();
        for server in 0..chosen.servers {
            let node = world.add_node(&format!("server {server}"));
            for core in 0..chosen.cores {
                let id = server as u32 * chosen.cores + core;
                let config = chosen.config(id, options.planted);
                cores.push(Core::new(
                    node,
                    config,
                    procedures(),
                    timestamps(chosen, &local),
                ));
            }
        }
        let oracles = if chosen.in_process {
            Vec::new()
        } else {
            ["oracle 0", "oracle 1"]
                .map(|name| world.add_node(name))
                .to_vec()
        };
        let client = |number| Client::new(world.add_node(&format!("client {number}")));
        let clients: Vec<Client> = (0..chosen.clients).map(client).collect();
        let session = |number: usize| {
            let random = Random::fork(chosen.seed, &format!("session {number}"));
            Session::new(number % chosen.clients, random)
        };
        let sessions = (0..chosen.clients * chosen.sessions).map(session).collect();
        let rates = world
            .nodes()
            .map(|_| random.between(0, 80_000) as i64 - 40_000)
            .collect();
        Self {
            chosen,
            oracles: Oracles::new(oracles, chosen.partitions()),
            world,
            cores,
            clients,
            sessions,
            tables: Tables {
                ids: [TableId(0); 3],
            },
            schema: Schema::default(),
            history: History::default(),
            local,
            rates,
            random,
            next_id: 0,
            storming: false,
            arrived: HashSet::new(),
            broken: Vec::new(),
            lying_disks: options.lying_disks,
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn into_history(self) -> History {
        self.history
    }

    /// Notes that something did not end, or is not what it must be.
    pub(super) fn complain(&mut self, sentence: String) {
        self.broken.push((Rule::Liveness, sentence));
    }

    pub(super) fn event(&mut self, event: Event<Envelope, Timer>) {
        match event {
            Event::Message { to, message, .. } => self.deliver(to, message),
            Event::Timer { node, timer } => self.on_timer(node, timer),
            Event::Crash { node } => self.on_crash(node),
            Event::Start { node } => self.start(node),
        }
    }

    fn deliver(&mut self, node: NodeId, envelope: Envelope) {
        let Envelope { from, to, message } = envelope;
        match to {
            Address::Partition(id) => self.on_core_message(id as usize, from, message),
            Address::Oracle(number) => {
                let clocks = (self.mono(node), self.world.wall_ns(node));
                self.on_oracle_message(number as usize, clocks, from, message);
            }
            Address::Client(MAKER) => {}
            Address::Client(number) if number >= BATCHERS => {
                let client = (number - BATCHERS) as usize;
                if let Message::Timestamps { ticket, result } = message {
                    match result {
                        Ok(first) => self.on_timestamps(client, ticket, first),
                        Err(_) => self.on_timestamps_refused(client),
                    }
                }
            }
            Address::Client(number) => self.on_session_message(number as usize, from, message),
        }
    }

    fn on_core_message(&mut self, core: usize, from: Address, message: Message) {
        let node = self.cores[core].node;
        if let Message::Timestamps { ticket, result } = &message {
            // The answer to a request of an earlier life may be below timestamps that were issued
            // since.
            let asked = self.cores[core].recovering == Some(*ticket);
            if let (true, Ok(timestamp)) = (asked, result) {
                self.recovered(core, *timestamp);
            }
            return;
        }
        // A retry of this message would run the transaction twice, because it has no timestamp to
        // know it by. The engine gets it over a connection, which does not repeat messages.
        if let Message::OneShot {
            ticket,
            timestamp: None,
            ..
        } = &message
            && !self.arrived.insert((from, *ticket))
        {
            return;
        }
        let now = self.mono(node);
        self.show_wall(node);
        let wants = self.cores[core].handle(now, from, message);
        self.apply(core, wants);
    }

    fn on_oracle_message(
        &mut self,
        number: usize,
        clocks: (u64, u64),
        from: Address,
        message: Message,
    ) {
        let to_oracle = Address::Oracle(number as u32);
        if !self.chosen.in_process {
            let node = self.oracles.nodes[number];
            for (to, message) in self.oracles.handle(number, clocks, from, message) {
                self.post(node, to_oracle, to, message);
            }
            return;
        }
        let node = self.cores[0].node;
        self.show_wall(node);
        match message {
            Message::BoundKept { bound, .. } => self.local.extend(bound),
            Message::TakeTimestamps { ticket, count } => {
                let answer = self.local.answer(ticket, count);
                self.post(node, to_oracle, from, answer);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, node: NodeId, timer: Timer) {
        let now = self.mono(node);
        self.show_wall(node);
        match timer {
            Timer::Wake { core } => {
                let wants = self.cores[core].tick(now);
                self.apply(core, wants);
            }
            Timer::Look { core } => {
                let wants = self.cores[core].look(now);
                self.apply(core, wants);
            }
            Timer::Checkpoint { core } => {
                let more = self.cores[core].go_on_checkpoint();
                self.apply(core, Wants::default());
                // The step may have failed the disk, and with it the node.
                if !self.world.is_up(node) {
                    return;
                }
                if more {
                    self.world.set_timer(node, MS, timer);
                } else {
                    self.plan_checkpoint(core);
                }
            }
            Timer::Recover { core } => self.ask_for_floor(core),
            Timer::Oracle { number } => {
                let clocks = (now, self.world.wall_ns(node));
                for (to, message) in self.oracles.tick(number, clocks) {
                    self.post(node, Address::Oracle(number as u32), to, message);
                }
                self.world.set_timer(node, LOOK_NS, timer);
            }
            Timer::Keep => {
                let server = self.cores[0].node;
                let (keep, from) = (self.local.keep(), Address::Oracle(0));
                self.post(server, from, Address::Partition(0), keep);
                self.world.set_timer(node, LOOK_NS, Timer::Keep);
            }
            Timer::Failover if self.storming => {
                self.cut_off_oracle();
                self.world
                    .set_timer(node, self.chosen.failover_every_ns, timer);
            }
            Timer::Failover => {}
            Timer::Heal { node } => self.world.nodes().for_each(|other| {
                self.world.heal(node, other);
                self.world.heal(other, node);
            }),
            Timer::Start { node } => {
                self.world.start(node);
                self.start(node);
            }
            Timer::Timestamps { client, request } => self.on_timestamps_timeout(client, request),
            Timer::Session { session, turn } => self.on_session_timer(session, turn),
            Timer::Next { session } => {
                if self.storming && self.sessions[session].is_idle() {
                    self.begin_any(session);
                }
            }
        }
    }

    /// Cuts off the oracle that serves, without telling it. It goes on serving the clients that
    /// reach it, until the other one has taken over.
    fn cut_off_oracle(&mut self) {
        if let Some(oracle) = self.oracles.serving() {
            self.world.part(&[oracle], Cut::Lose);
            // The timer belongs to a client node, because those do not crash in a storm: a timer is
            // lost with its node.
            let after = self.random.between(CUT_OFF_NS / 4, CUT_OFF_NS);
            let heal = Timer::Heal { node: oracle };
            let control = self.clients[0].node;
            self.world.set_timer(control, after, heal);
        }
    }

    /// Carries out what a partition wants.
    pub(super) fn apply(&mut self, core: usize, wants: Wants) {
        let node = self.cores[core].node;
        // The journal's disk has failed. Nothing that the partition said since may be sent, because
        // it may rest on records that were not written.
        if let Some(end) = self.cores[core].journal.ended().cloned() {
            return self.fails(core, &end);
        }
        for (to, message) in wants.sends {
            self.post(node, Address::Partition(core as u32), to, message);
        }
        if wants.look {
            let after = self.chosen.sync.draw_ns(&mut self.random);
            self.world.set_timer(node, after, Timer::Look { core });
        }
        if let Some(at) = wants.wake_at
            && self.cores[core].armed.is_none_or(|armed| at < armed)
        {
            self.cores[core].armed = Some(at);
            let after = at.saturating_sub(self.mono(node)) + 1;
            self.world.set_timer(node, after, Timer::Wake { core });
        }
    }

    /// Sends a message to the node of its receiver. One message in 32 is encoded and decoded first,
    /// so that the encoding is checked with everything that a run can produce.
    pub(super) fn post(&mut self, node: NodeId, from: Address, to: Address, message: Message) {
        if self.random.one_in(32) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            if Message::decode(&bytes).as_ref() != Ok(&message) {
                self.complain(format!("a message is not what its bytes say: {message:?}"));
            }
        }
        let receiver = match to {
            Address::Partition(id) => self.cores[id as usize].node,
            Address::Oracle(number) => match self.oracles.nodes.get(number as usize) {
                Some(&node) => node,
                None => self.cores[0].node,
            },
            Address::Client(MAKER) => self.clients[0].node,
            Address::Client(number) if number >= BATCHERS => {
                self.clients[(number - BATCHERS) as usize].node
            }
            Address::Client(number) => self.node_of(number as usize),
        };
        self.world
            .send(node, receiver, Envelope { from, to, message });
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn node_of(&self, session: usize) -> NodeId {
        self.clients[self.sessions[session].client].node
    }

    pub(super) fn home_of(&self, key: Key) -> PartitionId {
        let key = self.tables.key(key);
        let def = self.schema.table(key.table);
        def.map_or(0, |def| {
            partition_of(def, self.chosen.partitions(), &key.bytes)
        })
    }

    /// The monotonic clock of a node. It never goes back, but runs a little fast or slow.
    pub(super) fn mono(&self, node: NodeId) -> u64 {
        let now = i128::from(self.world.now_ns());
        (now + now * i128::from(self.rates[node.index()]) / 1_000_000) as u64
    }

    fn show_wall(&mut self, node: NodeId) {
        if self.chosen.in_process && node == self.cores[0].node {
            let wall = self.world.wall_ns(node);
            self.local.set_wall(wall);
        }
    }
}

pub(super) fn timestamps(chosen: Chosen, local: &Local) -> Box<dyn Timestamps + Send> {
    if chosen.in_process {
        Box::new(local.clone())
    } else {
        Box::new(Elsewhere)
    }
}

pub(super) fn procedures() -> Procedures {
    workload::procedures().unwrap_or_default()
}
