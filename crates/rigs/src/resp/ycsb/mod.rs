//! The workloads A, B, C, D and F of YCSB over hashes, as YCSB's own client of Redis has them: a
//! record is a hash of ten fields of 100 bytes, read as a whole, of which an update writes one.
//!
//! | file | what |
//! |---|---|
//! | `mix` | the operations of each workload, and the laws by which records are drawn |
//! | `records` | keys, values, and whether a value is one that was written |
//! | `worker` | one connection |
//! | `audit` | what must be in the server afterwards |

mod audit;
mod mix;
mod records;
mod worker;

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use dyno_measure::Latencies;
use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};

use super::servers::{Kind, Served};
use super::{RespError, at_least_one};
use crate::{Params, RigError, quantiles, used};
use mix::Mix;
use worker::{ClientCounts, Shared, Worker};

/// The warm-up, which is not counted, lasts this fraction (1/20) of the measured time.
const WARM_UP: u32 = 20;
/// How long it runs if only the answer is wanted.
const VERIFYING: Duration = Duration::from_millis(20);
/// Operations that one client does before anything is timed, and whose reads are the answer.
const ANSWERING: u64 = 500;
const ANSWERING_MOST: Duration = Duration::from_secs(3_600);
const CLIENTS_MAX: u64 = 1_024;
const SEED: u64 = 1;

struct Load {
    mix: Mix,
    clients: usize,
    records: u64,
    measured: Duration,
}

/// `resp-ycsb`: workload `mix` for `seconds` on `records` records, from `clients` connections with
/// one operation under way on each.
pub(crate) fn run(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let kind = Kind::from_peer(peer)?;
    let mut load = Load {
        mix: mix_of(params)?,
        clients: at_least_one(params, "clients")?.min(CLIENTS_MAX) as usize,
        records: at_least_one(params, "records")?,
        measured: params.seconds("seconds")?,
    };
    if request.phase == Phase::Verify {
        load.measured = load.measured.min(VERIFYING);
    }
    let served = Served::start(kind, &request.scratch).map_err(RespError::from)?;
    Ok(load.measure(&served)?)
}

fn mix_of(params: &mut Params<'_>) -> Result<Mix, RigError> {
    match params.text("mix")? {
        "a" => Ok(Mix::A),
        "b" => Ok(Mix::B),
        "c" => Ok(Mix::C),
        "d" => Ok(Mix::D),
        "f" => Ok(Mix::F),
        "e" => {
            let reason = "workload E scans records in the order of their keys, which hashes do not \
                          have: YCSB keeps a sorted set beside them, and the server has none";
            Err(params.wrong("mix", reason.to_owned()))
        }
        other => {
            let reason = format!("`{other}` is not one of a, b, c, d, f");
            Err(params.wrong("mix", reason))
        }
    }
}

impl Load {
    fn measure(&self, served: &Served) -> Result<Reply, RespError> {
        audit::load(served.port(), self.records)?;
        // The client beyond the others does the first operations alone, so that what it reads is
        // the same on every system.
        let shared = Shared::new(served.port(), self.mix, self.records, self.clients + 1);
        let mut first = Worker::new(&shared, self.clients, SEED)?;
        let answer = first.run(ANSWERING_MOST, ANSWERING)?;
        let workers = (0..self.clients).map(|number| Worker::new(&shared, number, SEED));
        let mut workers = workers.collect::<Result<Vec<_>, _>>()?;
        together(&mut workers, self.measured / WARM_UP)?;
        let before = (served.used(), used::cpu_s());
        let counts = together(&mut workers, self.measured)?;
        let (server_s, client_s) = (
            served.used().since(&before.0).server_s,
            used::cpu_s() - before.1,
        );
        let logs = workers.iter().chain([&first]);
        audit::check(&shared, logs.flat_map(|worker| &worker.log))?;
        let mut metrics = metrics(&counts)?;
        let each_us = |seconds: f64| seconds * 1e6 / counts.operations.max(1) as f64;
        metrics.extend([
            ("server-cpu-us".to_owned(), each_us(server_s)),
            ("client-cpu-us".to_owned(), each_us(client_s)),
            ("cpu-us".to_owned(), each_us(server_s + client_s)),
        ]);
        let mut reply = Reply {
            answer: Some(Answer {
                count: ANSWERING,
                checksum: format!("{:016x}", answer.digest),
            }),
            metrics,
            facts: BTreeMap::from([("server".to_owned(), served.describe())]),
            ..Reply::default()
        };
        counts.windows.tell(&mut reply, 1.0);
        Ok(reply)
    }
}

/// Lets all clients work for a time, each in a thread.
fn together(workers: &mut [Worker<'_>], measured: Duration) -> Result<ClientCounts, RespError> {
    let parts: Vec<Result<ClientCounts, RespError>> = thread::scope(|scope| {
        let each = workers.iter_mut();
        let threads: Vec<_> = each
            .map(|worker| scope.spawn(move || worker.run(measured, u64::MAX)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|part| part.unwrap_or(Err(RespError::Panicked)))
            .collect()
    });
    let mut all = ClientCounts::new(measured);
    for part in parts {
        all.add(&part?)?;
    }
    Ok(all)
}

/// Operations a second, seconds of all operations together, and milliseconds of each kind of them.
fn metrics(counts: &ClientCounts) -> Result<BTreeMap<String, f64>, RespError> {
    let mut metrics = BTreeMap::from([
        (
            "throughput".to_owned(),
            counts.operations as f64 / counts.seconds.max(1e-9),
        ),
        ("operations".to_owned(), counts.operations as f64),
        (
            "aborted".to_owned(),
            counts.retries as f64 / (counts.operations + counts.retries).max(1) as f64,
        ),
        ("time".to_owned(), counts.seconds),
    ]);
    let mut all = Latencies::new()?;
    for (name, latencies) in &counts.latencies {
        quantiles::insert(&mut metrics, name, latencies, 1e-3);
        all.add(latencies)?;
    }
    quantiles::insert(&mut metrics, "latency", &all, 1.0);
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workload_that_hashes_cannot_run_is_refused_with_the_reason() {
        for (mix, said) in [("e", "a sorted set"), ("g", "`g` is not one of a, b")] {
            let values = BTreeMap::from([("mix".to_owned(), json!(mix))]);
            let error = mix_of(&mut Params::new(&values))
                .expect_err(mix)
                .to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
