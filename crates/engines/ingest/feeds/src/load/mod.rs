//! Loads archives of any feed into a table.

mod encode;
mod lines;

use std::path::Path;

use dyno_ingest::Result;
use dyno_ingest::load::{
    self, Archives, Directory, Input, LoadReport, Opening, Options, Progress, spots_in,
};
use dyno_ingest::scan::{Columns, Scanner};
use dyno_ingest::table::Span;

use crate::{Feed, RowFormat, Rows};
use lines::LineReader;

/// How many times the bytes of a chunk for a directory are in a worker's memory: columns and
/// encoded pages, with the rest of the worker.
const DIRECTORY_COPIES: usize = 4;

/// The location of a table, which holds archives of any feed.
pub trait Location {
    /// How to open the table for spots of WSPR.
    fn spots(&self) -> Opening<'_, Columns>;

    /// How to open the table for rows of `format`, which is that of `feed`.
    fn rows(&self, feed: &'static str, format: &'static RowFormat) -> Opening<'_, Rows>;
}

impl Location for &Path {
    fn spots(&self) -> Opening<'_, Columns> {
        spots_in(self)
    }

    fn rows(&self, feed: &'static str, format: &'static RowFormat) -> Opening<'_, Rows> {
        Opening {
            each_bytes: DIRECTORY_COPIES,
            open: Box::new(move || {
                let encoder = move |types| encode::Encoder::new(feed, format.fields, types);
                let directory = Directory::open(self, encoder)?;
                Ok(Box::new(directory))
            }),
        }
    }
}

/// Loads `inputs`, archives of `feed`, into the table in the directory `table`, and reports the
/// result of each.
///
/// # Errors
/// As [`load_into`].
pub fn load(
    feed: &'static Feed,
    inputs: Vec<Input>,
    table: &Path,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    load_into(feed, inputs, &table, options, progress)
}

/// Loads `inputs`, archives of `feed`, into the table at `location`, and reports the result of
/// each.
///
/// # Errors
/// As [`dyno_ingest::load::load_into`].
pub fn load_into(
    feed: &'static Feed,
    inputs: Vec<Input>,
    location: &dyn Location,
    options: &Options,
    progress: &Progress,
) -> Result<LoadReport> {
    let identity = |given: Option<&str>, path: &Path| feed.identity(given, path);
    // The first records of a topic may still show that it is of another feed than the one named.
    let span = options.identity.as_deref().and_then(Span::from_identity);
    let goes_on = span.is_some_and(|span| span.first > 0);
    match &feed.rows {
        Some(format) => {
            let archives = Archives {
                feed: feed.name,
                identity: &identity,
                reader: &|| LineReader::new(feed, format, goes_on),
            };
            let opening = location.rows(feed.name, format);
            load::load_into(&archives, inputs, opening, options, progress)
        }
        None => {
            let archives = Archives {
                feed: feed.name,
                identity: &identity,
                reader: &Scanner::default,
            };
            load::load_into(&archives, inputs, location.spots(), options, progress)
        }
    }
}
