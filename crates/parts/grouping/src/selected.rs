//! Reads the rows that filters choose, as codes and integers.

use std::sync::Arc;

use dyno_formats::parquet_read::{BLOCK_ROWS, ColumnKind, ParquetFile, StringDictionary};

use crate::choice::Choice;
use crate::chosen::gather;
use crate::column::{Block, Column};
use crate::error::{Failure, GroupError};
use crate::query::Filter;
use crate::scan::{RowGroup, Source};

/// The rows that all filters choose, and which of their columns are wanted.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The columns of a file that are read. The rest of a selection refers to them by their index
    /// here.
    pub columns: Vec<String>,
    /// The conditions, all of which must choose a row.
    pub filters: Vec<Filter>,
    /// The indexes of the columns that are wanted of a chosen row.
    pub wanted: Vec<usize>,
}

/// The values of some chosen rows in one column.
#[derive(Debug, Clone, Copy)]
pub enum Cells<'a> {
    /// Codes of a dictionary, whose strings are not checked to be UTF-8.
    Strings(&'a StringDictionary, &'a [u32]),
    /// Integers. Those of an unsigned column of 64 bits have the same bits.
    Ints(&'a [i64]),
}

/// Reads row groups, and keeps what the last call has found.
///
/// Columns of filters are opened with a row group, and the others when the first row is chosen. So
/// a row group whose dictionary has none of the strings looked for costs no more than that
/// dictionary.
pub struct Selected {
    wanted: Vec<usize>,
    /// For each column whether a filter looks at it.
    tested: Vec<bool>,
    columns: Vec<Column>,
    choice: Choice,
    position: Option<Position>,
    buffers: Vec<CellBuffer>,
}

/// A row group, and how far it has been read.
struct Position {
    file: Arc<ParquetFile>,
    kinds: Vec<(usize, ColumnKind)>,
    row_group: RowGroup,
    /// The index of the next range of rows.
    next: usize,
    /// The number of the next row in the row group.
    at: usize,
    opened: Vec<bool>,
}

/// The values of the chosen rows in one wanted column: codes of strings, or integers.
#[derive(Default)]
struct CellBuffer {
    codes: Vec<u32>,
    values: Vec<i64>,
}

impl Selected {
    /// Makes a reader, which must [`Selected::enter`] a row group first.
    pub fn new(selection: &Selection) -> Self {
        let columns = 0..selection.columns.len();
        let is_tested = |column| selection.filters.iter().any(|f| f.column == column);
        Self {
            wanted: selection.wanted.clone(),
            tested: columns.clone().map(is_tested).collect(),
            columns: columns.map(|_| Column::new()).collect(),
            choice: Choice::new(&selection.filters),
            position: None,
            buffers: selection
                .wanted
                .iter()
                .map(|_| CellBuffer::default())
                .collect(),
        }
    }

