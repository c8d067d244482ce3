//! Makes dictionaries of those codes of a large dictionary that occur in a row group.

use super::error::{Error, Result};
use super::extent::Extent;
use super::intern::{Interner, push_text};
use crate::columns::{Codes, Values};

/// The codes of 32 bits of a column, if it has such.
pub(super) fn wide_codes<'a>(values: &Values<'a>) -> Option<&'a [u32]> {
    match *values {
        Values::CodedInt64 {
            codes: Codes::U32(codes),
            ..
        }
        | Values::CodedText {
            codes: Codes::U32(codes),
            ..
        } => Some(codes),
        _ => None,
    }
}

/// How many bytes the whole dictionary of a column with codes of 32 bits would have as a page.
pub(super) fn dictionary_bytes(values: &Values<'_>) -> Option<usize> {
    wide_codes(values)?;
    match values {
        Values::CodedInt64 { values, .. } => Some(8 * values.len()),
        Values::CodedText { words, .. } => {
            Some(4 * words.len() + words.iter().map(<[u8]>::len).sum::<usize>())
        }
        _ => None,
    }
}

/// Fills `places` with the code that each entry has in the row group's own dictionary, and returns
/// the extent of the values. The caller has checked the codes.
pub(super) fn intern(
    values: &Values<'_>,
    codes: &[u32],
    interner: &mut Interner,
    places: &mut Vec<u32>,
) -> Option<Extent> {
    places.clear();
    match *values {
        Values::CodedInt64 { values, .. } => {
            places.extend(codes.iter().map(|&code| {
                interner.code(code, values.len(), |plain| {
                    plain.extend(values[code as usize].to_le_bytes());
                })
            }));
            let (min, max) = ends(codes, |code| values[code as usize])?;
            Some(Extent::Int64 { min, max })
        }
        Values::CodedText { words, .. } => {
            places.extend(codes.iter().map(|&code| {
                let push = |plain: &mut Vec<u8>| push_text(plain, words.word(code as usize));
                interner.code(code, words.len(), push)
            }));
            // By ranks, which are sorted as the entries are, so that no bytes are compared.
            let (min, max) = ends(codes, |code| words.ranks()[code as usize])?;
            let word = |rank: u32| words.word(words.sorted()[rank as usize] as usize).to_vec();
            Some(Extent::Text {
                min: word(min),
                max: word(max),
            })
        }
        _ => None,
    }
}

fn ends<T: Copy + Ord>(codes: &[u32], of: impl Fn(u32) -> T) -> Option<(T, T)> {
    let first = of(*codes.first()?);
    Some(codes.iter().fold((first, first), |(min, max), &code| {
        let value = of(code);
        (value.min(min), value.max(max))
    }))
}

/// # Errors
/// [`Error::Code`] for a code without an entry.
pub(super) fn check(values: &Values<'_>, column: &'static str) -> Result<()> {
    let (codes, entries) = match *values {
        Values::CodedInt64 { codes, values } => (codes, values.len()),
        Values::CodedText { codes, words } => (codes, words.len()),
        _ => return Ok(()),
    };
    let largest = match codes {
        Codes::U8(codes) => codes.iter().max().map(|&code| code.into()),
        Codes::U32(codes) => codes.iter().max().copied(),
    };
    match largest {
        Some(code) if code as usize >= entries => Err(Error::Code {
            column,
            code,
            entries,
        }),
        _ => Ok(()),
    }
}
