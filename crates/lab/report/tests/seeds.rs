//! The five seed documents, held against the linter: what is wrong with each is found, and what is
//! right is left alone.

#![allow(clippy::unwrap_used, reason = "a test stops where something is amiss")]

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

#[test]
fn seed_1_ingest() {
    check(
        "seed-1-ingest.toml",
        &[
            "rate-times-time parquet-24",
            "rate-times-time pigz-shredder",
            "rate-times-time pigz-parquet",
            "two-values sustained write rate at the database's merge limit",
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
            "winner-in-noise ORC parallel: zero-copy achieving the best performance",
            "winner-in-noise CSV parallel: baseline over true-zero-copy",
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
            "littles-law txn-multi-5-15-2020",
            "littles-law txn-multi-6-08-2020",
            "littles-law txn-multi-6-30-2020",
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
            "same-filled zram-seq-read",
            "same-filled zram-rand-read",
            "winner-in-noise optimal batch size: 64-128 pages",
            "spread batch-32, batch-64 and 2 more",
            "spread zram-seq-read, zram-rand-read",
        ],
    );
}
