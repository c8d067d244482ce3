//! The table that arriving archives are loaded into.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_ingest::load::{ArchiveReport, Input, Options, Progress};
use dyno_ingest::table::{Manifest, Position};
use dyno_ingest_feeds::Feed;

use crate::WatchError;

/// A table with a ledger of the archives that it holds.
pub trait Destination: Sync {
    /// Loads archives of one feed, as `dyno ingest load` does: each whole or not at all, and
    /// skipping those that are there. `archive` is the identity of the only input if its name does
    /// not give it.
    ///
    /// # Errors
    /// What keeps all of them from being loaded; what is wrong with one is in its report.
    fn load(
        &self,
        feed: &'static Feed,
        inputs: Vec<Input>,
        archive: Option<String>,
        progress: &Progress,
    ) -> Result<Vec<ArchiveReport>, WatchError>;

    /// The position of each stream in the ledger.
    ///
    /// # Errors
    /// When the ledger cannot be read, or has no place for streams.
    fn positions(&self) -> Result<BTreeMap<String, Position>, WatchError>;
}

/// A directory of Parquet files.
#[derive(Debug, Clone)]
pub struct Table {
    /// The table's directory, which is created by the first load.
    pub directory: PathBuf,
    /// The options that each load uses.
    pub options: Options,
}

impl Destination for Table {
    fn load(
        &self,
        feed: &'static Feed,
        inputs: Vec<Input>,
        archive: Option<String>,
        progress: &Progress,
    ) -> Result<Vec<ArchiveReport>, WatchError> {
        let options = Options {
            identity: archive,
            ..self.options.clone()
        };
        let report = dyno_ingest_feeds::load(feed, inputs, &self.directory, &options, progress)?;
        Ok(report.archives)
    }

    fn positions(&self) -> Result<BTreeMap<String, Position>, WatchError> {
        let manifest = Manifest::read(&self.directory)?;
        Ok(manifest.map_or_else(BTreeMap::new, |manifest| manifest.positions()))
    }
}
