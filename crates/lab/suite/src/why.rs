//! The experiments of `--why`: one resource of a case taken away in part, or doubled, at a time.
//!
//! What can be changed follows from the names of a case's parameters ([`RESOURCES`]) and from what
//! the runner itself can do around any child: fewer processors, and scratch files in memory.

use std::collections::BTreeMap;

use dyno_record::{Around, CasePlan, Experiment, Gives};
use serde_json::Value;

use crate::plan::Planned;

/// What the runner can do around a child on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The logical processors that this process may run on.
    pub cores: Vec<u32>,
    /// Why a child cannot be kept to some of them, when it cannot.
    pub no_cores: Option<String>,
    /// Why scratch files cannot lie in memory, when they cannot.
    pub no_memory: Option<String>,
}

/// A parameter that stands for an amount of a resource, or for the choice to do without it.
struct Resource {
    /// As reports call it.
    name: &'static str,
    params: &'static [&'static str],
    changes: Changes,
}

enum Changes {
    /// A number of threads: one fewer, and twice as many.
    OneFewer,
    /// Another amount: half of it, and twice as much.
    Halved,
    /// From one value to another one, which needs less of the resource.
    Instead(&'static [Instead]),
}

struct Instead {
    from: &'static str,
    to: &'static str,
    change: &'static str,
    keeps_nothing: bool,
}

const fn instead(from: &'static str, to: &'static str, change: &'static str) -> Instead {
    Instead {
        from,
        to,
        change,
        keeps_nothing: false,
    }
}

/// Output to nowhere has nothing to be read back.
const fn nowhere(from: &'static str) -> Instead {
    Instead {
        from,
        to: "null",
        change: "output to nowhere",
        keeps_nothing: true,
    }
}

/// All parameters of workloads that stand for a resource. A parameter that is not listed changes
/// the work itself (rows, payload, keys), so changing it would say nothing about a resource.
const RESOURCES: [Resource; 8] = [
    Resource {
        name: "threads",
        params: &["workers", "threads", "jobs", "cores"],
        changes: Changes::OneFewer,
    },
    Resource {
        name: "clients",
        params: &["clients", "connections", "writers", "readers"],
        changes: Changes::Halved,
    },
    Resource {
        name: "operations under way",
        params: &["depth", "window"],
        changes: Changes::Halved,
    },
    Resource {
        name: "batch size",
        params: &["batch", "write-batch", "read-batch"],
        changes: Changes::Halved,
    },
    Resource {
        name: "durable writes",
        params: &["durability"],
        changes: Changes::Instead(&[instead("fsync", "memory", "no fsync")]),
    },
    Resource {
        name: "durable cursors",
        params: &["cursors"],
        changes: Changes::Instead(&[instead("every-poll", "relaxed", "cursors stored later")]),
    },
    Resource {
        name: "output",
        params: &["place"],
        changes: Changes::Instead(&[
            instead("disk", "memory", "output to memory"),
            nowhere("disk"),
            nowhere("memory"),
        ]),
    },
    Resource {
        name: "transport",
        params: &["carrier", "engine"],
        changes: Changes::Instead(&[
            instead("tcp", "ring", "a ring instead of TCP"),
            instead("unix", "ring", "a ring instead of a socket"),
        ]),
    },
];

/// What one case tries, and what it cannot try.
#[derive(Default)]
struct Trials {
    /// Name of the system, what it changes, and the parameters in which it differs.
    found: Vec<(String, Experiment, BTreeMap<String, Value>)>,
    untried: BTreeMap<String, String>,
}

impl Trials {
    fn from_case(case: &CasePlan, surroundings: &Surroundings) -> Trials {
        let mut trials = Trials::default();
        for resource in &RESOURCES {
            trials.change(resource, case);
        }
        trials.around(surroundings);
        trials
    }

    fn change(&mut self, resource: &Resource, case: &CasePlan) {
        let named: Vec<(&str, &Value)> = resource
            .params
            .iter()
            .filter_map(|name| Some((*name, case.params.get(*name)?)))
            .collect();
        // A resource with two parameters is tried with both, and is untried only when neither can
        // be changed.
        let before = self.found.len();
        let mut reasons: Vec<String> = Vec::new();
        for (name, value) in &named {
            let changed = match &resource.changes {
                Changes::OneFewer => {
                    let less = |now| (now - 1, "one-fewer");
                    self.amount(resource.name, name, value, less)
                }
                Changes::Halved => {
                    self.amount(resource.name, name, value, |now| (now / 2, "halved"))
                }
                Changes::Instead(choices) => self.choice(resource.name, name, value, choices),
            };
            reasons.extend(changed.err());
        }
        if named.is_empty() {
            let names = resource.params.join(", ");
            reasons.push(format!("the case has no parameter {names}"));
        }
        if self.found.len() == before {
            let reason = reasons.join("; ");
            self.untried.insert(resource.name.to_owned(), reason);
        }
    }

