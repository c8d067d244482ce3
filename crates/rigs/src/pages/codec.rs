//! `pages-codec`: one codec on one class of pages, in one direction, its ratio beside its speed.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

use dyno_codec::lz4::{self, BLOCK_BOUND, Block, Codec};
use dyno_codec::zstd;
use dyno_pages::{PAGE_BYTES, Page};
use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};

use super::passes::{SLICE, Times};
use super::{PagesError, corpus};
use crate::{Params, RigError};

/// A codec with its buffers, for both directions.
enum Tool {
    Lz4(Box<lz4::Encoder>),
    Zstd(Box<zstd::Encoder>, Box<zstd::Decoder>),
}

impl Tool {
    fn from_name(name: &str) -> Result<Tool, PagesError> {
        let lz4 = |codec| Ok(Tool::Lz4(Box::new(lz4::Encoder::new(codec))));
        match name {
            "lz4" => lz4(Codec::Page),
            "lz4-c" => lz4(Codec::C),
            "lz4-plain" => lz4(Codec::PagePlain),
            _ => match name
                .strip_prefix("zstd-")
                .and_then(|level| level.parse().ok())
            {
                Some(level) => {
                    let encoder = Box::new(zstd::Encoder::new(level)?);
                    Ok(Tool::Zstd(encoder, Box::new(zstd::Decoder::new()?)))
                }
                None => Err(PagesError::Refused(format!(
                    "no codec is called `{name}`; there are: lz4, lz4-c, lz4-plain, zstd-LEVEL"
                ))),
            },
        }
    }

    /// Encodes a page and returns the block's length, which is at most `BLOCK_BOUND`.
    fn encode(&mut self, page: &Page, out: &mut Block) -> Result<usize, PagesError> {
        let len = match self {
            Tool::Lz4(encoder) => encoder.encode(page, out, BLOCK_BOUND),
            Tool::Zstd(encoder, _) => encoder.encode(page, out, BLOCK_BOUND),
        };
        len.ok_or_else(|| PagesError::Wrong("a block is longer than the bound".to_string()))
    }

    fn decode(&mut self, block: &[u8], page: &mut Page) -> Result<(), PagesError> {
        match self {
            Tool::Lz4(_) => Ok(lz4::decode(block, page)?),
            Tool::Zstd(_, decoder) => Ok(decoder.decode(block, page)?),
        }
    }
}

/// `rounds` rounds over all pages of `class` in `corpus` with `codec`, into memory that the round
/// before did not leave in a near cache. Every block is decoded again, and compared with its page.
pub(crate) fn codec(params: &mut Params<'_>, _request: &Request) -> Result<Reply, RigError> {
    let corpus = corpus::read(Path::new(params.text("corpus")?), params.text("class")?)?;
    let mut tool = Tool::from_name(params.text("codec")?)?;
    let direction = params.text("direction")?;
    let rounds = params.count("rounds")?.max(1);
    let mut blocks: Vec<Block> = vec![[0; BLOCK_BOUND]; corpus.count()];
    let mut lens = vec![0; corpus.count()];
    // One round before the clock starts, so that memory is allocated and the blocks exist.
    for ((page, block), len) in corpus.pages().iter().zip(&mut blocks).zip(&mut lens) {
        *len = tool.encode(page, block)?;
    }
    let mut pages: Vec<Page> = vec![[0; PAGE_BYTES]; corpus.count()];
    for ((page, block), len) in pages.iter_mut().zip(&blocks).zip(&lens) {
        tool.decode(&block[..*len], page)?;
    }
    compare(corpus.pages(), &pages)?;
    let mut rates = Vec::new();
    let mut all = Vec::new();
    for _ in 0..rounds {
        let mut times = Times::default();
        match direction {
            "compress" => compress(&mut tool, corpus.pages(), &mut blocks, &mut times)?,
            "decompress" => decompress(&mut tool, &blocks, &lens, &mut pages, &mut times)?,
            other => {
                let text = format!("`{other}` is neither compress nor decompress");
                return Err(params.wrong("direction", text));
            }
        }
        rates.push(times.rate() * PAGE_BYTES as f64);
        all.push(times);
    }
    for ((page, block), len) in pages.iter_mut().zip(&blocks).zip(&lens) {
        tool.decode(&block[..*len], page)?;
    }
    compare(corpus.pages(), &pages)?;
    let facts = corpus.facts();
    Ok(Reply {
        answer: Some(Answer {
            count: facts.count as u64,
            checksum: format!("{:032x}", facts.hash),
        }),
        metrics: metrics(&rates, &all, &lens),
        facts: BTreeMap::from([("corpus".to_string(), corpus::describe(&corpus))]),
        windows: rates,
        ..Reply::default()
    })
}

fn compress(
    tool: &mut Tool,
    pages: &[Page],
    blocks: &mut [Block],
    times: &mut Times,
) -> Result<(), PagesError> {
    for (pages, blocks) in pages.chunks(SLICE).zip(blocks.chunks_mut(SLICE)) {
        times.slice(pages.len(), pages.len(), |at| {
            black_box(tool.encode(&pages[at], &mut blocks[at])?);
            Ok::<(), PagesError>(())
        })?;
    }
    Ok(())
}

fn decompress(
    tool: &mut Tool,
    blocks: &[Block],
    lens: &[usize],
    pages: &mut [Page],
    times: &mut Times,
) -> Result<(), PagesError> {
    let packed = blocks.chunks(SLICE).zip(lens.chunks(SLICE));
    for ((blocks, lens), pages) in packed.zip(pages.chunks_mut(SLICE)) {
        times.slice(pages.len(), pages.len(), |at| {
            tool.decode(&blocks[at][..lens[at]], &mut pages[at])
        })?;
    }
    Ok(())
}

fn compare(pages: &[Page], found: &[Page]) -> Result<(), PagesError> {
    match pages
        .iter()
        .zip(found)
        .position(|(page, found)| page != found)
    {
        None => Ok(()),
        Some(at) => Err(PagesError::Wrong(format!("page {at} came back different"))),
    }
}

fn metrics(rates: &[f64], all: &[Times], lens: &[usize]) -> BTreeMap<String, f64> {
    // A store keeps a page uncompressed if its block would be longer.
    let packed: usize = lens.iter().map(|&len| len.min(PAGE_BYTES)).sum();
    // A throughput over rounds of equal work is their harmonic mean: all bytes over all seconds.
    let mean = rates.len() as f64 / rates.iter().map(|rate| rate.recip()).sum::<f64>();
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), mean),
        (
            "compression".to_string(),
            (lens.len() * PAGE_BYTES) as f64 / packed as f64,
        ),
        (
            "compressed-bytes".to_string(),
            packed as f64 / lens.len() as f64,
        ),
        ("page-time".to_string(), PAGE_BYTES as f64 / mean),
    ]);
    metrics.extend(Times::quantiles(all));
    metrics
}
