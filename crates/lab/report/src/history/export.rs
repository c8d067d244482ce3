//! A history for other programs that watch figures over time.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{History, HistoryPoint, HistorySeries};

/// One number in Bencher Metric Format.
#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// A table for Otava, and the runs that it could not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtavaTable {
    /// The CSV, with a head.
    pub csv: String,
    /// Names of runs that lack a figure which the newest run has. Otava reads no empty cells.
    pub left_out: Vec<String>,
}

impl History {
    /// The figures of the newest run of each suite in Bencher Metric Format, which knows one run
    /// and no dates.
    ///
    /// # Errors
    /// When the runs are of several machines, which Bencher tells apart by a flag of its own.
    pub fn to_bencher(&self) -> Result<String, String> {
        self.check_one_machine()?;
        let mut benchmarks: BTreeMap<String, BTreeMap<&str, Metric>> = BTreeMap::new();
        for (series, point) in self.newest() {
            let metric = Metric {
                value: point.median,
                lower_value: point.low,
                upper_value: point.high,
            };
            let benchmark = format!("{}/{}/{}", series.suite, series.case, series.system);
            benchmarks
                .entry(benchmark)
                .or_default()
                .insert(&series.metric, metric);
        }
        serde_json::to_string_pretty(&benchmarks).map_err(|error| error.to_string())
    }

    /// All runs of one suite as the CSV that Otava's importer reads: a line for each run, a column
    /// for each figure of the newest one.
    ///
    /// # Errors
    /// When the runs are of several machines or suites, which would be several tables.
    pub fn to_otava(&self) -> Result<OtavaTable, String> {
        self.check_one_machine()?;
        let suites: BTreeSet<&str> = self.series.iter().map(|one| one.suite.as_str()).collect();
        if suites.len() > 1 {
            let names: Vec<&str> = suites.into_iter().collect();
            return Err(format!(
                "the runs are of several suites ({}), and a table is of one: name cases with --case",
                names.join(", ")
            ));
        }
        // Otava reads no empty cells, so the columns are the figures of one run, and a run that
        // lacks one of them is left out and named. Taking the newest run keeps the cases that exist
        // today.
        let columns: Vec<&HistorySeries> = self.newest().map(|(series, _)| series).collect();
        let mut runs: BTreeMap<(&str, &str), &HistoryPoint> = BTreeMap::new();
        for series in &self.series {
            let points = series.points.iter();
            runs.extend(
                points.map(|point| ((point.started_at.as_str(), point.run.as_str()), point)),
            );
        }
        let heads = columns
            .iter()
            .map(|one| format!("{}.{}.{}", one.case, one.system, one.metric));
        let heads: Vec<String> = ["time", "run", "revision"]
            .map(str::to_owned)
            .into_iter()
            .chain(heads)
            .collect();
        let mut csv = line(&heads);
        let mut left_out = Vec::new();
        for ((started_at, run), any) in runs {
            let values = columns.iter().map(|series| {
                let points = &mut series.points.iter();
                let found =
                    points.find(|p| (p.started_at.as_str(), p.run.as_str()) == (started_at, run));
                found.map(|point| point.median.to_string())
            });
            match values.collect::<Option<Vec<String>>>() {
                Some(values) => {
                    let own = [started_at, run, &any.revision].map(str::to_owned);
                    csv.push_str(&line(&[own.to_vec(), values].concat()));
                }
                None => left_out.push(run.to_owned()),
            }
        }
        Ok(OtavaTable { csv, left_out })
    }

    /// The series that the newest run of their suite has, with that run.
    fn newest(&self) -> impl Iterator<Item = (&HistorySeries, &HistoryPoint)> {
        let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
        for series in &self.series {
            let last = series.points.last().map_or("", |point| &point.started_at);
            // RFC 3339 in UTC sorts as text.
            let known = newest.entry(&series.suite).or_default();
            *known = (*known).max(last);
        }
        self.series.iter().filter_map(move |series| {
            let last = series.points.last()?;
            (newest[series.suite.as_str()] == last.started_at).then_some((series, last))
        })
    }

    fn check_one_machine(&self) -> Result<(), String> {
        let machines: BTreeSet<&str> = self
            .series
            .iter()
            .map(|one| one.fingerprint.as_str())
            .collect();
        match machines.len() {
            0 | 1 => Ok(()),
            _ => {
                let names: Vec<&str> = machines.into_iter().collect();
                Err(format!(
                    "the runs are of several machines, which are never one series: choose one with \
                     --machine, of {}",
                    names.join(", ")
                ))
            }
        }
    }
}

/// A line of CSV; a cell with a comma, a quote or a line end is quoted.
fn line(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}
