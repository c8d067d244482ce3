//! Loads one archive into the table.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Instant;

use super::report::{ArchiveReport, Outcome, StageSeconds};
use super::target::{Stage, Target};
use super::{Input, Options, Progress, Room, lanes, parquet_in};
use crate::scan::{BadRow, Block, Columns, Scanner};
use crate::source::{Source, TextSource, hash_file};
use crate::table::{SourceIdentity, WSPR};
use crate::{Error, Result};

/// Blocks between the two threads of a file: enough to keep inflating while a row group is written.
const BLOCKS_IN_FLIGHT: usize = 64;
/// Bytes that the dictionary pages of a full row group may have for each of its rows. A row group
/// has its dictionaries whole, so beyond this they are cleared with the next one.
const DICTIONARY_BYTES_PER_ROW: usize = 16;

/// The parameters of one archive's load.
pub(super) struct Job<'a> {
    pub(super) identity: String,
    pub(super) target: &'a dyn Target,
    pub(super) options: &'a Options,
    pub(super) progress: &'a Progress,
    pub(super) room: Room,
    /// Whether inflating gets a thread of its own.
    pub(super) spread: bool,
}

impl Job<'_> {
    pub(super) fn run(self, input: Input) -> ArchiveReport {
        lanes::report(&self.identity, input, |input, path, stages, warnings| {
            self.load(input, path, stages, warnings)
        })
    }

    fn load(
        &self,
        input: Input,
        path: &Path,
        stages: &mut StageSeconds,
        warnings: &mut Vec<String>,
    ) -> Result<Outcome> {
        self.progress.check()?;
        if let Some(there) =
            lanes::already_there(self.target, &self.identity, &input, self.progress)?
        {
            return Ok(there);
        }
        let total = Some(self.progress.bytes.clone());
        let source = input.open(self.options.engine, total)?;
        let mut sink = Sink::new(self, path)?;
        // Hashed in a pass of its own, by the file's name; its witness compares the file before and
        // after both.
        let hashed = match &source {
            Source::Text(text) if text.identity_is_of_file() => None,
            _ => Some(hash_file(path)?),
        };
        let (bytes, hash) = match source {
            Source::Parquet(file, witness) => {
                parquet_in::read(path, file, &mut sink, stages)?;
                witness.unchanged()?;
                let identity = hashed.unwrap_or_default();
                self.progress.bytes.fetch_add(identity.0, Ordering::Relaxed);
                identity
            }
            Source::Text(mut text) => {
                if self.spread {
                    two_stages(&mut text, &mut sink, stages)?;
                } else {
                    one_stage(&mut text, &mut sink, stages)?;
                }
                warnings.extend(text.warning());
                hashed.unwrap_or_else(|| text.identity())
            }
        };
        if let Some(there) =
            lanes::already_there_by_hash(self.target, &self.identity, bytes, &hash)?
        {
            return Ok(there);
        }
        let source = SourceIdentity {
            path: path.display().to_string(),
            bytes,
            hash,
        };
        sink.finish(source, stages)
    }
}

/// Inflates and parses in turn, on one thread.
fn one_stage(text: &mut TextSource, sink: &mut Sink<'_>, stages: &mut StageSeconds) -> Result<()> {
    let mut block = Block::default();
    loop {
        let begun = Instant::now();
        let more = text.next_block(&mut block)?;
        stages.inflate += begun.elapsed().as_secs_f64();
        if !more {
            return Ok(());
        }
        sink.take(&block, stages)?;
    }
}

/// Inflates on a thread of its own, at most a fixed number of blocks ahead.
fn two_stages(text: &mut TextSource, sink: &mut Sink<'_>, stages: &mut StageSeconds) -> Result<()> {
    let (full_tx, full_rx) = mpsc::sync_channel::<Block>(BLOCKS_IN_FLIGHT);
    let (empty_tx, empty_rx) = mpsc::channel::<Block>();
    std::thread::scope(|scope| {
        let inflating = scope.spawn(move || -> Result<f64> {
            let mut busy = 0.0;
            loop {
                let mut block = empty_rx.try_recv().unwrap_or_default();
                let begun = Instant::now();
                let more = text.next_block(&mut block)?;
                busy += begun.elapsed().as_secs_f64();
                // The receiver is dropped when the other side fails, and that side returns the
                // error.
                if !more || full_tx.send(block).is_err() {
                    return Ok(busy);
                }
            }
        });
        let mut taken = Ok(());
        for block in &full_rx {
            taken = sink.take(&block, stages);
            if taken.is_err() {
                break;
            }
            // An error means that the inflating side has ended and needs no more blocks.
            let _ = empty_tx.send(block);
        }
        drop(full_rx);
        let inflated = match inflating.join() {
            Ok(inflated) => inflated,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        taken?;
        stages.inflate += inflated?;
        Ok(())
    })
}

/// Collects rows into chunks and passes those to the stage.
pub(super) struct Sink<'a> {
    job: &'a Job<'a>,
    path: PathBuf,
    stage: Box<dyn Stage + 'a>,
    scanner: Scanner,
    rows: u64,
    /// Line number and reason of the first bad row.
    first_bad: Option<(u64, String)>,
}

