//! The highest rate at which messages still arrive in time.

use std::collections::BTreeMap;

use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};

use super::metrics;
use super::params::{FlowParams, Load, Measured};
use super::{FlowError, check_peer};
use crate::capacity::Capacity;
use crate::{Params, RigError};

/// No load of its own, because each probe brings one.
const NO_LOAD: Load = Load {
    messages: 0,
    lasts: None,
    rate: None,
};

/// `pubsub-capacity`: the highest rate at which the quantile `quantile` of the latency from end to
/// end is `bound-ms` at most and no backlog grows. Each probe writes for `probe-s` seconds, on a
/// server of its own.
pub(crate) fn capacity(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    peer.map(check_peer).transpose()?;
    let capacity = Capacity::read(params, request.phase)?;
    let parsed = match params.text("mode")? {
        "pubsub" => FlowParams::log(params, NO_LOAD, peer.is_some())?,
        "queue" => FlowParams::queue(params, NO_LOAD, peer.is_some())?,
        other => {
            let reason = format!("`{other}` is neither pubsub nor queue");
            return Err(params.wrong("mode", reason));
        }
    };
    let highest = capacity.search("msg/s", |rate| {
        let probed = parsed.under(rate, capacity.probe_s);
        // A rate above the capacity costs one probe and not a stall: the backlog grows, and the
        // flow still ends when its messages are read.
        let measured = probed.measure(&request.scratch)?;
        let verdict = judge(&capacity, &measured, rate);
        Ok::<_, FlowError>((verdict, (probed, measured)))
    })?;
    let Some(highest) = highest else {
        return Err(FlowError::Way(capacity.none_held("msg/s")).into());
    };
    let (probed, measured) = highest.measured;
    let mut metrics = metrics::from_flow(&probed.flow, &measured);
    metrics.insert("capacity".to_string(), highest.rate);
    metrics.insert("probes".to_string(), f64::from(highest.probes));
    Ok(Reply {
        // How much is sent depends on the probes, and each of them compares what arrives with what
        // was sent. So the answer is constant.
        answer: Some(Answer {
            count: 1,
            checksum: "complete".to_string(),
        }),
        metrics,
        facts: BTreeMap::from([("server".to_string(), measured.server)]),
        ..Reply::default()
    })
}

/// The milliseconds that a probe reached, or why its rate is too high.
fn judge(capacity: &Capacity, measured: &Measured, rate: f64) -> Result<f64, String> {
    let flowed = &measured.flowed;
    // The backlog is judged before the latency. With one that grows, a quantile depends on the
    // length of the probe.
    if let Some(grew) = flowed.backlog.grew(rate) {
        return Err(grew);
    }
    capacity.judge(|share| flowed.read.end_to_end.quantile_ns(share))
}
