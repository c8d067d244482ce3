//! Counters, gauges and histograms, which any thread updates by one atomic addition.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A number on a cache line of its own, so that threads that count different things do not disturb
/// each other.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell<T>(T);

/// A count that only grows, from 0 at the start of the program.
#[derive(Debug, Clone)]
pub struct Counter {
    count: Arc<Cell<AtomicU64>>,
    scale: Scale,
}

impl Counter {
    pub(super) fn new(scale: Scale) -> Self {
        Self {
            count: Arc::default(),
            scale,
        }
    }

    /// The sum in the unit in which it is shown.
    pub(super) fn shown(&self) -> String {
        match self.scale {
            Scale::Ones => self.get().to_string(),
            Scale::Nanoseconds => (self.get() as f64 / self.scale.per_unit()).to_string(),
        }
    }

    /// Adds to the count, which wraps around at 2^64.
    pub fn add(&self, count: u64) {
        self.count.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The count so far, in the unit in which it is added to.
    pub fn get(&self) -> u64 {
        self.count.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Cell<AtomicI64>>);

impl Gauge {
    /// Replaces the value by `value`.
    pub fn set(&self, value: i64) {
        self.0.0.store(value, Ordering::Relaxed);
    }

    /// Adds `difference`, which may be negative.
    pub fn add(&self, difference: i64) {
        self.0.0.fetch_add(difference, Ordering::Relaxed);
    }

    /// The value that was last written.
    pub fn get(&self) -> i64 {
        self.0.0.load(Ordering::Relaxed)
    }
}

/// The unit in which values are added to a histogram or counter. They are shown in the base unit of
/// Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Added in nanoseconds, shown in seconds.
    Nanoseconds,
    /// Added and shown as a count, such as of bytes or records.
    Ones,
}

impl Scale {
    pub(super) fn per_unit(self) -> f64 {
        match self {
            Self::Nanoseconds => 1e9,
            Self::Ones => 1.0,
        }
    }
}

/// Counts how many values lie below each of some bounds, and adds them up.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<Buckets>);

#[derive(Debug)]
struct Buckets {
    scale: Scale,
    /// Upper bounds, the bound included; one more counter follows for what is above all.
    bounds: Vec<u64>,
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn new(scale: Scale, bounds: &[u64]) -> Self {
        Self(Arc::new(Buckets {
            scale,
            bounds: bounds.to_vec(),
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }))
    }

    /// Bounds from 50 us to 10 s in nanoseconds, three to a factor of ten.
    pub const LATENCY_NS: [u64; 17] = [
        50_000,
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        500_000_000,
        1_000_000_000,
        2_500_000_000,
        5_000_000_000,
        10_000_000_000,
    ];

    /// Counts a value, in the unit of the histogram's [`Scale`].
    pub fn observe(&self, value: u64) {
        // A value that equals a bound belongs to the bucket of that bound, as Prometheus has it.
        let bucket = self.0.bounds.partition_point(|bound| *bound < value);
        self.0.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.0.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        let counts = self.0.counts.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn scale(&self) -> Scale {
        self.0.scale
    }

    pub(super) fn bounds(&self) -> &[u64] {
        &self.0.bounds
    }

    /// The number of values up to each bound and of all, and their sum. Values that are observed
    /// meanwhile may be in the count and not in the sum; the counts still grow from bound to bound.
    pub(super) fn read(&self) -> (Vec<u64>, u64) {
        let mut total = 0;
        let counts = self.0.counts.iter().map(|count| {
            total += count.load(Ordering::Relaxed);
            total
        });
        (counts.collect(), self.0.sum.load(Ordering::Relaxed))
    }
}
