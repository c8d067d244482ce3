//! What a file of text looks like: decided once, shared by all threads.

use super::error::{Result, TextError};
use crate::columns::{Field, Kind};

/// The most digits that a decimal of 64 bits can promise.
const MAX_DIGITS: u8 = 18;

/// How lines are made of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As dbgen prints: the separator stands behind every value, the last one too; nothing is
    /// quoted, so a value with a separator or line end in it is an error.
    Tbl,
    /// RFC 4180, but that lines end in a line feed alone: the separator stands between values; a
    /// value with a separator, quote, carriage return or line feed in it is quoted. Empty text is
    /// quoted too, for readers that can tell it from a missing value (DuckDB: `allow_quoted_nulls =
    /// false`).
    Csv,
}

/// How a file is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How lines are made of values.
    pub dialect: Dialect,
    /// What stands between values: ASCII, and nothing that a number or a quoted value has.
    pub separator: char,
    /// Whether the first line has the names of the columns.
    pub header: bool,
}

impl Options {
    /// What dbgen prints: `|`, no header.
    pub const fn tbl() -> Options {
        Options {
            dialect: Dialect::Tbl,
            separator: '|',
            header: false,
        }
    }

    /// Comma and header.
    pub const fn csv() -> Options {
        Options {
            dialect: Dialect::Csv,
            separator: ',',
            header: true,
        }
    }
}

/// Which text is quoted in CSV. In [`Dialect::Tbl`] none is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// That which needs it, or is empty.
    WhenNeeded,
    /// All of the column, so that a reader can tell text from numbers, and the writer need not
    /// look.
    Always,
}

/// A column and how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name and kind.
    pub field: Field,
    /// For a decimal: whole values are printed without point and digits behind it, as dbgen prints
    /// `l_quantity`. A value that is not whole keeps both.
    pub whole: bool,
    /// For text.
    pub quote: Quote,
}

impl Column {
    /// A column printed in the plain way: all digits, quotes where needed.
    pub const fn new(field: Field) -> Column {
        Column {
            field,
            whole: false,
            quote: Quote::WhenNeeded,
        }
    }

    /// Sets [`Column::whole`].
    #[must_use]
    pub const fn whole(mut self, whole: bool) -> Column {
        self.whole = whole;
        self
    }

    /// Sets [`Column::quote`].
    #[must_use]
    pub const fn quote(mut self, quote: Quote) -> Column {
        self.quote = quote;
        self
    }

    fn is_text(&self) -> bool {
        matches!(
            self.field.kind,
            Kind::Text | Kind::Char(_) | Kind::Varchar(_)
        )
    }
}

/// The bytes between two values, or behind the last: at most three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The first in the lowest byte.
    pub(super) bytes: u32,
    pub(super) length: u32,
}

impl Mark {
    fn of(bytes: &[u8]) -> Mark {
        let mut four = [0; 4];
        four[..bytes.len()].copy_from_slice(bytes);
        Mark {
            bytes: u32::from_le_bytes(four),
            length: bytes.len() as u32,
        }
    }
}

/// Columns and options of a file, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    fields: Vec<Field>,
    pub(super) columns: Vec<Column>,
    pub(super) options: Options,
    /// Behind each value: closing quote, separator, opening quote of the next value, line feed.
    pub(super) marks: Vec<Mark>,
    /// Before the first value: its opening quote, or nothing.
    pub(super) opening: Mark,
}

impl Layout {
    /// Checks columns and options.
    ///
    /// # Errors
    /// [`TextError::NoColumns`], [`TextError::Separator`], [`TextError::Decimal`],
    /// [`TextError::Style`].
    pub fn new(columns: Vec<Column>, options: Options) -> Result<Layout> {
        if columns.is_empty() {
            return Err(TextError::NoColumns);
        }
        check_separator(options.separator)?;
        columns.iter().try_for_each(check_column)?;
        let quoted =
            |column: &Column| options.dialect == Dialect::Csv && column.quote == Quote::Always;
        let marks = (0..columns.len()).map(|at| {
            let mut bytes = Vec::new();
            let next = columns.get(at + 1);
            if quoted(&columns[at]) {
                bytes.push(b'"');
            }
            if next.is_some() || options.dialect == Dialect::Tbl {
                bytes.push(options.separator as u8);
            }
            match next {
                Some(next) if quoted(next) => bytes.push(b'"'),
                Some(_) => {}
                None => bytes.push(b'\n'),
            }
            Mark::of(&bytes)
        });
        let marks = marks.collect();
        let opening = Mark::of(if quoted(&columns[0]) { b"\"" } else { b"" });
        Ok(Layout {
            fields: columns.iter().map(|column| column.field).collect(),
            columns,
            options,
            marks,
            opening,
        })
    }

    /// The columns.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The separator as it is written.
    pub(super) fn separator(&self) -> u8 {
        self.options.separator as u8
    }

    /// Whether all text of a column stands in quotes, which are part of the marks then.
    pub(super) fn always_quotes(&self, column: usize) -> bool {
        self.options.dialect == Dialect::Csv && self.columns[column].quote == Quote::Always
    }

    /// The bytes that a column's text cannot have without the careful writer looking at it.
    pub(super) fn special(&self, column: usize) -> [u8; 4] {
        match self.options.dialect {
            Dialect::Tbl => [self.separator(), b'\n', self.separator(), b'\n'],
            Dialect::Csv if self.always_quotes(column) => [b'"'; 4],
            Dialect::Csv => [self.separator(), b'"', b'\n', b'\r'],
        }
    }
}

fn check_separator(given: char) -> Result<()> {
    let reason = match given {
        '"' => "it is the quote",
        '\n' | '\r' => "it ends lines",
        '-' | '.' => "it is part of numbers and dates",
        given if given.is_ascii_alphanumeric() => "it is part of values",
        '\t' | ' '..='~' => return Ok(()),
        given if given.is_ascii() => "it is a control character",
        _ => "it is not ASCII",
    };
    Err(TextError::Separator { given, reason })
}

fn check_column(column: &Column) -> Result<()> {
    let name = column.field.name;
    let wrong_style = |option, wanted| {
        Err(TextError::Style {
            name,
            option,
            wanted,
            kind: format!("{:?}", column.field.kind),
        })
    };
    if let Kind::Decimal { precision, scale } = column.field.kind {
        let reason = if precision == 0 || precision > MAX_DIGITS {
            "the precision must be 1 to 18"
        } else if scale > precision {
            "the scale exceeds the precision"
        } else {
            ""
        };
        if !reason.is_empty() {
            return Err(TextError::Decimal {
                name,
                precision,
                scale,
                reason,
            });
        }
    } else if column.whole {
        return wrong_style("whole", "decimals");
    }
    if column.quote == Quote::Always && !column.is_text() {
        return wrong_style("quote", "text");
    }
    Ok(())
}
