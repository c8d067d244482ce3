//! How a reader that has caught up spends its time: where messages come often it polls, and where
//! they do not it requests a notice.

use std::time::{Duration, Instant};

/// How often a reader has found something lately.
#[derive(Debug)]
pub(super) struct Pace {
    /// The mean time between two looks that found something, in which later ones count more.
    gap: Duration,
    found_at: Instant,
}

/// With a longer gap than this a notice is requested at once. A notice costs the server about as
/// much as a few looks, and makes commits go one after the other.
const SELDOM: Duration = Duration::from_millis(30);
/// After this many looks in vain messages are not taken to come often any more.
const LOOKS: u32 = 4;
const LEAST_PAUSE: Duration = Duration::from_millis(1);

impl Pace {
    pub fn new(now: Instant) -> Pace {
        Pace {
            gap: SELDOM,
            found_at: now,
        }
    }

    /// Notes that a look found something.
    pub fn found(&mut self, now: Instant) {
        // A long silence is one gap like others: it must not hide for long that messages come
        // again.
        let gap = now.duration_since(self.found_at).min(4 * SELDOM);
        self.gap = (3 * self.gap + gap) / 4;
        self.found_at = now;
    }

    /// The pause after this many looks in vain, at most `longest`; `None` if the reader should
    /// request a notice.
    pub fn pause(&self, empty_looks: u32, longest: Duration) -> Option<Duration> {
        if self.gap >= SELDOM || empty_looks > LOOKS {
            return None;
        }
        Some((self.gap / 2).max(LEAST_PAUSE).min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_where_messages_come_often_and_asks_to_be_told_elsewhere() {
        let ms = Duration::from_millis;
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        assert_eq!(pace.pause(1, ms(10)), None);
        for _ in 0..20 {
            now += ms(8);
            pace.found(now);
        }
        let pause = pace.pause(1, ms(10)).expect("often");
        assert!((ms(3)..=ms(5)).contains(&pause), "{pause:?}");
        assert_eq!(pace.pause(1, ms(2)), Some(ms(2)));
        assert_eq!(pace.pause(LOOKS + 1, ms(10)), None);
        for _ in 0..20 {
            now += ms(160);
            pace.found(now);
        }
        assert_eq!(pace.pause(1, ms(10)), None);
    }
}
