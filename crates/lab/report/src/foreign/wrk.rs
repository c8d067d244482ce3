//! What wrk2 prints at its end, and wrk, from which it was made.

use dyno_record::{Better, Count, Figures, LatencyFigure};

use super::{Reader, Source, figure, seconds};

pub(super) const READER: Reader = Reader {
    tool: "wrk2",
    knows: |source| {
        let text = source.text;
        text.contains("Requests/sec:") && text.contains("Thread Stats")
    },
    read,
    unknown: &[
        "The rate that was asked for (-R): hold it against Requests/sec yourself. wrk, which has \
         no rate, waits for each answer, and a stall stops its clock too.",
        "How far runs lie apart: a file has one run.",
        "Whether the client was the limit: its own processor time is not printed.",
        "The machine, the server and the answers' content.",
    ],
};

fn read(source: &Source<'_>, figures: &mut Figures) -> Result<(), String> {
    let text = source.text;
    let line = |word: &str| {
        text.lines()
            .find(|line| line.trim_start().starts_with(word))
    };
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let rate = line("Requests/sec:").and_then(|line| words(line).get(1)?.parse().ok());
    let rate: f64 = rate.ok_or("there is no number after \"Requests/sec:\"")?;
    let case = line("Running").and_then(|line| line.split(" @ ").nth(1));
    let case = case.unwrap_or("requests").trim();
    let mut figure = figure(case, "", "throughput", "req/s", Better::Higher, rate);
    figure.n = Some(1);
    let totals = text.lines().find(|line| line.contains(" requests in "));
    let totals = totals.map(words).unwrap_or_default();
    figure.count = totals.first().and_then(|n| n.parse().ok());
    figure.duration_s = totals.get(3).and_then(|t| seconds(t.trim_end_matches(',')));
    let latency = line("Latency  ").map(words).unwrap_or_default();
    figure.latency_mean_s = latency.get(1).and_then(|t| seconds(t));
    // wrk2 sends on a schedule and prints so; wrk keeps each connection busy.
    let is_wrk2 = text.contains("HdrHistogram") || text.contains("calibration:");
    let busy = text.lines().find(|line| line.contains(" connections"));
    let busy = busy.map(words).unwrap_or_default();
    let connections = busy
        .iter()
        .position(|w| w == "connections")
        .filter(|at| *at > 0);
    let connections = connections.and_then(|at| busy[at - 1].parse().ok());
    figure.open_loop = Some(is_wrk2);
    figure.in_flight = connections.filter(|_| !is_wrk2);
    let points: Vec<(f64, f64)> = text.lines().filter_map(point).collect();
    let bad = bad(text);
    let recorded = text.split("Total count    =").nth(1);
    let recorded = recorded.and_then(|rest| rest.split(']').next()?.trim().parse().ok());
    if let Some(count) = figure.count {
        figures.counts.push(Count {
            subject: "answers that were good".to_owned(),
            stated: count,
            expected: count + bad,
            why: "those that came, and errors of sockets and status".to_owned(),
            about: false,
        });
    }
    if !points.is_empty() {
        figures.latencies.push(LatencyFigure {
            subject: figure.id.clone(),
            unit: "s".to_owned(),
            // The time of calibration is in the requests and not in the latencies.
            count: recorded.or(figure.count),
            mean: None,
            points,
        });
    }
    figures.figures.push(figure);
    Ok(())
}

/// ` 99.900%    3.61ms` of the distribution, which has two words a line.
fn point(line: &str) -> Option<(f64, f64)> {
    let (percentile, time) = line.trim().split_once('%')?;
    Some((percentile.parse().ok()?, seconds(time.trim())?))
}

/// Answers that did not come, or came with a status of failure.
fn bad(text: &str) -> f64 {
    let wrong = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("Socket errors:") || line.starts_with("Non-2xx")
    };
    let words = text
        .lines()
        .filter(wrong)
        .flat_map(|line| line.split([' ', ',']));
    words.filter_map(|word| word.parse::<f64>().ok()).sum()
}
