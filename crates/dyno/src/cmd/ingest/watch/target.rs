//! The table that a watch loads into: a directory, or one on ClickHouse servers.

use std::collections::BTreeMap;

use dyno_ingest::Error;
use dyno_ingest::load::{ArchiveReport, Input, Options, Progress};
use dyno_ingest::table::Position;
use dyno_ingest_clickhouse::Address;
use dyno_ingest_feeds::Feed;
use dyno_ingest_watch::{Destination, Table, WatchError};

use crate::args::{ServerLoadArgs, WatchArgs};
use crate::cmd::ingest::{clickhouse, set_catalog};

pub enum WatchTarget<'a> {
    Directory(Table),
    Server(Server<'a>),
}

/// A table on ClickHouse servers, and how to load into it.
pub struct Server<'a> {
    address: Address,
    args: &'a ServerLoadArgs,
    options: Options,
}

impl WatchTarget<'_> {
    pub fn open(args: &WatchArgs, options: Options) -> anyhow::Result<WatchTarget<'_>> {
        set_catalog(&args.into, args.catalog)?;
        match clickhouse::address(&args.into)? {
            Some(address) => Ok(WatchTarget::Server(Server {
                address,
                args: &args.server,
                options,
            })),
            None => {
                clickhouse::refuse_options(&args.server)?;
                Ok(WatchTarget::Directory(Table {
                    directory: args.into.clone(),
                    options,
                }))
            }
        }
    }

    pub fn destination(&self) -> &dyn Destination {
        match self {
            WatchTarget::Directory(table) => table,
            WatchTarget::Server(server) => server,
        }
    }
}

impl Destination for Server<'_> {
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
        match clickhouse::load(feed, inputs, &self.address, self.args, &options, progress) {
            Ok(report) => Ok(report.archives),
            // An error of the load keeps its type, because the watch decides by it whether to try
            // again. Any other is a mistake in the arguments, which no retry mends.
            Err(error) => Err(match error.downcast::<Error>() {
                Ok(error) => error.into(),
                Err(error) => WatchError::Destination {
                    reason: format!("{error:#}"),
                    again: false,
                },
            }),
        }
    }

    fn positions(&self) -> Result<BTreeMap<String, Position>, WatchError> {
        Err(WatchError::Destination {
            reason: "the ledger in a ClickHouse server keeps no offsets".to_owned(),
            again: false,
        })
    }
}
