//! Runs a scan: starts threads that take row groups, and merges what they have found.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use dyno_formats::parquet_read::{ColumnKind, ParquetFile};

use crate::answer::Answer;
use crate::error::{BoxError, GroupError};
use crate::group_table::GroupTable;
use crate::merge::merge;
use crate::query::Query;
use crate::worker::Worker;

/// A file, and which parts of it are read.
#[derive(Debug, Clone)]
pub struct Source {
    /// The open file, which all threads share.
    pub file: Arc<ParquetFile>,
    /// For each of [`Query::columns`] its index in this file and its kind, which is the same in all
    /// files.
    pub columns: Vec<(usize, ColumnKind)>,
    /// The row groups that may have rows of the query.
    pub row_groups: Vec<RowGroup>,
}

impl Source {
    /// Bytes in the file of the query's columns in a row group.
    pub fn bytes(&self, row_group: &RowGroup) -> u64 {
        let columns = self.columns.iter();
        columns
            .map(|(column, _)| self.file.chunk_bytes(row_group.index, *column))
            .sum()
    }
}

/// A row group, and where in it rows of the query may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup {
    /// Its number in the file, from 0.
    pub index: usize,
    /// The rows that are looked at, as ranges in ascending order that do not touch.
    pub rows: Vec<Range<usize>>,
    /// For each key of a query what is known without reading its column, as ranges in ascending
    /// order that do not touch. Keys of which nothing is known may be left out at the end.
    pub settled: Vec<Vec<Settled>>,
}

/// Rows that all have the same key, such as those of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The rows, counted from the beginning of the row group.
    pub rows: Range<usize>,
    /// An integer of the key's column from which that key follows.
    pub value: i64,
}

impl RowGroup {
    /// The number of rows that are looked at.
    pub fn len(&self) -> usize {
        self.rows.iter().map(ExactSizeIterator::len).sum()
    }

    /// Whether no rows are looked at.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Is told how many bytes a thread holds each time that changes much. An error ends the scan.
pub type Reserve = Box<dyn FnMut(usize) -> Result<(), BoxError>>;

/// One run of a query, with what all its threads share.
pub struct Scan<'a> {
    pub(crate) query: &'a Query,
    pub(crate) sources: &'a [Source],
    pub(crate) reserve: &'a (dyn Fn() -> Reserve + Sync),
    /// Set if the answer is not wanted any more or a thread has failed. Threads look at it between
    /// blocks.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) rows_scanned: &'a AtomicU64,
    /// For each file the number of the next row group that no thread has taken.
    pub(crate) next: Vec<AtomicUsize>,
}

impl<'a> Scan<'a> {
    /// Prepares a scan. It can be ended by setting `stop`, and then answers with what it has found,
    /// which lacks rows. Each thread calls `reserve` for its own account of memory. The rows of
    /// each row group that is begun are added to `rows_scanned`.
    pub fn new(
        query: &'a Query,
        sources: &'a [Source],
        reserve: &'a (dyn Fn() -> Reserve + Sync),
        stop: &'a AtomicBool,
        rows_scanned: &'a AtomicU64,
    ) -> Self {
        Self {
            query,
            sources,
            reserve,
            stop,
            rows_scanned,
            next: sources.iter().map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Reads every row group once, on at most so many threads.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn run(&self, threads: usize) -> Result<Answer, GroupError> {
        let row_groups: usize = self
            .sources
            .iter()
            .map(|source| source.row_groups.len())
            .sum();
        let threads = threads.clamp(1, row_groups.max(1));
        let tables: Vec<Result<GroupTable, GroupError>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|first| {
                    scope.spawn(move || {
                        let table = Worker::new(self).run(first);
                        // The others end at their next block, instead of finishing an answer that
                        // is not returned.
                        if table.is_err() {
                            self.stop.store(true, Ordering::Relaxed);
                        }
                        table
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or(Err(GroupError::Panicked)))
                .collect()
        });
        let tables = tables.into_iter().collect::<Result<Vec<_>, _>>()?;
        let all = merge(tables)?.ok_or(GroupError::Panicked)?;
        Ok(Answer::new(all))
    }
}
