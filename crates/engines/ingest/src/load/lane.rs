//! One archive's way into the table.
//!
//! This module uses `unsafe` for one system call, `sync_file_range`, that the standard library lacks.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use dyno_formats::parquet_write::FileWriter;

use super::quarantine::Quarantine;
use super::report::{ArchiveReport, Outcome, StageSeconds};
use super::{Input, Options, Progress, Room, encode, locked, parquet_in};
use crate::scan::{Block, Columns, Scanner};
use crate::source::{Source, TextSource, hash_file, open_path, open_stream};
use crate::table::{DataFile, SourceIdentity, Staged, TableWriter};
use crate::{Error, Result};

/// Blocks between the two stages of a file: enough to ride out a row group being written.
const BLOCKS_IN_FLIGHT: usize = 64;
/// Dictionary pages of a row group, which has them whole, may have this much for each of its rows
/// when it is full; beyond that the dictionaries start anew with the next row group.
const DICTIONARY_BYTES_PER_ROW: usize = 16;

/// One archive to load.
pub(super) struct Job<'a> {
    pub(super) identity: String,
    pub(super) writer: &'a Mutex<TableWriter>,
    pub(super) options: &'a Options,
    pub(super) progress: &'a Progress,
    pub(super) room: Room,
    /// Whether inflating has a thread of its own.
    pub(super) spread: bool,
}

