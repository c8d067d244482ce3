//! Dictionaries of at most 256 entries with codes of eight bits. Their order is known from the
//! first batch, so ranks are written as the codes come.

use super::Batch;
use super::text::Streams;
use crate::columns::Words;
use crate::orc_write::error::{Error, Result};
use crate::orc_write::statistics::Bounds;

/// How often each code occurs.
pub(super) fn count(codes: &[u8]) -> [u32; 256] {
    // Four tables, so that the count of equal neighbours does not wait for the store before it.
    let mut tables = [[0u32; 256]; 4];
    let groups = codes.chunks_exact(4);
    for &code in groups.remainder() {
        tables[0][usize::from(code)] += 1;
    }
    for group in groups {
        for (table, &code) in tables.iter_mut().zip(group) {
            table[usize::from(code)] += 1;
        }
    }
    std::array::from_fn(|code| tables.iter().map(|table| table[code]).sum())
}

/// Appends the rank of each row's entry.
pub(super) fn append(
    name: &'static str,
    codes: &[u8],
    words: &Words,
    streams: &mut Streams,
    batch: &mut Batch<'_>,
) -> Result<()> {
    let Streams { ranks, index, .. } = streams;
    let mut rank_of = [0u8; 256];
    for (rank_of, &rank) in rank_of.iter_mut().zip(words.ranks()) {
        *rank_of = rank as u8;
    }
    for segment in batch.segments {
        if index.is_at_begin() {
            ranks.mark(batch.codec, &mut index.positions)?;
        }
        let codes = &codes[segment.rows.clone()];
        index.add(codes.len(), bounds(name, codes, words)?);
        ranks.append(codes, |code| i64::from(rank_of[usize::from(code)]));
        if segment.ends {
            ranks.end_run();
            index.end_stride();
        }
    }
    ranks.stream.settle(batch.codec)
}

fn bounds(name: &'static str, codes: &[u8], words: &Words) -> Result<Bounds> {
    let counts = count(codes);
    if let Some(code) = (words.len()..256).find(|&code| counts[code] > 0) {
        return Err(Error::Code {
            name,
            code: code as u32,
            entries: words.len(),
        });
    }
    let used = |&&code: &&u32| counts[code as usize] > 0;
    let (Some(&least), Some(&most)) = (
        words.sorted().iter().find(used),
        words.sorted().iter().rev().find(used),
    ) else {
        return Ok(Bounds::None);
    };
    Ok(Bounds::Text {
        least: words.word(least as usize).to_vec(),
        most: words.word(most as usize).to_vec(),
        bytes: words
            .iter()
            .zip(counts)
            .map(|(word, count)| word.len() as u64 * u64::from(count))
            .sum(),
    })
}
