//! How large the pieces of a table may be, so that all that are under way fit the memory.

use dyno_tpch::{POOL_BYTES, Table};

use crate::error::Error;
use crate::job::{Format, Job};
use crate::place::Place;

/// What the process holds beside the pool and the pieces: code, batches, dictionaries, buffers of
/// sinks.
const FIXED_BYTES: u64 = 40 << 20;
/// What a thread holds beside its piece: a batch and the buffers of a writer.
const THREAD_BYTES: u64 = 12 << 20;
/// Bytes of a piece where memory does not decide: large enough for readers, which like few row
/// groups, small enough for a dozen of them in flight.
const PIECE_BYTES: u64 = 16 << 20;
/// Parts of objects that are sent or collected: 8 MiB each, five for an object, two objects at a
/// time.
const OBJECTS_BYTES: u64 = 2 * 5 * (8 << 20);
/// A piece below this would be mostly headers.
const SMALLEST_PIECE_BYTES: u64 = 1 << 20;
/// Text has no reason to come in large pieces.
const TEXT_PIECE_BYTES: u64 = 4 << 20;

/// How a job uses its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Bytes of a piece, about.
    pub(crate) piece_bytes: u64,
    /// Pieces that may wait in a file for their turn.
    pub(crate) waiting: usize,
}

impl Budget {
    /// # Errors
    /// [`Error::Memory`] when pieces would be too small to be of use.
    pub(crate) fn of(job: &Job) -> Result<Budget, Error> {
        let jobs = job.jobs.max(1) as u64;
        let waiting = jobs + 1;
        // A piece grows in its buffer, which may have twice its size at the end.
        let pieces = 2 * jobs + waiting;
        let sending = match job.place {
            Place::Objects { .. } => OBJECTS_BYTES,
            Place::Folder(_) | Place::Nowhere => 0,
        };
        let before = POOL_BYTES as u64 + FIXED_BYTES + sending + jobs * THREAD_BYTES;
        let needed_bytes = before + pieces * SMALLEST_PIECE_BYTES;
        if job.memory_bytes < needed_bytes {
            return Err(Error::Memory {
                given_bytes: job.memory_bytes,
                needed_bytes,
                pool_bytes: POOL_BYTES as u64,
                jobs: job.jobs,
            });
        }
        let affordable = (job.memory_bytes - before) / pieces;
        let wanted = match job.layout.format {
            Format::Parquet | Format::Orc => job.layout.group_bytes.unwrap_or(PIECE_BYTES),
            Format::Csv | Format::Tbl => TEXT_PIECE_BYTES,
        };
        Ok(Budget {
            piece_bytes: wanted.min(affordable),
            waiting: waiting as usize,
        })
    }
}

/// Units of a piece of a table.
pub(crate) fn units_of_piece(job: &Job, budget: Budget, table: Table) -> u64 {
    let rows = budget.piece_bytes / row_bytes(job.layout.format, table);
    let rows = job.layout.group_rows.map_or(rows, |most| rows.min(most));
    // Orders have four lines each on average, and one to seven.
    let rows_per_unit = match table {
        Table::Lineitem | Table::Partsupp => 4,
        _ => 1,
    };
    (rows / rows_per_unit).max(1)
}

/// Bytes that a row has before compression, rounded up: as text, or as pages.
fn row_bytes(format: Format, table: Table) -> u64 {
    match format {
        Format::Csv | Format::Tbl => match table {
            Table::Lineitem => 130,
            Table::Orders => 115,
            Table::Partsupp | Table::Supplier => 150,
            Table::Part => 125,
            Table::Customer => 170,
            Table::Region | Table::Nation => 150,
        },
        Format::Parquet | Format::Orc => match table {
            Table::Lineitem => 48,
            Table::Orders => 68,
            Table::Partsupp => 140,
            Table::Supplier | Table::Customer => 150,
            Table::Part => 85,
            Table::Region | Table::Nation => 150,
        },
    }
}
