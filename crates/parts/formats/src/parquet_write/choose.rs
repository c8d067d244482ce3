//! Which encoding and codec a chunk gets: those that make its first rows smallest.
//!
//! Only the rows count, so a row group becomes the same bytes on whichever thread it is encoded. A
//! codec must save an eighth of what it leaves, and so must a dictionary by hashing and prefixes
//! left out: they cost time again and again.

use super::compress::Compressor;
use super::encode::{Body, How};
use super::error::Result;
use super::flat::Flat;
use super::intern::Interner;
use super::layout::ColumnPlan;
use super::options::Compression;

/// Rows that are tried.
const SAMPLE_ROWS: usize = 8 * 1024;
/// A dictionary is written once, and a row group has this many samples at least.
const SAMPLES_PER_GROUP: usize = 8;
/// What is counted for a byte, and on top of it for a byte that a codec, a dictionary or prefixes
/// cost time.
const WEIGHT: usize = 8;
const WEIGHT_OF_TIME: usize = 1;

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub how: How,
    pub codec: Compression,
}

/// Chooses for values without codes, among `ways`.
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
            if ways.len() > 1 && interner.len() * 2 > sample.len() {
                continue;
            }
            extra = interner.plain().len() / SAMPLES_PER_GROUP;
            weight += WEIGHT_OF_TIME;
        }
        let (codec, cost) = choose_codec(plan, &body.bytes, extra, weight, compressor)?;
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, Form { how, codec }));
        }
    }
    interner.clear();
    Ok(best.map_or(
        Form {
            how: How::Plain,
            codec: plan.compression,
        },
        |(_, form)| form,
    ))
}

/// Chooses the codec for pages like this one, and says what the page costs with it.
fn choose_codec(
    plan: &ColumnPlan,
    page: &[u8],
    extra: usize,
    weight: usize,
    compressor: &mut Compressor,
) -> Result<(Compression, usize)> {
    let raw = (page.len() + extra) * weight;
    if plan.compression == Compression::None {
        return Ok((Compression::None, raw));
    }
    let compressed = compressor.compress(plan.compression, page)?.len();
    let compressed = (compressed + extra) * (weight + WEIGHT_OF_TIME);
    if plan.is_asked || compressed < raw {
        return Ok((plan.compression, compressed));
    }
    Ok((Compression::None, raw))
}

/// Chooses the codec for pages like the one in `body`.
pub(super) fn codec_for(
    plan: &ColumnPlan,
    page: &[u8],
    compressor: &mut Compressor,
) -> Result<Compression> {
    Ok(choose_codec(plan, page, 0, WEIGHT, compressor)?.0)
}
