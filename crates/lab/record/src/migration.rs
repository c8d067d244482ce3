//! Reads the bytes of a `run.json` of any version that was ever released into today's [`Run`].
//!
//! A new version adds a step to [`STEPS`] that turns the JSON of version N into that of N + 1, and
//! a fixture `tests/fixtures/run-vN`.

use std::path::Path;

use serde_json::Value;

use crate::error::RecordError;
use crate::schema::{Run, SCHEMA_VERSION};

/// The word that marks a `run.json`.
pub(crate) const MAGIC: &str = "dyno-run";

/// Turns version N + 1 into version N + 2, where N is the position.
const STEPS: [fn(&mut Value); 2] = [to_version_2, to_version_3];

/// Reads a `run.json`. Errors name `path` and, for the version of today, the line.
pub(crate) fn run_from_json(path: &Path, text: &str) -> Result<Run, RecordError> {
    // The text is read without types first: only its magic and version say which types it has.
    let mut value: Value = serde_json::from_str(text).map_err(|e| malformed(path, &e))?;
    let version = version_of(path, &value)?;
    if version == SCHEMA_VERSION {
        // Parsed from the text, which keeps the line in the error.
        return serde_json::from_str(text).map_err(|e| malformed(path, &e));
    }
    // Each step makes one version into the next, so the oldest record goes through all of them and
    // no step knows more than two versions.
    for step in &STEPS[version as usize - 1..] {
        step(&mut value);
    }
    value["schema_version"] = SCHEMA_VERSION.into();
    serde_json::from_value(value).map_err(|e| malformed(path, &e))
}

/// Workloads of version 1 that are services under load; all others were jobs. Their samples have no
/// windows of time, so nothing can be said of whether their rates were steady.
const SERVICES_OF_VERSION_1: [&str; 12] = [
    "txn-k2",
    "txn-rpc",
    "txn-transport",
    "tpcc-run",
    "pubsub-flow",
    "pubsub-queue",
    "pubsub-commits",
    "pubsub-capacity",
    "pages-store",
    "pages-device",
    "pages-fault",
    "llm-beside",
];

/// Version 1 cited the documents that began the project by paths of files that were never
/// published; readers get the titles, and the records stay as they were written.
const DOCUMENTS_OF_VERSION_1: [(&str, &str); 5] = [
    (
        "seeds/1-ingest-ionis-lab.md",
        "IONIS Lab, the README of a laboratory for radio spots on ClickHouse",
    ),
    (
        "seeds/2-tpch-generator.md",
        "Phase 16+ Comprehensive Benchmark Analysis, of a generator of TPC-H data",
    ),
    (
        "seeds/3-pubsub-postgres.md",
        "96 vCPU Single-Node Results (3x 2-min tests), of messages on PostgreSQL",
    ),
    (
        "seeds/4-txn-k2.md",
        "Initial performance results as of 5/15/2020, of K2 transactions",
    ),
    (
        "seeds/5-pages-swap.md",
        "BENCH-001 v2.1.0 Benchmark Report, of compressed swap",
    ),
];

/// Version 2 says of each case whether it is a job or a service, and cites documents by their
/// titles.
fn to_version_2(run: &mut Value) {
    if let Some(document) = run.pointer_mut("/plan/seed_document") {
        let known = DOCUMENTS_OF_VERSION_1
            .iter()
            .find(|(path, _)| document == path);
        if let Some((_, title)) = known {
            *document = (*title).into();
        }
    }
    let cases = run.pointer_mut("/plan/cases").and_then(Value::as_array_mut);
    for case in cases.into_iter().flatten() {
        let workload = case.get("workload").and_then(Value::as_str);
        let service = workload.is_some_and(|name| SERVICES_OF_VERSION_1.contains(&name));
        if let Some(case) = case.as_object_mut() {
            let load = if service { "service" } else { "job" };
            case.insert("load".to_owned(), load.into());
        }
    }
}

/// Version 3 has a third arm of samples, beside a load, which an older program could not read. The
/// plan of version 2 reads as it is.
fn to_version_3(_run: &mut Value) {}

fn malformed(path: &Path, error: &serde_json::Error) -> RecordError {
    RecordError::Malformed {
        path: path.to_path_buf(),
        line: error.line(),
        reason: format!("not a run: {error}"),
    }
}

fn version_of(path: &Path, value: &Value) -> Result<u32, RecordError> {
    let magic = value.get("magic").unwrap_or(&Value::Null);
    if magic != MAGIC {
        return Err(RecordError::Magic {
            path: path.to_path_buf(),
            expected: MAGIC,
            found: magic.to_string(),
        });
    }
    let stated = value.get("schema_version").unwrap_or(&Value::Null);
    match stated.as_u64() {
        Some(found) if found > u64::from(SCHEMA_VERSION) => Err(RecordError::Newer {
            path: path.to_path_buf(),
            format: MAGIC,
            found,
            newest: SCHEMA_VERSION,
        }),
        // The arm above has bounded the version, so the cast cannot cut it.
        Some(found @ 1..) => Ok(found as u32),
        _ => Err(RecordError::Malformed {
            path: path.to_path_buf(),
            line: 1,
            reason: format!("schema_version {stated} was never released"),
        }),
    }
}
