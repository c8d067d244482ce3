//! What a plan says of one set of data.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::estimate::Estimate;

/// One `[[data]]` section of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct DataPlan {
    /// The name by which cases and later data refer to it, as `${data.NAME}`.
    pub name: String,
    /// The workload that a child is asked for, with the phase `prepare`.
    pub workload: String,
    /// `dyno`, a peer's name, or `each`.
    pub by: String,
    /// With references to earlier data still in place.
    pub params: BTreeMap<String, Value>,
    /// A child that takes longer is killed.
    pub time_limit_s: f64,
    /// Those it is made by in this plan.
    pub systems: Vec<String>,
    /// Time, disk and memory that making it once takes.
    pub estimate: Estimate,
}
