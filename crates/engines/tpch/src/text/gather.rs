//! Copies many passages out of the pool.
//!
//! Nearly every passage begins outside the cache, so the time depends on how many reads are under
//! way at once. With moves of one size, and without a call or a loop for each passage, the
//! processor can run far ahead.

use super::{PADDING_BYTES, TextPool};
use crate::values::Passages;

/// How many bytes are moved at once, which is the size of a cache line.
const MOVE_BYTES: usize = 64;

impl Passages<'_> {
    /// How many bytes all passages have together.
    pub fn total_bytes(&self) -> usize {
        self.lengths.iter().map(|&length| usize::from(length)).sum()
    }

    /// Copies all passages to the front of `out`, one right after the other, and returns how many
    /// bytes that was.
    ///
    /// `out` needs [`Passages::total_bytes`] and [`PADDING_BYTES`] more, whose content is lost.
    ///
    /// # Panics
    /// When `out` is shorter than that.
    pub fn copy_to(&self, pool: &TextPool, out: &mut [u8]) -> usize {
        let pool = pool.padded();
        let mut at = 0;
        for (&offset, &length) in self.offsets.iter().zip(self.lengths) {
            let (offset, length) = (offset as usize, usize::from(length));
            let from = &pool[offset..offset + PADDING_BYTES];
            let to = &mut out[at..at + PADDING_BYTES];
            // Most passages fit into the first move. What is moved too much, the next passage
            // overwrites.
            to[..MOVE_BYTES].copy_from_slice(&from[..MOVE_BYTES]);
            if length > MOVE_BYTES {
                to[MOVE_BYTES..2 * MOVE_BYTES].copy_from_slice(&from[MOVE_BYTES..2 * MOVE_BYTES]);
                if length > 2 * MOVE_BYTES {
                    to[2 * MOVE_BYTES..].copy_from_slice(&from[2 * MOVE_BYTES..]);
                }
            }
            at += length;
        }
        if !self.remarks.is_empty() {
            self.write_remarks(out);
        }
        at
    }

    fn write_remarks(&self, out: &mut [u8]) {
        let mut remarks = self.remarks.iter().peekable();
        let mut at = 0;
        for (row, &length) in (self.first_row..).zip(self.lengths) {
            let end = at + usize::from(length);
            // Remarks of rows before a slice of the batch come first and are passed.
            while let Some(remark) = remarks.next_if(|remark| remark.row <= row) {
                if remark.row == row {
                    remark.write_over(&mut out[at..end]);
                }
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Generator, PADDING_BYTES, Scale, Table, TextPool, Values};

    #[test]
    fn all_at_once_is_one_after_the_other() {
        let generator = Generator::new(Scale::new(1.0).expect("in range"));
        let pool = TextPool::shared();
        for table in Table::ALL {
            let mut batch = Batch::new(table);
            let rows = generator.scale().units(table).min(10_000);
            generator
                .fill_rows(&mut batch, 3..rows)
                .expect("rows of the table");
            let Values::Passages(passages) = batch.values(table.columns().len() - 1) else {
                panic!("{table} ends in a comment");
            };
            let mut expected = Vec::new();
            for row in 0..passages.len() {
                passages.append(row, pool, &mut expected);
            }
            let mut out = vec![0; passages.total_bytes() + PADDING_BYTES];
            let written = passages.copy_to(pool, &mut out);
            assert!(out[..written] == expected, "{table}");
        }
    }
}
