//! Scans the text of an archive into typed columns.
//!
//! Three passes over a block that fits the cache: [`index`] finds the commas and line ends,
//! [`fast`] converts the rows of regular shape, one column at a time, and [`careful`] parses every
//! row that the fast path declines. So [`careful`] alone decides what a bad row is.

mod block;
mod careful;
mod columns;
mod dictionary;
mod fast;
mod index;
mod number;

pub use block::{Block, MARGIN, MAX_LINE};
pub use careful::{Row, parse_line};
pub use columns::Columns;
pub use dictionary::{Numbers, Strings};

use fast::{BATCH, Batch, Failed, RowAt, Scratch};
use index::Index;

use crate::contract::FIELDS;

/// A line that is not a valid row, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow<'a> {
    /// Line in the source, from 1.
    pub line: u64,
    /// The reason, in a sentence.
    pub reason: String,
    /// The line as it was, without its line end.
    pub raw: &'a [u8],
}

impl BadRow<'_> {
    /// The bytes of the line that a quarantine keeps, and whether they are cut: of a line that is
    /// too long to be a row only the first [`MAX_LINE`] are kept.
    pub fn kept(&self) -> (&[u8], bool) {
        let line = self.raw.strip_suffix(b"\r").unwrap_or(self.raw);
        if line.len() > MAX_LINE {
            (&self.raw[..MAX_LINE], true)
        } else {
            (self.raw, false)
        }
    }
}

/// Scans the blocks of one source into columns.
#[derive(Default)]
pub struct Scanner {
    /// The rows scanned since the columns were last cleared.
    pub columns: Columns,
    index: Index,
    rows: Vec<RowAt>,
    scratch: Box<Scratch>,
    lines: u64,
    blank_lines: u64,
}

impl Scanner {
    /// Lines seen so far, blank and bad ones included.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Blank lines so far, which count neither as rows nor as bad.
    pub fn blank_lines(&self) -> u64 {
        self.blank_lines
    }

    /// Appends the rows of `block` to the columns, and passes every bad one to `bad`.
    pub fn scan(&mut self, block: &Block, bad: &mut dyn FnMut(BadRow<'_>)) {
        let mut index = std::mem::take(&mut self.index);
        index.fill(block);
        let mut first = 0;
        let mut start = block.start as u32;
        self.rows.clear();
        for &end in &index.line_ends {
            let delimiters = end + 1 - first;
            if delimiters == FIELDS as u32 {
                self.rows.push(RowAt {
                    first,
                    start,
                    line: self.lines + 1,
                });
                if self.rows.len() == BATCH {
                    self.regular_rows(block, &index, bad);
                }
            } else if index.delimiters[end as usize] == start {
                // A blank line neither is a row nor moves one, so the rows before it may wait. A
                // file may consist of blank lines for gigabytes, and then nothing else happens
                // here.
                self.blank_lines += 1;
            } else {
                // The rows before it are converted first, so that rows keep their order.
                self.regular_rows(block, &index, bad);
                let line = &block.bytes[start as usize..index.delimiters[end as usize] as usize];
                self.one_row(line, self.lines + 1, bad);
            }
            self.lines += 1;
            first = end + 1;
            start = index.delimiters[end as usize] + 1;
        }
        self.regular_rows(block, &index, bad);
        self.index = index;
    }

    fn regular_rows(&mut self, block: &Block, index: &Index, bad: &mut dyn FnMut(BadRow<'_>)) {
        // In a file of only bad lines there are no rows here each time, and what follows scans all
        // odd bytes of the block.
        if self.rows.is_empty() {
            return;
        }
        let base = self.columns.len();
        let mut failed: Failed = [0; BATCH];
        let batch = Batch {
            bytes: &block.bytes,
            delimiters: &index.delimiters,
            rows: &self.rows,
        };
        batch.mark_odd(&index.odd, &mut failed);
        fast::convert(&batch, &mut self.columns, &mut self.scratch, &mut failed);
        if failed[..self.rows.len()].iter().any(|&mark| mark != 0) {
            self.convert_failed(block, index, base, &failed, bad);
        }
        self.rows.clear();
    }

    /// Handles the rows of a batch that the fast path declined: corrects them in place or drops
    /// them.
    #[cold]
    fn convert_failed(
        &mut self,
        block: &Block,
        index: &Index,
        base: usize,
        failed: &Failed,
        bad: &mut dyn FnMut(BadRow<'_>),
    ) {
        let mut keep = base;
        for (i, row) in self.rows.iter().enumerate() {
            if failed[i] != 0 {
                let end = index.delimiters[row.first as usize + FIELDS - 1] as usize;
                let raw = &block.bytes[row.start as usize..end];
                match parse_line(raw) {
                    Ok(Some(parsed)) => self.columns.set(base + i, &parsed),
                    Ok(None) => {
                        self.blank_lines += 1;
                        continue;
                    }
                    Err(reason) => {
                        bad(BadRow {
                            line: row.line,
                            reason,
                            raw,
                        });
                        continue;
                    }
                }
            }
            // Rows behind a dropped one move up, so that the columns stay without gaps and in
            // order.
            self.columns.copy_row(base + i, keep);
            keep += 1;
        }
        self.columns.truncate(keep);
    }

    #[cold]
    fn one_row(&mut self, raw: &[u8], line: u64, bad: &mut dyn FnMut(BadRow<'_>)) {
        match parse_line(raw) {
            Ok(Some(row)) => self.columns.push(&row),
            Ok(None) => self.blank_lines += 1,
            Err(reason) => bad(BadRow { line, reason, raw }),
        }
    }
}

#[cfg(test)]
mod tests;
