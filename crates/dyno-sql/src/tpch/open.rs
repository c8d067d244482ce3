//! A session with the tables of a directory in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use datafusion::common::Result as SqlResult;
use datafusion::datasource::file_format::FileFormat as Reader;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use dyno_tpch::{Generator, Scale, Table};

use super::layout::{self, FileFormat, TableFiles};
use super::orc::OrcTable;
use super::schema;
use crate::session::{Limits, runtime};

/// Tables of TPC-H, open for SQL under their names.
pub struct Tables {
    /// The session in which statements run, with its limits.
    pub context: SessionContext,
    /// The files of every table that is there.
    pub files: BTreeMap<Table, TableFiles>,
}

/// Opens all tables in `directory`.
///
/// # Errors
/// Those of [`layout::find`]; a file that cannot be read, or has other columns than its table.
pub async fn open(directory: &Path, only: Option<FileFormat>, limits: Limits) -> Result<Tables> {
    let mut config = SessionConfig::new()
        .with_target_partitions(limits.threads)
        .with_collect_statistics(true);
    let options = config.options_mut();
    options.sql_parser.collect_spans = true;
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime(limits)?)
        .with_default_features()
        .build();
    let context = SessionContext::new_with_state(state);
    let mut files = BTreeMap::new();
    for found in layout::find(directory, only)? {
        register(&context, &found).await?;
        files.insert(found.table, found);
    }
    Ok(Tables { context, files })
}

async fn register(context: &SessionContext, files: &TableFiles) -> Result<()> {
    let extension = format!(".{}", files.format);
    let (reader, ended): (Arc<dyn Reader>, bool) = match files.format {
        FileFormat::Parquet => {
            let options = context.state().default_table_options().parquet;
            (
                Arc::new(ParquetFormat::default().with_options(options)),
                false,
            )
        }
        FileFormat::Csv => (Arc::new(CsvFormat::default().with_has_header(true)), false),
        FileFormat::Tbl => {
            let format = CsvFormat::default()
                .with_has_header(false)
                .with_delimiter(b'|');
            (Arc::new(format), true)
        }
        FileFormat::Orc => return register_orc(context, files),
    };
    let mut urls = Vec::with_capacity(files.paths.len());
    for path in &files.paths {
        if files.format == FileFormat::Csv {
            check_header(files.table, path)?;
        }
        let text = path
            .to_str()
            .with_context(|| format!("the path {} is not UTF-8", path.display()))?;
        urls.push(ListingTableUrl::parse(text)?);
    }
    let options = ListingOptions::new(reader).with_file_extension(extension);
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
    // Parquet has types of its own, which are compared below. Text has none, and inferring them
    // would read a part of every file and type a column of digits as integers.
    let config = if files.format == FileFormat::Parquet {
        let inferred = config.infer_schema(&context.state()).await;
        inferred.with_context(|| format!("cannot open table {}", files.table))?
    } else {
        config.with_schema(schema::of_text(files.table, ended))
    };
    let cache = context
        .runtime_env()
        .cache_manager
        .get_file_statistic_cache();
    let listing = Arc::new(ListingTable::try_new(config)?.with_cache(cache));
    if files.format == FileFormat::Parquet {
        let found = datafusion::catalog::TableProvider::schema(listing.as_ref());
        schema::check(files.table, &found).with_context(|| format!("table {}", files.table))?;
    }
    if !ended {
        context.register_table(files.table.name(), listing)?;
        return Ok(());
    }
    // A line of dbgen ends with a separator, behind which a CSV reader sees one more column. A view
    // leaves it out, so that `SELECT *` has the columns of the specification.
    let names: Vec<&str> = files
        .table
        .columns()
        .iter()
        .map(|column| column.name)
        .collect();
    let columns = context.read_table(listing)?.select_columns(&names)?;
    context.register_table(files.table.name(), columns.into_view())?;
    Ok(())
}

fn register_orc(context: &SessionContext, files: &TableFiles) -> Result<()> {
    let table = OrcTable::open(&files.paths);
    let table = table.with_context(|| format!("cannot open table {}", files.table))?;
    let checked = schema::check(files.table, table.schema());
    checked.with_context(|| format!("table {}", files.table))?;
    context.register_table(files.table.name(), Arc::new(table))?;
    Ok(())
}

/// DataFusion skips a header without looking at it.
fn check_header(table: Table, path: &Path) -> Result<()> {
    let unreadable = || format!("cannot read {}", path.display());
    let mut line = String::new();
    let file = File::open(path).with_context(unreadable)?;
    BufReader::new(file)
        .read_line(&mut line)
        .with_context(unreadable)?;
    let names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    let expected = names.join(",");
    if line.trim_end().replace('"', "") != expected {
        bail!(
            "{}: the header is {:?}, not {expected:?}",
            path.display(),
            line.trim_end()
        );
    }
    Ok(())
}

impl Tables {
    /// A statement of our own, planned.
    ///
    /// # Errors
    /// It does not fit the tables.
    pub async fn sql(&self, sql: &str) -> SqlResult<DataFrame> {
        self.context.sql(sql).await
    }

    /// The rows of a table, counted.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn count(&self, table: Table) -> Result<u64> {
        let rows = self.context.table(table.name()).await?.count().await;
        let rows = rows.with_context(|| format!("cannot read table {table}"))?;
        Ok(rows as u64)
    }

    /// The scale factor that the number of rows says: of those that more than half of the tables
    /// agree with, the one that is the shortest to write, so that a single damaged table does not
    /// hide it.
    ///
    /// # Errors
    /// There is no table whose size depends on the scale factor, or there is no such majority.
    pub async fn scale(&self) -> Result<Scale> {
        let mut counts = Vec::new();
        for table in [
            Table::Orders,
            Table::Part,
            Table::Customer,
            Table::Partsupp,
            Table::Supplier,
        ] {
            if self.files.contains_key(&table) {
                counts.push((table, self.count(table).await?));
            }
        }
        let at_one = Generator::new(Scale::new(1.0)?);
        // Row counts are rounded, so one table fits a range of scale factors. A factor counts if
        // more than half of the tables have exactly the rows that it asks for.
        let candidates = counts.iter().filter_map(|(table, rows)| {
            let scale = Scale::new(*rows as f64 / at_one.rows(*table) as f64).ok()?;
            let generator = Generator::new(scale);
            let agrees = |(table, rows): &&(Table, u64)| generator.rows(*table) == *rows;
            let agreeing = counts.iter().filter(agrees).count();
            (2 * agreeing > counts.len()).then_some(scale)
        });
        if let Some(scale) = candidates.min_by_key(|scale| scale.factor().to_string().len()) {
            return Ok(scale);
        }
        let rows: Vec<String> = counts
            .iter()
            .map(|(table, rows)| format!("{rows} of {table}"))
            .collect();
        bail!(
            "the rows do not tell the scale factor ({}): say it with --sf",
            if rows.is_empty() {
                "there is no table whose size depends on it".to_owned()
            } else {
                rows.join(", ")
            }
        )
    }
}
