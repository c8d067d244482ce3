//! Whether a rate stays level, told from the noise of a shared machine.
//!
//! A run is cut into even stretches of time, its windows. Their rates scatter, neighbours resemble
//! each other, and now and then a stall of the machine pulls one of them down. So the trend is
//! looked for in the order of the windows and not in their values, and its error allows for the
//! resemblance of neighbours.

use crate::error::{StatsError, check};
use crate::independence::autocorrelation;
use crate::summary::{mean, median};

/// What counts as level, and how much must be seen to say so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyOptions {
    /// Windows that a sample must have.
    pub windows_min: usize,
    /// Change from the first third of the windows to the last that is still level: 0.05 is 5%.
    pub change_max: f64,
    /// Standard errors that a trend must reach: 2.576 errs once in a hundred level runs.
    pub z_min: f64,
    /// A run in which not even this change would be noticed, four times in five, says nothing.
    pub resolution_max: f64,
}

impl Default for SteadyOptions {
    fn default() -> Self {
        Self {
            windows_min: 20,
            change_max: 0.05,
            z_min: 2.576,
            resolution_max: 0.20,
        }
    }
}

/// How the rate of some samples of one thing went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Mean rate of the last third of the windows against that of the first, less 1: the median
    /// over the samples. -0.2 is a fall by a fifth.
    pub change: f64,
    /// Mann and Kendall's statistic over all samples in standard errors; above zero it rises.
    pub z: f64,
    /// The change that the samples together would show in four cases out of five.
    pub resolution: f64,
}

/// What may be said of a [`Trend`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steadiness {
    /// It changes by less than is allowed, or by no more than noise does.
    Steady,
    /// It changes, and more than noise does.
    NotSteady,
    /// The windows scatter so much that a change which matters would not be noticed.
    TooUneven,
}

impl Trend {
    /// Applies the rules: a change counts when it is both shown and large enough to matter.
    pub fn judge(&self, options: &SteadyOptions) -> Steadiness {
        if self.z.abs() >= options.z_min && self.change.abs() > options.change_max {
            Steadiness::NotSteady
        } else if self.resolution > options.resolution_max {
            Steadiness::TooUneven
        } else {
            Steadiness::Steady
        }
    }
}

/// Standard errors between "level" and a change that is noticed in four cases of five: the
/// quantiles of the normal distribution at 0.995 and 0.80 together.
const POWER_Z: f64 = 2.576 + 0.842;

/// The trend that `samples` of one thing have in common; each is the windows of one run, in the
/// order of time.
///
/// Mann and Kendall's test (Mann, "Nonparametric tests against trend", 1945), its statistics and
/// variances added over the samples. Each variance is widened by `(1 + r) / (1 - r)` for neighbours
/// that resemble each other (Yue and Wang, "The Mann-Kendall test modified by effective sample
/// size", 2004), where `r` is the autocorrelation at lag 1 of what is left of the ranks when a
/// parabola is taken out. A line taken out of the values, as is usual, would leave the bend of a
/// rate that falls fast at first and slowly later, take the bend for resemblance, and pass the
/// very bursts that this test is for.
///
/// # Errors
/// On no samples, a sample of fewer than [`SteadyOptions::windows_min`] windows, or a number that
/// is not finite.
pub fn trend(samples: &[&[f64]], options: &SteadyOptions) -> Result<Trend, StatsError> {
    if samples.is_empty() {
        return Err(StatsError::TooFew {
            what: "a trend",
            needed: 1,
            found: 0,
        });
    }
    let (mut s, mut variance, mut errors, mut changes) = (0.0, 0.0, 0.0, Vec::new());
    for windows in samples {
        check("a trend", options.windows_min.max(6), windows)?;
        let one = one_run(windows)?;
        s += one.s;
        variance += one.variance;
        // Samples are independent processes, so their variances add up.
        errors += one.error.powi(2);
        changes.push(one.change);
    }
    // The continuity correction: the statistic moves in steps of two.
    let z = s.signum() * (s.abs() - 1.0).max(0.0) / variance.sqrt();
    Ok(Trend {
        change: median(&changes)?,
        z,
        resolution: POWER_Z * errors.sqrt() / samples.len() as f64,
    })
}

