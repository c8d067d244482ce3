//! Turns columns into arrays of values, which is what a program has that knows nothing of
//! dictionaries.

use dyno_formats::columns::Values;
use dyno_tpch::{Batch, PADDING_BYTES, TextPool};

use super::numbered;

/// The arrays of one table, used for batch after batch.
#[derive(Default)]
pub(crate) struct Plain {
    columns: Vec<Column>,
}

#[derive(Default)]
struct Column {
    integers: Vec<i64>,
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

impl Plain {
    pub(super) fn with_columns<R>(
        &mut self,
        batch: &Batch,
        pool: &TextPool,
        take: impl FnOnce(&[Values<'_>]) -> R,
    ) -> R {
        let count = batch.table().columns().len();
        self.columns.resize_with(count, Column::default);
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.fill(&batch.values(at), pool);
        }
        let columns: Vec<Values> = (0..count)
            .map(|at| self.columns[at].values(batch.values(at)))
            .collect();
        take(&columns)
    }
}

impl Column {
    /// Makes values of codes, names and passages. Other columns are passed on as they are.
    fn fill(&mut self, values: &dyno_tpch::Values<'_>, pool: &TextPool) {
        self.integers.clear();
        self.offsets.clear();
        self.offsets.push(0);
        match *values {
            dyno_tpch::Values::CodedDecimal { codes, dictionary } => self
                .integers
                .extend(codes.iter().map(|&code| dictionary[usize::from(code)])),
            dyno_tpch::Values::Coded { codes, dictionary } => {
                self.bytes.clear();
                for &code in codes {
                    self.bytes
                        .extend_from_slice(dictionary[usize::from(code)].as_bytes());
                    self.offsets.push(self.bytes.len() as u32);
                }
            }
            dyno_tpch::Values::Numbered { prefix, numbers } => {
                self.bytes.clear();
                for &number in numbers {
                    let end = numbered::append(prefix, number, &mut self.bytes);
                    self.offsets.push(end);
                }
            }
            dyno_tpch::Values::Passages(passages) => {
                let space = passages.total_bytes() + PADDING_BYTES;
                if self.bytes.len() < space {
                    self.bytes.resize(space, 0);
                }
                passages.copy_to(pool, &mut self.bytes);
                let mut end = 0;
                self.offsets.extend(passages.lengths.iter().map(|&length| {
                    end += u32::from(length);
                    end
                }));
            }
            _ => {}
        }
    }

    fn values<'a>(&'a self, values: dyno_tpch::Values<'a>) -> Values<'a> {
        match values {
            dyno_tpch::Values::Key(values) | dyno_tpch::Values::Decimal(values) => {
                Values::Int64(values)
            }
            dyno_tpch::Values::Integer(values) | dyno_tpch::Values::Date(values) => {
                Values::Int32(values)
            }
            dyno_tpch::Values::CodedDecimal { .. } => Values::Int64(&self.integers),
            dyno_tpch::Values::Bytes { offsets, bytes } => Values::Text { offsets, bytes },
            _ => Values::Text {
                offsets: &self.offsets,
                bytes: &self.bytes,
            },
        }
    }
}
