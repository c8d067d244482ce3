//! `dyno pubsub bench`: one flow of messages, through the same suite, record and report as everything else.

use anyhow::bail;
use dyno_pubsub::Dsn;
use dyno_suite::Stop;

use crate::args::{BenchMode, PubsubBenchArgs};
use crate::cmd::bench::{self, Bench};
use crate::exit::Exit;

pub fn run(args: &PubsubBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let bench = Bench {
        engine: "pubsub",
        suite: suite(args)?,
        peers: args.peers,
        peers_from: &args.peers_from,
        data_dir: args.data_dir.clone(),
        report: &args.out,
        report_every: args.report_every,
        json: args.json,
    };
    bench::run(bench, stop)
}

/// What the flags come to, with the mode's own where nothing was said.
struct Asked {
    readers: u64,
    groups: u64,
    write_batch: u64,
    read_batch: u64,
    messages: u64,
}

impl Asked {
    fn of(args: &PubsubBenchArgs) -> Asked {
        let queue = args.mode == BenchMode::Queue;
        let write_batch = args.write_batch.unwrap_or(if queue { 1 } else { 200 });
        let wanted = match args.duration {
            Some(duration) => (duration.as_secs_f64() * args.throttle_writes as f64) as u64,
            None => args.messages,
        };
        Asked {
            readers: args
                .readers
                .unwrap_or(if queue { 4 } else { args.partitions }),
            groups: if queue { 1 } else { args.consumer_groups },
            write_batch,
            read_batch: args.read_batch.unwrap_or(if queue { 50 } else { 200 }),
            // Whole batches, so that every system writes the same.
            messages: wanted.div_ceil(write_batch).max(args.writers) * write_batch,
        }
    }
}

/// The suite of one case.
fn suite(args: &PubsubBenchArgs) -> anyhow::Result<String> {
    let asked = Asked::of(args);
    let rate = args.throttle_writes;
    let load = match &args.capacity {
        Some(_) => Load::capacity(args),
        None if rate > 0 => Load::rated(args, &asked),
        None => Load::free(args, &asked),
    };
    let params = params(args, &asked, &load)?;
    let (writers, partitions) = (args.writers, args.partitions);
    let title = match args.mode {
        BenchMode::Pubsub => format!(
            "{writers} writers, {partitions} partitions, {} groups of {} readers, {}",
            asked.groups, asked.readers, args.way
        ),
        BenchMode::Queue => format!("{writers} writers, {} readers of a queue", asked.readers),
    };
    let Load {
        workload,
        metric,
        unit,
        better,
        units,
        lines,
        ..
    } = load;
    Ok(format!(
        "title = \"{title}\"\n\
         purpose = \"One flow, as `dyno pubsub bench` was asked for.\"\n\
         order_seed = 1\n\
         [sizes]\n\
         tiny = {{ budget_s = 7200 }}\n\
         quick = {{ budget_s = 7200 }}\n\
         full = {{ budget_s = 7200 }}\n\n\
         [[case]]\n\
         name = \"flow\"\n\
         title = \"{title}\"\n\
         workload = \"{workload}\"\n\
         load = \"service\"\n\
         params = {{ {params} }}\n\
         peers = [\"pg-msg-bench\"]\n\
         metric = \"{metric}\"\nunit = \"{unit}\"\nbetter = \"{better}\"\n\
         repeats = {repeats}\ncontrol = true\ntime_limit_s = 3600\n{lines}\
         estimate = {{ units = {units}, units_per_s = {{ dyno = 5e4, other = 1e4 }}, startup_s = 3, \
         disk_bytes_per_unit = {disk}, memory_bytes = 3e9 }}\n{FIXED}{tables}",
        repeats = args.repeats,
        disk = args.payload * 3 + 500,
        tables = if args.capacity.is_some() {
            CAPACITY
        } else {
            ""
        },
    ))
}

/// What is measured, and how much of it.
struct Load {
    workload: &'static str,
    params: String,
    metric: &'static str,
    unit: &'static str,
    better: &'static str,
    /// For the estimate.
    units: u64,
    lines: String,
}