/// The first window from which all `samples` are steady to their end, if at least half of the
/// windows remain then. A service that needs a moment to warm up is steady from there on.
pub fn steady_from(samples: &[&[f64]], options: &SteadyOptions) -> Option<usize> {
    let shortest = samples.iter().map(|windows| windows.len()).min()?;
    let tail = SteadyOptions {
        windows_min: (options.windows_min / 2).max(6),
        ..*options
    };
    // At least half of the shortest sample must remain: a tail of few windows is steady by luck.
    let last = shortest - shortest.div_ceil(2).max(tail.windows_min).min(shortest);
    (0..=last).find(|&from| {
        let tails: Vec<&[f64]> = samples.iter().map(|windows| &windows[from..]).collect();
        trend(&tails, &tail).is_ok_and(|seen| seen.judge(&tail) == Steadiness::Steady)
    })
}

/// One sample's share in a [`Trend`].
struct OneRun {
    s: f64,
    variance: f64,
    change: f64,
    /// Standard error of `change`, as a share of the rate.
    error: f64,
}

fn one_run(windows: &[f64]) -> Result<OneRun, StatsError> {
    let n = windows.len();
    let mut s = 0.0;
    for (i, early) in windows.iter().enumerate() {
        for late in &windows[i + 1..] {
            s += f64::from(i8::from(late > early) - i8::from(late < early));
        }
    }
    let count = n as f64;
    // Removing three coefficients makes what is left look less alike than it was; the correction
    // was chosen by the simulation in `tests/steady.rs`.
    let seen = autocorrelation(&without_parabola(&ranks(windows)), 1)?;
    let resemblance = ((count * seen + 3.0) / (count - 5.0)).clamp(0.0, 0.95);
    // Resemblance below zero would narrow the error, and the estimate of it from so few windows is
    // not worth that risk. At 1 the factor would divide by zero.
    let widened = (1.0 + resemblance) / (1.0 - resemblance);
    let third = n / 3;
    let (first, last) = (mean(&windows[..third])?, mean(&windows[n - third..])?);
    let middle = mean(windows)?;
    let left: Vec<f64> = without_parabola(windows).iter().map(|x| x.abs()).collect();
    // The median deviation, since a stall or two do not hide a trend.
    let scatter = if middle > 0.0 {
        DEVIATION_OF_MEDIAN * median(&left)? / middle
    } else {
        0.0
    };
    Ok(OneRun {
        s,
        variance: count * (count - 1.0) * (2.0 * count + 5.0) / 18.0 * widened,
        change: match (first > 0.0, last > 0.0) {
            (true, _) => last / first - 1.0,
            // From nothing to something.
            (false, true) => 1.0,
            (false, false) => 0.0,
        },
        error: scatter * (widened * 2.0 / third as f64).sqrt(),
    })
}

/// What the median of absolute deviations is multiplied by to give a standard deviation, for
/// normal numbers.
const DEVIATION_OF_MEDIAN: f64 = 1.4826;

/// What is left of `values` when the parabola that fits them best is taken out: the constant, the
/// line and the parabola are made orthogonal over the windows, and each is projected out.
fn without_parabola(values: &[f64]) -> Vec<f64> {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let at: Vec<f64> = (0..values.len()).map(|i| i as f64 - middle).collect();
    let square = at.iter().map(|x| x * x).sum::<f64>() / at.len() as f64;
    let shapes: [Vec<f64>; 3] = [
        vec![1.0; at.len()],
        at.clone(),
        at.iter().map(|x| x * x - square).collect(),
    ];
    let mut left = values.to_vec();
    for shape in &shapes {
        let length: f64 = shape.iter().map(|x| x * x).sum();
        let share = left.iter().zip(shape).map(|(y, x)| y * x).sum::<f64>() / length;
        left.iter_mut()
            .zip(shape)
            .for_each(|(y, x)| *y -= share * x);
    }
    left
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}
