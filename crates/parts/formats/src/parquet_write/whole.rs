//! Keeps the caller's own dictionary of at most 256 entries, which a chunk stores as it is.

use super::error::{Error, Result};
use super::extent::Extent;
use super::intern::push_text;
use crate::columns::{Codes, Values, Words};

/// The most entries that codes of one byte can reach.
const ENTRIES_MAX: usize = 256;

/// A dictionary, and which of its entries occurred in the row group.
#[derive(Default)]
pub(super) struct Whole {
    /// The entries in PLAIN encoding.
    pub plain: Vec<u8>,
    pub entries: usize,
    used: Used,
    /// The codes in the order of their values.
    sorted: Vec<u8>,
    content: Content,
}

#[derive(Default)]
enum Content {
    #[default]
    None,
    Integers(Vec<i64>),
    Words(Words),
}

/// For each code whether it occurred.
struct Used([bool; ENTRIES_MAX]);

impl Default for Used {
    fn default() -> Used {
        Used([false; ENTRIES_MAX])
    }
}

impl Whole {
    /// The codes of one byte of a column, if it has such.
    pub fn codes<'a>(values: &Values<'a>) -> Option<&'a [u8]> {
        match values {
            Values::CodedInt64 {
                codes: Codes::U8(codes),
                ..
            }
            | Values::CodedText {
                codes: Codes::U8(codes),
                ..
            } => Some(codes),
            _ => None,
        }
    }

    /// Copies the dictionary of the first batch of a row group.
    pub fn start(&mut self, values: &Values<'_>) {
        self.plain.clear();
        self.used = Used::default();
        self.sorted.clear();
        match *values {
            Values::CodedInt64 { values, .. } => {
                let values = &values[..values.len().min(ENTRIES_MAX)];
                self.plain
                    .extend(values.iter().flat_map(|value| value.to_le_bytes()));
                self.sorted.extend((0..values.len()).map(|code| code as u8));
                self.sorted
                    .sort_unstable_by_key(|&code| values[usize::from(code)]);
                self.entries = values.len();
                self.content = Content::Integers(values.to_vec());
            }
            Values::CodedText { words, .. } => {
                for word in words.iter().take(ENTRIES_MAX) {
                    push_text(&mut self.plain, word);
                }
                let sorted = words
                    .sorted()
                    .iter()
                    .filter_map(|&code| u8::try_from(code).ok());
                self.sorted.extend(sorted);
                self.entries = words.len().min(ENTRIES_MAX);
                self.content = Content::Words(words.clone());
            }
            _ => {
                self.entries = 0;
                self.content = Content::None;
            }
        }
    }

    /// Whether a batch has the same dictionary as the first one.
    pub fn is_of(&self, values: &Values<'_>) -> bool {
        match (&self.content, values) {
            (Content::Integers(known), Values::CodedInt64 { values, .. }) => {
                values.get(..ENTRIES_MAX).unwrap_or(values) == known
            }
            (Content::Words(known), Values::CodedText { words, .. }) => known == *words,
            _ => false,
        }
    }

    /// Notes which codes occur, and returns the extent of their values.
    ///
    /// # Errors
    /// [`Error::Code`] for one that has no entry.
    pub fn note(&mut self, codes: &[u8], column: &'static str) -> Result<Option<Extent>> {
        // A table of the codes of this page is checked and ordered instead of its values, which are
        // thousands.
        let mut used = Used::default();
        for &code in codes {
            used.0[usize::from(code)] = true;
        }
        let is_used = |&code: &usize| used.0[code];
        if let Some(code) = (self.entries..ENTRIES_MAX).find(is_used) {
            return Err(Error::Code {
                column,
                code: code as u32,
                entries: self.entries,
            });
        }
        for (ever, now) in self.used.0.iter_mut().zip(&used.0) {
            *ever |= now;
        }
        let sorted = || self.sorted.iter().map(|&code| usize::from(code));
        let (least, most) = (sorted().find(is_used), sorted().rev().find(is_used));
        Ok(least
            .zip(most)
            .and_then(|(least, most)| self.between(least, most)))
    }

    /// How many entries occurred in the row group.
    pub fn distinct(&self) -> usize {
        self.used.0.iter().filter(|&&used| used).count()
    }

    fn between(&self, least: usize, most: usize) -> Option<Extent> {
        match &self.content {
            Content::Integers(values) => Some(Extent::Int64 {
                min: values[least],
                max: values[most],
            }),
            Content::Words(words) => Some(Extent::Text {
                min: words.word(least).to_vec(),
                max: words.word(most).to_vec(),
            }),
            Content::None => None,
        }
    }
}
