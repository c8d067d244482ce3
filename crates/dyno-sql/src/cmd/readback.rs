//! `dyno-sql readback`: count and checksum of written tables, by readers that are not ours.

use std::io::Write;

use anyhow::Result;
use dyno_readback::{Texts, feed, spots, tables, training_set};
use dyno_tpch::Table;

use crate::args::readback::ReadbackCommand;

/// Prints one JSON object.
///
/// # Errors
/// A table is missing, damaged or not readable.
pub fn run(command: ReadbackCommand, mut out: impl Write) -> Result<()> {
    let sum = match command {
        ReadbackCommand::Spots { table } => spots(&table)?,
        ReadbackCommand::Feed { table, feed: name } => feed(&table, &name)?,
        ReadbackCommand::Features { set } => training_set(&set)?,
        ReadbackCommand::Tpch(args) => {
            let texts = if args.lengths {
                Texts::Lengths
            } else {
                Texts::Bytes
            };
            let named = if args.tables.is_empty() {
                &Table::ALL[..]
            } else {
                &args.tables
            };
            tables(&args.directory, named, args.format.name(), texts)?
        }
    };
    writeln!(out, "{}", serde_json::to_string(&sum)?)?;
    Ok(())
}
