//! The operator in the plan.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use dyno_grouping::{GroupError, Reserve, Scan, Source};
use futures::{StreamExt, TryStreamExt, stream};

use super::batch::batch;
use super::sources::extent;
use super::spec::{Spec, Top};

/// Name of the metric that counts the rows read.
pub(super) const ROWS_SCANNED: &str = "rows_scanned";
/// Name of the metric that counts bytes of the files, as the library's own scan of Parquet has it.
pub(super) const BYTES_SCANNED: &str = "bytes_scanned";

/// Scans the files of a table, filters and groups, on dictionary codes.
#[derive(Debug)]
pub struct CodedAggregateExec {
    spec: Arc<Spec>,
    sources: Arc<[Source]>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CodedAggregateExec {
    pub(super) fn new(spec: Spec, sources: Vec<Source>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&spec.schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            spec: Arc::new(spec),
            sources: sources.into(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same for a sort with a limit above it.
    pub(super) fn with_top(self, top: Top) -> Self {
        let mut spec = Spec::clone(&self.spec);
        spec.top = Some(top);
        Self {
            spec: Arc::new(spec),
            ..self
        }
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.spec
    }
}

impl DisplayAs for CodedAggregateExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.sources.iter().flat_map(|source| &source.row_groups);
        let settled = groups.flat_map(|group| group.settled.iter().flatten());
        let settled: usize = settled.map(|settled| settled.rows.len()).sum();
        let (text, extent) = (&self.spec.text, extent(&self.sources));
        write!(f, "CodedAggregateExec: {text}, {extent}")?;
        if settled > 0 {
            write!(f, ", settled_keys={settled}")?;
        }
        match self.spec.top {
            Some(top) => write!(f, ", top={}", top.rows),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for CodedAggregateExec {
    fn name(&self) -> &'static str {
        "CodedAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let spec = Arc::clone(&self.spec);
        let sources = Arc::clone(&self.sources);
        let rows_scanned = MetricBuilder::new(&self.metrics).counter(ROWS_SCANNED, partition);
        let bytes_scanned = MetricBuilder::new(&self.metrics).counter(BYTES_SCANNED, partition);
        let of_source = |source: &Source| -> u64 {
            let row_groups = source.row_groups.iter();
            row_groups.map(|row_group| source.bytes(row_group)).sum()
        };
        bytes_scanned.add(sources.iter().map(of_source).sum::<u64>() as usize);
        let output_rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let config = context.session_config();
        let (threads, batch_rows) = (config.target_partitions(), config.batch_size());
        // The future owns the flag's guard. When the stream is dropped, the guard sets the flag,
        // and the scan, which cannot be aborted on its blocking thread, ends by itself.
        let answer = async move {
            let stop = Arc::new(AtomicBool::new(false));
            let _stop_when_dropped = StopWhenDropped(Arc::clone(&stop));
            let scan = move || -> Result<RecordBatch> {
                let account = || -> Reserve {
                    let consumer = MemoryConsumer::new("CodedAggregateExec");
                    let reservation = consumer.register(context.memory_pool());
                    Box::new(move |bytes| Ok(reservation.try_resize(bytes)?))
                };
                let scanned = AtomicU64::new(0);
                let scan = Scan::new(&spec.query, &sources, &account, &stop, &scanned);
                let answer = scan.run(threads);
                let answer = answer.map_err(|error| plan_error(error, "coded_aggregate"))?;
                rows_scanned.add(scanned.load(Ordering::Relaxed) as usize);
                batch(&spec, &answer)
            };
            // The scan runs on threads of its own and blocks until they are done, so it may not run
            // on a thread of the runtime.
            let batch = SpawnedTask::spawn_blocking(scan)
                .join()
                .await
                .map_err(|error| DataFusionError::External(Box::new(error)))??;
            output_rows.add(batch.num_rows());
            // Operators above expect batches of about this size; slices share the memory of the one
            // batch.
            let starts = (0..batch.num_rows()).step_by(batch_rows.max(1));
            let slices: Vec<Result<RecordBatch>> = starts
                .map(|start| Ok(batch.slice(start, batch_rows.min(batch.num_rows() - start))))
                .collect();
            Ok::<_, DataFusionError>(stream::iter(slices))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.spec.schema),
            stream::once(answer).try_flatten().boxed(),
        )))
    }
}

/// The error of an operator that `option` turns off.
pub(super) fn plan_error(error: GroupError, option: &str) -> DataFusionError {
    match error {
        GroupError::Caller(error) => match error.downcast::<DataFusionError>() {
            Ok(error) => *error,
            Err(error) => DataFusionError::External(error),
        },
        other => DataFusionError::Execution(format!(
            "{other}; `SET dyno.{option} = false` reads the table the general way"
        )),
    }
}

/// Ends the scan when the stream of its answer is dropped, by a limit or by Ctrl-C.
struct StopWhenDropped(Arc<AtomicBool>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
