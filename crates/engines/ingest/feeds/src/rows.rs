//! Rows by column: integers, codes and texts, never an object for each row.

use dyno_ingest::scan::Strings;

use crate::field::{Field, Kind};

/// Rows of one feed since they were last cleared. Dictionaries stay when the rows go, so that a
/// code means the same all over a file.
pub struct Rows {
    fields: &'static [Field],
    columns: Vec<Column>,
    rows: usize,
    /// Bytes of a row with all its values, but for its texts.
    row_bytes: usize,
    text_bytes: usize,
}

/// The values of one column.
pub struct Column {
    /// Which rows have one; empty where the field is not nullable and all do.
    pub present: Vec<bool>,
    /// Those of the rows that have one.
    pub values: Values,
}

/// The values of a column, by their kind.
pub enum Values {
    /// Of [`Kind::Integer`], [`Kind::Moment`] and [`Kind::Thousandths`].
    Integers(Vec<i64>),
    /// Values of [`Kind::Word`]: codes into a dictionary.
    Words {
        /// Codes of the values, which are indexes into `words`.
        codes: Vec<u32>,
        /// The dictionary of distinct values.
        words: Strings,
    },
    /// Values of [`Kind::Text`], which are stored one by one.
    Texts {
        /// Where each begins in `bytes`, and where the last one ends.
        offsets: Vec<u32>,
        /// The texts, one directly after the other.
        bytes: Vec<u8>,
    },
}

/// A value for one column of a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// The row has no value here; only nullable fields accept it.
    Nothing,
    /// For integers, moments and thousandths.
    Integer(i64),
    /// A value of a word or text column.
    Text(&'a str),
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Cell<'a> {
        Cell::Text(text)
    }
}

macro_rules! integer_cells {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Cell<'_> {
            fn from(value: $kind) -> Self {
                Cell::Integer(i64::from(value))
            }
        })*
    };
}

integer_cells!(i64, i32, u32, i16, u16, u8);

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Cell<'a> {
        value.map_or(Cell::Nothing, Into::into)
    }
}

impl Rows {
    /// Creates an empty set of rows with these columns.
    pub fn new(fields: &'static [Field]) -> Rows {
        let columns = fields.iter().map(|field| Column {
            present: Vec::new(),
            values: match field.kind {
                Kind::Integer { .. } | Kind::Moment | Kind::Thousandths => {
                    Values::Integers(Vec::new())
                }
                Kind::Word => Values::Words {
                    codes: Vec::new(),
                    words: Strings::default(),
                },
                Kind::Text => Values::Texts {
                    offsets: vec![0],
                    bytes: Vec::new(),
                },
            },
        });
        Rows {
            fields,
            columns: columns.collect(),
            rows: 0,
            row_bytes: fields.len() * (size_of::<i64>() + 1),
            text_bytes: 0,
        }
    }

    /// Adds a row: a cell for each field, in their order.
    ///
    /// # Panics
    /// When a cell does not fit its field, which is a bug of the feed.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        // A column with one value more or less would shift all later rows, so this is checked in
        // releases, too.
        assert_eq!(cells.len(), self.fields.len(), "a cell for each field");
        for ((field, column), cell) in self.fields.iter().zip(&mut self.columns).zip(cells) {
            if field.nullable {
                column.present.push(*cell != Cell::Nothing);
            }
            match (&mut column.values, *cell) {
                (_, Cell::Nothing) if field.nullable => {}
                (Values::Integers(values), Cell::Integer(value)) => {
                    debug_assert!(
                        field
                            .kind
                            .range()
                            .is_some_and(|(least, most)| (least..=most).contains(&value)),
                        "{}: {value}",
                        field.name
                    );
                    values.push(value);
                }
                (Values::Words { codes, words }, Cell::Text(text)) => {
                    codes.push(words.code_of(text.as_bytes()));
                }
                (Values::Texts { offsets, bytes }, Cell::Text(text)) => {
                    bytes.extend_from_slice(text.as_bytes());
                    self.text_bytes += text.len();
                    // The reader limits the bytes of a chunk to 1 GiB, so the offset fits.
                    offsets.push(bytes.len() as u32);
                }
                (_, cell) => panic!("column {} cannot hold {cell:?}", field.name),
            }
        }
        self.rows += 1;
    }

    /// The number of rows since the last clear.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The fields and their values.
    pub fn columns(&self) -> impl Iterator<Item = (&'static Field, &Column)> {
        self.fields.iter().zip(&self.columns)
    }

    /// Removes the rows and keeps the dictionaries.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.text_bytes = 0;
        for column in &mut self.columns {
            column.present.clear();
            match &mut column.values {
                Values::Integers(values) => values.clear(),
                Values::Words { codes, .. } => codes.clear(),
                Values::Texts { offsets, bytes } => {
                    offsets.truncate(1);
                    bytes.clear();
                }
            }
        }
    }

    /// Forgets the dictionaries, too; only where there are no rows.
    ///
    /// # Panics
    /// When there are rows, whose codes would mean nothing.
    pub fn clear_dictionaries(&mut self) {
        // The codes of rows that stay would point into the new dictionary.
        assert!(self.is_empty(), "rows have codes");
        for column in &mut self.columns {
            if let Values::Words { words, .. } = &mut column.values {
                *words = Strings::default();
            }
        }
    }

    /// Bytes of the rows without their dictionaries.
    pub fn bytes(&self) -> usize {
        self.rows * self.row_bytes + self.text_bytes
    }

    /// Bytes of the dictionaries as pages hold them, and bytes of memory that they use.
    pub fn dictionary_bytes(&self) -> (usize, usize) {
        let columns = self.columns.iter().map(|column| match &column.values {
            Values::Words { words, .. } => (words.plain().len(), words.heap_bytes()),
            _ => (0, 0),
        });
        columns.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }
}