    /// Less of a number, if there is less, and twice as much. `less` returns the smaller number,
    /// and the word for it in the name of the system.
    fn amount(
        &mut self,
        resource: &str,
        name: &str,
        value: &Value,
        less: fn(u64) -> (u64, &'static str),
    ) -> Result<(), String> {
        let Some(now) = value.as_u64().filter(|now| *now > 0) else {
            let shown = value.as_str().map_or(value.to_string(), str::to_owned);
            return Err(format!("{name} is `{shown}`, which is not a number"));
        };
        let mut add = |to: u64, gives: Gives, suffix: &str| {
            let experiment = Experiment {
                resource: resource.to_owned(),
                change: format!("{name} {now} → {to}"),
                gives,
                around: None,
                keeps_nothing: false,
            };
            let params = BTreeMap::from([(name.to_owned(), Value::from(to))]);
            let system = format!("{name}-{suffix}");
            self.found.push((system, experiment, params));
        };
        let (fewer, word) = less(now);
        // Half of one batch, or one thread fewer than one, would do no work at all.
        if fewer > 0 {
            add(fewer, Gives::Less, word);
        }
        add(now * 2, Gives::More, "doubled");
        Ok(())
    }

    fn choice(
        &mut self,
        resource: &str,
        name: &str,
        value: &Value,
        choices: &[Instead],
    ) -> Result<(), String> {
        let now = value.as_str().unwrap_or_default();
        let fitting: Vec<&Instead> = choices.iter().filter(|one| one.from == now).collect();
        if fitting.is_empty() {
            return Err(format!("{name} is `{now}`, which needs no less of it"));
        }
        for choice in fitting {
            let experiment = Experiment {
                resource: resource.to_owned(),
                change: choice.change.to_owned(),
                gives: Gives::More,
                around: None,
                keeps_nothing: choice.keeps_nothing,
            };
            let params = BTreeMap::from([(name.to_owned(), Value::from(choice.to))]);
            let system = format!("{name}-{}", choice.to);
            self.found.push((system, experiment, params));
        }
        Ok(())
    }

    /// What needs no parameter, because it is done around the child.
    fn around(&mut self, surroundings: &Surroundings) {
        let mut add = |system: &str, resource: &str, change: String, gives, around| {
            let experiment = Experiment {
                resource: resource.to_owned(),
                change,
                gives,
                around: Some(around),
                keeps_nothing: false,
            };
            let system = system.to_owned();
            self.found.push((system, experiment, BTreeMap::new()));
        };
        let cores = &surroundings.cores;
        let no_cores = surroundings.no_cores.clone().or_else(|| {
            (cores.len() < 2).then(|| "there is one processor, which cannot be taken away".into())
        });
        match no_cores {
            None => {
                // The last one goes: where processors are numbered by core, the first ones take the
                // interrupts, and a child without them would gain by the change.
                let kept = cores[..cores.len() - 1].to_vec();
                let change = format!("processors {} → {}", cores.len(), kept.len());
                let around = Around::Cores { cores: kept };
                add("one-core-fewer", "processor", change, Gives::Less, around);
            }
            Some(reason) => {
                self.untried.insert("processor".to_owned(), reason);
            }
        }
        match &surroundings.no_memory {
            None => add(
                "scratch-in-memory",
                "disk",
                "files in memory".to_owned(),
                Gives::More,
                Around::ScratchInMemory,
            ),
            Some(reason) => {
                self.untried.insert("disk".to_owned(), reason.clone());
            }
        }
    }
}

impl Planned {
    /// Has each case run `dyno` with one resource changed at a time, in the blocks of `dyno`
    /// unchanged, its control arm and the peers. Variants and library baselines are left out: they
    /// are not what is asked about, and every block would last longer.
    ///
    /// The control arm runs at each size, because a change that is not held against noise proves
    /// nothing. The budget grows with the blocks, for whose length it was stated.
    pub fn ask_why(&mut self, surroundings: &Surroundings) {
        let before = self.samples();
        for (case, estimate) in self.plan.cases.iter_mut().zip(&mut self.estimates) {
            let trials = Trials::from_case(case, surroundings);
            let peers: Vec<String> = case.peers().map(str::to_owned).collect();
            let times = |system: &String| {
                // A change is expected to take as long as the unchanged case.
                let place = case.systems.iter().position(|there| there == system);
                place.unwrap_or(0)
            };
            // Dyno stands first, because answers and ratios of the others are held against it.
            let mut systems = vec![crate::DYNO.to_owned()];
            systems.extend(trials.found.iter().map(|(system, ..)| system.clone()));
            systems.extend(peers);
            let places: Vec<usize> = systems.iter().map(times).collect();
            case.variants.clear();
            case.baselines.clear();
            for (system, experiment, params) in trials.found {
                case.variants.insert(system.clone(), params);
                case.experiments.insert(system, experiment);
            }
            case.untried = trials.untried;
            case.systems = systems;
            case.control = true;
            estimate.take_systems(case, &places);
        }
        self.budget_s *= f64::from(self.samples()) / f64::from(before.max(1));
        self.retain_rows();
    }
}

#[cfg(test)]
mod tests {
    use dyno_record::Role;

