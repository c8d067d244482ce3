//! The workload of suites: an engine is started and loaded, checked, driven, checked again; a throughput comes out when all
//! conditions hold.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};
use dyno_tpcc::checks::{atomicity, consistency};
use dyno_tpcc::load::{self, Progress};
use dyno_tpcc::schema::Tables;
use dyno_tpcc::{Scale, checks};
use dyno_txn_api::Database;

use super::asked::{Asked, read};
use super::engine::Engine;
use super::{Measured, TpccError, measure, records};
use crate::{Params, RigError};

/// Threads that load.
const LOADERS: usize = 2;
/// Quantiles by the names they have in records.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// `tpcc-run`: a number of transactions from terminals, on an engine of its own; `peer` names another engine than ours.
pub(crate) fn run(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let asked = read(params, peer)?;
    Ok(reply(&asked, request)?)
}

fn reply(asked: &Asked, request: &Request) -> Result<Reply, TpccError> {
    let plan = &asked.plan;
    let connections = plan.clients as usize + LOADERS;
    let engine = Engine::start(&asked.which, &asked.ours, connections, &request.scratch)?;
    let db = engine.db();
    let began = Instant::now();
    load::load(db, asked.population, LOADERS, &Progress::default())?;
    let load_s = began.elapsed().as_secs_f64();
    let (tables, population) = load::ready(db)?;
    let memory = engine.memory_bytes()?;
    hold("before the run", db, &tables, &population.scale)?;
    let measured = measure(db, &tables, plan, &AtomicBool::new(false))?;
    if let Some(error) = measured.cut_short {
        return Err(error.into());
    }
    hold("after the run", db, &tables, &population.scale)?;
    let records = records::of_a_transaction(db, &tables, plan)?;
    if let Some(wrong) = atomicity(db, &tables, [u64::MAX >> 1, 0])? {
        return Err(TpccError::Wrong(wrong));
    }
    let unknown: u64 = measured
        .of
        .values()
        .map(|of| of.unknown + of.given_up)
        .sum();
    if unknown > 0 {
        let text = format!("{unknown} transactions were given up, or have no known outcome");
        return Err(TpccError::Wrong(text));
    }
    let entered = measured.committed() + measured.of.values().map(|of| of.rolled_back).sum::<u64>();
    let mut metrics = metrics(&measured, records);
    metrics.insert("load-s".to_string(), load_s);
    if let Some(bytes) = memory {
        let each = bytes as f64 / f64::from(population.scale.warehouses);
        metrics.insert("memory-per-warehouse".to_string(), each);
    }
    Ok(Reply {
        answer: Some(Answer {
            count: entered,
            checksum: "the conditions hold".to_string(),
        }),
        metrics,
        facts: BTreeMap::from([("engine".to_string(), engine.says.clone())]),
        ..Reply::default()
    })
}

fn hold(when: &str, db: &dyn Database, tables: &Tables, scale: &Scale) -> Result<(), TpccError> {
    let found: Vec<checks::Violation> = consistency(db, tables, scale)?;
    match found.first() {
        None => Ok(()),
        Some(first) => {
            let more = found.len();
            Err(TpccError::Wrong(format!(
                "{when}: {first} ({more} violations)"
            )))
        }
    }
}

/// Rates are a second, latencies milliseconds.
fn metrics(measured: &Measured, records: f64) -> BTreeMap<String, f64> {
    let rate = measured.rate();
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), rate),
        ("aborts".to_string(), measured.aborted_share() * 100.0),
        ("records".to_string(), records),
        ("record-rate".to_string(), records * rate),
    ]);
    for (kind, of) in &measured.of {
        let name = kind.name();
        let each = of.committed as f64 / measured.seconds.max(1e-9);
        metrics.insert(format!("{name}-rate"), each);
        for (label, p) in QUANTILES {
            if let Some(ns) = of.latencies.quantile_ns(p) {
                metrics.insert(format!("{name}-{label}"), ns as f64 / 1e6);
            }
        }
    }
    metrics
}
