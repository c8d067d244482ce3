//! Brings the values of a batch into plain form, where codes do not pay.

use super::text::Text;
use crate::columns::{Codes, Values, gather};

/// The most rows of a page.
pub(super) const ROWS_MAX: usize = 32 * 1024;
/// The most bytes of a page of text, unless a single value has more.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Values in plain form, one after the other.
#[derive(Clone, Copy)]
pub(super) enum Flat<'a> {
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Text(Text<'a>),
}

impl<'a> Flat<'a> {
    pub fn len(&self) -> usize {
        match self {
            Flat::Int32(values) => values.len(),
            Flat::Int64(values) => values.len(),
            Flat::Text(text) => text.len(),
        }
    }

    /// Splits off the first values, at most `rows` of them.
    pub fn split(self, rows: usize) -> (Flat<'a>, Flat<'a>) {
        let rows = rows.min(self.len());
        match self {
            Flat::Int32(values) => {
                let (first, rest) = values.split_at(rows);
                (Flat::Int32(first), Flat::Int32(rest))
            }
            Flat::Int64(values) => {
                let (first, rest) = values.split_at(rows);
                (Flat::Int64(first), Flat::Int64(rest))
            }
            Flat::Text(text) => (
                Flat::Text(text.rows(0..rows)),
                Flat::Text(text.rows(rows..text.len())),
            ),
        }
    }

    /// Splits off the values of the next page, at least one.
    pub fn split_page(self) -> (Flat<'a>, Flat<'a>) {
        let Flat::Text(text) = self else {
            return self.split(ROWS_MAX);
        };
        let ends = text.offsets.get(1..).unwrap_or(&[]);
        let first = text.offsets.first().copied().unwrap_or(0) as usize;
        let fit = ends.partition_point(|&end| end as usize <= first + TEXT_BYTES_MAX);
        self.split(fit.clamp(1, ROWS_MAX))
    }
}

/// Memory for values that came in another form.
#[derive(Default)]
pub(super) struct FlatScratch {
    integers: Vec<i64>,
    offsets: Vec<u32>,
    /// May be longer than the text of the current batch, because it is never cut.
    bytes: Vec<u8>,
}

impl FlatScratch {
    /// Brings values into plain form. The caller has checked codes.
    pub fn flatten<'a>(&'a mut self, values: &Values<'a>) -> Flat<'a> {
        match *values {
            Values::Int64(values) => Flat::Int64(values),
            Values::Int32(values) => Flat::Int32(values),
            Values::Text { offsets, bytes } => Flat::Text(Text { offsets, bytes }),
            Values::CodedInt64 { codes, values } => {
                self.integers.clear();
                each_code(codes, |code| self.integers.push(values[code]));
                Flat::Int64(&self.integers)
            }
            Values::CodedText { codes, words } => {
                self.offsets.clear();
                self.offsets.push(0);
                self.bytes.clear();
                each_code(codes, |code| {
                    self.bytes.extend_from_slice(words.word(code));
                    self.offsets.push(self.bytes.len() as u32);
                });
                self.text()
            }
            Values::Slices(slices) => {
                gather(slices, 0, &mut self.offsets, &mut self.bytes);
                self.text()
            }
        }
    }

    fn text(&self) -> Flat<'_> {
        Flat::Text(Text {
            offsets: &self.offsets,
            bytes: &self.bytes,
        })
    }
}

fn each_code(codes: Codes<'_>, mut take: impl FnMut(usize)) {
    match codes {
        Codes::U8(codes) => codes.iter().for_each(|&code| take(code.into())),
        Codes::U32(codes) => codes.iter().for_each(|&code| take(code as usize)),
    }
}
