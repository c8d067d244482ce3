//! The operator that reads rows which conditions choose.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray, StringViewBuilder, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use dyno_formats::parquet_read::StringDictionary;
use dyno_grouping::{Cells, Selected, Selection, Source};
use futures::stream;

use super::exec::{BYTES_SCANNED, ROWS_SCANNED, plan_error};
use super::expression::{ints, is_text, text};
use super::sources::extent;

/// Rows that are worth a thread of their own.
const PARTITION_ROWS: usize = 1 << 19;
/// The planner is told that one row in this many is chosen; nothing better is known beforehand.
const CHOSEN_SHARE: usize = 5;

/// Scans the files of a table and hands on the rows that filters choose, which are looked at as
/// dictionary codes.
#[derive(Debug)]
pub struct CodedSelectExec {
    selection: Arc<Selection>,
    sources: Arc<[Source]>,
    /// For each partition the row groups that it reads: source, and place among that one's.
    shares: Vec<Vec<(usize, usize)>>,
    schema: SchemaRef,
    /// The conditions, as EXPLAIN shows them.
    text: String,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CodedSelectExec {
    pub(super) fn new(
        selection: Selection,
        sources: Vec<Source>,
        schema: SchemaRef,
        text: String,
        threads: usize,
    ) -> Self {
        let shares = shares(&places(&sources), threads);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(shares.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            selection: Arc::new(selection),
            sources: sources.into(),
            shares,
            schema,
            text,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn rows(&self, share: &[(usize, usize)]) -> usize {
        let row_groups = share.iter();
        row_groups
            .map(|(source, at)| self.sources[*source].row_groups[*at].len())
            .sum()
    }
}

/// Where the row groups of all sources are, and how many rows each has.
fn places(sources: &[Source]) -> Vec<((usize, usize), usize)> {
    let sources = sources.iter().enumerate();
    let places = sources.flat_map(|(source, read)| {
        let row_groups = read.row_groups.iter().enumerate();
        row_groups.map(move |(at, row_group)| ((source, at), row_group.len()))
    });
    places.collect()
}

/// The row groups in as many parts as are worth it, of about as many rows each.
fn shares(places: &[((usize, usize), usize)], threads: usize) -> Vec<Vec<(usize, usize)>> {
    let rows: usize = places.iter().map(|(_, rows)| rows).sum();
    let parts = rows.div_ceil(PARTITION_ROWS).clamp(1, threads.max(1));
    let mut shares = vec![Vec::new(); parts];
    let mut before = 0;
    for (place, len) in places {
        // By the row in its middle, so that no part gets much more than its share.
        let middle = before + len / 2;
        shares[(middle * parts / rows.max(1)).min(parts - 1)].push(*place);
        before += len;
    }
    shares
}

impl DisplayAs for CodedSelectExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: usize = self.shares.iter().map(|share| self.rows(share)).sum();
        let wanted = self.selection.wanted.iter();
        let wanted: Vec<&str> = wanted
            .map(|column| self.selection.columns[*column].as_str())
            .collect();
        write!(
            f,
            "CodedSelectExec: columns=[{}], filter=[{}], {}, rows={rows}",
            wanted.join(", "),
            self.text,
            extent(&self.sources),
        )
    }
}

impl ExecutionPlan for CodedSelectExec {
    fn name(&self) -> &'static str {
        "CodedSelectExec"
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

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let shares = match partition {
            Some(one) => self.shares.get(one..=one).unwrap_or_default(),
            None => &self.shares,
        };
        let rows: usize = shares.iter().map(|share| self.rows(share)).sum();
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = Precision::Inexact(rows / CHOSEN_SHARE);
        Ok(Arc::new(statistics))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("CodedSelectExec[{partition}]"));
        let reading = Reading {
            selected: Selected::new(&self.selection),
            sources: Arc::clone(&self.sources),
            left: self.shares.get(partition).cloned().unwrap_or_default(),
            entered: false,
            batch_rows: context.session_config().batch_size(),
            schema: Arc::clone(&self.schema),
            strings: self
                .selection
                .wanted
                .iter()
                .map(|_| Strings::default())
                .collect(),
            memory: consumer.register(context.memory_pool()),
            rows_scanned: MetricBuilder::new(&self.metrics).counter(ROWS_SCANNED, partition),
            bytes_scanned: MetricBuilder::new(&self.metrics).counter(BYTES_SCANNED, partition),
            output_rows: MetricBuilder::new(&self.metrics).output_rows(partition),
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream::iter(reading),
        )))
    }
}

