//! `dyno pubsub bench`: one flow of messages, through the same suite, record and report as everything else.

use anyhow::bail;
use dyno_suite::Stop;

use crate::args::PubsubBenchArgs;
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

/// The suite of one case.
fn suite(args: &PubsubBenchArgs) -> anyhow::Result<String> {
    let PubsubBenchArgs {
        way,
        writers,
        partitions,
        consumer_groups: groups,
        write_batch,
        read_batch,
        payload,
        throttle_writes: rate,
        window,
        repeats,
        ..
    } = args;
    if *write_batch == 0 {
        bail!("--write-batch 0: a batch has at least one message");
    }
    let readers = args.readers.unwrap_or(*partitions);
    let wanted = match args.duration {
        Some(duration) => (duration.as_secs_f64() * *rate as f64) as u64,
        None => args.messages,
    };
    // Whole batches, so that every system writes the same.
    let messages = wanted.div_ceil(*write_batch).max(*writers) * write_batch;
    let rated = *rate > 0;
    let (metric, unit, better) = match rated {
        true => ("end-to-end-p99", "ms", "lower"),
        false => ("throughput", "msg/s", "higher"),
    };
    let offered = if rated {
        format!("offered_rate = {rate}\n")
    } else {
        String::new()
    };
    Ok(format!(
        "title = \"{messages} messages by way of {way}\"\n\
         purpose = \"One flow, as `dyno pubsub bench` was asked for.\"\n\
         order_seed = 1\n\
         [sizes]\n\
         tiny = {{ budget_s = 7200 }}\n\
         quick = {{ budget_s = 7200 }}\n\
         full = {{ budget_s = 7200 }}\n\n\
         [[case]]\n\
         name = \"flow\"\n\
         title = \"{writers} writers, {partitions} partitions, {groups} groups of {readers} readers\"\n\
         workload = \"pubsub-flow\"\n\
         params = {{ way = \"{way}\", partitions = {partitions}, writers = {writers}, readers = {readers}, \
         groups = {groups}, messages = {messages}, payload = {payload}, rate = {rate}, window = {window}, \
         write-batch = {write_batch}, read-batch = {read_batch} }}\n\
         peers = [\"pg-msg-bench\"]\n\
         metric = \"{metric}\"\nunit = \"{unit}\"\nbetter = \"{better}\"\n\
         repeats = {repeats}\ncontrol = true\n{offered}time_limit_s = 3600\n\
         expected_count = {count}\n\
         estimate = {{ units = {messages}, units_per_s = {{ dyno = 5e4, other = 1e4 }}, startup_s = 3, \
         disk_bytes_per_unit = {disk}, memory_bytes = 3e9 }}\n{FIXED}",
        count = messages * groups,
        disk = payload * 3 + 500,
    ))
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
