//! Text without a dictionary, which has a stream of all bytes and one of lengths.

use super::Batch;
use super::text::Streams;
use crate::orc_write::error::Result;
use crate::orc_write::statistics::Bounds;

/// Appends lengths and statistics of values whose bytes are in the stream already, from `begin` on.
/// `lengths` has those of the whole batch, while the bytes are only those of the rows in the
/// segments.
pub(super) fn append<L: Copy + Into<u32>>(
    begin: usize,
    lengths: &[L],
    streams: &mut Streams,
    batch: &mut Batch<'_>,
) -> Result<()> {
    let Streams {
        bytes,
        lengths: length_stream,
        index,
        ..
    } = streams;
    let mut at = begin;
    for segment in batch.segments {
        if index.is_at_begin() {
            // At `at` and not at the end of the stream, because the bytes of later strides lie
            // behind it already. Order matters: readers take positions in the order of the streams.
            bytes.mark(at, batch.codec, &mut index.positions)?;
            length_stream.mark(batch.codec, &mut index.positions)?;
        }
        let lengths = &lengths[segment.rows.clone()];
        let (bounds, end) = bounds(&bytes.raw, at, lengths);
        at = end;
        index.add(lengths.len(), bounds);
        length_stream.append(lengths, |length| i64::from(length.into()));
        if segment.ends {
            length_stream.end_run();
            index.end_stride();
        }
    }
    bytes.settle(batch.codec)?;
    length_stream.stream.settle(batch.codec)
}

/// The least and the greatest of values that lie one after the other, and where the last one ends.
fn bounds<L: Copy + Into<u32>>(bytes: &[u8], begin: usize, lengths: &[L]) -> (Bounds, usize) {
    let Some(&first) = lengths.first() else {
        return (Bounds::None, begin);
    };
    let first = begin..begin + first.into() as usize;
    let (mut least, mut most) = (first.clone(), first.clone());
    let mut least_front = front(bytes, begin, first.len());
    let mut most_front = least_front;
    let mut at = begin;
    for &length in lengths {
        let length = length.into() as usize;
        let value = at..at + length;
        let front = front(bytes, at, length);
        // The first bytes decide nearly always, and nearly always against the value.
        if front <= least_front && bytes[value.clone()] < bytes[least.clone()] {
            least = value;
            least_front = front;
        } else if front >= most_front && bytes[value.clone()] > bytes[most.clone()] {
            most = value;
            most_front = front;
        }
        at += length;
    }
    let bounds = Bounds::Text {
        least: bytes[least].to_vec(),
        most: bytes[most].to_vec(),
        bytes: (at - begin) as u64,
    };
    (bounds, at)
}

/// The first eight bytes of a value as a number that sorts as they do.
#[inline(always)]
fn front(bytes: &[u8], at: usize, length: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(eight) => {
            let eight = <[u8; 8]>::try_from(eight).unwrap_or_default();
            let unwanted = 8 * (8 - length.min(8)) as u32;
            u64::from_be_bytes(eight) & u64::MAX.checked_shl(unwanted).unwrap_or(0)
        }
        None => {
            let mut eight = [0; 8];
            let value = &bytes[at..at + length.min(8)];
            eight[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(eight)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bounds_are_those_of_a_sort(values in prop::collection::vec("[ab\u{0}é]{0,12}", 1..40)) {
            let bytes = values.concat().into_bytes();
            let lengths: Vec<u32> = values.iter().map(|value| value.len() as u32).collect();
            let (bounds, end) = bounds(&bytes, 0, &lengths);
            prop_assert_eq!(end, bytes.len());
            let expected = Bounds::Text {
                least: values.iter().min().unwrap().clone().into_bytes(),
                most: values.iter().max().unwrap().clone().into_bytes(),
                bytes: bytes.len() as u64,
            };
            prop_assert_eq!(bounds, expected);
        }
    }
}
