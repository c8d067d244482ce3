//! A thread that ages pages, packs idle ones again, compacts, and gathers memory into huge pages,
//! within a share of one processor. Has `unsafe`: the system call that reads the thread's processor
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Handle, Recompressor, Store, Tiers, WriteBack};
use crate::error::StoreError;

/// What the background thread does, and how often.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Time between two passes of ageing.
    pub age_every: Duration,
    /// Passes without a touch after which a page is idle, 1 to 3.
    pub idle: u8,
    /// The largest share of one processor that recompression takes, 0 to 1. The dictionary is
    /// trained in one go, for which the thread rests afterwards.
    pub cpu_share: f64,
    /// Spans of each class that one compaction empties at most.
    pub compact_spans: usize,
    /// Which pages are written back to the backing file; `None` writes none.
    pub write_back: Option<WriteBack>,
    /// If set, memory is neither compacted, given back nor gathered, and no dictionary is trained.
    /// A store that serves swap needs this, because it could not get memory back.
    pub fixed: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            age_every: Duration::from_secs(30),
            idle: 2,
            cpu_share: 0.05,
            compact_spans: 8,
            write_back: None,
            fixed: false,
        }
    }
}

/// Turns of the thread in each `age_every`.
const TURNS: u32 = 100;
/// The shortest pause between two turns, however short `age_every` is.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);
/// The most pages written back in one turn: 4 MiB, so that a disk has pauses.
const MOST_WRITTEN_BACK: u64 = 1024;

/// The background thread of a store. Dropping this stops the thread and waits for it, which takes
/// at most one turn.
#[derive(Debug)]
pub struct Background {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
    progress: Arc<BackgroundProgress>,
}

/// What the thread has done since it was started, readable while it works.
#[derive(Debug, Default)]
pub struct BackgroundProgress {
    running: AtomicBool,
    passes: AtomicU64,
    packed: AtomicU64,
    written_back: AtomicU64,
    damaged: AtomicU64,
    failed: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl BackgroundProgress {
    /// Whether the thread is at work: false before its first turn and after its last.
    pub fn is_running(&self) -> bool {
        self.running.load(Relaxed)
    }

    /// Finished passes of ageing and compaction.
    pub fn passes(&self) -> u64 {
        self.passes.load(Relaxed)
    }

    /// Pages that the second tier has packed.
    pub fn packed(&self) -> u64 {
        self.packed.load(Relaxed)
    }

    /// Pages written back to the file.
    pub fn written_back(&self) -> u64 {
        self.written_back.load(Relaxed)
    }

    /// How often a damaged page was met and stepped over.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Relaxed)
    }

    /// Steps that failed; each is tried again in the next turn.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// The message of the step that failed last, if one did.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().clone()
    }

    /// Counts a failure. The step is tried again in the next turn: whatever is wrong with one page,
    /// with the file, or with memory that the system does not take back, the rest of the work goes
    /// on.
    fn note(&self, done: Result<(), StoreError>) {
        if let Err(error) = done {
            self.failed.fetch_add(1, Relaxed);
            *self.last_failure.lock() = Some(error.to_string());
        }
    }
}

