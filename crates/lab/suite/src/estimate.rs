//! About how long a plan takes and what it needs, and whether this machine can hold it.

use std::collections::BTreeMap;

use dyno_record::{CasePlan, Load};

use crate::Error;
use crate::plan::{Planned, samples_of};

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

    /// Keeps the times of the systems that `keep` names; `case` has no others any more.
    pub(crate) fn keep_systems(&mut self, case: &CasePlan, keep: &[bool]) {
        for times in [&mut self.invocation_s, &mut self.verify_s] {
            let mut kept = keep.iter().copied();
            times.retain(|_| kept.next().unwrap_or(true));
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
    fn correct(&mut self, case: &CasePlan, system: usize, wall_s: f64) {
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

/// What a whole plan needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Seconds to make data that is not there yet.
    pub prepare_s: f64,
    /// Seconds to verify and time all cases.
    pub run_s: f64,
    /// Bytes of data to make, and the largest scratch directory.
    pub disk_bytes: f64,
    /// Bytes of memory of the hungriest invocation.
    pub memory_bytes: f64,
}

/// What a run may use of the machine that it is planned for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Bytes free where data and scratch directories go; `None` when that cannot be read.
    pub disk_bytes: Option<u64>,
    /// Bytes of disk that the user grants, where the user says.
    pub granted_disk_bytes: Option<u64>,
    /// Bytes of memory that programs may still take; `None` when that cannot be read.
    pub memory_bytes: Option<u64>,
}

impl Planned {
    /// Puts times that were measured before in place of those that the suite states: `seconds` says
    /// how long a timed invocation of a system takes. Returns the number of cases with such a time.
    pub fn measured_before(&mut self, seconds: &dyn Fn(&CasePlan, &str) -> Option<f64>) -> usize {
        let mut corrected = 0;
        for (case, estimate) in self.plan.cases.iter().zip(&mut self.estimates) {
            let known = case.systems.iter().enumerate();
            let known = known.filter_map(|(at, system)| Some((at, seconds(case, system)?)));
            let known: Vec<(usize, f64)> = known.collect();
            corrected += usize::from(!known.is_empty());
            for (system, wall_s) in known {
                estimate.correct(case, system, wall_s);
            }
        }
        corrected
    }

    /// What the plan needs, given the (data, system) pairs that lie ready.
    pub fn needs(&self, ready: &dyn Fn(&str, &str) -> bool) -> Needs {
        let (mut prepare_s, mut disk_bytes, mut memory_bytes) = (0.0, 0.0, 0.0f64);
        for data in &self.data {
            for system in data.systems.iter().filter(|s| !ready(&data.name, s)) {
                prepare_s += data.estimate.invocation_s(system);
                disk_bytes += data.estimate.disk_bytes;
                memory_bytes = memory_bytes.max(data.estimate.memory_bytes);
            }
        }
        let scratch = self.estimates.iter().map(|e| e.disk_bytes);
        let memory = self.estimates.iter().map(|e| e.memory_bytes);
        Needs {
            prepare_s,
            run_s: self.estimates.iter().map(|e| e.total_s).sum(),
            disk_bytes: disk_bytes + scratch.fold(0.0, f64::max),
            memory_bytes: memory.fold(memory_bytes, f64::max),
        }
    }
}

impl Needs {
    /// Refuses a plan that the machine cannot hold. What cannot be read does not refuse.
    ///
    /// # Errors
    /// [`Error::TooBig`] with the numbers.
    pub fn check(&self, room: &Room) -> Result<(), Error> {
        // A disk that is filled to the brim spoils the figures long before it refuses a write.
        const DISK_MARGIN: f64 = 1.1;
        let disk_bytes = self.disk_bytes * DISK_MARGIN;
        for (most, there) in [
            (room.granted_disk_bytes, "--max-disk allows"),
            (room.disk_bytes, "the disk has free"),
        ] {
            if let Some(most) = most
                && disk_bytes > most as f64
            {
                return Err(Error::TooBig(format!(
                    "it needs {} of disk, and {there} {}",
                    show_bytes(disk_bytes),
                    show_bytes(most as f64)
                )));
            }
        }
        if let Some(free) = room.memory_bytes
            && self.memory_bytes > free as f64
        {
            return Err(Error::TooBig(format!(
                "it needs {} of memory, and {} are available",
                show_bytes(self.memory_bytes),
                show_bytes(free as f64)
            )));
        }
        Ok(())
    }
}

/// Bytes for people, in the unit that leaves a small number: `2.1 MB`.
pub fn show_bytes(bytes: f64) -> String {
    for (factor, unit) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if bytes >= factor {
            return format!("{:.1} {unit}", bytes / factor);
        }
    }
    format!("{bytes:.0} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_is_refused_in_numbers() {
        let needs = Needs {
            prepare_s: 0.0,
            run_s: 1.0,
            disk_bytes: 10e9,
            memory_bytes: 2e9,
        };
        let room = |disk, memory| Room {
            disk_bytes: disk,
            granted_disk_bytes: None,
            memory_bytes: memory,
        };
        assert!(
            needs
                .check(&room(Some(12_000_000_000), Some(3_000_000_000)))
                .is_ok()
        );
        assert!(needs.check(&room(None, None)).is_ok());
        let e = needs
            .check(&room(Some(5_000_000_000), None))
            .expect_err("disk");
        assert!(
            e.to_string()
                .contains("11.0 GB of disk, and the disk has free 5.0 GB"),
            "{e}"
        );
        let little = Room {
            granted_disk_bytes: Some(1_000),
            ..room(Some(12_000_000_000), None)
        };
        let e = needs.check(&little).expect_err("granted");
        assert!(
            e.to_string()
                .contains("11.0 GB of disk, and --max-disk allows 1.0 kB"),
            "{e}"
        );
        let e = needs
            .check(&room(None, Some(1_000_000_000)))
            .expect_err("memory");
        assert!(
            e.to_string().contains("2.0 GB of memory, and 1.0 GB"),
            "{e}"
        );
    }

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
