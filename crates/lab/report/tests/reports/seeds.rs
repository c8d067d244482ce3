//! The five seed documents, held against the linter: what is wrong with each is found, and what is
//! right is left alone.

use std::path::Path;

use dyno_record::read_figures;
use dyno_report::{Finding, lint, lint_markdown};

fn findings(name: &str) -> Vec<Finding> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../suites/figures")
        .join(name);
    let figures = read_figures(&path).unwrap();
    let found = lint(&figures);
    assert!(lint_markdown(&figures, &found).contains(&figures.source));
    found
}

/// The findings as `rule subject`, in their order.
fn check(name: &str, expected: &[&str]) {
    let found: Vec<String> = findings(name)
        .iter()
        .map(|f| format!("{} {}", f.rule, f.subject))
        .collect();
    assert_eq!(found, expected, "{found:#?}");
}

/// The faults that people found in the five documents: file, rule, subject.
const FAULTS: [(&str, &str, &str); 22] = [
    ("seed-1-ingest", "spread", "turbo-16"),
    ("seed-1-ingest", "two-values", "sustained write rate"),
    ("seed-1-ingest", "asserted-limit", "database-merge"),
    ("seed-2-tpch", "count", "partsupp"),
    ("seed-2-tpch", "count", "nation"),
    ("seed-2-tpch", "count", "region"),
    ("seed-2-tpch", "derived", "orc-parallel-baseline"),
    ("seed-2-tpch", "spread", "orc-parallel-baseline"),
    ("seed-2-tpch", "spread-word", "parallel orc, baseline"),
    ("seed-2-tpch", "winner-in-noise", "ORC parallel"),
    ("seed-2-tpch", "total", "average of orc, baseline"),
    ("seed-2-tpch", "winner-in-noise", "Parquet nation: 1.50x"),
    ("seed-3-pubsub", "own-throttle", "write"),
    ("seed-3-pubsub", "two-values", "memory of the server"),
    ("seed-3-pubsub", "two-values", "number of readers"),
    ("seed-4-txn", "littles-law", "txn-latency"),
    ("seed-4-txn", "littles-law", "txn-throughput"),
    ("seed-5-pages", "above-limit", "zram-seq-read"),
    ("seed-5-pages", "same-filled", "zram-seq-read"),
    ("seed-5-pages", "codec-order", "zstd-1 on text"),
    ("seed-5-pages", "codec-order", "lz4 on text"),
    ("seed-5-pages", "derived", "ublk-target"),
];

#[test]
fn every_known_fault_of_the_five_documents_is_found() {
    let is_missed = |(file, rule, subject): &&(&str, &str, &str)| {
        let found = findings(&format!("{file}.toml"));
        !found
            .iter()
            .any(|f| f.rule == *rule && f.subject.starts_with(subject))
    };
    let missed: Vec<_> = FAULTS.iter().filter(is_missed).collect();
    println!(
        "documents: {} of {} found",
        FAULTS.len() - missed.len(),
        FAULTS.len()
    );
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn seed_1_ingest() {
    check(
        "seed-1-ingest.toml",
        &[
            "rate-times-time parquet-24",
            "rate-times-time pigz-shredder",
            "rate-times-time pigz-parquet",
            "two-values sustained write rate at the database's merge limit",
            "claim-across Threadripper 9975WX: 2.79x the Ryzen 9 9950X3D",
            "winner-in-noise 24 workers optimal: 8.3% faster than 16",
            "spread turbo-16, turbo-24 and 9 more",
            "asserted-limit database-merge",
            "asserted-limit memory-9975wx",
        ],
    );
}

#[test]
fn seed_2_tpch() {
    check(
        "seed-2-tpch.toml",
        &[
            "count partsupp",
            "count nation",
            "count region",
            "count all tables",
            "total average of orc, baseline (K rows/s)",
            "total average of orc, zero-copy (K rows/s)",
            "total average of orc, true-zero-copy (K rows/s)",
            "total average of parquet, baseline (K rows/s)",
            "total average of parquet, zero-copy (K rows/s)",
            "total average of parquet, true-zero-copy (K rows/s)",
            "total average of csv, baseline (K rows/s)",
            "total average of csv, zero-copy (K rows/s)",
            "total average of csv, true-zero-copy (K rows/s)",
            "spread-word parallel orc, baseline (K rows/s)",
            "spread-word parallel orc, zero-copy (K rows/s)",
            "spread-word parallel orc, true-zero-copy (K rows/s)",
            "spread-word parallel parquet, baseline (K rows/s)",
            "spread-word parallel parquet, zero-copy (K rows/s)",
            "spread-word parallel parquet, true-zero-copy (K rows/s)",
            "spread-word parallel csv, baseline (K rows/s)",
            "spread-word parallel csv, zero-copy (K rows/s)",
            "spread-word parallel csv, true-zero-copy (K rows/s)",
            "derived orc-parallel-baseline",
            "derived orc-parallel-zero-copy",
            "derived orc-parallel-true-zero-copy",
            "derived parquet-parallel-baseline",
            "derived parquet-parallel-zero-copy",
            "derived parquet-parallel-true-zero-copy",
            "derived csv-parallel-baseline",
            "derived csv-parallel-zero-copy",
            "derived csv-parallel-true-zero-copy",
            "winner-in-noise ORC parallel: zero-copy achieving the best performance",
            "winner-in-noise Parquet nation: 1.50x speedup",
            "spread orc-lineitem-baseline, orc-lineitem-zero-copy and 25 more",
            "short-cell orc-nation-baseline, orc-nation-zero-copy and 16 more",
            "spread orc-parallel-baseline, orc-parallel-zero-copy and 7 more",
        ],
    );
}

#[test]
fn seed_3_pubsub() {
    check(
        "seed-3-pubsub.toml",
        &[
            "two-values memory of the server",
            "two-values number of readers",
            "own-throttle write",
            "spread write, read",
        ],
    );
}

#[test]
fn seed_4_txn() {
    check(
        "seed-4-txn.toml",
        &[
            "littles-law txn-latency",
            "littles-law txn-throughput",
            "spread transport, rpc-1 and 10 more",
            "asserted-limit network-card",
        ],
    );
}

#[test]
fn seed_5_pages() {
    check(
        "seed-5-pages.toml",
        &[
            "above-limit zram-seq-read",
            "codec-order lz4 on zeros",
            "codec-order lz4 on text",
            "codec-order lz4 on mixed",
            "codec-order lz4 on random",
            "codec-order zstd-1 on zeros",
            "codec-order zstd-1 on text",
            "codec-order zstd-1 on mixed",
            "codec-order zstd-1 on random",
            "winner-in-noise optimal batch size: 64-128 pages",
            "derived ublk-target",
            "same-filled zram-seq-read",
            "same-filled zram-rand-read",
            "spread batch-32, batch-64 and 2 more",
            "spread zram-seq-read, zram-rand-read, ublk-target",
        ],
    );
}
