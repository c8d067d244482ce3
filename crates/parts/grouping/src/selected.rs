//! Rows that filters choose, as codes and integers.

use std::sync::Arc;

use dyno_formats::parquet_read::{BLOCK_ROWS, ColumnKind, ParquetFile, StringDictionary};

use crate::choice::Choice;
use crate::chosen::gather;
use crate::column::{Block, Column};
use crate::error::{Failure, GroupError};
use crate::query::Filter;
use crate::scan::{RowGroup, Source};

/// A selection: rows that all filters choose, and which of their columns are wanted.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Which columns of a file are read; the rest of a selection names them by their place here.
    pub columns: Vec<String>,
    /// All of them must choose a row.
    pub filters: Vec<Filter>,
    /// What is wanted of a chosen row.
    pub wanted: Vec<usize>,
}

/// What some chosen rows have in a column.
#[derive(Debug, Clone, Copy)]
pub enum Cells<'a> {
    /// Codes of a dictionary, whose bytes are not checked to be UTF-8.
    Strings(&'a StringDictionary, &'a [u32]),
    /// Integers; those of an unsigned 64-bit column as the same bits.
    Ints(&'a [i64]),
}

/// Reads row groups, and keeps what the last call found.
///
/// Columns of filters are opened with a row group, the others where a row is chosen first: a row
/// group whose dictionary has none of the strings looked for costs no more than that dictionary.
pub struct Selected {
    wanted: Vec<usize>,
    /// Columns that filters look at.
    tested: Vec<bool>,
    columns: Vec<Column>,
    choice: Choice,
    place: Option<Place>,
    found: Vec<Found>,
}

/// A row group, and what is left of it.
struct Place {
    file: Arc<ParquetFile>,
    kinds: Vec<(usize, ColumnKind)>,
    row_group: RowGroup,
    /// The next range of rows.
    next: usize,
    /// The next row.
    at: usize,
    opened: Vec<bool>,
}

#[derive(Default)]
struct Found {
    codes: Vec<u32>,
    values: Vec<i64>,
}

impl Selected {
    /// A reader that is at no row group yet.
    pub fn new(selection: &Selection) -> Self {
        let columns = 0..selection.columns.len();
        let is_tested = |column| selection.filters.iter().any(|f| f.column == column);
        Self {
            wanted: selection.wanted.clone(),
            tested: columns.clone().map(is_tested).collect(),
            columns: columns.map(|_| Column::new()).collect(),
            choice: Choice::new(&selection.filters),
            place: None,
            found: selection.wanted.iter().map(|_| Found::default()).collect(),
        }
    }

    /// Goes to a row group. What was found before is gone.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn enter(&mut self, source: &Source, row_group: &RowGroup) -> Result<(), GroupError> {
        self.clear();
        self.place = Some(Place {
            file: Arc::clone(&source.file),
            kinds: source.columns.clone(),
            row_group: row_group.clone(),
            next: 0,
            at: 0,
            opened: vec![false; self.columns.len()],
        });
        let possible = self.open_tested().map_err(|failure| self.placed(failure))?;
        if !possible {
            self.place = None;
        }
        Ok(())
    }

    /// Reads on until about `most` chosen rows are found or the row group ends; how many there are.
    /// None is at the end.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn advance(&mut self, most: usize) -> Result<usize, GroupError> {
        self.clear();
        self.read(most).map_err(|failure| self.placed(failure))
    }

    /// What the rows found have in the wanted column number `index`; none when there is no such.
    pub fn cells(&self, index: usize) -> Option<Cells<'_>> {
        let (column, found) = (self.wanted.get(index)?, self.found.get(index)?);
        Some(match self.columns[*column].strings() {
            Some(strings) => Cells::Strings(strings, &found.codes),
            None => Cells::Ints(&found.values),
        })
    }

    /// Memory that is held, roughly.
    pub fn heap_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::heap_bytes).sum();
        let found = self.found.iter();
        let found: usize = found
            .map(|found| found.codes.capacity() * 4 + found.values.capacity() * 8)
            .sum();
        columns + found + self.choice.heap_bytes()
    }

    fn clear(&mut self) {
        for found in &mut self.found {
            found.codes.clear();
            found.values.clear();
        }
    }

    /// The error with where it happened.
    fn placed(&self, failure: Failure) -> GroupError {
        match (failure, &self.place) {
            (Failure::Read(source), Some(place)) => GroupError::Read {
                path: place.file.path().to_owned(),
                row_group: place.row_group.index,
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

    /// Opens a column where the row group is being read.
    fn open(&mut self, index: usize) -> Result<(), Failure> {
        if let Some(place) = &mut self.place
            && !place.opened[index]
        {
            let column = &mut self.columns[index];
            column.open(&place.file, place.row_group.index, place.kinds[index])?;
            column.pass(place.at);
            place.opened[index] = true;
        }
        Ok(())
    }

    fn read(&mut self, most: usize) -> Result<usize, Failure> {
        let mut found = 0;
        while found == 0 || found + BLOCK_ROWS <= most {
            let Some((rows, left)) = self.next_block() else {
                break;
            };
            let count = self.choice.choose(&mut self.columns, rows, left)?;
            if count > 0 {
                self.take(rows, count)?;
                found += count;
            }
            self.pass(rows);
        }
        Ok(found)
    }

    /// Rows of the next block, and rows left of its range with it. The place is at its beginning
    /// then.
    fn next_block(&mut self) -> Option<(usize, usize)> {
        loop {
            let place = self.place.as_ref()?;
            let range = place.row_group.rows.get(place.next)?;
            if place.at < range.start {
                self.pass(range.start - place.at);
            } else if place.at < range.end {
                let left = range.end - place.at;
                return Some((left.min(BLOCK_ROWS), left));
            } else if let Some(place) = &mut self.place {
                place.next += 1;
            }
        }
    }

    fn pass(&mut self, rows: usize) {
        if let Some(place) = &mut self.place {
            place.at += rows;
        }
        for column in &mut self.columns {
            column.pass(rows);
        }
    }

    /// Takes the wanted columns of the chosen rows of a block.
    fn take(&mut self, rows: usize, count: usize) -> Result<(), Failure> {
        for index in 0..self.wanted.len() {
            let wanted = self.wanted[index];
            self.open(wanted)?;
            let column = &mut self.columns[wanted];
            let block = column.load(rows)?;
            let places = self.choice.places(count, rows);
            self.found[index].extend(column, block, places, count);
        }
        Ok(())
    }
}

impl Found {
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
