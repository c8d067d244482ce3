//! Streams some rows of a table, batch by batch.

use std::borrow::Borrow;
use std::ops::Range;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use dyno_tpch::{Batch, Error, Generator, Table, TextPool};

use crate::arrays::record_batch;
use crate::schema::schema;

/// The most units of a batch, which stay in a core's second-level cache.
const UNITS_AT_ONCE: u64 = 2_048;

/// Some units of a table as an Arrow stream. The first batch of a process makes the text pool. The
/// generator is borrowed, or shared by an `Arc` for a stream that outlives its maker.
pub struct Stream<G> {
    generator: G,
    units: Range<u64>,
    batch: Batch,
}

impl<G: Borrow<Generator>> Stream<G> {
    /// Makes a stream of these units, which are orders for `lineitem`, parts for `partsupp`, and
    /// rows elsewhere.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for units that the table does not have.
    pub fn new(generator: G, table: Table, units: Range<u64>) -> Result<Stream<G>, Error> {
        let available = generator.borrow().scale().units(table);
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

impl<G: Borrow<Generator>> Iterator for Stream<G> {
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
            .borrow()
            .fill(&mut self.batch, units)
            .map_err(|e| ArrowError::ExternalError(Box::new(e)));
        Some(filled.and_then(|()| record_batch(&self.batch, TextPool::shared())))
    }
}

impl<G: Borrow<Generator>> RecordBatchReader for Stream<G> {
    fn schema(&self) -> SchemaRef {
        schema(self.batch.table())
    }
}
