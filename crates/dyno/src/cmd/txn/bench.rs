//! `dyno txn bench`: K2's transaction as it was asked for, through the same suite, record and
//! report as everything else.

use anyhow::ensure;
use dyno_suite::Stop;
use dyno_txn_node::Durability;

use crate::args::{FormArg, KeysArg, TransportArg, TxnBenchArgs};
use crate::cmd::bench;
use crate::exit::Exit;

pub fn run(args: &TxnBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    ensure!(
        !args.bench.peers
            || (args.form == FormArg::OneShot && args.durability == Durability::Fsync),
        "--peers: PostgreSQL and etcd are measured with --form one-shot and --durability fsync alone"
    );
    bench::run("txn", suite(args), &args.bench, stop)
}

/// The suite of one case.
fn suite(args: &TxnBenchArgs) -> String {
    let under_way = args.clients * args.depth;
    let title = format!(
        "{} writes and {} reads, {}, over {}, acknowledged: {}, {under_way} under way",
        args.writes,
        args.reads,
        form(args.form),
        carrier(args.transport),
        args.durability
    );
    let (metric, unit, better, load) = match (args.rate, under_way) {
        (0, 1) => ("latency-p50", "s", "lower", "in_flight = 1\n".to_owned()),
        (0, n) => (
            "throughput",
            "txn/s",
            "higher",
            format!("in_flight = {n}\n"),
        ),
        (rate, _) => (
            "latency-p99",
            "s",
            "lower",
            format!("offered_rate = {rate}\n"),
        ),
    };
    format!(
        "title = \"{title}\"\n\
         purpose = \"K2's transaction, as `dyno txn bench` was asked for.\"\n\
         order_seed = 1\n\
         [sizes]\n\
         tiny = {{ budget_s = 7200 }}\n\
         quick = {{ budget_s = 7200 }}\n\
         full = {{ budget_s = 7200 }}\n\n\
         [[case]]\n\
         name = \"transactions\"\n\
         title = \"{title}\"\n\
         workload = \"txn-k2\"\n\
         load = \"service\"\n\
         params = {{ {} }}\n\
         {}\
         metric = \"{metric}\"\nunit = \"{unit}\"\nbetter = \"{better}\"\n\
         repeats = {}\ntime_limit_s = 3600\n{load}\
         expected_count = 200\n\
         estimate = {{ units = 1, units_per_s = {{ other = {:?} }}, startup_s = 3, \
         disk_bytes_per_unit = 3e9, memory_bytes = 4e9 }}\n{FIXED}",
        params(args),
        match args.bench.peers {
            true => "peers = [\"postgres-serializable\", \"etcd\"]\n",
            false => "",
        },
        args.bench.repeats,
        1.0 / (args.duration.as_secs_f64() * 1.2).max(0.1),
    )
}

fn params(args: &TxnBenchArgs) -> String {
    let keys = match args.keys {
        KeysArg::All => "\"all\"".to_owned(),
        KeysArg::Rows(rows) => rows.to_string(),
    };
    let cores = args.cores.as_ref().map(|cores| {
        let list: Vec<String> = cores.0.iter().map(usize::to_string).collect();
        format!("cores = \"{}\", ", list.join(","))
    });
    format!(
        "{}carrier = \"{}\", durability = \"{}\", form = \"{}\", partitions = {}, clients = {}, \
         depth = {}, writes = {}, reads = {}, either = {}, value = {}, keys = {keys}, \
         theta-percent = {}, rate = {}, seconds = {:?}",
        cores.unwrap_or_default(),
        carrier(args.transport),
        args.durability,
        form(args.form),
        args.partitions,
        args.clients,
        args.depth,
        args.writes,
        args.reads,
        u8::from(args.either),
        args.value,
        args.theta,
        args.rate,
        args.duration.as_secs_f64(),
    )
}

fn carrier(of: TransportArg) -> &'static str {
    match of {
        TransportArg::Ring => "ring",
        TransportArg::Unix => "unix",
        TransportArg::Tcp => "tcp",
    }
}

fn form(of: FormArg) -> &'static str {
    match of {
        FormArg::OneShot => "one-shot",
        FormArg::Batched => "batched",
        FormArg::Interactive => "interactive",
    }
}

/// What no flag changes.
const FIXED: &str = r#"analysis = "Latencies count from the intended start, conflicts and repetitions included. Every answer is verified while it is timed."

[[table]]
title = "Transactions"
columns = ["system", "throughput", "spread", "latency-p50", "latency-p95", "latency-p99", "latency-p999", "aborted", "server-cpu-us", "client-cpu-us", "ratio", "verdict"]
ranked = false
rows = [{ label = "transactions", case = "transactions" }]
"#;
