//! A job stays within the memory that it was given: peak resident memory of the whole process.

use std::time::Duration;

use dyno_machine::{ChildLimits, Exit, run_child};

use crate::{generate, sql_engine};

/// What the job is given; its process must stay below as many millions of bytes.
const GIVEN: &str = "600MiB";
const MOST_BYTES: u64 = 600_000_000;

fn check(words: &str) {
    let command = generate(&format!("{words} --memory {GIVEN} --sink null"));
    let limits = ChildLimits::time(Duration::from_secs(900));
    let run = run_child(command, b"", limits).expect("the program starts");
    assert_eq!(run.exit, Exit::Code(0), "{words}: {}", run.stderr.text());
    let peak_bytes = run.usage.peak_rss_bytes.expect("the kernel says it");
    println!("{words}: {:.0} MB at most", peak_bytes as f64 / 1e6);
    assert!(peak_bytes < MOST_BYTES, "{words}: {peak_bytes} bytes");
}

#[test]
fn a_job_at_scale_factor_1_stays_within_its_memory() {
    check("--sf 1 --format parquet");
    check("--sf 1 --format orc --tables orders,partsupp");
}

#[test]
#[ignore = "minutes: ten times the rows, in every format and mode"]
fn jobs_at_scale_factor_10_stay_within_their_memory() {
    for format in ["parquet", "orc", "csv", "tbl"] {
        for mode in ["baseline", "zero-copy", "true-zero-copy"] {
            // The program that writes it is the larger of the two whose memory counts.
            if mode == "baseline" && format != "tbl" && !sql_engine().is_file() {
                println!("skipped: memory of {format} in the mode baseline: dyno-sql is not built");
                continue;
            }
            check(&format!("--sf 10 --format {format} --mode {mode}"));
        }
    }
}
