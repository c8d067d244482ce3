//! Reads a column on one thread, as blocks of codes or values, with the dictionaries behind the
//! codes.

use std::collections::HashMap;

use dyno_formats::parquet_read::{
    BLOCK_ROWS, CodeReader, CodedInts, ColumnKind, IntReader, ParquetFile, ReadError,
    StringDictionary,
};

use crate::query::Inputs;

/// How many rows get codes at a time, so that a function is computed for many new values together.
const AHEAD_ROWS: usize = 16 * BLOCK_ROWS;
/// How many values are compared with one value without a branch.
const RUN_ROWS: usize = 32;
/// How many values may have codes. When there are more, all are forgotten, so that memory has a
/// bound.
const LEARNED_MAX: usize = 1 << 20;

/// What a column has of the current block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// The block has not been read.
    Unread,
    /// All rows have this code.
    Same(u32),
    /// Rows have the codes in [`Column::codes`].
    Codes,
    /// Rows have the values in [`Column::values`].
    Values,
}

/// Where codes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// They are stored in the file.
    Stored,
    /// They were given here to values that are stored without codes.
    Learned,
}

/// Identifies a dictionary by its origin and a number that changes whenever codes get another
/// meaning. What was computed for codes is valid as long as it stays the same.
pub(crate) type Identity = (Origin, u64);

enum Reader {
    None,
    Strings(CodeReader),
    Ints(IntReader),
}

pub(crate) struct Column {
    reader: Reader,
    /// How many rows the scan has passed that the reader has not skipped yet.
    behind: usize,
    block: Block,
    origin: Origin,
    strings: Option<StringDictionary>,
    stored_identity: u64,
    learned: Learned,
    codes: Box<[u32; BLOCK_ROWS]>,
    values: Box<[i64; BLOCK_ROWS]>,
}

/// Codes given to integers in the order of their appearance, and codes of rows that were read
/// ahead.
#[derive(Default)]
struct Learned {
    values: Vec<i64>,
    codes: HashMap<i64, u32>,
    identity: u64,
    /// Codes of rows that were read. Those from `at` on are still to come.
    ahead: Vec<u32>,
    at: usize,
    read: Vec<i64>,
}

impl Column {
    pub(crate) fn new() -> Self {
        Self {
            reader: Reader::None,
            behind: 0,
            block: Block::Unread,
            origin: Origin::Stored,
            strings: None,
            stored_identity: 0,
            learned: Learned::default(),
            codes: Box::new([0; BLOCK_ROWS]),
            values: Box::new([0; BLOCK_ROWS]),
        }
    }

    /// Goes to a row group. If codes of strings get another meaning by that, returns the dictionary
    /// that they had before.
    pub(crate) fn open(
        &mut self,
        file: &ParquetFile,
        row_group: usize,
        (index, kind): (usize, ColumnKind),
    ) -> Result<Option<StringDictionary>, ReadError> {
        self.behind = 0;
        self.block = Block::Unread;
        self.learned.ahead.clear();
        self.learned.at = 0;
        if kind != ColumnKind::String {
            self.reader = Reader::Ints(file.ints(row_group, index, kind)?);
            self.stored_identity += 1;
            return Ok(None);
        }
        let reader = file.codes(row_group, index)?;
        let (page, len) = reader.dictionary();
        // Row groups of one writer often have dictionaries of which one begins with the other. Then
        // codes keep their meaning, and so does all that was computed for them.
        let grown = match &mut self.strings {
            Some(dictionary) => dictionary.grow(page, len)?,
            None => false,
        };
        let mut before = None;
        if !grown {
            before = self
                .strings
                .replace(StringDictionary::new(page.clone(), len)?);
            self.stored_identity += 1;
        }
        self.reader = Reader::Strings(reader);
        Ok(before)
    }

    /// The dictionary, if this is a column of strings.
    pub(crate) fn strings(&self) -> Option<&StringDictionary> {
        self.strings.as_ref()
    }

    /// Reads the next `rows` rows as codes, and gives codes to values that have none. `left` rows,
    /// these included, are still to come before the row group or a gap in it ends.
    pub(crate) fn load_codes(&mut self, rows: usize, left: usize) -> Result<Block, ReadError> {
        if self.block == Block::Unread {
            self.catch_up()?;
            if self.learned.at == self.learned.ahead.len() {
                self.block = self.stored_codes(rows)?;
            }
            if self.block == Block::Unread {
                self.learned_codes(rows, left)?;
            }
        }
        Ok(self.block)
    }

    /// Reads the next `rows` rows, as codes or as values, whichever they are stored as.
    pub(crate) fn load(&mut self, rows: usize) -> Result<Block, ReadError> {
        if self.block == Block::Unread {
            self.catch_up()?;
            if self.learned.at < self.learned.ahead.len() {
                // These rows were read already, to be given codes.
                self.learned_codes(rows, rows)?;
                return Ok(self.block);
            }
            self.block = self.stored_codes(rows)?;
            if self.block == Block::Unread
                && let Reader::Ints(reader) = &mut self.reader
            {
                reader.read(&mut self.values[..rows])?;
                self.block = Block::Values;
            }
        }
        Ok(self.block)
    }

