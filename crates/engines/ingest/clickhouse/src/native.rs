//! Encodes columns as blocks of ClickHouse's Native format, frame by frame.
//!
//! A block is two counts, then for each column its name, its type and its values, column by column.
//! Source: ClickHouse, `src/Formats/NativeWriter.cpp`, and for dictionaries
//! `src/DataTypes/Serializations/SerializationLowCardinality.cpp`.

use std::ops::Range;

use dyno_codec::clickhouse::FrameWriter;
use dyno_ingest::scan::BadRow;

use crate::schema::{Column, Text};

/// Rows gathered at a time: the widest values of this many rows fit into a frame.
pub(crate) const PIECE: usize = 2048;
/// A code that has no index in the block's dictionary yet.
const UNSEEN: u32 = u32::MAX;

/// `SharedDictionariesWithAdditionalKeys`, the only version of the format.
const CODED_VERSION: u64 = 1;
/// The flags for a block that brings its keys and uses no others.
const CODED_KEYS: u64 = 1 << 9 | 1 << 10;

/// Writes the head of a block.
pub(crate) fn begin(out: &mut FrameWriter, columns: usize, rows: usize) {
    count(out, columns);
    count(out, rows);
}

/// Writes the head of a column, its name and type, before its values.
pub(crate) fn column(out: &mut FrameWriter, name: &str, kind: &str) {
    string(out, name.as_bytes());
    string(out, kind.as_bytes());
}

/// Writes one string of a column of type String.
pub(crate) fn string(out: &mut FrameWriter, bytes: &[u8]) {
    count(out, bytes.len());
    out.write(bytes);
}

fn count(out: &mut FrameWriter, mut value: usize) {
    while value >= 0x80 {
        out.write(&[value as u8 | 0x80]);
        value >>= 7;
    }
    out.write(&[value as u8]);
}

/// Encodes chunks of rows of one kind as blocks, which is the only difference between the feeds on
/// their way to a server.
pub(crate) trait Encode {
    /// The columns of a chunk.
    type Rows;

    /// Row numbers in the order of the table's key. Rows that a column cannot hold are left out and
    /// passed to `aside`.
    fn sorted(
        &mut self,
        rows: &Self::Rows,
        columns: &[Column],
        aside: &mut dyn FnMut(BadRow<'_>),
    ) -> Vec<u32>;

    /// Cuts the ordered rows into pieces that each lie in one partition.
    fn pieces(&self, rows: &Self::Rows, order: &[u32]) -> Vec<Range<usize>>;

    /// Encodes the rows `order` of `rows` as one block, in the types of `columns`.
    fn block(
        &mut self,
        rows: &Self::Rows,
        order: &[u32],
        columns: &[Column],
        out: &mut FrameWriter,
    );
}

/// The values of a column of strings: distinct strings, and for each row the index of its own.
pub(crate) struct Words<'a> {
    pub words: &'a [&'a [u8]],
    pub codes: &'a [u32],
    /// The index that stands for a missing value.
    pub nothing: Option<u32>,
}

/// Encodes columns of strings, and reuses its memory.
#[derive(Default)]
pub(crate) struct Texts {
    fixed: Vec<u8>,
    places: Vec<u32>,
    used: Vec<u32>,
}

impl Texts {
    /// Writes name, type and values of the column for the rows `order`. Strings longer than their
    /// type are cut.
    pub fn write(&mut self, text: Text, column: &Words<'_>, order: &[u32], out: &mut FrameWriter) {
        let Words { words, codes, .. } = *column;
        let code = |row: u32| codes[row as usize] as usize;
        match text {
            // The widths of the contract are copied from a table of padded strings, because padding
            // each row anew takes longer.
            Text::Fixed(16) => {
                let table = self.padded::<16>(words);
                gather(order, out, |row| table[code(row)]);
            }
            Text::Fixed(8) => {
                let table = self.padded::<8>(words);
                gather(order, out, |row| table[code(row)]);
            }
            Text::Fixed(len) => {
                for &row in order {
                    let word = words[code(row)];
                    let room = out.room(len);
                    room[..word.len()].copy_from_slice(word);
                    room[word.len()..].fill(0);
                }
            }
            Text::Plain => order.iter().for_each(|&row| string(out, words[code(row)])),
            Text::Coded => self.coded(column, order, out),
        }
    }

