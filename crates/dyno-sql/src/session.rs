//! A DataFusion session over one table, with bounds.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider,
};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::{MemTable, TableProvider};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::coded::CodedAggregateRule;
use crate::options::DynoOptions;
use crate::spots::SpotsTable;

/// The catalog, as some tools write it: `"default catalog".wspr.bronze`.
const CATALOG: &str = "default catalog";
/// Where `spots` is.
const SCHEMA: &str = "public";
/// How many consumers of memory an error names.
const NAMED_CONSUMERS: usize = 3;

/// What a session may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Threads of the scan, partitions of the plan.
    pub threads: usize,
    /// Bytes of sorting, grouping and joining before they spill to disk or fail.
    pub memory_bytes: usize,
}

/// Opens the table in `directory` under its two names, `spots` and `wspr.bronze`.
///
/// # Errors
/// Those of [`SpotsTable::open`].
pub fn open(directory: &Path, limits: Limits) -> Result<SessionContext> {
    let table = Arc::new(SpotsTable::open(directory)?);
    let mut config = SessionConfig::new()
        .with_target_partitions(limits.threads)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_information_schema(true)
        .with_collect_statistics(true)
        .with_option_extension(DynoOptions::default());
    let options = config.options_mut();
    options.sql_parser.collect_spans = true;
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(CodedAggregateRule::new(Arc::clone(&table))));
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime(limits)?)
        .with_default_features()
        .with_physical_optimizer_rules(rules)
        .build();
    let context = SessionContext::new_with_state(state);
    register(&context, provider(&context, &table)?)?;
    Ok(context)
}

/// Bounded memory, with errors that name who holds it.
///
/// # Errors
/// There is no place to spill to.
pub(crate) fn runtime(limits: Limits) -> Result<Arc<RuntimeEnv>> {
    let spill = FairSpillPool::new(limits.memory_bytes);
    let named = std::num::NonZeroUsize::new(NAMED_CONSUMERS).context("no consumer is named")?;
    Ok(RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(TrackConsumersPool::new(spill, named)))
        .build_arc()?)
}

fn register(context: &SessionContext, spots: Arc<dyn TableProvider>) -> Result<()> {
    let catalog = MemoryCatalogProvider::new();
    for (schema, table) in [(SCHEMA, "spots"), ("wspr", "bronze")] {
        let provider = MemorySchemaProvider::new();
        provider.register_table(table.to_owned(), Arc::clone(&spots))?;
        catalog.register_schema(schema, Arc::new(provider))?;
    }
    context.register_catalog(CATALOG, Arc::new(catalog));
    Ok(())
}

/// The scan over exactly the snapshot's files, statistics and page index in use.
fn provider(context: &SessionContext, table: &SpotsTable) -> Result<Arc<dyn TableProvider>> {
    if table.files().is_empty() {
        let empty = MemTable::try_new(Arc::clone(table.schema()), vec![vec![]])?;
        return Ok(Arc::new(empty));
    }
    let mut urls = Vec::with_capacity(table.files().len());
    for file in table.files() {
        let path = file.path();
        let text = path
            .to_str()
            .with_context(|| format!("the path {} is not UTF-8", path.display()))?;
        urls.push(ListingTableUrl::parse(text)?);
    }
    let format =
        ParquetFormat::default().with_options(context.state().default_table_options().parquet);
    let options = ListingOptions::new(Arc::new(format)).with_file_extension(".parquet");
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(Arc::clone(table.schema()));
    let cache = context
        .runtime_env()
        .cache_manager
        .get_file_statistic_cache();
    Ok(Arc::new(ListingTable::try_new(config)?.with_cache(cache)))
}
