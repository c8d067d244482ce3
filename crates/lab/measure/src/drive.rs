//! Runs an operation under a schedule.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};

use crate::clock::Clock;
use crate::error::MeasureError;
use crate::outcome::LoadOutcome;
use crate::recorder::{Operation, Recorder};
use crate::schedule::{Arrivals, Schedule};

/// What decides that a load has run for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After this long; operations under way are finished.
    DurationNs(u64),
    /// After this many operations, shared evenly over the threads.
    Operations(u64),
}

/// How a load is run.
#[derive(Debug, Clone, Copy)]
pub struct DriveOptions<'a> {
    /// When operations are meant to start, and with it whether latencies say anything.
    pub schedule: Schedule,
    /// Threads; each has one operation under way at most.
    pub threads: usize,
    /// The end of the load, unless `stop` comes first.
    pub until: Until,
    /// Length of a snapshot of the latencies; long runs double it to bound their memory.
    pub interval_ns: u64,
    /// Arrivals that could only start later than this are skipped and counted; `None` sends all.
    pub lag_max_ns: Option<u64>,
    /// Ends the load early when it becomes true.
    pub stop: Option<&'a AtomicBool>,
}

/// Longest wait between two looks at the stop flag.
const WAIT_MAX_NS: u64 = 50_000_000;

/// A call of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Rises by one per call of that thread, from 0.
    pub sequence: u64,
    /// When the schedule meant it to start, on the run's clock; now, in a closed loop.
    pub intended_ns: u64,
}

/// Runs operations until the end asked for. `make(thread)` gives each thread its operation. All
/// threads are ready before the clock of the run starts.
///
/// # Errors
/// On options without meaning, or when an operation panics. An operation that fails is counted.
pub fn drive<E, Op, Make>(
    clock: &impl Clock,
    options: &DriveOptions<'_>,
    make: Make,
) -> Result<LoadOutcome, MeasureError>
where
    E: Display,
    Op: FnMut(Call) -> Result<(), E>,
    Make: Fn(usize) -> Op + Sync,
{
    // A schedule without meaning must be refused before threads wait at the barriers below, which
    // count on all of them.
    options.schedule.arrivals(0, options.threads, 0)?;
    // Two barriers with the clock read between them: at the first every thread has its operation,
    // so no connection is still being made when the run's time begins; at the second the start is
    // known, so every thread computes its arrivals from the same moment.
    let ready = Barrier::new(options.threads + 1);
    let go = Barrier::new(options.threads + 1);
    let start = OnceLock::new();
    let joined: Vec<std::thread::Result<Result<WorkerOutcome, MeasureError>>> =
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..options.threads)
                .map(|thread| {
                    let (make, start, ready, go) = (&make, &start, &ready, &go);
                    scope.spawn(move || {
                        // A panic in `make` must not leave the others waiting for this thread.
                        let operation =
                            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| make(thread)));
                        ready.wait();
                        go.wait();
                        match (operation, start.get()) {
                            (Ok(operation), Some(start)) => {
                                Worker::new(clock, options, thread, start)?.run(operation)
                            }
                            _ => Err(MeasureError::Panicked { thread }),
                        }
                    })
                })
                .collect();
            ready.wait();
            start.get_or_init(|| Start::new(clock.now_ns(), options.schedule));
            go.wait();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
    let start_ns = start.get().map_or(0, |start| start.at_ns);
    let mut outcome = LoadOutcome {
        schedule: options.schedule,
        recorder: Recorder::new(start_ns, options.interval_ns)?,
        started_ns: start_ns,
        ended_ns: start_ns,
        done: 0,
        failed: 0,
        first_error: None,
        skipped: 0,
        unsent: 0,
    };
    for (thread, result) in joined.into_iter().enumerate() {
        let of_worker = result.map_err(|_| MeasureError::Panicked { thread })??;
        of_worker.add_to(&mut outcome)?;
    }
    Ok(outcome)
}

/// The moment at which a load started, and what its threads share from then on.
struct Start {
    at_ns: u64,
    /// The one process of a Poisson schedule. Independent users come to the system and not to one
    /// of its threads: an arrival that was drawn for a thread of its own would wait for it while
    /// others are idle, and its latency would be the generator's.
    arrivals: Option<Mutex<Arrivals>>,
}

impl Start {
    fn new(at_ns: u64, schedule: Schedule) -> Self {
        let arrivals = match schedule {
            // The schedule was looked at before the threads were started, so there are arrivals.
            Schedule::Poisson { .. } => schedule.arrivals(0, 1, at_ns).ok().map(Mutex::new),
            Schedule::ClosedLoop | Schedule::Constant { .. } => None,
        };
        Self { at_ns, arrivals }
    }
}

/// Where a thread gets its arrivals from.
enum Source<'a> {
    /// Those of this thread alone.
    Own(Arrivals),
    /// Those of all threads, each taken by the first that is free.
    Shared(&'a Mutex<Arrivals>),
}

impl Source<'_> {
    fn next_ns(&mut self) -> Option<u64> {
        match self {
            Self::Own(arrivals) => arrivals.next_ns(),
            // A thread that panics does so in its operation, where it does not hold the lock, so
            // the arrivals are whole whatever became of the others.
            Self::Shared(arrivals) => {
                let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
                arrivals.next_ns()
            }
        }
    }
}