    /// Goes on behind a block of `rows` rows, whether it was read or not. Rows that were not read
    /// are skipped later, and all at once.
    pub(crate) fn pass(&mut self, rows: usize) {
        if self.block == Block::Unread {
            self.behind += rows;
        }
        self.block = Block::Unread;
    }

    pub(crate) fn codes(&self) -> &[u32; BLOCK_ROWS] {
        &self.codes
    }

    pub(crate) fn values(&self) -> &[i64; BLOCK_ROWS] {
        &self.values
    }

    /// The integers that the block's codes stand for. Empty for a column of strings.
    pub(crate) fn ints(&self) -> &[i64] {
        match (&self.reader, self.origin) {
            (Reader::Ints(reader), Origin::Stored) => reader.dictionary(),
            (Reader::Ints(_), Origin::Learned) => &self.learned.values,
            _ => &[],
        }
    }

    /// How many entries the dictionary of the block's codes has.
    pub(crate) fn dictionary_len(&self) -> usize {
        match &self.strings {
            Some(strings) => strings.len(),
            None => self.ints().len(),
        }
    }

    /// The entries of the dictionary from `start` on.
    pub(crate) fn entries(&self, start: usize) -> Inputs<'_> {
        match &self.strings {
            Some(strings) => Inputs::Strings(strings, (start, strings.len())),
            None => Inputs::Ints(self.ints().get(start..).unwrap_or_default()),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        match self.origin {
            Origin::Stored => (Origin::Stored, self.stored_identity),
            Origin::Learned => (Origin::Learned, self.learned.identity),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let strings = self.strings.as_ref().map_or(0, |strings| strings.len() * 8);
        strings + self.learned.values.capacity() * 32 + 3 * AHEAD_ROWS * 8
    }

    fn catch_up(&mut self) -> Result<(), ReadError> {
        // Rows that were read ahead are behind the reader already, so that only the rest is
        // skipped.
        let known = self.behind.min(self.learned.ahead.len() - self.learned.at);
        self.learned.at += known;
        let rest = std::mem::take(&mut self.behind) - known;
        match &mut self.reader {
            Reader::Strings(reader) => reader.skip(rest),
            Reader::Ints(reader) => reader.skip(rest),
            Reader::None => Ok(()),
        }
    }

    fn stored_codes(&mut self, rows: usize) -> Result<Block, ReadError> {
        let codes = &mut self.codes[..rows];
        let block = match &mut self.reader {
            Reader::Strings(reader) => match reader.read(codes)? {
                Some(code) => Block::Same(code),
                None => Block::Codes,
            },
            Reader::Ints(reader) => match reader.read_codes(codes)? {
                CodedInts::Same(code) => Block::Same(code),
                CodedInts::Codes => Block::Codes,
                CodedInts::Other => return Ok(Block::Unread),
            },
            Reader::None => return Ok(Block::Unread),
        };
        self.origin = Origin::Stored;
        Ok(block)
    }

    fn learned_codes(&mut self, rows: usize, left: usize) -> Result<(), ReadError> {
        // Reading ahead ends with `left`, because the rows behind them may be passed, and then
        // decoding them would have been in vain.
        let learned = &mut self.learned;
        if learned.at == learned.ahead.len()
            && let Reader::Ints(reader) = &mut self.reader
        {
            learned.read.resize(left.min(AHEAD_ROWS), 0);
            reader.read(&mut learned.read)?;
            learned.learn();
        }
        let end = learned.at + rows;
        let codes = learned
            .ahead
            .get(learned.at..end)
            .ok_or_else(|| ReadError::Damaged {
                reason: format!("{rows} rows asked for, fewer follow"),
            })?;
        self.codes[..rows].copy_from_slice(codes);
        learned.at = end;
        self.origin = Origin::Learned;
        self.block = Block::Codes;
        Ok(())
    }
}

impl Learned {
    /// Gives codes to the values in `read`, which become the rows that are ahead.
    fn learn(&mut self) {
        // Only here, where all rows that had the old codes have been used.
        if self.values.len() > LEARNED_MAX {
            self.values.clear();
            self.codes.clear();
            self.identity += 1;
        }
        self.at = 0;
        self.ahead.clear();
        let mut rest = self.read.as_slice();
        while let Some(value) = rest.first() {
            // Times stay the same for many rows, which then need only one look-up in the map.
            let run = run_of(*value, rest);
            let code = *self.codes.entry(*value).or_insert_with(|| {
                self.values.push(*value);
                self.values.len() as u32 - 1
            });
            self.ahead.resize(self.ahead.len() + run, code);
            rest = &rest[run..];
        }
    }
}

/// How many values from the front on are `value`.
fn run_of(value: i64, values: &[i64]) -> usize {
    let same = |run: &&[i64]| run.iter().fold(0, |other, at| other | at ^ value) == 0;
    let whole = values.chunks_exact(RUN_ROWS).take_while(same).count() * RUN_ROWS;
    let rest = values[whole..].iter();
    whole + rest.take_while(|at| **at == value).count()
}
