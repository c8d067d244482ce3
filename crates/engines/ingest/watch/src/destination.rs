//! Where what arrives is loaded into.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use dyno_ingest::load::{self, ArchiveReport, Input, Options, Progress};
use dyno_ingest::table::{Manifest, Position, WSPR};
use dyno_ingest_feeds::Feed;

use crate::WatchError;

/// Whose lines an archive has.
#[derive(Clone, Copy)]
pub enum Whose {
    /// The engine's own feed.
    Wspr,
    /// One of the others.
    Other(&'static dyn Feed),
}

impl Whose {
    /// The feed of that name.
    pub fn named(name: &str) -> Option<Whose> {
        match name {
            WSPR => Some(Whose::Wspr),
            other => dyno_ingest_feeds::named(other).map(Whose::Other),
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Whose::Wspr => WSPR,
            Whose::Other(feed) => feed.name(),
        }
    }

    /// Which archive of the ledger a file of it is.
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

/// A table with a ledger, which knows what it has.
pub trait Destination: Sync {
    /// Loads archives of one feed, as `dyno ingest load` does: each whole or not at all, and not
    /// again what is there. `archive` is the identity of the only input, where its name does not
    /// say it.
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

    /// Where each stream stands in the ledger.
    ///
    /// # Errors
    /// When the ledger cannot be read, or has no place for streams.
    fn positions(&self) -> Result<BTreeMap<String, Position>, WatchError>;
}

/// A directory of Parquet files.
#[derive(Debug, Clone)]
pub struct Table {
    /// It.
    pub directory: PathBuf,
    /// How to load.
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
