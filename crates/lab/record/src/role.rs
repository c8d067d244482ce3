//! What a system is in a case.

use crate::schema::CasePlan;

impl CasePlan {
    /// What `system` is in this case.
    pub fn role(&self, system: &str) -> Role {
        if system == "dyno" {
            Role::Ours
        } else if self.experiments.contains_key(system) {
            Role::Experiment
        } else if self.baselines.iter().any(|name| name == system) {
            Role::Baseline
        } else if self.variants.contains_key(system) {
            Role::Variant
        } else {
            Role::Peer
        }
    }

    /// The systems of the case that are programs of their own.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        let systems = self.systems.iter().map(String::as_str);
        systems.filter(|name| self.role(name) == Role::Peer)
    }

    /// The peers that promise as much as `dyno`. The best peer is one of them: a system that does
    /// less than it was asked for is not the better choice for being faster.
    pub fn rivals(&self) -> impl Iterator<Item = &str> {
        self.peers()
            .filter(|peer| !self.promises_less.contains_key(*peer))
    }

    /// The systems that are compared with each other: all but the experiments of `--why`, which are
    /// compared with nothing but `dyno` unchanged.
    pub fn compared(&self) -> impl Iterator<Item = &String> {
        let systems = self.systems.iter();
        systems.filter(|name| self.role(name) != Role::Experiment)
    }
}

/// What a system is in a case, which decides where it is shown. Headlines, guides and the best peer
/// know only peers, and of these only [`CasePlan::rivals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `dyno` in the mode that the case is about.
    Ours,
    /// `dyno` in another mode, which may do less work.
    Variant,
    /// `dyno` with more or less of one resource, to see which of them bounds its figure.
    Experiment,
    /// Another project's library inside `dyno`, in place of our own code.
    Baseline,
    /// A program of its own.
    Peer,
}
