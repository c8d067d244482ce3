//! Reads what google-benchmark prints with `--benchmark_format=json`.

use std::collections::BTreeMap;

use dyno_record::{Better, Figures};
use serde_json::Value;

use super::{Reader, Source, figure, list, number, spread, text};

pub(super) const READER: Reader = Reader {
    tool: "google-benchmark",
    knows: |source| {
        let json = &source.json;
        json.pointer("/context/library_build_type").is_some() && json.get("benchmarks").is_some()
    },
    read,
    unknown: &[
        "How far processes lie apart: repetitions are of one process.",
        "How your code was built: library_build_type is about the benchmark library alone.",
        "Whether the compiler removed the work: no answer is checked.",
    ],
};

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    let library = text(&source.json, "/context/library_build_type");
    if let Some(kind) = library.filter(|kind| *kind != "release") {
        let unknown = format!("How much the benchmark library, which was built as {kind}, adds.");
        figures.unknown.push(unknown);
    }
    let mut runs: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for run in list(&source.json, "/benchmarks")? {
        // Aggregates (mean, median, stddev) repeat what the iterations say.
        if text(run, "/run_type") == Some("aggregate") {
            continue;
        }
        let name = text(run, "/run_name").or(text(run, "/name"));
        runs.entry(name.unwrap_or("benchmark"))
            .or_default()
            .push(run);
    }
    for (name, all) in runs {
        let has_failed = |run: &&Value| run.get("error_occurred") == Some(&Value::Bool(true));
        let (failed, done): (Vec<&Value>, Vec<&Value>) = all.into_iter().partition(has_failed);
        let times = done.iter().map(|run| number(run, "/real_time"));
        let times = times.collect::<Result<Vec<f64>, String>>()?;
        let Some(first) = done.first() else {
            return Err(format!("every run of {name} failed"));
        };
        // All repetitions of one name have one unit, because it is a property of the benchmark.
        let unit = text(first, "/time_unit").unwrap_or("ns");
        let value = dyno_stats::median(&times).map_err(|error| error.to_string())?;
        let mut time = figure(name, "", "time", unit, Better::Lower, value);
        spread(&mut time, &times);
        time.failed = u32::try_from(failed.len()).unwrap_or(u32::MAX);
        let seconds = crate::units::in_seconds(value, unit);
        let iterations = number(first, "/iterations").ok();
        time.duration_s = seconds.zip(iterations).map(|(s, n)| s * n);
        figures.figures.push(time);
    }
    Ok(())
}