struct WorkerOutcome {
    recorder: Recorder,
    ended_ns: u64,
    done: u64,
    failed: u64,
    first_error: Option<String>,
    skipped: u64,
    unsent: u64,
}

impl WorkerOutcome {
    fn add_to(self, outcome: &mut LoadOutcome) -> Result<(), MeasureError> {
        outcome.recorder.add(self.recorder)?;
        outcome.ended_ns = outcome.ended_ns.max(self.ended_ns);
        outcome.done += self.done;
        outcome.failed += self.failed;
        outcome.skipped += self.skipped;
        outcome.unsent += self.unsent;
        outcome.first_error = outcome.first_error.take().or(self.first_error);
        Ok(())
    }
}

struct Worker<'a, C> {
    clock: &'a C,
    options: &'a DriveOptions<'a>,
    arrivals: Source<'a>,
    /// When the last arrival may be; the end of time when a number of operations decides.
    end_ns: u64,
    operations_max: u64,
    outcome: WorkerOutcome,
}

impl<'a, C: Clock> Worker<'a, C> {
    fn new(
        clock: &'a C,
        options: &'a DriveOptions<'a>,
        thread: usize,
        start: &'a Start,
    ) -> Result<Self, MeasureError> {
        let (schedule, start_ns) = (options.schedule, start.at_ns);
        let threads = options.threads as u64;
        let (end_ns, operations_max) = match options.until {
            Until::DurationNs(ns) => (start_ns.saturating_add(ns), u64::MAX),
            Until::Operations(n) => (
                u64::MAX,
                n / threads + u64::from((thread as u64) < n % threads),
            ),
        };
        Ok(Self {
            clock,
            options,
            arrivals: match &start.arrivals {
                Some(shared) => Source::Shared(shared),
                None => Source::Own(schedule.arrivals(thread, options.threads, start_ns)?),
            },
            end_ns,
            operations_max,
            outcome: WorkerOutcome {
                recorder: Recorder::new(start_ns, options.interval_ns)?,
                ended_ns: if end_ns == u64::MAX { start_ns } else { end_ns },
                done: 0,
                failed: 0,
                first_error: None,
                skipped: 0,
                unsent: 0,
            },
        })
    }

    fn run<E: Display>(
        mut self,
        mut operation: impl FnMut(Call) -> Result<(), E>,
    ) -> Result<WorkerOutcome, MeasureError> {
        let mut sequence = 0;
        while sequence + self.outcome.skipped < self.operations_max {
            // The arrival comes from the schedule and not from the end of the last operation: when
            // this thread was held up, the next intended start lies in the past, and the wait
            // counts into the latency as it does for a user who came at that time.
            let free_ns = self.clock.now_ns();
            let intended_ns = self.arrivals.next_ns();
            let due_ns = intended_ns.unwrap_or(free_ns);
            if due_ns >= self.end_ns {
                break;
            }
            // Arrivals that were due and can no longer be sent are counted, because a system that
            // falls behind would otherwise end its run with a good latency and a missing backlog.
            if free_ns >= self.end_ns || self.stopped() {
                self.count_unsent(due_ns, free_ns);
                break;
            }
            if self
                .options
                .lag_max_ns
                .is_some_and(|max| free_ns.saturating_sub(due_ns) > max)
            {
                self.outcome.skipped += 1;
                continue;
            }
            if !self.wait_for(due_ns) {
                break;
            }
            let started_ns = self.clock.now_ns();
            // In a closed loop the operation is meant to start when it does.
            let intended_ns = intended_ns.unwrap_or(started_ns);
            let result = operation(Call {
                sequence,
                intended_ns,
            });
            let ended_ns = self.clock.now_ns();
            sequence += 1;
            self.outcome.ended_ns = self.outcome.ended_ns.max(ended_ns);
            // A late start of a thread that stood ready is the generator's fault; one of a thread
            // that was still busy is the fault of the measured system.
            let was_waiting = free_ns <= intended_ns;
            match result {
                Ok(()) => {
                    self.outcome.done += 1;
                    let one = Operation {
                        intended_ns,
                        started_ns,
                        ended_ns,
                        was_waiting,
                    };
                    self.outcome.recorder.record(one)?;
                }
                Err(error) => {
                    self.outcome.failed += 1;
                    self.outcome
                        .first_error
                        .get_or_insert_with(|| error.to_string());
                }
            }
        }
        // A load that was stopped did not run for the time that it was given.
        if self.stopped() {
            self.outcome.ended_ns = self.clock.now_ns();
        }
        Ok(self.outcome)
    }

    fn stopped(&self) -> bool {
        self.options
            .stop
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// False when the load was stopped while waiting.
    fn wait_for(&self, due_ns: u64) -> bool {
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= due_ns {
                return true;
            }
            if self.stopped() {
                return false;
            }
            // In short waits, so that a stop is seen although the next arrival may be minutes away.
            self.clock
                .wait_until(due_ns.min(now_ns.saturating_add(WAIT_MAX_NS)));
        }
    }

    /// Counts this arrival and those behind it that were due by now and before the end.
    fn count_unsent(&mut self, first_due_ns: u64, now_ns: u64) {
        let limit_ns = self.end_ns.min(now_ns);
        let mut due_ns = Some(first_due_ns);
        while due_ns.is_some_and(|due_ns| due_ns < limit_ns) {
            self.outcome.unsent += 1;
            due_ns = self.arrivals.next_ns();
        }
    }
}
