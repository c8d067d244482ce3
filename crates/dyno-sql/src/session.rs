//! A DataFusion session over one table, with bounds.

use std::collections::BTreeSet;
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
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

use dyno_ingest::table::{Snapshot, WSPR};

use crate::coded::CodedRule;
use crate::feed::FeedTable;
use crate::files::Files;
use crate::options::DynoOptions;

/// The catalog, as some tools write it: `"default catalog".wspr.bronze`.
pub(crate) const CATALOG: &str = "default catalog";
/// The schema that a name without one refers to, so `spots` is `public.spots`.
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

/// Opens the tables in `directory`: each feed's under its name, WSPR's as `spots` and
/// `wspr.bronze`, too.
///
/// # Errors
/// There is no table, its manifest is newer than this program, or those of [`FeedTable::open`].
pub fn open(directory: &Path, limits: Limits) -> Result<SessionContext> {
    // The scan of the general plan asks for absolute paths.
    let absolute = directory
        .canonicalize()
        .with_context(|| format!("cannot open table {}", directory.display()))?;
    // One snapshot for all tables of the session: a load that commits meanwhile is either in all of
    // them or in none.
    let snapshot = Arc::new(Snapshot::open(&absolute)?);
    let tables = feeds_of(&snapshot)
        .into_iter()
        .map(|feed| Ok((feed, Arc::new(FeedTable::open(&snapshot, feed)?))))
        .collect::<Result<Vec<_>>>()?;
    let state = SessionStateBuilder::new()
        .with_config(config(limits, CATALOG))
        .with_runtime_env(runtime(limits)?)
        .with_default_features()
        .with_physical_optimizer_rules(rules(&tables))
        .build();
    let context = SessionContext::new_with_state(state);
    register(&context, CATALOG, &tables)?;
    Ok(context)
}

/// The feeds that a snapshot has tables of, WSPR's first. It always has one, even when it is empty,
/// because `spots` is the name that the documents and every example use.
pub(crate) fn feeds_of(snapshot: &Snapshot) -> Vec<&str> {
    let archives = snapshot.manifest().archives.values();
    let feeds: BTreeSet<&str> = archives.map(|archive| archive.feed.as_str()).collect();
    std::iter::once(WSPR)
        .chain(feeds.into_iter().filter(|feed| *feed != WSPR))
        .collect()
}

/// The settings of a session whose tables are in `catalog`.
pub(crate) fn config(limits: Limits, catalog: &str) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(limits.threads)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(catalog, SCHEMA)
        .with_information_schema(true)
        .with_collect_statistics(true)
        .with_option_extension(DynoOptions::default());
    let options = config.options_mut();
    options.sql_parser.collect_spans = true;
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    config
}

/// The rules that plan a statement, those of the coded operators among them.
pub(crate) fn rules(
    tables: &[(&str, Arc<FeedTable>)],
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    for (_, table) in tables {
        // First, because later rules split aggregations over threads and push filters into the
        // scan. The operator is recognized by the shape that the planner gives them.
        rules.insert(0, Arc::new(CodedRule::new(Arc::clone(table))));
    }
    rules
}

/// Bounded memory, with errors that name who holds it, and [`Files`] for local files.
///
/// # Errors
/// There is no place to spill to.
pub(crate) fn runtime(limits: Limits) -> Result<Arc<RuntimeEnv>> {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool(limits)?)
        .build_arc()?;
    let local = ObjectStoreUrl::local_filesystem();
    runtime.register_object_store(local.as_ref(), Arc::new(Files::default()));
    Ok(runtime)
}

/// A pool of memory, in which an error names who holds it.
///
/// # Errors
/// None today; the number of names is a constant.
pub(crate) fn pool(limits: Limits) -> Result<Arc<dyn MemoryPool>> {
    // A fair pool gives each consumer that can spill an equal share. With a greedy one the first of
    // two sorts takes everything, and the second fails although it could spill.
    let spill = FairSpillPool::new(limits.memory_bytes);
    let named = std::num::NonZeroUsize::new(NAMED_CONSUMERS).context("no consumer is named")?;
    Ok(Arc::new(TrackConsumersPool::new(spill, named)))
}

/// Makes the tables known under their names in a new catalog, which is returned.
pub(crate) fn register(
    context: &SessionContext,
    name: &str,
    tables: &[(&str, Arc<FeedTable>)],
) -> Result<Arc<dyn CatalogProvider>> {
    let catalog = Arc::new(MemoryCatalogProvider::new());
    let public = MemorySchemaProvider::new();
    for (feed, table) in tables {
        let provider = provider(context, table)?;
        if *feed == WSPR {
            let bronze = MemorySchemaProvider::new();
            bronze.register_table("bronze".to_owned(), Arc::clone(&provider))?;
            catalog.register_schema(WSPR, Arc::new(bronze))?;
            public.register_table("spots".to_owned(), Arc::clone(&provider))?;
        }
        public.register_table((*feed).to_owned(), provider)?;
    }
    catalog.register_schema(SCHEMA, Arc::new(public))?;
    context.register_catalog(name, Arc::clone(&catalog) as Arc<dyn CatalogProvider>);
    Ok(catalog)
}

/// The scan over exactly the snapshot's files, statistics and page index in use.
fn provider(context: &SessionContext, table: &FeedTable) -> Result<Arc<dyn TableProvider>> {
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
    // The files are named one by one. A scan of the directory would also read files of a load that
    // has not committed, and those that are about to be removed.
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
