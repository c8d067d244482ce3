//! Random numbers as the specification draws them: uniform, and skewed by `NURand` (clause 2.1.6).

/// A stream of SplitMix64, any of which starts at any number at once, so every part of the
/// population can be made alone.
#[derive(Debug, Clone)]
pub struct Random(dyno_random::Random);

impl Random {
    /// The stream that a seed determines.
    pub fn new(seed: u64) -> Random {
        Random(dyno_random::Random::new(seed))
    }

    /// A separate stream for one part; `path` identifies it, as (table, warehouse, district).
    pub fn stream(seed: u64, path: &[u64]) -> Random {
        let mut random = Random::new(seed);
        for step in path {
            // The multiplication spreads the numbers of parts, so the streams of parts with similar
            // numbers are unrelated.
            random = Random::new(random.bits() ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        random
    }

    /// Advances the state and returns 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform in `low..=high`.
    pub fn within(&mut self, low: u32, high: u32) -> u32 {
        debug_assert!(low <= high);
        low + self.0.index((high - low) as usize + 1) as u32
    }

    /// True in `percent` of a hundred times.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.within(1, 100) <= percent
    }

    /// Uniform in (0, 1], for exponential think times.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

/// The constants `C` of `NURand`, one for each of its three uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    last_name: u32,
    customer: u32,
    item: u32,
}

impl Skew {
    /// The constants that the population is drawn with.
    pub fn for_load(seed: u64) -> Skew {
        let mut random = Random::stream(seed, &[0xC0]);
        Skew {
            last_name: random.within(0, 255),
            customer: random.within(0, 1023),
            item: random.within(0, 8191),
        }
    }

    /// The constants of a run. By clause 2.1.6.1 the one of last names differs from that of the
    /// load by 65 to 119, and by neither 96 nor 112.
    pub fn for_run(seed: u64, load: Skew) -> Skew {
        let mut random = Random::stream(seed, &[0xC1]);
        let allowed: Vec<u32> = (0..=255u32)
            .filter(|c| {
                let delta = c.abs_diff(load.last_name);
                (65..=119).contains(&delta) && delta != 96 && delta != 112
            })
            .collect();
        // The list is never empty: for each constant of the load, 65 more or 65 less is a constant,
        // too.
        let pick = random.within(0, allowed.len() as u32 - 1) as usize;
        Skew {
            last_name: allowed[pick],
            customer: random.within(0, 1023),
            item: random.within(0, 8191),
        }
    }

    /// The number of a last name, 0 to 999.
    pub fn last_name(&self, random: &mut Random) -> u32 {
        nurand(random, 255, self.last_name, 0, 999)
    }

    /// The number of a customer in its district, 1 to 3,000.
    pub fn customer(&self, random: &mut Random, customers: u32) -> u32 {
        nurand(random, 1023, self.customer, 1, customers)
    }

    /// The number of an item, 1 to 100,000.
    pub fn item(&self, random: &mut Random, items: u32) -> u32 {
        nurand(random, 8191, self.item, 1, items)
    }
}

/// `NURand(A, x, y)` of clause 2.1.6.
fn nurand(random: &mut Random, a: u32, c: u32, low: u32, high: u32) -> u32 {
    // The bitwise OR prefers numbers with many bits set, which makes some of them hot. `c` then
    // decides which ones.
    let mixed = random.within(0, a) | random.within(low, high);
    (mixed + c) % (high - low + 1) + low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_whole_and_inclusive() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[random.within(3, 9) as usize - 3] += 1;
        }
        assert!(seen.iter().all(|n| (850..1_150).contains(n)), "{seen:?}");
    }

    #[test]
    fn skewed_numbers_stay_in_range_and_are_skewed() {
        let mut random = Random::new(2);
        let skew = Skew::for_load(9);
        let mut seen = vec![0u32; 3_001];
        for _ in 0..300_000 {
            seen[skew.customer(&mut random, 3_000) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let most = seen.iter().max().expect("it has entries");
        // If the draw were uniform, each would be drawn 100 times. The bits that are set in A make
        // some several times as frequent.
        assert!(*most > 300, "{most}");
    }

    #[test]
    fn the_constant_of_a_run_keeps_its_distance() {
        for seed in 0..500 {
            let load = Skew::for_load(seed);
            let run = Skew::for_run(seed ^ 77, load);
            let delta = run.last_name.abs_diff(load.last_name);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
        }
    }

    #[test]
    fn parts_have_streams_of_their_own() {
        let first = Random::stream(5, &[1, 2, 3]).bits();
        assert_eq!(first, Random::stream(5, &[1, 2, 3]).bits());
        assert_ne!(first, Random::stream(5, &[1, 3, 2]).bits());
    }
}
