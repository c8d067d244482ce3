//! The outcome of a record that was sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{Code, Error, Result};
use crate::topic::Position;

/// The outcome of all records of one batch.
#[derive(Default)]
pub(super) struct Outcome {
    base_offset: Mutex<Option<Result<i64>>>,
    known: Condvar,
}

impl Outcome {
    pub fn set(&self, base_offset: Result<i64>) {
        let mut outcome = self.base_offset.lock();
        *outcome = Some(base_offset);
        self.known.notify_all();
    }
}

/// Becomes the record's position when the record is acknowledged, or the reason why it was not. The
/// offset is -1 if the record was in the log already, from an attempt so long ago that the server
/// does not know its offset any more. A receipt may be dropped: the record is sent all the same,
/// and `flush` reports failures.
#[derive(Clone)]
pub struct Receipt {
    pub(super) outcome: Arc<Outcome>,
    pub(super) partition: i32,
    pub(super) index: i64,
}

impl Receipt {
    /// Waits until the record is acknowledged.
    ///
    /// # Errors
    /// The reason why it was not. The error's `retry` says whether the record may be in the log.
    pub fn wait(&self) -> Result<Position> {
        let mut outcome = self.outcome.base_offset.lock();
        loop {
            if let Some(done) = &*outcome {
                return self.position(done);
            }
            self.outcome.known.wait(&mut outcome);
        }
    }

    /// Waits until the record is acknowledged, for at most `longest`.
    ///
    /// # Errors
    /// As [`Self::wait`], and `timed-out` if the record is still under way.
    pub fn wait_for(&self, longest: Duration) -> Result<Position> {
        let until = Instant::now() + longest;
        let mut outcome = self.outcome.base_offset.lock();
        loop {
            if let Some(done) = &*outcome {
                return self.position(done);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let text = format_args!(
                    "a record to partition {} is not acknowledged yet",
                    self.partition
                );
                return Err(Error::with_retry(
                    Code::TimedOut,
                    crate::error::Retry::Unknown,
                    text,
                ));
            }
            self.outcome.known.wait_for(&mut outcome, left);
        }
    }

    /// The outcome, or `None` while the record is under way.
    pub fn outcome(&self) -> Option<Result<Position>> {
        let outcome = self.outcome.base_offset.lock();
        outcome.as_ref().map(|done| self.position(done))
    }

    fn position(&self, done: &Result<i64>) -> Result<Position> {
        let base = done.clone()?;
        Ok(Position {
            partition: self.partition,
            offset: if base < 0 { -1 } else { base + self.index },
        })
    }
}
