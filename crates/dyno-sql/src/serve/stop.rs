//! Points in a plan where a statement that was given up stops.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};

use crate::feed::FeedTable;
use crate::session;

/// The rules of a session, and after them the one that makes joins rest.
pub(super) fn rules(
    tables: &[(&str, Arc<FeedTable>)],
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = session::rules(tables);
    // Last, because the engine's own rules would take the wrappers for operators of the query.
    rules.push(Arc::new(RestInJoins));
    rules
}

/// Lets a task rest after some batches of a join. A scan rests by itself, but a join makes any
/// number of batches of one that it scanned, and nothing above it rests either.
#[derive(Debug)]
struct RestInJoins;

impl PhysicalOptimizerRule for RestInJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up(|node| {
            if node.is::<NestedLoopJoinExec>()
                || node.is::<CrossJoinExec>()
                || node.is::<HashJoinExec>()
            {
                return Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as _));
            }
            Ok(Transformed::no(node))
        });
        wrapped.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "RestInJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
