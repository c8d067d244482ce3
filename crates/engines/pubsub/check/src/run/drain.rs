//! How long consumers may take to reach the end.

use std::time::{Duration, Instant};

/// How long they may take without coming nearer to the end. A run of hours on a busy machine leaves
/// more behind than any fixed time is enough for.
const STILL: Duration = Duration::from_secs(90);
/// How long they may take in all.
const MOST: Duration = Duration::from_secs(30 * 60);

/// The wait for the end.
#[derive(Debug)]
pub struct Drain {
    began: Instant,
    nearest: i64,
    nearer_at: Instant,
}

impl Drain {
    /// Begins the wait at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            began: now,
            nearest: i64::MAX,
            nearer_at: now,
        }
    }

    /// Returns whether to go on waiting with `left` messages to do, or how long the wait has taken.
    pub fn goes_on(&mut self, left: i64, now: Instant) -> Result<(), Duration> {
        if left < self.nearest {
            self.nearest = left;
            self.nearer_at = now;
        }
        let (still, all) = (now - self.nearer_at, now - self.began);
        if still < STILL && all < MOST {
            return Ok(());
        }
        Err(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_while_the_end_comes_nearer() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut drain = Drain::new(began);
        for minute in 0..29 {
            let left = 1_000_000 - minute as i64;
            assert_eq!(drain.goes_on(left, at(60 * minute)), Ok(()));
        }
        assert_eq!(drain.goes_on(5, at(1800)), Err(at(1800) - began));
    }

    #[test]
    fn it_ends_when_nothing_moves() {
        let began = Instant::now();
        let mut drain = Drain::new(began);
        assert_eq!(drain.goes_on(7, began), Ok(()));
        // More than before is not progress either.
        assert_eq!(drain.goes_on(9, began + STILL / 2), Ok(()));
        assert_eq!(drain.goes_on(7, began + STILL), Err(STILL));
    }
}
