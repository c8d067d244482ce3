//! Where a run stops warming up.

/// What counts as steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyOptions {
    /// Windows that the steady part must have.
    pub windows_min: usize,
    /// Largest change of the fitted line from its start to its end, as a share of the mean.
    pub drift_max: f64,
    /// Largest standard deviation around the line, as a share of the mean.
    pub variation_max: f64,
}

impl Default for SteadyOptions {
    fn default() -> Self {
        Self {
            windows_min: 5,
            drift_max: 0.05,
            variation_max: 0.10,
        }
    }
}

/// The steady part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// The first window of it; the run is steady from there to its end.
    pub from: usize,
    /// Change of the fitted line over it, as a share of the mean.
    pub drift: f64,
    /// Standard deviation around the line, as a share of the mean.
    pub variation: f64,
}

/// The longest tail of `windows` (rates or latencies of even stretches of time) in which a line
/// fitted by least squares drifts and scatters no more than allowed: the two tests of fio's steady
/// state, slope and deviation, applied together. `None` when not even the shortest tail is steady.
pub fn steady_from(windows: &[f64], options: &SteadyOptions) -> Option<Steady> {
    let windows_min = options.windows_min.max(3);
    let last = windows.len().checked_sub(windows_min)?;
    (0..=last).find_map(|from| {
        let (drift, variation) = line(&windows[from..])?;
        let steady = drift.abs() <= options.drift_max && variation <= options.variation_max;
        steady.then_some(Steady {
            from,
            drift,
            variation,
        })
    })
}

/// Drift and scatter of the least-squares line; `None` when the mean is zero or not a number.
fn line(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if !mean.is_finite() || mean == 0.0 {
        return None;
    }
    let middle = (n - 1.0) / 2.0;
    let steps = || {
        values
            .iter()
            .enumerate()
            .map(|(i, value)| (i as f64 - middle, value - mean))
    };
    let slope = steps().map(|(x, y)| x * y).sum::<f64>() / steps().map(|(x, _)| x * x).sum::<f64>();
    let residual = steps().map(|(x, y)| (y - slope * x).powi(2)).sum::<f64>() / (n - 2.0);
    Some((slope * (n - 1.0) / mean, residual.sqrt() / mean.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_cut() {
        let mut windows = vec![10.0, 40.0, 70.0, 90.0];
        windows.extend([100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 100.0, 100.0]);
        let steady = steady_from(&windows, &SteadyOptions::default()).unwrap();
        assert!((3..=4).contains(&steady.from), "{steady:?}");
    }

    #[test]
    fn drift_and_scatter_by_hand() {
        // 1, 2, 3 is a line of slope 1 around 2: it changes by 2 / 2, and scatters not at all.
        let (drift, variation) = line(&[1.0, 2.0, 3.0]).unwrap();
        assert!((drift - 1.0).abs() < 1e-12 && variation < 1e-12);
    }

    #[test]
    fn a_run_that_never_settles_is_not_steady() {
        let rising: Vec<f64> = (1..20).map(|i| f64::from(i) * 10.0).collect();
        assert_eq!(steady_from(&rising, &SteadyOptions::default()), None);
        let wild: Vec<f64> = (0..20)
            .map(|i| if i % 2 == 0 { 50.0 } else { 150.0 })
            .collect();
        assert_eq!(steady_from(&wild, &SteadyOptions::default()), None);
        assert_eq!(steady_from(&[5.0, 5.0], &SteadyOptions::default()), None);
        assert_eq!(steady_from(&[0.0; 10], &SteadyOptions::default()), None);
    }
}