impl<'a> Sink<'a> {
    fn new(job: &'a Job<'a>, path: &Path) -> Result<Self> {
        let chunk_rows = job.room.row_group_rows;
        Ok(Sink {
            job,
            path: path.to_owned(),
            stage: job.target.stage(&job.identity, path, chunk_rows)?,
            scanner: Scanner::default(),
            rows: 0,
            first_bad: None,
        })
    }

    fn take(&mut self, block: &Block, stages: &mut StageSeconds) -> Result<()> {
        self.job.progress.check()?;
        let begun = Instant::now();
        let before = self.scanner.columns.len();
        let (stage, first_bad) = (&mut self.stage, &mut self.first_bad);
        self.scanner.scan(block, &mut |row| {
            first_bad.get_or_insert_with(|| (row.line, row.reason.clone()));
            stage.put_aside(&row);
        });
        let added = self.scanner.columns.len() - before;
        self.job
            .progress
            .rows
            .fetch_add(added as u64, Ordering::Relaxed);
        stages.parse += begun.elapsed().as_secs_f64();
        self.flush_when_full(stages)?;
        Ok(())
    }

    /// The columns, for readers that fill them directly.
    pub(super) fn columns(&mut self) -> &mut Columns {
        &mut self.scanner.columns
    }

    pub(super) fn put_aside(&mut self, row: &BadRow<'_>) {
        self.first_bad
            .get_or_insert_with(|| (row.line, row.reason.clone()));
        self.stage.put_aside(row);
    }

    pub(super) fn added(&self, rows: usize) -> Result<()> {
        self.job
            .progress
            .rows
            .fetch_add(rows as u64, Ordering::Relaxed);
        self.job.progress.check()
    }

    /// Passes a chunk on if it is full. Returns whether codes begin anew after it.
    pub(super) fn flush_when_full(&mut self, stages: &mut StageSeconds) -> Result<bool> {
        let columns = &self.scanner.columns;
        let room = &self.job.room;
        if columns.len() >= room.row_group_rows
            || columns.dictionaries.heap_bytes() > room.dictionary_bytes
        {
            return self.flush(stages);
        }
        Ok(false)
    }

    /// Passes the rows so far on as one chunk. Returns whether codes begin anew after it.
    fn flush(&mut self, stages: &mut StageSeconds) -> Result<bool> {
        let columns = &mut self.scanner.columns;
        if columns.is_empty() {
            return Ok(false);
        }
        self.rows += self.stage.take(columns, stages)?;

        columns.clear();
        let dictionaries = &mut columns.dictionaries;
        let room = &self.job.room;
        if dictionaries.bytes() > room.row_group_rows * DICTIONARY_BYTES_PER_ROW
            || dictionaries.heap_bytes() > room.dictionary_bytes / 2
        {
            *dictionaries = Default::default();
            return Ok(true);
        }
        Ok(false)
    }

    /// Passes on what is left, checks the number of bad rows, and commits.
    fn finish(mut self, source: SourceIdentity, stages: &mut StageSeconds) -> Result<Outcome> {
        self.flush(stages)?;
        let bad_rows = self.stage.bad_rows();
        let rows = self.rows + bad_rows;
        let allowed = allowed_bad(rows, self.job.options.max_bad);
        if bad_rows > allowed {
            return Err(Error::TooManyBad {
                path: self.path,
                feed: WSPR,
                bad: bad_rows,
                rows,
                allowed,
                first: self.first_bad,
                quarantine: self.stage.reject()?,
            });
        }
        let source_bytes = source.bytes;
        let committed = self.stage.commit(source, stages)?;
        Ok(Outcome::Loaded {
            rows: committed.rows,
            bad_rows,
            blank_lines: self.scanner.blank_lines(),
            source_bytes,
            table_bytes: committed.table_bytes,
            before: committed.before,
            server: committed.server,
        })
    }
}

/// How many bad rows are allowed among `rows`: the share rounded down, except that a whole number
/// which floating-point error just misses is kept (29% of 100 rows are 29).
pub fn allowed_bad(rows: u64, share: f64) -> u64 {
    let exact = rows as f64 * share;
    (exact * (1.0 + 4.0 * f64::EPSILON)) as u64
}
