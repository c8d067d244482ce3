//! A mean lies where the percentiles leave room for it, and a median is the 50th of them.

use dyno_record::{Figures, QuotedFigure};

use super::mean::{bounds, points_s, printed_s, table_of};
use super::percentiles::percentile_in;
use super::unit::convert;
use super::{Finding, Severity, off_by};
use crate::units::quantity;

/// Printed digits lose less than this.
const ROUNDED: f64 = 0.05;

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let of_figures = figures.figures.iter().flat_map(|figure| {
        let mean = printed_s(figures, figure);
        let table = table_of(figures, figure);
        let mean = table.zip(mean).and_then(|(table, mean)| {
            let points = points_s(table);
            outside(&figure.id, mean, &points)
        });
        let other = table.and_then(|table| disagrees(figure, &points_s(table)));
        mean.into_iter().chain(other)
    });
    // A table that belongs to a figure was checked with the figure's own mean. Checking it again
    // alone would report one mistake twice.
    let linked = |subject: &String| {
        let mut figures = figures.figures.iter();
        figures.any(|f| f.latency.as_ref().unwrap_or(&f.id) == subject)
    };
    let alone = figures.latencies.iter().filter(|l| !linked(&l.subject));
    let of_tables = alone.filter_map(|table| {
        let mean = convert(table.mean?, &table.unit, "s")?;
        outside(&table.subject, mean, &points_s(table))
    });
    of_figures.chain(of_tables).collect()
}

fn outside(subject: &str, mean: f64, points: &[(f64, f64)]) -> Option<Finding> {
    let room = bounds(points)?;
    let below = mean < room.low * (1.0 - ROUNDED);
    let above = mean > room.high * (1.0 + ROUNDED);
    // Beyond the last percentile anything may lie, so only a maximum makes it impossible.
    let severity = if above && room.assumed {
        Severity::Warning
    } else {
        Severity::Error
    };
    (below || above).then(|| {
        Finding::new(
            "mean-bounds",
            severity,
            subject,
            format!(
                "a mean of {}, where the percentiles allow {} to {}",
                quantity(mean, "s"),
                quantity(room.low, "s"),
                quantity(room.high, "s")
            ),
            "Mean and percentiles are of different samples, or of different units.",
            "Compute both from one histogram.",
        )
    })
}

/// The percentile that the figure states and its table states otherwise.
fn disagrees(figure: &QuotedFigure, points: &[(f64, f64)]) -> Option<Finding> {
    let named = percentile_in(&figure.metric).and_then(Result::ok);
    let value = named.zip(convert(figure.value, &figure.unit, "s"));
    let median = figure.latency_p50_s.map(|median| (50.0, median));
    let stated = [value, median].into_iter().flatten();
    let differs = |(p, quoted): &(f64, f64)| {
        let at = points.iter().find(|(other, _)| other == p)?.1;
        (off_by(*quoted, at) > ROUNDED).then_some((*p, *quoted, at))
    };
    let (percentile, quoted, at) = stated.filter_map(|point| differs(&point)).next()?;
    Some(Finding::new(
        "two-medians",
        Severity::Error,
        &figure.id,
        format!(
            "p{percentile} is {} in the row and {} in its table",
            quantity(quoted, "s"),
            quantity(at, "s")
        ),
        "At most one of them is the percentile of this test.",
        "Print it from the table, once.",
    ))
}
