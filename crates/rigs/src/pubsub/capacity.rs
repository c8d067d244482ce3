//! Finds the highest rate at which messages still arrive in time.

use std::collections::BTreeMap;

use dyno_measure::{CapacityOptions, CapacitySearch};
use dyno_record::Answer;
use dyno_suite::protocol::{PROGRESS, Reply, Request};

use super::metrics;
use super::params::{FlowParams, Load, Measured};
use super::{FlowError, check_peer};
use crate::quantiles::QUANTILES;
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
    let bound_ms = params.number("bound-ms")?;
    let quantile = read_quantile(params)?;
    let probe_s = params.number("probe-s")?;
    // A shorter probe cannot show whether a backlog grows.
    if probe_s < 3.0 {
        return Err(params.wrong("probe-s", format!("{probe_s} is below 3")));
    }
    let parsed = match params.text("mode")? {
        "pubsub" => FlowParams::log(params, NO_LOAD, peer.is_some())?,
        "queue" => FlowParams::queue(params, NO_LOAD, peer.is_some())?,
        other => {
            let reason = format!("`{other}` is neither pubsub nor queue");
            return Err(params.wrong("mode", reason));
        }
    };
    let default = CapacityOptions::default();
    let probes = params.count_or("probes", u64::from(default.probes_max))?;
    let options = CapacityOptions {
        first: params.number("first-rate")?,
        probes_max: u32::try_from(probes).unwrap_or(u32::MAX),
        ..default
    };
    let mut search = CapacitySearch::new(options).map_err(FlowError::from)?;
    let mut best = None;
    while let Some(rate) = search.next_rate() {
        let probed = parsed.under(rate, probe_s);
        // A rate above the capacity costs one probe and not a stall: the backlog grows, and the
        // flow still ends when its messages are read.
        let measured = probed.measure(&request.scratch)?;
        let verdict = judge(&measured, rate, quantile, bound_ms);
        search.tell(verdict.is_ok());
        eprintln!("{PROGRESS}{}", probe_text(rate, &verdict));
        if verdict.is_ok() {
            best = Some((rate, probed, measured));
        }
    }
    let Some((rate, probed, measured)) = best else {
        let (low, name) = (options.lowest, quantile.0);
        return Err(FlowError::Way(format!(
            "no rate down to {low} msg/s holds {name} of {bound_ms} ms from end to end"
        ))
        .into());
    };
    let mut metrics = metrics::from_flow(&probed.flow, &measured);
    metrics.insert("capacity".to_string(), rate);
    metrics.insert("probes".to_string(), f64::from(search.probes()));
    Ok(Reply {
        // How much was sent depends on the probes, and each of them compared what arrived with what
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

/// The quantile that a probe reached, or why its rate is too high.
fn judge(
    measured: &Measured,
    rate: f64,
    (name, p): (&str, f64),
    bound_ms: f64,
) -> Result<f64, String> {
    let flowed = &measured.flowed;
    // The backlog is judged before the latency. With one that grows, a quantile depends on the
    // length of the probe.
    if let Some(grew) = flowed.backlog.grew(rate) {
        return Err(grew);
    }
    let Some(ns) = flowed.read.end_to_end.quantile_ns(p) else {
        return Err("nothing was read".to_string());
    };
    let reached_ms = ns as f64 / 1e6;
    if reached_ms <= bound_ms {
        Ok(reached_ms)
    } else {
        Err(format!("{name} is {reached_ms:.1} ms"))
    }
}

fn probe_text(rate: f64, verdict: &Result<f64, String>) -> String {
    match verdict {
        Ok(reached_ms) => format!("{rate:.0} msg/s holds, at {reached_ms:.1} ms"),
        Err(why) => format!("{rate:.0} msg/s does not hold: {why}"),
    }
}

fn read_quantile(params: &mut Params<'_>) -> Result<(&'static str, f64), RigError> {
    let asked = params.text("quantile")?;
    let found = QUANTILES.into_iter().find(|(name, _)| *name == asked);
    found.ok_or_else(|| {
        let known = QUANTILES.map(|(name, _)| name).join(", ");
        params.wrong("quantile", format!("`{asked}` is not one of {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_probe() {
        assert_eq!(
            probe_text(5_000.0, &Ok(12.34)),
            "5000 msg/s holds, at 12.3 ms"
        );
        let why = Err("p99 is 80.0 ms".to_string());
        assert_eq!(
            probe_text(1e4, &why),
            "10000 msg/s does not hold: p99 is 80.0 ms"
        );
    }
}