impl Load {
    fn workload(args: &PubsubBenchArgs) -> &'static str {
        match args.mode {
            BenchMode::Pubsub => "pubsub-flow",
            BenchMode::Queue => "pubsub-queue",
        }
    }

    /// As fast as it goes.
    fn free(args: &PubsubBenchArgs, asked: &Asked) -> Load {
        let messages = asked.messages;
        Load {
            workload: Load::workload(args),
            params: format!("messages = {messages}, rate = 0"),
            metric: "throughput",
            unit: "msg/s",
            better: "higher",
            units: messages,
            lines: format!("expected_count = {}\n", messages * asked.groups),
        }
    }

    fn rated(args: &PubsubBenchArgs, asked: &Asked) -> Load {
        let rate = args.throttle_writes;
        let free = Load::free(args, asked);
        Load {
            params: format!("messages = {}, rate = {rate}", asked.messages),
            metric: "end-to-end-p99",
            unit: "ms",
            better: "lower",
            lines: format!("offered_rate = {rate}\n{}", free.lines),
            ..free
        }
    }

    /// The highest rate that holds.
    fn capacity(args: &PubsubBenchArgs) -> Load {
        let (quantile, bound_ms) = args.capacity.as_ref().map_or(("p99", 0.0), |bound| {
            (bound.quantile.as_str(), bound.at_most.as_secs_f64() * 1e3)
        });
        let (mode, first) = match args.mode {
            BenchMode::Pubsub => ("pubsub", 5_000),
            BenchMode::Queue => ("queue", 1_000),
        };
        Load {
            workload: "pubsub-capacity",
            params: format!(
                "mode = \"{mode}\", quantile = \"{quantile}\", bound-ms = {bound_ms:?}, \
                 probe-s = {:?}, first-rate = {first}",
                args.probe.as_secs_f64()
            ),
            metric: "capacity",
            unit: "msg/s",
            better: "higher",
            units: 500_000,
            lines: "no_expected_count = \"how much is sent depends on the probes, each of which \
                    compares what came with what was sent\"\n"
                .to_string(),
        }
    }
}

fn params(args: &PubsubBenchArgs, asked: &Asked, load: &Load) -> anyhow::Result<String> {
    let mut params = format!(
        "{}, writers = {}, readers = {}, payload = {}, write-batch = {}, read-batch = {}, \
         report-ms = {}",
        load.params,
        args.writers,
        asked.readers,
        args.payload,
        asked.write_batch,
        asked.read_batch,
        args.report_every.as_millis(),
    );
    if args.mode == BenchMode::Pubsub {
        params.push_str(&format!(
            ", way = \"{}\", partitions = {}, groups = {}, window = {}",
            args.way, args.partitions, asked.groups, args.window
        ));
    }
    match &args.dsn {
        None => params.push_str(&format!(", nodes = {}", args.nodes)),
        Some(dsn) if Dsn::parse(dsn)?.config().get_password().is_some() && holds_password(dsn) => {
            bail!("--dsn: a record keeps what was measured, so the password goes into PGPASSWORD")
        }
        Some(dsn) => params.push_str(&format!(", dsn = {}", toml_text(dsn))),
    }
    Ok(params)
}

/// Whether the text itself has a password: one that `PGPASSWORD` gave is not in it.
fn holds_password(dsn: &str) -> bool {
    let without_user = dsn
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('@'));
    dsn.contains("password") || without_user.is_some_and(|(user, _)| user.contains(':'))
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What no flag changes.
const FIXED: &str = r#"analysis = "Writes count until the last acknowledgement, reads until the last message of the last group; latencies are milliseconds."

[[table]]
title = "Rates"
columns = ["system", "throughput", "spread", "reads", "io-rate", "backlog-max", "server-cpu-us", "client-cpu-us", "wal-bytes", "ratio", "verdict"]
ranked = false
rows = [{ label = "flow", case = "flow" }]

[[table]]
title = "Latencies"
columns = ["system", "write-p50", "write-p95", "write-p99", "read-p50", "read-p95", "read-p99", "end-to-end-p50", "end-to-end-p95", "end-to-end-p99"]
ranked = false
rows = [{ label = "flow", case = "flow" }]
"#;

/// Of a search for the highest rate.
const CAPACITY: &str = r#"
[[table]]
title = "Capacity"
columns = ["system", "capacity", "spread", "end-to-end-p99", "probes", "ratio", "verdict"]
ranked = false
rows = [{ label = "highest rate that holds", case = "flow" }]
"#;

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
