//! What percentiles say about the mean: between two of them every request took at least the lower
//! and at most the higher.

use dyno_record::{Figures, LatencyFigure, QuotedFigure};

use super::unit::convert;

/// What lies beyond the last percentile is taken to last at most this many times as long. A report
/// that stops at p50 may hide a great deal, one that stops at p99.9 very little.
const TAIL: f64 = 10.0;

/// Where the mean must lie, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Whether the upper end rests on [`TAIL`], since no maximum is printed.
    pub(super) assumed: bool,
}

/// The percentiles that belong to a figure.
pub(super) fn table_of<'a>(
    figures: &'a Figures,
    figure: &QuotedFigure,
) -> Option<&'a LatencyFigure> {
    let name = figure.latency.as_ref().unwrap_or(&figure.id);
    figures.latencies.iter().find(|l| &l.subject == name)
}

/// (percentile, seconds), rising; empty when the unit is not one of time.
pub(super) fn points_s(latency: &LatencyFigure) -> Vec<(f64, f64)> {
    let in_seconds = |(p, v): &(f64, f64)| Some((*p, convert(*v, &latency.unit, "s")?));
    let mut points: Vec<(f64, f64)> = latency.points.iter().filter_map(in_seconds).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The printed mean of a figure in seconds.
pub(super) fn printed_s(figures: &Figures, figure: &QuotedFigure) -> Option<f64> {
    figure.latency_mean_s.or_else(|| {
        let table = table_of(figures, figure)?;
        convert(table.mean?, &table.unit, "s")
    })
}

/// The bounds of a figure's mean latency, from its percentiles and its median.
pub(super) fn bounds_of(figures: &Figures, figure: &QuotedFigure) -> Option<Bounds> {
    let mut points = table_of(figures, figure).map(points_s).unwrap_or_default();
    if let Some(median) = figure.latency_p50_s
        && !points.iter().any(|(p, _)| *p == 50.0)
    {
        points.push((50.0, median));
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    bounds(&points)
}

/// `None` if a percentile has no such name or they are out of order, because other rules say so.
pub(super) fn bounds(points: &[(f64, f64)]) -> Option<Bounds> {
    let valid = |(p, v): &(f64, f64)| (0.0..=100.0).contains(p) && v.is_finite() && *v >= 0.0;
    let rising = points.windows(2).all(|pair| pair[0].1 <= pair[1].1);
    let (last, longest) = *points.last()?;
    if !points.iter().all(valid) || !rising {
        return None;
    }
    let (mut low, mut high) = (0.0, 0.0);
    let mut below = (0.0, 0.0);
    // Between two percentiles every request took at least the lower value and at most the higher,
    // so weighting each share with either end bounds the mean without any assumption. Below the
    // first percentile the least that is possible is zero.
    for &(percentile, value) in points {
        let share = (percentile - below.0) / 100.0;
        low += share * below.1;
        high += share * value;
        below = (percentile, value);
    }
    // Nothing is known beyond the last percentile but that requests there took no less. With a
    // maximum (p100) the rest is zero, and so is the assumption.
    let rest = (100.0 - last) / 100.0;
    Some(Bounds {
        low: low + rest * longest,
        high: high + rest * longest * TAIL,
        assumed: rest > 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_known_distribution() {
        // Half take 1 s, the others 3 s: the mean is 2.
        let found = bounds(&[(0.0, 1.0), (50.0, 1.0), (100.0, 3.0)]).unwrap();
        assert_eq!((found.low, found.high, found.assumed), (1.0, 2.0, false));
        let open = bounds(&[(50.0, 1.0)]).unwrap();
        assert_eq!((open.low, open.high, open.assumed), (0.5, 5.5, true));
        assert!(bounds(&[(50.0, 2.0), (99.0, 1.0)]).is_none());
        assert!(bounds(&[(990.0, 2.0)]).is_none());
        assert!(bounds(&[]).is_none());
    }
}
