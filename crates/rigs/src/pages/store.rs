//! `pages-store`: writes and reads pages of a place, on one or more threads, in order or at random,
//! with a given number of pages per call.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dyno_pages::{PAGE_BYTES, Tiers};
use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};

use super::passes::{SLICE, Times};
use super::repetition::{Ran, call_time, one_pass, repeat};
use super::source::{Source, hash_of};
use super::system::{PageSystem, aligned};
use super::{PagesError, corpus};
use crate::{Params, RigError};

/// How long it runs if only the answer is wanted.
const VERIFYING: Duration = Duration::from_millis(200);

/// The operation that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// The first write of each page, in order, into memory that has not been touched yet.
    Fill,
    /// Overwrites pages that exist.
    Write,
    Read,
    /// Seven of ten calls read, the others write.
    Mixed,
}

impl Op {
    /// Whether the call that begins at page `start` reads.
    pub(super) fn reads(self, start: u64) -> bool {
        match self {
            Op::Fill | Op::Write => false,
            Op::Read => true,
            // A hash of the page number, so that the mix is the same for every system.
            Op::Mixed => start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < (7 << 32) / 10,
        }
    }
}

/// What the background thread has done before the clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    First,
    /// Every page has been recompressed.
    Packed,
    /// Memory has been moved into huge pages.
    Gathered,
}

/// The parsed parameters of `pages-store`.
pub(super) struct StoreParams {
    pub(super) op: Op,
    pub(super) random: bool,
    pub(super) batch: usize,
    pub(super) threads: usize,
    pub(super) passes: u64,
    /// How long passes are repeated, after a warm-up of a fifth of it; if `None`, `passes` of them
    /// run.
    pub(super) lasts: Option<Duration>,
    tier: Tier,
    tiers: Tiers,
    /// Percent of the store's limit that the pages take; 0 for a store with room for all of them
    /// uncompressed.
    full_percent: u64,
    pub(super) source: Source,
}

/// `pages` pages of `class`, by `op` (fill, write-seq, write-random, read-seq, read-random,
/// mixed-random), `batch` a call, by `threads` threads, `passes` times over. Every page that is
/// read is compared outside the clock, and at the end all are.
pub(crate) fn store(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let mut parsed = read_params(params)?;
    if request.phase == Phase::Verify {
        parsed.lasts = parsed.lasts.map(|lasts| lasts.min(VERIFYING));
    }
    let system = open(peer, &parsed)?;
    if parsed.op != Op::Fill {
        fill(&system, &parsed.source, &mut Times::default())?;
    }
    let description = corpus::describe(parsed.source.corpus());
    let mut facts = BTreeMap::from([("corpus".to_string(), description)]);
    match (parsed.tier, &system) {
        (Tier::Packed, system) => note_unpacked(system.pack()?, &mut facts),
        (Tier::Gathered, PageSystem::Store(store)) => drop(store.gather()),
        _ => {}
    }
    let Ran {
        times: all,
        rates,
        window_s,
        mut last_pass,
    } = repeat(&system, &parsed)?;
    let mean = rates.len() as f64 / rates.iter().map(|rate| rate.recip()).sum::<f64>();
    let page_time = parsed.threads as f64 / mean;
    let held = system.held_bytes(parsed.source.count())? as f64;
    let call = match system.never_written(parsed.source.count()) {
        Some(from) if matches!(parsed.op, Op::Read | Op::Write) => {
            Some(call_time(&system, &parsed, from)?)
        }
        _ => None,
    };
    let mut metrics = BTreeMap::from([
        ("throughput".to_string(), mean),
        ("io-rate".to_string(), mean * PAGE_BYTES as f64),
        ("page-time".to_string(), page_time),
        ("net-time".to_string(), page_time - call.unwrap_or(0.0)),
        (
            "compression".to_string(),
            parsed.source.count() as f64 * PAGE_BYTES as f64 / held,
        ),
    ]);
    metrics.extend(Times::quantiles(&all));
    metrics.extend(call.map(|call| ("call-time".to_string(), call)));
    if parsed.lasts.is_some() && matches!(parsed.op, Op::Write | Op::Mixed) {
        // How many passes fit into the time differs between systems. What the last one left is
        // compared here; one more, the same for all, then leaves bytes whose checksum can be
        // compared between systems.
        answer(&system, &parsed.source, |number| {
            parsed.content_after(number, last_pass)
        })?;
        last_pass = 0;
        one_pass(&system, &parsed, last_pass)?;
    }
    Ok(Reply {
        answer: Some(answer(&system, &parsed.source, |number| {
            parsed.content_after(number, last_pass)
        })?),
        metrics,
        facts,
        windows: rates,
        window_s: Some(window_s),
        ..Reply::default()
    })
}

/// Opens the place under test. One that is to be nearly full gets its limit from what the pages
/// take in a store with room.
fn open(peer: Option<&str>, params: &StoreParams) -> Result<PageSystem, PagesError> {
    let pages = params.source.count();
    let system = PageSystem::open(peer, pages, params.tiers)?;
    if params.full_percent == 0 {
        return Ok(system);
    }
    fill(&system, &params.source, &mut Times::default())?;
    // What the pages take is known only when they are in a store. A limit in bytes by guess would
    // be another share of memory for each class of pages.
    let held = system.held_bytes(pages)?;
    drop(system);
    PageSystem::limited(pages, params.tiers, held * 100 / params.full_percent)
}

impl StoreParams {
    /// The first page of the call that page `number` belongs to.
    fn start_of(&self, number: u64) -> u64 {
        number - number % self.batch as u64
    }

    /// The page whose bytes overwrite page `number` in a pass.
    pub(super) fn content(&self, number: u64, pass: u64) -> u64 {
        overwritten_with(number, pass, self.source.count())
    }