    /// Goes to a row group. What was found before is forgotten.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn enter(&mut self, source: &Source, row_group: &RowGroup) -> Result<(), GroupError> {
        self.clear();
        self.position = Some(Position {
            file: Arc::clone(&source.file),
            kinds: source.columns.clone(),
            row_group: row_group.clone(),
            next: 0,
            at: 0,
            opened: vec![false; self.columns.len()],
        });
        let possible = self
            .open_tested()
            .map_err(|failure| self.located(failure))?;
        if !possible {
            self.position = None;
        }
        Ok(())
    }

    /// Reads on until about `most` chosen rows are found or the row group ends, and returns how
    /// many were found. It returns 0 only at the end.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn advance(&mut self, most: usize) -> Result<usize, GroupError> {
        self.clear();
        self.read(most).map_err(|failure| self.located(failure))
    }

    /// The values of the rows found in wanted column number `index`, or `None` if fewer are wanted.
    pub fn cells(&self, index: usize) -> Option<Cells<'_>> {
        let (column, buffer) = (self.wanted.get(index)?, self.buffers.get(index)?);
        Some(match self.columns[*column].strings() {
            Some(strings) => Cells::Strings(strings, &buffer.codes),
            None => Cells::Ints(&buffer.values),
        })
    }

    /// Roughly how many bytes of memory are held.
    pub fn heap_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::heap_bytes).sum();
        let buffers = self.buffers.iter();
        let buffers: usize = buffers
            .map(|buffer| buffer.codes.capacity() * 4 + buffer.values.capacity() * 8)
            .sum();
        columns + buffers + self.choice.heap_bytes()
    }

    fn clear(&mut self) {
        for buffer in &mut self.buffers {
            buffer.codes.clear();
            buffer.values.clear();
        }
    }

    /// Adds the file and the row group to an error.
    fn located(&self, failure: Failure) -> GroupError {
        match (failure, &self.position) {
            (Failure::Read(source), Some(position)) => GroupError::Read {
                path: position.file.path().to_owned(),
                row_group: position.row_group.index,
                source,
            },
            (Failure::Read(error), None) => GroupError::Caller(error.into()),
            (Failure::Other(error), _) => error,
        }
    }

    fn open_tested(&mut self) -> Result<bool, Failure> {
        for index in 0..self.columns.len() {
            if self.tested[index] {
                self.open(index)?;
            }
        }
        Ok(self.choice.is_possible(&self.columns)?)
    }

    /// Opens a column at the current row of the row group, unless it is open.
    fn open(&mut self, index: usize) -> Result<(), Failure> {
        if let Some(position) = &mut self.position
            && !position.opened[index]
        {
            let column = &mut self.columns[index];
            column.open(
                &position.file,
                position.row_group.index,
                position.kinds[index],
            )?;
            // Rows before the current one were passed while it was not open.
            column.pass(position.at);
            position.opened[index] = true;
        }
        Ok(())
    }

    fn read(&mut self, most: usize) -> Result<usize, Failure> {
        let mut found = 0;
        // Block by block, so that the buffers of what was found have a bound, and at least until
        // one row is found, because 0 means the end.
        while found == 0 || found + BLOCK_ROWS <= most {
            let Some((rows, left)) = self.next_block() else {
                break;
            };
            let count = self.choice.choose(&mut self.columns, rows, left)?;
            if count > 0 {
                self.read_chosen(rows, count)?;
                found += count;
            }
            self.pass(rows);
        }
        Ok(found)
    }

    /// Moves to the next block, and returns its rows and how many rows its range has left with it.
    fn next_block(&mut self) -> Option<(usize, usize)> {
        loop {
            let position = self.position.as_ref()?;
            let range = position.row_group.rows.get(position.next)?;
            if position.at < range.start {
                self.pass(range.start - position.at);
            } else if position.at < range.end {
                let left = range.end - position.at;
                return Some((left.min(BLOCK_ROWS), left));
            } else if let Some(position) = &mut self.position {
                position.next += 1;
            }
        }
    }

    fn pass(&mut self, rows: usize) {
        if let Some(position) = &mut self.position {
            position.at += rows;
        }
        for column in &mut self.columns {
            column.pass(rows);
        }
    }

    /// Reads the wanted columns of the chosen rows of a block.
    fn read_chosen(&mut self, rows: usize, count: usize) -> Result<(), Failure> {
        for index in 0..self.wanted.len() {
            let wanted = self.wanted[index];
            self.open(wanted)?;
            let column = &mut self.columns[wanted];
            let block = column.load(rows)?;
            let places = self.choice.places(count, rows);
            self.buffers[index].extend(column, block, places, count);
        }
        Ok(())
    }
}

impl CellBuffer {
    fn extend(&mut self, column: &Column, block: Block, places: Option<&[u32]>, count: usize) {
        if column.strings().is_some() {
            let start = self.codes.len();
            let same = if let Block::Same(code) = block {
                code
            } else {
                0
            };
            self.codes.resize(start + count, same);
            if block == Block::Codes {
                gather(column.codes(), places, &mut self.codes[start..], |code| {
                    code
                });
            }
            return;
        }
        let start = self.values.len();
        self.values.resize(start + count, 0);
        let values = &mut self.values[start..];
        let ints = column.ints();
        match block {
            Block::Same(code) => values.fill(ints.get(code as usize).copied().unwrap_or(0)),
            Block::Codes => gather(column.codes(), places, values, |code| ints[code as usize]),
            Block::Unread | Block::Values => {
                gather(column.values(), places, values, |value| value);
            }
        }
    }
}
