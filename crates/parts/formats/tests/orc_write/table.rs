//! Rows with every type, in every form in which a writer may be given them.

use dyno_formats::columns::{Codes, Field, Kind, Slices, Values, Words};
use std::ops::Range;

/// A column with all its values.
pub enum Owned {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    CodedInt64(Vec<u8>, Vec<i64>),
    WideCodedInt64(Vec<u32>, Vec<i64>),
    Coded(Vec<u8>, Words),
    WideCoded(Vec<u32>, Words),
    Text(Vec<String>),
    Slices(Vec<String>),
}

/// A field with all its values.
pub struct Column {
    pub field: Field,
    pub values: Owned,
}

/// Values of a batch that need memory of their own.
#[derive(Default)]
pub struct Loose {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
    slices: Scattered,
}

#[derive(Default)]
pub struct Scattered {
    lengths: Vec<u8>,
    texts: Vec<String>,
}

const PADDING: usize = 16;

impl Slices for Scattered {
    fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    fn total_bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }

    fn padding_bytes(&self) -> usize {
        PADDING
    }

    fn copy_to(&self, out: &mut [u8]) -> usize {
        let mut at = 0;
        for text in &self.texts {
            out[at..at + text.len()].copy_from_slice(text.as_bytes());
            at += text.len();
            out[at..at + PADDING].fill(b'#');
        }
        at
    }
}

impl Column {
    pub fn new(name: &'static str, kind: Kind, values: Owned) -> Column {
        Column {
            field: Field { name, kind },
            values,
        }
    }

    /// Makes what a batch of some rows needs.
    pub fn loosen(&self, rows: Range<usize>) -> Loose {
        let mut loose = Loose::default();
        match &self.values {
            Owned::Text(texts) => {
                // Values need not begin at the first byte.
                loose.bytes.extend_from_slice(b"before");
                loose.offsets.push(loose.bytes.len() as u32);
                for text in &texts[rows] {
                    loose.bytes.extend_from_slice(text.as_bytes());
                    loose.offsets.push(loose.bytes.len() as u32);
                }
            }
            Owned::Slices(texts) => {
                loose.slices.texts = texts[rows].to_vec();
                let lengths = loose.slices.texts.iter().map(|text| text.len() as u8);
                loose.slices.lengths = lengths.collect();
            }
            _ => {}
        }
        loose
    }

    pub fn batch<'a>(&'a self, rows: Range<usize>, loose: &'a Loose) -> Values<'a> {
        match &self.values {
            Owned::Int64(values) => Values::Int64(&values[rows]),
            Owned::Int32(values) => Values::Int32(&values[rows]),
            Owned::CodedInt64(codes, values) => Values::CodedInt64 {
                codes: Codes::U8(&codes[rows]),
                values,
            },
            Owned::WideCodedInt64(codes, values) => Values::CodedInt64 {
                codes: Codes::U32(&codes[rows]),
                values,
            },
            Owned::Coded(codes, words) => Values::CodedText {
                codes: Codes::U8(&codes[rows]),
                words,
            },
            Owned::WideCoded(codes, words) => Values::CodedText {
                codes: Codes::U32(&codes[rows]),
                words,
            },
            Owned::Text(_) => Values::Text {
                offsets: &loose.offsets,
                bytes: &loose.bytes,
            },
            Owned::Slices(_) => Values::Slices(&loose.slices),
        }
    }

    /// What a reader should print for a row.
    pub fn print(&self, row: usize) -> String {
        let word = |words: &Words, code: usize| String::from_utf8(words.word(code).into()).unwrap();
        let number = match &self.values {
            Owned::Int64(values) => values[row],
            Owned::Int32(values) => values[row].into(),
            Owned::CodedInt64(codes, values) => values[codes[row] as usize],
            Owned::WideCodedInt64(codes, values) => values[codes[row] as usize],
            Owned::Coded(codes, words) => return word(words, codes[row] as usize),
            Owned::WideCoded(codes, words) => return word(words, codes[row] as usize),
            Owned::Text(texts) | Owned::Slices(texts) => return texts[row].clone(),
        };
        match self.field.kind {
            Kind::Decimal { scale, .. } => {
                let sign = if number < 0 { "-" } else { "" };
                let one = 10u64.pow(scale.into());
                let (whole, part) = (number.unsigned_abs() / one, number.unsigned_abs() % one);
                let places = usize::from(scale);
                format!("{sign}{whole}.{part:0places$}")
            }
            _ => number.to_string(),
        }
    }
}

/// A small generator of numbers, the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    fn text(&mut self, least: u64, most: u64) -> String {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz ,.";
        let length = least + self.below(most - least + 1);
        let letter = |_| char::from(LETTERS[self.below(LETTERS.len() as u64) as usize]);
        (0..length).map(letter).collect()
    }
}

/// Makes the number of a row.
type Make = Box<dyn FnMut(usize, &mut Random) -> i64>;

const MONEY: Kind = Kind::Decimal {
    precision: 15,
    scale: 2,
};

