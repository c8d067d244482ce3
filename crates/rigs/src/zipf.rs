//! Zipf's law, by which a few rows are chosen much more often than the others.

/// Draws ranks by Zipf's law with the formula of Gray et al. (SIGMOD 1994), as YCSB does. Only the
/// two first ranks have exactly their shares; the others come from a continuous curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Zipf {
    rows: u64,
    theta: f64,
    alpha: f64,
    /// The sum of the weights of all rows, of which the first one has 1.
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// The law with the exponent `theta`, above 0 and below 1. It sums over all rows, a tenth of a
    /// second for a million, which is why it is made once and not by every client.
    pub fn new(rows: u64, theta: f64) -> Zipf {
        Zipf::with_sum(rows, theta, sum(0, rows, theta))
    }

    /// The law for so many rows that the sum of their weights is given instead of computed.
    pub fn with_sum(rows: u64, theta: f64, zeta: f64) -> Zipf {
        let eta = (1.0 - (2.0 / rows as f64).powf(1.0 - theta)) / (1.0 - sum(0, 2, theta) / zeta);
        Zipf {
            rows,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            eta,
        }
    }

    /// Takes in further rows behind the last one, up to `rows`. It costs as much as there are new
    /// ones.
    pub fn grow(&mut self, rows: u64) {
        if rows > self.rows {
            let zeta = self.zeta + sum(self.rows, rows, self.theta);
            *self = Zipf::with_sum(rows, self.theta, zeta);
        }
    }

    /// The rank, from 0, for 64 even bits.
    pub fn rank(&self, bits: u64) -> u64 {
        let u = (bits >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let rank = self.rows as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.rows - 1)
    }
}

/// The sum of the weights of the rows `from..to`.
fn sum(from: u64, to: u64, theta: f64) -> f64 {
    (from + 1..=to).map(|i| (i as f64).powf(-theta)).sum()
}

#[cfg(test)]
mod tests {
    use dyno_random::Random;

    use super::*;

    const DRAWS: u64 = 400_000;

    /// The shares of the ranks below each bound, of so many draws.
    fn shares(zipf: &Zipf, bounds: &[u64]) -> Vec<f64> {
        let mut random = Random::new(5);
        let mut below = vec![0u64; bounds.len()];
        for _ in 0..DRAWS {
            let rank = zipf.rank(random.bits());
            for (count, bound) in below.iter_mut().zip(bounds) {
                *count += u64::from(rank < *bound);
            }
        }
        let share = |count: &u64| *count as f64 / DRAWS as f64;
        below.iter().map(share).collect()
    }

    #[test]
    fn ranks_have_the_shares_of_the_law() {
        const BOUNDS: [u64; 8] = [1, 2, 3, 10, 30, 100, 1_000, 9_999];
        for theta in [0.5, 0.99] {
            let rows = 10_000;
            let zeta: f64 = (1..=rows).map(|i| (i as f64).powf(-theta)).sum();
            let found = shares(&Zipf::new(rows, theta), &BOUNDS);
            for (bound, found) in BOUNDS.into_iter().zip(found) {
                let law: f64 = (1..=bound).map(|i| (i as f64).powf(-theta)).sum();
                let law = law / zeta;
                // Chance alone moves a share by less than five standard deviations. Beyond the two
                // first ranks the curve differs from the law by some thousandths.
                let chance = 5.0 * (law * (1.0 - law) / DRAWS as f64).sqrt();
                let curve = if bound <= 2 { 0.0 } else { 0.02 };
                let off = (found - law).abs();
                assert!(
                    off < chance + curve,
                    "{theta}, below {bound}: {found} for {law}"
                );
            }
        }
    }

    #[test]
    fn a_law_that_grows_is_that_of_all_its_rows() {
        let mut grown = Zipf::new(100, 0.99);
        grown.grow(50);
        assert_eq!(grown, Zipf::new(100, 0.99), "rows do not go");
        grown.grow(1_000);
        let whole = Zipf::new(1_000, 0.99);
        let off = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(off(grown.zeta, whole.zeta) && off(grown.eta, whole.eta));
        assert_eq!(grown.rank(u64::MAX), 999);
        assert_eq!(grown.rank(0), 0);
    }
}
