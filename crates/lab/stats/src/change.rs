//! Where a series of runs changed: the divisive search of Matteson and James ("A nonparametric
//! approach for multiple change point analysis of multivariate data", 2014), which Hunter and
//! Otava follow too, with their first test, that of permutations.
//!
//! Two parts of a series differ by their **energy distance**: how far values of one lie from values
//! of the other, beyond how far values of each lie from one another. The search takes the cut where
//! that is largest, and asks how often a cut of the same values in random order is as large. If it
//! seldom is, the cut is a change, and the search goes on in both parts. Nothing is assumed of the
//! noise but that its order says nothing.

use dyno_random::Random;

use crate::error::{StatsError, check};
use crate::summary::median_in_place;

/// How often at most a cut is found in a series that never changed. Below 5%, because the simulated
/// rate has to stay there too.
const ALPHA: f64 = 0.04;
/// Random orders behind a p-value, which is then at least 0.001.
const PERMUTATIONS: usize = 999;
/// A change counts when so many runs after it agree: one run alone may have met a bad moment.
pub const AGREEING_MIN: usize = 2;
/// A longer series is searched in its newest values, because the work grows with the square.
pub const CHANGES_MAX_RUNS: usize = 300;

/// A change between two neighbours of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Median of the values since the previous change.
    pub before: f64,
    /// Median of the values up to the next change.
    pub after: f64,
    /// Share of random orders with a cut as large.
    pub p_value: f64,
}

impl ChangePoint {
    /// The ratio of the medians less 1: 0.1 is 10% more.
    pub fn change(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// The changes of a series of runs, the oldest first. A change is called only when
/// [`AGREEING_MIN`] runs after it lie on its side of the middle between the two medians, so the
/// newest run alone never makes one.
///
/// # Errors
/// On no values, or one that is not finite.
pub fn change_points(values: &[f64], seed: u64) -> Result<Vec<ChangePoint>, StatsError> {
    check("a series", 1, values)?;
    let skipped = values.len().saturating_sub(CHANGES_MAX_RUNS);
    let values = &values[skipped..];
    let mut random = Random::new(seed);
    let mut cuts: Vec<(usize, f64)> = Vec::new();
    let whole = 0..values.len();
    // Each part is searched until its best cut is no more than a random order would have. The parts
    // are taken from a stack, and the random orders follow from the seed and that order, so equal
    // series give equal changes.
    let mut open = vec![whole];
    while let Some(part) = open.pop() {
        let distances = Distances::from_values(&values[part.clone()]);
        let Some(cut) = distances.best_cut() else {
            continue;
        };
        let p_value = distances.p_value(cut.energy, &mut random);
        if p_value <= ALPHA {
            cuts.push((part.start + cut.at, p_value));
            open.push(part.start..part.start + cut.at);
            open.push(part.start + cut.at..part.end);
        }
    }
    cuts.sort_by_key(|(at, _)| *at);
    Ok(called(values, &cuts, skipped))
}

/// The cuts that later runs agree with. One that is dropped joins its two parts, so that the next
/// one is held against both.
fn called(values: &[f64], cuts: &[(usize, f64)], skipped: usize) -> Vec<ChangePoint> {
    let middle = |part: &[f64]| median_in_place(&mut part.to_vec());
    let mut points: Vec<ChangePoint> = Vec::new();
    let mut start = 0;
    for (index, (at, p_value)) in cuts.iter().enumerate() {
        let end = cuts.get(index + 1).map_or(values.len(), |(next, _)| *next);
        let (before, after) = (middle(&values[start..*at]), middle(&values[*at..end]));
        // Where only two runs follow the cut, one far value moves their median by itself. Each run
        // is held against the middle, so that one bad day is not called a change.
        let border = (before + after) / 2.0;
        let is_new = |value: &&f64| (**value > border) == (after > before);
        if values[*at..end].iter().filter(is_new).count() >= AGREEING_MIN {
            points.push(ChangePoint {
                at: skipped + at,
                before,
                after,
                p_value: *p_value,
            });
            start = *at;
        }
    }
    points
}

#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Index of the first value of the second part.
    at: usize,
    energy: f64,
}

/// How far the values of a part lie from one another.
struct Distances {
    len: usize,
    between: Vec<f64>,
}

impl Distances {
    fn from_values(values: &[f64]) -> Distances {
        let pairs = values
            .iter()
            .flat_map(|a| values.iter().map(move |b| (a - b).abs()));
        Distances {
            len: values.len(),
            between: pairs.collect(),
        }
    }

    /// The cut of the values in their order; `None` when they are too few to have two parts with a
    /// spread each.
    fn best_cut(&self) -> Option<Cut> {
        let order: Vec<usize> = (0..self.len).collect();
        self.best_cut_of(&order)
    }

