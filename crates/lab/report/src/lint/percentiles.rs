//! Percentiles lie between 0 and 100, rise, and rest on samples.

use dyno_record::{Figures, LatencyFigure};

use super::{Finding, Severity};
use crate::units::{number, quantity};

/// A percentile with fewer samples above it is the mood of a few requests.
const SAMPLES_ABOVE: f64 = 10.0;
/// Beyond this percentile a report has to say how many requests it had.
const NEEDS_COUNT: f64 = 99.9;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let names = figures.figures.iter().filter_map(|figure| {
        let wrong = percentile_in(&figure.metric)?.err()?;
        Some(no_percentile(
            &figure.id,
            format!("the metric is called {wrong}"),
        ))
    });
    let ranges = figures.latencies.iter().filter_map(out_of_range);
    let disorder = figures.latencies.iter().filter_map(out_of_order);
    let thin = figures.latencies.iter().filter_map(thin_tail);
    names.chain(ranges).chain(disorder).chain(thin).collect()
}

/// The percentile in the name of a metric: 99.9 for `latency-p999`. An error for a word that only
/// looks like one, such as `p101`; `None` if the name has no such word.
pub(super) fn percentile_in(metric: &str) -> Option<Result<f64, String>> {
    let mut words = metric.split(['-', '_', ' ']);
    let is_number = |digits: &str| {
        let digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        !digits.is_empty() && digits.bytes().all(digit)
    };
    let word = words.find(|word| word.strip_prefix(['p', 'P']).is_some_and(is_number))?;
    let digits = &word[1..];
    let value: f64 = digits.parse().unwrap_or(f64::NAN);
    let decimals = match digits.len() {
        // Digits after the second are decimals, but only of a percentile that begins with 9.
        long @ 3.. if digits.starts_with('9') && !digits.contains('.') => long - 2,
        _ => 0,
    };
    let value = value / 10f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX));
    Some(if (0.0..=100.0).contains(&value) {
        Ok(value)
    } else {
        Err(word.to_owned())
    })
}

fn no_percentile(subject: &str, seen: String) -> Finding {
    Finding::new(
        "percentile-name",
        Severity::Error,
        subject,
        seen,
        "A percentile lies between 0 and 100; a reader cannot know which one is meant.",
        "Write 99.9 for p99.9, and 100 for the maximum.",
    )
}

fn out_of_range(latency: &LatencyFigure) -> Option<Finding> {
    // A NaN lies in no range and is caught here as well.
    let mut percentiles = latency.points.iter().map(|(p, _)| *p);
    if let Some(wrong) = percentiles.clone().find(|p| !(0.0..=100.0).contains(p)) {
        let seen = format!("p{wrong} is listed among the percentiles");
        return Some(no_percentile(&latency.subject, seen));
    }
    let are_shares = latency.points.len() > 1 && percentiles.all(|p| p <= 1.0);
    are_shares.then(|| {
        let seen = "all percentiles are at most 1, so they are probably shares".to_owned();
        no_percentile(&latency.subject, seen)
    })
}

fn out_of_order(latency: &LatencyFigure) -> Option<Finding> {
    let mut points = latency.points.clone();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let is_wrong = |a: (f64, f64), b: (f64, f64)| b.1 < a.1 || (a.0 == b.0 && a.1 != b.1);
    let pair = points.windows(2).find(|pair| is_wrong(pair[0], pair[1]))?;
    let show = |value: f64| quantity(value, &latency.unit);
    let [(low, first), (high, second)] = [pair[0], pair[1]];
    let seen = if low == high {
        format!("p{low} is {} and {}", show(first), show(second))
    } else {
        format!(
            "p{high} is {}, below p{low} at {}",
            show(second),
            show(first)
        )
    };
    Some(Finding::new(
        "percentile-order",
        Severity::Error,
        &latency.subject,
        seen,
        "A higher percentile cannot be lower: they were mixed up, or averaged.",
        "Merge histograms, then read the percentiles off the merged one.",
    ))
}

fn thin_tail(latency: &LatencyFigure) -> Option<Finding> {
    // The maximum (p100) claims nothing beyond itself.
    let inner = latency.points.iter().map(|(p, _)| *p);
    let mut inner = inner.filter(|p| (0.0..100.0).contains(p));
    let needed = |p: f64| SAMPLES_ABOVE / (1.0 - p / 100.0);
    let seen = match latency.count {
        Some(count) => {
            let above = |p: f64| count * (1.0 - p / 100.0);
            // The room of a millionth is for counts such as 10,000 x 0.001, which floats put
            // slightly below ten.
            let thin = inner.find(|p| above(*p) < SAMPLES_ABOVE - 1e-6)?;
            let above = (above(thin) * 10.0).round() / 10.0;
            format!(
                "p{thin} of {} requests has {} above it",
                number(count),
                number(above)
            )
        }
        None => {
            let p = inner.find(|p| *p > NEEDS_COUNT)?;
            format!(
                "p{p} takes {} requests; how many there were is not said",
                number(needed(p))
            )
        }
    };
    Some(Finding::new(
        "percentile-count",
        Severity::Warning,
        &latency.subject,
        seen,
        "With fewer than ten above it, it will be another number next time.",
        "Measure longer, or quote a lower percentile.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_in_names() {
        for (metric, value) in [
            ("latency-p50", 50.0),
            ("latency-p999", 99.9),
            ("write-p9999", 99.99),
            ("p99.9", 99.9),
            ("p100", 100.0),
            ("P5 of reads", 5.0),
        ] {
            assert_eq!(percentile_in(metric), Some(Ok(value)), "{metric}");
        }
        for metric in ["latency-p101", "p500", "p1.2.3"] {
            assert!(matches!(percentile_in(metric), Some(Err(_))), "{metric}");
        }
        for metric in ["throughput", "pages", "page-time", "", "p"] {
            assert_eq!(percentile_in(metric), None, "{metric}");
        }
    }
}
