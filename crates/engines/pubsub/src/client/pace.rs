//! How a reader without anything to read spends its time: it looks again where messages come often,
//! and asks to be told where they do not.

use std::time::{Duration, Instant};

/// How often a reader found something of late.
#[derive(Debug)]
pub(super) struct Pace {
    /// The mean time between two looks that found something, the later ones counting more.
    gap: Duration,
    found_at: Instant,
}

/// Where messages come less often it asks to be told at once: being told costs the server about as
/// much as a few looks, and makes commits go one after the other.
const SELDOM: Duration = Duration::from_millis(30);
/// So many looks in vain, and what came often does not any more.
const LOOKS: u32 = 4;
const LEAST_PAUSE: Duration = Duration::from_millis(1);

impl Pace {
    pub fn new(now: Instant) -> Pace {
        Pace {
            gap: SELDOM,
            found_at: now,
        }
    }

    /// Something was found.
    pub fn found(&mut self, now: Instant) {
        // A long silence is one gap like others: it must not hide for long that messages come
        // again.
        let gap = now.duration_since(self.found_at).min(4 * SELDOM);
        self.gap = (3 * self.gap + gap) / 4;
        self.found_at = now;
    }

    /// The pause after so many looks in vain, at most `longest`; None: it should ask to be told.
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