    /// The cut with the largest energy, over the values in `order`. The sums within and between the
    /// two parts are kept while one value after the other moves from the second to the first.
    fn best_cut_of(&self, order: &[usize]) -> Option<Cut> {
        let n = self.len;
        let distance = |a: usize, b: usize| self.between[order[a] * n + order[b]];
        // Every pair stands in the matrix twice.
        let mut second: f64 = self.between.iter().sum::<f64>() / 2.0;
        let (mut first, mut across) = (0.0, 0.0);
        let mut best: Option<Cut> = None;
        for moved in 0..n {
            let to_first: f64 = (0..moved).map(|other| distance(moved, other)).sum();
            let to_second: f64 = (moved + 1..n).map(|other| distance(moved, other)).sum();
            first += to_first;
            second -= to_second;
            across += to_second - to_first;
            let at = moved + 1;
            if at < AGREEING_MIN || n - at < AGREEING_MIN {
                continue;
            }
            let (a, b) = (at as f64, (n - at) as f64);
            let pairs = |count: f64| count * (count - 1.0) / 2.0;
            let apart = 2.0 * across / (a * b) - first / pairs(a) - second / pairs(b);
            let energy = a * b / (a + b) * apart;
            if best.is_none_or(|cut| energy > cut.energy) {
                best = Some(Cut { at, energy });
            }
        }
        best
    }

    /// How often the values in random order have a cut of at least `energy`. Counting stops when it
    /// is certain that they have it too often.
    fn p_value(&self, energy: f64, random: &mut Random) -> f64 {
        // Most parts of a quiet series have no change, and a full count for each would cost most of
        // the time. A p-value that is returned early is above `ALPHA`, and only whether it is
        // matters to the caller.
        let enough = (ALPHA * (PERMUTATIONS + 1) as f64).ceil() as usize + 1;
        let mut order: Vec<usize> = (0..self.len).collect();
        let mut as_large = 0;
        for tried in 1..=PERMUTATIONS {
            random.shuffle(&mut order);
            // The sums of another order differ in their last bits.
            let found = self.best_cut_of(&order).map_or(0.0, |cut| cut.energy);
            if found >= energy * (1.0 - 1e-9) {
                as_large += 1;
            }
            if as_large >= enough {
                return (as_large + 1) as f64 / (tried + 1) as f64;
            }
        }
        // The order that was measured counts as one of the orders, so no p-value is zero.
        (as_large + 1) as f64 / (PERMUTATIONS + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_energy_is_that_of_its_definition() {
        // Of 1, 2 | 5, 6: four distances across of 4 in the mean, one of 1 within each part, so
        // 2 * 4 - 1 - 1 = 6, weighed by 2 * 2 / 4.
        let cut = Distances::from_values(&[1.0, 2.0, 5.0, 6.0])
            .best_cut()
            .unwrap();
        assert_eq!((cut.at, cut.energy), (2, 6.0));
        assert!(
            Distances::from_values(&[1.0, 2.0, 3.0])
                .best_cut()
                .is_none()
        );
    }

    #[test]
    fn a_step_is_called_when_a_second_run_agrees() {
        let mut values = vec![
            100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.3,
        ];
        assert_eq!(change_points(&values, 1).unwrap(), []);
        values.push(110.0);
        assert_eq!(
            change_points(&values, 1).unwrap(),
            [],
            "one run is not enough"
        );
        values.push(100.0);
        assert_eq!(
            change_points(&values, 1).unwrap(),
            [],
            "the second one disagrees"
        );
        values.pop();
        values.extend([110.4, 109.7]);
        let points = change_points(&values, 1).unwrap();
        assert_eq!(points.len(), 1, "{points:?}");
        assert_eq!((points[0].at, points[0].after), (10, 110.0));
        assert!((points[0].change() - 0.0995).abs() < 0.001, "{points:?}");
    }

    #[test]
    fn several_steps_are_told_apart() {
        let values: Vec<f64> = (0..45)
            .map(|run| [100.0, 120.0, 90.0][run / 15] + (run % 3) as f64)
            .collect();
        let at: Vec<usize> = change_points(&values, 3)
            .unwrap()
            .iter()
            .map(|p| p.at)
            .collect();
        assert_eq!(at, [15, 30]);
    }

    #[test]
    fn equal_values_and_short_series_have_no_change() {
        for values in [
            vec![5.0; 30],
            vec![1.0],
            vec![1.0, 9.0],
            vec![1.0, 9.0, 9.0],
        ] {
            assert_eq!(change_points(&values, 1).unwrap(), [], "{values:?}");
        }
        assert!(change_points(&[], 1).is_err());
        assert!(change_points(&[1.0, f64::NAN], 1).is_err());
    }
}
