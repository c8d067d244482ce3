//! Finds the smallest and the largest value of a page or a column chunk.

use crate::vectorised::{Work, vectorised};

/// The most bytes of text that statistics keep. Longer values are cut to a bound that is not one of
/// them, so that a column of long text does not fill the footer.
const TEXT_BYTES_MAX: usize = 64;

/// The smallest and the largest of at least one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Extent {
    Int32 { min: i32, max: i32 },
    Int64 { min: i64, max: i64 },
    Text { min: Vec<u8>, max: Vec<u8> },
}

/// A bound as the file stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub bytes: Vec<u8>,
    /// Whether it is one of the values.
    pub exact: bool,
}

impl Extent {
    pub fn from_i32(values: &[i32]) -> Option<Extent> {
        let (min, max) = vectorised(Least(values))?;
        Some(Extent::Int32 { min, max })
    }

    pub fn from_i64(values: &[i64]) -> Option<Extent> {
        let (min, max) = vectorised(Least(values))?;
        Some(Extent::Int64 { min, max })
    }

    /// The extent of values that stand one after the other from the front of `bytes`.
    pub fn from_text(lengths: impl Iterator<Item = usize>, bytes: &[u8]) -> Option<Extent> {
        let mut ends: Option<TextEnds<'_>> = None;
        let mut at = 0;
        for length in lengths {
            let value = &bytes[at..at + length];
            let head = head(value, &bytes[at..]);
            match &mut ends {
                None => ends = Some(TextEnds::new(value, head)),
                Some(ends) => ends.add(value, head),
            }
            at += length;
        }
        ends.map(|ends| Extent::Text {
            min: ends.min.to_vec(),
            max: ends.max.to_vec(),
        })
    }

    /// Extends the bounds to those of `other`, which is of the same column and so of the same type.
    pub fn merge(&mut self, other: &Extent) {
        match (self, other) {
            (
                Extent::Int32 { min, max },
                Extent::Int32 {
                    min: low,
                    max: high,
                },
            ) => {
                *min = *low.min(min);
                *max = *high.max(max);
            }
            (
                Extent::Int64 { min, max },
                Extent::Int64 {
                    min: low,
                    max: high,
                },
            ) => {
                *min = *low.min(min);
                *max = *high.max(max);
            }
            (
                Extent::Text { min, max },
                Extent::Text {
                    min: low,
                    max: high,
                },
            ) => {
                if low < min {
                    min.clone_from(low);
                }
                if high > max {
                    max.clone_from(high);
                }
            }
            _ => debug_assert!(false, "extents of two types in one column"),
        }
    }

    /// Whether neither of its bounds, as the file stores them, lies below that of `before`.
    pub fn follows(&self, before: &Extent) -> bool {
        match (before, self) {
            (Extent::Int32 { min: a, max: b }, Extent::Int32 { min, max }) => a <= min && b <= max,
            (Extent::Int64 { min: a, max: b }, Extent::Int64 { min, max }) => a <= min && b <= max,
            // Text that is cut in front of a long character can leave the order of its values, so
            // that the bounds of an ascending column do not ascend.
            (Extent::Text { .. }, Extent::Text { .. }) => {
                before.lower().bytes <= self.lower().bytes
                    && before.upper().bytes <= self.upper().bytes
            }
            _ => false,
        }
    }

    /// A bound than which no value is smaller.
    pub fn lower(&self) -> Bound {
        match self {
            Extent::Int32 { min, .. } => exact(min.to_le_bytes().to_vec()),
            Extent::Int64 { min, .. } => exact(min.to_le_bytes().to_vec()),
            Extent::Text { min, .. } => Bound {
                bytes: cut(min).to_vec(),
                exact: min.len() <= TEXT_BYTES_MAX,
            },
        }
    }

    /// A bound than which no value is larger.
    pub fn upper(&self) -> Bound {
        match self {
            Extent::Int32 { max, .. } => exact(max.to_le_bytes().to_vec()),
            Extent::Int64 { max, .. } => exact(max.to_le_bytes().to_vec()),
            Extent::Text { max, .. } => match raised(cut(max)) {
                Some(bytes) if max.len() > TEXT_BYTES_MAX => Bound {
                    bytes,
                    exact: false,
                },
                // It is short itself, or there is no short text above it.
                _ => exact(max.clone()),
            },
        }
    }
}

fn exact(bytes: Vec<u8>) -> Bound {
    Bound { bytes, exact: true }
}

