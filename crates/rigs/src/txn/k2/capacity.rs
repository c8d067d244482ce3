//! The highest rate at which transactions are still answered in time.

use std::time::Duration;

use dyno_suite::protocol::{Reply, Request};

use super::counts::Counts;
use super::params::K2Params;
use super::system::System;
use super::{K2Error, blocking, facts, first_ones, pipelined};
use crate::capacity::Capacity;
use crate::{Params, RigError};

/// `txn-k2-capacity`: the highest rate at which the quantile `quantile` of the latency is
/// `bound-ms` at most and no backlog grows. Each rate is offered for `probe-s` seconds, all of them
/// to one server.
pub(crate) fn capacity(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let capacity = Capacity::read(params, request.phase)?;
    let probe = Duration::from_secs_f64(capacity.probe_s);
    let parsed = K2Params::with_load(params, peer, probe, Some(capacity.first_rate()))?;
    Ok(search(&capacity, &parsed, request)?)
}

fn search(capacity: &Capacity, params: &K2Params, request: &Request) -> Result<Reply, K2Error> {
    let system = System::start(params, &request.scratch)?;
    system.load(params)?;
    let answer = Some(first_ones(params, &system)?);
    let run = if params.is_pipelined() {
        pipelined::run
    } else {
        blocking::run
    };
    let mut round = 0;
    let highest = capacity.search("txn/s", |rate| {
        round += 1;
        let probed = K2Params {
            rate: Some(rate),
            ..params.clone()
        };
        let counts = run(&probed, &system, probed.duration, round)?;
        let verdict = judge(capacity, &counts, rate);
        Ok::<_, K2Error>((verdict, (probed, counts)))
    })?;
    let Some(highest) = highest else {
        return Err(K2Error::Wrong(capacity.none_held("txn/s")));
    };
    let (probed, counts) = highest.measured;
    let mut metrics = counts.metrics(&probed);
    metrics.insert("capacity".to_owned(), highest.rate);
    metrics.insert("probes".to_owned(), f64::from(highest.probes));
    Ok(Reply {
        answer,
        metrics,
        facts: facts(&probed, &system, &counts),
        ..Reply::default()
    })
}

/// The milliseconds that a probe reached, or why its rate is too high.
fn judge(capacity: &Capacity, counts: &Counts, rate: f64) -> Result<f64, String> {
    if let Some(first) = &counts.first_error {
        // A system that refuses what is too much for it has told that it is too much.
        return Err(format!("{} transactions failed: {first}", counts.failed));
    }
    if counts.fell_behind() {
        return Err(counts.rate_kept(rate));
    }
    // A load that starts late needs no rule of its own: latencies count from the moments at which
    // transactions were due.
    capacity.judge(|share| counts.latencies.quantile_ns(share))
}