impl Job<'_> {
    pub(super) fn run(self, input: Input) -> ArchiveReport {
        let started = Instant::now();
        let path = input.path().to_owned();
        let mut stages = StageSeconds::default();
        let mut warnings = Vec::new();
        let outcome = self
            .load(input, &path, &mut stages, &mut warnings)
            .unwrap_or_else(Outcome::Failed);
        let seconds = started.elapsed().as_secs_f64();
        ArchiveReport {
            path,
            identity: self.identity,
            outcome,
            warnings,
            stages,
            seconds,
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
            && let Some(rows) = self.known(path)?
        {
            let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
            self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            return Ok(Outcome::AlreadyThere { rows });
        }
        let total = Some(self.progress.bytes.clone());
        let source = match input {
            Input::File(path) => open_path(&path, self.options.engine, total)?,
            Input::Stream(name, reader) => Source::Text(Box::new(open_stream(
                &name,
                reader,
                self.options.engine,
                total,
            )?)),
        };
        let mut sink = Sink::new(self, path)?;
        // Hashed before they are read: should such a file change meanwhile, the next load sees
        // another hash and reads it again.
        let hashed = match &source {
            Source::Text(text) if text.identity_is_of_file() => None,
            _ => Some(hash_file(path)?),
        };
        let (bytes, hash) = match source {
            Source::Parquet(file) => {
                parquet_in::read(path, file, &mut sink, stages)?;
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
        // A stream is known only by its end.
        if let Some(rows) = self.rows_of(bytes, &hash) {
            return Ok(Outcome::AlreadyThere { rows });
        }
        let source = SourceIdentity {
            path: path.display().to_string(),
            bytes,
            hash,
        };
        sink.finish(source, stages)
    }

    /// Rows of this very file in the table, when it is there already.
    fn known(&self, path: &Path) -> Result<Option<u64>> {
        let meta = std::fs::metadata(path).map_err(|e| Error::io("open", path, e))?;
        let same_length = locked(self.writer)
            .manifest()
            .archives
            .get(&self.identity)
            .is_some_and(|archive| archive.source.bytes == meta.len());
        if !same_length {
            return Ok(None);
        }
        let (bytes, hash) = hash_file(path)?;
        Ok(self.rows_of(bytes, &hash))
    }

    /// Rows that the table has of the archive when they came from these very bytes. Data files that
    /// somebody removed or cut count as not there, so that a load mends the table.
    fn rows_of(&self, bytes: u64, hash: &str) -> Option<u64> {
        let writer = locked(self.writer);
        let archive = writer.manifest().archives.get(&self.identity)?;
        let whole = |file: &DataFile| {
            let meta = std::fs::metadata(writer.table().join(&file.path));
            meta.is_ok_and(|meta| meta.len() == file.bytes)
        };
        let same = archive.source.bytes == bytes && archive.source.hash == hash;
        (same && archive.files.iter().all(whole)).then_some(archive.rows)
    }
}

/// Inflates and parses in turn.
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

/// Inflates on a thread of its own, a bounded number of blocks ahead.
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
                // The other side hangs up when it fails, and says why itself.
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
            // When the inflating side has ended there is nobody to use the block again.
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

/// Rows to row groups to the staged file.
pub(super) struct Sink<'a> {
    job: &'a Job<'a>,
    path: PathBuf,
    relative: String,
    file_path: PathBuf,
    file: Option<FileWriter<File>>,
    quarantine_relative: String,
    quarantine: Quarantine,
    scanner: Scanner,
    encoder: encode::Encoder,
    rows: u64,
    times: Option<(u32, u32)>,
}

impl<'a> Sink<'a> {
    fn new(job: &'a Job<'a>, path: &Path) -> Result<Self> {
        let writer = locked(job.writer);
        let relative = writer.staging_name("data", &job.identity, "parquet");
        let quarantine_relative = writer.staging_name("quarantine", &job.identity, "ndjson");
        let file_path = writer.table().join(&relative);
        let quarantine = Quarantine::new(writer.table().join(&quarantine_relative), path);
        Ok(Sink {
            job,
            path: path.to_owned(),
            relative,
            file_path,
            file: None,
            quarantine_relative,
            quarantine,
            scanner: Scanner::default(),
            encoder: encode::Encoder::default(),
            rows: 0,
            times: None,
        })
    }

    fn take(&mut self, block: &Block, stages: &mut StageSeconds) -> Result<()> {
        self.job.progress.check()?;
        let begun = Instant::now();
        let before = self.scanner.columns.len();
        self.scanner
            .scan(block, &mut |row| self.quarantine.add(&row));
        let added = self.scanner.columns.len() - before;
        self.job
            .progress
            .rows
            .fetch_add(added as u64, Ordering::Relaxed);
        stages.parse += begun.elapsed().as_secs_f64();
        self.flush_when_full(stages)?;
        Ok(())
    }

    /// For readers that fill the columns themselves.
    pub(super) fn columns(&mut self) -> &mut Columns {
        &mut self.scanner.columns
    }

    pub(super) fn quarantine(&mut self) -> &mut Quarantine {
        &mut self.quarantine
    }

    pub(super) fn added(&self, rows: usize) -> Result<()> {
        self.job
            .progress
            .rows
            .fetch_add(rows as u64, Ordering::Relaxed);
        self.job.progress.check()
    }

    /// Writes a row group when it is time to; tells whether codes begin anew behind it.
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

    /// Writes the rows so far as one row group; tells whether codes begin anew behind it.
    fn flush(&mut self, stages: &mut StageSeconds) -> Result<bool> {
        let columns = &mut self.scanner.columns;
        if columns.is_empty() {
            return Ok(false);
        }
        let begun = Instant::now();
        let (mut earliest, mut latest) = self.times.unwrap_or((u32::MAX, 0));
        for &second in &columns.timestamp {
            earliest = earliest.min(second);
            latest = latest.max(second);
        }
        self.times = Some((earliest, latest));
        self.rows += columns.len() as u64;
        let encoded = self.encoder.encode(columns);
        stages.encode += begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        let failed = |e| Error::io("write", &self.file_path, e);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = File::create(&self.file_path)
                    .map_err(|e| Error::io("create", &self.file_path, e))?;
                none.insert(FileWriter::new(file, encode::fields(), Vec::new()).map_err(failed)?)
            }
        };
        file.row_group(encoded).map_err(failed)?;
        begin_writeback(file.output());
        stages.write += begun.elapsed().as_secs_f64();

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

    /// Ends the file, judges the bad rows and commits.
    fn finish(mut self, source: SourceIdentity, stages: &mut StageSeconds) -> Result<Outcome> {
        self.flush(stages)?;
        let begun = Instant::now();
        let bad_rows = self.quarantine.rows();
        let quarantined = self.quarantine.finish()?;
        let allowed = allowed_bad(self.rows + bad_rows, self.job.options.max_bad);
        if bad_rows > allowed {
            return Err(self.too_many_bad(bad_rows, allowed)?);
        }
        let mut files = Vec::new();
        let mut table_bytes = 0;
        if let Some(file) = self.file.take() {
            let failed = |e| Error::io("write", &self.file_path, e);
            let (file, summary) = file.finish().map_err(failed)?;
            file.sync_all()
                .map_err(|e| Error::io("sync", &self.file_path, e))?;
            let (earliest, latest) = self.times.unwrap_or_default();
            table_bytes = summary.bytes;
            files.push(DataFile {
                path: self.relative.clone(),
                rows: summary.rows,
                bytes: summary.bytes,
                time_min_s: earliest.into(),
                time_max_s: latest.into(),
            });
        }
        let source_bytes = source.bytes;
        let mut writer = locked(self.job.writer);
        let replaced = writer.manifest().archives.contains_key(&self.job.identity);
        writer.commit(Staged {
            archive: self.job.identity.clone(),
            source,
            files,
            rows: self.rows,
            bad_rows,
            quarantine: quarantined.then(|| self.quarantine_relative.clone()),
        })?;
        stages.write += begun.elapsed().as_secs_f64();
        Ok(Outcome::Loaded {
            rows: self.rows,
            bad_rows,
            blank_lines: self.scanner.blank_lines(),
            source_bytes,
            table_bytes,
            replaced,
        })
    }

    fn too_many_bad(&self, bad: u64, allowed: u64) -> Result<Error> {
        // A name without a generation is nobody's to remove: a person looks at it.
        let stem = self.quarantine_relative.trim_end_matches(".ndjson");
        let stem = stem
            .rsplit_once('.')
            .map_or(stem, |(name, _generation)| name);
        let kept = locked(self.job.writer)
            .table()
            .join(format!("{stem}.rejected.ndjson"));
        self.quarantine.keep_as(&kept)?;
        Ok(Error::TooManyBad {
            path: self.path.clone(),
            bad,
            rows: self.rows + bad,
            allowed,
            quarantine: kept,
        })
    }
}

/// Bad rows that `rows` rows may have: the share rounded down, but not below a whole number that
/// the share's own rounding error just misses (29% of 100 rows are 29).
fn allowed_bad(rows: u64, share: f64) -> u64 {
    let exact = rows as f64 * share;
    (exact * (1.0 + 4.0 * f64::EPSILON)) as u64
}

/// Lets the kernel begin to write what the final sync would otherwise wait for in one piece.
fn begin_writeback(file: &File) {
    // SAFETY: the descriptor is open; a failure costs only time, so its result is not looked at.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}
