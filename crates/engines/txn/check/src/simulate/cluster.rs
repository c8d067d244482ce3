//! The world of a run, and which node gets what happens.

use std::collections::HashSet;

use dyno_sim::{Event, NodeId, Random, Settings, World};
use dyno_txn_api::{Procedures, TableId};
use dyno_txn_core::message::{Address, Message, PartitionId};
use dyno_txn_core::placement::partition_of;
use dyno_txn_core::{Schema, Stamps};

use super::Options;
use super::chosen::Chosen;
use super::client::{BATCHERS, Client};
use super::core::{Core, Wants};
use super::oracles::{Elsewhere, Local, Oracles};
use super::session::Session;
use crate::history::{History, Key};
use crate::work::{self, Tables};

pub(super) const MS: u64 = 1_000_000;
/// Who makes the tables.
pub(super) const MAKER: u64 = BATCHERS - 1;
/// How often oracles and who steers them look around.
const LOOK_NS: u64 = 60 * MS;
/// A message on its way.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    from: Address,
    to: Address,
    message: Message,
}

/// What a timer was set for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timer {
    Wake { core: usize },
    Synced { core: usize },
    Checkpoint { core: usize },
    Recover { core: usize },
    Oracle { number: usize },
    Steer,
    Failover,
    Stamps { client: usize, request: u64 },
    Session { session: usize, turn: u64 },
    Next { session: usize },
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
    /// How much faster each node's clock runs, parts per million.
    rates: Vec<i64>,
    random: Random,
    next_id: u64,
    pub storming: bool,
    /// One-shots without a stamp that have arrived: a connection brings none twice.
    arrived: HashSet<(Address, u64)>,
    pub unrest: Vec<String>,
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
                    stamps(chosen, &local),
                ));
            }
        }
        let oracles = match chosen.in_process {
            true => Vec::new(),
            false => ["oracle 0", "oracle 1"]
                .map(|name| world.add_node(name))
                .to_vec(),
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
            unrest: Vec::new(),
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn into_history(self) -> History {
        self.history
    }

    pub(super) fn complain(&mut self, sentence: String) {
        self.unrest.push(sentence);
    }

    pub(super) fn event(&mut self, event: Event<Envelope, Timer>) {
        match event {
            Event::Message { to, message, .. } => self.deliver(to, message),
            Event::Timer { node, timer } => self.woke(node, timer),
            Event::Crash { node } => {
                self.oracles.crash(node);
                for core in self.cores.iter_mut().filter(|core| core.node == node) {
                    core.crash(&mut self.random);
                }
            }
            Event::Start { node } => self.start(node),
        }
    }

    fn deliver(&mut self, node: NodeId, envelope: Envelope) {
        let Envelope { from, to, message } = envelope;
        match to {
            Address::Partition(id) => self.core_hears(id as usize, from, message),
            Address::Oracle(number) => {
                let clocks = (self.mono(node), self.world.wall_ns(node));
                self.oracle_hears(number as usize, clocks, from, message);
            }
            Address::Client(MAKER) => {}
            Address::Client(number) if number >= BATCHERS => {
                if let Message::Stamps { ticket, result } = message {
                    self.stamps_came((number - BATCHERS) as usize, ticket, result);
                }
            }
            Address::Client(number) => self.session_heard(number as usize, from, message),
        }
    }

    fn core_hears(&mut self, core: usize, from: Address, message: Message) {
        let node = self.cores[core].node;
        if let Message::Stamps { result, .. } = &message {
            if let (true, Ok(stamp)) = (self.cores[core].recovering, result) {
                self.recovered(core, *stamp);
            }
            return;
        }
        if let Message::OneShot {
            ticket,
            stamp: None,
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

    fn oracle_hears(&mut self, number: usize, clocks: (u64, u64), from: Address, message: Message) {
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
            Message::TakeStamps { ticket, count } => {
                let answer = self.local.answer(ticket, count);
                self.post(node, to_oracle, from, answer);
            }
            _ => {}
        }
    }

    fn woke(&mut self, node: NodeId, timer: Timer) {
        let now = self.mono(node);
        self.show_wall(node);
        match timer {
            Timer::Wake { core } => {
                let wants = self.cores[core].tick(now);
                self.apply(core, wants);
            }
            Timer::Synced { core } => {
                let wants = self.cores[core].synced(now);
                self.apply(core, wants);
            }
            Timer::Checkpoint { core } => {
                if self.cores[core].go_on_checkpoint() {
                    self.world.set_timer(node, MS, timer);
                } else {
                    self.plan_checkpoint(core);
                }
            }
            Timer::Recover { core } => self.ask_for_floor(core),
            Timer::Oracle { number } => {
                let wall = self.world.wall_ns(node);
                for (to, message) in self.oracles.tick(number, now, wall) {
                    self.post(node, Address::Oracle(number as u32), to, message);
                }
                self.world.set_timer(node, LOOK_NS, timer);
            }
            Timer::Steer => self.steer(node),
            Timer::Failover if self.storming => {
                self.take_over();
                self.world
                    .set_timer(node, self.chosen.failover_every_ns, timer);
            }
            Timer::Failover => {}
            Timer::Stamps { client, request } => self.stamps_are_late(client, request),
            Timer::Session { session, turn } => self.session_woke(session, turn),
            Timer::Next { session } => {
                if self.storming && self.sessions[session].is_idle() {
                    self.begin_any(session);
                }
            }
        }
    }

    /// Who steers the cluster sees an oracle that is gone, after a time, and lets the other take over.
    fn steer(&mut self, control: NodeId) {
        if self.chosen.in_process {
            let server = self.cores[0].node;
            let (keep, from) = (self.local.keep(), Address::Oracle(0));
            self.post(server, from, Address::Partition(0), keep);
        } else if self.oracles.is_headless() {
            self.take_over();
        }
        self.world.set_timer(control, LOOK_NS, Timer::Steer);
    }

    fn take_over(&mut self) {
        if self.chosen.in_process {
            return;
        }
        let other = 1 - self.oracles.active;
        let up = |number: usize| self.world.is_up(self.oracles.nodes[number]);
        let next = if up(other) {
            other
        } else {
            self.oracles.active
        };
        if up(next) {
            self.oracles.take_over(next);
        }
    }

    fn start(&mut self, node: NodeId) {
        if let Some(number) = self.oracles.nodes.iter().position(|&other| other == node) {
            self.world
                .set_timer(node, LOOK_NS, Timer::Oracle { number });
        }
        let mine: Vec<usize> = (0..self.cores.len())
            .filter(|&c| self.cores[c].node == node)
            .collect();
        for &core in &mine {
            let stamps = stamps(self.chosen, &self.local);
            if let Err(sentence) = self.cores[core].restart(procedures(), stamps) {
                self.complain(sentence);
            }
        }
        if self.chosen.in_process {
            let newest = self.cores.iter().map(Core::newest).max().unwrap_or(0);
            self.local.begin(newest);
            mine.into_iter()
                .for_each(|core| self.recovered(core, newest));
        } else {
            mine.into_iter().for_each(|core| self.ask_for_floor(core));
        }
    }

    /// A partition that has read its log asks for a stamp above all that were given.
    fn ask_for_floor(&mut self, core: usize) {
        if !self.cores[core].recovering {
            return;
        }
        let node = self.cores[core].node;
        let (from, oracle) = (Address::Partition(core as u32), self.oracle_to_ask());
        let ask = Message::TakeStamps {
            ticket: 0,
            count: 1,
        };
        self.post(node, from, oracle, ask);
        self.world.set_timer(node, LOOK_NS, Timer::Recover { core });
    }

    fn recovered(&mut self, core: usize, stamp: u64) {
        let now = self.mono(self.cores[core].node);
        match self.cores[core].recovered(now, stamp) {
            Ok(wants) => self.apply(core, wants),
            Err(sentence) => self.complain(sentence),
        }
        self.plan_checkpoint(core);
    }

    pub(super) fn plan_checkpoint(&mut self, core: usize) {
        let every = self.chosen.checkpoint_every_ns;
        if every > 0 && self.storming {
            let after = every / 2 + self.random.between(0, every);
            let node = self.cores[core].node;
            self.world
                .set_timer(node, after, Timer::Checkpoint { core });
        }
    }

    /// Does what a partition wants.
    pub(super) fn apply(&mut self, core: usize, wants: Wants) {
        let node = self.cores[core].node;
        for (to, message) in wants.sends {
            self.post(node, Address::Partition(core as u32), to, message);
        }
        if wants.sync {
            let after = self.chosen.sync.draw_ns(&mut self.random);
            self.world.set_timer(node, after, Timer::Synced { core });
        }
        if let Some(at) = wants.wake_at
            && self.cores[core].armed.is_none_or(|armed| at < armed)
        {
            self.cores[core].armed = Some(at);
            let after = at.saturating_sub(self.mono(node)) + 1;
            self.world.set_timer(node, after, Timer::Wake { core });
        }
    }

    /// Sends a message to where its receiver lives. Now and then it goes through its bytes.
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

    /// Most clients know which oracle is the active one.
    pub(super) fn oracle_to_ask(&mut self) -> Address {
        let active = self.oracles.active;
        let wrong = !self.chosen.in_process && self.random.one_in(20);
        Address::Oracle(if wrong { 1 - active } else { active } as u32)
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

    /// What a node measures time with: it never goes back, and runs a little fast or slow.
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

fn stamps(chosen: Chosen, local: &Local) -> Box<dyn Stamps + Send> {
    match chosen.in_process {
        true => Box::new(local.clone()),
        false => Box::new(Elsewhere),
    }
}

fn procedures() -> Procedures {
    work::procedures().unwrap_or_default()
}
