//! Loads one archive into the table.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Instant;

use super::format::{ArchiveReader, Archives};
use super::report::{ArchiveReport, Outcome, StageSeconds};
use super::target::{Chunk, Stage, Target};
use super::{Input, Options, Progress, ROW_GROUP_ROWS, WorkerMemory};
use crate::scan::{BadRow, Block};
use crate::source::{Source, TextSource, hash_file};
use crate::table::SourceIdentity;
use crate::{Error, Result};

/// Bytes that the dictionary pages of a row group may have for each of its rows. A row group has
/// its dictionaries whole, so beyond this they are cleared with the next one.
const DICTIONARY_BYTES_PER_ROW: usize = 16;

/// The parameters of one archive's load.
pub(super) struct Job<'a, R: ArchiveReader> {
    pub(super) archives: &'a Archives<'a, R>,
    pub(super) identity: String,
    pub(super) target: &'a dyn Target<R::Chunk>,
    pub(super) options: &'a Options,
    pub(super) progress: &'a Progress,
    pub(super) memory: WorkerMemory,
    /// Whether inflating gets a thread of its own.
    pub(super) spread: bool,
}

impl<R: ArchiveReader> Job<'_, R> {
    /// Loads the archive and reports the result.
    pub(super) fn run(self, input: Input) -> ArchiveReport {
        let started = Instant::now();
        let path = input.path().to_owned();
        let mut stages = StageSeconds::default();
        let mut warnings = Vec::new();
        let loaded = self.load(input, &path, &mut stages, &mut warnings);
        let outcome = loaded.unwrap_or_else(Outcome::Failed);
        // It is not an error, because a day without a spot is a file with only a header. But it may
        // also be an incomplete download.
        if let Outcome::Loaded { rows: 0, .. } = outcome {
            warnings.push(format!(
                "{}: it has no good row, so archive {} is empty in the table",
                path.display(),
                self.identity
            ));
        }
        ArchiveReport {
            path,
            identity: self.identity,
            outcome,
            warnings,
            stages,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    fn load(
        &self,
        input: Input,
        path: &Path,
        stages: &mut StageSeconds,
        warnings: &mut Vec<String>,
    ) -> Result<Outcome> {
        self.progress.check()?;
        if let Input::File(path) = &input
            && let Some(stored) = self.target.stored(&self.identity)?
            && let Some(rows) = stored.rows_of_file(path)?
        {
            // Nothing needs loading, so the file's bytes count as done.
            self.progress
                .bytes
                .fetch_add(stored.bytes, Ordering::Relaxed);
            return Ok(Outcome::AlreadyThere { rows });
        }
        let total = Some(self.progress.bytes.clone());
        let source = input.open(self.options.engine, total)?;
        let mut sink = Sink {
            feed: self.archives.feed,
            path,
            progress: self.progress,
            memory: self.memory,
            stage: self.target.stage(&self.identity, path)?,
            reader: (self.archives.reader)(),
            rows: 0,
            first_bad: None,
        };
        let (bytes, hash) = self.read(source, &mut sink, stages, warnings)?;
        // The hash of a stream is known only at its end.
        let stored = self.target.stored(&self.identity)?;
        if let Some(rows) = stored.and_then(|stored| stored.rows_of(bytes, &hash)) {
            return Ok(Outcome::AlreadyThere { rows });
        }
        let source = SourceIdentity {
            path: path.display().to_string(),
            bytes,
            hash,
        };
        sink.finish(source, self.options.max_bad, stages)
    }

    /// Reads all of the source into the sink. Returns the length and the hash of the bytes that
    /// were read.
    fn read(
        &self,
        source: Source,
        sink: &mut Sink<'_, R>,
        stages: &mut StageSeconds,
        warnings: &mut Vec<String>,
    ) -> Result<(u64, String)> {
        let mut text = match source {
            Source::Text(text) => text,
            // Hashed in a pass of its own, by the file's name; the witness compares the file before
            // and after both passes.
            Source::Parquet(file, witness) => {
                R::read_parquet(sink, file, stages)?;
                let (bytes, hash) = hash_file(sink.path)?;
                witness.unchanged()?;
                self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
                return Ok((bytes, hash));
            }
        };
        // What is not hashed while it is read is hashed before, and the source refuses a file that
        // changed meanwhile.
        let hashed = if text.identity_is_of_file() {
            None
        } else {
            Some(hash_file(sink.path)?)
        };
        if self.spread {
            two_stages(&mut text, sink, stages)?
        } else {
            one_stage(&mut text, sink, stages)?
        }
        warnings.extend(text.warning());
        let odd = sink.reader.end();
        warnings.extend(odd.map(|odd| format!("{}: {odd}", sink.path.display())));
        Ok(hashed.unwrap_or_else(|| text.identity()))
    }
}

/// Inflates and parses in turn, on one thread.
fn one_stage<R: ArchiveReader>(
    text: &mut TextSource,
    sink: &mut Sink<'_, R>,
    stages: &mut StageSeconds,
) -> Result<()> {
    let mut block = Block::default();
    loop {
        let begun = Instant::now();
        let more = text.next_block(&mut block)?;
        stages.inflate += begun.elapsed().as_secs_f64();
        if !more {
            return Ok(());
        }
        sink.read(&block, stages)?;
    }
}

/// Inflates on a thread of its own, at most a fixed number of blocks ahead.
fn two_stages<R: ArchiveReader>(
    text: &mut TextSource,
    sink: &mut Sink<'_, R>,
    stages: &mut StageSeconds,
) -> Result<()> {
    // This channel is what bounds the memory: when it is full, the inflating thread waits. The
    // channel for empty blocks needs no bound, because it only returns blocks that came through
    // this one.
    let (full_tx, full_rx) = mpsc::sync_channel::<Block>(sink.memory.blocks);
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
            taken = sink.read(&block, stages);
            if taken.is_err() {
                break;
            }
            // An error means that the inflating side has ended and needs no more blocks.
            let _ = empty_tx.send(block);
        }
        // If this side has failed, the other one may be waiting in `send`. It wakes up when the
        // receiver is gone; otherwise the join below would wait for ever.
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

/// Collects the rows of an archive into chunks and passes those to the stage.
pub struct Sink<'a, R: ArchiveReader> {
    feed: &'static str,
    path: &'a Path,
    progress: &'a Progress,
    memory: WorkerMemory,
    stage: Box<dyn Stage<R::Chunk> + 'a>,
    reader: R,
    rows: u64,
    /// Line number and reason of the first bad row.
    first_bad: Option<(u64, String)>,
}

