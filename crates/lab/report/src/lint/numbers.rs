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
    let mut found = Vec::new();
    let mut judge = |subject: &str, numbers: &[Number]| {
        let wrong = numbers.iter().filter_map(|number| wrong(subject, number));
        found.extend(wrong);
    };
    judge(
        &figures.title,
        &[("timer_cost_ns", figures.timer_cost_ns, BePositive)],
    );
    for figure in &figures.figures {
        judge(&figure.id, &of_figure(figure));
    }
    for limit in &figures.limits {
        let numbers = [
            ("value", Some(limit.value), BePositive),
            ("best", limit.best, BePositive),
            ("independent", limit.independent, BePositive),
        ];
        judge(&limit.name, &numbers);
    }
    for claim in &figures.claims {
        let numbers = [
            ("ratio", claim.ratio, BePositive),
            ("ratio_low", claim.ratio_low, BePositive),
            ("ratio_high", claim.ratio_high, BePositive),
            ("noise_band", claim.noise_band, NotBeNegative),
        ];
        judge(&claim.text, &numbers);
    }
    for count in &figures.counts {
        let numbers = [
            ("stated", Some(count.stated), NotBeNegative),
            ("expected", Some(count.expected), NotBeNegative),
        ];
        judge(&count.subject, &numbers);
    }
    for latency in &figures.latencies {
        let mut numbers = vec![
            ("count", latency.count, BePositive),
            ("mean", latency.mean, NotBeNegative),
        ];
        for (percentile, value) in &latency.points {
            numbers.push(("percentile", Some(*percentile), BeFinite));
            numbers.push(("latency", Some(*value), NotBeNegative));
        }
        judge(&latency.subject, &numbers);
    }
    for codec in &figures.codecs {
        let numbers = [
            ("compress", codec.compress, BePositive),
            ("decompress", codec.decompress, BePositive),
            ("ratio", codec.ratio, BePositive),
        ];
        judge(&format!("{} on {}", codec.codec, codec.data), &numbers);
    }
    let bare = |values: Vec<f64>| -> Vec<Number> {
        let numbers = values.into_iter();
        numbers.map(|v| ("value", Some(v), BeFinite)).collect()
    };
    for total in &figures.totals {
        let stated = std::iter::once(total.stated);
        judge(
            &total.subject,
            &bare(stated.chain(total.parts.clone()).collect()),
        );
    }
    for property in &figures.properties {
        let values = property.values.iter().map(|v| v.value);
        judge(&property.subject, &bare(values.collect()));
    }
    for word in &figures.spread_words {
        let stated = std::iter::once(word.stated);
        judge(
            &word.subject,
            &bare(stated.chain(word.samples.clone()).collect()),
        );
    }
    found
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

fn wrong(subject: &str, (name, value, must): &Number) -> Option<Finding> {
    let value = (*value)?;
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
