//! Pauses between attempts of something that fails.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use crate::Random;

/// The pause after `failures` failed attempts in a row: `first` after one, twice as long after each
/// further one, and at most `longest`. It is a random part of that length, from half to all of it,
/// so that clients that failed together do not come back together.
pub fn backoff(first: Duration, longest: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(30);
    let whole = first.saturating_mul(1 << doublings).min(longest);
    // The keys of the standard library's hash maps differ between processes, which is all the
    // randomness that is needed here.
    let seed = RandomState::new().build_hasher().finish();
    whole.mul_f64(0.5 + Random::new(seed).fraction() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let ms = Duration::from_millis;
        for (failures, whole) in [(0, 10), (1, 10), (2, 20), (3, 40), (4, 50), (u32::MAX, 50)] {
            let pause = backoff(ms(10), ms(50), failures);
            assert!(ms(whole) / 2 <= pause && pause <= ms(whole), "{pause:?}");
        }
    }

    #[test]
    fn two_clients_do_not_come_back_together() {
        let second = Duration::from_secs(1);
        let same = |_: &u32| backoff(second, second, 1) == backoff(second, second, 1);
        assert!((0..20).filter(same).count() < 20);
    }
}
