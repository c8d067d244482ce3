//! Random numbers from a seed, and randomised pauses between attempts.
//!
//! The numbers are fast and repeatable, and an attacker can predict them. Secrets must come from
//! elsewhere.

mod backoff;

pub use backoff::backoff;

/// SplitMix64 (Steele, Lea and Flood 2014): one addition and a mix. Every seed is good, and equal
/// seeds give equal numbers on every machine and in every version.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of numbers that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, of 64 even bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound.max(1) as u64) as usize
    }

    /// An index below `len`, which must not be 0. The bias of the multiplication (Lemire 2019,
    /// without its rejection) is below 2^-32 for every length that fits in memory.
    pub fn index(&mut self, len: usize) -> usize {
        debug_assert!(len > 0, "no index is below zero");
        ((u128::from(self.bits()) * len as u128) >> 64) as usize
    }

    /// A number in [0, 1), with 53 random bits.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true once in `n` times on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number from `low` to `high`, both included; `low` if `high` is below it.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low);
        match span.checked_add(1) {
            Some(values) => low + self.bits() % values,
            None => self.bits(),
        }
    }

    /// Returns true `per_million` times in a million on average.
    pub fn chance(&mut self, per_million: u32) -> bool {
        self.bits() % 1_000_000 < u64::from(per_million)
    }

    /// Fills a buffer with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            let drawn = self.bits().to_le_bytes();
            word.copy_from_slice(&drawn[..word.len()]);
        }
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }

    /// A sequence of its own for the user called `name`, so that one user more or less, or one that
    /// draws more, does not change what the others get.
    pub fn fork(seed: u64, name: &str) -> Self {
        let folded = name
            .bytes()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Self(mix(folded))
    }
}

/// The mixing function of SplitMix64, a bijection: equal results mean equal inputs.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_are_published() {
        // The published first numbers of this seed.
        let mut random = Random::new(1_234_567);
        let drawn = [random.bits(), random.bits(), random.bits()];
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, expected);
    }

    #[test]
    fn indexes_are_even() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 10];
        for _ in 0..100_000 {
            seen[random.index(10)] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(7).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
