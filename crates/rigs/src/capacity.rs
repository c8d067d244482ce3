//! The search for the highest rate at which a system still answers in time, for all workloads that
//! have one.

use dyno_measure::{CapacityOptions, CapacitySearch, MeasureError};
use dyno_suite::protocol::{PROGRESS, Phase};

use crate::quantiles::QUANTILES;
use crate::{Params, RigError};

/// The shortest probe, in seconds. A shorter one cannot show whether a backlog grows.
const PROBE_LEAST_S: f64 = 3.0;

/// What a rate must keep, and how rates are tried.
#[derive(Debug, Clone)]
pub(crate) struct Capacity {
    /// The quantile of latencies that the bound is for: its name, such as `p99`, and its share.
    quantile: (&'static str, f64),
    bound_ms: f64,
    /// How long each rate is offered, in seconds.
    pub probe_s: f64,
    /// End with the first rate that holds: enough to show that the system answers.
    first_held: bool,
    options: CapacityOptions,
}

/// The highest rate that held.
pub(crate) struct Highest<M> {
    /// Operations a second.
    pub rate: f64,
    /// What the probe of that rate measured.
    pub measured: M,
    /// How many rates were tried.
    pub probes: u32,
}

impl Capacity {
    /// Reads `quantile`, `bound-ms`, `probe-s`, `first-rate` and `probes`.
    pub fn read(params: &mut Params<'_>, phase: Phase) -> Result<Capacity, RigError> {
        let probe_s = params.number("probe-s")?;
        if probe_s < PROBE_LEAST_S {
            let reason = format!("{probe_s} is below {PROBE_LEAST_S}");
            return Err(params.wrong("probe-s", reason));
        }
        let default = CapacityOptions::default();
        let probes = params.count_or("probes", u64::from(default.probes_max))?;
        Ok(Capacity {
            quantile: read_quantile(params)?,
            bound_ms: params.number("bound-ms")?,
            probe_s,
            first_held: phase == Phase::Verify,
            options: CapacityOptions {
                first: params.number("first-rate")?,
                probes_max: u32::try_from(probes).unwrap_or(u32::MAX),
                ..default
            },
        })
    }

    /// The rate of the first probe.
    pub fn first_rate(&self) -> f64 {
        self.options.first
    }

    /// The milliseconds of the quantile if it keeps the bound, or why not. `quantile_ns` returns
    /// the nanoseconds that a share of the latencies do not exceed.
    pub fn judge(&self, quantile_ns: impl Fn(f64) -> Option<u64>) -> Result<f64, String> {
        let (name, share) = self.quantile;
        let Some(ns) = quantile_ns(share) else {
            return Err("nothing was answered".to_owned());
        };
        let reached_ms = ns as f64 / 1e6;
        if reached_ms <= self.bound_ms {
            Ok(reached_ms)
        } else {
            Err(format!("{name} is {reached_ms:.1} ms"))
        }
    }

    /// Tries rates and prints what came of each. `probe` measures one, and returns what
    /// [`Self::judge`] does beside what it measured. Returns `None` if no rate held.
    ///
    /// # Errors
    /// Those of `probe`, and rates among which no search is possible.
    pub fn search<M, E: From<MeasureError>>(
        &self,
        unit: &str,
        mut probe: impl FnMut(f64) -> Result<(Result<f64, String>, M), E>,
    ) -> Result<Option<Highest<M>>, E> {
        let mut search = CapacitySearch::new(self.options)?;
        let mut highest = None;
        while let Some(rate) = search.next_rate() {
            let (verdict, measured) = probe(rate)?;
            search.tell(verdict.is_ok());
            eprintln!("{PROGRESS}{}", probe_text(rate, unit, &verdict));
            if verdict.is_ok() {
                highest = Some((rate, measured));
                if self.first_held {
                    break;
                }
            }
        }
        let probes = search.probes();
        Ok(highest.map(|(rate, measured)| Highest {
            rate,
            measured,
            probes,
        }))
    }

    /// Describes that no rate held.
    pub fn none_held(&self, unit: &str) -> String {
        let (low, name, bound_ms) = (self.options.lowest, self.quantile.0, self.bound_ms);
        format!("no rate down to {low} {unit} holds {name} of {bound_ms} ms")
    }
}

fn probe_text(rate: f64, unit: &str, verdict: &Result<f64, String>) -> String {
    match verdict {
        Ok(reached_ms) => format!("{rate:.0} {unit} holds, at {reached_ms:.1} ms"),
        Err(why) => format!("{rate:.0} {unit} does not hold: {why}"),
    }
}

fn read_quantile(params: &mut Params<'_>) -> Result<(&'static str, f64), RigError> {
    let name = params.text("quantile")?;
    let found = QUANTILES.into_iter().find(|(known, _)| *known == name);
    found.ok_or_else(|| {
        let known = QUANTILES.map(|(name, _)| name).join(", ");
        params.wrong("quantile", format!("`{name}` is not one of {known}"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn capacity() -> Capacity {
        let values =
            json!({ "quantile": "p99", "bound-ms": 50, "probe-s": 3, "first-rate": 1_000 });
        let values: BTreeMap<_, _> = serde_json::from_value(values).expect("a map");
        Capacity::read(&mut Params::new(&values), Phase::Measure).expect("a search")
    }

    #[test]
    fn it_finds_the_rate_beyond_which_answers_are_late() {
        // A system whose p99 is a millisecond for each 100 operations a second.
        let capacity = capacity();
        let probe = |rate: f64| {
            let ns = (rate * 1e4) as u64;
            Ok::<_, MeasureError>((capacity.judge(|_| Some(ns)), rate))
        };
        let highest = capacity.search("op/s", probe).expect("a search");
        let highest = highest.expect("a rate that holds");
        assert!(
            (4_760.0..=5_000.0).contains(&highest.rate),
            "{}",
            highest.rate
        );
        assert_eq!(highest.rate, highest.measured);
        let never = |_| Ok::<_, MeasureError>((capacity.judge(|_| None), ()));
        assert!(capacity.search("op/s", never).expect("a search").is_none());
        assert!(capacity.none_held("op/s").contains("p99 of 50 ms"));
    }

    #[test]
    fn what_is_printed_of_a_probe() {
        let held = probe_text(5_000.0, "msg/s", &Ok(12.34));
        assert_eq!(held, "5000 msg/s holds, at 12.3 ms");
        let late = capacity().judge(|_| Some(80_000_000));
        let late = probe_text(1e4, "msg/s", &late);
        assert_eq!(late, "10000 msg/s does not hold: p99 is 80.0 ms");
    }
}
