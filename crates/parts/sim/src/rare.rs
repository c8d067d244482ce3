//! Rare paths, switched on by seed.

use std::collections::BTreeMap;

use dyno_random::Random;

/// Decides whether code takes a path that it seldom takes by itself: a tiny buffer, an early
/// time-out, a needless retry (FoundationDB's "buggify"). With each seed about a quarter of the
/// places are switched on, so that each combination comes up; a place that is on fires once in
/// `one_in` times. In production it is [`Rare::never`].
#[derive(Debug, Clone)]
pub struct Rare {
    seed: Option<u64>,
    one_in: usize,
    points: BTreeMap<&'static str, RarePoint>,
}

#[derive(Debug, Clone)]
struct RarePoint {
    on: bool,
    random: Random,
    fired: u64,
}

impl Rare {
    /// No rare path is ever taken.
    pub fn never() -> Self {
        Self {
            seed: None,
            one_in: 0,
            points: BTreeMap::new(),
        }
    }

    /// The places that `seed` switches on fire once in 16 times.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed: Some(seed),
            one_in: 16,
            points: BTreeMap::new(),
        }
    }

    /// The same, more or less often.
    #[must_use]
    pub fn once_in(mut self, one_in: usize) -> Self {
        self.one_in = one_in.max(1);
        self
    }

    /// Whether to take the rare path at the place called `place`.
    pub fn fires(&mut self, point: &'static str) -> bool {
        let Some(seed) = self.seed else {
            return false;
        };
        let found = self.points.entry(point).or_insert_with(|| {
            // Each place has numbers of its own, so that a new place in the code does not change
            // what the others do under a known seed.
            let mut random = Random::fork(seed, point);
            let on = random.one_in(4);
            RarePoint {
                on,
                random,
                fired: 0,
            }
        });
        let fires = found.on && found.random.one_in(self.one_in);
        found.fired += u64::from(fires);
        fires
    }

    /// Places that were passed, and how often each fired: what a seed exercised.
    pub fn fired(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.points.iter().map(|(&name, point)| (name, point.fired))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_on_with_some_seed_and_off_with_most() {
        let on = |seed| {
            let mut rare = Rare::seeded(seed);
            (0..200).filter(|_| rare.fires("a place")).count() > 0
        };
        let seeds = (0..400).filter(|&seed| on(seed)).count();
        assert!((50..200).contains(&seeds), "{seeds}");
    }

    #[test]
    fn places_do_not_disturb_each_other() {
        let alone = |noisy: bool| {
            let mut rare = Rare::seeded(11).once_in(2);
            let fires = |_| {
                if noisy {
                    rare.fires("other");
                }
                rare.fires("first")
            };
            (0..64).map(fires).collect::<Vec<_>>()
        };
        assert_eq!(alone(false), alone(true));
        assert!(!Rare::never().fires("first"));
    }
}
