//! A number is one, and what cannot be below zero is not.

use dyno_record::{Better, Figures, QuotedFigure};

use super::unit::{Kind, parse};
use super::{Finding, Severity};

/// Metrics that are differences may be negative in any unit.
const DIFFERENCES: [&str; 5] = ["change", "difference", "delta", "overhead", "drift"];

#[derive(Clone, Copy, PartialEq)]
enum Must {
    BeFinite,
    NotBeNegative,
    BePositive,
}

use Must::{BeFinite, BePositive, NotBeNegative};

/// (what it is, its value, what it must be)
type Number = (&'static str, Option<f64>, Must);

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let all = rows(figures).into_iter().chain(tables(figures));
    all.flat_map(|(subject, numbers)| {
        let wrong = numbers.into_iter();
        wrong.filter_map(move |number| wrong_number(&subject, number))
    })
    .collect()
}

/// The numbers of figures, limits, claims and counts, by their subjects.
fn rows(figures: &Figures) -> Vec<(String, Vec<Number>)> {
    let timer = vec![("timer_cost_ns", figures.timer_cost_ns, BePositive)];
    let mut rows = vec![(figures.title.clone(), timer)];
    let of_figures = figures.figures.iter();
    rows.extend(of_figures.map(|figure| (figure.id.clone(), of_figure(figure))));
    rows.extend(figures.limits.iter().map(|limit| {
        let numbers = vec![
            ("value", Some(limit.value), BePositive),
            ("best", limit.best, BePositive),
            ("independent", limit.independent, BePositive),
        ];
        (limit.name.clone(), numbers)
    }));
    rows.extend(figures.claims.iter().map(|claim| {
        let numbers = vec![
            ("ratio", claim.ratio, BePositive),
            ("ratio_low", claim.ratio_low, BePositive),
            ("ratio_high", claim.ratio_high, BePositive),
            ("noise_band", claim.noise_band, NotBeNegative),
        ];
        (claim.text.clone(), numbers)
    }));
    rows.extend(figures.counts.iter().map(|count| {
        let numbers = vec![
            ("stated", Some(count.stated), NotBeNegative),
            ("expected", Some(count.expected), NotBeNegative),
        ];
        (count.subject.clone(), numbers)
    }));
    rows
}

/// The numbers of percentiles, codecs, totals, properties and spreads, by their subjects.
fn tables(figures: &Figures) -> Vec<(String, Vec<Number>)> {
    let mut tables = Vec::new();
    tables.extend(figures.latencies.iter().map(|latency| {
        let points = latency.points.iter().flat_map(|(percentile, value)| {
            [
                ("percentile", Some(*percentile), BeFinite),
                ("latency", Some(*value), NotBeNegative),
            ]
        });
        let mut numbers: Vec<Number> = points.collect();
        numbers.push(("count", latency.count, BePositive));
        numbers.push(("mean", latency.mean, NotBeNegative));
        (latency.subject.clone(), numbers)
    }));
    tables.extend(figures.codecs.iter().map(|codec| {
        let numbers = vec![
            ("compress", codec.compress, BePositive),
            ("decompress", codec.decompress, BePositive),
            ("ratio", codec.ratio, BePositive),
        ];
        (format!("{} on {}", codec.codec, codec.data), numbers)
    }));
    let finite = |stated: Option<f64>, values: &mut dyn Iterator<Item = f64>| -> Vec<Number> {
        let all = stated.into_iter().chain(values);
        all.map(|v| ("value", Some(v), BeFinite)).collect()
    };
    tables.extend(figures.totals.iter().map(|total| {
        let numbers = finite(Some(total.stated), &mut total.parts.iter().copied());
        (total.subject.clone(), numbers)
    }));
    tables.extend(figures.properties.iter().map(|property| {
        let numbers = finite(None, &mut property.values.iter().map(|v| v.value));
        (property.subject.clone(), numbers)
    }));
    tables.extend(figures.spread_words.iter().map(|word| {
        let numbers = finite(Some(word.stated), &mut word.samples.iter().copied());
        (word.subject.clone(), numbers)
    }));
    tables
}

fn of_figure(figure: &QuotedFigure) -> Vec<Number> {
    let value = of_value(figure);
    vec![
        ("value", Some(figure.value), value),
        ("low", figure.low, value.at_zero()),
        ("high", figure.high, value.at_zero()),
        ("n", figure.n.map(f64::from), BePositive),
        ("limit_per_unit", figure.limit_per_unit, BePositive),
        ("duration_s", figure.duration_s, BePositive),
        ("count", figure.count, NotBeNegative),
        ("threads", figure.threads, BePositive),
        ("in_flight", figure.in_flight, BePositive),
        ("latency_mean_s", figure.latency_mean_s, NotBeNegative),
        ("latency_p50_s", figure.latency_p50_s, NotBeNegative),
        ("offered_rate", figure.offered_rate, BePositive),
        ("achieved_rate", figure.achieved_rate, NotBeNegative),
        ("generator_lag_s", figure.generator_lag_s, NotBeNegative),
        ("windows_s", figure.windows_s, NotBeNegative),
        ("drift", figure.drift, BeFinite),
    ]
}

impl Must {
    /// The ends of a spread may touch zero where the value in the middle may not.
    fn at_zero(self) -> Must {
        if self == BeFinite {
            BeFinite
        } else {
            NotBeNegative
        }
    }
}

/// Times, bytes and rates are not negative, and a rate that should be high is not zero. A value in
/// a unit such as dB or % may be anything.
fn of_value(figure: &QuotedFigure) -> Must {
    let Some(unit) = parse(&figure.unit) else {
        return BeFinite;
    };
    let is_difference = DIFFERENCES.iter().any(|word| figure.metric.contains(word));
    let bounded = unit.is_rate() || matches!(unit.of, Kind::Time | Kind::Bytes);
    match (bounded && !is_difference, figure.better) {
        (false, _) => BeFinite,
        (true, Better::Higher) => BePositive,
        (true, Better::Lower) => NotBeNegative,
    }
}

fn wrong_number(subject: &str, (name, value, must): Number) -> Option<Finding> {
    // Absent is not wrong: a report need not state everything.
    let value = value?;
    let is_right = match must {
        BeFinite => value.is_finite(),
        NotBeNegative => value.is_finite() && value >= 0.0,
        BePositive => value.is_finite() && value > 0.0,
    };
    let seen = match value {
        v if v.is_nan() => format!("{name} is not a number"),
        v => format!("{name} is {v}"),
    };
    (!is_right).then(|| {
        Finding::new(
            "not-a-number",
            Severity::Error,
            subject,
            seen,
            "Nothing that is measured has this value: a division by zero, an overflow or a missing \
             sample was printed.",
            "Find the sample that it came from, and print that it is missing.",
        )
    })
}
