//! How a file of text looks, which is decided once and shared by all threads.

use super::error::{Result, TextError};
use crate::columns::{Field, Kind};

/// The most digits that a decimal of 64 bits can have whatever they are.
const MAX_DIGITS: u8 = 18;

/// How lines are made of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The form that dbgen prints. The separator stands behind every value, the last one too.
    /// Nothing is quoted, so a value with a separator or line end in it is an error.
    Tbl,
    /// RFC 4180, except that lines end in a line feed alone. The separator stands between values. A
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
    /// The character between values, in ASCII. It must not occur in numbers or be the quote.
    pub separator: char,
    /// Whether the first line has the names of the columns.
    pub header: bool,
}

impl Options {
    /// The options of dbgen's files, which have `|` and no header.
    pub const fn tbl() -> Options {
        Options {
            dialect: Dialect::Tbl,
            separator: '|',
            header: false,
        }
    }

    /// The options of ordinary CSV, which has commas and a header.
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
    /// Text that needs quotes, or is empty.
    WhenNeeded,
    /// All text of the column, so that a reader can tell text from numbers. Only quotes within it
    /// must be looked for, which is faster.
    Always,
}

/// A column and how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The name for the header, and the kind of the values.
    pub field: Field,
    /// For a decimal: whole values are printed without point and digits behind it, as dbgen prints
    /// `l_quantity`. A value that is not whole keeps both.
    pub whole: bool,
    /// Which values are quoted, in a column of text.
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

    /// Returns the column with another [`Column::whole`].
    #[must_use]
    pub const fn whole(mut self, whole: bool) -> Column {
        self.whole = whole;
        self
    }

    /// Returns the column with another [`Column::quote`].
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

/// The bytes between two values, or behind the last one. There are at most three.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The first in the lowest byte.
    pub(super) bytes: u32,
    pub(super) length: u32,
}

impl Mark {
    fn from_bytes(bytes: &[u8]) -> Mark {
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
    /// What stands behind each value: its closing quote, the separator, and the opening quote of
    /// the next value or the line feed.
    pub(super) marks: Vec<Mark>,
    /// What stands before the first value, which is its opening quote or nothing.
    pub(super) opening: Mark,
}

impl Layout {
    /// Checks columns and options, and prepares what stands between values.
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
            Mark::from_bytes(&bytes)
        });
        let marks = marks.collect();
        let opening = Mark::from_bytes(if quoted(&columns[0]) { b"\"" } else { b"" });
        Ok(Layout {
            fields: columns.iter().map(|column| column.field).collect(),
            columns,
            options,
            marks,
            opening,
        })
    }

    /// The fields in the order of the columns.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The separator as it is written.
    pub(super) fn separator(&self) -> u8 {
        self.options.separator as u8
    }

    /// Whether all text of a column is quoted. The quotes are part of the marks then.
    pub(super) fn always_quotes(&self, column: usize) -> bool {
        self.options.dialect == Dialect::Csv && self.columns[column].quote == Quote::Always
    }

    /// The bytes that send a row to the careful way if they occur in this column's text. Always
    /// four, some of them twice, so that all are compared without a branch.
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
