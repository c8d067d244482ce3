//! How often to retry, and how long to wait in between.

use std::time::Duration;

use dyno_random::backoff;

/// The limits on the number of attempts and on their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The number of attempts, including the first.
    pub attempts: u32,
    /// The first wait; each later one is twice as long.
    pub first_wait: Duration,
    /// The longest wait between two attempts.
    pub longest_wait: Duration,
    /// The time limit of one attempt, after which it counts as failed.
    pub attempt_timeout: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(120),
        }
    }
}

impl Retry {
    /// The wait after the given failed attempt, counted from 1.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        backoff(self.first_wait, self.longest_wait, attempt)
    }
}