impl Background {
    /// Starts the thread. A thread that finds no memory for its contexts ends at once, which
    /// [`Background::stop`] reports.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(store: Arc<Store>, schedule: Schedule) -> Result<Self, StoreError> {
        let (stop, stopped) = channel();
        let progress = Arc::new(BackgroundProgress::default());
        let of_thread = Arc::clone(&progress);
        let thread = std::thread::Builder::new()
            .name("pages-background".into())
            .spawn(move || {
                let period = (schedule.age_every / TURNS).max(SHORTEST_PERIOD);
                let progress = of_thread;
                let mut turn = Turn {
                    store: &store,
                    recompressor: store.recompressor()?,
                    handle: store.handle()?,
                    schedule,
                    progress: &progress,
                    owed: Duration::ZERO,
                    page: 0,
                    back_page: 0,
                    count: 0,
                    has_packed: false,
                };
                progress.running.store(true, Relaxed);
                // The sender is never used: the wait is a pause that ends early, with another
                // error, when [`Background`] drops the sender.
                while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                    turn.run(period);
                }
                progress.running.store(false, Relaxed);
                Ok(())
            })
            .map_err(|source| StoreError::System {
                what: "cannot start a thread",
                source,
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
            progress,
        })
    }

    /// The counters. They outlive the thread for as long as a caller keeps them.
    pub fn progress(&self) -> &Arc<BackgroundProgress> {
        &self.progress
    }

    /// Stops the thread and waits for the end of its turn.
    ///
    /// # Errors
    /// If the thread could not begin for want of memory.
    pub fn stop(mut self) -> Result<(), StoreError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), StoreError> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Resuming the thread's panic while this one unwinds would abort the process and hide the
        // first panic.
        if !std::thread::panicking() {
            let _said_by_stop = self.end();
        }
    }
}

struct Turn<'a> {
    store: &'a Store,
    recompressor: Recompressor<'a>,
    handle: Handle<'a>,
    schedule: Schedule,
    progress: &'a BackgroundProgress,
    /// Processor time spent beyond the share, to be made up for by turns without recompression.
    owed: Duration,
    page: u64,
    back_page: u64,
    count: u32,
    /// Whether a page was packed since the last ageing.
    has_packed: bool,
}

impl Turn<'_> {
    /// Does one turn: a slice of recompression, and in every hundredth turn ageing and compaction.
    fn run(&mut self, period: Duration) {
        self.count = self.count.wrapping_add(1);
        if self.count.is_multiple_of(TURNS) {
            self.store.age();
            if !self.schedule.fixed {
                if !std::mem::take(&mut self.has_packed) {
                    self.recompressor.release();
                }
                let compacted = self.store.compact(self.schedule.compact_spans);
                self.progress.note(compacted.map(drop));
                self.store.gather();
            }
            self.progress.passes.fetch_add(1, Relaxed);
        }
        if let Some(which) = self.schedule.write_back {
            self.write_back(which);
        }
        if self.store.settings.tiers != Tiers::Lz4ThenZstd {
            return;
        }
        // The budget is processor time of this thread, not time on the clock, so that a pass that
        // waits for a lock or a disk does not lose its share.
        let budget = period.mul_f64(self.schedule.cpu_share.clamp(0.0, 1.0));
        if budget.is_zero() {
            return;
        }
        if self.owed >= budget {
            self.owed -= budget;
            return;
        }
        let (page, idle) = (self.page, self.schedule.idle);
        if page == 0 && !self.schedule.fixed {
            let start = thread_time();
            let trained = self.recompressor.train(idle);
            self.progress.note(trained.map(drop));
            self.owed += thread_time() - start;
        }
        match self.recompressor.pass(page, idle, budget, thread_time) {
            Ok(done) => {
                self.page = done.next_page;
                self.has_packed |= done.packed > 0;
                self.progress.packed.fetch_add(done.packed, Relaxed);
                self.progress.damaged.fetch_add(done.damaged, Relaxed);
            }
            Err(error) => self.progress.note(Err(error)),
        }
    }

    fn write_back(&mut self, which: WriteBack) {
        let done = self
            .handle
            .write_back(self.back_page, MOST_WRITTEN_BACK, which);
        match done {
            Ok(done) => {
                self.back_page = done.next_page;
                self.progress.written_back.fetch_add(done.pages, Relaxed);
            }
            // A disk that is full or away may work again later; until then the page stays in
            // memory.
            Err(error) => self.progress.note(Err(error)),
        }
    }
}

/// Processor time that this thread has used.
pub fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is there to be filled. The clock exists on every Linux, so that a
    // failure (and a time of 0) cannot be.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
