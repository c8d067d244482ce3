//! Turns the result of a flow into metrics.

use std::collections::BTreeMap;

use dyno_measure::Latencies;

use super::backlog::Backlog;
use super::flow::Flowed;
use super::params::Measured;
use super::shared::Flow;
use crate::quantiles;

/// A millisecond in seconds, the unit of the latencies.
const MS: f64 = 1e-3;

/// All metrics. Rates are per second, latencies in milliseconds, processor time in microseconds per
/// message.
pub(super) fn from_flow(flow: &Flow, measured: &Measured) -> BTreeMap<String, f64> {
    let Measured { flowed, used, .. } = measured;
    let start_ns = flowed.writes.started_ns;
    // Groups that are behind are let go while the writers still connect.
    let reads_start_ns = match flow.before {
        0 => start_ns,
        _ => start_ns.min(flowed.read.since_ns),
    };
    let seconds = |since_ns: u64, until_ns: u64| until_ns.saturating_sub(since_ns) as f64 / 1e9;
    let write_s = seconds(start_ns, flowed.writes.ended_ns);
    let read_s = seconds(reads_start_ns, flowed.read.last_ns);
    let messages = flowed.messages as f64;
    let reads = flowed.read.messages as f64 / read_s;
    let figures = [
        ("throughput", messages / write_s),
        ("reads", reads),
        ("io-rate", messages * flow.payload as f64 / write_s),
        ("read-io-rate", reads * flow.payload as f64),
        ("backlog-max", flowed.backlog.max() as f64),
        ("empty-polls", flowed.read.empty as f64),
        ("client-cpu-us", used.client_cpu_s * 1e6 / messages),
        ("wal-bytes", used.wal_bytes / messages),
    ];
    let mut metrics: BTreeMap<String, f64> = figures
        .map(|(name, value)| (name.to_string(), value))
        .into();
    let of_server = [
        ("server-cpu-us", used.server_cpu_s),
        ("cpu-us", used.cpu_s()),
    ];
    if let Some(seconds) = used.server_cpu_s {
        let percent = 100.0 * seconds / flow_s(flowed);
        metrics.insert("server-cpu-percent".to_string(), percent);
    }
    for (name, seconds) in of_server {
        if let Some(seconds) = seconds {
            metrics.insert(name.to_string(), seconds * 1e6 / messages);
        }
    }
    quantiles::insert(&mut metrics, "write", &flowed.writes.recorder.corrected, MS);
    quantiles::insert(&mut metrics, "read", &flowed.read.polls, MS);
    if let Some(rate) = flow.rate {
        end_to_end(&mut metrics, &flowed.backlog, rate, &flowed.read.end_to_end);
    }
    metrics.extend(flowed.disk.metrics(&flowed.written_at));
    metrics
}

/// Above this share of the cores the processor is the bottleneck.
const BUSY: f64 = 0.85;

/// What a flow that goes as fast as it can waits for: the processor if clients and server together
/// keep it busy, else each other and the disk. `None` under a rate, which is then what bounds it,
/// and of a server whose processor time cannot be seen.
pub(super) fn bottleneck(flow: &Flow, measured: &Measured, cores: usize) -> Option<String> {
    let Measured { flowed, used, .. } = measured;
    if flow.rate.is_some() {
        return None;
    }
    let seconds = flow_s(flowed);
    let (server, client) = (used.server_cpu_s? / seconds, used.client_cpu_s / seconds);
    Some(bottleneck_text(server, client, cores))
}

/// Seconds from the first message to the last acknowledgement or delivery, whichever came later.
fn flow_s(flowed: &Flowed) -> f64 {
    let ended_ns = flowed.writes.ended_ns.max(flowed.read.last_ns);
    ended_ns.saturating_sub(flowed.writes.started_ns) as f64 / 1e9
}

/// The bottleneck by the cores that server and clients kept busy.
fn bottleneck_text(server: f64, client: f64, cores: usize) -> String {
    let kind = match (server + client > BUSY * cores as f64, server > client) {
        (false, _) => "waiting for commits and locks",
        (true, true) => "processor, most of it the server's",
        (true, false) => "processor, most of it the clients'",
    };
    format!("{kind} (server {server:.1} and clients {client:.1} of {cores} cores)")
}

/// The end-to-end quantiles. A growing backlog has none, because a message's wait would depend only
/// on how long the run was.
fn end_to_end(
    metrics: &mut BTreeMap<String, f64>,
    backlog: &Backlog,
    rate: f64,
    waits: &Latencies,
) {
    if backlog.grew(rate).is_none() {
        quantiles::insert(metrics, "end-to-end", waits, MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::disk_watch::DiskWatch;
    use crate::pubsub::readers::Read;
    use crate::pubsub::server::Used;
    use dyno_measure::{LoadOutcome, Recorder, Schedule};

    /// Two groups that read what was written in 2 s, and took a second longer.
    fn flowed(messages: u64) -> Flowed {
        let latencies = || Latencies::new().expect("a histogram");
        let none = Used {
            server_cpu_s: None,
            client_cpu_s: 0.0,
            wal_bytes: 0.0,
        };
        Flowed {
            messages,
            writes: LoadOutcome {
                schedule: Schedule::ClosedLoop,
                recorder: Recorder::new(0, 1_000_000_000).expect("histograms"),
                started_ns: 0,
                ended_ns: 2_000_000_000,
                done: messages,
                failed: 0,
                first_error: None,
                skipped: 0,
                unsent: 0,
            },
            written_digest: 0,
            read: Read {
                messages: 2 * messages,
                digest: 0,
                disordered: 0,
                polls: latencies(),
                empty: 0,
                end_to_end: latencies(),
                since_ns: 0,
                last_ns: 3_000_000_000,
            },
            backlog: Backlog::default(),
            disk: DiskWatch::default(),
            written_at: Vec::new(),
            used_before: none,
        }
    }

    #[test]
    fn bytes_written_and_read_a_second_are_those_of_the_payload() {
        let flow = Flow {
            writers: 1,
            readers: 1,
            groups: 2,
            batch: 1,
            messages: 600,
            lasts: None,
            payload: 100,
            rate: None,
            before: 0,
            window: 1,
            ordered: true,
            report: None,
        };
        let flowed = flowed(flow.messages);
        let measured = Measured {
            used: flowed.used_before,
            flowed,
            server: String::new(),
        };
        let metrics = from_flow(&flow, &measured);
        assert_eq!(metrics["reads"], 400.0);
        assert_eq!(metrics["io-rate"], 30_000.0);
        assert_eq!(metrics["read-io-rate"], 40_000.0);
    }

    #[test]
    fn a_processor_that_is_busy_is_the_bottleneck() {
        let check = |server, client, expected: &str| {
            let said = bottleneck_text(server, client, 2);
            assert!(said.starts_with(expected), "{said}");
        };
        check(1.2, 0.7, "processor, most of it the server's (server 1.2");
        check(0.8, 1.1, "processor, most of it the clients'");
        check(0.3, 0.2, "waiting for commits and locks");
    }

    #[test]
    fn of_a_growing_backlog_no_latency_from_end_to_end_is_told() {
        let mut waits = Latencies::new().expect("a histogram");
        for _ in 0..1_000 {
            waits.record(5_000_000).expect("a latency");
        }
        for (step, count) in [(0, 5), (100, 0)] {
            let mut metrics = BTreeMap::new();
            let backlog = Backlog::seen(|look| look * step);
            end_to_end(&mut metrics, &backlog, 1_000.0, &waits);
            assert_eq!(metrics.len(), count, "{metrics:?}");
        }
    }
}
