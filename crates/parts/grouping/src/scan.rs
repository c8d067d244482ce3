//! The scan itself: threads that take row groups, and the merge of what they have found.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use dyno_formats::parquet_read::{ColumnKind, ParquetFile};

use crate::answer::Answer;
use crate::error::{BoxError, GroupError};
use crate::found::Found;
use crate::merge::merge;
use crate::query::Query;
use crate::worker::Worker;

/// A file, and what of it is read.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file.
    pub file: Arc<ParquetFile>,
    /// Where each of [`Query::columns`] is in it, the same kind in all files.
    pub columns: Vec<(usize, ColumnKind)>,
    /// Row groups that may hold rows of the query.
    pub row_groups: Vec<RowGroup>,
}

/// A row group, and where in it rows of the query may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup {
    /// Its number in the file, from 0.
    pub index: usize,
    /// Rows that are looked at, in order and apart from each other.
    pub rows: Vec<Range<usize>>,
    /// For each key of a query what is known without reading its column: stretches in order and
    /// apart from each other. Keys that nothing is known of may be left out at the end.
    pub settled: Vec<Vec<Settled>>,
}

/// Rows that all have the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The rows, counted in the row group.
    pub rows: Range<usize>,
    /// A value of the key's column which has that key, an integer.
    pub value: i64,
}

impl RowGroup {
    /// How many rows are looked at.
    pub fn len(&self) -> usize {
        self.rows.iter().map(ExactSizeIterator::len).sum()
    }

    /// Whether no row is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Told how many bytes a thread holds; an error ends the scan.
pub type Reserve = Box<dyn FnMut(usize) -> Result<(), BoxError>>;

/// One run of a query, and what all its threads share.
pub struct Scan<'a> {
    pub(crate) query: &'a Query,
    pub(crate) sources: &'a [Source],
    pub(crate) reserve: &'a (dyn Fn() -> Reserve + Sync),
    /// Set when the answer is not wanted any more, or a thread has failed.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) rows_scanned: &'a AtomicU64,
    /// The next row group of each file.
    pub(crate) next: Vec<AtomicUsize>,
}

impl<'a> Scan<'a> {
    /// A scan that may be ended by setting `stop`, and then answers with what it has. Each thread
    /// asks `reserve` for its own account of memory. Rows that are looked at in row groups that
    /// were begun are added to `rows_scanned`.
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

    /// Reads every row group once, with at most so many threads.
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
        let found: Vec<Result<Found, GroupError>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|first| {
                    scope.spawn(move || {
                        let found = Worker::new(self).run(first);
                        if found.is_err() {
                            self.stop.store(true, Ordering::Relaxed);
                        }
                        found
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or(Err(GroupError::Panicked)))
                .collect()
        });
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        let all = merge(found)?.ok_or(GroupError::Panicked)?;
        Ok(Answer::new(all))
    }
}
