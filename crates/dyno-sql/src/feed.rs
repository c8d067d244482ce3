//! A feed's table as SQL sees it: its part of one committed snapshot, and its open files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::object_store::path::Path as StorePath;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use dyno_formats::parquet_read::ParquetFile;
use dyno_ingest::contract::COLUMNS;
use dyno_ingest::table::{Snapshot, WSPR};

use crate::file::TableFile;

/// An open table. While it lives, no load removes its files.
#[derive(Debug)]
pub struct FeedTable {
    snapshot: Arc<Snapshot>,
    files: Vec<Arc<TableFile>>,
    by_path: HashMap<StorePath, usize>,
    schema: SchemaRef,
}

impl FeedTable {
    /// Opens what a committed state has of a feed; the snapshot's path is absolute.
    ///
    /// # Errors
    /// A file that the manifest names is missing, damaged, or has other columns or another row
    /// count than the manifest says.
    pub fn open(snapshot: &Arc<Snapshot>, feed: &str) -> Result<Self> {
        Self::open_by(snapshot, feed, |path| Ok(Arc::new(TableFile::map(path)?)))
    }

    /// The same, with files from `map`. A file of a table never changes, so a server that opens a
    /// table for each statement can keep those that it has mapped.
    ///
    /// # Errors
    /// Those of [`FeedTable::open`] and of `map`.
    pub fn open_by(
        snapshot: &Arc<Snapshot>,
        feed: &str,
        mut map: impl FnMut(&Path) -> Result<Arc<TableFile>>,
    ) -> Result<Self> {
        let mut files = Vec::new();
        let mut by_path = HashMap::new();
        let mut schema: Option<SchemaRef> = None;
        for (path, committed) in snapshot.files_of(feed) {
            let file = map(&path)?;
            // The manifest is what was committed. A file that disagrees with it is damaged, and a
            // query over it would return a wrong count without any error.
            if file.rows() != committed.rows {
                bail!(
                    "{} has {} rows, the manifest says {}",
                    path.display(),
                    file.rows(),
                    committed.rows
                );
            }
            // The scan is planned with one schema for all files. With another type in one of them
            // it would fail in the middle of a query, or cast values silently.
            let found = schema_of(&file)?;
            match &schema {
                None => schema = Some(found),
                Some(first) if *first == found => {}
                Some(first) => bail!("{}: {}", path.display(), difference(first, &found)),
            }
            by_path.insert(StorePath::from_absolute_path(&path)?, files.len());
            files.push(file);
        }
        // A new table has no file to take the columns from. Queries over it must still plan, so
        // that they return no rows instead of an unknown column.
        let schema = schema.unwrap_or_else(|| {
            Arc::new(if feed == WSPR {
                contract()
            } else {
                Schema::empty()
            })
        });
        Ok(Self {
            snapshot: Arc::clone(snapshot),
            files,
            by_path,
            schema,
        })
    }

    /// Its files, archive by archive.
    pub fn files(&self) -> &[Arc<TableFile>] {
        &self.files
    }

    /// The file at an object-store path.
    pub fn file(&self, path: &StorePath) -> Option<&Arc<TableFile>> {
        self.by_path
            .get(path)
            .and_then(|index| self.files.get(*index))
    }

    /// The file whose pages these are.
    pub fn file_of(&self, pages: &Arc<ParquetFile>) -> Option<&TableFile> {
        let mut files = self.files.iter();
        files
            .find(|file| Arc::ptr_eq(file.pages(), pages))
            .map(Arc::as_ref)
    }

    /// The columns that all files have, strings as views. Without files they are WSPR's own, and
    /// none for any other feed.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table's directory, as an absolute path.
    pub fn directory(&self) -> &Path {
        self.snapshot.table()
    }
}

/// The arrow schema of a file. Strings are views, which filter and group without copies.
fn schema_of(file: &TableFile) -> Result<SchemaRef> {
    let footer = file.metadata().file_metadata();
    let stored = parquet_to_arrow_schema(footer.schema_descr(), footer.key_value_metadata())
        .with_context(|| format!("cannot read the columns of {}", file.path().display()))?;
    let fields: Vec<Field> = stored
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => {
                Field::new(field.name(), DataType::Utf8View, field.is_nullable())
            }
            other => Field::new(field.name(), other.clone(), field.is_nullable()),
        })
        .collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// The columns of a spots table that has no file yet.
fn contract() -> Schema {
    let kind = |name: &str| match name {
        "id" | "frequency" => DataType::UInt64,
        "timestamp" => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        "snr" | "power" | "drift" => DataType::Int8,
        "distance" => DataType::UInt32,
        "azimuth" => DataType::UInt16,
        "band" => DataType::Int32,
        "code" | "column_count" => DataType::UInt8,
        _ => DataType::Utf8View,
    };
    Schema::new(
        COLUMNS
            .map(|name| Field::new(name, kind(name), false))
            .to_vec(),
    )
}

/// The first thing in which two schemas are not the same.
fn difference(first: &Schema, other: &Schema) -> String {
    for field in other.fields() {
        match first.field_with_name(field.name()) {
            Err(_) => return format!("column {} is in no file before it", field.name()),
            Ok(before) if before != field.as_ref() => {
                return format!(
                    "column {} is {}, in the files before it {}",
                    field.name(),
                    field.data_type(),
                    before.data_type()
                );
            }
            Ok(_) => {}
        }
    }
    "its columns are not those of the files before it".to_owned()
}
