//! Reads what JMH writes with `-rf json`.

use dyno_record::{Better, Figures};
use serde_json::Value;

use super::{Reader, Source, figure, mean_of, number, numbers, percentiles, small, spread, text};

pub(super) const READER: Reader = Reader {
    tool: "JMH",
    knows: |source| source.json.pointer("/0/primaryMetric/score").is_some(),
    read,
    unknown: &[
        "The machine: only the JVM is named.",
        "Whether the iterations were steady: a run that is still being compiled looks the same.",
        "With one fork, how far two processes of the JVM lie apart.",
    ],
};

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    for run in source.json.as_array().into_iter().flatten() {
        let mut name = text(run, "/benchmark").unwrap_or("benchmark").to_owned();
        if let Some(params) = run.get("params").and_then(Value::as_object) {
            for (key, value) in params {
                let value = value.as_str().map_or(value.to_string(), str::to_owned);
                name = format!("{name} {key}={value}");
            }
        }
        let metric = &run["primaryMetric"];
        let unit = text(metric, "/scoreUnit").unwrap_or("ops/s");
        let is_rate = text(run, "/mode") == Some("thrpt");
        let (word, better) = if is_rate {
            ("throughput", Better::Higher)
        } else {
            ("time", Better::Lower)
        };
        let score = number(metric, "/score")?;
        let mut figure = figure(&name, "", word, unit, better, score);
        let forks = metric.get("rawData").and_then(Value::as_array);
        let raw: Vec<f64> = forks
            .into_iter()
            .flatten()
            .flat_map(|fork| numbers(Some(fork)))
            .collect();
        spread(&mut figure, &raw);
        // Iterations of one JVM are not independent, forks are.
        figure.n = number(run, "/forks").ok().map(small).filter(|n| *n > 0);
        let threads = number(run, "/threads").ok();
        figure.threads = threads.filter(|_| is_rate);
        // In throughput mode these are percentiles of iterations and not of calls.
        if text(run, "/mode") == Some("sample") {
            let plain = unit.split('/').next().unwrap_or(unit);
            let table = percentiles(&figure.id, plain, metric.get("scorePercentiles"));
            figures.latencies.extend(table.map(|mut table| {
                table.mean = Some(score);
                table
            }));
        }
        figures.totals.extend(mean_of(&name, score, raw));
        figures.figures.push(figure);
    }
    Ok(())
}
