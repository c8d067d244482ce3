//! How often to try again, and how long to wait in between.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Limits on attempts and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, at least one.
    pub attempts: u32,
    /// The first wait; each later one is twice as long.
    pub first_wait: Duration,
    /// No wait is longer.
    pub longest_wait: Duration,
    /// An attempt that takes longer has failed.
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
    /// The wait after the given failed attempt (from 1): a random half to whole of its length, so
    /// that many that failed together do not come back together.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        let doubled = self
            .first_wait
            .saturating_mul(1 << attempt.clamp(1, 16).saturating_sub(1));
        let whole = doubled.min(self.longest_wait);
        let random = RandomState::new().build_hasher().finish() % 1024;
        whole / 2 + whole.mul_f64(random as f64 / 2048.0)
    }
}
