//! Some rows of a table, batch by batch.

use std::ops::Range;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use dyno_tpch::{Batch, Error, Generator, Table, TextPool};

use crate::arrays::record_batch;
use crate::schema::schema;

/// Units of a batch.
const UNITS_AT_ONCE: u64 = 2_048;

/// Some units of a table as an Arrow stream. The first batch makes the text pool, if nobody has.
pub struct Stream<'a> {
    generator: &'a Generator,
    units: Range<u64>,
    batch: Batch,
}

impl<'a> Stream<'a> {
    /// A stream of these units: orders for `lineitem`, parts for `partsupp`, rows elsewhere.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for units that the table does not have.
    pub fn new(
        generator: &'a Generator,
        table: Table,
        units: Range<u64>,
    ) -> Result<Stream<'a>, Error> {
        let available = generator.scale().units(table);
        if units.start > units.end || units.end > available {
            return Err(Error::OutOfRange {
                table,
                what: "unit",
                given: units,
                available,
            });
        }
        Ok(Stream {
            generator,
            units,
            batch: Batch::new(table),
        })
    }
}

impl Iterator for Stream<'_> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.units.is_empty() {
            return None;
        }
        let end = self.units.end.min(self.units.start + UNITS_AT_ONCE);
        let units = self.units.start..end;
        self.units.start = end;
        let filled = self
            .generator
            .fill(&mut self.batch, units)
            .map_err(|e| ArrowError::ExternalError(Box::new(e)));
        Some(filled.and_then(|()| record_batch(&self.batch, TextPool::shared())))
    }
}

impl RecordBatchReader for Stream<'_> {
    fn schema(&self) -> SchemaRef {
        schema(self.batch.table())
    }
}
