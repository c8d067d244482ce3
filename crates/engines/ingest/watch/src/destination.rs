//! The table that arriving archives are loaded into.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use dyno_ingest::load::{self, ArchiveReport, Input, Options, Progress};
use dyno_ingest::table::{Manifest, Position, WSPR};
use dyno_ingest_feeds::Feed;

use crate::WatchError;

/// The feed that an archive's lines belong to.
#[derive(Clone, Copy)]
pub enum Whose {
    /// WSPR, which the ingest engine reads itself.
    Wspr,
    /// Another feed, read by its own definition.
    Other(&'static dyn Feed),
}

impl Whose {
    /// The feed of this name, or `None`.
    pub fn named(name: &str) -> Option<Whose> {
        match name {
            WSPR => Some(Whose::Wspr),
            other => dyno_ingest_feeds::named(other).map(Whose::Other),
        }
    }

    /// The feed's name, as commands and the ledger spell it.
    pub fn name(self) -> &'static str {
        match self {
            Whose::Wspr => WSPR,
            Whose::Other(feed) => feed.name(),
        }
    }

    /// The identity that a file of the feed has in the ledger.
    pub fn archive(self, path: &Path) -> String {
        match self {
            Whose::Wspr => load::identity_of(path),
            Whose::Other(feed) => format!("{}/{}", feed.name(), feed.archive(path)),
        }
    }
}

impl fmt::Debug for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
        whose: Whose,
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
        whose: Whose,
        inputs: Vec<Input>,
        archive: Option<String>,
        progress: &Progress,
    ) -> Result<Vec<ArchiveReport>, WatchError> {
        let options = Options {
            identity: archive,
            ..self.options.clone()
        };
        let table = &self.directory;
        let report = match whose {
            Whose::Wspr => load::load(inputs, table, &options, progress)?,
            Whose::Other(feed) => dyno_ingest_feeds::load(feed, inputs, table, &options, progress)?,
        };
        Ok(report.archives)
    }

    fn positions(&self) -> Result<BTreeMap<String, Position>, WatchError> {
        let manifest = Manifest::read(&self.directory)?;
        Ok(manifest.map_or_else(BTreeMap::new, |manifest| manifest.positions()))
    }
}
