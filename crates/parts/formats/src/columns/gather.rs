//! Scattered text, copied together.

use super::Slices;

/// Copies slices to the front of `bytes`, one after the other, and says in `offsets` where each
/// begins and where the last one ends. `bytes` only grows, by `behind_bytes` beyond the text at
/// least: what it holds there is of no meaning.
pub(crate) fn gather(
    slices: &dyn Slices,
    behind_bytes: usize,
    offsets: &mut Vec<u32>,
    bytes: &mut Vec<u8>,
) {
    let needed = slices.total_bytes() + slices.padding_bytes().max(behind_bytes);
    if bytes.len() < needed {
        bytes.resize(needed, 0);
    }
    slices.copy_to(bytes);
    offsets.clear();
    offsets.push(0);
    let mut end = 0;
    offsets.extend(slices.lengths().iter().map(|&length| {
        end += u32::from(length);
        end
    }));
}
