//! Spots of WSPR: the fast scanner is their reader, and the columns have types of their own.

use std::fs::File;
use std::path::Path;

use super::archive::Sink;
use super::directory::Directory;
use super::encode::Encoder;
use super::format::ArchiveReader;
use super::parquet_in;
use super::report::StageSeconds;
use super::target::{Chunk, Opening};
use crate::Result;
use crate::scan::{BadRow, Block, Columns, Scanner};

/// Measured bytes that a worker needs for each row of its row group in a directory: columns, codes
/// and encoded pages.
const BYTES_PER_ROW: usize = 200;
/// Bytes for each worker's blocks in flight, dictionaries and hash tables.
const BYTES_PER_WORKER: usize = 96 << 20;
/// The fewest rows of a row group.
const LEAST_ROWS: usize = 16 * 1024;

/// How to open the directory `table` for spots.
pub fn spots_in(table: &Path) -> Opening<'_, Columns> {
    Opening {
        each_bytes: BYTES_PER_ROW,
        open: Box::new(|| Ok(Box::new(Directory::open(table, Encoder::new)?))),
    }
}

impl ArchiveReader for Scanner {
    type Chunk = Columns;

    fn chunk(&mut self) -> &mut Columns {
        &mut self.columns
    }

    fn read(
        &mut self,
        block: &Block,
        bad: &mut dyn FnMut(BadRow<'_>),
    ) -> std::result::Result<(), String> {
        self.scan(block, bad);
        Ok(())
    }

    fn blank_lines(&self) -> u64 {
        Scanner::blank_lines(self)
    }

    fn read_parquet(
        sink: &mut Sink<'_, Self>,
        file: File,
        stages: &mut StageSeconds,
    ) -> Result<()> {
        parquet_in::read(file, sink, stages)
    }
}

impl Chunk for Columns {
    fn least_bytes(each: usize) -> usize {
        BYTES_PER_WORKER + LEAST_ROWS * each
    }

    fn most(bytes: usize, each: usize) -> usize {
        (bytes - BYTES_PER_WORKER) / each
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn size(&self) -> usize {
        self.len()
    }

    fn times_s(&self) -> Option<(i64, i64)> {
        let ends = self.timestamp.iter().min().zip(self.timestamp.iter().max());
        ends.map(|(&earliest, &latest)| (earliest.into(), latest.into()))
    }

    fn dictionary_bytes(&self) -> (usize, usize) {
        (self.dictionaries.bytes(), self.dictionaries.heap_bytes())
    }

    fn clear(&mut self) {
        Columns::clear(self);
    }

    fn clear_dictionaries(&mut self) {
        self.dictionaries = Default::default();
    }
}
