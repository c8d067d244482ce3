//! Prints each entry of a dictionary once, with the mark behind it, into a slot of fixed size.

use super::careful::{append_integer, append_quoted, append_text};
use super::layout::{Column, Layout, Mark};
use crate::columns::{Values, Words};

/// How many slots there are at least: one for every code of one byte, so that looking one up needs
/// no check.
pub(super) const BYTE_CODES: usize = 256;
/// Bytes behind the text of [`Shape::Long`], which wide moves may read.
const PADDING_BYTES: usize = 64;

/// Text and mark of at most 15 bytes, with their length in the last byte.
pub(super) type Narrow = [u8; 16];
/// Text and mark of at most 31 bytes, with their length in the last byte.
pub(super) type Wide = [u8; 32];

/// The printed dictionary of a column, kept from batch to batch.
#[derive(Default)]
pub(super) struct Dictionary {
    /// The address and the number of entries of the dictionary that it was made from, by which it
    /// is recognized in the next batch.
    made_from: (usize, usize),
    pub(super) shape: Shape,
}

/// The printed entries, in the form that their lengths allow.
#[derive(Default)]
pub(super) enum Shape {
    /// The column does not have a dictionary.
    #[default]
    None,
    /// Each text and its mark fit into 15 bytes.
    Narrow(Vec<Narrow>),
    /// Each text and its mark fit into 31 bytes.
    Wide(Vec<Wide>),
    /// Texts of any length, one after the other, without marks and with padding behind them.
    Long { offsets: Vec<u32>, bytes: Vec<u8> },
    /// Some entry cannot be printed. The careful way refuses the batch only if a row has it.
    Unprintable,
}

impl Dictionary {
    /// Prints the dictionary of a column, unless it is there from the batch before.
    pub(super) fn update(&mut self, layout: &Layout, at: usize, values: &Values<'_>) {
        let made_from = match *values {
            Values::CodedInt64 { values, .. } => (values.as_ptr() as usize, values.len()),
            Values::CodedText { words, .. } => (std::ptr::from_ref(words) as usize, words.len()),
            _ => (0, 0),
        };
        if self.made_from != made_from {
            let column = &layout.columns[at];
            self.made_from = made_from;
            self.shape = match *values {
                Values::CodedInt64 { values, .. } => {
                    from_integers(values, column, layout.marks[at])
                }
                Values::CodedText { words, .. } => from_words(words, layout, at),
                _ => Shape::None,
            };
        }
    }
}

fn from_integers(values: &[i64], column: &Column, mark: Mark) -> Shape {
    let mut texts = Texts::default();
    for &value in values {
        append_integer(value, column, &mut texts.bytes);
        texts.end();
    }
    texts.into_shape(mark)
}

fn from_words(words: &Words, layout: &Layout, at: usize) -> Shape {
    let column = &layout.columns[at];
    let mut texts = Texts::default();
    for word in words.iter() {
        if layout.always_quotes(at) {
            // The outer quotes are part of the marks.
            let mut quoted = Vec::new();
            append_quoted(word, &mut quoted);
            texts.bytes.extend_from_slice(&quoted[1..quoted.len() - 1]);
        } else if append_text(word, column, layout, &mut texts.bytes).is_err() {
            return Shape::Unprintable;
        }
        texts.end();
    }
    texts.into_shape(layout.marks[at])
}

/// Collects printed entries before their lengths are known.
struct Texts {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            offsets: vec![0],
            bytes: Vec::new(),
        }
    }
}

impl Texts {
    fn end(&mut self) {
        self.offsets.push(self.bytes.len() as u32);
    }

    fn into_shape(self, mark: Mark) -> Shape {
        let lengths = self.offsets.windows(2).map(|ends| ends[1] - ends[0]);
        // The shorter a slot, the more of a dictionary lies in the first-level cache.
        match (lengths.max().unwrap_or(0) + mark.length) as usize {
            0..16 => Shape::Narrow(self.slots(mark)),
            16..32 => Shape::Wide(self.slots(mark)),
            _ => {
                let (offsets, mut bytes) = (self.offsets, self.bytes);
                bytes.resize(bytes.len() + PADDING_BYTES, 0);
                Shape::Long { offsets, bytes }
            }
        }
    }

    fn slots<const BYTES: usize>(&self, mark: Mark) -> Vec<[u8; BYTES]> {
        let entries = self.offsets.windows(2).map(|ends| {
            let text = &self.bytes[ends[0] as usize..ends[1] as usize];
            let mark = &mark.bytes.to_le_bytes()[..mark.length as usize];
            let length = text.len() + mark.len();
            let mut slot = [0; BYTES];
            slot[..text.len()].copy_from_slice(text);
            slot[text.len()..length].copy_from_slice(mark);
            slot[BYTES - 1] = length as u8;
            slot
        });
        let mut slots: Vec<_> = entries.collect();
        slots.resize(slots.len().max(BYTE_CODES), [0; BYTES]);
        slots
    }
}
