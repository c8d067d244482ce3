//! Turns the codes of a whole stripe into ranks, or back into text, once all of them are known.

use super::text::Streams;
use super::{Batch, Segment, direct};
use crate::orc_write::codec::Codec;
use crate::orc_write::error::Result;
use crate::orc_write::statistics::Bounds;

/// Whether a dictionary pays: it has at most four entries for each five rows.
pub(super) fn pays(words: usize, rows: usize) -> bool {
    words * 5 <= rows * 4
}

/// Appends the sorted dictionary and the rank of each row's entry. `sorted` has the codes that
/// occur, in the order of the bytes of their entries.
pub(super) fn write_ranks<'a>(
    codes: &[u32],
    sorted: &[u32],
    word: impl Fn(usize) -> &'a [u8],
    stride_rows: usize,
    streams: &mut Streams,
    codec: &mut Codec,
) -> Result<()> {
    let greatest = sorted.iter().max().map_or(0, |&code| code as usize + 1);
    // By code and not by map, because both are read once for each row.
    let mut rank_of = vec![0u32; greatest];
    let mut length_of = vec![0u32; greatest];
    for (rank, &code) in sorted.iter().enumerate() {
        let word = word(code as usize);
        rank_of[code as usize] = rank as u32;
        length_of[code as usize] = word.len() as u32;
        streams.bytes.raw.extend_from_slice(word);
        streams.lengths.append(&[word.len() as u32], i64::from);
    }
    streams.bytes.settle(codec)?;
    for stride in codes.chunks(stride_rows) {
        let Streams { ranks, index, .. } = &mut *streams;
        ranks.mark(codec, &mut index.positions)?;
        let (mut least, mut most, mut bytes) = (u32::MAX, 0, 0);
        for &code in stride {
            let rank = rank_of[code as usize];
            least = least.min(rank);
            most = most.max(rank);
            bytes += u64::from(length_of[code as usize]);
        }
        let bound = |rank: u32| word(sorted[rank as usize] as usize).to_vec();
        let bounds = Bounds::Text {
            least: bound(least),
            most: bound(most),
            bytes,
        };
        index.add(stride.len(), bounds);
        ranks.append(stride, |code| i64::from(rank_of[code as usize]));
        ranks.end_run();
        index.end_stride();
        ranks.stream.settle(codec)?;
    }
    Ok(())
}

/// Appends the entries of all rows as text without a dictionary.
pub(super) fn write_words<'a>(
    codes: &[u32],
    word: impl Fn(usize) -> &'a [u8],
    stride_rows: usize,
    streams: &mut Streams,
    codec: &mut Codec,
) -> Result<()> {
    let mut lengths = Vec::new();
    for stride in codes.chunks(stride_rows) {
        let begin = streams.bytes.raw.len();
        lengths.clear();
        for &code in stride {
            let word = word(code as usize);
            lengths.push(word.len() as u32);
            streams.bytes.raw.extend_from_slice(word);
        }
        let segment = Segment {
            rows: 0..stride.len(),
            ends: stride.len() == stride_rows,
        };
        // Stride by stride, so that the text of the stripe does not lie in memory a second time.
        let mut batch = Batch {
            segments: &[segment],
            codec,
        };
        direct::append(begin, &lengths, streams, &mut batch)?;
    }
    Ok(())
}
