//! The tables that a plan asks for.

use dyno_record::{Arm, Better, Outcome, Sample, Table, TableKind, TableRow};
use dyno_stats::coefficient_of_variation;

use super::OURS;
use super::cell::{Cell, FilledTable, figure_cell};
use super::figure::{Figure, Ratio};
use super::pairing::{deciding_ratio, ranking_figure};
use super::report::Report;
use super::samples::{group, one_value, value_of, with_range};
use super::{guide, side_by_side};
use crate::units::{number, quantity, ratio_range, ratio_text, share_text, verdict_word};

/// Fills a table of the plan from the figures.
pub(crate) fn fill(table: &Table, report: &Report, samples: &[Sample]) -> FilledTable {
    match table.kind {
        TableKind::Cases => cases(table, report, samples),
        TableKind::Metrics => side_by_side::fill(table, report),
        TableKind::Guide => guide::fill(table, report),
    }
}

fn cases(table: &Table, report: &Report, samples: &[Sample]) -> FilledTable {
    let mut places: Vec<(&TableRow, String)> = Vec::new();
    let mut notes = Vec::new();
    for row in &table.rows {
        // A run may have chosen some of the cases, so a row without its case is a note below the
        // table and not an error.
        let Some(case) = report.cases.iter().find(|c| c.plan.name == row.case) else {
            notes.push(format!("{}: case {} was not run", row.label, row.case));
            continue;
        };
        match &row.system {
            Some(system) => places.push((row, system.clone())),
            None => places.extend(case.plan.compared().map(|s| (row, s.clone()))),
        }
    }
    if table.ranked {
        places.sort_by(|a, b| {
            let (a, b) = [a, b]
                .map(|place| rank(table, report, samples, place))
                .into();
            a.total_cmp(&b)
        });
    }
    notes.extend(steady_notes(report, &places));
    let rows = places
        .iter()
        .map(|(row, system)| filled_row(table, report, samples, row, system))
        .collect();
    notes.extend(seed_notes(table, report));
    FilledTable {
        title: title(table, samples),
        columns: std::iter::once(String::new())
            .chain(table.columns.iter().map(|name| head(name)))
            .collect(),
        rows,
        notes,
    }
}

/// The heading, in which `${fact.NAME}` stands for that fact of the samples below it. What an
/// endpoint served, for example, is known after the run only.
fn title(table: &Table, samples: &[Sample]) -> String {
    let mut title = table.title.clone();
    while let Some((before, rest)) = title.split_once("${fact.")
        && let Some((name, after)) = rest.split_once('}')
    {
        let below = |sample: &&Sample| table.rows.iter().any(|row| row.case == sample.case);
        let facts = samples.iter().filter(below);
        let facts = facts.filter_map(|sample| sample.facts.get(name).map(String::as_str));
        // A half of a pair that runs without the thing says `none`, and the heading is about the
        // thing.
        let value = one_value(facts.filter(|fact| *fact != "none"));
        let value = value.unwrap_or_else(|| format!("a {name} that no sample names"));
        title = format!("{before}{value}{after}");
    }
    title
}

/// The lower, the better; what has no figure comes last.
fn rank(table: &Table, report: &Report, samples: &[Sample], place: &(&TableRow, String)) -> f64 {
    let (case, system) = (place.0.case.as_str(), place.1.as_str());
    let figure = match table.ranked_by.as_deref() {
        Some("variation") => {
            let variation = coefficient_of_variation(&values(report, samples, case, system));
            return variation.unwrap_or(f64::INFINITY);
        }
        Some(metric) => report.figure(case, system, metric),
        None => ranking_figure(report, case, system),
    };
    match figure {
        Some(figure) if figure.better == Better::Higher => -figure.median,
        Some(figure) => figure.median,
        None => f64::INFINITY,
    }
}

