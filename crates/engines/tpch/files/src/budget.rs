//! Computes how large the pieces of a table may be, so that all that are under way fit into the
//! memory of the job.

use dyno_tpch::{POOL_BYTES, Table};

use crate::destination::Destination;
use crate::error::Error;
use crate::job::Job;
use crate::options::Format;

/// Memory of the process beside the pool and the pieces, for code, dictionaries and buffers of
/// sinks.
const FIXED_BYTES: u64 = 40 << 20;
/// Memory of a thread beside its piece, for a batch and the buffers of a writer.
const THREAD_BYTES: u64 = 12 << 20;
/// Bytes of a piece if memory does not force a smaller one. It is large enough for readers, which
/// prefer few row groups, and small enough for a dozen of them in flight.
const PIECE_BYTES: u64 = 16 << 20;
/// Memory for parts of objects that are sent or collected. They have 8 MiB, and there are five for
/// each of two objects at a time.
const OBJECTS_BYTES: u64 = 2 * 5 * (8 << 20);
/// The least bytes of a piece. A smaller one would be mostly headers.
const SMALLEST_PIECE_BYTES: u64 = 1 << 20;
/// Bytes of a piece of text, for which readers do not care.
const TEXT_PIECE_BYTES: u64 = 4 << 20;

/// How a job divides its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// About how many bytes a piece has.
    pub(crate) piece_bytes: u64,
    /// How many pieces may wait in a file for their turn.
    pub(crate) waiting: usize,
}

impl Budget {
    /// Divides the memory of a job.
    ///
    /// # Errors
    /// [`Error::Memory`] when pieces would be too small to be useful.
    pub(crate) fn from_job(job: &Job) -> Result<Budget, Error> {
        let jobs = job.jobs.max(1) as u64;
        let waiting = jobs + 1;
        // A piece grows in its buffer, which may have twice its size at the end.
        let pieces = 2 * jobs + waiting;
        let sending = match job.destination {
            Destination::Objects { .. } => OBJECTS_BYTES,
            Destination::Folder(_) | Destination::Nowhere => 0,
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

/// How many units a piece of a table has.
pub(crate) fn units_of_piece(job: &Job, budget: Budget, table: Table) -> u64 {
    let rows = budget.piece_bytes / row_bytes(job.layout.format, table);
    // The smaller of the two wins, because a request for rows must not break the bound of memory.
    let rows = job.layout.group_rows.map_or(rows, |most| rows.min(most));
    // Orders have one to seven lines, and four on average.
    let rows_per_unit = match table {
        Table::Lineitem | Table::Partsupp => 4,
        _ => 1,
    };
    (rows / rows_per_unit).max(1)
}

/// Bytes of a row before compression, rounded up, either as text or in pages.
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