/// The front of a text that statistics keep, ending between two characters.
fn cut(text: &[u8]) -> &[u8] {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let is_within = |&at: &usize| text[at] & 0xc0 == 0x80;
    let end = (1..=TEXT_BYTES_MAX).rev().find(|at| !is_within(at));
    &text[..end.unwrap_or(TEXT_BYTES_MAX)]
}

/// Returns the text with its last character raised by one, which is above all texts that begin with
/// it. Characters that cannot be raised are dropped first. `None` if all are, or if the text is not
/// UTF-8.
fn raised(text: &[u8]) -> Option<Vec<u8>> {
    let mut characters: Vec<char> = std::str::from_utf8(text).ok()?.chars().collect();
    while let Some(last) = characters.pop() {
        // The next code point that is a character, which skips the surrogates. It must not have
        // more bytes than before, or the bound could become longer than the limit.
        let next = (last as u32 + 1..=last as u32 + 0x801).find_map(char::from_u32);
        if let Some(next) = next.filter(|next| next.len_utf8() == last.len_utf8()) {
            characters.push(next);
            return Some(characters.into_iter().collect::<String>().into_bytes());
        }
    }
    None
}

struct Least<'a, T>(&'a [T]);

impl<T: Copy + Ord> Work for Least<'_, T> {
    type Output = Option<(T, T)>;

    #[inline(always)]
    fn work(self) -> Self::Output {
        let first = *self.0.first()?;
        let mut ends = (first, first);
        for &value in self.0 {
            ends = (ends.0.min(value), ends.1.max(value));
        }
        Some(ends)
    }
}

/// The smallest and the largest text so far, with their first bytes as numbers.
struct TextEnds<'a> {
    min: &'a [u8],
    max: &'a [u8],
    min_head: u64,
    max_head: u64,
}

impl<'a> TextEnds<'a> {
    fn new(value: &'a [u8], head: u64) -> TextEnds<'a> {
        TextEnds {
            min: value,
            max: value,
            min_head: head,
            max_head: head,
        }
    }

    /// Compares a value with both bounds. After a few values the heads nearly always decide.
    #[inline(always)]
    fn add(&mut self, value: &'a [u8], head: u64) {
        if head <= self.min_head && (head < self.min_head || value < self.min) {
            self.min = value;
            self.min_head = head;
        }
        if head >= self.max_head && (head > self.max_head || value > self.max) {
            self.max = value;
            self.max_head = head;
        }
    }
}

/// The first eight bytes of a value as a number that sorts like them, with zeros for those that it
/// lacks. `from` begins with the value and may go on behind it, so that eight bytes can be read at
/// once.
#[inline(always)]
fn head(value: &[u8], from: &[u8]) -> u64 {
    if let Some(&eight) = from.first_chunk::<8>() {
        let absent = 64 - 8 * value.len().min(8) as u32;
        return u64::from_be_bytes(eight) & u64::MAX.checked_shl(absent).unwrap_or(0);
    }
    let mut eight = [0; 8];
    eight[..value.len()].copy_from_slice(value);
    u64::from_be_bytes(eight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from_values(values: &[String]) -> Option<Extent> {
        Extent::from_text(values.iter().map(String::len), values.concat().as_bytes())
    }

    proptest! {
        #[test]
        fn no_text_is_outside_of_its_bounds(
            values in prop::collection::vec("(\u{10ffff}|\u{7f}|\u{d7ff}|a){0,90}|[ab\u{0}]{0,12}", 1..40),
        ) {
            let extent = from_values(&values).unwrap();
            let (lower, upper) = (extent.lower(), extent.upper());
            let min = values.iter().min().unwrap().as_bytes();
            let max = values.iter().max().unwrap().as_bytes();
            prop_assert!(lower.bytes.as_slice() <= min && upper.bytes.as_slice() >= max);
            prop_assert_eq!(lower.exact, lower.bytes == min);
            prop_assert_eq!(upper.exact, upper.bytes == max);
            prop_assert!(std::str::from_utf8(&lower.bytes).is_ok());
            prop_assert!(std::str::from_utf8(&upper.bytes).is_ok());
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_raised() {
        let long = "é".repeat(40);
        let extent = from_values(&[long]).unwrap();
        assert_eq!(extent.lower().bytes, "é".repeat(32).as_bytes());
        let upper = format!("{}ê", "é".repeat(31));
        assert_eq!(extent.upper().bytes, upper.as_bytes());
        let highest = "\u{10ffff}".repeat(20);
        assert!(from_values(&[highest]).unwrap().upper().exact);
        assert_eq!(from_values(&[]), None);
    }
}
