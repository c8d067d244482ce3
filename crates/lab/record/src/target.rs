//! What the figure of a case is meant to reach.

use serde::{Deserialize, Serialize};

/// A share of what a peer does, or of a limit of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `peer` for the best peer of the case, `limit` for its limit, or the name of a peer.
    pub of: String,
    /// The least share that meets the target, above 0. Shares of a peer are turned so that more is
    /// better: 2.5 is two and a half times its rate, or a latency two and a half times lower.
    pub at_least: f64,
}