/// Columns with the shapes of TPC-H, and some with odd ones.
pub fn table(rows: usize) -> Vec<Column> {
    let mut random = Random(rows as u64 + 7);
    let mut columns = Vec::new();
    let numbers = integers().into_iter().chain(others());
    for (name, kind, mut make) in numbers {
        let values: Vec<i64> = (0..rows).map(|row| make(row, &mut random)).collect();
        let values = match kind {
            Kind::Int32 | Kind::Date => {
                Owned::Int32(values.into_iter().map(|value| value as i32).collect())
            }
            _ => Owned::Int64(values),
        };
        columns.push(Column::new(name, kind, values));
    }
    columns.extend(coded(rows, &mut random));
    columns.extend(plain(rows, &mut random));
    columns
}

fn integers() -> Vec<(&'static str, Kind, Make)> {
    let sorted = |row, _: &mut Random| (row / 4 % 8 + row / 32 * 32) as i64;
    let spiky = |row, random: &mut Random| {
        let value = random.below(100) as i64 - 50;
        if row % 97 == 3 { value << 33 } else { value }
    };
    let runs = |row, _: &mut Random| (row / 50 * 7919 % 11) as i64 * 1_000_000;
    let below = |limit| move |_, random: &mut Random| random.below(limit) as i64 + 1;
    let int = |_, random: &mut Random| i64::from(random.next() as i32);
    let long = |_, random: &mut Random| random.next() as i64;
    vec![
        ("key", Kind::Int64, Box::new(sorted)),
        ("part", Kind::Int64, Box::new(below(200_000))),
        ("line", Kind::Int32, Box::new(|row, _| row as i64 % 7 + 1)),
        ("signed", Kind::Int32, Box::new(int)),
        ("wide", Kind::Int64, Box::new(long)),
        ("spiky", Kind::Int64, Box::new(spiky)),
        ("same", Kind::Int32, Box::new(|_, _| 0)),
        ("runs", Kind::Int64, Box::new(runs)),
    ]
}

fn others() -> Vec<(&'static str, Kind, Make)> {
    let day = |_, random: &mut Random| random.below(2500) as i64 + 8000;
    let price = |_, random: &mut Random| random.below(10_000_000) as i64 - 500_000;
    let large = |row, random: &mut Random| {
        let value = (random.next() >> 5) as i64;
        if row % 2 == 0 {
            value % 1_000_000_000_000_000_000
        } else {
            -value % 1000
        }
    };
    let eighteen = Kind::Decimal {
        precision: 18,
        scale: 4,
    };
    vec![
        ("day", Kind::Date, Box::new(day)),
        ("price", MONEY, Box::new(price)),
        ("large", eighteen, Box::new(large)),
    ]
}

fn coded(rows: usize, random: &mut Random) -> Vec<Column> {
    let mut codes =
        |below: u64| -> Vec<u8> { (0..rows).map(|_| random.below(below) as u8).collect() };
    let modes = ["TRUCK", "AIR", "MAIL", "REG AIR", "SHIP", "FOB", "RAIL"];
    let tax = Owned::CodedInt64(codes(9), (0..9).collect());
    let quantity = Owned::CodedInt64(codes(50), (1..=50).map(|value| value * 100).collect());
    let level = Owned::CodedInt64(codes(3), vec![-5, 1 << 40, 0]);
    let mode = Owned::Coded(codes(7), Words::new(modes));
    let flag = Owned::Coded(codes(3), Words::new(["R", "A", "N"]));
    let empty = Owned::Coded(codes(1), Words::new([""]));
    let clerks: Vec<String> = (0..2000).rev().map(|i| format!("Clerk#{i:09}")).collect();
    let mut wide =
        |below: u64| -> Vec<u32> { (0..rows).map(|_| random.below(below) as u32).collect() };
    let clerk = Owned::WideCoded(wide(2000), Words::new(&clerks));
    let few = Owned::WideCoded(wide(300), Words::new(&clerks));
    let long = Owned::WideCodedInt64(wide(1000), (0..1000).map(|i| i * i * i - 500).collect());
    vec![
        Column::new("tax", MONEY, tax),
        Column::new("quantity", MONEY, quantity),
        Column::new("level", Kind::Int64, level),
        Column::new("mode", Kind::Char(10), mode),
        Column::new("flag", Kind::Char(1), flag),
        Column::new("empty", Kind::Text, empty),
        Column::new("clerk", Kind::Char(15), clerk),
        Column::new("few", Kind::Varchar(20), few),
        Column::new("long", MONEY, long),
    ]
}

fn plain(rows: usize, random: &mut Random) -> Vec<Column> {
    let mut texts = |make: &mut dyn FnMut(usize, &mut Random) -> String| -> Vec<String> {
        (0..rows).map(|row| make(row, random)).collect()
    };
    let found = texts(&mut |_, random| format!("Größe {}", random.below(500)));
    let address = texts(&mut |_, random| random.text(10, 40));
    // A dictionary pays in the first stride, and no more at the end.
    let late = texts(&mut |row, random| match row {
        0..10_000 => format!("{}", random.below(4000)),
        _ => format!("unique {row}"),
    });
    let comment = texts(&mut |_, random| random.text(0, 43));
    let blank = texts(&mut |_, _| String::new());
    vec![
        Column::new("found", Kind::Text, Owned::Text(found)),
        Column::new("address", Kind::Varchar(40), Owned::Text(address)),
        Column::new("late", Kind::Text, Owned::Text(late)),
        Column::new("comment", Kind::Varchar(44), Owned::Slices(comment)),
        Column::new("blank", Kind::Text, Owned::Slices(blank)),
    ]
}
