//! `dyno pubsub bench`: one flow of messages, through the same suite, record and report as
//! everything else.

use anyhow::bail;
use dyno_pubsub::Dsn;
use dyno_report::counted;
use dyno_suite::Stop;
use serde_json::{Value, json};

use crate::args::{BenchMode, PubsubBenchArgs};
use crate::cmd::bench;
use crate::exit::Exit;

pub fn run(args: &PubsubBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    if let Some(password) = &args.password {
        return bench::with_password(password);
    }
    let settings = BenchSettings::from_args(args);
    if args.duration.is_none()
        && args.search.capacity.is_none()
        && settings.messages != args.messages
    {
        eprintln!(
            "dyno: {} messages are measured, not {}: whole batches of {}, one for each writer at least",
            settings.messages, args.messages, settings.write_batch
        );
    }
    bench::run("pubsub", suite(args, &settings)?, &args.bench, stop)
}

/// The parsed flags, with the defaults of the mode filled in.
struct BenchSettings {
    readers: u64,
    groups: u64,
    write_batch: u64,
    read_batch: u64,
    messages: u64,
    /// How long to write, in seconds; 0 to write a number of messages.
    seconds: u64,
    cursors: String,
    dsn: Option<String>,
}

impl BenchSettings {
    fn from_args(args: &PubsubBenchArgs) -> BenchSettings {
        let queue = args.mode == BenchMode::Queue;
        let write_batch = args.write_batch.unwrap_or(if queue { 1 } else { 200 });
        let rated = args.throttle_writes > 0;
        let wanted = match args.duration {
            Some(duration) if rated => {
                (duration.as_secs_f64() * args.throttle_writes as f64) as u64
            }
            _ => args.messages,
        };
        let free = args.duration.filter(|_| !rated);
        let cursors = match args.way.as_str() {
            "broker" => "relaxed",
            _ => "every-poll",
        };
        BenchSettings {
            readers: args
                .readers
                .unwrap_or(if queue { 4 } else { args.partitions }),
            groups: if queue { 1 } else { args.consumer_groups },
            write_batch,
            read_batch: args.read_batch.unwrap_or(if queue { 50 } else { 200 }),
            // Whole batches, so that every system writes the same messages, and at least one batch
            // for each writer, so that none of them is idle.
            messages: wanted.div_ceil(write_batch).max(args.writers) * write_batch,
            seconds: free.map_or(0, |duration| duration.as_secs().max(1)),
            cursors: args.cursors.clone().unwrap_or_else(|| cursors.to_owned()),
            dsn: args.dsn.clone().or_else(|| dsn(args)),
        }
    }
}

/// The connection string that --host and the flags beside it stand for.
fn dsn(args: &PubsubBenchArgs) -> Option<String> {
    // Single quotes and backslashes are escaped as libpq wants it. A host or a database name with a
    // space would otherwise end the value and begin another option.
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let mut dsn = format!("host={}", quoted(args.host.as_deref()?));
    if let Some(port) = args.port {
        dsn.push_str(&format!(" port={port}"));
    }
    for (name, value) in [("dbname", &args.db), ("user", &args.user)] {
        if let Some(value) = value {
            dsn.push_str(&format!(" {name}={}", quoted(value)));
        }
    }
    Some(dsn)
}

/// The suite of one case.
fn suite(args: &PubsubBenchArgs, settings: &BenchSettings) -> anyhow::Result<Value> {
    let rate = args.throttle_writes;
    let load = match &args.search.capacity {
        Some(_) => Load::capacity(args),
        None if rate > 0 => Load::rated(args, settings),
        None => Load::free(args, settings),
    };
    let params = params(args, settings, &load)?;
    let title = match args.mode {
        BenchMode::Pubsub => format!(
            "{}, {}, {} of {}, {}, cursors {}, {} under way",
            counted(args.writers, "writer"),
            counted(args.partitions, "partition"),
            counted(settings.groups, "group"),
            counted(settings.readers, "reader"),
            args.way,
            settings.cursors,
            match args.window {
                1 => "1 batch".to_owned(),
                n => format!("{n} batches"),
            }
        ),
        BenchMode::Queue => format!(
            "{}, {} of a queue",
            counted(args.writers, "writer"),
            counted(settings.readers, "reader")
        ),
    };
    // The headline prints it before its figure, so it says which figure and of what.
    let case = match args.mode {
        BenchMode::Pubsub => format!("{}-of-{}", load.metric, args.way),
        BenchMode::Queue => format!("{}-of-queue", load.metric),
    };
    let mut flow = json!({
        "name": case,
        "title": title,
        "workload": load.workload,
        "load": "service",
        "params": params,
        "peers": ["pg-msg-bench"],
        "metric": load.metric,
        "unit": load.unit,
        "better": load.better,
        "repeats": args.bench.repeats,
        "control": true,
        "time_limit_s": 3600,
        "estimate": {
            "units": load.units,
            "units_per_s": { "dyno": 5e4, "other": 1e4 },
            "startup_s": 3,
            "disk_bytes_per_unit": args.payload * 3 + 500,
            "memory_bytes": 3e9,
        },
        "analysis": ANALYSIS,
    });
    bench::merge(&mut flow, load.keys);
    Ok(json!({
        "title": title,
        "purpose": "One flow with the parameters of `dyno pubsub bench`.",
        "order_seed": 1,
        "sizes": bench::sizes(json!({ "budget_s": 7200 })),
        "case": [flow],
        "table": tables(args, &case),
    }))
}

