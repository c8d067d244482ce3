//! Retries while a server is away or busy, up to a limit of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_random::backoff;

use crate::error::{Error, Result};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);
/// How often a wait checks whether the work was stopped.
const LOOK: Duration = Duration::from_millis(50);

/// How long to retry, and the flags that end all waiting.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    pub limit: Duration,
    pub stops: Vec<Arc<AtomicBool>>,
}

impl Patience {
    /// The same limit, with one more flag that ends it.
    pub fn and(&self, stop: &Arc<AtomicBool>) -> Patience {
        let mut more = self.clone();
        more.stops.push(stop.clone());
        more
    }

    fn is_over(&self) -> bool {
        self.stops.iter().any(|stop| stop.load(Ordering::Relaxed))
    }

    /// Repeats `work` until it succeeds, fails for good, or time is up; then returns the last
    /// error. The work must be idempotent.
    pub fn with<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        let mut waiting = Waiting::new(self);
        loop {
            match work() {
                Err(error) if error.may_pass() => waiting.wait(error)?,
                done => return done,
            }
        }
    }
}

/// One wait, with sleeps that grow.
pub(crate) struct Waiting<'a> {
    patience: &'a Patience,
    begun: Instant,
    failures: u32,
}

impl<'a> Waiting<'a> {
    pub fn new(patience: &'a Patience) -> Self {
        Waiting {
            patience,
            begun: Instant::now(),
            failures: 0,
        }
    }

    /// Sleeps, or returns `error` if no time is left.
    pub fn wait(&mut self, error: Error) -> Result<()> {
        if self.begun.elapsed() >= self.patience.limit {
            return Err(error);
        }
        self.failures += 1;
        let until = Instant::now() + backoff(FIRST, LONGEST, self.failures);
        while Instant::now() < until {
            if self.patience.is_over() {
                return Err(Error::Stopped);
            }
            // Short sleeps let a stop request end a long wait soon.
            thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Seconds since the wait began.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}
