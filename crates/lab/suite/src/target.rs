//! What the figure of a case is meant to reach, as the suite's file states it.

use serde::Deserialize;

use crate::definition::CaseDef;

/// What the figure of a case is meant to reach: a share of a peer or of the case's limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetDef {
    pub(crate) of: String,
    pub(crate) at_least: f64,
}

impl CaseDef {
    /// Why its target could never be judged, if it states one that could not.
    pub(crate) fn target_fault(&self) -> Option<String> {
        let target = self.target.as_ref()?;
        let known = match target.of.as_str() {
            "peer" => !self.peers.is_empty(),
            "limit" => self.limit.is_some(),
            name => self.peers.iter().any(|peer| peer == name),
        };
        if !known {
            return Some(format!(
                "its target is of `{}`, which is neither one of its peers nor `limit`, nor `peer` \
                 for the best of them",
                target.of
            ));
        }
        let share = target.at_least;
        (share <= 0.0 || !share.is_finite())
            .then(|| format!("its target is at_least {share}, which is not above 0"))
    }
}