/// What is measured, and how much of it.
struct Load {
    workload: &'static str,
    /// Parameters of the workload that only this kind of load has.
    params: Value,
    metric: &'static str,
    unit: &'static str,
    better: &'static str,
    /// Units of work for the estimate of a run's length.
    units: u64,
    /// Keys of the case: the count to expect, and the rate that is offered.
    keys: Value,
}

impl Load {
    fn workload(args: &PubsubBenchArgs) -> &'static str {
        match args.mode {
            BenchMode::Pubsub => "pubsub-flow",
            BenchMode::Queue => "pubsub-queue",
        }
    }

    /// The load without a rate: messages are sent as fast as they are acknowledged.
    fn free(args: &PubsubBenchArgs, settings: &BenchSettings) -> Load {
        let (messages, seconds) = (settings.messages, settings.seconds);
        let (params, units, expected) = match seconds {
            0 => (
                json!({ "messages": messages, "rate": 0 }),
                messages,
                messages * settings.groups,
            ),
            // Each flow compares what came with what was sent, and answers 1 when both agree.
            seconds => (
                json!({ "seconds": seconds, "rate": 0 }),
                seconds * 50_000,
                1,
            ),
        };
        Load {
            workload: Load::workload(args),
            params,
            metric: "throughput",
            unit: "msg/s",
            better: "higher",
            units,
            keys: json!({ "expected_count": expected }),
        }
    }

    fn rated(args: &PubsubBenchArgs, settings: &BenchSettings) -> Load {
        let rate = args.throttle_writes;
        let mut load = Load::free(args, settings);
        load.keys["offered_rate"] = json!(rate);
        Load {
            params: json!({ "messages": settings.messages, "rate": rate }),
            metric: "end-to-end-p99",
            unit: "ms",
            better: "lower",
            ..load
        }
    }

    /// The highest rate that holds.
    fn capacity(args: &PubsubBenchArgs) -> Load {
        let (mode, first_rate) = match args.mode {
            BenchMode::Pubsub => ("pubsub", 5_000),
            BenchMode::Queue => ("queue", 1_000),
        };
        let mut params = bench::search_params(&args.search, first_rate);
        params["mode"] = json!(mode);
        Load {
            workload: "pubsub-capacity",
            params,
            metric: "capacity",
            unit: "msg/s",
            better: "higher",
            units: 500_000,
            keys: json!({
                "no_expected_count": "how much is sent depends on the probes, each of which \
                    compares what came with what was sent",
            }),
        }
    }
}

fn params(args: &PubsubBenchArgs, settings: &BenchSettings, load: &Load) -> anyhow::Result<Value> {
    let mut params = json!({
        "writers": args.writers,
        "readers": settings.readers,
        "payload": args.payload,
        "write-batch": settings.write_batch,
        "read-batch": settings.read_batch,
        "report-ms": args.bench.report_every.as_millis() as u64,
    });
    bench::merge(&mut params, load.params.clone());
    if args.mode == BenchMode::Pubsub {
        let log = json!({
            "way": args.way,
            "partitions": args.partitions,
            "groups": settings.groups,
            "window": args.window,
            "cursors": settings.cursors,
        });
        bench::merge(&mut params, log);
    } else {
        params["linger-ms"] = json!(args.linger.as_millis() as u64);
    }
    match &settings.dsn {
        None => params["nodes"] = json!(args.nodes),
        Some(dsn) if Dsn::parse(dsn)?.config().get_password().is_some() && holds_password(dsn) => {
            bail!("--dsn: a record keeps what was measured, so the password goes into PGPASSWORD")
        }
        Some(dsn) => params["dsn"] = json!(dsn),
    }
    Ok(params)
}

/// Whether the text itself has a password. The parsed connection string may have one from
/// `PGPASSWORD`, which is not written into a record.
fn holds_password(dsn: &str) -> bool {
    let without_user = dsn
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('@'));
    dsn.contains("password") || without_user.is_some_and(|(user, _)| user.contains(':'))
}

/// The tables of the report.
fn tables(args: &PubsubBenchArgs, case: &str) -> Value {
    let table = |title: &str, label: &str, columns: &[&str]| {
        json!({
            "title": title,
            "columns": columns,
            "ranked": false,
            "rows": [{ "label": label, "case": case }],
        })
    };
    let mut tables = vec![
        table("Rates", "flow", &RATES),
        table("Latencies", "flow", &LATENCIES),
    ];
    if args.search.capacity.is_some() {
        tables.push(table("Capacity", "highest rate that holds", &CAPACITY));
    }
    json!(tables)
}

const ANALYSIS: &str = "Writes count until the last acknowledgement, reads until the last message \
    of the last group; latencies are milliseconds. The title says when readers store how far they \
    are and how many batches each writer has under way; the original always waits for both.";

const RATES: [&str; 11] = [
    "system",
    "throughput",
    "spread",
    "reads",
    "io-rate",
    "backlog-max",
    "server-cpu-us",
    "client-cpu-us",
    "wal-bytes",
    "ratio",
    "verdict",
];

const LATENCIES: [&str; 10] = [
    "system",
    "write-p50",
    "write-p95",
    "write-p99",
    "read-p50",
    "read-p95",
    "read-p99",
    "end-to-end-p50",
    "end-to-end-p95",
    "end-to-end-p99",
];

const CAPACITY: [&str; 7] = [
    "system",
    "capacity",
    "spread",
    "end-to-end-p99",
    "probes",
    "ratio",
    "verdict",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_seen_in_both_forms_of_a_connection_string() {
        for (dsn, holds) in [
            ("host=db user=me", false),
            ("host=db user=me password=x", true),
            ("postgres://me@db:5432/shop", false),
            ("postgres://me:x@db/shop", true),
        ] {
            assert_eq!(holds_password(dsn), holds, "{dsn}");
        }
    }
}
