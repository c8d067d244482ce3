//! The simulation: nodes, their messages and timers, and what happens next.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};

use crate::clock::{ClockFaults, SimClock};
use crate::events::EventQueue;
use crate::network::{Cut, Link, Network, NodeId};
use crate::rare::Rare;
use crate::storm::{Storm, StormEvent};
use crate::trace::Trace;
use dyno_random::Random;

/// Messages on the way above this number are lost, and counted.
const MOST_PENDING: usize = 1 << 20;

/// What a simulation is made of.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Decides everything that is random in the run.
    pub seed: u64,
    /// Every link that is not set otherwise.
    pub link: Link,
    /// What every node's clock may do wrong.
    pub clock: ClockFaults,
    /// Whether a message that was sent before its receiver crashed reaches the receiver's next
    /// life.
    pub late_messages: bool,
    /// Whether rare paths are switched on (see [`Rare`]).
    pub rare: bool,
    /// Whether the last events are kept as text.
    pub lines: bool,
}

impl Settings {
    /// Settings in which nothing goes wrong, but messages take their time and overtake each other.
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            link: Link::default(),
            clock: ClockFaults::default(),
            late_messages: false,
            rare: false,
            lines: false,
        }
    }
}

/// Something that happens to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<M, T> {
    /// A message arrives at a node that is up.
    Message {
        /// The node that sent it.
        from: NodeId,
        /// The node that gets it.
        to: NodeId,
        /// The content, as it was given to [`World::send`].
        message: M,
    },
    /// A timer of a node runs out.
    Timer {
        /// The node that set it.
        node: NodeId,
        /// What it was set for.
        timer: T,
    },
    /// A storm crashed the node: its memory is gone, its disk is [`crate::Disk::after_crash`].
    Crash {
        /// The node that is down now.
        node: NodeId,
    },
    /// A storm starts the node again.
    Start {
        /// The node that is up again.
        node: NodeId,
    },
}

/// A timer that was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId(u64);

/// What became of the messages of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were given to the network.
    pub sent: u64,
    /// Handed to their receiver, second copies included.
    pub arrived: u64,
    /// Never arrived: lost by a link, a cut or a crash.
    pub lost: u64,
    /// Lost because too many were on the way: 2^20.
    pub overflowed: u64,
    /// Crashes of nodes that were up.
    pub crashes: u64,
}

#[derive(Debug)]
enum Pending<M, T> {
    Message {
        from: NodeId,
        to: NodeId,
        life: u64,
        message: M,
    },
    Timer {
        node: NodeId,
        timer: T,
    },
    Storm {
        /// Number of the storm that it belongs to.
        storm: u64,
        event: StormEvent,
    },
}

#[derive(Debug)]
struct Node {
    name: String,
    clock: SimClock,
    up: bool,
    /// Number of the crash that began this life; a message of an older life is late.
    life: u64,
    timers: BTreeSet<u64>,
}

/// Nodes that exchange messages `M` and set timers `T`, in one thread. What happens, and when, is
/// decided by the seed and by what the user does between two calls of [`World::next`].
#[derive(Debug)]
pub struct World<M, T> {
    settings: Settings,
    now_ns: u64,
    queue: EventQueue<Pending<M, T>>,
    nodes: Vec<Node>,
    network: Network,
    /// Messages that wait for their link to heal.
    held: Vec<Pending<M, T>>,
    storm: Option<Storm>,
    /// How many storms were set.
    storms: u64,
    random: Random,
    rare: Rare,
    trace: Trace,
    counts: Counts,
}

impl<M: Clone, T> World<M, T> {
    /// A world without nodes, at time 0.
    pub fn new(settings: Settings) -> Self {
        let seed = settings.seed;
        Self {
            settings,
            now_ns: 0,
            queue: EventQueue::new(),
            nodes: Vec::new(),
            network: Network::new(settings.link, Random::fork(seed, "network")),
            held: Vec::new(),
            storm: None,
            storms: 0,
            random: Random::fork(seed, "world"),
            rare: if settings.rare {
                Rare::seeded(seed)
            } else {
                Rare::never()
            },
            trace: Trace::new(settings.lines),
            counts: Counts::default(),
        }
    }

    /// Adds a node, which is up. Its name also decides what its clock does under this seed.
    pub fn add_node(&mut self, name: &str) -> NodeId {
        let node = NodeId(self.nodes.len());
        let random = Random::fork(self.settings.seed, &format!("clock of {name}"));
        self.nodes.push(Node {
            name: name.to_owned(),
            clock: SimClock::new(self.settings.clock, random),
            up: true,
            life: 0,
            timers: BTreeSet::new(),
        });
        node
    }