impl<'a, R: ArchiveReader> Sink<'a, R> {
    pub(super) fn feed(&self) -> &'static str {
        self.feed
    }

    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    pub(super) fn refused(&self, reason: String) -> Error {
        Error::Refused {
            path: self.path.to_owned(),
            reason,
        }
    }

    fn read(&mut self, block: &Block, stages: &mut StageSeconds) -> Result<()> {
        self.progress.check()?;
        let begun = Instant::now();
        let before = self.reader.chunk().rows();
        let (stage, first_bad) = (&mut self.stage, &mut self.first_bad);
        let read = self.reader.read(block, &mut |row| {
            first_bad.get_or_insert_with(|| (row.line, row.reason.clone()));
            stage.put_aside(&row);
        });
        read.map_err(|reason| self.refused(reason))?;
        let added = self.reader.chunk().rows() - before;
        self.progress
            .rows
            .fetch_add(added as u64, Ordering::Relaxed);
        stages.parse += begun.elapsed().as_secs_f64();
        self.flush_when_full(stages)?;
        Ok(())
    }

    /// The rows, for readers that fill them directly.
    pub(super) fn chunk(&mut self) -> &mut R::Chunk {
        self.reader.chunk()
    }

    pub(super) fn put_aside(&mut self, row: &BadRow<'_>) {
        self.first_bad
            .get_or_insert_with(|| (row.line, row.reason.clone()));
        self.stage.put_aside(row);
    }

    pub(super) fn added(&self, rows: usize) -> Result<()> {
        self.progress.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.progress.check()
    }

    /// Passes a chunk on if it is full. Returns whether codes begin anew after it.
    pub(super) fn flush_when_full(&mut self, stages: &mut StageSeconds) -> Result<bool> {
        let memory = self.memory;
        let chunk = self.reader.chunk();
        if chunk.rows() >= ROW_GROUP_ROWS
            || chunk.size() >= memory.size
            || chunk.dictionary_bytes().1 > memory.dictionary_bytes
        {
            return self.flush(stages);
        }
        Ok(false)
    }

    /// Passes the rows so far on as one chunk. Returns whether codes begin anew after it.
    fn flush(&mut self, stages: &mut StageSeconds) -> Result<bool> {
        let chunk = self.reader.chunk();
        let rows = chunk.rows();
        if rows == 0 {
            return Ok(false);
        }
        self.rows += self.stage.append(chunk, stages)?;
        chunk.clear();
        let (page_bytes, heap_bytes) = chunk.dictionary_bytes();
        // After a clear each string has to be looked up and stored again. That pays when the
        // dictionaries of the next row group would weigh more than its rows.
        let anew = page_bytes > rows * DICTIONARY_BYTES_PER_ROW
            || heap_bytes > self.memory.dictionary_bytes / 2;
        if anew {
            chunk.clear_dictionaries();
        }
        Ok(anew)
    }

    /// Passes on what is left, checks the number of bad rows, and commits.
    fn finish(
        mut self,
        source: SourceIdentity,
        max_bad: f64,
        stages: &mut StageSeconds,
    ) -> Result<Outcome> {
        self.flush(stages)?;
        // A database may put rows of the last chunk into quarantine, too, so the chunk goes first
        // and the count comes after it.
        let bad_rows = self.stage.bad_rows();
        let rows = self.rows + bad_rows;
        let allowed = allowed_bad(rows, max_bad);
        if bad_rows > allowed {
            return Err(Error::TooManyBad {
                path: self.path.to_owned(),
                feed: self.feed,
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
            blank_lines: self.reader.blank_lines(),
            source_bytes,
            table_bytes: committed.table_bytes,
            before: committed.before,
            server: committed.server,
        })
    }
}

/// How many bad rows are allowed among `rows`: the share rounded down, except that a whole number
/// which floating-point error just misses is kept (29% of 100 rows are 29).
fn allowed_bad(rows: u64, share: f64) -> u64 {
    let exact = rows as f64 * share;
    (exact * (1.0 + 4.0 * f64::EPSILON)) as u64
}
