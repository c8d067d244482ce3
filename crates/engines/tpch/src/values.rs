//! The values of a batch as a writer gets them, which are never strings where something shorter
//! says the same.

use std::ops::Range;

use crate::text::TextPool;

/// The values of one column for the rows of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Identifiers, which are never negative.
    Key(&'a [i64]),
    /// Integers that are not identifiers.
    Integer(&'a [i32]),
    /// Decimals, as numbers of hundredths.
    Decimal(&'a [i64]),
    /// Dates, as days since 1970-01-01.
    Date(&'a [i32]),
    /// Decimals, as indexes into a dictionary of numbers of hundredths.
    CodedDecimal {
        /// For each row an index into `dictionary`.
        codes: &'a [u8],
        /// All values that occur in the column, ascending.
        dictionary: &'static [i64],
    },
    /// Text, as indexes into a dictionary.
    Coded {
        /// For each row an index into `dictionary`.
        codes: &'a [u8],
        /// All values that occur in the column, in the order of dbgen.
        dictionary: &'static [&'static str],
    },
    /// A prefix and a number of at least nine digits with zeros in front, such as
    /// `Customer#000000001`.
    Numbered {
        /// The text that stands before the number.
        prefix: &'static str,
        /// For each row its number, which is above zero.
        numbers: &'a [i64],
    },
    /// Slices of the text pool.
    Passages(Passages<'a>),
    /// Text, one value after the other.
    Bytes {
        /// Where each value begins in `bytes`, and where the last one ends.
        offsets: &'a [u32],
        /// The bytes of all values, in ASCII.
        bytes: &'a [u8],
    },
}

/// Slices of the text pool, a few of them with words of their own in them.
#[derive(Clone, Copy, Debug)]
pub struct Passages<'a> {
    /// Where each of them begins in the pool.
    pub offsets: &'a [u32],
    /// How many bytes each of them has.
    pub lengths: &'a [u8],
    /// Where they differ from the pool, in ascending order of rows. Only `s_comment` has any.
    pub remarks: &'a [Remark],
    /// The number that the first row here has in `remarks`.
    pub first_row: u32,
}

/// Two words that stand in a supplier's comment instead of what the pool has there (clause 4.2.3).
/// They are "Customer " and, further on, "Complaints" or "Recommends".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The row, counted from the batch's first unit.
    pub row: u32,
    /// Where in the comment the first word begins.
    pub customer_at: u8,
    /// Where in the comment the second one begins.
    pub verdict_at: u8,
    /// The second word, without any space.
    pub verdict: &'static str,
}

impl Remark {
    /// The first of the two words, with its space.
    pub const CUSTOMER: &'static str = "Customer ";

    /// Writes the words over a comment.
    pub fn write_over(&self, comment: &mut [u8]) {
        for (at, word) in [
            (self.customer_at, Remark::CUSTOMER),
            (self.verdict_at, self.verdict),
        ] {
            let at = usize::from(at);
            comment[at..at + word.len()].copy_from_slice(word.as_bytes());
        }
    }
}

impl Passages<'_> {
    /// The number of passages, one for each row.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Appends the text of one row. [`Passages::copy_to`] is faster for all rows.
    pub fn append(&self, row: usize, pool: &TextPool, out: &mut Vec<u8>) {
        let offset = self.offsets[row] as usize;
        let start = out.len();
        let length = usize::from(self.lengths[row]);
        out.extend_from_slice(&pool.bytes()[offset..offset + length]);
        // One comment in a thousand has a remark, so they are a short sorted list beside the
        // slices.
        let row = row as u32 + self.first_row;
        if let Ok(found) = self.remarks.binary_search_by_key(&row, |remark| remark.row) {
            self.remarks[found].write_over(&mut out[start..]);
        }
    }
}

impl<'a> Values<'a> {
    /// The number of values, one for each row.
    pub fn len(&self) -> usize {
        match self {
            Values::Key(values) | Values::Decimal(values) => values.len(),
            Values::Integer(values) | Values::Date(values) => values.len(),
            Values::CodedDecimal { codes, .. } | Values::Coded { codes, .. } => codes.len(),
            Values::Numbered { numbers, .. } => numbers.len(),
            Values::Passages(passages) => passages.len(),
            Values::Bytes { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of some of the rows.
    ///
    /// # Panics
    /// When the range ends behind the last row.
    pub fn slice(&self, rows: Range<usize>) -> Values<'a> {
        match *self {
            Values::Key(values) => Values::Key(&values[rows]),
            Values::Integer(values) => Values::Integer(&values[rows]),
            Values::Decimal(values) => Values::Decimal(&values[rows]),
            Values::Date(values) => Values::Date(&values[rows]),
            Values::CodedDecimal { codes, dictionary } => Values::CodedDecimal {
                codes: &codes[rows],
                dictionary,
            },
            Values::Coded { codes, dictionary } => Values::Coded {
                codes: &codes[rows],
                dictionary,
            },
            Values::Numbered { prefix, numbers } => Values::Numbered {
                prefix,
                numbers: &numbers[rows],
            },
            Values::Passages(passages) => Values::Passages(Passages {
                first_row: passages.first_row + rows.start as u32,
                offsets: &passages.offsets[rows.clone()],
                lengths: &passages.lengths[rows],
                remarks: passages.remarks,
            }),
            Values::Bytes { offsets, bytes } => Values::Bytes {
                offsets: &offsets[rows.start..=rows.end],
                bytes,
            },
        }
    }
}
