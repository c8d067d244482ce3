//! Encodes values into the body of a page.

use super::flat::Flat;
use super::intern::Interner;
use super::page::encoding;
use super::{delta, hybrid};

/// The ways in which the values of a chunk become pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Plain,
    Delta,
    Prefix,
    /// A dictionary that is built by hashing values.
    ByHash,
    /// A dictionary of those codes of a large one that occur.
    ByCode,
    /// The caller's own dictionary of at most 256 entries, kept as it is.
    Whole,
}

/// Memory for the body of a page and for the steps to it.
#[derive(Default)]
pub(super) struct Body {
    pub bytes: Vec<u8>,
    pub codes: Vec<u32>,
    pub lengths: Vec<i32>,
}

impl Body {
    /// Encodes values that have no codes, and returns the format's number of the encoding.
    pub fn fill(&mut self, how: How, values: Flat<'_>, interner: &mut Interner) -> i32 {
        self.bytes.clear();
        match (how, values) {
            (How::Plain, Flat::Int32(values)) => self.plain(values, i32::to_le_bytes),
            (How::Plain, Flat::Int64(values)) => self.plain(values, i64::to_le_bytes),
            (How::Plain, Flat::Text(text)) => {
                text.plain(&mut self.bytes);
                encoding::PLAIN
            }
            (How::ByHash | How::ByCode | How::Whole, _) => {
                self.codes.clear();
                match values {
                    Flat::Int32(values) => self.codes.extend(
                        values
                            .iter()
                            .map(|&value| interner.integer(value.into(), value.to_le_bytes())),
                    ),
                    Flat::Int64(values) => self.codes.extend(
                        values
                            .iter()
                            .map(|&value| interner.integer(value, value.to_le_bytes())),
                    ),
                    Flat::Text(text) => {
                        self.codes
                            .extend(text.iter().map(|value| interner.text(value)));
                    }
                }
                self.pack_interned(interner.len())
            }
            (_, Flat::Int32(values)) => {
                delta::encode(values, &mut self.bytes);
                encoding::DELTA_BINARY_PACKED
            }
            (_, Flat::Int64(values)) => {
                delta::encode(values, &mut self.bytes);
                encoding::DELTA_BINARY_PACKED
            }
            (How::Prefix, Flat::Text(text)) => {
                text.delta_prefix(&mut self.lengths, &mut self.bytes);
                encoding::DELTA_BYTE_ARRAY
            }
            (How::Delta, Flat::Text(text)) => {
                text.delta_length(&mut self.lengths, &mut self.bytes);
                encoding::DELTA_LENGTH_BYTE_ARRAY
            }
        }
    }

    /// Encodes the codes in `self.codes`, which the interner has given out.
    pub fn pack_interned(&mut self, entries: usize) -> i32 {
        self.bytes.clear();
        let width = hybrid::bits_for(entries);
        self.bytes.push(width as u8);
        hybrid::encode(&self.codes, width, &mut self.bytes);
        encoding::RLE_DICTIONARY
    }

    /// Encodes codes that came from the caller and are below `entries`.
    pub fn pack(&mut self, codes: &[u8], entries: usize) -> i32 {
        self.bytes.clear();
        let width = hybrid::bits_for(entries);
        self.bytes.push(width as u8);
        hybrid::encode(codes, width, &mut self.bytes);
        encoding::RLE_DICTIONARY
    }

    fn plain<T: Copy, const N: usize>(&mut self, values: &[T], stored: fn(T) -> [u8; N]) -> i32 {
        self.bytes.resize(values.len() * N, 0);
        for (bytes, &value) in self.bytes.as_chunks_mut::<N>().0.iter_mut().zip(values) {
            *bytes = stored(value);
        }
        encoding::PLAIN
    }
}
