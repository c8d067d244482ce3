//! Text in blocks of whole lines, inflated straight into the buffer that the scanner reads.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dyno_codec::inflate::{
    DeflateStream, Engine, GzipStream, HISTORY, InflateError, OUTPUT_MARGIN,
};

use super::hashing::{HashingReader, Passed};
use super::witness::Witness;
use super::zip_entries::Entry;
use crate::scan::{Block, MARGIN, MAX_LINE};
use crate::{Error, Result};

/// The most text in one block: with its index and its columns it fits a second-level cache.
pub(crate) const BLOCK: usize = 256 * 1024;
const _: () = assert!(BLOCK > 2 * MAX_LINE);
/// How many bytes of an over-long line are kept, so that it is still too long if it ends in a
/// carriage return.
const CUT: usize = MAX_LINE + 2;

type Reader = Box<dyn Read + Send>;

enum Packing {
    Gzip(GzipStream<Reader>),
    Plain { reader: Reader, finished: bool },
    Zip(ZipText),
}

/// A source of blocks.
pub struct TextSource {
    path: PathBuf,
    packing: Packing,
    passed: Passed,
    /// The beginning of the next block: history for matches, ending in the partial line.
    tail: Vec<u8>,
    /// Length of the partial line at the end of `tail`.
    partial: usize,
    /// Set inside a line that is too long to be a row; its rest is discarded.
    skipping: bool,
    ended: bool,
    /// Tells whether the file changed while it was read; `None` for a stream.
    witness: Option<Witness>,
}

impl TextSource {
    pub(super) fn gzip(path: PathBuf, reader: Reader, engine: Engine, passed: Passed) -> Self {
        TextSource::new(path, Packing::Gzip(GzipStream::new(reader, engine)), passed)
    }

    pub(super) fn plain(path: PathBuf, reader: Reader, passed: Passed) -> Self {
        TextSource::new(
            path,
            Packing::Plain {
                reader,
                finished: false,
            },
            passed,
        )
    }

    pub(super) fn zip(
        entries: Vec<Entry>,
        file: File,
        engine: Engine,
        total: Option<Arc<AtomicU64>>,
    ) -> Result<Self> {
        let passed = Passed::default();
        let path = entries[0].name.clone();
        let text = ZipText::new(entries, file, engine, passed.clone(), total)?;
        Ok(TextSource::new(path, Packing::Zip(text), passed))
    }

    fn new(path: PathBuf, packing: Packing, passed: Passed) -> Self {
        let (tail, partial) = (Vec::new(), 0);
        TextSource {
            path,
            packing,
            passed,
            tail,
            partial,
            skipping: false,
            ended: false,
            witness: None,
        }
    }

    /// The same source, whose end is accepted only if the file has not changed.
    pub(super) fn watched_by(mut self, witness: Witness) -> Self {
        self.witness = Some(witness);
        self
    }

    /// If the file was cut meanwhile, its end looks like the end of the archive, so the file itself
    /// is checked.
    fn judge_end(&self) -> Result<()> {
        match &self.witness {
            None => Ok(()),
            // The hash of a ZIP archive is computed in a pass of its own, by the file's name.
            Some(witness) if !self.identity_is_of_file() => witness.unchanged(),
            Some(witness) => witness.read_to_end(self.passed.bytes()),
        }
    }

    /// Length and hash of the bytes as stored. Complete once [`Self::next_block`] has returned
    /// false, and for a ZIP archive not that of the whole file (see [`super::hash_file`]).
    pub fn identity(&self) -> (u64, String) {
        (self.passed.bytes(), self.passed.hash())
    }

    /// Whether [`Self::identity`] is that of the whole file.
    pub fn identity_is_of_file(&self) -> bool {
        !matches!(self.packing, Packing::Zip(_))
    }

    /// Something odd about the source that does not stop it, in a sentence.
    pub fn warning(&self) -> Option<String> {
        let Packing::Gzip(stream) = &self.packing else {
            return None;
        };
        stream.garbage().map(|garbage| {
            format!(
                "{}: {} bytes behind the last gzip member, from byte {} on, were ignored",
                self.path.display(),
                garbage.bytes,
                garbage.offset
            )
        })
    }

