//! A batch of the generator as the columns that a writer takes: coded for `true-zero-copy`, plain for
//! `zero-copy`, Arrow arrays for `baseline`.

mod arrow;
mod coded;
mod numbered;
mod plain;

use dyno_formats::columns::{Slices, Values};
use dyno_tpch::{Batch, PADDING_BYTES, Passages, Scale, TextPool};

use crate::error::Refused;
use crate::job::Mode;

/// Turns batches of one table into columns, in buffers that are used again.
pub(crate) enum Columns {
    Coded(coded::Coded),
    Plain(plain::Plain),
    Arrow(arrow::Arrow),
}

impl Columns {
    pub(crate) fn new(mode: Mode, scale: &Scale) -> Columns {
        match mode {
            Mode::TrueZeroCopy => Columns::Coded(coded::Coded::new(scale)),
            Mode::ZeroCopy => Columns::Plain(plain::Plain::default()),
            Mode::Baseline => Columns::Arrow(arrow::Arrow::default()),
        }
    }

    /// Hands the columns of a batch to `take`.
    pub(crate) fn of<R>(
        &mut self,
        batch: &Batch,
        pool: &TextPool,
        take: impl FnOnce(&[Values<'_>]) -> R,
    ) -> Result<R, Refused> {
        Ok(match self {
            Columns::Coded(coded) => coded.of(batch, pool, take),
            Columns::Plain(plain) => plain.of(batch, pool, take),
            Columns::Arrow(arrow) => arrow.of(batch, pool, take)?,
        })
    }
}

/// Comments, still in the pool.
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
