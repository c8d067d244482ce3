//! Which fault is injected when.

use std::fmt;

use dyno_sim::Random;
use serde::{Deserialize, Serialize};

/// The shortest pause before a fault, milliseconds.
const PAUSE_MIN_MS: u64 = 150;
/// How much longer a pause may be.
const PAUSE_SPREAD_MS: u64 = 700;

/// One thing that is done to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// kill -9 of one server process that serves a client; the server then restarts itself.
    Backend,
    /// kill -9 of all processes of the server.
    Server,
    /// kill -9 of the primary; a standby takes over.
    Primary,
    /// kill -9 of a broker.
    Broker,
    /// kill -9 of a producing process.
    Producer,
    /// kill -9 of a consuming or working process.
    Consumer,
    /// A consuming or working process stops for longer than its lease, and goes on.
    Stall,
    /// Connections lose the answers to their next commits.
    CutInCommit,
    /// Any one connection is cut.
    Cut,
    /// No byte fits on the disk for a while.
    DiskFull,
}

impl Fault {
    /// How often it is drawn, in relation to the others. Faults that leave outcomes in doubt are
    /// drawn most.
    fn weight(self) -> usize {
        match self {
            Self::CutInCommit => 4,
            Self::Server | Self::Backend | Self::Broker => 3,
            Self::Producer | Self::Consumer | Self::Cut => 2,
            Self::Primary | Self::Stall | Self::DiskFull => 1,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Backend => "backend",
            Self::Server => "server",
            Self::Primary => "primary",
            Self::Broker => "broker",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Stall => "stall",
            Self::CutInCommit => "cut-in-commit",
            Self::Cut => "cut",
            Self::DiskFull => "disk-full",
        })
    }
}

/// A fault to inject, and the pause before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The pause since the end of the last fault, in milliseconds.
    pub pause_ms: u64,
    /// The kind of fault to inject.
    pub fault: Fault,
    /// A random number that chooses the process or connection that it hits.
    pub pick: u64,
}

/// All faults of a run, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The steps in the order in which they are taken.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Draws `kills` faults of the given kinds. Each kind is drawn once before any is drawn a
    /// second time, so that a short run has all of them if it can.
    pub fn draw(seed: u64, kills: usize, kinds: &[Fault]) -> Self {
        let mut random = Random::new(seed);
        let mut left = kinds.to_vec();
        let weights: usize = kinds.iter().map(|kind| kind.weight()).sum();
        let mut steps = Vec::with_capacity(kills);
        while steps.len() < kills && !kinds.is_empty() {
            let fault = if left.is_empty() {
                weighted(kinds, random.below(weights))
            } else {
                left.swap_remove(random.below(left.len()))
            };
            steps.push(Step {
                pause_ms: PAUSE_MIN_MS + random.bits() % PAUSE_SPREAD_MS,
                fault,
                pick: random.bits(),
            });
        }
        Self { seed, steps }
    }
}

fn weighted(kinds: &[Fault], mut at: usize) -> Fault {
    for kind in kinds {
        match at.checked_sub(kind.weight()) {
            Some(rest) => at = rest,
            None => return *kind,
        }
    }
    kinds[kinds.len() - 1]
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}:", self.seed)?;
        for step in &self.steps {
            write!(f, " {}", step.fault)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Fault; 4] = [
        Fault::Backend,
        Fault::Server,
        Fault::Stall,
        Fault::CutInCommit,
    ];

    #[test]
    fn the_same_seed_draws_the_same_plan() {
        assert_eq!(Plan::draw(7, 50, &KINDS), Plan::draw(7, 50, &KINDS));
        assert_ne!(Plan::draw(7, 50, &KINDS), Plan::draw(8, 50, &KINDS));
        assert!(Plan::draw(7, 50, &[]).steps.is_empty());
    }

    #[test]
    fn each_kind_comes_early_and_the_heavy_ones_come_often() {
        for seed in 0..20 {
            let plan = Plan::draw(seed, 200, &KINDS);
            for kind in KINDS {
                let count = |steps: &[Step]| steps.iter().filter(|s| s.fault == kind).count();
                assert_eq!(count(&plan.steps[..4]), 1, "{kind} of seed {seed}");
            }
            let count = |kind| plan.steps.iter().filter(|s| s.fault == kind).count();
            assert!(
                count(Fault::CutInCommit) > count(Fault::Stall),
                "seed {seed}"
            );
        }
    }
}
