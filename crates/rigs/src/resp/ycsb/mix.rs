//! The workloads of YCSB: what a client does next, and on which record.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_random::Random;

use super::records::{FIELDS, fnv};
use crate::zipf::Zipf;

/// The exponent of YCSB's laws.
const THETA: f64 = 0.99;
/// The rows over which YCSB draws before it scrambles, whatever the number of records is, and the
/// sum of their weights (`ScrambledZipfianGenerator`). The first one is 3.8% of all.
const SCRAMBLED_ROWS: u64 = 10_000_000_000;
const SCRAMBLED_SUM: f64 = 26.469_028_201_783_02;

/// A workload by its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Half reads, half updates.
    A,
    /// Mostly reads.
    B,
    /// Nothing but reads.
    C,
    /// Reads of what was inserted last.
    D,
    /// Half reads, half modifications of what was read.
    F,
}

/// One thing that a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads a whole record.
    Read(u64),
    /// Writes one field of a record.
    Update(u64, usize),
    /// Adds a record.
    Insert(u64),
    /// Reads a whole record and writes one of its fields back.
    Modify(u64, usize),
}

impl Operation {
    /// The name under which it is reported.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read(_) => "read",
            Operation::Update(..) => "update",
            Operation::Insert(_) => "insert",
            Operation::Modify(..) => "modify",
        }
    }
}

/// How many records there are, while clients add some.
pub struct Population {
    next: AtomicU64,
    /// All records below this number were acknowledged.
    acknowledged: AtomicU64,
    /// Records that were acknowledged while one before them was not.
    early: Mutex<BTreeSet<u64>>,
}

impl Population {
    pub fn new(records: u64) -> Population {
        Population {
            next: AtomicU64::new(records),
            acknowledged: AtomicU64::new(records),
            early: Mutex::default(),
        }
    }

    /// Records that were acknowledged, without gaps.
    pub fn count(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    fn add(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that a record is there.
    pub fn acknowledge(&self, record: u64) {
        // Nothing panics while it is locked, so what it guards is whole.
        let mut early = self.early.lock().unwrap_or_else(|held| held.into_inner());
        early.insert(record);
        let mut count = self.count();
        while early.remove(&count) {
            count += 1;
        }
        self.acknowledged.store(count, Ordering::Release);
    }
}

/// The law by which the clients of a mix draw among so many records.
pub fn law(mix: Mix, records: u64) -> Zipf {
    match mix {
        Mix::D => Zipf::new(records, THETA),
        _ => Zipf::with_sum(SCRAMBLED_ROWS, THETA, SCRAMBLED_SUM),
    }
}

/// The operations of one client, one after the other.
pub struct Draw {
    mix: Mix,
    random: Random,
    zipf: Zipf,
}

impl Draw {
    /// Equal seeds give equal operations, as long as no other client adds records. `zipf` is the
    /// [`law`] of the mix.
    pub fn new(mix: Mix, zipf: Zipf, seed: u64) -> Draw {
        Draw {
            mix,
            random: Random::new(seed),
            zipf,
        }
    }

    pub fn next(&mut self, population: &Population) -> Operation {
        let percent = self.random.index(100);
        let (record, field) = match self.mix {
            Mix::D if percent < 5 => return Operation::Insert(population.add()),
            Mix::D => (self.latest(population.count()), 0),
            _ => (
                self.scrambled(population.count()),
                self.random.index(FIELDS),
            ),
        };
        match self.mix {
            Mix::A if percent < 50 => Operation::Update(record, field),
            Mix::B if percent < 5 => Operation::Update(record, field),
            Mix::F if percent < 50 => Operation::Modify(record, field),
            _ => Operation::Read(record),
        }
    }

    /// A record of which few are frequent, and these are anywhere.
    fn scrambled(&mut self, records: u64) -> u64 {
        fnv(self.zipf.rank(self.random.bits())) % records
    }

    /// A record that is the more frequent the later it was added.
    fn latest(&mut self, records: u64) -> u64 {
        self.zipf.grow(records);
        records - 1 - self.zipf.rank(self.random.bits()).min(records - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const DRAWS: usize = 100_000;

    fn operations(mix: Mix) -> Vec<Operation> {
        let population = Population::new(1_000);
        let mut draw = Draw::new(mix, law(mix, 1_000), 3);
        let next = |_| {
            let operation = draw.next(&population);
            if let Operation::Insert(record) = operation {
                population.acknowledge(record);
            }
            operation
        };
        (0..DRAWS).map(next).collect()
    }

    #[test]
    fn each_workload_has_the_shares_of_its_definition() {
        for (mix, shares) in [
            (Mix::A, [("read", 0.5), ("update", 0.5)].as_slice()),
            (Mix::B, &[("read", 0.95), ("update", 0.05)]),
            (Mix::C, &[("read", 1.0)]),
            (Mix::D, &[("insert", 0.05), ("read", 0.95)]),
            (Mix::F, &[("modify", 0.5), ("read", 0.5)]),
        ] {
            let mut counts = BTreeMap::new();
            for operation in operations(mix) {
                *counts.entry(operation.name()).or_insert(0) += 1;
            }
            let names: Vec<&str> = counts.keys().copied().collect();
            let expected: Vec<&str> = shares.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, expected, "{mix:?}");
            for (name, share) in shares {
                let found = f64::from(counts[name]) / DRAWS as f64;
                assert!((found - share).abs() < 0.01, "{mix:?}: {found} of {name}");
            }
        }
    }

    /// The first rank of 10^10 has 1 in 26.47 of all draws, and two records get what falls on them
    /// besides.
    #[test]
    fn the_most_frequent_records_are_where_the_hash_puts_the_first_ranks() {
        let mut counts = vec![0u32; 1_000];
        for operation in operations(Mix::C) {
            if let Operation::Read(record) = operation {
                counts[record as usize] += 1;
            }
        }
        for (rank, weight) in [(0, 1.0), (1, 0.5f64.powf(THETA))] {
            let share = f64::from(counts[(fnv(rank) % 1_000) as usize]) / DRAWS as f64;
            let law = weight / SCRAMBLED_SUM;
            assert!(
                (law - 0.002..law + 0.006).contains(&share),
                "{rank}: {share} for {law}"
            );
        }
        let touched = counts.iter().filter(|count| **count > 0).count();
        assert!(touched > 990, "the tail reaches {touched} of 1000 records");
    }

    #[test]
    fn the_latest_records_are_the_most_frequent_and_none_is_read_before_it_is_there() {
        let (mut there, mut newest, mut reads) = (1_000, 0, 0);
        for operation in operations(Mix::D) {
            match operation {
                Operation::Insert(record) => {
                    assert_eq!(record, there);
                    there += 1;
                }
                Operation::Read(record) => {
                    assert!(record < there);
                    reads += 1;
                    newest += u32::from(record + 1 == there);
                }
                other => panic!("{other:?}"),
            }
        }
        // The sum of the weights of 1,000 to 6,000 rows is 7.7 to 9.6.
        let share = f64::from(newest) / f64::from(reads);
        assert!((0.10..0.13).contains(&share), "{share}");
    }

    #[test]
    fn records_count_once_none_is_missing_before_them() {
        let population = Population::new(5);
        let (first, second) = (population.add(), population.add());
        population.acknowledge(second);
        assert_eq!(population.count(), 5);
        population.acknowledge(first);
        assert_eq!(population.count(), 7);
    }
}
