//! Which blow falls when.

use std::fmt;

use dyno_sim::Random;
use serde::{Deserialize, Serialize};

/// The shortest pause before a blow, milliseconds.
const PAUSE_MIN_MS: u64 = 150;
/// How much longer a pause may be.
const PAUSE_SPREAD_MS: u64 = 700;

/// One thing that is done to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blow {
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

impl Blow {
    /// How often it is drawn, in relation to the others.
    fn weight(self) -> usize {
        match self {
            Self::CutInCommit => 4,
            Self::Server | Self::Backend | Self::Broker => 3,
            Self::Producer | Self::Consumer | Self::Cut => 2,
            Self::Primary | Self::Stall | Self::DiskFull => 1,
        }
    }
}

impl fmt::Display for Blow {
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

/// A blow, and the pause before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// From the end of the last blow, milliseconds.
    pub pause_ms: u64,
    /// What is done.
    pub blow: Blow,
    /// A number that chooses whom it hits.
    pub pick: u64,
}

/// All blows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What it was drawn from.
    pub seed: u64,
    /// In their order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Draws `kills` blows of the given kinds. Each kind falls once before any falls by chance, so
    /// that a short run has all of them if it can.
    pub fn draw(seed: u64, kills: usize, kinds: &[Blow]) -> Self {
        let mut random = Random::new(seed);
        let mut left = kinds.to_vec();
        let weights: usize = kinds.iter().map(|kind| kind.weight()).sum();
        let mut steps = Vec::with_capacity(kills);
        while steps.len() < kills && !kinds.is_empty() {
            let blow = if left.is_empty() {
                weighted(kinds, random.below(weights))
            } else {
                left.swap_remove(random.below(left.len()))
            };
            steps.push(Step {
                pause_ms: PAUSE_MIN_MS + random.bits() % PAUSE_SPREAD_MS,
                blow,
                pick: random.bits(),
            });
        }
        Self { seed, steps }
    }
}

fn weighted(kinds: &[Blow], mut at: usize) -> Blow {
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
            write!(f, " {}", step.blow)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Blow; 4] = [Blow::Backend, Blow::Server, Blow::Stall, Blow::CutInCommit];

    #[test]
    fn the_same_seed_draws_the_same_plan() {
        assert_eq!(Plan::draw(7, 50, &KINDS), Plan::draw(7, 50, &KINDS));
        assert_ne!(Plan::draw(7, 50, &KINDS), Plan::draw(8, 50, &KINDS));
        assert!(Plan::draw(7, 50, &[]).steps.is_empty());
    }

    #[test]
    fn each_kind_falls_early_and_the_heavy_ones_fall_often() {
        for seed in 0..20 {
            let plan = Plan::draw(seed, 200, &KINDS);
            for kind in KINDS {
                let falls = |steps: &[Step]| steps.iter().filter(|s| s.blow == kind).count();
                assert_eq!(falls(&plan.steps[..4]), 1, "{kind} of seed {seed}");
            }
            let falls = |kind| plan.steps.iter().filter(|s| s.blow == kind).count();
            assert!(falls(Blow::CutInCommit) > falls(Blow::Stall), "seed {seed}");
        }
    }
}
