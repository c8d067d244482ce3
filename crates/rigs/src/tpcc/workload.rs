//! The workload of suites: it starts an engine, loads and checks it, drives it, and checks it
//! again. The throughput counts only if all conditions hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};
use dyno_tpcc::checks::{atomicity, consistency};
use dyno_tpcc::drive::{Plan, Until};
use dyno_tpcc::input::Kind;
use dyno_tpcc::load::{self, Progress};
use dyno_tpcc::schema::Tables;
use dyno_tpcc::{Scale, checks};
use dyno_txn_api::Database;

use super::engine::Engine;
use super::params::{TpccParams, read};
use super::{Measured, TpccError, measure, records};
use crate::{Params, RigError, quantiles};

/// Threads that load the tables.
const LOADERS: usize = 2;

/// How long it runs if only the answer is wanted.
const VERIFYING: Duration = Duration::from_millis(200);
/// The warm-up, which is not counted, lasts this fraction (1/5) of the measured time.
const WARM_UP: u32 = 5;

/// `tpcc-run`: transactions from terminals for some time, on an engine of its own; `peer` names an
/// engine other than ours.
pub(crate) fn run(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let mut params = read(params, peer)?;
    if request.phase == Phase::Verify {
        params.duration = params.duration.min(VERIFYING);
        params.before = 0;
    }
    Ok(reply(&params, request)?)
}

fn reply(params: &TpccParams, request: &Request) -> Result<Reply, TpccError> {
    // The warm-up adds rows of its own, which must not collide with those of the run.
    let plan = &Plan {
        until: Until::Elapsed(params.duration),
        ..params.plan.clone()
    };
    let warm_up = Plan {
        until: match params.before {
            0 => Until::Elapsed(params.duration / WARM_UP),
            before => Until::Transactions(before.div_ceil(plan.clients.into())),
        },
        seed: plan.seed + 1,
        run: plan.run + 1,
        ..plan.clone()
    };
    let connections = plan.clients as usize + LOADERS;
    let engine = Engine::start(&params.which, &params.ours, connections, &request.scratch)?;
    let db = engine.db();
    let began = Instant::now();
    load::load(
        db,
        engine.layout,
        params.population,
        LOADERS,
        &Progress::default(),
    )?;
    let load_s = began.elapsed().as_secs_f64();
    let (tables, population) = load::ready(db)?;
    let memory = engine.stat("memory_bytes")?;
    // Conditions are checked before the run, so that a fault of the load is not taken for one of
    // the transactions.
    hold("before the run", db, &tables, &population.scale)?;
    let before = Stored::count(db)?;
    // The warm-up is compared as well: its orders are in the database, and an engine that loses one
    // there is as wrong as one that loses it later.
    let warmed = whole(measure(db, &tables, &warm_up, &AtomicBool::new(false))?)?;
    let measured = whole(measure(db, &tables, plan, &AtomicBool::new(false))?)?;
    let checkpoints = engine.stat("checkpoints")?;
    Stored::count(db)?.compare(&before, &[&warmed, &measured])?;
    hold("after the run", db, &tables, &population.scale)?;
    let records = records::of_a_transaction(db, &tables, plan)?;
    if let Some(wrong) = atomicity(db, &tables, [u64::MAX >> 1, 0])? {
        return Err(TpccError::Wrong(wrong));
    }
    let mut metrics = metrics(&measured, records);
    metrics.insert("load-s".to_string(), load_s);
    if let Some(bytes) = memory {
        let each = bytes as f64 / f64::from(population.scale.warehouses);
        metrics.insert("memory-per-warehouse".to_string(), each);
    }
    if let Some(count) = checkpoints {
        metrics.insert("checkpoints".to_string(), count as f64);
    }
    let mut reply = Reply {
        // The number of transactions depends on the speed. The engine's own count of what they left
        // is compared with the clients'.
        answer: Some(Answer {
            count: 1,
            checksum: "the conditions hold, and all that was committed is there".to_string(),
        }),
        metrics,
        facts: BTreeMap::from([("engine".to_string(), engine.says.clone())]),
        ..Reply::default()
    };
    measured.windows.tell(&mut reply, 1.0);
    Ok(reply)
}

/// Accepts a run only if the engine returned no error and every transaction's outcome is known.
fn whole(mut measured: Measured) -> Result<Measured, TpccError> {
    if let Some(error) = measured.cut_short.take() {
        return Err(error.into());
    }
    let open: u64 = measured
        .of
        .values()
        .map(|of| of.unknown + of.given_up)
        .sum();
    match open {
        0 => Ok(measured),
        open => Err(TpccError::Wrong(format!(
            "{open} transactions were given up, or have no known outcome"
        ))),
    }
}

/// The rows that transactions leave, as the database itself counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stored {
    orders: u64,
    payments: u64,
}

impl Stored {
    fn count(db: &dyn Database) -> Result<Stored, TpccError> {
        Ok(Stored {
            orders: checks::rows(db, "tpcc-order")?,
            payments: checks::rows(db, "tpcc-history")?,
        })
    }

    /// Checks that exactly the committed orders and payments are there.
    fn compare(&self, before: &Stored, runs: &[&Measured]) -> Result<(), TpccError> {
        let committed = |kind: Kind| -> u64 {
            let of = runs.iter().filter_map(|run| run.of.get(&kind));
            of.map(|of| of.committed).sum()
        };
        for (what, now, then, kind) in [
            ("orders", self.orders, before.orders, Kind::NewOrder),
            ("payments", self.payments, before.payments, Kind::Payment),
        ] {
            let (stored, acknowledged) = (now.saturating_sub(then), committed(kind));
            if stored != acknowledged {
                let text =
                    format!("{acknowledged} {what} were committed, and the database has {stored}");
                return Err(TpccError::Wrong(text));
            }
        }
        Ok(())
    }
}

fn hold(when: &str, db: &dyn Database, tables: &Tables, scale: &Scale) -> Result<(), TpccError> {
    let found: Vec<checks::Violation> = consistency(db, tables, scale)?;
    match found.first() {
        None => Ok(()),
        Some(first) => {
            let broken: BTreeSet<u8> = found.iter().map(|one| one.condition).collect();
            Err(TpccError::Wrong(format!(
                "{when}: {first} (conditions that do not hold: {broken:?})"
            )))
        }
    }
}

/// Rates are per second, latencies in milliseconds.
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
        quantiles::insert(&mut metrics, name, &of.latencies, 1e-3);
    }
    metrics
}
