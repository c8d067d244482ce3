//! Reads archives line by line into rows.

use dyno_ingest::load::{ArchiveReader, Chunk};
use dyno_ingest::scan::{BadRow, Block, MAX_LINE};

use crate::feed::{Feed, Line, Reader, Refusal, RowFormat};
use crate::field::Kind;
use crate::recognise;
use crate::rows::{Rows, Values};

/// Memory that a worker needs at least: blocks, dictionaries, a small row group and its pages.
const LEAST_WORKER_BYTES: usize = 32 << 20;

/// The most bytes of a row group, however much memory there is. The texts of a column are found by
/// 32-bit offsets, and the lengths of Parquet's pages have 31 bits.
const MOST_CHUNK_BYTES: usize = 1 << 30;

/// Reads the lines of one archive.
pub(super) struct LineReader {
    feed: &'static Feed,
    reader: Box<dyn Reader>,
    rows: Rows,
    lines: u64,
    empty: u64,
    /// Whether it goes on with a topic, so that nothing may refuse it as a whole.
    goes_on: bool,
}

impl LineReader {
    /// For an archive of `feed`, whose format is `format`. One that goes on with a topic is never
    /// refused as a whole: its records come from other programs, and if one of them could refuse
    /// its batch, the same batch would be read and refused for ever.
    pub(super) fn new(
        feed: &'static Feed,
        format: &'static RowFormat,
        goes_on: bool,
    ) -> LineReader {
        LineReader {
            feed,
            reader: (format.reader)(),
            rows: Rows::new(format.fields),
            lines: 0,
            empty: 0,
            goes_on,
        }
    }

    /// Appends the rows of one line. Returns why it is bad, if it is.
    fn line(&mut self, raw: &[u8]) -> Result<(), Refusal> {
        let line = raw.strip_suffix(b"\r").unwrap_or(raw);
        if line.len() > MAX_LINE {
            // The line is too long to be read, and its rest may be gone. The reader counts it, so
            // that the numbers of later lines stay right.
            self.reader.passed_over();
            let reason = format!("the line has more than {MAX_LINE} bytes");
            return Err(Refusal::Line(reason));
        }
        if self.reader.line(line, &mut self.rows)? == Line::Nothing {
            self.empty += 1;
        }
        Ok(())
    }
}

impl ArchiveReader for LineReader {
    type Chunk = Rows;

    fn chunk(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn read(&mut self, block: &Block, bad: &mut dyn FnMut(BadRow<'_>)) -> Result<(), String> {
        let text = block.text();
        let feed = self.feed;
        // A file of another feed would have only bad rows. It is recognised by its first lines, and
        // the message can say which feed it is.
        if self.lines == 0
            && !self.goes_on
            && let Some(other) = recognise::other_than(feed, text)
        {
            return Err(format!(
                "it looks like feed {other}, not {}; load it with --feed {other}",
                feed.name
            ));
        }
        // A block ends with a line feed, behind which there is no line.
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text) {
            let raw = &text[start..end];
            start = end + 1;
            self.lines += 1;
            let line = self.lines;
            match self.line(raw) {
                Ok(()) => {}
                Err(Refusal::Archive(reason)) if !self.goes_on => {
                    return Err(format!("line {line}: {reason}"));
                }
                Err(Refusal::Line(reason) | Refusal::Archive(reason)) => {
                    bad(BadRow { line, reason, raw });
                }
            }
        }
        Ok(())
    }

    fn blank_lines(&self) -> u64 {
        self.empty
    }

    fn end(&mut self) -> Option<String> {
        self.reader.end()
    }
}

impl Chunk for Rows {
    fn least_bytes(_each: usize) -> usize {
        LEAST_WORKER_BYTES
    }

    fn most(bytes: usize, each: usize) -> usize {
        (bytes / each.max(1)).min(MOST_CHUNK_BYTES)
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn size(&self) -> usize {
        self.bytes()
    }

    fn times_s(&self) -> Option<(i64, i64)> {
        let (_, column) = self
            .columns()
            .find(|(field, _)| field.name == "timestamp" && field.kind == Kind::Moment)?;
        let Values::Integers(times_ms) = &column.values else {
            return None;
        };
        let ends = times_ms.iter().min().zip(times_ms.iter().max());
        // Times before 1970 are negative, and must be rounded down like the others.
        ends.map(|(earliest, latest)| (earliest.div_euclid(1000), latest.div_euclid(1000)))
    }

    fn dictionary_bytes(&self) -> (usize, usize) {
        Rows::dictionary_bytes(self)
    }

    fn clear(&mut self) {
        Rows::clear(self);
    }

    fn clear_dictionaries(&mut self) {
        Rows::clear_dictionaries(self);
    }
}
