//! What the page index tells of the pages of a column in a row group.

use std::ops::Range;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::Schema;
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::errors::Result;
use datafusion::parquet::file::page_index::offset_index::PageLocation;

use crate::file::{PageIndex, TableFile};

/// The pages of a column chunk.
pub(super) struct Pages<'f> {
    /// Rows of each page, counted in the row group.
    pub(super) rows: Vec<Range<usize>>,
    file: &'f TableFile,
    index: &'f PageIndex,
    row_group: usize,
}

impl<'f> Pages<'f> {
    /// None when the file doesn't tell, or contradicts itself.
    pub(super) fn from_file(file: &'f TableFile, row_group: usize, column: &str) -> Option<Self> {
        let index = file.page_index()?;
        let (at, _) = file.column(column).or(file.moments(column))?;
        let places = index.places.get(row_group)?.get(at)?.page_locations();
        let rows = page_rows(places, file.row_group_rows(row_group) as usize)?;
        Some(Self {
            rows,
            file,
            index,
            row_group,
        })
    }

    /// The least value of each page in a column of the table.
    pub(super) fn least(&self, schema: &Schema, column: &str) -> Result<ArrayRef> {
        let converter = self.converter(schema, column)?;
        converter.data_page_mins(&self.index.values, &self.index.places, &[self.row_group])
    }

    /// The greatest value of each page in a column of the table.
    pub(super) fn most(&self, schema: &Schema, column: &str) -> Result<ArrayRef> {
        let converter = self.converter(schema, column)?;
        converter.data_page_maxes(&self.index.values, &self.index.places, &[self.row_group])
    }

    fn converter<'s>(
        &'s self,
        schema: &'s Schema,
        column: &'s str,
    ) -> Result<StatisticsConverter<'s>> {
        let stored = self.file.metadata().file_metadata().schema_descr();
        StatisticsConverter::try_new(column, schema, stored)
    }
}

/// The rows of each page; none when the pages don't follow each other from the first row on.
fn page_rows(places: &[PageLocation], rows: usize) -> Option<Vec<Range<usize>>> {
    let starts = places
        .iter()
        .map(|place| usize::try_from(place.first_row_index).ok());
    let starts: Vec<usize> = starts.collect::<Option<_>>()?;
    let ends = starts.iter().skip(1).copied().chain([rows]);
    let pages: Vec<Range<usize>> = starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(a, b)| a..b)
        .collect();
    // Each page must have at least one row, and the first begins at row 0. Otherwise a row would be
    // in no page or in two, and pruning would lose or repeat it.
    let whole = starts.first() == Some(&0) && pages.iter().all(|page| page.start < page.end);
    whole.then_some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(first_row_index: i64) -> PageLocation {
        PageLocation {
            offset: 0,
            compressed_page_size: 1,
            first_row_index,
        }
    }

    #[test]
    fn pages_that_contradict_each_other_say_nothing() {
        assert_eq!(page_rows(&[page(0), page(7)], 9), Some(vec![0..7, 7..9]));
        for starts in [&[][..], &[1], &[0, 0], &[0, 9], &[0, 12], &[0, 8, 3], &[-1]] {
            let places: Vec<PageLocation> = starts.iter().map(|start| page(*start)).collect();
            assert_eq!(page_rows(&places, 9), None, "{starts:?}");
        }
    }
}
