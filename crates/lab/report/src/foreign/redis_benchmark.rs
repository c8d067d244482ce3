//! Reads what `redis-benchmark --csv` prints.

use dyno_record::{Better, Figures, LatencyFigure};

use super::{Reader, Source, figure};

pub(super) const READER: Reader = Reader {
    tool: "redis-benchmark",
    knows: |source| {
        let first = source.text.lines().next().unwrap_or_default();
        first.starts_with("\"test\",\"rps\"")
    },
    read,
    unknown: &[
        "Clients, pipelining and payload: they are on the command line alone, so Little's law \
         cannot be held against the file.",
        "How many requests there were, so how much a p99 rests on.",
        "How far runs lie apart: a file has one run of each command.",
        "What happens beyond the highest rate: the loop is closed, and a stall stops its clock.",
    ],
};

/// Columns of latency and the percentiles that they are.
const COLUMNS: [(&str, f64); 5] = [
    ("min_latency_ms", 0.0),
    ("p50_latency_ms", 50.0),
    ("p95_latency_ms", 95.0),
    ("p99_latency_ms", 99.0),
    ("max_latency_ms", 100.0),
];

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    let fields = |line: &str| -> Vec<String> {
        // Every field of this CSV is quoted, and the names of its tests hold no quote, so a full
        // parser is not needed.
        let line = line.trim().trim_start_matches('"').trim_end_matches('"');
        line.split("\",\"").map(str::to_owned).collect()
    };
    let mut lines = source.text.lines();
    let names = fields(lines.next().unwrap_or_default());
    for (row, line) in lines.filter(|line| !line.trim().is_empty()).enumerate() {
        let values = fields(line);
        let at = |column: &str| -> Option<f64> {
            let place = names.iter().position(|name| name == column)?;
            values.get(place)?.parse().ok()
        };
        let rate = at("rps").ok_or(format!("row {} has no rate", row + 1))?;
        let name = values.first().map_or("command", String::as_str);
        let mut rps = figure(name, "redis", "throughput", "req/s", Better::Higher, rate);
        rps.n = Some(1);
        let points = COLUMNS.iter().filter_map(|(name, p)| Some((*p, at(name)?)));
        figures.latencies.push(LatencyFigure {
            subject: rps.id.clone(),
            unit: "ms".to_owned(),
            count: None,
            mean: at("avg_latency_ms"),
            points: points.collect(),
        });
        figures.figures.push(rps);
    }
    Ok(())
}
