//! Archives of the feeds that are read line by line: made, and loaded.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use dyno_ingest::load::{Input, Options, Progress};
use dyno_ingest_feeds::calendar::Day;
use dyno_ingest_feeds::generate::{self, Making};
use dyno_ingest_feeds::{FEEDS, Feed, RowFormat, named};
use dyno_suite::protocol::Reply;

use crate::ingest::{TABLE, all_loaded, generated, loaded, total_bytes};
use crate::{Params, RigError, feed_checksum, used};

/// The day of the first archive: of the newest form of each feed's lines.
const START: (u16, u16, u16) = (2024, 11, 23);

/// `feeds-gen`: archives of `feed` with `rows` rows in `archives` archives, from `seed`.
pub(crate) fn generate(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    let (_, format) = feed(params)?;
    let (year, month, day) = START;
    let making = Making {
        rows: params.count("rows")?,
        archives: u32::try_from(params.count("archives")?).unwrap_or(u32::MAX),
        start: Day::new(year, month, day),
        seed: params.count("seed")?,
        quirks: 0.0,
    };
    let stop = AtomicBool::new(false);
    let made = generate::write(format, &making, scratch, &|_| {}, &stop)?;
    Ok(generated(made.rows, made.bytes, made.file_bytes))
}

/// `feeds-load`: loads `files`, archives of `feed`, with `workers` into a fresh table. The clock
/// runs from opening the table to its last commit; the checksum is computed afterwards, by a reader
/// that is not ours, in `dyno-sql`.
pub(crate) fn load(params: &mut Params<'_>, scratch: &Path) -> Result<Reply, RigError> {
    let (feed, _) = feed(params)?;
    let files = params.paths("files")?;
    let inputs_bytes = total_bytes(&files)?;
    let options = Options {
        workers: usize::try_from(params.count("workers")?).unwrap_or(usize::MAX),
        ..Options::default()
    };
    let inputs = files.into_iter().map(Input::File).collect();
    let table = scratch.join(TABLE);
    let cpu_before_s = used::cpu_s();
    let report = dyno_ingest_feeds::load(feed, inputs, &table, &options, &Progress::default())?;
    let cpu_s = used::cpu_s() - cpu_before_s;
    all_loaded(&report)?;
    let sum = feed_checksum(&table, feed.name)?;
    loaded(&report, &table, inputs_bytes, cpu_s, sum)
}

/// The feed that is named, if its archives have lines that become rows of their own kind.
fn feed(params: &mut Params<'_>) -> Result<(&'static Feed, &'static RowFormat), RigError> {
    let name = params.text("feed")?;
    let with_format = named(name).and_then(|feed| Some((feed, feed.rows.as_ref()?)));
    with_format.ok_or_else(|| {
        let names = FEEDS.iter().filter(|feed| feed.rows.is_some());
        let names: Vec<&str> = names.map(|feed| feed.name).collect();
        params.wrong(
            "feed",
            format!("`{name}` must be one of {}", names.join(", ")),
        )
    })
}