/// The heading of a column. Units are left out, because the cells have them.
fn head(column: &str) -> String {
    match column {
        "ratio" => "dyno ÷ peer".to_owned(),
        "share-of-limit" => "of limit".to_owned(),
        "seed" => "seed document".to_owned(),
        "peak-rss" => "peak memory".to_owned(),
        "server-cpu-percent" => "server CPU load".to_owned(),
        other => words_of(other),
    }
}

fn words_of(column: &str) -> String {
    let mut words: Vec<&str> = column.split('-').collect();
    if let [_, .., "us" | "s" | "db" | "percent"] = words[..] {
        words.pop();
    }
    let spelled = words.into_iter().map(|word| match word {
        "cpu" => "CPU",
        "io" => "I/O",
        "wal" => "WAL",
        "rmse" => "RMSE",
        "snr" => "SNR",
        "p999" => "p99.9",
        other => other,
    });
    spelled.collect::<Vec<_>>().join(" ")
}

fn filled_row(
    table: &Table,
    report: &Report,
    samples: &[Sample],
    row: &TableRow,
    system: &str,
) -> Vec<Cell> {
    let mut cells = vec![Cell::text(&row.label)];
    let columns = table.columns.iter();
    cells.extend(columns.map(|column| cell(column, report, samples, row, system)));
    cells
}

fn cell(column: &str, report: &Report, samples: &[Sample], row: &TableRow, system: &str) -> Cell {
    let case = row.case.as_str();
    let ranking = ranking_figure(report, case, system);
    match column {
        "system" => system_cell(report, system),
        "spread" => spread_cell(ranking, report.trouble_count(case, system)),
        "share-of-limit" => match ranking.and_then(|f| f.share_of_limit.zip(f.limit)) {
            Some((share, limit)) => {
                let unit = ranking.map_or("", |f| f.unit.as_str());
                let title = format!("the limit is {}", quantity(limit, unit));
                Cell::number(share_text(share), title).with_value(share, "%")
            }
            None => Cell::none("the case names no limit that was measured"),
        },
        "ratio" => match deciding_ratio(report, case, system) {
            Some((peer, ratio)) => ratio_cell(peer, ratio, system),
            None => Cell::none("no peer ran in the same block"),
        },
        "verdict" => verdict_cell(report, case, system),
        "seed" => match row.seed.as_slice() {
            [value] => Cell::number(seed_text(report, case, *value), ""),
            // The document measured what our program stands for here, and none of the peers.
            _ if system == OURS => seed_cell(report, case),
            _ => Cell::none("the seed document has no figure of this system"),
        },
        "repeats" => repeats_cell(report, samples, case, system),
        "variation" => variation_cell(report, samples, case, system),
        "bottleneck" => bottleneck_cell(report, samples, case, system),
        name => {
            let prefixed = row.metric.as_ref().map(|prefix| format!("{prefix}-{name}"));
            let name = prefixed.as_deref().unwrap_or(name);
            match report.figure(case, system, name) {
                Some(figure) => figure_cell(figure),
                None => fact_cell(name, samples, case, system),
            }
        }
    }
}

/// The verdict on ours against a peer; without a peer, whether the rate itself stands.
fn verdict_cell(report: &Report, case: &str, system: &str) -> Cell {
    let figure = ranking_figure(report, case, system);
    let steady = figure.and_then(|figure| figure.steady.as_ref());
    match (deciding_ratio(report, case, system), steady) {
        (Some((_, ratio)), _) => Cell {
            title: ratio.reason.clone(),
            ..Cell::text(verdict_text(ratio.verdict, figure, system))
        },
        (None, Some(steady)) => Cell {
            title: steady.reason.clone(),
            ..Cell::text(steady.verdict)
        },
        (None, None) => Cell::none("no peer ran in the same block"),
    }
}

fn system_cell(report: &Report, system: &str) -> Cell {
    let known = report.run.systems.iter().find(|s| s.name == system);
    Cell {
        title: known.map_or(String::new(), |s| format!("version {}", s.version)),
        ..Cell::text(system)
    }
}

