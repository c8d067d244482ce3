//! `dyno pages bench`: one pattern on one class of pages, through the same suite, record and report
//! as everything else.

use clap::ValueEnum;
use dyno_report::counted;
use dyno_suite::Stop;
use serde_json::{Value, json};

use crate::args::{PagesBenchArgs, PatternArg};
use crate::cmd::bench;
use crate::exit::Exit;

pub fn run(args: &PagesBenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    bench::run("pages", suite(args), &args.bench, stop)
}

/// Pages of each class that are made, as in the suite's quick size, so that both use the same ones.
const CORPUS: u64 = 4_000;

/// What a pattern does, and with how many pages a call.
fn op(pattern: PatternArg) -> (&'static str, u64) {
    match pattern {
        PatternArg::P1 => ("read-seq", 256),
        PatternArg::P2 => ("write-seq", 256),
        PatternArg::P3 => ("read-random", 1),
        PatternArg::P4 => ("write-random", 1),
        PatternArg::P5 => ("mixed-random", 1),
        PatternArg::P6 => ("mixed-random", 64),
    }
}

fn name(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_string())
}

/// The suite of one case.
fn suite(args: &PagesBenchArgs) -> Value {
    let (pages, threads) = (args.pages, args.threads);
    let (op, batch) = op(args.pattern);
    let batch = args.batch.unwrap_or(batch);
    // The first write of each page is done once; all else could go on for ever.
    let load = if op == "fill" { "job" } else { "service" };
    let (class, pattern) = (name(&args.workload), name(&args.pattern));
    let (a_call, by) = (counted(batch, "page"), counted(threads, "thread"));
    json!({
        "title": format!("{pages} pages, {class}, {pattern}"),
        "purpose": "One pattern on one class of pages, with the parameters of `dyno pages bench`.",
        "order_seed": 1,
        "sizes": bench::sizes(json!({ "budget_s": 7200 })),
        "data": [{
            "name": "corpus",
            "workload": "pages-corpus",
            "params": { "pages": CORPUS, "seed": 1 },
            "time_limit_s": 900,
            "estimate": {
                "units": CORPUS,
                "units_per_s": { "other": 1e3 },
                "startup_s": 10,
                "disk_bytes_per_unit": 80_000,
                "memory_bytes": 4e9,
            },
        }],
        "case": [{
            "name": op,
            "title": format!("{op}, {a_call} a call, {by}"),
            "workload": "pages-store",
            "load": load,
            "params": {
                "corpus": "${data.corpus}",
                "class": class,
                "pages": pages,
                "op": op,
                "codec": name(&args.codec),
                "batch": batch,
                "threads": threads,
                "passes": args.passes,
            },
            "peers": ["zram-lz4", "zram-lzo-rle", "tmpfs"],
            "metric": "throughput",
            "unit": "pages/s",
            "better": "higher",
            "repeats": args.bench.repeats,
            "control": true,
            "time_limit_s": 3600,
            "expected_count": pages,
            "estimate": {
                "units_per_s": { "dyno": 1e5, "other": 5e4 },
                "startup_s": 1,
                "memory_bytes": 4e9,
            },
            "analysis": "Ours is called in process; the others get a system call for each call. \
                Every page read is compared with what was written.",
        }],
        "table": [{
            "title": "Rates",
            "columns": [
                "system", "throughput", "spread", "io-rate", "page-time", "call-time", "net-time",
                "latency-p50", "latency-p99", "compression", "ratio", "verdict", "corpus",
            ],
            "ranked": false,
            "rows": [{ "label": pattern, "case": op }],
        }],
    })
}
