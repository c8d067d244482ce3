//! What the machine alone did between runs, told by what did not change.

use dyno_record::{Arm, CasePlan, Outcome, Role, Sample, StoredRun};
use dyno_stats::{NoiseBand, noise_between};

use crate::model::{OURS, band_of, group, value_of};

/// The values of the case's metric in the samples that ended well.
pub(super) fn values(run: &StoredRun, case: &CasePlan, system: &str) -> Vec<f64> {
    let usable = |s: &&Sample| s.outcome == Outcome::Done;
    group(&run.samples, &case.name, system, Arm::Main)
        .into_iter()
        .filter(usable)
        .filter_map(|s| value_of(s, &case.metric).filter(|value| *value > 0.0))
        .collect()
}

/// Whether a peer is the same program in both runs.
pub(super) fn is_unchanged(base: &StoredRun, new: &StoredRun, case: &CasePlan, peer: &str) -> bool {
    let version = |run: &StoredRun| {
        let mut systems = run.run.systems.iter();
        systems.find(|s| s.name == peer).map(|s| s.version.clone())
    };
    case.role(peer) == Role::Peer && version(base).is_some() && version(base) == version(new)
}

/// The band of a case between an older run and one of the newer: the widest of what its unchanged
/// peers did between the two, what the newer program did between its runs, and what the control
/// arms did within each. `None` when nothing that did not change ran twice: control arms know
/// nothing of the time between the runs.
pub(super) fn band_between(
    base: &StoredRun,
    new: &StoredRun,
    all_new: &[&StoredRun],
    case: &CasePlan,
) -> Option<NoiseBand> {
    let between = |a: &StoredRun, b: &StoredRun, system: &str| {
        noise_between(&values(a, case, system), &values(b, case, system)).ok()
    };
    let peers = case
        .systems
        .iter()
        .filter(|peer| is_unchanged(base, new, case, peer))
        .filter_map(|peer| between(base, new, peer));
    let again = all_new
        .iter()
        // A run against itself would have a band of zero width.
        .filter(|other| !std::ptr::eq(**other, new))
        .filter_map(|other| between(other, new, OURS));
    let drift = peers.chain(again).reduce(NoiseBand::widest)?;
    // Control arms are added last and only widen the band: they show the noise inside a run, which
    // the drift between two runs cannot be smaller than.
    let control = [base, new].map(|run| band_of(case, &run.samples, &case.metric));
    Some(control.into_iter().flatten().fold(drift, NoiseBand::widest))
}
