//! Blocks of lines, made on any thread.

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
    /// The text.
    pub bytes: Vec<u8>,
    /// The lines, which are rows.
    pub rows: u64,
}

/// Turns batches into blocks, on one thread. It keeps its buffers.
pub struct BlockWriter {
    layout: Arc<Layout>,
    dictionaries: Vec<Dictionary>,
    copied: Vec<Copied>,
    tile: Tile,
    block: Block,
}

impl BlockWriter {
    /// A writer with an empty block.
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
    /// A column's dictionary is printed once, and taken to be the same as long as it lies at the
    /// same address and has the same length.
    ///
    /// # Errors
    /// [`TextError::Batch`], [`TextError::Code`], [`TextError::Unquotable`].
    pub fn append(&mut self, columns: &[Values<'_>]) -> Result<()> {
        let rows = check_batch(self.layout.fields(), columns)?;
        check_codes(&self.layout, columns)?;
        for (at, values) in columns.iter().enumerate() {
            self.dictionaries[at].update(&self.layout, at, values);
            self.copied[at].take(values);
        }
        let texts = texts(columns, &self.copied, &self.dictionaries);
        let careful = Rows {
            layout: &self.layout,
            columns,
            texts: &texts,
            rows_before: self.block.rows,
        };
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

    /// The bytes of the block so far.
    pub fn bytes(&self) -> usize {
        self.block.bytes.len()
    }

    /// Gives out the block; the next one begins empty.
    pub fn finish(&mut self) -> Block {
        self.finish_into(Vec::new())
    }

    /// The same, and the next block uses this buffer, whose content is lost: one that was written
    /// is better than a new one, whose pages the kernel must first clear.
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

/// Where the text of each column lies that has some outside of slots.
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
