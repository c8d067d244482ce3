//! Blocks of lines, which any number of threads make at once.

use std::sync::Arc;

use super::careful::Rows;
use super::dictionary::{Dictionary, Shape};
use super::error::{Result, TextError};
use super::layout::Layout;
use super::passages::{Copied, Texts};
use super::tile::{Plan, Tile};
use crate::columns::{Values, check_batch};

/// Whole lines of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The lines, each with its line feed.
    pub bytes: Vec<u8>,
    /// How many lines there are, one for each row.
    pub rows: u64,
}

/// Turns batches into blocks, on one thread, in buffers that it uses again.
pub struct BlockWriter {
    layout: Arc<Layout>,
    dictionaries: Vec<Dictionary>,
    copied: Vec<Copied>,
    tile: Tile,
    block: Block,
}

impl BlockWriter {
    /// Makes a writer whose block is empty.
    pub fn new(layout: &Arc<Layout>) -> BlockWriter {
        let columns = layout.columns.len();
        BlockWriter {
            layout: Arc::clone(layout),
            dictionaries: (0..columns).map(|_| Dictionary::default()).collect(),
            copied: (0..columns).map(|_| Copied::default()).collect(),
            tile: Tile::default(),
            block: Block::default(),
        }
    }

    /// Appends a line for each row of a batch. After an error the block is as it was.
    ///
    /// A column's dictionary is printed once. It is taken for the same as long as it lies at the
    /// same address and has the same length, so the caller must not change or replace it in
    /// between.
    ///
    /// # Errors
    /// [`TextError::Batch`], [`TextError::Code`], [`TextError::Offsets`],
    /// [`TextError::Unquotable`].
    pub fn append(&mut self, columns: &[Values<'_>]) -> Result<()> {
        let rows = check_batch(self.layout.fields(), columns)?;
        // All that can be wrong with codes and offsets is found here, before a byte is written, so
        // that the fast way need not look at them again.
        check_codes(&self.layout, columns)?;
        check_offsets(&self.layout, columns)?;
        for (at, values) in columns.iter().enumerate() {
            self.dictionaries[at].update(&self.layout, at, values);
            self.copied[at].copy(values);
        }
        let texts = texts(columns, &self.copied, &self.dictionaries);
        let careful = Rows {
            layout: &self.layout,
            columns,
            texts: &texts,
            rows_before: self.block.rows,
        };
        // A row that cannot be printed takes back the rows of the batch before it, so that no batch
        // is written by halves.
        let before = self.block.bytes.len();
        let done = match Plan::new(&careful, &self.dictionaries) {
            Some(plan) => self.tile.append(&plan, rows, &mut self.block.bytes),
            None => (0..rows).try_for_each(|row| careful.append(row, &mut self.block.bytes)),
        };
        match done {
            Ok(()) => self.block.rows += rows as u64,
            Err(_) => self.block.bytes.truncate(before),
        }
        done
    }

    /// How many bytes the block has so far.
    pub fn bytes(&self) -> usize {
        self.block.bytes.len()
    }

    /// Returns the block. The next one begins empty, with a new buffer.
    pub fn finish(&mut self) -> Block {
        self.finish_into(Vec::new())
    }

    /// Returns the block, and uses this buffer for the next one, whose content is lost. A buffer
    /// that was written before is faster than a new one, whose pages the kernel must first clear.
    pub fn finish_into(&mut self, mut buffer: Vec<u8>) -> Block {
        buffer.clear();
        let next = Block {
            bytes: buffer,
            rows: 0,
        };
        std::mem::replace(&mut self.block, next)
    }
}

fn check_codes(layout: &Layout, columns: &[Values<'_>]) -> Result<()> {
    for (field, values) in layout.fields().iter().zip(columns) {
        let (codes, entries) = match *values {
            Values::CodedInt64 { codes, values } => (codes, values.len()),
            Values::CodedText { codes, words } => (codes, words.len()),
            _ => continue,
        };
        if let Some(code) = codes.max().filter(|&code| code as usize >= entries) {
            let name = field.name;
            return Err(TextError::Code {
                name,
                code,
                entries,
            });
        }
    }
    Ok(())
}

/// Refuses text that does not lie within its bytes. The fast way moves it through pointers and
/// relies on this.
fn check_offsets(layout: &Layout, columns: &[Values<'_>]) -> Result<()> {
    for (field, values) in layout.fields().iter().zip(columns) {
        let Values::Text { offsets, bytes } = *values else {
            continue;
        };
        let is_within = |pair: &[u32]| pair[0] <= pair[1] && pair[1] as usize <= bytes.len();
        // All pairs are looked at, without an end at the first bad one, because such a loop is
        // compiled to wide comparisons.
        let all = (offsets.windows(2)).fold(true, |all, pair| all & is_within(pair));
        let bad = offsets.windows(2).find(|pair| !all && !is_within(pair));
        if let Some(pair) = bad {
            return Err(TextError::Offsets {
                name: field.name,
                begin: pair[0],
                end: pair[1],
                bytes: bytes.len(),
            });
        }
    }
    Ok(())
}

/// For each column where its text lies, or `None` if it has no text outside of slots.
fn texts<'a>(
    columns: &[Values<'a>],
    copied: &'a [Copied],
    dictionaries: &'a [Dictionary],
) -> Vec<Option<Texts<'a>>> {
    let columns = columns.iter().zip(copied).zip(dictionaries);
    let texts = columns.map(|((values, copied), dictionary)| match *values {
        Values::Slices(_) => Some(copied.texts()),
        Values::Text { offsets, bytes } => Some(Texts::Run { offsets, bytes }),
        Values::CodedText { codes, .. } => match &dictionary.shape {
            Shape::Long { offsets, bytes } => Some(Texts::Coded {
                codes,
                offsets,
                bytes,
            }),
            _ => None,
        },
        _ => None,
    });
    texts.collect()
}
