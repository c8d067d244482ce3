//! About how long a case takes, and what it needs.

use std::collections::BTreeMap;

use dyno_record::{CasePlan, Load};

/// What the suite's file says about one case or data section, with its numbers filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Units of work of one invocation.
    pub(crate) units: f64,
    /// By system; `other` for those not named.
    pub(crate) units_per_s: BTreeMap<String, f64>,
    pub(crate) startup_s: f64,
    pub(crate) disk_bytes: f64,
    pub(crate) memory_bytes: f64,
}

impl Estimate {
    /// Seconds that one invocation of a system takes.
    pub(crate) fn invocation_s(&self, system: &str) -> f64 {
        // A suite that names no rate for a system gets the slowest that it does name.
        let slowest = self.units_per_s.values().copied().reduce(f64::min);
        let rate = self
            .units_per_s
            .get(system)
            .or_else(|| self.units_per_s.get("other"))
            .copied()
            .or(slowest);
        self.startup_s + rate.map_or(0.0, |rate| self.units / rate)
    }
}

/// What one case takes: stated by the suite, then learned from the verify pass.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseEstimate {
    /// Seconds of one timed invocation, by system, in the case's order.
    pub invocation_s: Vec<f64>,
    /// Seconds of one invocation of the verify pass, likewise: of a service it begins and answers,
    /// and does not last for the time that is measured.
    pub verify_s: Vec<f64>,
    /// Seconds of all its timed invocations and of the verify pass.
    pub total_s: f64,
    /// Bytes of scratch that one invocation needs; they are freed before the next.
    pub disk_bytes: f64,
    /// Bytes of memory that one invocation needs.
    pub memory_bytes: f64,
    /// Whether each system runs a second time in each block, beside a load.
    pub beside: bool,
}

impl CaseEstimate {
    pub(crate) fn new(case: &CasePlan, estimate: &Estimate) -> CaseEstimate {
        let invocation_s: Vec<f64> = case
            .systems
            .iter()
            .map(|system| estimate.invocation_s(system))
            .collect();
        let verify_s = match case.load {
            Load::Job => invocation_s.clone(),
            Load::Service => vec![estimate.startup_s; invocation_s.len()],
        };
        CaseEstimate {
            total_s: total_s(case, &invocation_s, &verify_s, false),
            invocation_s,
            verify_s,
            disk_bytes: estimate.disk_bytes,
            memory_bytes: estimate.memory_bytes,
            beside: false,
        }
    }

    /// Adds an invocation of each system to each block. It is counted as long as one alone: by how
    /// much the load slows it down is what the run is to find out.
    pub(crate) fn run_beside(&mut self, case: &CasePlan) {
        self.beside = true;
        self.sum(case);
    }

    fn sum(&mut self, case: &CasePlan) {
        self.total_s = total_s(case, &self.invocation_s, &self.verify_s, self.beside);
    }

    /// Takes over a case whose systems have changed: the times of each are those that stood at its
    /// entry of `places` before.
    pub(crate) fn take_systems(&mut self, case: &CasePlan, places: &[usize]) {
        for times in [&mut self.invocation_s, &mut self.verify_s] {
            *times = places.iter().map(|place| times[*place]).collect();
        }
        self.sum(case);
    }

    /// Replaces a system's time by what the verify pass took: of a service, that of its start.
    pub(crate) fn learn(&mut self, case: &CasePlan, system: usize, wall_s: f64) {
        // The verify pass of a service ends once it has answered, so the time for which a sample
        // lasts comes on top of what was seen.
        let measured_s = self.invocation_s[system] - self.verify_s[system];
        self.invocation_s[system] = wall_s + measured_s;
        self.verify_s[system] = wall_s;
        self.sum(case);
    }

    /// Replaces a system's stated time by what a timed invocation took in an earlier run.
    pub(crate) fn correct(&mut self, case: &CasePlan, system: usize, wall_s: f64) {
        // A service is verified for as long as it takes to start, which no sample tells.
        if case.load == Load::Job {
            self.verify_s[system] = wall_s;
        }
        self.invocation_s[system] = wall_s;
        self.sum(case);
    }

    /// Mean seconds of one timed invocation.
    pub(crate) fn mean_s(&self, case: &CasePlan) -> f64 {
        let timed = self.total_s - self.verify_s.iter().sum::<f64>();
        timed / f64::from(samples_of(case, self.beside).max(1))
    }
}

fn total_s(case: &CasePlan, invocation_s: &[f64], verify_s: &[f64], beside: bool) -> f64 {
    let each: f64 = invocation_s.iter().sum();
    let block = if beside { 2.0 * each } else { each };
    let control = if case.control { invocation_s[0] } else { 0.0 };
    verify_s.iter().sum::<f64>() + f64::from(case.repeats) * (block + control)
}

/// Invocations of a case that will be timed; `beside` says whether each system runs a second time
/// in each block.
pub(crate) fn samples_of(case: &CasePlan, beside: bool) -> u32 {
    let arms = if beside { 2 } else { 1 };
    case.repeats * (arms * case.systems.len() as u32 + u32::from(case.control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_units_over_rate() {
        let estimate = Estimate {
            units: 1e6,
            units_per_s: [("dyno".to_string(), 4e6), ("other".to_string(), 1e6)].into(),
            startup_s: 0.5,
            disk_bytes: 0.0,
            memory_bytes: 0.0,
        };
        assert_eq!(estimate.invocation_s("dyno"), 0.75);
        assert_eq!(estimate.invocation_s("duckdb"), 1.5);
    }

    #[test]
    fn the_verify_pass_of_a_service_takes_its_start_alone() {
        let text = crate::plan::tests::SUITE.replace(
            "workload = \"top\"",
            "workload = \"top\"\nload = \"service\"",
        );
        let mut planned = crate::plan::tests::planned(&text, &[]).expect("a plan");
        let case = planned.plan.cases[1].clone();
        // Two invocations of 100 rows at 100 a second, and a start that takes no time.
        let estimate = &mut planned.estimates[1];
        assert_eq!((case.load, estimate.total_s), (Load::Service, 2.0));
        estimate.learn(&case, 0, 0.5);
        assert_eq!((estimate.total_s, estimate.mean_s(&case)), (3.5, 1.5));
    }
}
