//! Tables made for tests: every form that a column can have, and what its values are.

use std::ops::Range;
use std::sync::Arc;

use dyno_formats::columns::{Codes, Field, Kind, Slices, Values, Words};
use dyno_formats::parquet_write::{Layout, Options, RowGroupWriter, TableWriter};

/// A column in one of the forms in which an engine may have it.
#[derive(Debug, Clone)]
pub struct Column {
    pub field: Field,
    pub data: Data,
}

#[derive(Debug, Clone)]
pub enum Data {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Text(Vec<String>),
    Slices(Vec<String>),
    Codes8(Vec<u8>, Vec<String>),
    Codes32(Vec<u32>, Vec<String>),
    IntegerCodes8(Vec<u8>, Vec<i64>),
    IntegerCodes32(Vec<u32>, Vec<i64>),
}

/// A value as its reader may see it: integers, days and hundredths as integers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Integer(i64),
    Text(String),
}

impl Column {
    pub fn new(name: &'static str, kind: Kind, data: Data) -> Column {
        let field = Field { name, kind };
        Column { field, data }
    }

    pub fn rows(&self) -> usize {
        match &self.data {
            Data::Int64(values) => values.len(),
            Data::Int32(values) => values.len(),
            Data::Text(values) | Data::Slices(values) => values.len(),
            Data::Codes8(codes, _) | Data::IntegerCodes8(codes, _) => codes.len(),
            Data::Codes32(codes, _) | Data::IntegerCodes32(codes, _) => codes.len(),
        }
    }

    pub fn value(&self, row: usize) -> Value {
        match &self.data {
            Data::Int64(values) => Value::Integer(values[row]),
            Data::Int32(values) => Value::Integer(values[row].into()),
            Data::Text(values) | Data::Slices(values) => Value::Text(values[row].clone()),
            Data::Codes8(codes, words) => Value::Text(words[usize::from(codes[row])].clone()),
            Data::Codes32(codes, words) => Value::Text(words[codes[row] as usize].clone()),
            Data::IntegerCodes8(codes, values) => Value::Integer(values[usize::from(codes[row])]),
            Data::IntegerCodes32(codes, values) => Value::Integer(values[codes[row] as usize]),
        }
    }

    fn words(&self) -> Words {
        match &self.data {
            Data::Codes8(_, words) | Data::Codes32(_, words) => Words::new(words),
            _ => Words::new([""; 0]),
        }
    }
}

/// Text of some rows, as a batch has it.
struct Pieces {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
    lengths: Vec<u8>,
}

const SPOILT_BYTES: usize = 16;

impl Pieces {
    fn new(column: &Column, rows: Range<usize>) -> Pieces {
        let values = match &column.data {
            Data::Text(values) | Data::Slices(values) => &values[rows],
            _ => &[],
        };
        // The first bytes belong to nobody: offsets need not begin at 0.
        let mut bytes = b"not in it".to_vec();
        let mut offsets = vec![bytes.len() as u32];
        for value in values {
            bytes.extend(value.as_bytes());
            offsets.push(bytes.len() as u32);
        }
        Pieces {
            offsets,
            bytes,
            lengths: values.iter().map(|value| value.len() as u8).collect(),
        }
    }
}

impl Slices for Pieces {
    fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    fn total_bytes(&self) -> usize {
        self.bytes.len() - self.offsets[0] as usize
    }

    fn padding_bytes(&self) -> usize {
        SPOILT_BYTES
    }

    fn copy_to(&self, out: &mut [u8]) -> usize {
        let total = self.total_bytes();
        out[..total].copy_from_slice(&self.bytes[self.offsets[0] as usize..]);
        out[total..total + SPOILT_BYTES].fill(0xff);
        total
    }
}

/// Hands the rows to `take` in batches.
pub fn each_batch(columns: &[Column], batch_rows: usize, mut take: impl FnMut(&[Values<'_>])) {
    let all_rows = columns.first().map_or(0, Column::rows);
    let words: Vec<Words> = columns.iter().map(Column::words).collect();
    for start in (0..all_rows).step_by(batch_rows) {
        let rows = start..(start + batch_rows).min(all_rows);
        let pieces: Vec<Pieces> = columns
            .iter()
            .map(|column| Pieces::new(column, rows.clone()))
            .collect();
        let values = columns.iter().zip(&words).zip(&pieces);
        let batch: Vec<Values<'_>> = values
            .map(|((column, words), pieces)| values_of(column, words, pieces, rows.clone()))
            .collect();
        take(&batch);
    }
}

fn values_of<'a>(
    column: &'a Column,
    words: &'a Words,
    pieces: &'a Pieces,
    rows: Range<usize>,
) -> Values<'a> {
    match &column.data {
        Data::Int64(values) => Values::Int64(&values[rows]),
        Data::Int32(values) => Values::Int32(&values[rows]),
        Data::Text(_) => Values::Text {
            offsets: &pieces.offsets,
            bytes: &pieces.bytes,
        },
        Data::Slices(_) => Values::Slices(pieces),
        Data::Codes8(codes, _) => Values::CodedText {
            codes: Codes::U8(&codes[rows]),
            words,
        },
        Data::Codes32(codes, _) => Values::CodedText {
            codes: Codes::U32(&codes[rows]),
            words,
        },
        Data::IntegerCodes8(codes, values) => Values::CodedInt64 {
            codes: Codes::U8(&codes[rows]),
            values,
        },
        Data::IntegerCodes32(codes, values) => Values::CodedInt64 {
            codes: Codes::U32(&codes[rows]),
            values,
        },
    }
}