    /// All nodes, in the order in which they were added.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<M, T> {
        (0..self.nodes.len()).map(NodeId)
    }

    /// The name that the node was added under.
    pub fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.0].name
    }

    /// True time, which no node knows.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// What the clock of the node shows now.
    pub fn wall_ns(&mut self, node: NodeId) -> u64 {
        self.nodes[node.0].clock.wall_ns(self.now_ns)
    }

    /// Random numbers for the driver of the simulation.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The rare paths of this seed.
    pub fn rare(&mut self) -> &mut Rare {
        &mut self.rare
    }

    /// What happened so far, as a hash and as lines.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Adds something of the user's to the trace: a decision, the digest of a state.
    pub fn note(&mut self, what: fmt::Arguments<'_>) {
        self.trace.add(self.now_ns, what);
    }

    /// What became of messages so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sends a message. A node that is down sends nothing.
    pub fn send(&mut self, from: NodeId, to: NodeId, message: M) {
        if !self.nodes[from.0].up {
            return;
        }
        self.counts.sent += 1;
        // The draw comes before the look at cuts, so that a cut changes only which messages arrive
        // and not the delays of all that are sent later.
        let arrivals = self.network.arrivals(self.now_ns, from, to);
        if self.network.cut_of(from, to) == Some(Cut::Lose) || arrivals[0].is_none() {
            self.lose(from, to, "sent");
            return;
        }
        for at_ns in arrivals.into_iter().flatten() {
            // A system that sends without end would fill the memory of the test. The messages are
            // lost and counted, so that the test can say so.
            if self.queue.len() + self.held.len() >= MOST_PENDING {
                self.counts.overflowed += 1;
                continue;
            }
            let pending = Pending::Message {
                from,
                to,
                life: self.nodes[to.0].life,
                message: message.clone(),
            };
            self.queue.push(at_ns, pending);
        }
    }

    /// `timer` comes back after `for_ns` by the node's own clock, unless the node crashes before.
    ///
    /// # Panics
    /// With more than 2^20 events pending: a node sets timers without end.
    pub fn set_timer(&mut self, node: NodeId, for_ns: u64, timer: T) -> TimerId {
        assert!(self.queue.len() < MOST_PENDING, "timers without end");
        let now_ns = self.now_ns;
        let owner = &mut self.nodes[node.0];
        let at_ns = now_ns.saturating_add(owner.clock.stretch_ns(now_ns, for_ns));
        let number = self.queue.push(at_ns, Pending::Timer { node, timer });
        // A timer of a node that is down is never handed out: it stays in the queue without an
        // owner.
        if owner.up {
            owner.timers.insert(number);
        }
        TimerId(number)
    }

    /// Forgets a timer that has not run out.
    pub fn cancel_timer(&mut self, node: NodeId, timer: TimerId) {
        self.nodes[node.0].timers.remove(&timer.0);
    }

    /// Sets one direction between two nodes.
    pub fn set_link(&mut self, from: NodeId, to: NodeId, link: Link) {
        self.network.set_link(from, to, link);
    }

    /// Sets every link, also those that were set one by one.
    pub fn set_links(&mut self, link: Link) {
        self.network.set_usual(link);
    }

    /// Cuts one direction. A partition is several of these.
    pub fn cut(&mut self, from: NodeId, to: NodeId, cut: Cut) {
        self.network.cut(from, to, cut);
        self.trace
            .add(self.now_ns, format_args!("{cut:?} {} -> {}", from.0, to.0));
    }

    /// Cuts both directions between every node of `side` and every other.
    pub fn part(&mut self, side: &[NodeId], cut: Cut) {
        for from in self.nodes() {
            for to in self.nodes() {
                if side.contains(&from) != side.contains(&to) {
                    self.cut(from, to, cut);
                }
            }
        }
    }

    /// Heals one direction; what waited arrives after the link's delay.
    pub fn heal(&mut self, from: NodeId, to: NodeId) {
        self.network.heal(from, to);
        let (now, waiting) = (self.now_ns, std::mem::take(&mut self.held));
        for pending in waiting {
            match pending {
                Pending::Message { from: f, to: t, .. } if (f, t) == (from, to) => {
                    let [first, _] = self.network.arrivals(now, from, to);
                    // A message that was held is not lost on its second way: TCP would send it
                    // again.
                    self.queue.push(first.unwrap_or(now), pending);
                }
                other => self.held.push(other),
            }
        }
    }

    /// Heals every direction between all nodes.
    pub fn heal_all(&mut self) {
        for from in self.nodes() {
            for to in self.nodes() {
                self.heal(from, to);
            }
        }
    }

    /// Whether the node is up.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.nodes[node.0].up
    }

    /// Crashes a node: its timers are gone, and so is what arrives while it is down.
    pub fn crash(&mut self, node: NodeId) {
        let down = &mut self.nodes[node.0];
        if down.up {
            down.up = false;
            // Messages that are on the way were sent to the life that ends here.
            down.life += 1;
            down.timers.clear();
            self.counts.crashes += 1;
            self.trace
                .add(self.now_ns, format_args!("crash {}", node.0));
        }
    }

    /// Starts a node that is down.
    pub fn start(&mut self, node: NodeId) {
        self.nodes[node.0].up = true;
        self.trace
            .add(self.now_ns, format_args!("start {}", node.0));
    }

    /// From now on faults happen by themselves, in place of an earlier storm's. Nodes that the
    /// earlier storm crashed still start again, and its cuts heal.
    pub fn set_storm(&mut self, storm: Storm) {
        self.storms += 1;
        let number = self.storms;
        for (at_ns, event) in storm.first(self.now_ns, &mut self.random) {
            let storm = number;
            self.queue.push(at_ns, Pending::Storm { storm, event });
        }
        self.storm = Some(storm);
    }

    /// The next thing that happens, at or before `until_ns`; time then stands at it. `None` when
    /// nothing more happens until then, and time stands at `until_ns` (or where it was).
    pub fn next_until(&mut self, until_ns: u64) -> Option<Event<M, T>>
    where
        M: Debug,
        T: Debug,
    {
        while self.queue.next_ns().is_some_and(|at| at <= until_ns) {
            let (at_ns, number, pending) = self.queue.pop()?;
            self.now_ns = at_ns;
            if let Some(event) = self.happens(number, pending) {
                self.trace.add(at_ns, format_args!("{event:?}"));
                return Some(event);
            }
        }
        self.now_ns = self.now_ns.max(until_ns);
        None
    }

    fn happens(&mut self, number: u64, pending: Pending<M, T>) -> Option<Event<M, T>> {
        match pending {
            Pending::Message { from, to, life, .. } => {
                if self.network.cut_of(from, to) == Some(Cut::Hold) {
                    self.held.push(pending);
                    return None;
                }
                // Cuts are looked at again when the message arrives, so that they also catch what
                // is on the way.
                let node = &self.nodes[to.0];
                let reached = node.up && (node.life == life || self.settings.late_messages);
                if !reached || self.network.cut_of(from, to).is_some() {
                    self.lose(from, to, "arriving");
                    return None;
                }
                self.counts.arrived += 1;
                match pending {
                    Pending::Message { message, .. } => Some(Event::Message { from, to, message }),
                    Pending::Timer { .. } | Pending::Storm { .. } => None,
                }
            }
            Pending::Timer { node, timer } => {
                // A timer that was cancelled, or whose node crashed, is still in the queue, but it
                // has left the set of its node.
                let alive = self.nodes[node.0].timers.remove(&number);
                alive.then_some(Event::Timer { node, timer })
            }
            Pending::Storm { storm, event } => self.on_storm_event(storm, event),
        }
    }

    fn on_storm_event(&mut self, number: u64, event: StormEvent) -> Option<Event<M, T>> {
        let storm = self.storm?;
        // The chain of faults of an earlier storm ends here. Otherwise each call of `set_storm`
        // would add one, and crashes would come as often as all storms together have them.
        if number != self.storms && event.begins_a_fault() {
            return None;
        }
        let up: Vec<NodeId> = self.nodes().filter(|&node| self.is_up(node)).collect();
        let fault = storm.fault(event, self.now_ns, self.nodes.len(), &up, &mut self.random);
        for (at_ns, next) in fault.next.into_iter().flatten() {
            self.queue.push(
                at_ns,
                Pending::Storm {
                    storm: number,
                    event: next,
                },
            );
        }
        for &(from, to, cut) in &fault.cuts {
            match cut {
                Some(cut) => self.cut(from, to, cut),
                None => self.heal(from, to),
            }
        }
        if let Some(node) = fault.crash {
            self.crash(node);
            return Some(Event::Crash { node });
        }
        // The test may have started the node itself in the meantime.
        let node = fault.start.filter(|&node| !self.is_up(node))?;
        self.start(node);
        Some(Event::Start { node })
    }

    fn lose(&mut self, from: NodeId, to: NodeId, when: &str) {
        self.counts.lost += 1;
        self.trace.add(
            self.now_ns,
            format_args!("lost {when} {} -> {}", from.0, to.0),
        );
    }
}