    /// Strings padded with zeros. Those that are too long are cut, but no row uses them.
    fn padded<const N: usize>(&mut self, words: &[&[u8]]) -> &[[u8; N]] {
        self.fixed.clear();
        self.fixed.resize(words.len() * N, 0);
        let (table, _) = self.fixed.as_chunks_mut::<N>();
        for (slot, word) in table.iter_mut().zip(words) {
            let len = word.len().min(N);
            slot[..len].copy_from_slice(&word[..len]);
        }
        table
    }

    /// Writes a dictionary of the strings that the block uses, and an index into it for each row.
    /// In a nullable column index 0 means a missing value.
    fn coded(&mut self, column: &Words<'_>, order: &[u32], out: &mut FrameWriter) {
        let Words {
            words,
            codes,
            nothing,
        } = *column;
        self.places.clear();
        self.places.resize(words.len(), UNSEEN);
        self.used.clear();
        let of_rows = order.iter().map(|&row| codes[row as usize]);
        // The format gives index 0 to missing values, so their code is entered before all others.
        for code in nothing.into_iter().chain(of_rows) {
            let place = &mut self.places[code as usize];
            if *place == UNSEEN {
                *place = self.used.len() as u32;
                self.used.push(code);
            }
        }
        let places = &self.places;
        let keys = self.used.iter().map(|&code| words[code as usize]);
        coded_column(keys, order.len(), out, |out, width| match width {
            Width::One => gather(order, out, |row| {
                [places[codes[row as usize] as usize] as u8]
            }),
            Width::Two => gather(order, out, |row| {
                (places[codes[row as usize] as usize] as u16).to_le_bytes()
            }),
            Width::Four => gather(order, out, |row| {
                places[codes[row as usize] as usize].to_le_bytes()
            }),
        });
    }
}

/// Writes a column with the same string in every row.
pub(crate) fn constant(text: Text, word: &[u8], rows: usize, out: &mut FrameWriter) {
    match text {
        Text::Fixed(len) => {
            for _row in 0..rows {
                let room = out.room(len);
                room.fill(0);
                room[..word.len()].copy_from_slice(word);
            }
        }
        Text::Plain => (0..rows).for_each(|_row| string(out, word)),
        Text::Coded => {
            coded_column(std::iter::once(word), rows, out, |out, _one| {
                let mut left = rows;
                while left > 0 {
                    let n = left.min(PIECE);
                    out.room(n).fill(0);
                    left -= n;
                }
            });
        }
    }
}

/// Bytes of an index into a dictionary.
#[derive(Clone, Copy)]
enum Width {
    One,
    Two,
    Four,
}

fn coded_column<'a>(
    keys: impl ExactSizeIterator<Item = &'a [u8]>,
    rows: usize,
    out: &mut FrameWriter,
    places: impl FnOnce(&mut FrameWriter, Width),
) {
    let (width, tag) = match keys.len() {
        0..=0x100 => (Width::One, 0),
        0x101..=0x1_0000 => (Width::Two, 1),
        _ => (Width::Four, 2),
    };
    out.write(&CODED_VERSION.to_le_bytes());
    out.write(&(CODED_KEYS | tag).to_le_bytes());
    out.write(&(keys.len() as u64).to_le_bytes());
    keys.for_each(|key| string(out, key));
    out.write(&(rows as u64).to_le_bytes());
    places(out, width);
}

/// Writes a value of `N` bytes for each row.
pub(crate) fn gather<const N: usize>(
    order: &[u32],
    out: &mut FrameWriter,
    value: impl Fn(u32) -> [u8; N],
) {
    for piece in order.chunks(PIECE) {
        let (slots, _) = out.room(piece.len() * N).as_chunks_mut::<N>();
        for (slot, &row) in slots.iter_mut().zip(piece) {
            *slot = value(row);
        }
    }
}
