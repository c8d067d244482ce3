//! An open file of a table, with what only SQL needs of it: statistics and the page index, in the
//! form that DataFusion's pruning takes.

use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use datafusion::parquet::file::metadata::{
    PageIndexPolicy, ParquetColumnIndex, ParquetMetaData, ParquetMetaDataReader, ParquetOffsetIndex,
};
use dyno_formats::parquet_read::ParquetFile;

/// A file of a committed table, mapped into memory for as long as this lives.
#[derive(Debug)]
pub struct TableFile {
    file: Arc<ParquetFile>,
    metadata: ParquetMetaData,
    page_index: OnceLock<Option<PageIndex>>,
}

/// The page index, by row group and column.
#[derive(Debug)]
pub struct PageIndex {
    /// Least and greatest values of the pages.
    pub values: ParquetColumnIndex,
    /// Offset, length and first row of each page.
    pub places: ParquetOffsetIndex,
}

impl TableFile {
    /// Maps a file of a committed table, which no writer changes or cuts.
    ///
    /// # Errors
    /// The file is missing, not readable or not Parquet.
    pub fn map(path: &Path) -> Result<Self> {
        let file = ParquetFile::map(path)?;
        let bytes = file.mapped().context("a mapped file has its bytes")?;
        // The footer alone is parsed here. The page index of a large table takes longer than many
        // queries that never look at it.
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(bytes)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self {
            file: Arc::new(file),
            metadata,
            page_index: OnceLock::new(),
        })
    }

    /// The file for readers of pages.
    pub fn pages(&self) -> &Arc<ParquetFile> {
        &self.file
    }

    /// The footer, with the statistics of each row group.
    pub fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    /// The page index, which is read at the first call. `None` if the file has none or if it cannot
    /// be read: the index only saves work, so a damaged one must not fail a query.
    pub fn page_index(&self) -> Option<&PageIndex> {
        self.page_index.get_or_init(|| self.read_index()).as_ref()
    }

    fn read_index(&self) -> Option<PageIndex> {
        let mut reader = ParquetMetaDataReader::new_with_metadata(self.metadata.clone())
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.read_page_indexes(self.file.mapped()?).ok()?;
        let mut read = reader.finish().ok()?.into_builder();
        Some(PageIndex {
            values: read.take_column_index()?,
            places: read.take_offset_index()?,
        })
    }
}

impl Deref for TableFile {
    type Target = ParquetFile;

    fn deref(&self) -> &ParquetFile {
        &self.file
    }
}
