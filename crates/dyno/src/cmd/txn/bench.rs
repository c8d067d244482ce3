//! `dyno txn bench`: K2's transaction as it was asked for, through the same suite, record and
//! report as everything else.

use anyhow::ensure;
use dyno_suite::Stop;
use dyno_txn_node::Durability;
use serde_json::{Value, json};

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
fn suite(args: &TxnBenchArgs) -> Value {
    let in_flight = args.clients * args.depth;
    let title = format!(
        "{} writes and {} reads, {}, over {}, acknowledged: {}, {in_flight} under way",
        args.writes,
        args.reads,
        form(args.form),
        transport_name(args.transport),
        args.durability
    );
    let load = Load::from_args(args, in_flight);
    let peers: &[&str] = if args.bench.peers {
        &["postgres-serializable", "etcd"]
    } else {
        &[]
    };
    let mut case = json!({
        "name": "transactions",
        "title": title,
        "workload": load.workload,
        "params": params(args),
        "peers": peers,
        "metric": load.metric,
        "unit": load.unit,
        "better": load.better,
        "repeats": args.bench.repeats,
        "control": true,
        "time_limit_s": 3600,
        "expected_count": 200,
        "estimate": {
            "units": 1,
            "units_per_s": { "other": 1.0 / load.takes_s },
            "startup_s": 3,
            "disk_bytes_per_unit": 3e9,
            "memory_bytes": 4e9,
        },
        "analysis": "Latencies count from the intended start, conflicts and repetitions included. \
            Every answer is verified while it is timed.",
    });
    bench::merge(&mut case, load.keys);
    json!({
        "title": title,
        "purpose": "K2's transaction with the parameters of `dyno txn bench`.",
        "order_seed": 1,
        "sizes": bench::sizes(json!({ "budget_s": 7200 })),
        "case": [case],
        "table": [{
            "title": "Transactions",
            "columns": columns(args),
            "ranked": false,
            "rows": [{ "label": "transactions", "case": "transactions" }],
        }],
    })
}

/// The load that the arguments ask for: how the suite states it, and by which metric.
struct Load {
    workload: &'static str,
    metric: &'static str,
    unit: &'static str,
    better: &'static str,
    /// Further keys of the case.
    keys: Value,
    /// Seconds of one invocation.
    takes_s: f64,
}

impl Load {
    fn from_args(args: &TxnBenchArgs, in_flight: u64) -> Load {
        let service = |metric, unit, better, (name, value): (&str, u64)| Load {
            workload: "txn-k2",
            metric,
            unit,
            better,
            keys: json!({ "load": "service", name: value }),
            takes_s: (args.duration.as_secs_f64() * 1.2).max(0.1),
        };
        match (&args.search.capacity, args.rate, in_flight) {
            (Some(_), _, _) => Load {
                workload: "txn-k2-capacity",
                metric: "capacity",
                unit: "txn/s",
                better: "higher",
                keys: json!({}),
                takes_s: args.search.probe.as_secs_f64() * PROBES,
            },
            (None, 0, 1) => service("latency-p50", "s", "lower", ("in_flight", 1)),
            (None, 0, n) => service("throughput", "txn/s", "higher", ("in_flight", n)),
            (None, rate, _) => service("latency-p99", "s", "lower", ("offered_rate", rate)),
        }
    }
}

/// The first rate that a search tries, which most systems hold.
const FIRST_RATE: u64 = 1_000;
/// How many rates a search tries, for the estimate of its time.
const PROBES: f64 = 12.0;

fn columns(args: &TxnBenchArgs) -> &'static [&'static str] {
    if args.search.capacity.is_some() {
        &[
            "system",
            "capacity",
            "spread",
            "latency-p50",
            "latency-p99",
            "probes",
            "ratio",
            "verdict",
        ]
    } else {
        &[
            "system",
            "throughput",
            "spread",
            "latency-p50",
            "latency-p95",
            "latency-p99",
            "latency-p999",
            "aborted",
            "server-cpu-us",
            "client-cpu-us",
            "ratio",
            "verdict",
        ]
    }
}

fn params(args: &TxnBenchArgs) -> Value {
    let mut params = json!({
        "carrier": transport_name(args.transport),
        "durability": args.durability.name(),
        "form": form(args.form),
        "partitions": args.partitions,
        "clients": args.clients,
        "depth": args.depth,
        "writes": args.writes,
        "reads": args.reads,
        "either": u8::from(args.either),
        "value": args.value,
        "keys": match args.keys {
            KeysArg::All => json!("all"),
            KeysArg::Rows(rows) => json!(rows),
        },
        "theta-percent": args.theta,
    });
    let load = if args.search.capacity.is_some() {
        bench::search_params(&args.search, FIRST_RATE)
    } else {
        json!({ "rate": args.rate, "seconds": args.duration.as_secs_f64() })
    };
    bench::merge(&mut params, load);
    if let Some(cores) = &args.cores {
        let list: Vec<String> = cores.0.iter().map(usize::to_string).collect();
        params["cores"] = json!(list.join(","));
    }
    params
}

fn transport_name(transport: TransportArg) -> &'static str {
    match transport {
        TransportArg::Ring => "ring",
        TransportArg::Unix => "unix",
        TransportArg::Tcp => "tcp",
    }
}

fn form(form: FormArg) -> &'static str {
    match form {
        FormArg::OneShot => "one-shot",
        FormArg::Batched => "batched",
        FormArg::Interactive => "interactive",
    }
}
