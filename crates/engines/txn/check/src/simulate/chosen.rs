//! The parameters of a run, all of which are drawn from its seed.

use dyno_sim::{ClockFaults, Delay, Link, Random, Storm};
use dyno_txn_core::Config;

use crate::workload::{Mix, Shape};

const MS: u64 = 1_000_000;

/// A run as its seed chose it. Times are in nanoseconds, and a time of 0 between faults means that
/// there are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub seed: u64,
    /// Nodes with partitions, and partitions on each.
    pub servers: usize,
    pub cores: u32,
    /// Whether the only server issues timestamps itself. Otherwise two nodes have oracles.
    pub in_process: bool,
    pub clients: usize,
    pub sessions: usize,
    pub shape: Shape,
    pub mix: Mix,
    /// How long the storm lasts, and how long clients pause between transactions.
    pub storm_ns: u64,
    pub pause_ns: u64,
    pub deadline_ns: u64,
    /// The settings of partitions.
    pub wait_ns: u64,
    pub heartbeat_ns: u64,
    pub resend_ns: u64,
    pub retention_ns: u64,
    /// The faults of the network, of clocks, and of nodes.
    pub link: Link,
    pub clock: ClockFaults,
    pub crash_every_ns: u64,
    pub cut_every_ns: u64,
    pub late_messages: bool,
    /// How often the oracle that serves is cut off.
    pub failover_every_ns: u64,
    /// Whether disks fail, and machines crash in the middle of a write.
    pub disks_fail: bool,
    /// The delay until it is checked what the disk has written.
    pub sync: Delay,
    /// How often a partition begins a checkpoint during the storm.
    pub checkpoint_every_ns: u64,
    /// One transaction in this many is abandoned by its client without a word; 0 means none.
    pub abandon_one_in: usize,
    /// Whether clients continue before their writes are answered. Only links that keep the order of
    /// messages allow that.
    pub eager: bool,
}

impl Chosen {
    pub fn from_seed(seed: u64) -> Self {
        let random = &mut Random::fork(seed, "chosen");
        let in_process = random.one_in(3);
        let servers = if in_process { 1 } else { 1 + random.below(3) };
        let rare =
            |n: usize, random: &mut Random, value: u64| if random.one_in(n) { value } else { 0 };
        let every = |random: &mut Random, low: u64, high: u64| random.between(low * MS, high * MS);
        let crash = every(random, 100, 1_500);
        let cut = every(random, 60, 1_000);
        let failover = every(random, 1_500, 3_000);
        let checkpoint = every(random, 50, 800);
        let link = Self::link(random);
        let failover_every_ns = rare(2, random, failover);
        // Another oracle takes over after some seconds. A longer storm with longer pauses has room
        // for that, and still has as many transactions.
        let longer = if failover_every_ns > 0 && !in_process {
            2
        } else {
            1
        };
        Self {
            seed,
            servers,
            cores: 1 + random.below(3) as u32,
            in_process,
            clients: 1 + random.below(4),
            sessions: 1 + random.below(4),
            shape: Shape {
                accounts: 2 + random.below(6) as u64,
                balance: 100,
                registers: 4 + random.below(20) as u64,
                lists: 1 + random.below(6) as u64,
                keys_only: false,
            },
            mix: Mix {
                bank: random.below(3),
                lists: 1 + random.below(3),
                registers: random.below(3),
            },
            storm_ns: longer * every(random, 1_500, 4_000),
            pause_ns: longer * every(random, 1, 30),
            deadline_ns: every(random, 100, 1_500),
            wait_ns: every(random, 0, 20),
            heartbeat_ns: every(random, 150, 2_000),
            resend_ns: every(random, 5, 100),
            retention_ns: every(random, 300, 5_000),
            link,
            clock: ClockFaults {
                bound_ns: every(random, 0, 200),
                drift_ppm: random.below(1_000) as u32,
                change_every_ns: every(random, 100, 2_000),
            },
            crash_every_ns: rare(2, random, crash),
            cut_every_ns: rare(2, random, cut),
            late_messages: random.one_in(4),
            failover_every_ns,
            disks_fail: random.one_in(2),
            sync: Delay::uniform(50_000, 150_000).with_tail(20, 20 * MS),
            checkpoint_every_ns: rare(2, random, checkpoint),
            abandon_one_in: rare(3, random, 15) as usize,
            eager: link.ordered && random.one_in(2),
        }
    }

    /// The faults of the network. Each is on for some seeds and off for others.
    fn link(random: &mut Random) -> Link {
        let mut chance = |one_in: usize, most: u64| {
            if random.one_in(one_in) {
                random.between(0, most) as u32
            } else {
                0
            }
        };
        let loss_per_million = chance(2, 30_000);
        let duplicate_per_million = chance(2, 30_000);
        let slow = chance(2, 40) as usize;
        Link {
            delay: Delay::uniform(20_000, 300_000).with_tail(slow, 30 * MS),
            loss_per_million,
            duplicate_per_million,
            ordered: random.one_in(3),
        }
    }

    /// The network before and after the storm. Clients that do not wait for answers need the order
    /// of messages there, too.
    pub fn calm_link(&self) -> Link {
        Link {
            ordered: self.link.ordered,
            ..Link::default()
        }
    }

    pub fn partitions(&self) -> u32 {
        self.servers as u32 * self.cores
    }

    /// The storm until a time: which nodes crash and which links are cut. Nodes from `spare_from`
    /// on do not crash.
    pub fn storm(&self, until_ns: u64, spare_from: usize) -> Storm {
        Storm {
            until_ns,
            crash_every_ns: self.crash_every_ns,
            down_ns: 400 * MS,
            cut_every_ns: self.cut_every_ns,
            cut_ns: 500 * MS,
            spare_from,
        }
    }

    /// The settings of partition `id`, with a bug that was planted in it.
    pub fn config(&self, id: u32, planted: dyno_txn_core::planted::Planted) -> Config {
        Config {
            seed: self.seed,
            retention_ns: self.retention_ns,
            wait_ns: self.wait_ns,
            heartbeat_ns: self.heartbeat_ns,
            resend_ns: self.resend_ns,
            planted,
            ..Config::new(id, self.partitions())
        }
    }
}
