//! What a file says of its pages behind its footer.

use parquet::file::metadata::{
    PageIndexPolicy, ParquetColumnIndex, ParquetMetaData, ParquetMetaDataReader, ParquetOffsetIndex,
};
use parquet::file::reader::ChunkReader;

/// The page index, by row group and column.
#[derive(Debug)]
pub struct PageIndex {
    /// Least and greatest values of the pages.
    pub values: ParquetColumnIndex,
    /// Where the pages begin.
    pub places: ParquetOffsetIndex,
}

impl PageIndex {
    /// None when there is no index, or one that can't be read: it only ever saves work.
    pub(super) fn read(metadata: &ParquetMetaData, file: &impl ChunkReader) -> Option<Self> {
        let mut reader = ParquetMetaDataReader::new_with_metadata(metadata.clone())
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.read_page_indexes(file).ok()?;
        let mut read = reader.finish().ok()?.into_builder();
        Some(Self {
            values: read.take_column_index()?,
            places: read.take_offset_index()?,
        })
    }
}