fn spread_cell(figure: Option<&Figure>, troubles: usize) -> Cell {
    let mut cell = match figure {
        None => Cell::none("no invocation ended well"),
        Some(figure) => Cell::number(spread_text(figure), ""),
    };
    cell.loud = troubles > 0 || figure.is_none_or(|f| f.n == 1);
    if troubles > 0 {
        cell.text = format!("{}, {troubles} failed", cell.text);
    }
    cell
}

/// The farther end of the spread as a share of the median, with n: `±1.2%, n = 10`.
pub(crate) fn spread_text(figure: &Figure) -> String {
    let n = figure.n;
    match spread_share(figure) {
        Some(share) => format!("{}, n = {n}", spread_percent(share)),
        None => format!("no spread, n = {n}"),
    }
}

/// How far the farther end of the spread is from the median, as a share of the median.
pub(crate) fn spread_share(figure: &Figure) -> Option<f64> {
    let (low, high) = figure.low.zip(figure.high)?;
    let farther = (figure.median - low).max(high - figure.median);
    (figure.median != 0.0).then(|| (farther / figure.median).abs())
}

/// Prints a share as the half width of a spread: `±1.2%`.
pub(crate) fn spread_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 {
        format!("±{percent:.1}%")
    } else {
        format!("±{percent:.0}%")
    }
}

/// On a peer's row the verdict is still on ours, so the text names us.
fn verdict_text(verdict: &'static str, figure: Option<&Figure>, system: &str) -> String {
    let word = figure.map_or(verdict, |f| verdict_word(verdict, &f.unit, &f.metric));
    match verdict {
        "faster" | "slower" if system != OURS => format!("{OURS} {word}"),
        _ => word.to_owned(),
    }
}

fn ratio_cell(peer: &str, ratio: &Ratio, system: &str) -> Cell {
    let text = match system {
        OURS => format!("{} {peer}", ratio_text(ratio.ratio)),
        _ => ratio_text(ratio.ratio),
    };
    let title = format!(
        "dyno against {peer}: {} over {} blocks; above 1, dyno is better",
        ratio_range(ratio.low, ratio.high),
        ratio.blocks
    );
    Cell::number(text, title).with_value(ratio.ratio, "x")
}

/// The ranking metric of every sample that ended well, in the order of the blocks.
fn values(report: &Report, samples: &[Sample], case: &str, system: &str) -> Vec<f64> {
    let Some(plan) = report.cases.iter().find(|c| c.plan.name == case) else {
        return Vec::new();
    };
    let done = group(samples, case, system, Arm::Main);
    done.iter()
        .filter(|s| s.outcome == Outcome::Done)
        .filter_map(|s| value_of(s, &plan.plan.metric))
        .collect()
}

fn unit_of_case<'a>(report: &'a Report, case: &str) -> &'a str {
    let found = report.cases.iter().find(|c| c.plan.name == case);
    found.map_or("", |c| c.plan.unit.as_str())
}

fn repeats_cell(report: &Report, samples: &[Sample], case: &str, system: &str) -> Cell {
    let values = values(report, samples, case, system);
    if values.is_empty() {
        return Cell::none("no invocation ended well");
    }
    let unit = unit_of_case(report, case);
    let texts: Vec<String> = values.iter().map(|value| number(*value)).collect();
    Cell::number(texts.join(", "), format!("{unit}, in the order of the run"))
}

fn variation_cell(report: &Report, samples: &[Sample], case: &str, system: &str) -> Cell {
    match coefficient_of_variation(&values(report, samples, case, system)) {
        Ok(share) => Cell::number(
            format!("{:.1}%", share * 100.0),
            "standard deviation of the repeats, as a share of their mean",
        )
        .with_value(share, "%"),
        Err(_) => Cell::none("fewer than two invocations ended well"),
    }
}

/// A number of the seed document in the unit of the case.
pub(crate) fn seed_text(report: &Report, case: &str, value: f64) -> String {
    quantity(value, unit_of_case(report, case))
}

