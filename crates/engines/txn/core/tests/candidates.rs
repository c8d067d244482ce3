//! Oracles that nobody steers: one serves, another one takes over when it is cut off or gone, and
//! no timestamp is ever given that is not above all before.

use std::collections::BTreeMap;

use dyno_sim::Random;
use dyno_txn_api::Timestamp;
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::oracle::Candidate;

const MS: u64 = 1_000_000;
const KEEPERS: u32 = 3;

struct World {
    random: Random,
    now: u64,
    kept: BTreeMap<u32, (u64, Timestamp)>,
    oracles: Vec<Candidate>,
    /// Which of them is cut off.
    cut: Option<usize>,
    /// When, to which oracle, from whom, what.
    flying: Vec<(u64, usize, Address, Message)>,
    /// How many timestamps each request asked for, by its ticket.
    asked: Vec<u32>,
    /// When an answer came, and the last of its timestamps. It names only the first.
    given: Vec<(u64, Timestamp)>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let oracles = (0..2).map(|_| Candidate::new(0..KEEPERS, random.bits() as u32));
        Self {
            oracles: oracles.collect(),
            random,
            now: 1,
            kept: BTreeMap::new(),
            cut: None,
            flying: Vec::new(),
            asked: Vec::new(),
            given: Vec::new(),
        }
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += MS;
            let due = |at: &u64, now: u64| *at <= now;
            let now = self.now;
            let (arrived, flying) = std::mem::take(&mut self.flying)
                .into_iter()
                .partition::<Vec<_>, _>(|(at, ..)| due(at, now));
            self.flying = flying;
            for (_, to, from, message) in arrived {
                self.hear(to, from, message);
            }
            for oracle in 0..self.oracles.len() {
                if self.now.is_multiple_of(20 * MS + 1 + oracle as u64) || self.random.one_in(20) {
                    let (now, wall, mut sends) = (self.now, self.wall(), Vec::new());
                    self.oracles[oracle].tick(now, wall, &mut sends);
                    self.sent(oracle, sends);
                }
                if self.random.one_in(5) {
                    let ticket = self.asked.len() as u64;
                    let count = 1 + self.random.below(3) as u32;
                    self.asked.push(count);
                    let take = Message::TakeTimestamps { ticket, count };
                    self.hear(oracle, Address::Client(1), take);
                }
            }
        }
    }

    /// The time of the day, which steps by seconds.
    fn wall(&mut self) -> u64 {
        9_000 * MS + self.now + self.random.below(3) as u64 * 2_000 * MS
    }

    fn hear(&mut self, oracle: usize, from: Address, message: Message) {
        let (now, wall, mut sends) = (self.now, self.wall(), Vec::new());
        self.oracles[oracle].handle(now, wall, from, message, &mut sends);
        self.sent(oracle, sends);
    }

    fn sent(&mut self, oracle: usize, sends: Vec<(Address, Message)>) {
        for (to, message) in sends {
            match (to, message) {
                (Address::Partition(_), _) if self.cut == Some(oracle) => {}
                (Address::Partition(_), _) if self.random.one_in(20) => {}
                (Address::Partition(id), Message::KeepBound { epoch, bound }) => {
                    let kept = self.kept.entry(id).or_default();
                    if epoch >= kept.0 {
                        *kept = (epoch, bound.max(kept.1));
                    }
                    let (epoch, bound) = *kept;
                    let answer = Message::BoundKept { epoch, bound };
                    let at = self.now + self.random.between(1, 30) * MS;
                    self.flying
                        .push((at, oracle, Address::Partition(id), answer));
                }
                (
                    _,
                    Message::Timestamps {
                        ticket,
                        result: Ok(first),
                    },
                ) => {
                    let last = self.given.last().map_or(0, |(_, timestamp)| *timestamp);
                    assert!(first > last, "{first} after {last}");
                    let count = self.asked[ticket as usize];
                    self.given.push((self.now, first + u64::from(count) - 1));
                }
                _ => {}
            }
        }
    }

    fn gives(&mut self, millis: u64) -> bool {
        let before = self.given.len();
        self.run(millis);
        self.given.len() > before
    }
}

#[test]
fn timestamps_rise_and_come_again_after_every_failure() {
    for seed in 0..25 {
        let mut world = World::new(seed);
        assert!(world.gives(6_000), "seed {seed}: nobody begins to serve");
        for round in 0..6 {
            let serving = world.oracles.iter().position(Candidate::serves);
            let serving = serving.expect("somebody serves");
            if world.random.one_in(2) {
                // It is there, and nobody hears it.
                world.cut = Some(serving);
            } else {
                let salt = world.random.bits() as u32;
                world.oracles[serving] = Candidate::new(0..KEEPERS, salt);
            }
            assert!(
                world.gives(9_000),
                "seed {seed}, round {round}: nobody takes over"
            );
            world.cut = None;
            assert!(
                world.gives(6_000),
                "seed {seed}, round {round}: nobody goes on"
            );
        }
        // With nothing in the way one serves, and the other stands by.
        let (serving, epoch) = (
            world.oracles.iter().position(Candidate::serves),
            world.kept[&0].0,
        );
        world.run(10_000);
        let still = world.oracles.iter().position(Candidate::serves);
        assert_eq!((still, world.kept[&0].0), (serving, epoch), "seed {seed}");
    }
}
