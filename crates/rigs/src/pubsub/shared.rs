//! What the threads of a flow share: its size, its clock, and what each of them has counted so far.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use dyno_measure::SystemClock;

use super::FlowError;

/// Length of a window of the record, in nanoseconds.
pub(super) const INTERVAL_NS: u64 = 500_000_000;

/// When something began and ended, on the clock of the flow, in nanoseconds.
pub(super) type Interval = (u64, u64);

/// The size of a flow: writers, readers, messages and rate.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub writers: usize,
    /// Readers in each group.
    pub readers: usize,
    pub groups: usize,
    /// Messages that a writer hands over at once.
    pub batch: usize,
    /// Messages of all writers together; a multiple of the batch. `u64::MAX` if only time ends the
    /// flow.
    pub messages: u64,
    /// How long writers write, if not for a number of messages.
    pub lasts: Option<Duration>,
    /// Length of a message in bytes.
    pub payload: usize,
    /// Messages a second of all writers together; `None` for as fast as they are acknowledged.
    pub rate: Option<f64>,
    /// Messages that are in the log before the clock starts, which every group still has to read; a
    /// multiple of the batch.
    pub before: u64,
    /// Batches of each writer that may be unacknowledged at once.
    pub window: usize,
    /// Whether the messages of a writer must arrive in order: those of a log do, those of a queue
    /// with several readers may not.
    pub ordered: bool,
    /// Interval between two lines of progress.
    pub report: Option<Duration>,
}

/// What the threads of a flow share.
pub(super) struct Shared {
    pub clock: SystemClock,
    pub stop: AtomicBool,
    /// The time at which the first message was due.
    pub writing_since_ns: OnceLock<u64>,
    pub written: AtomicU64,
    /// Messages that each group must read: known from the start, or once all are written.
    pub wanted: AtomicU64,
    pub digest: AtomicU64,
    /// Messages that each group has read so far.
    pub read: Vec<AtomicU64>,
    /// Readers that have connected.
    pub ready: AtomicU64,
    /// When each write was due and when it was acknowledged, under a rate.
    pub written_at: Mutex<Vec<Interval>>,
    /// The first error of any thread.
    pub wrong: Mutex<Option<FlowError>>,
}

impl Shared {
    pub fn new(groups: usize, wanted: u64) -> Shared {
        Shared {
            clock: SystemClock::start(),
            stop: AtomicBool::new(false),
            writing_since_ns: OnceLock::new(),
            written: AtomicU64::new(0),
            wanted: AtomicU64::new(wanted),
            digest: AtomicU64::new(0),
            read: (0..groups).map(|_| AtomicU64::new(0)).collect(),
            ready: AtomicU64::new(0),
            written_at: Mutex::new(Vec::new()),
            wrong: Mutex::new(None),
        }
    }

    /// Keeps when a write was due and when it was acknowledged.
    pub fn note_written(&self, write: Interval) {
        if let Ok(mut all) = self.written_at.lock() {
            all.push(write);
        }
    }

    /// All that [`Self::note_written`] has kept.
    pub fn take_written_at(&self) -> Vec<Interval> {
        let all = self.written_at.lock();
        all.map_or_else(|_| Vec::new(), |mut all| std::mem::take(&mut *all))
    }

    /// Keeps the first error and stops the flow.
    pub fn fail(&self, error: FlowError) {
        if let Ok(mut wrong) = self.wrong.lock() {
            wrong.get_or_insert(error);
        }
        self.stop.store(true, Ordering::SeqCst);
    }
}