    use super::*;
    use crate::plan::tests::{SUITE, planned};

    fn here() -> Surroundings {
        Surroundings {
            cores: vec![0, 3],
            ..Surroundings::default()
        }
    }

    fn case_with(params: &str) -> CasePlan {
        let suite = SUITE.replace(", workers = 2 }", &format!(", {params} }}"));
        let mut planned = planned(&suite, &["other"]).expect("a good plan");
        planned.ask_why(&here());
        planned.plan.cases.remove(0)
    }

    #[test]
    fn each_parameter_that_stands_for_a_resource_is_varied_and_no_other_is() {
        let case = case_with("workers = 2, batch = 8, payload = 100, place = \"disk\"");
        assert_eq!(
            case.systems,
            [
                "dyno",
                "workers-one-fewer",
                "workers-doubled",
                "batch-halved",
                "batch-doubled",
                "place-memory",
                "place-null",
                "one-core-fewer",
                "scratch-in-memory",
                "other",
            ]
        );
        assert_eq!(case.variants["workers-one-fewer"]["workers"], 1);
        assert_eq!(case.variants["batch-doubled"]["batch"], 16);
        assert_eq!(case.experiments["batch-halved"].change, "batch 8 → 4");
        assert!(case.experiments["place-null"].keeps_nothing);
        assert!(!case.experiments["place-memory"].keeps_nothing);
        let kept = Around::Cores { cores: vec![0] };
        assert_eq!(case.experiments["one-core-fewer"].around, Some(kept));
        assert_eq!(case.role("place-null"), Role::Experiment);
        assert_eq!(case.peers().collect::<Vec<_>>(), ["other"]);
        assert!(case.control, "a change is nothing without the noise");
    }

    #[test]
    fn what_cannot_be_varied_says_why() {
        let case = case_with("cores = \"1\", durability = \"memory\", depth = 1");
        assert_eq!(
            case.systems[1..3],
            ["depth-doubled", "one-core-fewer"],
            "half of one is nothing"
        );
        let untried = |resource: &str| case.untried[resource].as_str();
        assert_eq!(untried("threads"), "cores is `1`, which is not a number");
        assert_eq!(
            untried("durable writes"),
            "durability is `memory`, which needs no less of it"
        );
        assert_eq!(
            untried("batch size"),
            "the case has no parameter batch, write-batch, read-batch"
        );
        assert!(!case.untried.contains_key("operations under way"));
    }

    #[test]
    fn the_time_of_the_experiments_is_in_the_plan() {
        let plain = planned(SUITE, &["other"]).expect("a good plan");
        let mut asked = plain.clone();
        asked.ask_why(&Surroundings {
            cores: vec![0],
            no_memory: Some("there is no /dev/shm".to_owned()),
            ..Surroundings::default()
        });
        // Two experiments of the first case, which has a parameter `workers`.
        let [before, after] = [&plain, &asked].map(|p| &p.estimates[0].invocation_s);
        assert_eq!(after.len(), before.len() + 2);
        assert_eq!(after[1], before[0], "as long as dyno, not as the peer");
        assert_eq!(after[3], before[1]);
        let longer = f64::from(asked.samples()) / f64::from(plain.samples());
        assert!(longer > 1.0 && asked.budget_s == plain.budget_s * longer);
        let case = &asked.plan.cases[0];
        assert_eq!(case.untried["disk"], "there is no /dev/shm");
        assert!(case.untried["processor"].contains("one processor"));
    }
}
