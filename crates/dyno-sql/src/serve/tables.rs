//! Opens a session for each statement: a new snapshot of the table, in a pool of memory of its own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemoryCatalogProviderList, SchemaProvider};
use datafusion::common::DataFusionError;
use datafusion::datasource::TableType;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionContext;
use datafusion_pg_catalog::pg_catalog::catalog_info::CatalogInfo;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::{
    PgCatalogSchemaProvider, PgCatalogStaticTables, setup_pg_catalog,
};
use dyno_ingest::table::{Snapshot, WSPR};
use parking_lot::{Mutex, RwLock};

use crate::feed::FeedTable;
use crate::file::TableFile;
use crate::session::{self, Limits};

use super::catalogue::{Catalogue, expand_array, index_definition};
use super::columns::wide_schema;
use super::stop;

/// The name of the one database. PostgreSQL's clients show it and compare it with
/// `current_database()`, so it has no space in it, unlike the catalog of `dyno ingest query`.
pub const DATABASE: &str = "dyno";

/// A table, from which each statement gets a session.
pub struct Tables {
    directory: PathBuf,
    limits: Limits,
    /// Functions and types of PostgreSQL, which take a thousand times longer to register than to
    /// clone.
    template: SessionState,
    /// Statistics of files, spill directory and object store, which statements share.
    runtime: Arc<RuntimeEnv>,
    pg_catalog: Arc<dyn SchemaProvider>,
    listing: Listing,
    files: Mutex<MappedFiles>,
}

/// The files that the last statements read.
#[derive(Default)]
struct MappedFiles {
    generation: u64,
    by_path: HashMap<PathBuf, MappedFile>,
}

/// A file, and which one it was.
struct MappedFile {
    identity: Identity,
    file: Arc<TableFile>,
}

/// The device and the number of a file. While a file is mapped, no other one gets its number.
type Identity = (u64, u64);

impl Tables {
    /// Opens the table in `directory`, so that a table that cannot be served is reported at the
    /// start and not by the first statement.
    ///
    /// # Errors
    /// The table does not exist, or one of its files is damaged.
    pub fn open(directory: &Path, limits: Limits) -> Result<Self> {
        let absolute = directory
            .canonicalize()
            .with_context(|| format!("cannot open table {}", directory.display()))?;
        let runtime = session::runtime(limits)?;
        let listing = Listing::default();
        let tables = Self {
            directory: absolute,
            limits,
            template: template(limits)?,
            runtime,
            pg_catalog: Arc::new(Catalogue::new(Arc::new(PgCatalogSchemaProvider::try_new(
                listing.clone(),
                Arc::new(PgCatalogStaticTables::try_new()?),
                EmptyContextProvider,
            )?))),
            listing,
            files: Mutex::default(),
        };
        tables.session()?;
        Ok(tables)
    }

    /// A session over the newest committed state.
    ///
    /// # Errors
    /// Those of [`Tables::open`].
    pub fn session(&self) -> Result<SessionContext> {
        let snapshot = Arc::new(Snapshot::open(&self.directory)?);
        let tables = self.tables_of(&snapshot)?;
        self.listing.show(&tables);
        // A pool for each statement, so that one of them cannot use what another one counts on.
        let runtime = RuntimeEnv {
            memory_pool: session::pool(self.limits)?,
            ..(*self.runtime).clone()
        };
        let state = SessionStateBuilder::new_from_existing(self.template.clone())
            .with_config(session::config(self.limits, DATABASE))
            .with_runtime_env(Arc::new(runtime))
            .with_catalog_list(Arc::new(MemoryCatalogProviderList::new()))
            .with_physical_optimizer_rules(stop::rules(&tables))
            .build();
        let context = SessionContext::new_with_state(state);
        let catalog = session::register(&context, DATABASE, &tables)?;
        catalog.register_schema("pg_catalog", Arc::clone(&self.pg_catalog))?;
        Ok(context)
    }

