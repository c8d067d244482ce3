//! Encodes columns of rows as the pages of one row group.

use dyno_formats::parquet_write::{self, Bounds, Column, Compression, Dictionary, Field, Logical};
use dyno_ingest::load::{RowGroups, Types, encode_strings};
use dyno_ingest::scan::Numbers;

use crate::field::{self, Kind};
use crate::rows::{Rows, Values};

/// The compression of texts that hardly repeat.
const TEXT_CODEC: Compression = Compression::Zstd(1);

/// The columns of a feed's Parquet files.
fn fields(fields: &[field::Field]) -> Vec<Field> {
    let fields = fields.iter().map(|field| Field {
        name: field.name,
        nullable: field.nullable,
        id: None,
        logical: match field.kind {
            Kind::Integer { bits, signed } => Logical::Integer { bits, signed },
            Kind::Moment => Logical::TimestampMillis,
            Kind::Thousandths => Logical::Decimal {
                precision: 15,
                scale: 3,
            },
            Kind::Word | Kind::Text => Logical::Text,
        },
    });
    fields.collect()
}

/// Encodes row groups, one after the other, in memory that it keeps.
pub(super) struct Encoder {
    feed: &'static str,
    fields: &'static [field::Field],
    types: Types,
    columns: Vec<Column>,
    codes: Vec<u32>,
    plain: Vec<u8>,
}

impl RowGroups for Encoder {
    type Chunk = Rows;

    fn feed(&self) -> &'static str {
        self.feed
    }

    fn fields(&self) -> Vec<Field> {
        self.types.fields(fields(self.fields))
    }

    fn about(&self) -> Vec<(String, String)> {
        vec![("dyno.feed".to_owned(), self.feed.to_owned())]
    }

    fn encode(&mut self, rows: &Rows) -> Result<&[Column], parquet_write::Error> {
        let count = rows.columns().count();
        self.columns.resize_with(count, Column::default);
        for (at, (field, column)) in rows.columns().enumerate() {
            if field.nullable {
                // Values are stored for the rows that have one, and this says which rows those are.
                self.columns[at].present(column.present.iter().copied());
            }
            match &column.values {
                Values::Integers(values) => self.integers(at, field, values)?,
                Values::Words { codes, words } => {
                    encode_strings(&mut self.columns[at], words, codes);
                }
                Values::Texts { offsets, bytes } => {
                    self.columns[at].plain_text(offsets, bytes, TEXT_CODEC, None)?;
                }
            }
        }
        Ok(&self.columns)
    }
}

impl Encoder {
    /// For archives of `feed`, whose columns are `fields`.
    pub(super) fn new(
        feed: &'static str,
        fields: &'static [field::Field],
        types: Types,
    ) -> Encoder {
        Encoder {
            feed,
            fields,
            types,
            columns: Vec::new(),
            codes: Vec::new(),
            plain: Vec::new(),
        }
    }

    fn integers(
        &mut self,
        at: usize,
        field: &field::Field,
        values: &[i64],
    ) -> Result<(), parquet_write::Error> {
        let kind = field.kind;
        let scaled;
        let values = match (kind, self.types) {
            (Kind::Moment, Types::Iceberg) => {
                scaled = microseconds(field.name, values, self.types.per_millisecond())?;
                &scaled
            }
            _ => values,
        };
        let narrow = match (kind, self.types) {
            // Iceberg has no type of 32 bits without a sign.
            (
                Kind::Integer {
                    bits: 32,
                    signed: false,
                },
                Types::Iceberg,
            ) => false,
            (Kind::Integer { bits: ..=32, .. }, _) => true,
            _ => false,
        };
        let bounds = bounds(values, narrow);
        let column = &mut self.columns[at];
        // Times and their like have too many values for a dictionary, and small differences.
        if kind != Kind::Moment
            && let Some(numbers) = distinct(values, &mut self.codes)
        {
            self.plain.clear();
            for &value in numbers.values() {
                push(&mut self.plain, value as i64, narrow);
            }
            let dictionary = Dictionary {
                plain: &self.plain,
                values: numbers.values().len(),
            };
            column.dictionary(dictionary, &self.codes, bounds);
        } else if narrow {
            let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
            column.plain_i32(&values, bounds);
        } else {
            column.delta(values, bounds);
        }
        Ok(())
    }
}

fn microseconds(
    column: &'static str,
    values: &[i64],
    per_millisecond: i64,
) -> Result<Vec<i64>, parquet_write::Error> {
    let scale = |&value: &i64| {
        let beyond = || parquet_write::Error::OutOfRange {
            column,
            value: value.to_string(),
        };
        value.checked_mul(per_millisecond).ok_or_else(beyond)
    };
    values.iter().map(scale).collect()
}

/// The distinct numbers and, in `codes`, the index of each value among them; `None` if they are too
/// many for a dictionary to pay.
fn distinct(values: &[i64], codes: &mut Vec<u32>) -> Option<Numbers> {
    const ALWAYS: usize = 1024;
    // Beyond this share a dictionary hardly pays. The attempt ends at once, so a column of many
    // values costs little.
    let most = (values.len() / 4).max(ALWAYS);
    let mut numbers = Numbers::default();
    codes.clear();
    for &value in values {
        codes.push(numbers.code_of(value as u64));
        if numbers.values().len() > most {
            return None;
        }
    }
    Some(numbers)
}

fn push(out: &mut Vec<u8>, value: i64, narrow: bool) {
    if narrow {
        out.extend_from_slice(&(value as i32).to_le_bytes());
    } else {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn bounds(values: &[i64], narrow: bool) -> Option<Bounds> {
    let ends = values.iter().min().zip(values.iter().max());
    ends.map(|(&least, &greatest)| {
        let (mut min, mut max) = (Vec::new(), Vec::new());
        push(&mut min, least, narrow);
        push(&mut max, greatest, narrow);
        Bounds {
            min,
            max,
            exact: true,
        }
    })
}