/// Writes a file of row groups with so many batches each.
pub fn write(columns: &[Column], options: Options, batch_rows: usize, batches: usize) -> Vec<u8> {
    let fields: Vec<Field> = columns.iter().map(|column| column.field).collect();
    let layout = Arc::new(Layout::new(&fields, options).unwrap());
    let mut writer = RowGroupWriter::new(&layout);
    let mut file = TableWriter::new(Vec::new(), Arc::clone(&layout)).unwrap();
    let mut appended = 0;
    each_batch(columns, batch_rows, |batch| {
        writer.append(batch).unwrap();
        appended += 1;
        if appended % batches == 0 {
            let group = writer.finish().unwrap();
            file.append(group).unwrap();
        }
    });
    let rest = writer.finish().unwrap();
    file.append(rest).unwrap();
    let (bytes, summary) = file.finish().unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    assert_eq!(summary.rows, columns[0].rows() as u64);
    bytes
}

/// Draws that are the same each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn integers(&mut self, rows: usize, low: i64, values: u64) -> Vec<i64> {
        (0..rows).map(|_| low + self.below(values) as i64).collect()
    }

    fn sentences(&mut self, rows: usize, longest: u64) -> Vec<String> {
        let words = ["furious", "even", "pinto", "beans", "sleep", "über", "日本"];
        (0..rows)
            .map(|_| {
                let length = 1 + self.below(longest);
                let words: Vec<_> = (0..length).map(|_| words[self.below(7) as usize]).collect();
                words.join(" ")
            })
            .collect()
    }
}

/// A table with a column of every form, in the shapes of TPC-H.
pub fn table(rows: usize) -> Vec<Column> {
    let mut draws = Draws(7);
    let money = Kind::Decimal {
        precision: 15,
        scale: 2,
    };
    let names = (0..rows).map(|i| format!("Customer#{i:09}")).collect();
    let keys = (0..rows as i64).map(|i| i / 4).collect();
    let lines = (0..rows as i32).map(|i| i % 4).collect();
    let days = narrow(draws.integers(rows, 8000, 2500));
    let taxes = vec![8, -1, 2, 3, 400, 5, 0, 7, 6];
    let taxes = Data::IntegerCodes8(narrow(draws.integers(rows, 0, 9)), taxes);
    let costs = (0..600).rev().map(|value| value * 7).collect();
    let costs = Data::IntegerCodes32(narrow(draws.integers(rows, 0, 600)), costs);
    let modes = ["TRUCK", "AIR", "REG AIR", "", "SHIP"].map(String::from);
    let modes = Data::Codes8(narrow(draws.integers(rows, 0, 4)), modes.to_vec());
    let clerks = (0..1000).map(|i| format!("Clerk#{i:09}")).collect();
    let clerks = Data::Codes32(narrow(draws.integers(rows, 0, 1000)), clerks);
    let mut wide = |low, values| Data::Int64(draws.integers(rows, low, values));
    let (parts, prices) = (wide(-5, 200_000), wide(-999_999, 10_000_000));
    let comments = Data::Slices(draws.sentences(rows, 5));
    let long = Data::Text(draws.sentences(rows, 15));
    vec![
        Column::new("key", Kind::Int64, Data::Int64(keys)),
        Column::new("line", Kind::Int32, Data::Int32(lines)),
        Column::new("part", Kind::Int64, parts),
        Column::new("price", money, prices),
        Column::new("day", Kind::Date, Data::Int32(days)),
        Column::new("tax", money, taxes),
        Column::new("cost", money, costs),
        Column::new("mode", Kind::Char(10), modes),
        Column::new("clerk", Kind::Char(15), clerks),
        Column::new("name", Kind::Varchar(25), Data::Text(names)),
        Column::new("comment", Kind::Varchar(200), comments),
        Column::new("long", Kind::Text, long),
    ]
}

fn narrow<T: TryFrom<i64>>(values: Vec<i64>) -> Vec<T> {
    let narrow = |value| T::try_from(value).ok().unwrap();
    values.into_iter().map(narrow).collect()
}