    /// The tables of a snapshot. Files that an earlier statement mapped are not read again, because
    /// a file of a table never changes. A table that was removed and loaded anew has other files
    /// under the same names.
    fn tables_of<'a>(&self, snapshot: &'a Arc<Snapshot>) -> Result<Vec<(&'a str, Arc<FeedTable>)>> {
        let mut files = self.files.lock();
        let mut open = |path: &Path| -> Result<Arc<TableFile>> {
            // Asked before the file is mapped. If another one takes its place between the two, the
            // next statement maps it again; the other way round the old one would stay.
            let identity = identity(path)?;
            if let Some(mapped) = files.by_path.get(path)
                && mapped.identity == identity
            {
                return Ok(Arc::clone(&mapped.file));
            }
            let file = Arc::new(TableFile::map(path)?);
            let mapped = MappedFile {
                identity,
                file: Arc::clone(&file),
            };
            files.by_path.insert(path.to_owned(), mapped);
            Ok(file)
        };
        let tables = session::feeds_of(snapshot)
            .into_iter()
            .map(|feed| {
                let table = FeedTable::open_by(snapshot, feed, &mut open)?;
                Ok((feed, Arc::new(table)))
            })
            .collect::<Result<Vec<_>>>()?;
        // A file that a load has replaced keeps its space on the disk for as long as it is mapped.
        if snapshot.manifest().generation != files.generation {
            let named: HashSet<PathBuf> = snapshot.files().map(|(path, _)| path).collect();
            files.by_path.retain(|path, _| named.contains(path));
            files.generation = snapshot.manifest().generation;
        }
        Ok(tables)
    }
}

/// Which file is under a path now.
fn identity(path: &Path) -> Result<Identity> {
    let found = fs::metadata(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok((found.dev(), found.ino()))
}

/// A state with the functions of `pg_catalog`, its planner of types, and no tables.
fn template(limits: Limits) -> Result<SessionState> {
    let config = session::config(limits, DATABASE).with_create_default_catalog_and_schema(true);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let context = SessionContext::new_with_state(state);
    setup_pg_catalog(&context, DATABASE, EmptyContextProvider).map_err(|error| *error)?;
    context.register_udf(expand_array());
    context.register_udf(index_definition());
    Ok(context.state())
}

/// What `pg_catalog` says of the tables. Every statement shares it, because clients take the number
/// of a table from one statement and ask by it in the next. It has schemas alone and not the
/// tables, which would keep their snapshot open for as long as the server runs.
#[derive(Debug, Clone, Default)]
struct Listing(Arc<RwLock<Vec<(String, String, SchemaRef)>>>);

impl Listing {
    fn show(&self, tables: &[(&str, Arc<FeedTable>)]) {
        let mut shown = Vec::with_capacity(tables.len() + 2);
        for (feed, table) in tables {
            if *feed == WSPR {
                for (schema, name) in [("public", "spots"), (WSPR, "bronze")] {
                    let columns = wide_schema(table.schema());
                    shown.push((schema.to_owned(), name.to_owned(), columns));
                }
            }
            let columns = wide_schema(table.schema());
            shown.push(("public".to_owned(), (*feed).to_owned(), columns));
        }
        *self.0.write() = shown;
    }
}

#[async_trait]
impl CatalogInfo for Listing {
    async fn catalog_names(&self) -> Result<Vec<String>, DataFusionError> {
        Ok(vec![DATABASE.to_owned()])
    }

    async fn schema_names(&self, catalog: &str) -> Result<Option<Vec<String>>, DataFusionError> {
        // Clients look for both of PostgreSQL's own schemas, and skip their tables by them.
        let names = ["public", WSPR, "pg_catalog", "information_schema"];
        Ok((catalog == DATABASE).then(|| names.map(str::to_owned).to_vec()))
    }

    async fn table_names(
        &self,
        _catalog: &str,
        schema: &str,
    ) -> Result<Option<Vec<String>>, DataFusionError> {
        let tables = self.0.read();
        let of_schema = tables.iter().filter(|(of, ..)| of == schema);
        Ok(Some(of_schema.map(|(_, name, _)| name.clone()).collect()))
    }

    async fn table_schema(
        &self,
        _catalog: &str,
        schema: &str,
        table: &str,
    ) -> Result<Option<SchemaRef>, DataFusionError> {
        let tables = self.0.read();
        let found = tables
            .iter()
            .find(|(of, name, _)| of == schema && name == table);
        Ok(found.map(|(_, _, columns)| Arc::clone(columns)))
    }

    async fn table_type(
        &self,
        _catalog: &str,
        _schema: &str,
        _table: &str,
    ) -> Result<Option<TableType>, DataFusionError> {
        Ok(Some(TableType::Base))
    }
}