/// One partition on its way through its row groups.
struct Reading {
    selected: Selected,
    sources: Arc<[Source]>,
    /// The row groups, the next one first.
    left: Vec<(usize, usize)>,
    /// Whether the first of them has been entered.
    entered: bool,
    batch_rows: usize,
    schema: SchemaRef,
    strings: Vec<Strings>,
    memory: MemoryReservation,
    rows_scanned: Count,
    bytes_scanned: Count,
    output_rows: Count,
}

impl Iterator for Reading {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch();
        // The state after an error is unknown, and a stream that is polled again must not go on
        // from it.
        if batch.is_err() {
            self.left.clear();
        }
        batch.transpose()
    }
}

impl Reading {
    /// The next rows; none at the end.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let failed = |error| plan_error(error, "coded_select");
        while let Some((source, at)) = self.left.first() {
            let source = &self.sources[*source];
            let row_group = &source.row_groups[*at];
            if !self.entered {
                self.selected.enter(source, row_group).map_err(failed)?;
                self.entered = true;
                self.strings.iter_mut().for_each(Strings::forget);
                self.rows_scanned.add(row_group.len());
                self.bytes_scanned.add(source.bytes(row_group) as usize);
            }
            let rows = self.selected.advance(self.batch_rows).map_err(failed)?;
            // Accounted after each step, because dictionaries differ in size from one row group to
            // the next. A failure here is the query's memory limit, and names this operator.
            let strings: usize = self.strings.iter().map(Strings::heap_bytes).sum();
            self.memory
                .try_resize(self.selected.heap_bytes() + strings)?;
            if rows > 0 {
                self.output_rows.add(rows);
                return self.columns(rows).map(Some);
            }
            self.left.remove(0);
            self.entered = false;
        }
        Ok(None)
    }

    fn columns(&mut self, rows: usize) -> Result<RecordBatch> {
        let fields = self.schema.fields().iter().enumerate();
        let columns = fields
            .zip(&mut self.strings)
            .map(
                |((index, field), strings)| match self.selected.cells(index) {
                    Some(Cells::Strings(dictionary, codes)) => {
                        strings.array(dictionary, codes, field)
                    }
                    Some(Cells::Ints(values)) => {
                        ints(values.iter().copied().map(Some), field.data_type())
                    }
                    None => Err(DataFusionError::Internal(format!(
                        "{} is not selected",
                        field.name()
                    ))),
                },
            );
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

/// How the strings of a column are made of codes.
#[derive(Default)]
struct Strings {
    /// Rows of the row group so far.
    rows: usize,
    /// The dictionary as an array, once it has fewer strings than there were rows.
    all: Option<StringViewArray>,
}

impl Strings {
    fn forget(&mut self) {
        *self = Self::default();
    }

    fn heap_bytes(&self) -> usize {
        self.all.as_ref().map_or(0, Array::get_array_memory_size)
    }

    fn array(
        &mut self,
        dictionary: &StringDictionary,
        codes: &[u32],
        field: &Field,
    ) -> Result<ArrayRef> {
        self.rows += codes.len();
        let strings = |codes: &mut dyn ExactSizeIterator<Item = usize>| -> Result<StringViewArray> {
            let mut builder = StringViewBuilder::with_capacity(codes.len());
            for code in codes {
                let bytes = dictionary.get(code).unwrap_or_default();
                builder.append_value(text(field.name(), bytes)?);
            }
            Ok(builder.finish())
        };
        // Building the dictionary once and taking from it is cheaper as soon as more rows were made
        // than it has entries; a condition that chooses few rows never gets there.
        if self.all.is_none() && self.rows > dictionary.len() {
            self.all = Some(strings(&mut (0..dictionary.len()))?);
        }
        let array: ArrayRef = match &self.all {
            Some(all) => take(all, &UInt32Array::from(codes.to_vec()), None)?,
            None => Arc::new(strings(&mut codes.iter().map(|code| *code as usize))?),
        };
        Ok(if is_text(field.data_type()) {
            cast(&array, field.data_type())?
        } else {
            array
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_groups_are_shared_out_once_each() {
        let places: Vec<_> = (0..20).map(|at| ((at / 3, at % 3), 1 << 20)).collect();
        for threads in [1, 2, 3, 7, 64] {
            let shares = shares(&places, threads);
            assert_eq!(shares.len(), threads.min(40), "{threads} threads");
            let all = shares.iter().flatten();
            assert!(all.eq(places.iter().map(|(place, _)| place)));
            let most = shares.iter().map(Vec::len).max();
            assert!(most <= Some(20_usize.div_ceil(threads) + 1), "{shares:?}");
        }
        assert_eq!(shares(&places[..1], 8).len(), 2);
        assert_eq!(shares(&[((0, 0), 1000)], 8), [[(0, 0)]]);
        assert_eq!(shares(&[], 8), vec![Vec::new()]);
    }
}
