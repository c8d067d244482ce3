//! One archive's way into the table.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use dyno_ingest::load::lanes;
use dyno_ingest::load::{
    ArchiveReport, Input, Options, Outcome, Progress, Stage, StageSeconds, Target, allowed_bad,
};
use dyno_ingest::scan::{BadRow, Block, MAX_LINE};
use dyno_ingest::source::{Source, TextSource, hash_file};
use dyno_ingest::table::SourceIdentity;
use dyno_ingest::{Error, Result};

use super::Room;
use crate::feed::{Feed, Line, Reader, Refusal};
use crate::recognise;
use crate::rows::Rows;

/// Rows of a chunk when memory allows: enough that a dictionary is small beside its codes.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// One archive to load.
pub(super) struct Job<'a> {
    pub(super) feed: &'static dyn Feed,
    pub(super) identity: String,
    pub(super) target: &'a dyn Target<Rows>,
    pub(super) options: &'a Options,
    pub(super) progress: &'a Progress,
    pub(super) room: Room,
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
        let mut text = self.open(input)?;
        // What is not hashed as it is read is hashed before, and the source refuses a file that
        // changed meanwhile.
        let hashed = match text.identity_is_of_file() {
            true => None,
            false => Some(hash_file(path)?),
        };
        let mut sink = Sink::new(self, path)?;
        self.read(&mut text, &mut sink, stages)?;
        warnings.extend(text.warning());
        warnings.extend(
            sink.reader
                .end()
                .map(|odd| format!("{}: {odd}", path.display())),
        );
        let (bytes, hash) = hashed.unwrap_or_else(|| text.identity());
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

    fn open(&self, input: Input) -> Result<TextSource> {
        let total = Some(self.progress.bytes.clone());
        let path = input.path().to_owned();
        match input.open(self.options.engine, total)? {
            Source::Text(text) => Ok(*text),
            Source::Parquet(..) => Err(Error::Refused {
                path,
                reason: format!("it is Parquet; feed {} comes as text", self.feed.name()),
            }),
        }
    }

    fn read(
        &self,
        text: &mut TextSource,
        sink: &mut Sink<'_>,
        stages: &mut StageSeconds,
    ) -> Result<()> {
        let mut block = Block::default();
        let mut first = true;
        loop {
            let begun = Instant::now();
            let more = text.next_block(&mut block)?;
            stages.inflate += begun.elapsed().as_secs_f64();
            if !more {
                return Ok(());
            }
            if std::mem::take(&mut first)
                && let Some(other) = recognise::other_than(self.feed, block.text())
            {
                return Err(sink.refused(format!(
                    "it looks like feed {other}, not {}; load it with --feed {other}",
                    self.feed.name()
                )));
            }
            sink.take(&block, stages)?;
        }
    }
}

/// Lines to rows to chunks to the stage.
struct Sink<'a> {
    job: &'a Job<'a>,
    path: PathBuf,
    stage: Box<dyn Stage<Rows> + 'a>,
    reader: Box<dyn Reader>,
    rows: Rows,
    lines: u64,
    empty_lines: u64,
    done_rows: u64,
    /// Line and reason of the first bad row.
    first_bad: Option<(u64, String)>,
}

impl<'a> Sink<'a> {
    fn new(job: &'a Job<'a>, path: &Path) -> Result<Self> {
        Ok(Sink {
            job,
            path: path.to_owned(),
            stage: job.target.stage(&job.identity, path, ROW_GROUP_ROWS)?,
            reader: job.feed.reader(),
            rows: Rows::new(job.feed.fields()),
            lines: 0,
            empty_lines: 0,
            done_rows: 0,
            first_bad: None,
        })
    }

    fn refused(&self, reason: String) -> Error {
        Error::Refused {
            path: self.path.clone(),
            reason,
        }
    }

    fn take(&mut self, block: &Block, stages: &mut StageSeconds) -> Result<()> {
        self.job.progress.check()?;
        let mut begun = Instant::now();
        let mut before = self.rows.len();
        let text = block.text();
        // A block ends with a line feed, behind which there is no line.
        for line in text[..text.len() - 1].split(|&byte| byte == b'\n') {
            self.line(line)?;
            if self.rows.len() >= ROW_GROUP_ROWS || self.rows.bytes() > self.job.room.row_bytes {
                self.added(before);
                stages.parse += begun.elapsed().as_secs_f64();
                self.flush(stages)?;
                (before, begun) = (0, Instant::now());
            }
        }
        self.added(before);
        stages.parse += begun.elapsed().as_secs_f64();
        if self.rows.dictionary_bytes() > self.job.room.dictionary_bytes {
            self.flush(stages)?;
            self.rows.clear_dictionaries();
        }
        Ok(())
    }

    fn added(&self, before: usize) {
        let added = (self.rows.len() - before) as u64;
        self.job.progress.rows.fetch_add(added, Ordering::Relaxed);
    }

    fn line(&mut self, raw: &[u8]) -> Result<()> {
        self.lines += 1;
        let line = raw.strip_suffix(b"\r").unwrap_or(raw);
        let read = if line.len() > MAX_LINE {
            self.reader.passed_over();
            Err(Refusal::Line(format!(
                "the line has more than {MAX_LINE} bytes"
            )))
        } else {
            self.reader.line(line, &mut self.rows)
        };
        match read {
            Ok(Line::Rows) => {}
            Ok(Line::Nothing) => self.empty_lines += 1,
            Err(Refusal::Line(reason)) => {
                self.first_bad
                    .get_or_insert_with(|| (self.lines, reason.clone()));
                self.stage.put_aside(&BadRow {
                    line: self.lines,
                    reason,
                    raw,
                });
            }
            Err(Refusal::Archive(reason)) => {
                return Err(self.refused(format!("line {}: {reason}", self.lines)));
            }
        }
        Ok(())
    }

    /// Hands the rows so far on as one chunk.
    fn flush(&mut self, stages: &mut StageSeconds) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.done_rows += self.stage.take(&self.rows, stages)?;
        self.rows.clear();
        Ok(())
    }

    /// Hands on what is left, judges the bad rows and commits.
    fn finish(mut self, source: SourceIdentity, stages: &mut StageSeconds) -> Result<Outcome> {
        self.flush(stages)?;
        let bad_rows = self.stage.bad_rows();
        let rows = self.done_rows + bad_rows;
        let allowed = allowed_bad(rows, self.job.options.max_bad);
        if bad_rows > allowed {
            return Err(Error::TooManyBad {
                path: self.path,
                feed: self.job.feed.name(),
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
            blank_lines: self.empty_lines,
            source_bytes,
            table_bytes: committed.table_bytes,
            before: committed.before,
            server: committed.server,
        })
    }
}
