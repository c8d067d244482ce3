//! Chooses the encoding and the codec of a chunk, which are those that make its first rows
//! smallest.
//!
//! The choice depends on nothing but the rows, so a row group becomes the same bytes on whichever
//! thread it is encoded. A codec must save an eighth of what it leaves, and so must a dictionary by
//! hashing and the omission of prefixes, because all of these cost time for every page.

use super::compress::Compressor;
use super::encode::{Body, How};
use super::error::Result;
use super::flat::Flat;
use super::intern::Interner;
use super::layout::ColumnPlan;
use super::options::Compression;

/// How many rows every encoding is tried on.
const SAMPLE_ROWS: usize = 8 * 1024;
/// How many samples a row group is taken to have. A dictionary is written once for all of them, so
/// only this part of it counts.
const SAMPLES_PER_GROUP: usize = 8;
/// The cost of a byte, and what is added to it for each of a codec, a dictionary and prefixes that
/// it costs time to make.
const WEIGHT: usize = 8;
const WEIGHT_OF_TIME: usize = 1;

/// The encoding and codec of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub how: How,
    pub codec: Compression,
    /// Whether it is known that the codec pays. Until then the next page decides it.
    pub is_tried: bool,
}

/// Chooses among `ways` for values without codes. `interner` and `body` are scratch memory.
pub(super) fn choose(
    plan: &ColumnPlan,
    ways: &[How],
    values: Flat<'_>,
    interner: &mut Interner,
    body: &mut Body,
    compressor: &mut Compressor,
) -> Result<Form> {
    let (sample, _) = values.split(SAMPLE_ROWS);
    let mut best: Option<(usize, Form)> = None;
    for &how in ways {
        interner.clear();
        body.fill(how, sample, interner);
        let mut extra = 0;
        let mut weight = match how {
            How::Prefix => WEIGHT + WEIGHT_OF_TIME,
            _ => WEIGHT,
        };
        if how == How::ByHash {
            // Values of which more than half are distinct do not repeat enough, and their
            // dictionary would soon be too large.
            if interner.len() * 2 > sample.len() {
                continue;
            }
            extra = interner.plain().len() / SAMPLES_PER_GROUP;
            weight += WEIGHT_OF_TIME;
        }
        let (codec, cost) = choose_codec(plan, &body.bytes, extra, weight, compressor)?;
        if best.is_none_or(|(least, _)| cost < least) {
            let form = Form {
                how,
                codec,
                is_tried: true,
            };
            best = Some((cost, form));
        }
    }
    interner.clear();
    Ok(best.map_or(
        Form {
            how: How::Plain,
            codec: plan.compression,
            is_tried: false,
        },
        |(_, form)| form,
    ))
}

/// Chooses the codec for pages like this one, and returns it with what the page costs.
fn choose_codec(
    plan: &ColumnPlan,
    page: &[u8],
    extra: usize,
    weight: usize,
    compressor: &mut Compressor,
) -> Result<(Compression, usize)> {
    let raw_bytes = page.len() + extra;
    let none = (Compression::None, raw_bytes * weight);
    if plan.compression == Compression::None {
        return Ok(none);
    }
    let compressed_bytes = compressor.compress(plan.compression, page)?.len() + extra;
    if !keeps_codec(plan, compressed_bytes, raw_bytes, weight) {
        return Ok(none);
    }
    let cost = compressed_bytes * (weight + WEIGHT_OF_TIME);
    Ok((plan.compression, cost))
}

/// Whether pages are compressed, where the codec makes so many bytes of one. A codec that the
/// caller chose for this very column is kept, whether it pays or not.
fn keeps_codec(
    plan: &ColumnPlan,
    compressed_bytes: usize,
    raw_bytes: usize,
    weight: usize,
) -> bool {
    plan.is_asked || compressed_bytes * (weight + WEIGHT_OF_TIME) < raw_bytes * weight
}

impl Form {
    /// Gives the codec up if it was not tried before and the first page shows that it does not pay.
    pub fn decide_codec(&mut self, plan: &ColumnPlan, compressed_bytes: usize, raw_bytes: usize) {
        let was_tried = std::mem::replace(&mut self.is_tried, true);
        if !was_tried && !keeps_codec(plan, compressed_bytes, raw_bytes, WEIGHT) {
            self.codec = Compression::None;
        }
    }
}