fn seed_cell(report: &Report, case: &str) -> Cell {
    let plan = report.cases.iter().find(|c| c.plan.name == case);
    match plan.and_then(|c| Some((c.plan.seed_figure.as_ref()?, &c.plan.unit))) {
        Some((seed, unit)) => {
            Cell::number(quantity(seed.value, unit), seed.note.clone()).with_value(seed.value, unit)
        }
        None => Cell::none("the seed document has no such figure"),
    }
}

/// What experiments prove to bound our figure. Without them it is the longest stage as the samples
/// state it, which is where the time went and not what would make it shorter.
fn bottleneck_cell(report: &Report, samples: &[Sample], case: &str, system: &str) -> Cell {
    let found = report.cases.iter().find(|c| c.plan.name == case);
    let cause = found.and_then(|case| case.cause.as_ref());
    if let Some(cause) = cause.filter(|_| system == OURS) {
        return Cell {
            title: cause.text.clone(),
            ..Cell::text(cause.resource.as_deref().unwrap_or("unproven"))
        };
    }
    let stated: Vec<&str> = group(samples, case, system, Arm::Main)
        .into_iter()
        .filter(|s| s.outcome == Outcome::Done)
        .filter_map(|s| s.facts.get("bottleneck").map(String::as_str))
        .collect();
    match with_range(&stated) {
        Some(text) => Cell {
            title: "the longest stage; dyno run SUITE --case CASE --why proves a cause".to_owned(),
            ..Cell::text(format!("{text}, unproven"))
        },
        None => Cell::none("no sample states it"),
    }
}

fn fact_cell(name: &str, samples: &[Sample], case: &str, system: &str) -> Cell {
    let done = group(samples, case, system, Arm::Main);
    let facts: Vec<&str> = done
        .iter()
        .filter(|s| s.outcome == Outcome::Done)
        .filter_map(|s| s.facts.get(name).map(String::as_str))
        .collect();
    match with_range(&facts) {
        Some(text) => Cell::text(text),
        None => Cell::none("no sample states it"),
    }
}

/// Why the figures of a table are not steady, or not judged: a line for each reason.
fn steady_notes(report: &Report, places: &[(&TableRow, String)]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for (row, system) in places {
        let figure = ranking_figure(report, &row.case, system);
        let Some(steady) = figure.and_then(Figure::unsteady) else {
            continue;
        };
        let place = format!("{} on {system}", row.case);
        let text = steady.text();
        // Twenty rows with one reason make one line that names them.
        match notes.iter_mut().find(|(known, _)| *known == text) {
            Some((_, places)) => places.push(place),
            None => notes.push((text, vec![place])),
        }
    }
    let line = |(text, places): (String, Vec<String>)| format!("{text} ({})", places.join(", "));
    notes.into_iter().map(line).collect()
}

/// A seed's figure comes from another machine, so its note stands below the table.
fn seed_notes(table: &Table, report: &Report) -> Vec<String> {
    if !table.columns.iter().any(|name| name == "seed") {
        return Vec::new();
    }
    let mut notes: Vec<String> = table
        .rows
        .iter()
        .filter_map(|row| report.cases.iter().find(|c| c.plan.name == row.case))
        .filter_map(|case| case.plan.seed_figure.as_ref())
        .map(|seed| format!("Seed document: {}", seed.note))
        .collect();
    notes.sort();
    notes.dedup();
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_words_without_units() {
        for (column, heading) in [
            ("throughput", "throughput"),
            ("server-cpu-us", "server CPU"),
            ("server-cpu-percent", "server CPU load"),
            ("write-p999", "write p99.9"),
            ("io-rate", "I/O rate"),
            ("read-io-rate", "read I/O rate"),
            ("train-s", "train"),
            ("cpu", "CPU"),
        ] {
            assert_eq!(head(column), heading);
        }
    }
}
