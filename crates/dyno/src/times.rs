//! How long invocations took on this machine, so that a plan need not go by what a suite states.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_record::{Arm, CasePlan, Outcome, Plan, RunDir, Size};
use dyno_suite::Planned;
use serde::Serialize;

/// Name of the file below the cache.
const FILE: &str = "times.json";

/// Seconds of one invocation, by the case, its parameters and the system.
pub struct Times {
    path: PathBuf,
    known: BTreeMap<String, f64>,
}

impl Times {
    /// Reads what is known. A file that is missing or damaged is nothing known: the times are an
    /// estimate, and the next run writes them again.
    pub fn read(cache: &Path) -> Times {
        let path = cache.join(FILE);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let known = serde_json::from_str(&text).unwrap_or_default();
        Times { path, known }
    }

    /// Puts measured times in place of stated ones, and returns for how many cases.
    pub fn correct(&self, planned: &mut Planned) -> usize {
        let data = Data::from_plan(&planned.plan);
        planned.measured_before(&|case, system| self.known.get(&key(&data, case, system)).copied())
    }

    /// Adds the samples of a record, in place of what was known of the same invocations.
    ///
    /// # Errors
    /// The record cannot be read, or the file cannot be written.
    pub fn learn(&mut self, record: &Path) -> anyhow::Result<()> {
        let stored = RunDir::open(record)?;
        let data = Data::from_plan(&stored.run.plan);
        for case in &stored.run.plan.cases {
            for system in &case.systems {
                let samples = stored.samples.iter().filter(|sample| {
                    sample.case == case.name
                        && sample.system == *system
                        && sample.arm == Arm::Main
                        && sample.outcome == Outcome::Done
                });
                let mut seconds: Vec<f64> = samples.map(|sample| sample.wall_s).collect();
                seconds.sort_by(f64::total_cmp);
                if let Some(middle) = seconds.get(seconds.len() / 2) {
                    self.known.insert(key(&data, case, system), *middle);
                }
            }
        }
        let text = serde_json::to_string(&self.known)?;
        std::fs::write(&self.path, text)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// What decides how much data the cases of a plan work on. Their parameters name the data, and do
/// not say how large it is.
#[derive(Serialize)]
struct Data {
    size: Size,
    set: BTreeMap<String, String>,
}

impl Data {
    fn from_plan(plan: &Plan) -> Data {
        Data {
            size: plan.size,
            set: plan.set.clone(),
        }
    }
}

/// Names an invocation by all that decides how long it takes. A debug build takes several times as
/// long as a release build and so has times of its own.
fn key(data: &Data, case: &CasePlan, system: &str) -> String {
    let mut hasher = DefaultHasher::new();
    // The text of JSON has its keys in order, so equal parameters have equal texts. The hasher may
    // differ in another version of the program, which then starts without times.
    let params = serde_json::to_string(&(data, &case.params, case.variants.get(system)));
    params.unwrap_or_default().hash(&mut hasher);
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let (workload, hash) = (&case.workload, hasher.finish());
    format!("{build} {workload} {} {system} {hash:016x}", case.name)
}

#[cfg(test)]
mod tests {
    use dyno_record::Size;
    use dyno_suite::Definition;

    use super::*;

    const SUITE: &str = r#"
title = "T"
purpose = "P"
order_seed = 7
[sizes.tiny]
budget_s = 10
[sizes.quick]
budget_s = 10
[sizes.full]
budget_s = 10
[[case]]
name = "load"
title = "Load"
workload = "fake"
params = { mode = "fast" }
variants = { slow = { mode = "slow" } }
metric = "throughput"
unit = "rows/s"
better = "higher"
repeats = 4
time_limit_s = 5
expected_count = 10
analysis = "A"
estimate = { units_per_s = { other = 1 } }
"#;

    #[test]
    fn what_was_measured_replaces_what_was_stated() {
        let suite = Definition::parse("x", "x.toml", SUITE).expect("good");
        let mut planned = Planned::new(&suite, Size::Tiny, &[]).expect("a plan");
        // Verified once and timed four times, ten units at one a second, two systems.
        assert_eq!(planned.needs(&|_, _| true).run_s, 100.0);
        let folder = tempfile::tempdir().expect("a directory");
        let mut times = Times::read(folder.path());
        assert_eq!(times.correct(&mut planned), 0);
        let case = planned.plan.cases[0].clone();
        let data = Data::from_plan(&planned.plan);
        times.known.insert(key(&data, &case, "dyno"), 2.0);
        assert_eq!(times.correct(&mut planned), 1);
        assert_eq!(planned.needs(&|_, _| true).run_s, 60.0);
        let mut other = case.clone();
        other.params.insert("mode".to_owned(), "other".into());
        assert_ne!(key(&data, &case, "dyno"), key(&data, &other, "dyno"));
        assert_ne!(key(&data, &case, "dyno"), key(&data, &case, "slow"));
        // The same case on other data, which its parameters only name.
        let mut full = Planned::new(&suite, Size::Full, &[]).expect("a plan");
        assert_eq!(full.plan.cases[0].params, case.params);
        assert_eq!(times.correct(&mut full), 0);
        planned.plan.set.insert("rows".to_owned(), "5".to_owned());
        assert_eq!(times.correct(&mut planned), 0);
    }
}
