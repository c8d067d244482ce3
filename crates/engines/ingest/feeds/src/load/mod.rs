//! Loads archives of one feed into a table: files side by side, each whole or not at all.
//!
//! The table is a [`Target`] as WSPR's is, of chunks of [`Rows`].

mod archive;
mod encode;

use std::path::Path;

use dyno_ingest::Result;
use dyno_ingest::load::lanes;
use dyno_ingest::load::{Directory, Input, LoadReport, Options, Progress, Target};

use crate::{Feed, Rows};

/// Memory that a lane needs at least: blocks, dictionaries, a small row group and its pages.
const LEAST_LANE_BYTES: usize = 32 << 20;
/// How often the bytes of a chunk for a directory are in a lane's memory: columns and encoded
/// pages, with the rest of the lane.
const DIRECTORY_COPIES: usize = 4;
/// A lane's share for dictionaries.
const DICTIONARIES_SHARE: usize = 8;

/// Memory of one lane, divided.
#[derive(Debug, Clone, Copy)]
struct Room {
    row_bytes: usize,
    dictionary_bytes: usize,
}

/// How to get at a table, once the inputs are known to be good.
pub struct Opening<'a> {
    /// How often the bytes of a chunk are in memory until it has left the process: its columns, and
    /// what becomes of them.
    pub copies: usize,
    /// Opens it.
    pub open: &'a dyn Fn() -> Result<Box<dyn Target<Rows>>>,
}

/// Loads `inputs`, archives of `feed`, into the table in `table` and tells what became of each.
///
/// # Errors
/// Before anything is read: [`Error::Locked`], [`Error::Manifest`], two inputs of one identity, too
/// little memory. What goes wrong with one archive is in its outcome and keeps none of the others
/// from being loaded.
///
/// [`Error::Locked`]: dyno_ingest::Error::Locked
/// [`Error::Manifest`]: dyno_ingest::Error::Manifest
pub fn load(
    feed: &'static dyn Feed,
    inputs: Vec<Input>,
    table: &Path,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    let open = || {
        let directory = Directory::open(table, || encode::Encoder::of(feed))?;
        Ok(Box::new(directory) as Box<dyn Target<Rows>>)
    };
    let opening = Opening {
        copies: DIRECTORY_COPIES,
        open: &open,
    };
    load_into(feed, inputs, &opening, options, progress)
}

/// As [`load`], into the table that `opening` gets at.
///
/// # Errors
/// As [`load`], and those of opening the target.
pub fn load_into(
    feed: &'static dyn Feed,
    inputs: Vec<Input>,
    opening: &Opening<'_>,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    let started = std::time::Instant::now();
    let prefix = format!("{}/", feed.name());
    let identities = lanes::identities(&inputs, options, |given, path| {
        let name = given.map_or_else(|| feed.archive(path), str::to_owned);
        format!("{prefix}{}", name.strip_prefix(&prefix).unwrap_or(&name))
    })?;
    let lanes = options.workers.min(inputs.len()).max(1);
    let room = room(options, lanes, opening.copies)?;
    let target = (opening.open)()?;
    let target = target.as_ref();
    let archives = lanes::side_by_side(lanes, identities, inputs, |_, identity, input| {
        let job = archive::Job {
            feed,
            identity,
            target,
            options,
            progress,
            room,
        };
        job.run(input)
    });
    target.finish()?;
    Ok(LoadReport {
        archives,
        seconds: started.elapsed().as_secs_f64(),
    })
}

fn room(options: &Options, lanes: usize, copies: usize) -> Result<Room> {
    let bytes = lanes::lane_bytes(options, lanes, LEAST_LANE_BYTES)?;
    Ok(Room {
        row_bytes: bytes / copies.max(1),
        dictionary_bytes: bytes / DICTIONARIES_SHARE,
    })
}

/// A file's name without its folder and without the extensions of its packing and its form.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    let mut stem = name.as_ref();
    for extension in [
        ".gz", ".zip", ".csv", ".txt", ".log", ".cbr", ".jsonl", ".json",
    ] {
        stem = stem.strip_suffix(extension).unwrap_or(stem);
    }
    stem.to_owned()
}
