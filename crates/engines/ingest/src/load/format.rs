//! A feed as the loader sees it: a reader of its archives, and their identities.

use std::fs::File;
use std::path::Path;

use super::archive::Sink;
use super::report::StageSeconds;
use super::target::Chunk;
use crate::Result;
use crate::scan::{BadRow, Block};

/// The archives of one feed. Everything else about a load is the same for all feeds.
pub struct Archives<'a, R> {
    /// The feed's name, as commands and the ledger spell it.
    pub feed: &'static str,
    /// The identity of an archive in the ledger, from the one that the caller gave, or else from
    /// the file's name. An archive replaces the one that has its identity.
    pub identity: &'a (dyn Fn(Option<&str>, &Path) -> String + Sync),
    /// Makes a reader for the next archive.
    pub reader: &'a (dyn Fn() -> R + Sync),
}

/// Turns the text of one archive into rows.
pub trait ArchiveReader: Sized {
    /// The rows, by column.
    type Chunk: Chunk + 'static;

    /// The rows since the chunk was last cleared.
    fn chunk(&mut self) -> &mut Self::Chunk;

    /// Appends the rows of the block's lines to the chunk, and passes every bad line to `bad`.
    ///
    /// # Errors
    /// Why nothing of the archive may be loaded.
    fn read(
        &mut self,
        block: &Block,
        bad: &mut dyn FnMut(BadRow<'_>),
    ) -> std::result::Result<(), String>;

    /// Lines so far that are neither rows nor bad.
    fn blank_lines(&self) -> u64;

    /// What is odd about the archive as a whole, once all of it was read.
    fn end(&mut self) -> Option<String> {
        None
    }

    /// Reads a Parquet file into the sink of this reader.
    ///
    /// # Errors
    /// What is wrong with the file; always if the feed comes as text.
    fn read_parquet(
        sink: &mut Sink<'_, Self>,
        _file: File,
        _stages: &mut StageSeconds,
    ) -> Result<()> {
        let feed = sink.feed();
        Err(sink.refused(format!("it is Parquet; feed {feed} comes as text")))
    }
}