    /// The page whose bytes page `number` holds after pass `last`.
    fn content_after(&self, number: u64, last: u64) -> u64 {
        match self.op {
            Op::Fill | Op::Read => number,
            Op::Mixed if self.op.reads(self.start_of(number)) => number,
            Op::Write | Op::Mixed => self.content(number, last),
        }
    }
}

/// The number of the page whose bytes page `number` gets in a pass of overwriting: another one in
/// each pass, so that what is packed has another length, as it has where programs write.
pub(super) fn overwritten_with(number: u64, pass: u64, count: u64) -> u64 {
    // A third of all pages away, so that the classes, which lie one after the other, mix.
    (number + (pass + 1) * (count / 3 + 1)) % count
}

/// Records why a place was not recompressed.
pub(super) fn note_unpacked(why: Option<&str>, facts: &mut BTreeMap<String, String>) {
    if let Some(why) = why {
        facts.insert("second-tier".to_string(), why.to_string());
    }
}

fn read_params(params: &mut Params<'_>) -> Result<StoreParams, RigError> {
    let (op, random) = match params.text("op")? {
        "fill" => (Op::Fill, false),
        "write-seq" => (Op::Write, false),
        "write-random" => (Op::Write, true),
        "read-seq" => (Op::Read, false),
        "read-random" => (Op::Read, true),
        "mixed-random" => (Op::Mixed, true),
        other => {
            let text = format!(
                "`{other}` is not one of fill, write-seq, write-random, read-seq, read-random, mixed-random"
            );
            return Err(params.wrong("op", text));
        }
    };
    let batch = params.count("batch")? as usize;
    let threads = params.count("threads")? as usize;
    let lasts = params.seconds_or_none("seconds")?;
    let passes = match lasts {
        Some(_) => params.count_or("passes", 1)?,
        None => params.count("passes")?,
    };
    for (name, value, most) in [
        ("batch", batch, 256),
        ("threads", threads, 64),
        ("passes", passes as usize, 1000),
    ] {
        if value == 0 || value > most {
            return Err(params.wrong(name, format!("{value} is not within 1 and {most}")));
        }
    }
    if op == Op::Fill && ((threads, passes) != (1, 1) || lasts.is_some()) {
        return Err(params.wrong("op", "a fill is one pass of one thread".to_string()));
    }
    let tier = match params.text_or_none("tier")? {
        None | Some("first") => Tier::First,
        Some("packed") => Tier::Packed,
        Some("gathered") => Tier::Gathered,
        Some(other) => {
            let text = format!("`{other}` is not one of first, packed, gathered");
            return Err(params.wrong("tier", text));
        }
    };
    let tiers = tiers(params)?;
    let full_percent = params.count_or("full-percent", 0)?;
    if full_percent > 100 {
        return Err(params.wrong("full-percent", format!("{full_percent} is above 100")));
    }
    let source = source(params)?;
    Ok(StoreParams {
        full_percent,
        op,
        random,
        batch,
        threads,
        passes,
        lasts,
        tier,
        tiers,
        source,
    })
}

/// The tiers of our store for `codec`: auto, lz4 or zstd.
pub(super) fn tiers(params: &mut Params<'_>) -> Result<Tiers, RigError> {
    match params.text_or_none("codec")?.unwrap_or("auto") {
        "auto" => Ok(Tiers::Lz4ThenZstd),
        "lz4" => Ok(Tiers::Lz4),
        "zstd" => Ok(Tiers::Zstd),
        other => {
            let text = format!("`{other}` is not one of auto, lz4, zstd");
            Err(params.wrong("codec", text))
        }
    }
}

/// The pages that the parameters `corpus`, `class` and `pages` name.
pub(super) fn source(params: &mut Params<'_>) -> Result<Source, RigError> {
    let class = params.text("class")?;
    let corpus = corpus::read(Path::new(params.text("corpus")?), class)?;
    let pages = params.count("pages")?;
    if pages == 0 {
        return Err(params.wrong("pages", "none is too few".to_string()));
    }
    Ok(Source::new(corpus, pages, class == "zeros"))
}

/// Writes every page, in order.
pub(super) fn fill(
    system: &PageSystem,
    source: &Source,
    times: &mut Times,
) -> Result<(), PagesError> {
    let mut worker = system.worker()?;
    let buffer = aligned(SLICE);
    let mut first = 0;
    while first < source.count() {
        let count = SLICE.min((source.count() - first) as usize);
        for (number, page) in (first..).zip(&mut buffer[..count]) {
            source.fill(number, page);
        }
        times.slice(count, count, |at| {
            worker.write(first + at as u64, &buffer[at..=at])
        })?;
        first += count as u64;
    }
    Ok(())
}

/// Reads every page and compares it with the source: page `number` must hold the bytes of page
/// `content(number)`.
pub(super) fn answer(
    system: &PageSystem,
    source: &Source,
    content: impl Fn(u64) -> u64,
) -> Result<Answer, PagesError> {
    let mut worker = system.worker()?;
    let buffer = aligned(1);
    let mut failure = Ok(());
    // All pages are hashed as they are read and again as they should be, so one comparison covers
    // every byte and needs memory for one page.
    let found = hash_of(source.count(), |number| {
        if failure.is_ok() {
            failure = worker.read(&[number], buffer);
        }
        buffer[0]
    });
    failure?;
    let mut page = [0; PAGE_BYTES];
    let wanted = hash_of(source.count(), |number| {
        source.fill(content(number), &mut page);
        page
    });
    if found != wanted {
        let text = format!("the pages hash to {found:032x}, those written to {wanted:032x}");
        return Err(PagesError::Wrong(text));
    }
    Ok(Answer {
        count: source.count(),
        checksum: format!("{found:032x}"),
    })
}
