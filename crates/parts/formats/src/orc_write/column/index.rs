//! The row index of a column in a stripe (specification v1, "Row Group Index").

use crate::orc_write::protobuf::{message, packed};
use crate::orc_write::statistics::{Bounds, Statistics};

/// The entries of the index strides that have ended, and the statistics of all of them.
#[derive(Default)]
pub(super) struct Index {
    message: Vec<u8>,
    /// Where the streams stand at the beginning of the current stride. The column sets them before
    /// it adds the first value.
    pub(super) positions: Vec<u64>,
    stride: Statistics,
    stripe: Statistics,
}

impl Index {
    pub(super) fn clear(&mut self) {
        *self = Index::default();
    }

    /// Adds values to the statistics of the current stride.
    pub(super) fn add(&mut self, count: usize, bounds: Bounds) {
        self.stride.merge(&Statistics {
            count: count as u64,
            bounds,
        });
    }

    /// Whether the current stride has no value yet.
    pub(super) fn is_at_begin(&self) -> bool {
        self.stride.count == 0
    }

    /// Writes the entry of the current stride and begins the next one, whose positions must be set
    /// before its first value.
    pub(super) fn end_stride(&mut self) {
        let stride = std::mem::take(&mut self.stride);
        message(&mut self.message, 1, |entry| {
            packed(entry, 1, &self.positions);
            message(entry, 2, |out| stride.write(out));
        });
        self.stripe.merge(&stride);
        self.positions.clear();
    }

    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    pub(super) fn statistics(&self) -> &Statistics {
        &self.stripe
    }
}
