//! Checks how long text may be, and pads what must have a fixed length.

use crate::columns::{Kind, Words};
use crate::orc_write::error::{Error, Result};

/// What the type of a column says about lengths, which it counts in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    name: &'static str,
    /// The most characters of a value, or `None` for any number.
    most: Option<u32>,
    /// Whether shorter values are filled with blanks.
    pub(super) pads: bool,
}

impl Limit {
    pub(super) fn new(name: &'static str, kind: Kind, pad_chars: bool) -> Limit {
        Limit {
            name,
            most: match kind {
                Kind::Char(most) | Kind::Varchar(most) => Some(most),
                _ => None,
            },
            pads: pad_chars && matches!(kind, Kind::Char(_)),
        }
    }

    /// Refuses a value that has too many characters.
    pub(super) fn check(&self, value: &[u8]) -> Result<()> {
        match self.most {
            // Characters are only counted where there are more bytes than characters allowed.
            Some(most) if value.len() > most as usize => {
                let characters = characters(value);
                if characters <= most as usize {
                    return Ok(());
                }
                Err(Error::TooLong {
                    name: self.name,
                    characters,
                    most,
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses values of which one has too many characters. `longest` is the most bytes of any of
    /// them.
    pub(super) fn check_all<'a>(
        &self,
        longest: u32,
        mut values: impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        match self.most {
            // No value has more characters than bytes.
            Some(most) if longest > most => values.try_for_each(|value| self.check(value)),
            _ => Ok(()),
        }
    }

    /// Appends a value, filled with blanks if its type wants that.
    pub(super) fn pad(&self, value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(value);
        if let (true, Some(most)) = (self.pads, self.most) {
            let blanks = (most as usize).saturating_sub(characters(value));
            out.resize(out.len() + blanks, b' ');
        }
    }

    /// Replaces the content of two buffers by padded values and their offsets.
    pub(super) fn pad_all(
        &self,
        offsets: &[u32],
        bytes: &[u8],
        padded_offsets: &mut Vec<u32>,
        padded: &mut Vec<u8>,
    ) {
        padded.clear();
        padded_offsets.clear();
        padded_offsets.push(0);
        for pair in offsets.windows(2) {
            self.pad(&bytes[pair[0] as usize..pair[1] as usize], padded);
            padded_offsets.push(padded.len() as u32);
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// A dictionary as it is stored, checked and padded.
    pub(super) fn words(&self, words: &Words) -> Result<Words> {
        words.iter().try_for_each(|word| self.check(word))?;
        if !self.pads {
            return Ok(words.clone());
        }
        Ok(Words::new(words.iter().map(|word| {
            let mut padded = Vec::new();
            self.pad(word, &mut padded);
            padded
        })))
    }
}

/// Characters of UTF-8: bytes that do not continue one.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}