    /// Reads the next lines into `block`, whose memory is reused. Returns `false` at the end.
    ///
    /// # Errors
    /// [`Error::Input`] when the source is truncated, corrupt or changed while it was read,
    /// [`Error::Io`].
    pub fn next_block(&mut self, block: &mut Block) -> Result<bool> {
        while !self.ended {
            // The decoder copies matches from the text directly before its output, so the tail of
            // the last block goes in front of the fresh text, even where its lines have been
            // returned already.
            let kept = self.tail.len();
            let end = MARGIN + kept + BLOCK;
            if block.bytes.len() < end + OUTPUT_MARGIN + MARGIN {
                block.bytes.resize(end + OUTPUT_MARGIN + MARGIN, 0);
            }
            block.bytes[MARGIN..MARGIN + kept].copy_from_slice(&self.tail);
            let fresh = MARGIN + kept;
            let mut at = self.fill(&mut block.bytes[..end + OUTPUT_MARGIN], fresh)?;
            let mut start = fresh - self.partial;
            // Nothing came although there was room: this is the end of the source, or the place
            // where the file was cut.
            if at == fresh {
                self.judge_end()?;
                self.ended = true;
            }
            if self.skipping {
                match block.bytes[fresh..at]
                    .iter()
                    .position(|&byte| byte == b'\n')
                {
                    Some(line_feed) => {
                        self.skipping = false;
                        start = fresh + line_feed + 1;
                    }
                    None => start = at,
                }
            }
            // The last line may lack its line feed, and every line of a block has one. The margin
            // has room for it.
            if self.ended && at > start {
                block.bytes[at] = b'\n';
                at += 1;
            }
            let lines_end = last_line_end(&block.bytes[start..at]).map_or(start, |n| start + n);
            self.keep_tail(&block.bytes, lines_end, at);
            // Without this, a file without line feeds would be gathered in memory whole.
            if at - lines_end >= CUT && !self.ended {
                return Ok(self.cut_long_line(block, start, lines_end));
            }
            if lines_end > start {
                (block.start, block.end) = (start, lines_end);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the lines before an over-long line, or else its beginning, which is long enough for
    /// the scanner to refuse it. Its rest is skipped.
    fn cut_long_line(&mut self, block: &mut Block, start: usize, line: usize) -> bool {
        if line > start {
            (block.start, block.end) = (start, line);
            return true;
        }
        let end = line + CUT;
        block.bytes[end] = b'\n';
        (block.start, block.end) = (line, end + 1);
        self.skipping = true;
        // The tail stays as history for the decoder, but the next block's first line does not begin
        // in it.
        self.partial = 0;
        true
    }

    /// Keeps what the next block begins with.
    fn keep_tail(&mut self, bytes: &[u8], lines_end: usize, at: usize) {
        self.partial = at - lines_end;
        let history = match self.packing {
            Packing::Plain { .. } => 0,
            _ => HISTORY.min(at - MARGIN),
        };
        self.tail.clear();
        self.tail
            .extend_from_slice(&bytes[at - history.max(self.partial)..at]);
    }

    /// Fills `bytes[at..]` as far as possible; returns `at` only at the end of the source.
    fn fill(&mut self, bytes: &mut [u8], at: usize) -> Result<usize> {
        let path = &self.path;
        match &mut self.packing {
            Packing::Gzip(stream) => stream
                .inflate_into(bytes, at)
                .map_err(|e| input_error(path, 0, e)),
            Packing::Zip(text) => text.fill(bytes, at),
            Packing::Plain { reader, finished } => {
                // Blocks are always full, so that their borders do not depend on how a pipe was
                // written.
                let end = bytes.len() - OUTPUT_MARGIN;
                let mut at = at;
                while at < end && !*finished {
                    match reader.read(&mut bytes[at..end]) {
                        Ok(0) => *finished = true,
                        Ok(n) => at += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(Error::io("read", path, e)),
                    }
                }
                Ok(at)
            }
        }
    }
}

fn last_line_end(text: &[u8]) -> Option<usize> {
    text.iter()
        .rposition(|&byte| byte == b'\n')
        .map(|at| at + 1)
}

fn input_error(path: &Path, base: u64, error: InflateError) -> Error {
    Error::Input {
        path: path.to_owned(),
        offset: base + error.offset,
        reason: error.kind.to_string(),
    }
}

/// The entries of a ZIP archive as one text, each ending its last line.
struct ZipText {
    entries: Vec<Entry>,
    current: usize,
    file: File,
    engine: Engine,
    passed: Passed,
    total: Option<Arc<AtomicU64>>,
    reading: EntryReader,
    crc: crc32fast::Hasher,
    last: u8,
}

enum EntryReader {
    Deflated(DeflateStream<Reader>),
    Stored(Reader),
}

impl ZipText {
    fn new(
        entries: Vec<Entry>,
        file: File,
        engine: Engine,
        passed: Passed,
        total: Option<Arc<AtomicU64>>,
    ) -> Result<Self> {
        let reading = begin(&entries[0], &file, engine, &passed, &total)?;
        let crc = crc32fast::Hasher::new();
        Ok(ZipText {
            entries,
            current: 0,
            file,
            engine,
            passed,
            total,
            reading,
            crc,
            last: b'\n',
        })
    }

    fn fill(&mut self, bytes: &mut [u8], mut at: usize) -> Result<usize> {
        while self.current < self.entries.len() && bytes.len() - at > OUTPUT_MARGIN {
            let entry = &self.entries[self.current];
            let end = bytes.len() - OUTPUT_MARGIN;
            let now = match &mut self.reading {
                EntryReader::Deflated(stream) => stream
                    .inflate_into(bytes, at)
                    .map_err(|e| input_error(&entry.name, entry.start, e))?,
                EntryReader::Stored(reader) => match reader.read(&mut bytes[at..end]) {
                    Ok(n) => at + n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(Error::io("read", &entry.name, e)),
                },
            };
            self.crc.update(&bytes[at..now]);
            if now > at {
                self.last = bytes[now - 1];
                at = now;
                continue;
            }
            // A reader that yields nothing although there is room is at the end of its entry, and
            // only there the checksum is complete.
            self.end_entry()?;
            // Otherwise the first line of the next entry would be glued to the last one of this
            // entry.
            if self.last != b'\n' {
                bytes[at] = b'\n';
                at += 1;
                self.last = b'\n';
            }
        }
        Ok(at)
    }

    fn end_entry(&mut self) -> Result<()> {
        let entry = &self.entries[self.current];
        let damaged = |reason: String| Error::Input {
            path: entry.name.clone(),
            offset: entry.start + entry.compressed_bytes,
            reason,
        };
        if let EntryReader::Deflated(stream) = &self.reading
            && !stream.finished()
        {
            return Err(damaged(
                "the entry ends before its deflate stream does".to_owned(),
            ));
        }
        let crc = std::mem::take(&mut self.crc).finalize();
        if crc != entry.crc {
            return Err(damaged(format!(
                "corrupt: CRC-32 is {crc:08x}, the archive says {:08x}",
                entry.crc
            )));
        }
        self.current += 1;
        if let Some(next) = self.entries.get(self.current) {
            self.reading = begin(next, &self.file, self.engine, &self.passed, &self.total)?;
        }
        Ok(())
    }
}

fn begin(
    entry: &Entry,
    file: &File,
    engine: Engine,
    passed: &Passed,
    total: &Option<Arc<AtomicU64>>,
) -> Result<EntryReader> {
    // The clone shares its offset with `file`, which does no harm because one entry is read at a
    // time.
    let mut file = file
        .try_clone()
        .map_err(|e| Error::io("open", &entry.name, e))?;
    file.seek(SeekFrom::Start(entry.start))
        .map_err(|e| Error::io("seek in", &entry.name, e))?;
    let part = file.take(entry.compressed_bytes);
    let reader: Reader = Box::new(HashingReader::new(part, passed.clone(), total.clone()));
    Ok(if entry.deflated {
        EntryReader::Deflated(DeflateStream::new(reader, engine))
    } else {
        EntryReader::Stored(reader)
    })
}
