//! Copies text that lies scattered into one run of bytes with offsets.

use super::Slices;

/// Copies slices to the front of `bytes`, one after the other, and fills `offsets` with where each
/// begins and where the last one ends. `bytes` never shrinks and has at least `behind_bytes` behind
/// the text; what it holds there has no meaning.
pub(crate) fn gather(
    slices: &dyn Slices,
    behind_bytes: usize,
    offsets: &mut Vec<u32>,
    bytes: &mut Vec<u8>,
) {
    let needed = slices.total_bytes() + slices.padding_bytes().max(behind_bytes);
    // Only ever longer: cutting it would make the next batch fill the same bytes with zeros again.
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
