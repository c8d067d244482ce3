//! Seeded randomness: one 64-bit stream, and draws from a weighted list in constant time.

/// A stream of random numbers for one purpose.
#[derive(Debug, Clone)]
pub struct Random(dyno_random::Random);

impl Random {
    /// A stream for one purpose: equal keys give equal streams, different keys unrelated ones.
    pub fn keyed(seed: u64, keys: &[u64]) -> Self {
        let mut stream = dyno_random::Random::new(seed);
        for key in keys {
            let seed = stream.bits() ^ key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            stream = dyno_random::Random::new(seed);
        }
        stream.bits();
        Random(stream)
    }

    /// Advances the state and returns 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`, which must not be 0; the bias is below 2^-32 for our small bounds.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(bound) * (self.next() >> 32)) >> 32) as u32
    }

    /// A fraction in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        self.0.fraction()
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Puts the elements in random order.
    pub(super) fn shuffle<T>(&mut self, elements: &mut [T]) {
        self.0.shuffle(elements);
    }

    /// Bell-shaped around 0 with a standard deviation of 1, cut at 3.5 (the sum of twelve).
    pub(super) fn bell(&mut self) -> f64 {
        let sum: f64 = (0..12).map(|_| self.fraction()).sum();
        (sum - 6.0).clamp(-3.5, 3.5)
    }
}

/// Draws an index with the given weights in constant time (Walker's alias method).
#[derive(Debug)]
pub(super) struct Weighted {
    /// For each column its own share (of 2^32), and the index that the rest belongs to.
    columns: Vec<(u32, u32)>,
}

impl Weighted {
    /// Builds the table. There is at least one weight, and all are positive.
    pub(super) fn new(weights: &[f64]) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut left: Vec<f64> = weights.iter().map(|w| w / mean).collect();
        let mut columns: Vec<(u32, u32)> =
            (0..weights.len() as u32).map(|i| (u32::MAX, i)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&i| left[i] < 1.0);
        // Each column that is below the mean is filled up from one above it. So all columns end at
        // the mean, and each holds at most two indexes.
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            columns[poor] = ((left[poor] * u32::MAX as f64) as u32, rich as u32);
            left[rich] -= 1.0 - left[poor];
            if left[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Weighted { columns }
    }

    /// Draws an index into the weights.
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.next();
        let column = ((self.columns.len() as u64 * (bits >> 32)) >> 32) as usize;
        let (own, other) = self.columns[column];
        if (bits as u32) <= own {
            column as u32
        } else {
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weighted = Weighted::new(&[1.0, 6.0, 3.0]);
        let mut random = Random::keyed(7, &[1]);
        let mut seen = [0u32; 3];
        for _ in 0..100_000 {
            seen[weighted.draw(&mut random) as usize] += 1;
        }
        for (count, share) in seen.iter().zip([0.1, 0.6, 0.3]) {
            assert!(
                (f64::from(*count) / 100_000.0 - share).abs() < 0.01,
                "{seen:?}"
            );
        }
    }

    #[test]
    fn keys_separate_streams() {
        let first = |keys: &[u64]| Random::keyed(1, keys).next();
        assert_eq!(first(&[1, 2]), first(&[1, 2]));
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1]), first(&[1, 0]));
    }
}
