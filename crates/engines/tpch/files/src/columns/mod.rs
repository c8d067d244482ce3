//! Turns a batch of the generator into the columns that a writer takes, which are coded for
//! `true-zero-copy` and plain for `zero-copy`.

mod coded;
mod numbered;
mod plain;

use dyno_formats::columns::{Slices, Values};
use dyno_tpch::{Batch, PADDING_BYTES, Passages, Scale, TextPool};

use crate::error::Refused;

/// Turns batches of one table into columns, on one thread, in buffers that are used again.
pub trait Columns {
    /// Calls `take` with the columns of a batch, and returns its result.
    ///
    /// # Errors
    /// The library that makes the columns refuses the batch.
    fn with_columns<R>(
        &mut self,
        batch: &Batch,
        pool: &TextPool,
        take: impl FnOnce(&[Values<'_>]) -> R,
    ) -> Result<R, Refused>;
}

/// Makes [`Columns`] for each thread.
pub trait Source: Sync {
    /// The columns of one thread.
    type Columns: Columns;

    /// Makes columns for a thread that begins with the table.
    fn columns(&self) -> Self::Columns;
}

/// The columns of our own modes.
pub(crate) struct Own {
    mode: OwnMode,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnMode {
    Plain,
    Coded,
}

pub(crate) enum OwnColumns {
    Coded(coded::Coded),
    Plain(plain::Plain),
}

impl Own {
    pub(crate) fn new(mode: OwnMode, scale: Scale) -> Own {
        Own { mode, scale }
    }
}

impl Source for Own {
    type Columns = OwnColumns;

    fn columns(&self) -> OwnColumns {
        match self.mode {
            OwnMode::Coded => OwnColumns::Coded(coded::Coded::new(&self.scale)),
            OwnMode::Plain => OwnColumns::Plain(plain::Plain::default()),
        }
    }
}

impl Columns for OwnColumns {
    fn with_columns<R>(
        &mut self,
        batch: &Batch,
        pool: &TextPool,
        take: impl FnOnce(&[Values<'_>]) -> R,
    ) -> Result<R, Refused> {
        Ok(match self {
            OwnColumns::Coded(coded) => coded.with_columns(batch, pool, take),
            OwnColumns::Plain(plain) => plain.with_columns(batch, pool, take),
        })
    }
}

/// Comments that still lie in the pool.
struct PoolSlices<'a> {
    passages: Passages<'a>,
    pool: &'a TextPool,
}

impl Slices for PoolSlices<'_> {
    fn lengths(&self) -> &[u8] {
        self.passages.lengths
    }

    fn total_bytes(&self) -> usize {
        self.passages.total_bytes()
    }

    fn padding_bytes(&self) -> usize {
        PADDING_BYTES
    }

    fn copy_to(&self, out: &mut [u8]) -> usize {
        self.passages.copy_to(self.pool, out)
    }
}
